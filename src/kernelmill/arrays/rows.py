"""Rows as the native core takes them: contiguous ones at once, others some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["blocks_of_rows", "native_rows", "rows_in_cache"]

_BLOCK_BYTES = 1 << 21
_CACHED_ELEMENTS = 1 << 17


def native_rows(X: Any) -> Any:
    """A dense matrix itself, a CSR matrix as (data, indices, indptr, number of columns)."""
    if isinstance(X, np.ndarray):
        return X
    return (X.data, X.indices, X.indptr, X.shape[1])


def blocks_of_rows(X: Any, out: NDArray[Any], *, most_rows: int = 0) -> Iterator[tuple[Any, Any]]:
    """Rows of X with their part of the output, such that the core can read them.

    All at once where the rows are contiguous; otherwise copies of a bounded size. `most_rows`
    limits a block where the caller needs memory for each row.
    """
    n_rows = X.shape[0]
    readable = not isinstance(X, np.ndarray) or _has_contiguous_rows(X)
    step = n_rows
    if not readable:
        step = max(1, _BLOCK_BYTES // max(1, X.shape[1] * X.itemsize))
    if most_rows:
        step = min(step, most_rows)
    if step >= n_rows and readable:
        yield X, out
        return
    for begin in range(0, n_rows, step):
        block = X[begin : begin + step]
        yield block if readable else block.copy(), out[begin : begin + step]


def _has_contiguous_rows(X: NDArray[Any]) -> bool:
    itemsize = X.itemsize
    return bool(
        (X.strides[1] == itemsize or X.shape[1] <= 1)
        and X.strides[0] % itemsize == 0
        and X.flags.aligned
    )


def rows_in_cache(n_columns: int) -> int:
    """How many rows of so many columns are worked on at a time, to be found in the cache again."""
    return max(32, _CACHED_ELEMENTS // n_columns)
