"""The encoded rows of a table to learn from: kept if they are few, read again and again if not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.io import Table
from kernelmill.io.row_sample import joined_rows
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.survey import Survey

__all__ = ["TrainingRows", "encoded_blocks", "held_out_rows", "kept_rows", "small_blocks"]

_ROWS_TOGETHER = 1 << 15
_ROWS_OF_SMALL_BLOCKS = 1 << 11
_BYTES_TOGETHER = 32 << 20


def encoded_blocks(
    table: Table, found: Survey, seed: int | None = None
) -> Iterator[tuple[Any, NDArray[Any], NDArray[np.bool_]]]:
    """Encoded rows, their targets, and which of them are held out; only rows with a target."""
    for block in table.blocks(seed):
        target, present = found.reader.numbers(block)
        out = found.held_out.rows(block.first_row, block.n_rows)
        X = found.encoder.encode(
            found.inputs.data(block.data), file=block.file, first_row=block.first_row
        )
        if not present.all():
            X, target, out = X[present], target[present], out[present]
        yield X, target, out


class TrainingRows:
    """Blocks (X, target) of the rows that are not held out; every pass gives the same.

    Blocks come in an order shuffled once, and some of them are put together, so that a file that
    is sorted does little harm.

    Parameters
    ----------
    table : Table
    found : Survey
    seed : int
        Of the order.
    progress : Progress, optional
        Told about the rows of each pass.
    """

    def __init__(
        self, table: Table, found: Survey, seed: int, progress: Progress | None = None
    ) -> None:
        self._table = table
        self._found = found
        self._seed = seed
        self.progress = progress

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        parts: list[tuple[Any, NDArray[Any]]] = []
        n_rows = n_bytes = 0
        for X, target, out in encoded_blocks(self._table, self._found, self._seed):
            parts.append((X[~out], target[~out]))
            n_rows += len(target)
            n_bytes += bytes_of(X)
            if n_rows >= _ROWS_TOGETHER or n_bytes >= _BYTES_TOGETHER:
                yield from self._together(parts)
                parts, n_rows, n_bytes = [], 0, 0
        yield from self._together(parts)

    def _together(
        self, parts: list[tuple[Any, NDArray[Any]]]
    ) -> Iterator[tuple[Any, NDArray[Any]]]:
        if not parts:
            return
        X = joined_rows([each for each, _ in parts])
        target = np.concatenate([each for _, each in parts])
        if len(target):
            yield X, target
            if self.progress is not None:
                self.progress.advance(len(target))


def kept_rows(
    table: Table, found: Survey, most_bytes: int, progress: Progress
) -> tuple[tuple[Any, NDArray[Any]], tuple[Any, NDArray[Any]]] | None:
    """All encoded rows with their targets, those to train on and the held-out ones, if they fit."""
    row_bytes = 4 * found.encoder.n_inputs
    is_sparse = scipy.sparse.issparse(found.sample)
    if is_sparse:
        row_bytes = bytes_of(found.sample) // max(1, found.sample.shape[0]) + 8
    if found.n_rows * row_bytes > most_bytes:
        return None
    progress.start("Encoding", found.n_rows)
    if is_sparse:
        return _kept_sparse(table, found, progress)
    # Filled in place: lists of parts and their concatenation would take twice the memory.
    X = np.empty((found.n_rows, found.encoder.n_inputs), np.float32)
    target = np.empty(found.n_rows, np.int64 if found.reader.task == "classification" else float)
    held_X, held_target = [], []
    end = 0
    for rows, numbers, out in encoded_blocks(table, found):
        kept = len(numbers) - int(out.sum())
        X[end : end + kept], target[end : end + kept] = rows[~out], numbers[~out]
        end += kept
        held_X.append(rows[out])
        held_target.append(numbers[out])
        progress.advance(len(numbers))
    return (X[:end], target[:end]), (joined_rows(held_X), np.concatenate(held_target))


def _kept_sparse(
    table: Table, found: Survey, progress: Progress
) -> tuple[tuple[Any, NDArray[Any]], tuple[Any, NDArray[Any]]]:
    parts: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
    for rows, numbers, out in encoded_blocks(table, found):
        for place, each in enumerate((rows[~out], numbers[~out], rows[out], numbers[out])):
            parts[place].append(each)
        progress.advance(len(numbers))
    X, target, held_X, held_target = parts
    return (
        (joined_rows(X), np.concatenate(target)),
        (joined_rows(held_X), np.concatenate(held_target)),
    )


def small_blocks(table: Table) -> int:
    """The bytes of blocks with some 2000 rows: sixteen of them are mixed at a time."""
    width = table.n_features if table.columns is None else len(table.columns)
    return int(np.clip(_ROWS_OF_SMALL_BLOCKS * 8 * max(1, width or 1), 1 << 16, 8 << 20))


def held_out_rows(table: Table, found: Survey) -> Iterator[tuple[Any, NDArray[Any]]]:
    """The held-out rows of each block with their targets."""
    for X, target, out in encoded_blocks(table, found):
        yield X[out], target[out]


def bytes_of(X: Any) -> int:
    """The memory of an encoded block."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
