"""Products of rows of features with the few outputs of a linear model, by native code.

A BLAS is made for wider products. These are faster, and a result depends on its operands alone, not
on the number of threads nor on the rows around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.runtime.threads import resolve_threads

__all__ = ["CACHE_LINE", "add_weighted_rows", "lay_out_columns", "lay_out_rows", "score_rows"]

CACHE_LINE = 64  # bytes of a cache line, which vectors should not cross


def score_rows(
    Z: NDArray[Any], weights: NDArray[Any], n_threads: int | None = None
) -> NDArray[Any]:
    """Return the inner products of each row of Z (n, D) with each row of weights (T, D).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.few_outputs import score_rows
    >>> score_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, -1.0]]))
    array([[-1.],
           [-1.]])
    """
    out = np.empty((len(Z), len(weights)), Z.dtype)
    operands = lay_out_rows(Z), lay_out_rows(weights)
    _native.score_rows(*operands, out, resolve_threads(n_threads))
    return out


def add_weighted_rows(
    Z: NDArray[Any], factors: NDArray[Any], sums: NDArray[Any], n_threads: int | None = None
) -> None:
    """Add the sum of the rows of Z (n, D), times factors (n, T), to sums (T, D).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.few_outputs import add_weighted_rows
    >>> sums = np.zeros((1, 2))
    >>> add_weighted_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]), sums)
    >>> sums
    array([[31., 42.]])
    """
    operands = lay_out_rows(Z), lay_out_rows(factors)
    _native.add_weighted_rows(*operands, sums, resolve_threads(n_threads))


def lay_out_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same matrix with contiguous rows of aligned numbers.

    Some transformers, such as PCA, return contiguous columns, and arrays that arrive from another
    machine may begin at any byte.
    """
    is_laid_out = array.flags.aligned and array.strides[1] == array.itemsize
    return array if is_laid_out else np.array(array, order="C")


def lay_out_columns(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same matrix with contiguous columns that begin at cache lines.

    Its transpose is an operand of the functions above. A matrix that is laid out already is
    returned itself.
    """
    n_rows, n_columns = array.shape
    item = array.itemsize
    is_aligned = array.ctypes.data % CACHE_LINE == 0 and array.strides[1] % CACHE_LINE == 0
    if array.strides[0] == item and (is_aligned or array.size == 0):
        return array
    stride = -(-n_rows * item // CACHE_LINE) * CACHE_LINE // item
    memory = np.zeros(n_columns * stride + CACHE_LINE // item, array.dtype)
    first = -memory.ctypes.data % CACHE_LINE // item
    columns = memory[first : first + n_columns * stride].reshape(n_columns, stride).T[:n_rows]
    columns[...] = array
    return columns
