"""A random sample of the rows of a table, drawn in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.io.table import TableBlock
from kernelmill.random import Stream

__all__ = ["RowSample", "find_limit", "stack_rows", "take_rows"]


class RowSample:
    """A uniform random sample of rows.

    Each position in the table has a random number; the rows with the smallest ones are kept. The
    sample depends on the stream and on the number of rows, not on the sizes of the blocks.

    Parameters
    ----------
    size : int
        The number of rows to keep.
    stream : Stream
        The source of the random numbers.
    limit : float, default=inf
        Only rows whose random numbers are below the limit are in the sample; see `find_limit`.
    """

    def __init__(self, size: int, stream: Stream, limit: float = np.inf) -> None:
        self.size = size
        self._stream = stream
        self._parts: list[TableBlock] = []
        self._rows: list[NDArray[np.int64]] = []
        self._ranks: list[NDArray[np.float64]] = []
        self._held = 0
        self._worst = limit

    def update(self, block: TableBlock) -> None:
        """Add the rows of a block to those that are sampled from."""
        ranks = self._stream.uniforms(block.n_rows, start=block.first_row)
        chosen = np.flatnonzero(ranks < self._worst)
        if len(chosen) == 0:
            return
        self._parts.append(_take(block, chosen))
        self._rows.append(chosen + block.first_row)
        self._ranks.append(ranks[chosen])
        self._held += len(chosen)
        if self._held > 2 * self.size:
            self._prune()

    def merge(self, later: RowSample) -> None:
        """Add the rows that another one sampled from rows of higher positions."""
        self._parts += later._parts
        self._rows += later._rows
        self._ranks += later._ranks
        self._held += later._held
        if self._held > 2 * self.size:
            self._prune()

    def _prune(self) -> None:
        block = _stack(self._parts)
        rows, ranks = np.concatenate(self._rows), np.concatenate(self._ranks)
        if len(ranks) > self.size:
            best = np.sort(np.argpartition(ranks, self.size - 1)[: self.size])
            block, rows, ranks = _take(block, best), rows[best], ranks[best]
            self._worst = float(ranks.max())
        self._parts, self._rows, self._ranks = [block], [rows], [ranks]
        self._held = len(ranks)

    def rows(self) -> tuple[TableBlock, NDArray[np.int64]]:
        """Return the sample as one block, in random order, and the positions of its rows."""
        self._prune()
        order = np.argsort(self._ranks[0], kind="stable")
        return _take(self._parts[0], order), self._rows[0][order]


def find_limit(size: int, stream: Stream, n_rows: int) -> float:
    """Return the limit below which a `RowSample` of a table with `n_rows` has exactly `size` rows.

    With this limit, samples of parts of the table contain only rows of the sample of the whole
    table.
    """
    if n_rows <= size:
        return np.inf
    # Few random numbers are below this one, but hardly ever less than `size`.
    enough = (size + 10 * np.sqrt(size) + 100) / n_rows
    kept = np.empty(0)
    for start in range(0, n_rows, 1 << 20):
        draws = stream.uniforms(min(1 << 20, n_rows - start), start=start)
        kept = np.concatenate([kept, draws[draws < enough]])
    if len(kept) <= size:
        return np.inf
    return float(np.partition(kept, size)[size])


def _take(block: TableBlock, rows: NDArray[Any]) -> TableBlock:
    labels = None if block.labels is None else block.labels[rows]
    return TableBlock(take_rows(block.data, rows), labels, block.file, block.first_row)


def _stack(blocks: list[TableBlock]) -> TableBlock:
    labels = [block.labels for block in blocks if block.labels is not None]
    data = stack_rows([block.data for block in blocks])
    return TableBlock(
        data, np.concatenate(labels) if labels else None, blocks[0].file, blocks[0].first_row
    )


def take_rows(data: Any, rows: NDArray[Any]) -> Any:
    """Copy rows of a record batch, an ndarray or a CSR matrix."""
    if isinstance(data, pa.RecordBatch):
        return data.take(pa.array(rows))
    return data[rows]


def stack_rows(parts: list[Any]) -> Any:
    """Concatenate record batches, ndarrays or CSR matrices by rows."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], pa.RecordBatch):
        table = pa.Table.from_batches(parts).unify_dictionaries().combine_chunks()
        batches = table.to_batches()
        assert len(batches) == 1
        return batches[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    return scipy.sparse.vstack(parts, format="csr")
