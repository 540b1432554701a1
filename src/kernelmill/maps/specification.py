"""Fitted maps as plain values and a few vectors: their parameters, seed and what they learnt.

The random coefficients are functions of the seed and are not among it, so a map takes some hundred
bytes whatever its number of features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelmill.kernels import Kernel, RotationInvariantKernel, resolve_dot_product
from kernelmill.maps.base import MOST_COMPONENTS, FeatureMap
from kernelmill.maps.count_sketch import CountSketch
from kernelmill.maps.dot_product_fastfood import DotProductFastfood
from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.gaussian_templates import GaussianTemplates
from kernelmill.maps.kernel_specification import MOST_DEGREES, kernel_from_values, kernel_values
from kernelmill.maps.random_fourier import RandomFourier
from kernelmill.maps.random_maclaurin import RandomMaclaurin
from kernelmill.maps.seed_specification import (
    key_text,
    random_state_from_values,
    random_state_values,
    stream_from_text,
)
from kernelmill.maps.taylor_sketch import TaylorSketch
from kernelmill.maps.tensor_sketch import TensorSketch
from kernelmill.projections.given import GivenFactors
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads
from kernelmill.storage import ModelFileError

__all__ = [
    "feature_names",
    "map_from_parameters",
    "map_from_specification",
    "map_parameters",
    "map_specification",
    "names_from_values",
]

Values = dict[str, Any]
Tensors = Mapping[str, NDArray[Any]]

_FACTORS = {"B": np.float64, "permutation": np.int32, "G": np.float64, "S": np.float64}
_MOST_EAGER_COMPONENTS = 1 << 24  # RandomMaclaurin draws the degrees of its columns at once

# What each map takes from the data: numbers, and "center" where its means may be subtracted.
_MAPS: dict[str, tuple[type[FeatureMap], tuple[str, ...]]] = {
    "count_sketch": (CountSketch, ()),
    "dot_product_fastfood": (DotProductFastfood, ("radius_", "remainder_")),
    "fastfood": (Fastfood, ("length_scale_",)),
    "gaussian_templates": (GaussianTemplates, ("length_scale_", "spread_", "center_")),
    "random_fourier": (RandomFourier, ("length_scale_",)),
    "random_maclaurin": (RandomMaclaurin, ("radius_",)),
    "taylor_sketch": (
        TaylorSketch,
        ("length_scale_", "radius_", "center_", "columns_of_degrees_"),
    ),
    "tensor_sketch": (TensorSketch, ("gamma_",)),
}


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= 40


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_count(most: int, *, least: int = 1) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _number_or_text(value: Any) -> bool:
    return _is_number(value) or _is_text(value)


# What the parameters of all maps may be; the maps themselves check the rest.
_PARAMETERS: dict[str, Callable[[Any], bool]] = {
    "blocks": _is_text,
    "center": _or_none(_is_text),
    "coef0": _is_number,
    "degree": _or_none(_is_count(MOST_DEGREES)),
    "degrees": _is_text,
    "df": _is_number,
    "features": _is_text,
    "gamma": _or_none(_number_or_text),
    "h01": _is_flag,
    "hashing": _is_text,
    "length_scale": _or_none(_number_or_text),
    "max_degree": _or_none(_is_count(MOST_DEGREES, least=0)),
    "n_components": _is_count(MOST_COMPONENTS),
    "n_threads": _or_none(_is_count(1 << 16)),
    "normalize": _is_flag,
    "proper": _is_flag,
    "radius": _number_or_text,
    "sampling": _is_text,
    "spread": _number_or_text,
    "store_matrix": _is_flag,
    "structure": _is_text,
    "weighting": _is_text,
}


def map_specification(fitted_map: Any) -> tuple[Values, dict[str, NDArray[Any]]]:
    """What a fitted map is, as plain values and vectors.

    Parameters
    ----------
    fitted_map : FeatureMap
        One of kernelmill's own. Functions given by the user are refused with a ModelFileError.

    Returns
    -------
    dict, dict of ndarray
        For `map_from_specification`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.specification import map_from_specification, map_specification
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = Fastfood(n_components=100_000, length_scale=2.0, random_state=0).fit(X)
    >>> values, tensors = map_specification(features)
    >>> values["learnt"], tensors
    ({'length_scale_': 2.0}, {})
    >>> again = map_from_specification(values, tensors)
    >>> bool((again.transform(X) == features.transform(X)).all())
    True
    """
    name = _name_of(fitted_map)
    check_is_fitted(fitted_map)
    resolve_threads(fitted_map.n_threads)  # it may have been set after `fit`
    current = fitted_map.get_params(deep=False)
    parameters = {**current, **fitted_map._fitted_parameters}
    values, tensors = _parameter_values(
        fitted_map, parameters, getattr(fitted_map, "kernel_", None), fitted_map.stream_
    )
    learnt: Values = {}
    for attribute in _MAPS[name][1]:
        value = getattr(fitted_map, attribute)
        if attribute == "center_":
            tensors |= {} if value is None else {"center": value}
        elif attribute == "columns_of_degrees_":
            learnt[attribute] = [int(count) for count in value]
        else:
            learnt[attribute] = float(value)
    specification = {
        "map": name,
        "parameters": values,
        "key": key_text(fitted_map.stream_),
        "learnt": learnt,
        "n_features_in": int(fitted_map.n_features_in_),
        "feature_names_in": feature_names(fitted_map),
    }
    return specification, tensors


def map_from_specification(values: Any, tensors: Tensors) -> FeatureMap:
    """The fitted map that `map_specification` described, with the same bits in its features.

    Its coefficients are drawn when the first rows come. Only the maps, kernels and parameters of a
    fixed table are made, and values that do not fit give a ModelFileError.

    Parameters
    ----------
    values : dict
    tensors : mapping of str to ndarray

    Returns
    -------
    FeatureMap

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import TensorSketch
    >>> from kernelmill.maps.specification import map_from_specification, map_specification
    >>> specification = map_specification(TensorSketch(degree=3).fit(np.eye(4)))
    >>> map_from_specification(*specification).transform(np.eye(4)).shape
    (4, 100)
    """
    expected = {"map", "parameters", "key", "learnt", "n_features_in", "feature_names_in"}
    if type(values) is not dict or set(values) != expected:
        raise ModelFileError("the description of its map has other fields than those of a map")
    dim = values["n_features_in"]
    if not _is_count(MOST_COMPONENTS)(dim):
        raise ModelFileError(f"its map has {str(dim)[:80]} input columns")
    made = map_from_parameters(values["map"], values["parameters"], tensors)
    stream = stream_from_text(values["key"])
    names = names_from_values(values["feature_names_in"], dim)
    learnt = _learnt(made, values["map"], values["learnt"], tensors, dim)
    with _model_file_errors(values["map"]):
        made._restore(dim, stream, learnt)
    if names is not None:
        made.feature_names_in_ = names
    return made


def map_parameters(feature_map: Any, stream: Stream) -> tuple[str, Values, dict[str, NDArray[Any]]]:
    """The name and the parameters of a map that need not be fitted.

    `stream` takes the place of a random state that has no plain value, such as a Generator.
    """
    name = _name_of(feature_map)
    parameters = feature_map.get_params(deep=False)
    kernel = parameters.get("kernel")
    if not isinstance(kernel, (str, Kernel, RotationInvariantKernel, NoneType)):
        kernel = resolve_dot_product(kernel)
    return name, *_parameter_values(feature_map, parameters, kernel, stream)


def map_from_parameters(name: Any, parameters: Any, tensors: Tensors) -> FeatureMap:
    """A map, not fitted, with parameters as `map_parameters` gave them.

    Examples
    --------
    >>> from kernelmill import CountSketch
    >>> from kernelmill.maps.specification import map_from_parameters, map_parameters
    >>> from kernelmill.random import Stream
    >>> name, parameters, tensors = map_parameters(CountSketch(30), Stream.from_seed(0))
    >>> map_from_parameters(name, parameters, tensors)
    CountSketch(n_components=30)
    """
    if type(name) is not str or name not in _MAPS:
        raise ModelFileError(f"its map {str(name)[:80]!r} is not known")
    family = _MAPS[name][0]
    known = set(family._get_param_names())
    if type(parameters) is not dict or set(parameters) != known:
        raise ModelFileError(f"its map {name} has other parameters than it should have")
    given: Values = {}
    with _model_file_errors(name):
        for key, value in parameters.items():
            if key == "kernel":
                given[key] = kernel_from_values(value, tensors, "kernel")
            elif key == "factors":
                given[key] = _factors(value, tensors)
            elif key == "random_state":
                given[key] = random_state_from_values(value)
            elif _PARAMETERS[key](value):
                given[key] = value
            else:
                raise ModelFileError(f"{key} of its map {name} is {str(value)[:80]}")
    if family is RandomMaclaurin and given["n_components"] > _MOST_EAGER_COMPONENTS:
        raise ModelFileError(f"n_components of its map {name} is {given['n_components']}")
    return family(**given)


def feature_names(estimator: Any) -> list[str] | None:
    """The names of input columns that an estimator saw, if any, as a list."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(each) for each in names]


