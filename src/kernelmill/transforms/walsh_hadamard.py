"""Fast Walsh-Hadamard transform."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernelmill import _native
from kernelmill.arguments import check_flag
from kernelmill.runtime.arrays import Floats, as_real, check_axis, check_out
from kernelmill.runtime.threads import resolve_threads


def fwht(
    x: ArrayLike,
    *,
    axis: int = -1,
    normalize: bool = False,
    out: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    r"""Fast Walsh-Hadamard transform along one axis, in :math:`n \log_2 n` additions.

    It multiplies by the Hadamard matrix :math:`H_n` in natural order, ``scipy.linalg.hadamard(n)``:

    .. math:: H_1 = (1), \qquad H_{2n} = \begin{pmatrix} H_n & H_n \\ H_n & -H_n \end{pmatrix}.

    :math:`H_n H_n = n I`, so a normalized transform is its own inverse.

    Parameters
    ----------
    x : array_like
        Real, with any strides. float16 becomes float32; integers and booleans become float64.
    axis : int, default=-1
        The axis to transform. Its length must be a power of two.
    normalize : bool, default=False
        Divide by :math:`\sqrt n`, which makes the transform orthogonal.
    out : ndarray, optional
        The array for the result, with the shape of x and the dtype of the result. With ``out=x``
        the transform is in place. Any other overlap costs a copy of x.
    n_threads : int, optional
        By default :func:`kernelmill.get_num_threads`.

    Returns
    -------
    ndarray
        ``out``, or a new array with the memory layout of x.

    Notes
    -----
    The result is bit-identical for every instruction set, number of threads and memory layout.
    Scratch memory is at most a few rows per thread, and none for contiguous rows. ``normalize``
    scales the input, so that large values do not overflow; subnormal values lose digits.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import fwht
    >>> fwht([1, 0, 1, 0, 0, 1, 1, 0])
    array([ 4.,  2.,  0., -2.,  0.,  2.,  0.,  2.])
    >>> x = np.random.default_rng(0).standard_normal((3, 1024))
    >>> y = fwht(x, normalize=True)
    >>> np.allclose(fwht(y, normalize=True), x)
    True
    """
    array = as_real(x, "x", "transform the real and the imaginary part separately")
    result = np.empty_like(array) if out is None else out
    if not isinstance(result, np.ndarray):
        check_out(result, array.shape, array.dtype)
    threads = resolve_threads(n_threads)
    if type(axis) is not int:
        axis = check_axis(axis, array.ndim)
    if type(normalize) is not bool:
        normalize = check_flag("normalize", normalize)
    try:
        if not _native.fwht(array, result, axis, normalize, threads):
            _native.fwht(array.copy(), result, axis, normalize, threads)
    except (BufferError, IndexError, TypeError, ValueError):
        _explain(array, axis, result)
        raise
    return result


def _explain(x: Floats, axis: int, out: object) -> None:
    """Raise an error for invalid arguments of a transform."""
    if x.ndim == 0:
        raise ValueError("x must have at least one dimension, got a scalar; wrap it in a list.")
    check_axis(axis, x.ndim)
    n = x.shape[axis]
    where = f"(axis {axis} of shape {x.shape})"
    if n == 0:
        raise ValueError(f"The transformed axis must not be empty {where}.")
    if n & (n - 1):
        padded = 1 << (n - 1).bit_length()
        raise ValueError(
            f"The length of the transformed axis must be a power of two, got {n} {where}; pad it "
            f"with zeros to {padded}."
        )
    check_out(out, x.shape, x.dtype)
