"""Checks of arguments: each function returns a normalized value or raises an error."""

from __future__ import annotations

import contextlib
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "SURROGATE",
    "LengthScale",
    "Size",
    "as_labels",
    "check_choice",
    "check_dtype",
    "check_flag",
    "check_integer",
    "check_length_scale",
    "check_not_negative",
    "check_positive",
    "check_start",
    "check_up_to",
    "shape_from_size",
]

Size = SupportsIndex | Sequence[SupportsIndex]
LengthScale = float | NDArray[np.float64]

LAST_POSITION = 2**63
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair: not valid Unicode


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """`value` if it is one of the choices."""
    if isinstance(value, str) and value in choices:
        return value
    known = ", ".join(map(repr, choices))
    raise ArgumentError(f"must be one of {known}, got {value!r}", parameter=name)


def check_flag(name: str, value: Any) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"must be True or False, got {value!r}", parameter=name)
    return bool(value)


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int with low <= value <= high."""
    integer = None
    if not isinstance(value, (bool, np.bool_)) and hasattr(value, "__index__"):
        # An array of several numbers or of floats has __index__, too.
        with contextlib.suppress(TypeError):
            integer = operator.index(value)
    if integer is None:
        raise ArgumentTypeError(
            f"must be an integer, got {value!r} ({type(value).__name__})", parameter=name
        )
    if integer < low or (high is not None and integer > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {_short(high)}"
        raise ArgumentError(f"must be {allowed}, got {integer}", parameter=name)
    return integer


def _short(limit: int) -> str:
    """Return a limit as people write it: 2**63 rather than nineteen digits."""
    for offset, text in ((0, ""), (1, " - 1")):
        power = limit + offset
        if power > 10**6 and power & (power - 1) == 0:
            return f"2**{power.bit_length() - 1}{text}"
    return str(limit)


def check_start(value: Any) -> int:
    """`value` as the position of a first element."""
    return check_integer("start", value, 0, LAST_POSITION)


def check_positive(name: str, value: Any) -> float:
    """`value` as a positive, finite float."""
    allowed = "a positive, finite number"
    return _check_real(name, value, allowed, lambda number: 0 < number < math.inf)


def check_not_negative(name: str, value: Any) -> float:
    """`value` as a finite float that is not negative."""
    allowed = "a finite number that is not negative"
    return _check_real(name, value, allowed, lambda number: 0 <= number < math.inf)


def check_up_to(name: str, value: Any, most: float) -> float:
    """`value` as a float from 0 to `most`."""
    return _check_real(
        name, value, f"a number from 0 to {most:g}", lambda number: 0 <= number <= most
    )


def _check_real(name: str, value: Any, allowed: str, is_allowed: Callable[[float], bool]) -> float:
    problem = f"must be {allowed}, got {value!r}"
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise ArgumentTypeError(problem, parameter=name)
    try:
        number = float(value)
    except OverflowError:
        raise ArgumentError(problem, parameter=name) from None
    except (TypeError, ValueError):
        raise ArgumentTypeError(problem, parameter=name) from None
    if not is_allowed(number):
        raise ArgumentError(problem, parameter=name)
    return number


def check_length_scale(name: str, value: Any, dim: int) -> LengthScale:
    """`value` as a positive, finite float, or as a new float64 array with one for each column.

    An infinite element stands for a column that is ignored.
    """
    try:
        given = np.asarray(value)
    except ValueError:  # a list of lists of different lengths
        given = np.asarray(value, object)
    if given.ndim == 0:
        return check_positive(name, value)
    if given.dtype.kind not in "fiu":
        raise ArgumentTypeError(
            f"must hold real numbers, got an array of dtype {given.dtype}", parameter=name
        )
    if given.shape != (dim,):
        raise ArgumentError(
            f"must be one number, or have one for each of the {dim} columns, shape ({dim},), got "
            f"shape {given.shape}",
            parameter=name,
        )
    with np.errstate(over="ignore"):  # what float64 does not hold is infinite in it
        scales: NDArray[np.float64] = given.astype(np.float64)
    wrong = np.flatnonzero(~(scales > 0))
    if wrong.size:
        raise ArgumentError(
            "must hold positive numbers, or infinity for columns to ignore, got "
            f"{given[wrong[0]]} at position {wrong[0]}",
            parameter=name,
        )
    return scales


def shape_from_size(value: Any) -> tuple[int, ...]:
    """Return an integer or a sequence of integers as a shape."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = tuple(value)
    if isinstance(value, (tuple, list)):
        return tuple(check_integer(f"size[{i}]", v, 0) for i, v in enumerate(value))
    if isinstance(value, (str, bytes)) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(
            f"must be an integer or a tuple of integers, got {value!r}", parameter="size"
        )
    return (check_integer("size", value, 0),)