def names_from_values(names: Any, dim: int) -> NDArray[np.object_] | None:
    """The names of `dim` input columns, as scikit-learn keeps them."""
    if names is None:
        return None
    if type(names) is not list or len(names) != dim or not all(type(n) is str for n in names):
        raise ModelFileError(f"the names of its {dim} input columns are not as many strings")
    return np.asarray(names, dtype=object)


def _name_of(feature_map: Any) -> str:
    for name, (family, _) in _MAPS.items():
        if type(feature_map) is family:
            return name
    known = ", ".join(family.__name__ for family, _ in _MAPS.values())
    raise ModelFileError(
        f"feature_map must be one of kernelmill's own maps to be saved ({known}), got "
        f"{type(feature_map).__name__}, whose code no model file holds; use one of these, with "
        "other steps in front of the model, or keep the model with the pickle module or skops."
    )


def _parameter_values(
    feature_map: FeatureMap, parameters: Mapping[str, Any], kernel: Any, stream: Stream
) -> tuple[Values, dict[str, NDArray[Any]]]:
    """The parameters as plain values and tensors; what no file can hold is refused."""
    values: Values = {}
    tensors: dict[str, NDArray[Any]] = {}
    for key, value in parameters.items():
        if key == "kernel":
            values[key], of_kernel = kernel_values(value, kernel, "kernel")
            tensors |= of_kernel
        elif key == "factors":
            values[key] = None if value is None else "given"
            if value is not None:
                tensors |= {f"factors/{part}": getattr(value, part) for part in _FACTORS}
        elif key == "random_state":
            values[key] = random_state_values(value, stream)
        else:
            values[key] = _plain(value)
            if not _PARAMETERS[key](values[key]):
                raise ModelFileError(
                    f"{key} of {type(feature_map).__name__} must be a name, or a number that "
                    f"is not too large, to be saved, got {value!r:.200}; give another one, or keep "
                    "the model with the pickle module or skops."
                )
    is_maclaurin = isinstance(feature_map, RandomMaclaurin)
    if is_maclaurin and values["n_components"] > _MOST_EAGER_COMPONENTS:
        raise ModelFileError(
            f"n_components of RandomMaclaurin must be at most {_MOST_EAGER_COMPONENTS} to be "
            f"saved, got {values['n_components']}; take fewer."
        )
    return values, tensors


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python, of which files are made."""
    if isinstance(value, (np.generic, np.ndarray)) and value.size == 1:
        return value.item()
    return value


def _factors(value: Any, tensors: Tensors) -> GivenFactors | None:
    if value is None:
        return None
    parts = {part: tensors.get(f"factors/{part}") for part in _FACTORS}
    if value != "given" or any(
        array is None or array.dtype != _FACTORS[part] for part, array in parts.items()
    ):
        raise ModelFileError("the factors of its map are missing or of another kind")
    return GivenFactors.checked(**parts)  # type: ignore[arg-type]


def _learnt(made: FeatureMap, name: str, values: Any, tensors: Tensors, dim: int) -> dict[str, Any]:
    attributes = _MAPS[name][1]
    if type(values) is not dict or set(values) != set(attributes) - {"center_"}:
        raise ModelFileError(f"its map {name} has not learnt what it should have")
    learnt = dict(values)
    for key, value in values.items():
        if key == "columns_of_degrees_":
            is_right = (
                type(value) is list
                and 0 < len(value) <= MOST_DEGREES + 1
                and all(_is_count(MOST_COMPONENTS)(count) for count in value)
                and value[0] == 1
                and sum(value) == made.n_components
            )
        else:
            is_right = type(value) is float and (value > 0 or (key == "remainder_" and value == 0))
        if not is_right:
            raise ModelFileError(f"{key} of its map {name} is {str(value)[:80]}")
    if "center_" in attributes:
        learnt["center_"] = None if made.center is None else _center(tensors, dim)
    return learnt


def _center(tensors: Tensors, dim: int) -> NDArray[np.float64]:
    center = tensors.get("center")
    if center is None or center.dtype != np.float64 or center.shape != (dim,):
        raise ModelFileError(f"the means of the {dim} input columns of its map are missing")
    if not np.isfinite(center).all():
        raise ModelFileError("the means of the input columns of its map are not finite")
    return center.copy()  # a view would keep the bytes of the whole file in memory


@contextmanager
def _model_file_errors(name: Any) -> Iterator[None]:
    """What a map says of its parameters, as the error of the file that they are from."""
    try:
        yield
    except ModelFileError:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise ModelFileError(f"its map {name} makes no sense: {error}") from error
