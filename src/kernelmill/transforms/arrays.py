"""Checks of the inputs and outputs of transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)


def as_real(x: ArrayLike, name: str, if_complex: str) -> NDArray[Any]:
    """Return x as an array of float32 or float64 in native byte order, without a copy if it is one.

    float16 becomes float32; booleans and integers become float64. `if_complex` is the remedy
    suggested for complex numbers.
    """
    if type(x) is np.ndarray and (x.dtype is _FLOAT32 or x.dtype is _FLOAT64):
        return x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost; fill it first.")
    if hasattr(x, "toarray"):
        raise TypeError(
            f"{name} is sparse ({type(x).__name__}); convert it to a dense array with .toarray()."
        )
    array = np.asarray(x)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 8:
        return array.astype(_FLOAT64 if size == 8 else _FLOAT32, copy=False)
    if kind in "biu":
        return array.astype(_FLOAT64)
    if kind == "c":
        raise TypeError(f"{name} must be real, got dtype {array.dtype}; {if_complex}.")
    if kind == "f":
        raise TypeError(
            f"{name} must have dtype float32 or float64, got {array.dtype}; convert it with "
            ".astype(numpy.float64), which loses precision."
        )
    what = f"an array of dtype {array.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
    raise TypeError(f"{name} must hold real numbers, got {what} (dtype {array.dtype}).")


def check_axis(axis: object, ndim: int) -> int:
    """Return the axis as an int, if an array of `ndim` dimensions has it."""
    if isinstance(axis, (bool, np.bool_)) or not hasattr(axis, "__index__"):
        raise TypeError(f"axis must be an integer, got {axis!r}.")
    index = int(axis.__index__())
    if not -ndim <= index < ndim:
        raise np.exceptions.AxisError(index, ndim)
    return index


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "out"
) -> NDArray[Any]:
    """Return ``out`` if a result of this shape and dtype can be written to it."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a numpy array, got {type(out).__name__}.")
    if out.shape != shape:
        raise ValueError(f"{name} must have the shape of the result, {shape}, got {out.shape}.")
    if out.dtype != dtype:
        raise TypeError(f"{name} must have the dtype of the result, {dtype}, got {out.dtype}.")
    if not out.dtype.isnative:
        raise TypeError(f"{name} must be in native byte order, got {out.dtype!r}.")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; pass a writeable array.")
    return out
