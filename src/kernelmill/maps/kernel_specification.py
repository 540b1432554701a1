"""Kernels as plain values and arrays, for model files: those that are made of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.kernels import (
    ArcCosine,
    BallConvolution,
    Cauchy,
    Exponential,
    ExponentialDotProduct,
    Gaussian,
    Laplacian,
    Maclaurin,
    Matern,
    Polynomial,
    Radial,
    RationalQuadratic,
    Spectrum,
    SpherePower,
)
from kernelmill.storage import ModelFileError

__all__ = ["MOST_DEGREES", "kernel_from_values", "kernel_values"]

MOST_DEGREES = 4096  # of what is read: time and memory grow with it before any data are seen

Values = Any  # a string, or a dict of plain values
Tensors = dict[str, NDArray[Any]]

# The parameters of each kernel, and whether they are integers.
_NUMBERS: dict[str, tuple[type, dict[str, type]]] = {
    "ArcCosine": (ArcCosine, {"order": int}),
    "BallConvolution": (BallConvolution, {"t": int}),
    "Cauchy": (Cauchy, {}),
    "Exponential": (Exponential, {}),
    "ExponentialDotProduct": (ExponentialDotProduct, {"length_scale": float}),
    "Gaussian": (Gaussian, {}),
    "Laplacian": (Laplacian, {}),
    "Matern": (Matern, {"nu": float}),
    "Polynomial": (Polynomial, {"degree": int, "gamma": float, "coef0": float}),
    "RationalQuadratic": (RationalQuadratic, {"alpha": float}),
}
# Kernels given by an array: the attribute that holds it, and its number of dimensions.
_ARRAYS: dict[str, tuple[type, str, int]] = {
    "Maclaurin": (Maclaurin, "law", 1),
    "Radial": (Radial, "law", 1),
    "Spectrum": (Spectrum, "law", 2),
    "SpherePower": (SpherePower, "coefficients", 1),
}
_COEFFICIENTS = "coefficients"  # of a Maclaurin series, given to the map as an array
_INSTEAD = (
    "give a kernel that is made of numbers, such as Matern(nu=2.5), or keep the model with the "
    "pickle module or skops"
)


def kernel_values(given: Any, resolved: Any, name: str) -> tuple[Values, Tensors]:
    """The parameter `kernel` of a map as plain values, and its array under the given name.

    Parameters
    ----------
    given : str, kernel or array_like
        The parameter.
    resolved : kernel
        What it stands for; of an array, this has what it was when the map was fitted.
    name : str
        Of the tensor, if one is needed.

    Examples
    --------
    >>> from kernelmill.kernels import Matern
    >>> from kernelmill.maps.kernel_specification import kernel_values
    >>> kernel_values(Matern(2.5), Matern(2.5), "kernel")
    ({'kernel': 'Matern', 'nu': 2.5}, {})
    """
    if isinstance(given, str):
        return given, {}
    kind = type(resolved).__name__
    if kind in _NUMBERS and type(resolved) is _NUMBERS[kind][0]:
        numbers = {key: getattr(resolved, key) for key in _NUMBERS[kind][1]}
        if any(value > MOST_DEGREES for value in numbers.values() if type(value) is int):
            raise ModelFileError(
                f"kernel must have integers of at most {MOST_DEGREES} in a model file, got "
                f"{resolved!r}; {_INSTEAD}."
            )
        texts = {k: "inf" if v == math.inf else v for k, v in numbers.items()}
        return {"kernel": kind, **texts}, {}
    if kind in _ARRAYS and type(resolved) is _ARRAYS[kind][0]:
        array = getattr(resolved, _ARRAYS[kind][1])
        if not callable(array) and getattr(resolved, "profile", None) is None:
            is_array = not isinstance(given, type(resolved))
            return {"kernel": _COEFFICIENTS if is_array else kind}, {name: array}
    raise ModelFileError(
        f"kernel must be made of numbers to be saved, got {resolved!r:.200} with functions or "
        f"code of its own, which no model file holds; {_INSTEAD}."
    )


def kernel_from_values(values: Values, tensors: Mapping[str, NDArray[Any]], name: str) -> Any:
    """The parameter `kernel` that `kernel_values` described.

    Examples
    --------
    >>> from kernelmill.maps.kernel_specification import kernel_from_values
    >>> kernel_from_values({"kernel": "Polynomial", "degree": 3, "gamma": 1.0, "coef0": 1.0}, {},
    ...                    "kernel")
    Polynomial(degree=3, gamma=1.0, coef0=1.0)
    """
    if type(values) is str:
        return values
    kind = values.get("kernel") if type(values) is dict else None
    if type(kind) is str and kind in _NUMBERS:
        family, hints = _NUMBERS[kind]
        if set(values) == {"kernel", *hints}:
            return family(**{key: _number(kind, key, values[key], hints[key]) for key in hints})
    elif type(kind) is str and (kind in _ARRAYS or kind == _COEFFICIENTS) and len(values) == 1:
        dimensions = 1 if kind == _COEFFICIENTS else _ARRAYS[kind][2]
        array = tensors.get(name)
        if array is None or array.dtype != np.float64 or array.ndim != dimensions:
            raise ModelFileError(f"the array of the kernel {kind} is missing or of another kind")
        if dimensions == 1 and kind != "Radial" and array.size > MOST_DEGREES + 1:
            raise ModelFileError(f"the kernel {kind} has more than {MOST_DEGREES} degrees")
        return array.copy() if kind == _COEFFICIENTS else _ARRAYS[kind][0](array)
    raise ModelFileError(f"its kernel {str(values)[:80]} is not known")


def _number(kind: str, key: str, value: Any, hint: type) -> Any:
    if hint is float and value == "inf":
        return math.inf
    if type(value) is not hint or (isinstance(value, int) and not 0 <= value <= MOST_DEGREES):
        raise ModelFileError(f"{key} of the kernel {kind} is {str(value)[:80]}")
    return value
