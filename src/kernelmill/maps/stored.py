"""Fitted maps in model files: their parameters, their seed and their fitted attributes.

Random coefficients are functions of the seed and are not stored, so a map takes a few hundred bytes
whatever its number of features. Each class declares the stored fields of its map. Since a small
file can request any amount of memory and time, the cost of a map is estimated before it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import NoneType

import numpy as np

from kernelmill.errors import Remedy
from kernelmill.files import ModelFileError
from kernelmill.files.fields import Fields, RecordOf, declared_fields
from kernelmill.files.kinds import (
    Choice,
    Integer,
    Kind,
    Mismatch,
    NamesKind,
    Place,
    Record,
    StreamKind,
    Tensors,
    storable_random_state,
)
from kernelmill.files.safetensors import Tensor
from kernelmill.formatting import plain
from kernelmill.kernels import Kernel, RotationInvariantKernel, resolve_dot_product
from kernelmill.maps.base import (
    MAX_COMPONENTS,
    MAX_MEMORY,
    FeatureMap,
    MapCost,
    load_scikit_learn,
)
from kernelmill.maps.registry import MAPS, map_name
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = [
    "FittedMapKind",
    "UnfittedMapKind",
    "check_cost",
    "estimate_cost",
    "fitted_map_fields",
    "map_from_record",
    "map_record",
]

_MAX_OPERATIONS = 10**10
"""Operations for each row, which take several seconds."""


class UnfittedMapKind(Kind):
    """A map that need not be fitted: its name and its parameters.

    What is written is a pair: the map, and a stream that replaces a seed without a plain value.
    """

    description = "an object with the name of a map and its parameters"

    def write(self, value: tuple[FeatureMap, Stream], place: Place) -> Record:
        feature_map, stream = value
        name = _storable_name(feature_map)
        parameters = feature_map._parameters()
        kernel = parameters.get("kernel")
        if not isinstance(kernel, (str, Kernel, RotationInvariantKernel, NoneType)):
            kernel = resolve_dot_product(kernel)
        values = {"map": name, "parameters": _storable(parameters, kernel, stream)}
        return _unfitted_fields(type(feature_map)).write_at(values, place.inside())

    def read(self, stored: object, place: Place) -> FeatureMap:
        family = _family(stored, place)
        with _consistent(place.path):
            values = _unfitted_fields(family).read_at(stored, place.inside())
        return family.bare(**values["parameters"])


class FittedMapKind(Kind):
    """A fitted map. Its coefficients are drawn when rows are first transformed.

    If the size ``features`` is known, that of the weights, the map must have as many features.
    """

    description = "an object that describes a fitted map"

    def write(self, value: object, place: Place) -> Record:
        name = _storable_name(value)
        assert isinstance(value, FeatureMap)
        resolve_threads(value.n_threads)  # it may have been set after `fit`
        parameters = {**value._parameters(), **value._fitted_parameters}
        kernel = getattr(value, "kernel_", None)
        values = {
            "map": name,
            "parameters": _storable(parameters, kernel, value.stream_),
            "key": value.stream_,
            "n_features_in": value.n_features_in_,
            "feature_names_in": getattr(value, "feature_names_in_", None),
            "learnt": value,
        }
        return fitted_map_fields(type(value)).write_at(values, place.inside())

    def read(self, stored: object, place: Place) -> FeatureMap:
        family = _family(stored, place)
        with _consistent(place.path):
            values = fitted_map_fields(family).read_at(stored, place.inside())
            parameters = values["parameters"]
            n_features = parameters["n_components"]
            if parameters.get("features") == "complex":
                n_features *= 2
            if place.sizes.get("features", n_features) != n_features:
                raise ModelFileError(
                    f"{place.path} must have a feature for each of {place.sizes['features']} "
                    f"weights, got {n_features}"
                )
            feature_map = family.bare(**parameters)
            feature_map._restore(values["n_features_in"], values["key"], values["learnt"])
        if values["feature_names_in"] is not None:
            feature_map.feature_names_in_ = values["feature_names_in"]
        return feature_map


def _unfitted_fields(family: type[FeatureMap]) -> Fields:
    return Fields(map=Choice(*MAPS), parameters=RecordOf(declared_fields(family), prefixed=False))


def fitted_map_fields(family: type[FeatureMap]) -> Fields:
    """Return the fields of a fitted map of a class."""
    return _unfitted_fields(family) | Fields(
        key=StreamKind(),
        n_features_in=Integer(1, MAX_COMPONENTS),
        feature_names_in=NamesKind(),
        learnt=RecordOf(declared_fields(family, are_fitted=True), prefixed=False),
    )


def _family(stored: object, place: Place) -> type[FeatureMap]:
    """Return the class of a stored map: only those of the registry are built."""
    if not isinstance(stored, dict):
        raise Mismatch
    name = stored.get("map")
    if type(name) is not str or name not in MAPS:
        raise ModelFileError(
            f"{place.path}.map must be {Choice(*MAPS).description}, got {name!r:.80}"
        )
    return MAPS[name]


def _storable_name(feature_map: object) -> str:
    """Return the name of a map; an error about maps that are not in the registry."""
    name = map_name(feature_map)
    if name is None:
        known = ", ".join(family.__name__ for family in MAPS.values())
        raise ModelFileError(
            f"must be a map of kernelmill ({known}) for the model to be saved, got "
            f"{type(feature_map).__name__}",
            "put other steps before the model",
            "save the model with the pickle module or skops",
            parameter="feature_map",
        )
    return name


def _storable(parameters: Mapping[str, object], kernel: object, stream: Stream) -> Record:
    """Return parameters with seeds and kernels that can be stored.

    A series that is given as an array is replaced by that of `kernel`, with which the map was
    fitted: the array may have changed since.
    """
    seed = storable_random_state(parameters["random_state"], stream)
    values: Record = {**parameters, "random_state": seed}
    given = parameters.get("kernel")
    if not isinstance(given, str):
        series = getattr(kernel, "given", None)
        is_series = isinstance(series, np.ndarray) and not isinstance(given, type(kernel))
        values["kernel"] = series if is_series else kernel
    return values


@contextmanager
def _consistent(path: str) -> Iterator[None]:
    """Turn what a map raises about its parameters into an error about the file."""
    try:
        yield
    except ModelFileError:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise ModelFileError(f"{path} is inconsistent: {error}") from error


def map_record(fitted_map: object) -> tuple[Record, Tensors]:
    """Return what a model file holds of a fitted map.

    Parameters
    ----------
    fitted_map : FeatureMap
        One of kernelmill's maps. Functions given by the user raise a ModelFileError.

    Returns
    -------
    dict, dict of ndarray
        The record and its tensors, for `map_from_record`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.stored import map_from_record, map_record
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = Fastfood(n_components=100_000, length_scale=2.0, random_state=0).fit(X)
    >>> record, tensors = map_record(features)
    >>> record["learnt"], tensors
    ({'length_scale_': 2.0}, {})
    >>> again = map_from_record(record, tensors)
    >>> bool((again.transform(X) == features.transform(X)).all())
    True
    """
    if isinstance(fitted_map, FeatureMap):
        from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

        check_is_fitted(fitted_map)
    tensors: Tensors = {}
    return FittedMapKind().write(fitted_map, Place(tensors)), tensors


def map_from_record(record: object, tensors: Mapping[str, Tensor]) -> FeatureMap:
    """Return the fitted map of a record, with bit-identical features.

    Only maps of the registry, known kernels and declared parameters are accepted; everything else
    raises a ModelFileError.

    Parameters
    ----------
    record : dict
    tensors : mapping of str to ndarray

    Returns
    -------
    FeatureMap

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import TensorSketch
    >>> from kernelmill.maps.stored import map_from_record, map_record
    >>> stored = map_record(TensorSketch(degree=3).fit(np.eye(4)))
    >>> map_from_record(*stored).transform(np.eye(4)).shape
    (4, 100)
    """
    load_scikit_learn()
    place = Place(dict(tensors), path="map")
    try:
        found = FittedMapKind().read(record, place)
    except Mismatch:
        raise ModelFileError(f"a map must be an object, got {record!r:.80}") from None
    place.reject_unread()
    return found


def estimate_cost(record: object) -> MapCost:
    """Estimate the cost of a map from its record; fields that are not integers count as 1.

    Examples
    --------
    >>> from kernelmill.maps.stored import estimate_cost
    >>> record = {"map": "random_fourier", "parameters": {"n_components": 1000},
    ...           "n_features_in": 50}
    >>> estimate_cost(record)
    MapCost(n_bytes=400000, operations=50000)
    """
    found: Record = record if isinstance(record, dict) else {}
    parameters, name = found.get("parameters"), found.get("map")
    n_features = _integer(parameters.get("n_components") if isinstance(parameters, dict) else 1)
    estimate: Callable[[int, int, int], MapCost] = MapCost.of_transforms
    if isinstance(name, str) and name in MAPS:  # reading rejects other names
        estimate = MAPS[name]._estimate_cost
    degree = max(map(_integer, _degrees(found)), default=1)
    return estimate(_integer(found.get("n_features_in")), n_features, degree)


def check_cost(record: object, max_memory: int) -> None:
    """Raise a ModelFileError for a map that takes more memory or time than a budget."""
    cost = estimate_cost(record)
    if cost.n_bytes > max_memory:
        raise ModelFileError(
            f"its map would take about {plain.size(cost.n_bytes)} of memory, and the budget is "
            f"{plain.size(max_memory)}",
            Remedy("increase the limit if you trust the file", max_memory=cost.n_bytes),
        )
    if cost.operations > _MAX_OPERATIONS and max_memory <= MAX_MEMORY:
        raise ModelFileError(
            f"its map would take about {cost.operations:.1e} operations for each row, more than "
            f"{_MAX_OPERATIONS:.0e}",
            Remedy("increase the limit if you trust the file", max_memory=2 * MAX_MEMORY),
        )


def _integer(value: object) -> int:
    return value if type(value) is int and value > 0 else 1


def _degrees(value: object) -> Iterator[object]:
    """Yield all values of fields called degree in a record, and the lengths of degree lists."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in ("degree", "max_degree"):
                yield each
            elif name == "columns_of_degrees_" and isinstance(each, list):
                yield len(each)
            yield from _degrees(each)
