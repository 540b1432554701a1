"""Rows and their features, a block at a time: the features of all rows never exist at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from kernelmill.maps.base import REAL, FeatureMap

__all__ = ["features_of", "n_rows_of", "row_blocks", "rows_per_block", "take_rows"]

_BLOCK_BYTES = 1 << 22  # features of a block stay in the last level of cache
_FEWEST_ROWS = 64  # so that products with the weights are worth their reading
_MOST_ROWS = 8192


def features_of(feature_map: Any, X: Any) -> NDArray[Any]:
    """The features of checked rows as a real, C-ordered matrix of float32 or float64.

    Complex features count as their real and imaginary parts, which have the same inner products.
    """
    if isinstance(feature_map, FeatureMap):
        dtype = X.dtype if X.dtype in REAL else np.dtype(np.float64)
        Z: Any = feature_map._features(X.astype(dtype, copy=False))
    else:
        Z = feature_map.transform(X)
        if scipy.sparse.issparse(Z):
            Z = Z.toarray()
        Z = np.asarray(Z)
        if Z.ndim != 2 or len(Z) != n_rows_of(X) or Z.shape[1] == 0:
            raise ValueError(
                f"feature_map must give a matrix with one row for each of {n_rows_of(X)} rows, got "
                f"shape {Z.shape}; it has to be a transformer that keeps the rows."
            )
    if Z.dtype.kind == "c":
        Z = np.ascontiguousarray(Z).view(Z.real.dtype)
    return np.ascontiguousarray(Z, dtype=Z.dtype if Z.dtype in REAL else np.float64)


def n_rows_of(X: Any) -> int:
    """How many rows a matrix, frame or list has."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: slice | NDArray[np.intp]) -> Any:
    """Some rows of a matrix, frame or list."""
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        return X[rows]
    return _safe_indexing(X, rows)


def rows_per_block(n_features: int, itemsize: int) -> int:
    """How many rows to map at a time, such that their features stay in the cache."""
    fitting = _BLOCK_BYTES // max(1, n_features * itemsize)
    return min(max(fitting, _FEWEST_ROWS), _MOST_ROWS)


def row_blocks(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows` rows that cover `n_rows` in order."""
    for begin in range(0, n_rows, rows):
        yield slice(begin, min(begin + rows, n_rows))
