"""Which rows a training has passed over, to find the place again and to know other rows."""

from __future__ import annotations

from hashlib import blake2b

from kernelmill.learners.digests import DIGEST_BYTES

__all__ = ["PassedBlocks"]


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
