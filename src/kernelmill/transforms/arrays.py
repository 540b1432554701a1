"""What the transforms accept as input and as ``out``, and what they say to the rest."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

RealArray = NDArray[np.float32] | NDArray[np.float64]

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)


def as_real(x: ArrayLike, name: str = "x") -> NDArray[Any]:
    """Return x as an array of float32 or float64 in native byte order, without a copy if it is one.

    float16 becomes float32; booleans and integers become float64.
    """
    if type(x) is np.ndarray and (x.dtype is _FLOAT32 or x.dtype is _FLOAT64):
        return x
    array = np.asarray(x)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 8:
        return array.astype(_FLOAT64 if size == 8 else _FLOAT32, copy=False)
    if kind in "biu":
        return array.astype(_FLOAT64)
    if kind == "c":
        advice = "transform the real and the imaginary part separately"
    elif kind == "f":
        advice = "convert it with .astype(numpy.float64), which loses precision"
    else:
        advice = "convert it with .astype(numpy.float64)"
    raise TypeError(
        f"{name} must be real with dtype float32 or float64, got {array.dtype}; {advice}."
    )


def check_out(
    out: object, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "out"
) -> NDArray[Any]:
    """Return ``out`` if a result of this shape and dtype can be written to it."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a numpy array or None, got {type(out).__name__}.")
    if out.shape != shape:
        raise ValueError(f"{name} must have the shape of the result, {shape}, got {out.shape}.")
    if out.dtype != dtype:
        raise TypeError(f"{name} must have the dtype of the result, {dtype}, got {out.dtype}.")
    if not out.dtype.isnative:
        raise TypeError(f"{name} must be in native byte order, got {out.dtype!r}.")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only; give an array that can be written to, or a copy.")
    return out
