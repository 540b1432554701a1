"""Sine and cosine of the same argument."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelmill import _native
from kernelmill.runtime.arrays import Floats, as_real, check_out
from kernelmill.runtime.threads import resolve_threads


def sincos(
    x: ArrayLike,
    *,
    out: tuple[Floats, Floats] | None = None,
    n_threads: int | None = None,
) -> tuple[Floats, Floats]:
    """Return the sine and cosine of each element, for little more than the cost of one of them.

    The error is below 2 units in the last place for arguments up to 1e5 in float32 and 1e9 in
    float64; larger arguments are also correct, but slower. NaN and infinity give NaN.

    Parameters
    ----------
    x : array_like
        Real, any shape and strides. float16 becomes float32, integers and booleans become float64.
    out : tuple of two ndarrays, optional
        The arrays for the sines and the cosines, with the shape of x and the dtype of the results.
        One of them may be x.
    n_threads : int, optional
        By default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    sine, cosine : ndarray
        ``out``, or new arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.transforms import sincos
    >>> sine, cosine = sincos(np.array([0.0, np.pi / 6, np.pi / 2]))
    >>> np.round(sine, 12)
    array([0. , 0.5, 1. ])
    >>> np.allclose(sine**2 + cosine**2, 1)
    True
    """
    array = as_real(x, "x", "numpy.sin and numpy.cos take complex numbers")
    if out is None:
        out = (np.empty_like(array), np.empty_like(array))
    elif not isinstance(out, tuple) or len(out) != 2:
        raise TypeError(
            "out must be a tuple of two arrays, for the sines and the cosines, got "
            f"{type(out).__name__}."
        )
    threads = resolve_threads(n_threads)
    for i in (0, 1):
        if not isinstance(out[i], np.ndarray):
            check_out(out[i], array.shape, array.dtype, f"out[{i}]")
    try:
        if not _native.sincos(array, *out, False, threads):
            if _share_memory(*out):
                raise ValueError("The two arrays of out share memory; pass two separate arrays.")
            if any(np.may_share_memory(array, result) for result in out):
                array = array.copy()
            _native.sincos(array, *out, True, threads)
    except (BufferError, TypeError, ValueError):
        check_out(out[0], array.shape, array.dtype, "out[0]")
        check_out(out[1], array.shape, array.dtype, "out[1]")
        raise
    return out


def _share_memory(a: Floats, b: Floats) -> bool:
    """Return whether two outputs share elements; the halves of one matrix do not."""
    try:
        return np.shares_memory(a, b, max_work=100_000)  # type: ignore[arg-type] # The stub is too strict.
    except np.exceptions.TooHardError:
        return True
