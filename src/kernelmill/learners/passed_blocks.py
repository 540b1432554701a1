"""Which rows a training has passed over, to find the place again and to know other rows."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.learners.checkpoint import digest_of_rows

__all__ = ["DIGEST_BYTES", "PassedBlocks", "digest_of_block"]

DIGEST_BYTES = 16


def digest_of_block(X: Any, y: Any, sample_weight: Any) -> str:
    """A short text that another block would hardly have; of frames and lists too."""
    vectors = [None if part is None else _as_bytes(part) for part in (y, sample_weight)]
    if scipy.sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind != "O"):
        return digest_of_rows(X, *vectors)
    return digest_of_rows(None, _as_bytes(X), *vectors)


def _as_bytes(values: Any) -> NDArray[Any]:
    """An array whose bytes are the values, not their addresses."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths, for one
        return np.frombuffer(repr(values).encode(), np.uint8)
    if array.dtype.kind != "O":
        return array
    return np.frombuffer(repr(array.tolist()).encode(), np.uint8)


class PassedBlocks:
    """The blocks of one pass, in order, as digests of all blocks up to a row.

    Only the last digests that can still be asked for are kept, however many blocks there are.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._digest = bytes(DIGEST_BYTES)
        self._known = [(0, self._digest)]

    def enter(self, n_rows: int, digest: str) -> None:
        """Another block follows, of so many rows."""
        joined = blake2b(self._digest, digest_size=DIGEST_BYTES)
        joined.update(f"{n_rows} {digest}".encode())
        self._digest = joined.digest()
        self._known.append((self.n_rows, self._digest))
        self.n_rows += n_rows

    def digest(self, row: int) -> bytes:
        """Of all blocks that begin before this row; later calls are for this row or later ones."""
        before = [index for index, (begin, _) in enumerate(self._known) if begin < row]
        if before:
            del self._known[: before[-1]]
        return self._known[0][1]
