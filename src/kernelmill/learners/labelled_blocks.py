"""Blocks of rows with labels, from whatever gives them, once or again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from kernelmill.learners.block_parts import unpacked

__all__ = ["BlockSource"]


class BlockSource:
    """An iterable of (X, y) or (X, y, sample_weight), looked at without losing its first block.

    Parameters
    ----------
    blocks : iterable
        An iterator, such as a generator, can be passed over once; a list, or an object whose
        ``__iter__`` starts anew, as often as needed.
    """

    def __init__(self, blocks: Any) -> None:
        if isinstance(blocks, (str, bytes)) or not isinstance(blocks, Iterable):
            raise TypeError(
                "blocks must be an iterable of (X, y) or (X, y, sample_weight), got "
                f"{type(blocks).__name__}."
            )
        iterator = iter(blocks)
        # Some objects always give the same iterator: those are passed over once, too.
        self.repeatable = iterator is not blocks and iter(blocks) is not iterator
        try:
            first = next(iterator)
        except StopIteration:
            raise ValueError(
                "blocks must contain at least one block of rows, got none; a generator that was "
                "used before is empty."
            ) from None
        self.first = unpacked(first, 0)
        self._blocks = blocks
        self._rest: Iterator[Any] | None = None if self.repeatable else chain([first], iterator)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        rows = self._blocks if self._rest is None else self._rest
        for index, block in enumerate(rows):
            yield unpacked(block, index)
