"""Fitted learners in model files: the fields that are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.files import ModelFileError
from kernelmill.files.fields import Fields, RecordOf
from kernelmill.files.kinds import (
    SMALLEST_INTEGER,
    Array,
    Choice,
    Flag,
    Float,
    Integer,
    Kind,
    ListOf,
    MappingOf,
    Mismatch,
    NamesKind,
    Null,
    Number,
    Place,
    SeedKind,
    StreamKind,
    Tensors,
    Text,
)
from kernelmill.maps.stored import FittedMapKind, UnfittedMapKind

__all__ = [
    "LEARNERS",
    "MAX_UNCERTAIN_FEATURES",
    "WEIGHTS",
    "restore_shared",
    "share_directions",
]

MAX_UNCERTAIN_FEATURES = 4096
"""For which uncertainty="auto" stores the factor: 32 MiB."""

WEIGHTS = ("float16", "float32", "float64")

_MAX_CHARACTERS = 1 << 26
"""Characters of all labels, each as wide as the widest."""

_LABELS = {"b": bool, "i": int, "u": int, "f": float, "U": str}


class LabelsKind(Kind):
    """Labels of classes: two or more different numbers, booleans or strings, with their dtype."""

    description = 'an object with dtype (of NumPy, or "object") and labels, two or more'

    def write(self, value: NDArray[Any], place: Place) -> Any:
        kind, labels = value.dtype.kind, value.tolist()
        if kind == "O" and all(isinstance(label, str) for label in labels):
            return {"dtype": "object", "labels": [str(label) for label in labels]}
        if kind not in _LABELS or (kind == "f" and value.dtype.itemsize > 8):
            raise ModelFileError(
                "labels must be integers, floats, booleans or strings for the model to be "
                f"saved, got dtype {value.dtype} with {labels[0]!r:.80}",
                "fit with labels of one of these types",
            )
        return {"dtype": value.dtype.str, "labels": labels}

    def read(self, stored: Any, place: Place) -> NDArray[Any]:
        fields = Fields(dtype=Text(10), labels=ListOf(_AnyLabel(), shortest=2))
        values = fields.read_at(stored, place)
        dtype, labels = values["dtype"], values["labels"]
        if not re.fullmatch(r"object|\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]U[0-9]{1,8}", dtype):
            raise Mismatch
        kind = "U" if dtype == "object" else np.dtype(dtype).kind
        if not all(type(label) is _LABELS[kind] for label in labels):
            raise Mismatch
        if kind == "U" and dtype != "object":
            width = int(dtype[2:])
            if width < max(map(len, labels)) or width * len(labels) > _MAX_CHARACTERS:
                raise Mismatch
        try:
            array = np.array(labels, dtype=object if dtype == "object" else np.dtype(dtype))
        except OverflowError:
            raise Mismatch from None
        if len(set(array.tolist())) != len(labels):
            raise ModelFileError(f"{place.path} must have different labels, got duplicates")
        return array


class _AnyLabel(Kind):
    """A boolean, a number or a string."""

    description = "a label"

    def write(self, value: Any, place: Place) -> Any:
        label = value.item() if isinstance(value, np.generic) else value
        return self.read(label, place)

    def read(self, stored: Any, place: Place) -> Any:
        if type(stored) not in (bool, int, float, str):
            raise Mismatch
        return stored


class ClassWeightKind(Kind):
    """A dict from labels to weights, stored as a list of pairs: labels need not be strings."""

    description = "a list of pairs of a label and a number"

    def write(self, value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            raise Mismatch
        label, number = _AnyLabel(), Number()
        return [[label.write(k, place), number.write(v, place)] for k, v in value.items()]

    def read(self, stored: Any, place: Place) -> Any:
        if type(stored) is not list or not all(type(p) is list and len(p) == 2 for p in stored):
            raise Mismatch
        label, number = _AnyLabel(), Number()
        return {label.read(k, place): number.read(v, place) for k, v in stored}


_NUMBER = Number() | Null()
_COUNT = Integer(1) | Null()
_FLAG = Flag() | Integer(SMALLEST_INTEGER)
_NAME = Text(40)
_GROUPS = ListOf(Integer(SMALLEST_INTEGER)) | Null()
_CURVE = ListOf(Float(other="names"))
_COLUMN = ListOf(Float(other="names"), array=True)

# The parameters that are stored; the learners check their values when they are loaded. feature_map
# and random_state have fields of their own. checkpoint, a path on the machine of the training run,
# is not stored.
_PARAMETERS = Fields(
    checkpoint_seconds=Number(), n_threads=_COUNT, solver=_NAME, tol=Number(), verbose=_FLAG
)
_OF_CLASSIFIER = _PARAMETERS | Fields(
    alpha=_NUMBER,
    batch_size=_COUNT,
    class_weight=ClassWeightKind() | _NAME | Null(),
    epochs=_COUNT,
    column_groups=_GROUPS,
    learning_rate=_NUMBER,
    loss=_NAME,
    patience=_COUNT,
    tune=_FLAG | _NAME,
    validation_fraction=_NUMBER,
    added={"column_groups": None, "learning_rate": None, "tune": False},
)
_OF_REGRESSOR = _PARAMETERS | Fields(
    alpha=ListOf(Number()) | Number() | Null(),
    fit_intercept=_FLAG,
    max_iter=_COUNT,
    noise=_NUMBER,
    scoring=_NAME,
    column_groups=_GROUPS,
    tune=_FLAG | _NAME,
    tune_budget=_COUNT,
    added={"column_groups": None},
)

_UNCERTAINTY = Fields(
    weight=Float(above=0),
    objective=_COLUMN,
    log_volume=Float(other="names"),
    log_weight=Float(other="names"),
    n_degrees=Integer(),
    factor=Array(("float32", "float64"), (None,), copy=False),
    feature_mean=Array(("float64",), ("features",), optional=True),
)


def _fields(name: str, parameters: Fields) -> Fields:
    """The fields of both learners. Weights come first: the map must have a feature for each."""
    return Fields(
        learner=Choice(name),
        weights=Choice(*WEIGHTS),
        coef_dtype=Choice("float32", "float64"),
        coef=Array(WEIGHTS, ("outputs", "features"), copy=False),
        coef_scale=Array(("float32",), ("outputs",), above=0, optional=True),
        dual=Array(("float64",), ("outputs", "features"), optional=True),
        intercept=Array(("float32", "float64"), ("outputs",)),
        parameters=RecordOf(parameters, prefixed=False),
        random_state=SeedKind(),
        feature_map=Text() | UnfittedMapKind(),
        map=FittedMapKind(),
        key=StreamKind(),
        n_features_in=Integer(1),
        feature_names_in=NamesKind(),
        alpha=Float(low=0),
        n_iter=Integer(),
    )


LEARNERS: dict[str, Fields] = {
    "KernelClassifier": _fields("KernelClassifier", _OF_CLASSIFIER)
    | Fields(
        classes=LabelsKind(),
        solver=_NAME,
        loss_curve=_CURVE,
        validation_curve=_CURVE,
    ),
    "KernelRegressor": _fields("KernelRegressor", _OF_REGRESSOR)
    | Fields(
        targets_ndim=Integer(1, 2),
        noise=_COLUMN,
        alphas=_COLUMN | Null(),
        scores=_COLUMN | Null(),
        tuning=MappingOf(_COLUMN) | Null(),
        uncertainty=Null() | RecordOf(_UNCERTAINTY, prefixed=False),
    ),
}


_GIVEN, _FITTED = "feature_map/directions", "map/directions"


def share_directions(tensors: Tensors) -> None:
    """Remove directions given as a parameter of a map if they are those of the fitted map.

    They can be a quarter of a model file.
    """
    given, fitted = tensors.get(_GIVEN), tensors.get(_FITTED)
    if given is not None and fitted is not None and given.tobytes() == fitted.tobytes():
        del tensors[_GIVEN]


def restore_shared(record: Any, tensors: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """Return the tensors with those that `share_directions` has removed."""
    feature_map = record.get("feature_map")
    parameters = feature_map.get("parameters") if type(feature_map) is dict else None
    is_shared = (
        type(parameters) is dict
        and feature_map.get("map") == "principal_fourier"
        and "directions" not in parameters
        and _GIVEN not in tensors
        and _FITTED in tensors
    )
    return {**tensors, _GIVEN: tensors[_FITTED]} if is_shared else tensors
