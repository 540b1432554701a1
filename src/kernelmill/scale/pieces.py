"""Rows that are divided among the workers of a cluster: pieces, and folds over all of them.

A `Piece` is a place and a small picklable `source`: a file with a range of its bytes, or a chunk of
a Dask array. One function, `read`, turns a source into blocks of rows on a worker. Both make up
`Pieces`, which `KernelClassifier.fit_blocks` and `KernelRegressor.fit_blocks` take in place of a
list of blocks: all of their solvers then run on the workers, and only sums come back.

A fold has a fixed shape. Pieces are put into groups of consecutive ones; those of a group are added
one after the other, each to the sum of those before it, where that sum is; and the sums of the
groups are merged in pairs, pairs of pairs and so on. Groups depend on the pieces and their numbers
of rows alone: the result does not depend on the number of workers, their speed or their deaths,
to the last bit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import dask
import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, KernelmillError
from kernelmill.learners.blocks import (
    Block,
    FoldState,
    concatenate_rows,
    count_rows,
    take_rows,
)
from kernelmill.learners.targets import unite_labels
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress
from kernelmill.scale.cluster import (
    Cluster,
    PieceError,
    check_task,
    installed_version,
    report_rows,
)
from kernelmill.scale.resources import use_worker

__all__ = ["KeyedSample", "Piece", "Pieces", "merge_samples"]

SAMPLE_ROWS = 1 << 13
"""Rows of the sample on which the map is fitted and tuned."""

_ROWS_PER_GROUP = 1 << 16
_FEWEST_GROUPS, _MOST_GROUPS = 16, 1024

Read = Callable[[Any], Iterable[Any]]
"""From the source of a piece to its blocks: tuples (X, y) or (X, y, sample_weight)."""

CheckLabels = Callable[[Any, Any], NDArray[Any]]
"""From the targets of some rows, and the rows, to their labels."""


@dataclass(frozen=True)
class Piece:
    """A piece of the rows, and where it is.

    Attributes
    ----------
    place : str
        For errors: "chunk 3 (rows 3000 to 3999)", "a.csv, bytes 0 to 65535".
    source : object
        Small and picklable; it is given to `read` on a worker. Delayed values of Dask, also in
        lists and tuples, are computed before.
    n_rows : int or None
        None if it is not known. It may be an estimate: only the shape of folds depends on it.
    """

    place: str
    source: Any
    n_rows: int | None = None


class KeyedSample(NamedTuple):
    """A uniform sample of rows: those with the smallest random keys.

    Attributes
    ----------
    keys : ndarray of shape (m,)
        Ascending.
    rows : Block
        In the order of the keys, unchecked.
    counts : dict of int to int
        The number of rows of each piece that was sampled.
    labels : ndarray or None
        The distinct targets of all rows, if they were asked for.
    """

    keys: NDArray[np.float64]
    rows: Block | None
    counts: dict[int, int]
    labels: NDArray[Any] | None = None


class Pieces:
    """Rows on a cluster; they implement `kernelmill.learners.blocks.SpreadBlocks`.

    Parameters
    ----------
    pieces : sequence of Piece
    read : callable
        ``read(source)`` returns the blocks of a piece: (X, y) or (X, y, sample_weight), the same
        ones whenever it is called. It is pickled once for all pieces. Blocks may be empty.
    cluster : Cluster
    first : tuple, optional
        A block of rows that are in this process. The map is fitted and tuned on it, and descent
        begins with its rows, so that it should be a sample of all rows. By default, one of
        `SAMPLE_ROWS` rows is drawn in a pass of its own.
    seed : int, default=0
        Seeds the sample.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from kernelmill import KernelRegressor
    >>> from kernelmill.scale import Cluster, Piece, Pieces
    >>> def read(begin):
    ...     X = np.arange(begin, begin + 50.0)[:, None] / 50
    ...     yield X, np.sin(X[:, 0])
    >>> pieces = [Piece(f"rows from {begin}", begin) for begin in range(0, 200, 50)]
    >>> with dask.config.set(scheduler="synchronous"):
    ...     model = KernelRegressor(alpha=1e-6, random_state=0)
    ...     model = model.fit_blocks(Pieces(pieces, read, Cluster()))
    >>> bool(abs(model.predict([[2.0]])[0] - np.sin(2.0)) < 0.01)
    True
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        read: Read,
        cluster: Cluster,
        *,
        first: tuple[Any, ...] | None = None,
        seed: int = 0,
    ) -> None:
        if not pieces:
            raise ArgumentError("must have at least one piece, got none", parameter="blocks")
        self.pieces = list(pieces)
        self.read = read
        self.cluster = cluster
        self._first = first
        self._seed = seed

    @property
    def first(self) -> tuple[Any, ...]:
        """The rows that are in this process."""
        if self._first is None:
            self._draw_first(None)
        assert self._first is not None
        return self._first

    def find_labels(self, check: CheckLabels) -> NDArray[Any] | None:
        """Return the distinct labels of all rows, collected in the pass that draws `first`.

        ``check(y, X)`` returns the labels of some rows. None if no row has a positive weight.
        """
        return self._draw_first(check)

    def _draw_first(self, check: CheckLabels | None) -> NDArray[Any] | None:
        sample = self.sample(SAMPLE_ROWS, Stream.from_seed(self._seed), check)
        assert sample.rows is not None
        self._first = sample.rows[:3]
        self.pieces = [
            replace(piece, n_rows=sample.counts[number]) for number, piece in enumerate(self.pieces)
        ]
        return sample.labels

    @property
    def n_rows(self) -> int | None:
        """The number of all rows, if it is known."""
        counts = [piece.n_rows for piece in self.pieces]
        return None if None in counts else sum(counts)  # type: ignore[arg-type] # no None

    def persist(self) -> None:
        """Let the workers compute delayed sources now and keep them: several passes follow."""
        delayed, repack = dask.base.unpack_collections([piece.source for piece in self.pieces])
        sources = repack(self.cluster.persist(delayed))[0]
        self.pieces = [
            replace(piece, source=source)
            for piece, source in zip(self.pieces, sources, strict=True)
        ]

    def sample(
        self, n_rows: int, stream: Stream, check_labels: CheckLabels | None = None
    ) -> KeyedSample:
        """Return a uniform sample of all rows without replacement, and count the rows.

        It depends on the stream and on the numbers of rows of the pieces. With `check_labels`, the
        distinct labels are collected.
        """
        fold = _SampleFold(n_rows, stream, check_labels)
        sample: KeyedSample = self.fold(fold, _SampleMerge(n_rows))
        if sample.rows is None:
            raise ArgumentError("must have at least one row, got none", parameter="X")
        return sample

    def fold(
        self,
        fold: Callable[[Any, Iterable[Any], int], Any],
        merge: Callable[[Any, Any], Any],
        *,
        progress: Progress | None = None,
        rows_per_group: int = _ROWS_PER_GROUP,
        fewest_groups: int = _FEWEST_GROUPS,
        state: FoldState | None = None,
        save: Callable[[FoldState], bool] | None = None,
    ) -> Any:
        """Return one value computed from the blocks of all pieces, on the workers.

        Parameters
        ----------
        fold, merge : callable
            As in `kernelmill.learners.blocks.fold_blocks`; `merge` of two workers' values gets
            copies.
        progress : Progress, optional
            Receives the rows that are done, from a cluster.
        rows_per_group : int
            The number of rows that are at least folded one after the other, if there are many.
        fewest_groups : int
            The least number of groups otherwise, if there are as many pieces.
        state, save
            As in `kernelmill.learners.blocks.SpreadBlocks.fold`.
        """
        counts = [piece.n_rows for piece in self.pieces]
        groups = group_pieces(counts, rows_per_group, fewest_groups)
        at = FoldState(len(groups)) if state is None else state
        if at.n_groups != len(groups):
            raise ArgumentError(
                f"must be in the same {at.n_groups} groups as before, got {len(groups)}",
                "pass the same data in the same chunks",
                parameter="blocks",
            )
        most = len(groups) if save is None else 2 * self.cluster.n_threads()
        on_rows = _ignore_rows if progress is None else progress.advance
        if at.n_done and progress is not None:
            done = (counts[number] or 0 for group in groups[: at.n_done] for number in group)
            progress.advance(sum(done))
        with self.cluster.listen(on_rows) as topic:
            work = _Work(fold, merge, self.read, installed_version(), topic)
            while at.n_done < len(groups):
                part = at.next_groups(most)
                total = self._compute(work, [groups[i] for i in part])
                at.add(total, part, merge)
                if save is not None and not save(at):
                    most *= 2
        return at.totals[0]

    def _compute(self, work: _Work, groups: Sequence[range]) -> Any:
        """Return the total of some groups; an error of a delayed source names its piece."""
        try:
            return self.cluster.compute(self._plan(work, groups))
        except KernelmillError:
            raise
        except Exception as error:
            # Dask does not tell which of the sources it failed to compute: try one by one.
            for number in (number for group in groups for number in group):
                piece = self.pieces[number]
                try:
                    self.cluster.compute(dask.delayed(_forget)(piece.source))
                except Exception as again:
                    raise PieceError.of(piece.place, again) from error
            raise

    def _plan(self, work: _Work, groups: Sequence[range]) -> Any:
        """Return the delayed total of some groups."""
        fold_piece, merge_totals = dask.delayed(_fold_piece), dask.delayed(_merge_totals)
        shared = dask.delayed(work, traverse=False)
        partials: list[Any] = []
        for group in groups:
            total = None
            for number in group:
                piece = self.pieces[number]
                total = fold_piece(shared, total, piece.source, piece.place, number)
            partials.append(total)
        while len(partials) > 1:
            pairs = [partials[i : i + 2] for i in range(0, len(partials), 2)]
            partials = [
                pair[0] if len(pair) == 1 else merge_totals(shared, *pair) for pair in pairs
            ]
        return partials[0]


