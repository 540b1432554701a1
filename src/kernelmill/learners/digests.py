"""Short texts that tell data from other data."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

__all__ = ["DIGEST_BYTES", "digest_of_block"]

DIGEST_BYTES = 16
_DIGESTED_ROWS = 1000


def digest_of_block(X: Any, y: Any, sample_weight: Any) -> str:
    """A short text that another block would hardly have; of frames and lists too."""
    if scipy.sparse.issparse(X):
        X = X.tocsr()
    vectors = [None if part is None else _as_bytes(part) for part in (y, sample_weight)]
    if scipy.sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind != "O"):
        return _digest_of_rows(X, *vectors)
    return _digest_of_rows(None, _as_bytes(X), *vectors)


def _as_bytes(values: Any) -> NDArray[Any]:
    """An array whose bytes are the values, not their addresses."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths, for one
        return np.frombuffer(repr(values).encode(), np.uint8)
    if array.dtype.kind != "O":
        return array
    return np.frombuffer(repr(array.tolist()).encode(), np.uint8)


def _digest_of_rows(X: Any, *vectors: NDArray[Any] | None) -> str:
    """A short text that other data would hardly have: of up to 1000 rows and of whole vectors."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        n_rows = X.shape[0]
        rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _DIGESTED_ROWS)).astype(np.intp))
        some = X[rows]
        digest.update(f"{X.shape} {X.dtype}".encode())
        parts = (some,) if isinstance(some, np.ndarray) else (some.data, some.indices, some.indptr)
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
    for vector in vectors:
        if vector is not None:
            digest.update(np.ascontiguousarray(vector).tobytes())
    return digest.hexdigest()
