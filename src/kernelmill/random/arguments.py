"""What arguments may be: each function returns the checked value or says what to give."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

__all__ = [
    "Size",
    "checked_dtype",
    "checked_integer",
    "checked_positive",
    "checked_size",
    "checked_start",
]

Size = SupportsIndex | Sequence[SupportsIndex]

LAST_POSITION = 2**63


def checked_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int with low <= value <= high."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    try:
        integer = operator.index(value)
    except TypeError:  # an array of several numbers or of floats has __index__ too
        raise TypeError(
            f"{name} must be an integer, got {value!r} ({type(value).__name__})"
        ) from None
    if integer < low or (high is not None and integer > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {_short(high)}"
        raise ValueError(f"{name} must be {allowed}, got {integer}")
    return integer


def _short(limit: int) -> str:
    """A limit as people write it: 2**63 rather than nineteen digits."""
    for offset, text in ((0, ""), (1, " - 1")):
        power = limit + offset
        if power > 10**6 and power & (power - 1) == 0:
            return f"2**{power.bit_length() - 1}{text}"
    return str(limit)


def checked_start(value: Any) -> int:
    """`value` as the position of a first element."""
    return checked_integer("start", value, 0, LAST_POSITION)


def checked_positive(name: str, value: Any) -> float:
    """`value` as a positive, finite float."""
    message = f"{name} must be a positive, finite number, got {value!r}"
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError(message)
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(message) from None
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(message)
    return number


def checked_size(value: Any) -> tuple[int, ...]:
    """An integer or a sequence of integers as a shape."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"size must be an integer or a tuple of integers, got {value!r}")
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = tuple(value)
    if isinstance(value, (tuple, list)):
        return tuple(checked_integer(f"size[{i}]", v, 0) for i, v in enumerate(value))
    if not hasattr(value, "__index__"):
        raise TypeError(f"size must be an integer or a tuple of integers, got {value!r}")
    return (checked_integer("size", value, 0),)


def checked_dtype(dtype: DTypeLike, allowed: Sequence[str]) -> np.dtype[Any]:
    """`dtype` as one of the allowed ones, in native byte order."""
    for name in allowed:
        try:
            if dtype is not None and np.dtype(dtype) == np.dtype(name):
                return np.dtype(name)
        except (TypeError, SyntaxError, ValueError):  # not a dtype at all
            break
    raise TypeError(f"dtype must be {' or '.join(allowed)}, got {dtype!r}")
