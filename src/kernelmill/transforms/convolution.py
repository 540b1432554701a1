"""Circular convolution of rows."""

import math
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray

from kernelmill import _native
from kernelmill.runtime import get_num_threads, resolve_threads
from kernelmill.transforms.arrays import as_real, check_out

# Elements that the route through scipy.fft transforms at a time, so that its spectra stay small.
_BLOCK = 1 << 18


def circular_convolve(
    *arrays: ArrayLike,
    axis: int = -1,
    out: NDArray[Any] | None = None,
    n_threads: int | None = None,
) -> NDArray[Any]:
    r"""Circular convolution of two or more arrays along one axis.

    For two arrays of length n,

    .. math:: z_k = \sum_{j=0}^{n-1} x_j \, y_{(k - j) \bmod n};

    for more, the convolution of all of them in one go: the product of their spectra is transformed
    back once.

    Parameters
    ----------
    *arrays : array_like
        Real, with shapes that broadcast against each other and the same length along ``axis``. The
        result has the widest dtype among them.
    axis : int, default=-1
        The axis to convolve along.
    out : ndarray, optional
        Where to put the result. It may be one of the arrays.
    n_threads : int, optional
        By default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    ndarray
        ``out``, or a new array.

    Notes
    -----
    Lengths that are powers of two are done natively, with two rows of scratch memory a thread;
    other lengths go through :mod:`scipy.fft`, in blocks of rows, and take several times as long. A
    row's result does not depend on the other rows. The error, relative to the product of the norms,
    is a small multiple of the rounding unit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.transforms import circular_convolve
    >>> circular_convolve([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0])
    array([4., 1., 2., 3.])
    """
    if not arrays:
        raise TypeError("circular_convolve takes at least one array.")
    operands = [as_real(a, f"array {i}") for i, a in enumerate(arrays)]
    threads = resolve_threads(n_threads)
    if out is None and axis == -1 and _simple(operands):
        result = np.empty(operands[0].shape, operands[0].dtype)
        _native.circular_convolve(tuple(operands), result, threads)
        return result
    dtype = np.result_type(*operands)
    try:
        shape = np.broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in operands)
        raise ValueError(f"The shapes of the arrays do not fit together: {shapes}.") from None
    if not shape:
        raise ValueError("The arrays must have at least one dimension, got scalars.")
    if not -len(shape) <= axis < len(shape):
        raise np.exceptions.AxisError(axis, len(shape))
    from_end = axis if axis < 0 else axis - len(shape)
    lengths = sorted({a.shape[from_end] if a.ndim >= -from_end else 1 for a in operands})
    if len(lengths) > 1:
        raise ValueError(
            f"The arrays must have one length along axis {axis}, got {lengths}; pad the short ones."
        )
    if lengths[0] == 0:
        raise ValueError(f"The arrays are empty along axis {axis}; there is nothing to convolve.")

    result = np.empty(shape, dtype) if out is None else check_out(out, shape, dtype)
    last = [
        np.moveaxis(np.broadcast_to(a.astype(dtype, copy=False), shape), axis, -1) for a in operands
    ]
    target = np.moveaxis(result, axis, -1)
    n = lengths[0]
    if n & (n - 1):
        if out is not None and any(np.may_share_memory(a, target) for a in last):
            last = [a.copy() for a in last]
        _convolve_through_scipy(last, target, threads or get_num_threads())
    elif not _native.circular_convolve(tuple(last), target, threads):
        _native.circular_convolve(tuple(a.copy() for a in last), target, threads)
    return result


def _simple(operands: list[NDArray[Any]]) -> bool:
    """Tell whether the arrays can go to the core as they are: the case whose overhead matters."""
    first = operands[0]
    if first.ndim == 0 or any(a.shape != first.shape or a.dtype != first.dtype for a in operands):
        return False
    n: int = first.shape[-1]
    return n > 0 and n & (n - 1) == 0


def _convolve_through_scipy(operands: list[NDArray[Any]], out: NDArray[Any], threads: int) -> None:
    n = out.shape[-1]
    rows_at_a_time = max(1, _BLOCK // n)
    leading = out.shape[:-1]
    for start in range(0, math.prod(leading), rows_at_a_time):
        stop = min(start + rows_at_a_time, math.prod(leading))
        where = np.unravel_index(np.arange(start, stop), leading) if leading else (np.newaxis,)
        spectrum = scipy.fft.rfft(operands[0][where], workers=threads)
        for operand in operands[1:]:
            spectrum *= scipy.fft.rfft(operand[where], workers=threads)
        rows = scipy.fft.irfft(spectrum, n, workers=threads, overwrite_x=True)
        out[where] = rows
