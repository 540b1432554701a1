"""Which rows are held out, and how rows are divided into parts: rows with equal keys stay together.

Whether a row is held out depends on the seed and on its key (`kernelmill.encoding.row_keys`), not
on its place in the table, so that each pass, piece and format finds the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream
from kernelmill.random.row_hashes import Keys, rank_keys

__all__ = [
    "HeldOut",
    "KeyCounts",
    "assign_parts",
    "choose_held_out",
    "choose_latest",
    "cut_folds",
    "cut_windows",
    "divide_sample",
]

_LAST = 2**64 - 1
_MOST_KEYS = 1 << 18  # that are counted; of more, a sample
_QUARTERS = 4
_TIE = 1e-9


@dataclass(frozen=True)
class HeldOut:
    """The rows kept out of training: those whose keys have ranks from `first` to `last`.

    Attributes
    ----------
    stream : Stream or None
        Keys have random ranks that depend on it. Without it keys are times: the latest has rank 0,
        and rows that are later than those held out are not used.
    share : float
        The share of the rows that is held out, exactly or as expected; if it is 0, none is.
    first, last : int
    kept : tuple of int
        Keys of training rows, whatever their ranks: no other rows have their classes.
    heavy : tuple of int
        Keys of training rows that have too many rows.
    """

    stream: Stream | None
    share: float = 0.0
    first: int = 0
    last: int = _LAST
    kept: tuple[int, ...] = ()
    heavy: tuple[int, ...] = ()

    def ranks(self, keys: Keys) -> Keys:
        """Return the ranks of keys; those with low ranks are held out first."""
        return ~keys if self.stream is None else rank_keys(keys, self.stream)

    def unused(self, keys: Keys) -> NDArray[np.bool_]:
        """Return whether each of the rows with these keys is later than those held out."""
        if self.stream is not None or self.share <= 0:
            return np.zeros(len(keys), bool)
        later: NDArray[np.bool_] = self.ranks(keys) < self.first
        return later

    def rows(self, keys: Keys) -> NDArray[np.bool_]:
        """Return whether each of the rows with these keys is held out."""
        if self.share <= 0:
            return np.zeros(len(keys), bool)
        ranks = self.ranks(keys)
        out: NDArray[np.bool_] = (ranks >= self.first) & (ranks <= self.last)
        others = (*self.kept, *self.heavy)
        return out & ~np.isin(keys, np.array(others, np.uint64)) if others else out


class KeyCounts:
    """The different keys of rows, and the number of rows of each; of many keys, of a random sample.

    The result depends on the rows alone, not on their order and on how they come in blocks.

    Attributes
    ----------
    n_rows : int
        The number of all rows.
    level : int
        All keys are counted if it is 0, and one of 2**level otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows.splits import KeyCounts
    >>> counts = KeyCounts()
    >>> for block in ([5, 7, 5], [7, 5]):
    ...     counts.update(np.array(block, np.uint64))
    >>> counts.list()
    (array([5, 7], dtype=uint64), array([3, 2]))
    >>> counts.n_repeated
    3
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.level = 0
        self._keys, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting: list[Keys] = []

    def update(self, keys: Keys) -> None:
        """Add the keys of rows."""
        self.n_rows += len(keys)
        self._waiting.append(keys[self._are_counted(keys)] if self.level else keys)
        if sum(map(len, self._waiting)) > _MOST_KEYS:
            self.list()

    def merge(self, later: KeyCounts) -> None:
        """Add the counts of other rows."""
        self.list()
        found = later.list()
        self.n_rows += later.n_rows
        self.level = max(self.level, later.level)
        self._add(*found)

    def list(self) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys that are counted, ascending, and the numbers of their rows."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._add(*np.unique(np.concatenate(waiting), return_counts=True))
        return self._keys, self._counts

    def _add(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        """Add counts of different keys."""
        keys, counts = np.append(self._keys, keys), np.append(self._counts, counts)
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
        self._keys, self._counts = keys[starts], np.add.reduceat(counts, starts)
        while True:
            counted = self._are_counted(self._keys)
            self._keys, self._counts = self._keys[counted], self._counts[counted]
            if len(self._keys) <= _MOST_KEYS:
                return
            self.level += 1

    def _are_counted(self, keys: Keys) -> NDArray[np.bool_]:
        counted: NDArray[np.bool_] = keys <= np.uint64(_LAST >> self.level)
        return counted

    @property
    def is_exact(self) -> bool:
        """Whether all keys are counted."""
        self.list()
        return self.level == 0

    @property
    def n_keys(self) -> int:
        """The number of different keys, or an estimate of it."""
        return len(self.list()[0]) << self.level

    @property
    def n_repeated(self) -> int:
        """The number of rows that are not the first one with their key, or an estimate of it."""
        keys, counts = self.list()
        return (int(counts.sum()) - len(keys)) << self.level


def choose_held_out(
    counts: KeyCounts,
    share: float,
    stream: Stream,
    lasts: Mapping[Any, tuple[int, int]],
    sampled: Keys,
) -> tuple[HeldOut, list[Any]]:
    """Return which rows are held out, and the classes of which all rows would have been.

    Keys are held out in the order of their random ranks until the share is nearly reached, at least
    one. A key with more rows than that is left for training, unless all are such, as are a few
    groups. If there is a choice, a key with more than half of the rows is never held out, and one
    key stays for training.

    Parameters
    ----------
    counts : KeyCounts
    share : float
        The share of the rows to hold out.
    stream : Stream
    lasts : mapping of class to (rank, key)
        The last of the keys of each class: it stays in training if the others are held out.
    sampled : ndarray of uint64
        The keys of a random sample of the rows.
    """
    held_out = HeldOut(stream)
    if share <= 0:
        return held_out, []
    kept: set[int] = set()
    classes: list[Any] = []
    while True:
        if counts.is_exact:
            chosen = _take_keys(held_out, *counts.list(), share, kept)
        else:  # a threshold is more precise than a sample of the keys
            keys, times = np.unique(sampled, return_counts=True)
            heavy = keys[times > max(share * len(sampled), 1)]
            last = min(int(share * 2.0**64), _LAST)
            chosen = HeldOut(stream, share, 0, last, tuple(sorted(kept)), tuple(heavy.tolist()))
        absent = [
            label
            for label, (rank, key) in lasts.items()
            if chosen.share and rank <= chosen.last and key not in (*chosen.kept, *chosen.heavy)
        ]
        if not absent:
            return chosen, classes
        classes += absent
        kept |= {lasts[label][1] for label in absent}


def _take_keys(
    held_out: HeldOut, keys: Keys, counts: NDArray[np.int64], share: float, kept: set[int]
) -> HeldOut:
    """Return the keys with the lowest ranks that have about this share of the rows."""
    total = int(counts.sum())
    wanted = share * total
    free = ~np.isin(keys, np.array(sorted(kept), np.uint64))
    light = free & (counts <= wanted)
    if counts[light].sum() < wanted:
        light = free & (2 * counts <= total)
    if np.count_nonzero(light) <= light.all():
        return held_out
    ranks = held_out.ranks(keys[light])
    order = np.argsort(ranks)
    reached = np.cumsum(counts[light][order])
    # One key at least is for training.
    place = _find_nearest(reached, wanted, 0, len(reached) - 1 - int(light.all()))
    return replace(
        held_out,
        share=float(reached[place]) / total,
        last=int(ranks[order[place]]),
        kept=tuple(sorted(kept)),
        heavy=tuple(keys[free & ~light].tolist()),
    )


def _find_nearest(reached: NDArray[np.int64], wanted: float, low: int, high: int) -> int:
    """Return the place from `low` to `high` where an ascending array is nearest to a number."""
    place = int(np.clip(np.searchsorted(reached, wanted), low, high))
    if place > low and wanted - reached[place - 1] < reached[place] - wanted:
        place -= 1
    return place


def choose_latest(times: KeyCounts, share: float) -> HeldOut:
    """Return the rows with the latest times that have about this share; equal times stay together.

    At least one time is held out, and one is left; none if all are equal.
    """
    keys, counts = times.list()
    if share <= 0 or len(keys) < 2:
        return HeldOut(None)
    reached = np.cumsum(counts[::-1])
    place = _find_nearest(reached, share * times.n_rows, 0, len(keys) - 2)
    return HeldOut(None, float(reached[place]) / times.n_rows, 0, _LAST - int(keys[-1 - place]))


def cut_windows(times: KeyCounts, n_folds: int) -> Iterable[HeldOut]:
    """The rows to test on for each fold, in order of time: each fold is trained on earlier rows.

    All rows are cut into one more part than there are folds; the first one is only for training.
    """
    keys, counts = times.list()
    begins = [0, *(end + 1 for end in _cut(counts, n_folds + 1)), len(keys)]
    for begin, end in pairwise(begins[1:]):
        share = float(counts[begin:end].sum()) / times.n_rows
        first = 0 if end == len(keys) else _LAST - int(keys[end - 1])
        yield HeldOut(None, share, first, _LAST - int(keys[begin]))


def _cut(counts: NDArray[np.int64], n_parts: int) -> list[int]:
    """Return the last place of each part but the last, so that parts have about equal sums."""
    reached = np.cumsum(counts)
    ends: list[int] = []
    place, before = 0, 0
    for left in range(n_parts, 1, -1):
        wanted = before + (int(reached[-1]) - before) / left  # equal shares of the rest
        ends.append(_find_nearest(reached, wanted, place, len(counts) - left))
        place, before = ends[-1] + 1, int(reached[ends[-1]])
    return ends


def cut_folds(
    held_out: HeldOut, counts: KeyCounts, n_folds: int, stream: Stream
) -> Iterable[HeldOut]:
    """The rows to test on for each fold, of about equal numbers of rows; kept keys are in none."""
    keys, sizes = counts.list()
    ranks = HeldOut(stream).ranks(keys)
    order = np.argsort(ranks)
    lasts = [*ranks[order][_cut(sizes[order], n_folds)].tolist(), _LAST]
    for first, last in zip([0, *(each + 1 for each in lasts)], lasts, strict=False):
        yield HeldOut(stream, 1 / n_folds, first, last, held_out.kept)


def divide_sample(
    keys: Keys | None, codes: NDArray[Any] | None, n_rows: int, *, in_order: bool = False
) -> tuple[NDArray[np.intp] | None, list[int]]:
    """Divide the rows of a sample, which are in random order, into quarters.

    Parameters
    ----------
    keys : ndarray of uint64 or None
        Rows with equal keys are in one part.
    codes : ndarray of int, optional
        The classes, to balance them.
    n_rows : int
    in_order : bool, default=False
        Whether keys are times. There are then two parts, the latest quarter and all earlier rows.

    Returns
    -------
    order : ndarray of int or None
        The rows of the first part, then those of the second, and so on, each in random order; None
        if the sample is in such an order.
    ends : list of int
        The end of each part in this order. With few keys, there are fewer parts, of other sizes;
        the last one is the closest to a quarter.
    """
    usual = [(n_rows * quarter) // _QUARTERS for quarter in range(1, _QUARTERS + 1)]
    if keys is None:
        return None, usual
    distinct, counts = np.unique(keys, return_counts=True)
    if len(distinct) == 1:
        return None, usual
    if in_order:
        reached = np.cumsum(counts)
        last = _find_nearest(reached, usual[-2], 0, len(distinct) - 2)
        return np.argsort(keys > distinct[last], kind="stable"), [int(reached[last]), n_rows]
    if len(distinct) == n_rows:
        return None, usual
    parts = assign_parts(keys, _QUARTERS, codes)
    sizes = np.bincount(parts, minlength=_QUARTERS)
    last = int(np.argmin(np.abs(sizes - n_rows / _QUARTERS)))
    parts[parts == last] = _QUARTERS
    ends = np.cumsum(np.bincount(parts))
    return np.argsort(parts, kind="stable"), np.unique(ends[ends > 0]).tolist()


def assign_parts(
    keys: Keys, n_parts: int, classes: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Return the part of each row: rows with equal keys are in one part.

    Parts have about equal numbers of rows, and of rows of each class. Keys with several rows are
    assigned first, the largest ones first, each to the part that has the fewest rows of its
    classes; then single rows fill up the parts.

    Parameters
    ----------
    keys : ndarray of uint64
        The keys of rows in random order, on which the result depends.
    n_parts : int
    classes : ndarray of int, optional
        The numbers of the classes.
    """
    codes = np.zeros(len(keys), np.int64) if classes is None else classes
    totals = np.maximum(np.bincount(codes), 1)
    filled, sums = np.zeros((n_parts, len(totals))), np.zeros(n_parts)
    _, first, place, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    # Pairs of a key with several rows and a class, and the number of their rows.
    several = np.flatnonzero(sizes[place] > 1)
    pairs, times = np.unique(place[several] * len(totals) + codes[several], return_counts=True)
    owner, labels = np.divmod(pairs, len(totals))
    ends = np.append(np.flatnonzero(np.diff(owner)) + 1, len(owner))
    part_of_key = np.zeros(len(sizes), np.int64)
    numbers = owner[ends - 1] if len(owner) else owner
    for each in np.lexsort((first[numbers], -sizes[numbers])):
        those = slice(ends[each - 1] if each else 0, ends[each])
        weights = times[those] / totals[labels[those]]
        crowding = filled[:, labels[those]] @ weights
        part = int(np.argmin(crowding + _TIE * sums / len(keys)))
        part_of_key[numbers[each]] = part
        filled[part, labels[those]] += times[those]
        sums[part] += sizes[numbers[each]]
    parts = part_of_key[place]
    single = np.flatnonzero(sizes[place] == 1)
    single = single[np.argsort(codes[single], kind="stable")]
    ends = np.cumsum(np.bincount(codes[single], minlength=len(totals)))
    for label, rows in enumerate(np.split(single, ends[:-1])):
        more = _fill_up(filled[:, label], filled.sum(axis=1), len(rows))
        parts[rows] = np.repeat(np.arange(n_parts), more)
        filled[:, label] += more
    return parts


def _fill_up(filled: NDArray[Any], totals: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Return how many of some rows each part gets, so that all have about as many of them.

    The last few go to the parts with the fewest rows of all classes.
    """
    ascending = np.sort(filled)
    # As many parts as can be raised to the level of the next one.
    needed = np.arange(1, len(filled)) * ascending[1:] - np.cumsum(ascending[:-1])
    n_raised = 1 + int(np.searchsorted(needed, n_rows, side="right"))
    level = np.floor((ascending[:n_raised].sum() + n_rows) / n_raised)
    more: NDArray[np.int64] = np.maximum(level - filled, 0).astype(np.int64)
    order = np.lexsort((totals, np.maximum(filled, level)))
    left = n_rows - int(more.sum())
    more[order[:left]] += 1
    return more