def group_pieces(
    n_rows: Sequence[int | None], rows_per_group: int, fewest: int = _FEWEST_GROUPS
) -> list[range]:
    """Return from `fewest` to 1024 groups of consecutive pieces, with about equal numbers of rows.

    If a number of rows is not known, all pieces count alike and groups are as many as possible.

    Examples
    --------
    >>> from kernelmill.scale.pieces import group_pieces
    >>> group_pieces([1000] * 40, 1 << 16)[:2]
    [range(0, 3), range(3, 6)]
    >>> len(group_pieces([10**6] * 100, 1 << 16))
    100
    """
    known = [1 if count is None else count for count in n_rows]
    if None in n_rows:
        known, rows_per_group = [1] * len(known), 1
    total = sum(known)
    wanted = np.clip(total // max(1, rows_per_group), fewest, _MOST_GROUPS)
    least = max(1, -(-total // int(wanted)))
    groups, begin, rows = [], 0, 0
    for number, count in enumerate(known):
        rows += count
        if rows >= least:
            groups.append(range(begin, number + 1))
            begin, rows = number + 1, 0
    if begin < len(known):
        groups.append(range(begin, len(known)))
    return groups


class _Work(NamedTuple):
    """The objects that all tasks of a fold share, which are sent once to each worker."""

    fold: Callable[[Any, Iterable[Any], int], Any]
    merge: Callable[[Any, Any], Any]
    read: Read
    version: str
    topic: str | None


def _fold_piece(work: _Work, total: Any, source: Any, place: str, number: int) -> Any:
    """Return the sum of the pieces before this one in its group, with this one."""
    check_task(work.version)
    try:
        with use_worker():
            n_rows = _Count()
            total = work.fold(total, n_rows.count(work.read(source)), number)
    except Exception as error:
        raise PieceError.of(place, error) from error
    report_rows(work.topic, n_rows.value)
    return total


def _forget(_: Any) -> None:
    """Take a source, so that it is computed."""


def _merge_totals(work: _Work, a: Any, b: Any) -> Any:
    # A copy: `a` may be asked for again if the worker that merges it dies.
    with use_worker():
        return work.merge(copy.deepcopy(a), b)


class _Count:
    """Counts rows that pass by."""

    value = 0

    def count(self, blocks: Iterable[Any]) -> Iterator[Any]:
        for block in blocks:
            self.value += count_rows(block[0])
            yield block


def _ignore_rows(_: int) -> None:
    pass


@dataclass(frozen=True)
class _SampleFold:
    n_rows: int
    stream: Stream
    check_labels: CheckLabels | None = None

    def __call__(
        self, total: KeyedSample | None, blocks: Iterable[Any], number: int
    ) -> KeyedSample:
        stream = self.stream.substream("sample", number)
        merge = _SampleMerge(self.n_rows)
        count = 0
        sample = KeyedSample(np.empty(0), None, {})
        for index, block in enumerate(blocks):
            rows = Block(*block)
            n_rows = count_rows(rows.X)
            count += n_rows
            if n_rows:
                keys = stream.substream(index).uniforms(n_rows)
                smallest = _smallest(keys, rows, self.n_rows)
                assert smallest.rows is not None
                _check_finite(smallest.rows)  # here, where an error has a place
                sample = merge(sample, smallest)
                if self.check_labels is not None and (rows.weight is None or np.any(rows.weight)):
                    labels = np.unique(self.check_labels(rows.y, rows.X))
                    sample = sample._replace(labels=_join_labels(sample.labels, labels))
        sample = sample._replace(counts={number: count})
        return sample if total is None else merge(sample, total)


@dataclass(frozen=True)
class _SampleMerge:
    n_rows: int

    def __call__(self, a: KeyedSample, b: KeyedSample) -> KeyedSample:
        return merge_samples(a, b, self.n_rows)


def merge_samples(a: KeyedSample, b: KeyedSample, n_rows: int) -> KeyedSample:
    """Return a uniform sample of the rows that two samples of at least this size came from."""
    counts = {**a.counts, **b.counts}
    labels = _join_labels(a.labels, b.labels)
    if a.rows is None or b.rows is None:
        kept = a if b.rows is None else b
        return kept._replace(counts=counts, labels=labels)
    parts = [a.rows, b.rows]
    both = Block(
        concatenate_parts([part.X for part in parts]),
        concatenate_parts([part.y for part in parts]),
        concatenate_parts([part.weight for part in parts]),
    )
    merged = _smallest(np.concatenate([a.keys, b.keys]), both, n_rows)
    return merged._replace(counts=counts, labels=labels)


def _join_labels(a: NDArray[Any] | None, b: NDArray[Any] | None) -> NDArray[Any] | None:
    if a is None or b is None:
        return b if a is None else a
    return unite_labels(a, b)


def _smallest(keys: NDArray[np.float64], rows: Block, n_rows: int) -> KeyedSample:
    """Return the rows with the smallest keys, in their order."""
    order = np.argsort(keys, kind="stable")[:n_rows]
    X, y, weight = (None if part is None else take_rows(part, order) for part in rows[:3])
    return KeyedSample(keys[order], Block(X, y, weight), {})


def _check_finite(rows: Block) -> None:
    """Raise if rows have numbers that all maps and learners reject."""
    for name, part in (("X", rows.X), ("y", rows.y), ("sample_weight", rows.weight)):
        values = part.data if scipy.sparse.issparse(part) else part
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            if np.isnan(values).any():
                raise ArgumentError("must be finite, got NaN", "impute it", parameter=name)
            if np.isinf(values).any():
                raise ArgumentError("must be finite, got infinity", parameter=name)


def concatenate_parts(parts: list[Any]) -> Any:
    """Return matrices, vectors or frames one below the other; None where there is None."""
    if any(part is None for part in parts):
        return None
    if hasattr(parts[0], "iloc"):
        import pandas as pd  # noqa: PLC0415 # with Dask, but only for frames

        return pd.concat(parts)
    return concatenate_rows(parts)