def check_dtype(dtype: DTypeLike, allowed: Sequence[str]) -> np.dtype[Any]:
    """`dtype` as one of the allowed ones, in native byte order."""
    for name in allowed:
        try:
            if dtype is not None and np.dtype(dtype) == np.dtype(name):
                return np.dtype(name)
        except (TypeError, SyntaxError, ValueError):  # not a dtype at all
            break
    raise ArgumentTypeError(f"must be {' or '.join(allowed)}, got {dtype!r}", parameter="dtype")


_NUMBERS = (bool, np.bool_, int, float, np.integer, np.floating)
_NO_VALUES = ("NAType", "NaTType")  # pandas.NA and pandas.NaT


def as_labels(name: str, labels: Any) -> Any:
    """`labels`, or an array of the numbers that they hold as objects.

    Labels that NumPy would change in an array, or that cannot be sorted and saved, raise an error:
    missing labels and numbers among strings; strings with a NUL at their end, which NumPy drops, or
    with lone surrogates; integers beyond 64 bits, which become floats; other objects.
    """
    is_list = isinstance(labels, (list, tuple))
    array = None if is_list else np.asarray(labels)
    if array is not None and array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).ravel()
        codes = native.view(np.uint32)
        is_surrogate = codes >> 11 == 0xD800 >> 11
        if is_surrogate.any():
            place = int(is_surrogate.argmax()) // (codes.size // native.size)
            _check_strings(name, [str(native[place])])
    if array is not None and (array.dtype.kind != "O" or array.ndim != 1):
        return labels
    values = list(labels) if array is None else array.tolist()
    kinds = set(map(type, values))
    if any(issubclass(kind, (list, tuple, np.ndarray, bytes)) for kind in kinds):
        return labels  # not one label for each row, or of a type that scikit-learn names
    if all(issubclass(kind, str) for kind in kinds):
        _check_strings(name, list(dict.fromkeys(values)))
        return labels
    if not all(issubclass(kind, _NUMBERS) for kind in kinds):
        raise _label_error(name, values)
    numbers = np.asarray(values)
    large = []
    if numbers.dtype.kind in "fO" and not all(
        issubclass(kind, (float, np.floating)) for kind in kinds
    ):
        integers = (value for value in values if isinstance(value, (int, np.integer)))
        large = [value for value in integers if not -(2**63) <= value < 2**63]
    if large:
        raise ArgumentError(
            "must have integers from -2**63 to 2**63 - 1 as labels, or only from 0 to 2**64 - 1, "
            f"got one of {int(large[0]).bit_length()} bits",
            "convert the labels to strings",
            parameter=name,
        )
    return labels if is_list else numbers


def _check_strings(name: str, labels: Sequence[str]) -> None:
    for label in labels:
        if label.endswith("\0"):
            raise ArgumentError(
                f"must not have NUL characters at the end of labels, since NumPy drops them, got "
                f"{label!r}",
                "remove them, or write another character",
                parameter=name,
            )
        if not label.isascii() and SURROGATE.search(label):
            raise ArgumentError(
                f"must have labels of valid Unicode, got {label!a} with a lone surrogate",
                "correct the encoding with which the labels were read",
                parameter=name,
            )


def _label_error(name: str, values: Sequence[Any]) -> ArgumentError | ArgumentTypeError:
    """Return the error for labels that are neither all numbers nor all strings."""
    first: tuple[int, Any] | None = None
    for place, value in enumerate(values):
        is_nan = isinstance(value, float) and math.isnan(value)
        if value is None or is_nan or type(value).__name__ in _NO_VALUES:
            return ArgumentError(
                f"must not have missing labels, got {value} at position {place}",
                "leave out rows without a label, or give them a label of their own",
                parameter=name,
            )
        if not isinstance(value, (str, *_NUMBERS)):
            return ArgumentTypeError(
                f"must have integers, floats, booleans or strings as labels, got {value!r:.80} "
                f"({type(value).__name__}) at position {place}",
                "convert the labels to strings",
                parameter=name,
            )
        first = first or (place, value)
        if isinstance(value, str) != isinstance(first[1], str):
            return ArgumentTypeError(
                f"must have labels that are all numbers or all strings, got {first[1]!r:.80} at "
                f"position {first[0]} and {value!r:.80} at position {place}",
                "convert all of them to strings",
                parameter=name,
            )
    raise AssertionError
