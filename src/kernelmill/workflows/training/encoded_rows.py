"""Encoded rows of a table: all of them in memory, or blocks that are read again in each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.inputs import read_weights
from kernelmill.io import Table, TableBlock
from kernelmill.io.row_sample import stack_rows
from kernelmill.random.row_hashes import Keys
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.splits import HeldOut
from kernelmill.workflows.training.survey import Survey

__all__ = [
    "ENCODED_BYTES",
    "EncodedBlock",
    "EncodedRows",
    "EncodedTable",
    "InMemoryBlocks",
    "TrainingRows",
    "concatenate_rows",
    "count_encoded_bytes",
    "encode_blocks",
    "encode_held_out",
    "encode_table",
    "small_block_bytes",
]

ENCODED_BYTES = 256 << 20
"""The memory for encoded rows by default."""

_SLICE = 1 << 14  # rows of a block, of rows in memory
_MIXED_ROWS = 1 << 15
_MIXED_BYTES = 32 << 20
_SMALL_BLOCK_ROWS = 1 << 11


class EncodedRows(NamedTuple):
    """Encoded rows with their targets: numbers of classes, or values."""

    X: Any
    target: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    keys: Keys | None = None

    def slices(self) -> Iterator[EncodedRows]:
        """The rows in blocks."""
        for begin in range(0, len(self.target), _SLICE):
            yield self.select(slice(begin, begin + _SLICE))

    def select(self, rows: Any) -> EncodedRows:
        """Return a selection of the rows, by a slice or a mask."""
        weight, keys = (None if each is None else each[rows] for each in (self.weight, self.keys))
        return EncodedRows(self.X[rows], self.target[rows], weight, keys)

    def block(self) -> tuple[Any, ...]:
        """Return the rows as learners take them."""
        rows = (self.X, self.target)
        return rows if self.weight is None else (*rows, self.weight)


class EncodedTable(NamedTuple):
    """All rows of a table, encoded."""

    training: EncodedRows
    held_out: EncodedRows


class EncodedBlock(NamedTuple):
    """The rows of a block, encoded.

    Attributes
    ----------
    rows : EncodedRows
    present : ndarray of bool
        Whether each row has a target.
    """

    rows: EncodedRows
    present: NDArray[np.bool_]

    def split(self, held_out: HeldOut) -> tuple[EncodedRows, NDArray[np.bool_]]:
        """Return the rows that are used, and whether each is held out."""
        assert self.rows.keys is not None
        used = self.present & ~held_out.unused(self.rows.keys)
        rows = self.rows if used.all() else self.rows.select(used)
        assert rows.keys is not None
        return rows, held_out.rows(rows.keys)


def encode_blocks(blocks: Iterable[TableBlock], survey: Survey) -> Iterator[EncodedBlock]:
    """Encode the rows of blocks."""
    for block in blocks:
        target, present = survey.reader.numbers(block)
        X = survey.encoder.encode(
            survey.inputs.data(block.data), file=block.file, first_row=block.row_in_file
        )
        weight = None
        if survey.weights is not None:
            weight = read_weights(block, survey.weights) / survey.mean_weight
        yield EncodedBlock(EncodedRows(X, target, weight, survey.keys.of(block)), present)


def split_blocks(
    table: Table, survey: Survey, seed: int | None = None
) -> Iterator[tuple[EncodedRows, NDArray[np.bool_]]]:
    """Encode the rows of a table that have a target, and whether each is held out, in blocks."""
    for block in encode_blocks(table.blocks(seed), survey):
        yield block.split(survey.held_out)


def encode_held_out(table: Table, survey: Survey) -> Iterator[EncodedRows]:
    """Encode the held-out rows, block by block."""
    for rows, out in split_blocks(table, survey):
        yield rows.select(out)


def count_encoded_bytes(survey: Survey) -> int:
    """About how much memory the encoded rows of the table take."""
    row_bytes = 4 * survey.encoder.n_inputs + 8
    if scipy.sparse.issparse(survey.sample):
        row_bytes = _n_bytes(survey.sample) // max(1, survey.sample.shape[0]) + 16
    return survey.n_rows * row_bytes


def encode_table(
    table: Table, survey: Survey, most_bytes: int, progress: Progress
) -> EncodedTable | None:
    """Encode all rows; None if they would take more than `most_bytes` of memory."""
    if count_encoded_bytes(survey) > most_bytes:
        return None
    is_sparse = scipy.sparse.issparse(survey.sample)
    progress.start("Encoding", survey.n_rows)
    held_out: list[EncodedRows] = []
    if is_sparse:
        training: list[EncodedRows] = []
        for rows, out in split_blocks(table, survey):
            training.append(rows.select(~out))
            held_out.append(rows.select(out))
            progress.advance(len(out))
        return EncodedTable(concatenate_rows(training), concatenate_rows(held_out))
    # Filled in place: a list of blocks and their concatenation would take twice the memory.
    is_classification = survey.reader.task == "classification"
    all_X = np.empty((survey.n_rows, survey.encoder.n_inputs), np.float32)
    all_targets = np.empty(survey.n_rows, np.int64 if is_classification else float)
    all_weights = None if survey.weights is None else np.empty(survey.n_rows)
    all_keys = np.empty(survey.n_rows, np.uint64)
    end = 0
    for rows, out in split_blocks(table, survey):
        part = rows.select(~out)
        place = slice(end, end + len(part.target))
        assert part.keys is not None
        all_X[place], all_targets[place], all_keys[place] = part.X, part.target, part.keys
        if all_weights is not None:
            all_weights[place] = part.weight
        end = place.stop
        held_out.append(rows.select(out))
        progress.advance(len(out))
    every = EncodedRows(all_X, all_targets, all_weights, all_keys).select(slice(end))
    return EncodedTable(every, concatenate_rows(held_out))


def small_block_bytes(table: Table) -> int:
    """Return the bytes of blocks of about 2000 rows, of which sixteen are mixed at a time."""
    width = table.n_features if table.columns is None else len(table.columns)
    return int(np.clip(_SMALL_BLOCK_ROWS * 8 * max(1, width or 1), 1 << 16, 8 << 20))


class TrainingRows:
    """Blocks (X, target) of the rows that are not held out, the same in every pass.

    The blocks of the table come in an order that is shuffled once, and several of them are
    concatenated: a sorted file does little harm.

    Parameters
    ----------
    table : Table
    survey : Survey
    seed : int
        The seed of the order.
    """

    def __init__(self, table: Table, survey: Survey, seed: int) -> None:
        self._table = table
        self._survey = survey
        self._seed = seed

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for rows in self._mix_blocks():
            if len(rows.target):
                yield rows.block()

    def _mix_blocks(self) -> Iterator[EncodedRows]:
        parts: list[EncodedRows] = []
        n_rows = n_bytes = 0
        for rows, out in split_blocks(self._table, self._survey, self._seed):
            parts.append(rows.select(~out))
            n_rows += len(out)
            n_bytes += _n_bytes(rows.X)
            if n_rows >= _MIXED_ROWS or n_bytes >= _MIXED_BYTES:
                yield concatenate_rows(parts)
                parts, n_rows, n_bytes = [], 0, 0
        if parts:
            yield concatenate_rows(parts)


class InMemoryBlocks:
    """Rows in memory as blocks, in every pass."""

    def __init__(self, rows: EncodedRows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for rows in self._rows.slices():
            yield rows.block()


def concatenate_rows(parts: list[EncodedRows]) -> EncodedRows:
    """Return the rows one below the other."""
    X = stack_rows([part.X for part in parts])
    weights = [part.weight for part in parts if part.weight is not None]
    keys = [part.keys for part in parts if part.keys is not None]
    target = np.concatenate([part.target for part in parts])
    return EncodedRows(
        X,
        target,
        np.concatenate(weights) if weights else None,
        np.concatenate(keys) if keys else None,
    )


def _n_bytes(X: Any) -> int:
    if isinstance(X, np.ndarray):
        return X.nbytes
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
