"""Digests of rows, by which a checkpoint recognizes the data of its training run."""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.learners.run import CheckpointError, Run

__all__ = ["BlockDigests", "digest_block"]

_BYTES = 16
_AT_ONCE = 1 << 22  # bytes that are copied to be hashed


def digest_block(X: Any, y: Any, sample_weight: Any) -> str:
    """Return a digest of all rows, targets and weights of a block, whatever holds them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.digests import digest_block
    >>> digest_block([[1.0, 2.0]], [0], None) == digest_block(np.array([[1.0, 2.0]]), [0], None)
    True
    """
    state = blake2b(digest_size=_BYTES)
    for part in (X, y, sample_weight):
        _add(state, part)
    return state.hexdigest()


def _add(state: Any, values: Any) -> None:
    """Hash values with their types and shapes."""
    if values is None:
        state.update(b"none")
    elif scipy.sparse.issparse(values):
        rows = values.tocsr()
        state.update(f"sparse {rows.shape}".encode())
        for part in (rows.indptr, rows.indices, rows.data):
            _add_array(state, part)
    elif hasattr(values, "items") and hasattr(values, "columns"):  # its rows would be objects
        state.update(f"frame {values.shape}".encode())
        for name, column in values.items():
            state.update(repr(name).encode())
            _add(state, column)
    else:
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            state.update(f"rows {len(values)}".encode())
            for row in values:
                _add(state, row)
        else:
            _add_array(state, array)


def _add_array(state: Any, array: NDArray[Any]) -> None:
    state.update(f"{array.dtype} {array.shape}".encode())
    array = array.reshape(-1) if array.ndim == 0 else array
    step = max(1, _AT_ONCE // max(1, array[:1].nbytes))
    for begin in range(0, len(array), step):
        some = array[begin : begin + step]
        if array.dtype.hasobject:
            _add_text(state, some.tolist())  # values, not their addresses
        else:
            state.update(some.tobytes())


def _add_text(state: Any, values: Any) -> None:
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # of arrays among the values
        state.update(repr(values).encode())


class BlockDigests:
    """The digests of all blocks of a pass: saved with every state, compared after a restart.

    A block is hashed when it first comes in a process.

    Parameters
    ----------
    run : Run
        With a checkpoint, which has been opened.
    first : str
        The digest of the first block.

    Attributes
    ----------
    was_passed : bool
        Whether there was a complete pass in this process.
    """

    def __init__(self, run: Run, first: str) -> None:
        self._path = run.path
        self._known: list[bytes] = []
        self._is_complete = False
        self._n_compared = 0
        self.was_passed = False
        if run.saved is not None:
            known = run.saved.array("blocks", (None, _BYTES), np.uint8)
            self._known = [each.tobytes() for each in known]
            self._is_complete = run.saved.counts("passes", 1)[0] > 0
            if not self._known:
                raise run.saved.error("it has no blocks")
        self._compare(0, first)
        run.describe_data = self._to_arrays

    def take(self, number: int, X: Any, y: Any, sample_weight: Any) -> None:
        """Compare a block with that of this number before, or remember its digest."""
        if number >= self._n_compared:
            self._compare(number, digest_block(X, y, sample_weight))

    def end(self, n_blocks: int) -> None:
        """Compare the number of blocks of a complete pass."""
        if n_blocks < len(self._known):
            raise self._error(f"there are {n_blocks} instead of {len(self._known)}")
        self._is_complete = self.was_passed = True

    def _compare(self, number: int, digest: str) -> None:
        found = bytes.fromhex(digest)
        if number < len(self._known):
            if self._known[number] != found:
                raise self._error(f"block {number} differs")
        elif self._is_complete:
            raise self._error(f"there are more than {len(self._known)}")
        else:
            self._known.append(found)
        self._n_compared = number + 1

    def _error(self, reason: str) -> CheckpointError:
        assert self._path is not None
        return CheckpointError(
            self._path,
            f"blocks must be the same in each pass and after a restart, but {reason}",
            "pass the same blocks",
        )

    def _to_arrays(self) -> dict[str, NDArray[Any]]:
        known = np.frombuffer(b"".join(self._known), np.uint8).reshape(-1, _BYTES)
        return {"blocks": known, "passes": np.array([self._is_complete], np.int64)}
