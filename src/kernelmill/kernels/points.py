"""Checks of points: rows of dense arrays or of scipy sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.transforms.arrays import as_real

# Elements of a block of rows that is made dense.
_BLOCK = 1 << 20


def check_pair(X: Any, Y: Any) -> tuple[Any, Any]:
    """Two sets of points with the same number of columns; the second is None if it is the first."""
    first = check_points(X, "X")
    if Y is None or Y is X:
        return first, None
    second = check_points(Y, "Y")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"X and Y must have the same number of columns, got {first.shape[1]} and "
            f"{second.shape[1]}; give points of one space."
        )
    return first, second


def check_points(X: Any, name: str) -> Any:
    """`X` as a float64 array of finite rows, or as a csr_array if it is sparse."""
    if is_sparse(X):
        _check_shape(X.shape, name)
        rows = scipy.sparse.csr_array(X)
        data = as_real(rows.data, name, _IF_COMPLEX).astype(np.float64, copy=False)
        # A new matrix around the same numbers: sorting it leaves the caller's alone.
        points = scipy.sparse.csr_array((data, rows.indices, rows.indptr), rows.shape)
        if not points.has_canonical_format:
            points = points.copy()
            points.sum_duplicates()
        _check_finite(points.data, name)
        return points
    array = as_real(X, name, _IF_COMPLEX).astype(np.float64, copy=False)
    _check_shape(array.shape, name)
    _check_finite(array, name)
    return array


_IF_COMPLEX = "put the real and the imaginary parts into separate columns"


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array."""
    return hasattr(X, "tocsr") and bool(scipy.sparse.issparse(X))


def dense_blocks(X: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Checked points as dense blocks of rows, each with its slice of rows."""
    step = max(1, _BLOCK // X.shape[1])
    for first in range(0, X.shape[0], step):
        rows = slice(first, min(first + step, X.shape[0]))
        yield rows, X[rows].toarray() if is_sparse(X) else X[rows]


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must have two dimensions, points and coordinates, got shape {shape}; a single "
            f"point is {name}.reshape(1, -1)."
        )
    if shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {shape}.")


def _check_finite(values: NDArray[np.float64], name: str) -> None:
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(
            f"{name} must hold finite numbers, got {what}; fill in or drop those entries."
        )
