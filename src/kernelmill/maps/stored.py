"""Fitted maps in model files: their parameters, their seed and their fitted attributes.

Random coefficients are functions of the seed and are not stored, so a map takes a few hundred bytes
whatever its number of features. Each class declares the stored fields of its map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.files import ModelFileError
from kernelmill.files.fields import Fields, RecordOf
from kernelmill.files.kinds import Choice, Integer, Kind, Mismatch, Place
from kernelmill.kernels import Kernel, RotationInvariantKernel, resolve_dot_product
from kernelmill.maps.base import MOST_COMPONENTS, FeatureMap
from kernelmill.maps.fields import StreamKind, stored_random_state
from kernelmill.maps.registry import FAMILIES, map_name
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = [
    "FittedMapKind",
    "NamesKind",
    "UnfittedMapKind",
    "fitted_map_fields",
]


class NamesKind(Kind):
    """The names of the input columns, as many as ``n_features_in``, or None."""

    description = "a list with a string for each input column, or null"

    def write(self, value: Any, place: Place) -> Any:
        return None if value is None else [str(each) for each in value]

    def read(self, stored: Any, place: Place) -> NDArray[np.object_] | None:
        if stored is None:
            return None
        if type(stored) is not list or len(stored) != place.sizes["n_features_in"]:
            raise Mismatch
        if not all(type(name) is str for name in stored):
            raise Mismatch
        return np.asarray(stored, dtype=object)


class UnfittedMapKind(Kind):
    """A map that need not be fitted: its name and its parameters.

    What is written is a pair: the map, and a stream that replaces a seed without a plain value.
    """

    description = "an object with the name of a map and its parameters"

    def write(self, value: Any, place: Place) -> Any:
        feature_map, stream = value
        name = _storable_name(feature_map)
        parameters = feature_map._parameters()
        kernel = parameters.get("kernel")
        if not isinstance(kernel, (str, Kernel, RotationInvariantKernel, NoneType)):
            kernel = resolve_dot_product(kernel)
        values = {"map": name, "parameters": _storable(parameters, kernel, stream)}
        return _unfitted_fields(type(feature_map)).write_at(values, place.inside())

    def read(self, stored: Any, place: Place) -> FeatureMap:
        family = _family(stored, place)
        with _consistent(place.path):
            values = _unfitted_fields(family).read_at(stored, place.inside())
        return family(**values["parameters"])


class FittedMapKind(Kind):
    """A fitted map. Its coefficients are drawn when rows are first transformed.

    If the size ``features`` is known, that of the weights, the map must have as many features.
    """

    description = "an object that describes a fitted map"

    def write(self, value: Any, place: Place) -> Any:
        name = _storable_name(value)
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

    def read(self, stored: Any, place: Place) -> FeatureMap:
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
            feature_map = family(**parameters)
            feature_map._restore(values["n_features_in"], values["key"], values["learnt"])
        if values["feature_names_in"] is not None:
            feature_map.feature_names_in_ = values["feature_names_in"]
        return feature_map


def _unfitted_fields(family: type[FeatureMap]) -> Fields:
    return Fields(
        map=Choice(*FAMILIES), parameters=RecordOf(family._stored_parameters, prefixed=False)
    )


def fitted_map_fields(family: type[FeatureMap]) -> Fields:
    """Return the fields of a fitted map of a class."""
    return _unfitted_fields(family) | Fields(
        key=StreamKind(),
        n_features_in=Integer(1, MOST_COMPONENTS),
        feature_names_in=NamesKind(),
        learnt=RecordOf(family._stored_attributes, prefixed=False),
    )


def _family(stored: Any, place: Place) -> type[FeatureMap]:
    """Return the class of a stored map: only those of the registry are built."""
    if type(stored) is not dict:
        raise Mismatch
    name = stored.get("map")
    if type(name) is not str or name not in FAMILIES:
        raise ModelFileError(
            f"{place.path}.map must be {Choice(*FAMILIES).description}, got {name!r:.80}"
        )
    return FAMILIES[name]


def _storable_name(feature_map: Any) -> str:
    """Return the name of a map; an error about maps that are not in the registry."""
    name = map_name(feature_map)
    if name is None:
        known = ", ".join(family.__name__.removesuffix("Map") for family in FAMILIES.values())
        raise ModelFileError(
            f"must be a map of kernelmill ({known}) for the model to be saved, got "
            f"{type(feature_map).__name__}",
            "put other steps before the model",
            "save the model with the pickle module or skops",
            parameter="feature_map",
        )
    return name


def _storable(parameters: Mapping[str, Any], kernel: Any, stream: Stream) -> dict[str, Any]:
    """Parameters with seeds and kernels that can be stored.

    A series given as an array is replaced by that of `kernel`: the one that the map was fitted
    with, whatever became of the array since.
    """
    values = {**parameters, "random_state": stored_random_state(parameters["random_state"], stream)}
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
