"""The data that maps take: scikit-learn's checks, and what they leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from sklearn.utils.validation import validate_data

__all__ = ["REAL", "check_data"]

REAL = (np.dtype(np.float64), np.dtype(np.float32))


def check_data(estimator: Any, X: Any, *, reset: bool, keep_integers: bool = False) -> Any:
    """X as a finite matrix of float32 or float64: an ndarray, or a CSR array in canonical format.

    With `reset`, the estimator remembers the columns; otherwise they have to be the same. With
    `keep_integers`, dense rows of integers stay what they are, for callers that go by blocks.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, whose mask would be lost; fill or impute it first.")
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        X = X.astype(dtype.newbyteorder("="))  # scikit-learn would make float64 of float32
    kinds = [np.float32] if _is_float32_frame(X) else list(REAL)
    if keep_integers and type(X) is np.ndarray and X.dtype.kind in "iub":
        return validate_data(estimator, X, dtype=None, reset=reset)
    X = validate_data(estimator, X, accept_sparse="csr", dtype=kinds, reset=reset)
    return X if isinstance(X, np.ndarray) else _canonical(X)


def _is_float32_frame(X: Any) -> bool:
    """Whether all columns of a frame are float32, of which scikit-learn would make float64."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return False
    names = {str(dtype) for dtype in dtypes}
    return bool(names) and names <= {"float32", "Float32"}


def _canonical(X: Any) -> Any:
    """The CSR matrix X with sorted columns, each once in a row; or an error if it is damaged."""
    try:
        # A new matrix around the same numbers: the checks and sorting leave the caller's alone.
        parts = tuple(np.ascontiguousarray(part) for part in (X.data, X.indices, X.indptr))
        rows = scipy.sparse.csr_array(parts, X.shape)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            f"X is not a valid CSR matrix: {error}; build it again from its entries, for example "
            "with scipy.sparse.coo_array((data, (rows, columns)), shape).tocsr()."
        ) from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
