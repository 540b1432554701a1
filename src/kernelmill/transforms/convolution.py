"""Circular convolution of rows."""

from __future__ import annotations

import math
import os

import numpy as np
import scipy  # Imports scipy.fft on first use.
from numpy.typing import ArrayLike

from kernelmill import _native
from kernelmill.runtime.arrays import Floats, as_real, check_axis, check_out
from kernelmill.runtime.threads import get_num_threads, resolve_threads

_BLOCK_ELEMENTS = 1 << 18  # Transformed by scipy.fft at a time; bounds the memory of spectra.


def circular_convolve(
    *arrays: ArrayLike,
    axis: int = -1,
    out: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    r"""Return the circular convolution of two or more arrays along one axis.

    For two arrays of length n,

    .. math:: z_k = \sum_{j=0}^{n-1} x_j \, y_{(k - j) \bmod n};

    The spectra of more than two arrays are multiplied, and their product is transformed back once.

    Parameters
    ----------
    *arrays : array_like
        Two or more, real, with shapes that broadcast against each other and the same length along
        ``axis``. float16 counts as float32, integers and booleans as float64. The result is
        float32 if all arrays are, otherwise float64.
    axis : int, default=-1
        The axis to convolve along.
    out : ndarray, optional
        The array for the result. It may be one of the inputs; any other overlap costs a copy.
    n_threads : int, optional
        By default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    ndarray
        ``out``, or a new array.

    Notes
    -----
    Lengths that are powers of two run in native code, with two rows of scratch memory per thread
    and cached tables of roots of unity about as large as a row. Other lengths use
    :mod:`scipy.fft`, in blocks of rows, and take several times as long. The result of a row does
    not depend on other rows. The error, relative to the product of the norms, is a small multiple
    of the rounding unit, unless the first array becomes subnormal when divided by its length.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.transforms import circular_convolve
    >>> circular_convolve([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0])
    array([4., 1., 2., 3.])
    """
    if len(arrays) < 2:
        raise TypeError(
            f"circular_convolve takes two or more arrays, got {len(arrays)}; pass the arrays of "
            "a list as circular_convolve(*arrays)."
        )
    advice = "convolve real and imaginary parts separately and combine the products"
    operands = [as_real(a, f"array {i}", advice) for i, a in enumerate(arrays)]
    threads = resolve_threads(n_threads)
    if out is None and type(axis) is int and axis == -1 and _is_simple(operands):
        result = np.empty(operands[0].shape, operands[0].dtype)
        _native.circular_convolve(tuple(operands), result, threads)
        return result
    dtype = np.result_type(*operands)
    shape = _common_shape(operands, axis)
    axis = check_axis(axis, len(shape))
    n = shape[axis]
    result = np.empty(shape, dtype) if out is None else check_out(out, shape, dtype)
    last = [
        np.moveaxis(np.broadcast_to(a.astype(dtype, copy=False), shape), axis, -1) for a in operands
    ]
    target = np.moveaxis(result, axis, -1)
    if n & (n - 1):
        if out is not None and any(np.may_share_memory(a, target) for a in last):
            last = [a.copy() for a in last]
        workers = min(threads or get_num_threads(), os.cpu_count() or 1)
        _convolve_through_scipy(last, target, workers)
    elif not _native.circular_convolve(tuple(last), target, threads):
        _native.circular_convolve(tuple(a.copy() for a in last), target, threads)
    return result


def _common_shape(operands: list[Floats], axis: int) -> tuple[int, ...]:
    """Return the shape of the result; raise an error if the arrays cannot be convolved."""
    shapes = ", ".join(str(a.shape) for a in operands)
    try:
        shape = np.broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        raise ValueError(
            f"The shapes {shapes} do not match: the arrays must have the same length along axis "
            f"{axis} (pad the shorter ones with zeros), and the other axes must broadcast."
        ) from None
    if not shape:
        raise ValueError("The arrays must have at least one dimension, got scalars.")
    from_end = check_axis(axis, len(shape)) - (len(shape) if axis >= 0 else 0)
    if len({a.shape[from_end] if a.ndim >= -from_end else 1 for a in operands}) > 1:
        raise ValueError(
            f"The arrays must have the same length along axis {axis}, got shapes {shapes}; this "
            "axis does not broadcast. Pad the shorter arrays with zeros, or reshape."
        )
    if shape[axis] == 0:
        raise ValueError(f"The arrays are empty along axis {axis}: shapes {shapes}.")
    return shape


def _is_simple(operands: list[Floats]) -> bool:
    """Return whether the arrays can go to native code unchanged, with minimal overhead."""
    first = operands[0]
    if first.ndim == 0 or any(a.shape != first.shape or a.dtype != first.dtype for a in operands):
        return False
    n: int = first.shape[-1]
    return n > 0 and n & (n - 1) == 0


def _convolve_through_scipy(operands: list[Floats], out: Floats, workers: int) -> None:
    n = out.shape[-1]
    rows_at_a_time = max(1, _BLOCK_ELEMENTS // n)
    leading = out.shape[:-1]
    for start in range(0, math.prod(leading), rows_at_a_time):
        stop = min(start + rows_at_a_time, math.prod(leading))
        where = np.unravel_index(np.arange(start, stop), leading) if leading else (np.newaxis,)
        spectrum = scipy.fft.rfft(operands[0][where], workers=workers)
        for operand in operands[1:]:
            spectrum *= scipy.fft.rfft(operand[where], workers=workers)
        rows = scipy.fft.irfft(spectrum, n, workers=workers, overwrite_x=True)
        out[where] = rows
