"""The blocks of a training that can be stopped and go on, and the checkpoint to go on from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.block_parts import unpacked
from kernelmill.learners.digests import digest_of_block
from kernelmill.learners.mapped_rows import n_rows_of
from kernelmill.learners.passed_blocks import PassedBlocks
from kernelmill.learners.run import CheckpointError, Run

__all__ = ["ResumableBlocks", "Rows"]

Rows = tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]
"""Checked X, targets and weights, or None for weights of one."""


class ResumableBlocks:
    """The blocks of one training, checked, and the checkpoint that it goes on from.

    Parameters
    ----------
    regressor : TrainedRegressor
        Checks the blocks; its map is fitted on the first one.
    blocks : iterable of (X, y) or (X, y, sample_weight)
    run : Run

    Attributes
    ----------
    repeatable : bool
        Whether the blocks can be passed over again.
    is_all : bool
        Whether there is one block, which stays in memory.
    """

    def __init__(self, regressor: Any, blocks: Iterable[Any], run: Run) -> None:
        try:
            iterator = iter(blocks)
        except TypeError:
            raise TypeError(
                f"blocks must be an iterable of (X, y), got {type(blocks).__name__}."
            ) from None
        # Some objects always give the same iterator: those are passed over once, too.
        self.repeatable = iterator is not blocks and iter(blocks) is not iterator
        if run.path is not None and not self.repeatable:
            raise ValueError(
                "blocks must be something to pass over repeatedly for a checkpoint, such as a "
                "list, got an iterator; or set checkpoint=None."
            )
        self.is_all = isinstance(blocks, list) and len(blocks) == 1
        self._regressor = regressor
        self._blocks = blocks
        self._numbered = enumerate(iterator)
        first = next(self._numbered, None)
        if first is None:
            raise ValueError("blocks must have at least one block of rows, got none.")
        parts = unpacked(first[1], 0)
        self._path = run.path
        self._digest, stream = "", None
        if run.path is not None:
            self._digest = digest_of_block(*parts)
            stream = regressor._open_run(run, self._digest)
        first_rows: Rows = regressor._check_block(*parts, reset=True, stream=stream)
        self._first = [first_rows]

    def first_rows(self) -> Rows:
        """The first block; only before the others, unless it is all there is."""
        return self._first[0]

    def once(self, passed: PassedBlocks) -> Iterator[Rows]:
        """All blocks, the first one from memory; each is told to `passed`."""
        passed.enter(n_rows_of(self._first[0][0]), self._digest)
        yield self._first[0]
        if not self.is_all:
            self._first.clear()  # not to be held while others come
        for number, block in self._numbered:
            yield self._checked(number, block, passed)
            del block

    def again(self, passed: PassedBlocks) -> Iterator[Rows]:
        """All blocks, as often as needed."""
        if self.is_all:
            passed.enter(n_rows_of(self._first[0][0]), self._digest)
            yield self._first[0]
            return
        self._first.clear()
        for number, block in enumerate(self._blocks):
            yield self._checked(number, block, passed)
            del block

    def _checked(self, number: int, block: Any, passed: PassedBlocks) -> Rows:
        parts = unpacked(block, number)
        checked: Rows = self._regressor._check_block(*parts, reset=False)
        digest = "" if self._path is None else digest_of_block(*parts)
        passed.enter(n_rows_of(checked[0]), digest)
        return checked

    def compare_rows(self, passed: PassedBlocks, n_rows: int, digest: bytes) -> None:
        """Refuse blocks that are not those of before, up to a row."""
        if self._path is None or n_rows == 0:
            return
        if passed.n_rows < n_rows or passed.digest(n_rows) != digest:
            raise CheckpointError(
                self._path,
                "blocks must be the same in each pass and after a restart, got others within the "
                f"first {n_rows} rows",
                "give the same blocks",
            )
