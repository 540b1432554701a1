"""The data that maps take: scikit-learn's checks, and what they leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from sklearn.utils.validation import validate_data

__all__ = ["REAL", "checked_data"]

REAL = (np.dtype(np.float64), np.dtype(np.float32))


def checked_data(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a finite matrix of float32 or float64: an ndarray, or a CSR array in canonical format.

    With `reset`, the estimator remembers the columns; otherwise they have to be the same.
    """
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        X = X.astype(dtype.newbyteorder("="))  # scikit-learn would make float64 of float32
    X = validate_data(estimator, X, accept_sparse="csr", dtype=list(REAL), reset=reset)
    return X if isinstance(X, np.ndarray) else _canonical(X)


def _canonical(X: Any) -> Any:
    """The CSR matrix X with sorted columns, each once in a row; or an error if it is damaged."""
    try:
        # A new matrix around the same numbers: the checks and sorting leave the caller's alone.
        rows = scipy.sparse.csr_array((X.data, X.indices, X.indptr), X.shape)
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
