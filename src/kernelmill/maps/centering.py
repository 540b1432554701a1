"""Data measured from the means of their columns; sparse data stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arrays.rows import blocks_of_rows
from kernelmill.projections.row_products import row_products

__all__ = ["check_center", "column_means", "distances_from", "minus_center"]

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


def check_center(fitted_map: Any) -> None:
    """Raise an error unless ``center_`` is there exactly if the parameter asks for it."""
    if (fitted_map.center is None) != (fitted_map.center_ is None):
        present = "absent" if fitted_map.center_ is None else "present"
        raise ValueError(f"center_ must match center={fitted_map.center!r}, and is {present}.")


def minus_center(rows: Any, center: NDArray[np.float64] | None) -> Any:
    """Dense rows measured from the center, in their dtype; sparse ones are left as they are.

    The difference is taken in float64 and before anything else: inner products with a center far
    from 0 would cancel.
    """
    if center is None or not isinstance(rows, np.ndarray):
        return rows
    with np.errstate(over="ignore"):
        return (rows - center).astype(rows.dtype)


def distances_from(
    X: Any, center: NDArray[np.float64] | None, n_threads: int | None = None
) -> NDArray[np.float64]:
    """Squared distances of rows from the center, infinite if too large."""
    if center is None:
        return row_products(X, n_threads=n_threads)
    if isinstance(X, np.ndarray):
        out = np.empty(X.shape[0])
        step = max(1, _BLOCK_ELEMENTS // X.shape[1])
        for rows, part in blocks_of_rows(X, out, most_rows=step):
            part[:] = row_products(minus_center(rows, center), n_threads=n_threads)
        return out
    out = row_products(X, n_threads=n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        out -= 2 * row_products(X, center, n_threads=n_threads)
        out += row_products(center[np.newaxis], n_threads=1)[0]
    out[np.isnan(out)] = np.inf
    return np.maximum(out, 0, out=out)
