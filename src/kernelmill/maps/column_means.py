"""The means of the columns of dense or sparse data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["column_means"]

_BLOCK_ELEMENTS = 1 << 20


def column_means(X: Any) -> NDArray[np.float64]:
    """The mean of each column in float64: the same bits for a dense and a CSR matrix.

    Elements are added row after row in both cases, and zeros change nothing.
    """
    n_rows, dim = X.shape
    if not isinstance(X, np.ndarray):
        sums = np.bincount(X.indices, X.data.astype(np.float64), minlength=dim)
    else:
        sums = np.zeros(dim)
        step = max(1, _BLOCK_ELEMENTS // dim)
        for begin in range(0, n_rows, step):
            block = np.empty((min(step, n_rows - begin) + 1, dim))
            block[0], block[1:] = sums, X[begin : begin + step]
            # numpy would add a single column pairwise
            sums = np.add.accumulate(block)[-1] if dim == 1 else np.add.reduce(block, axis=0)
    return np.asarray(sums / n_rows)
