"""Statistics that encodings are fitted to: moments of numbers and counts of categories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding, OrdinalEncoding
from kernelmill.encoding.levels import FEWEST_LEVELS, MOST_LEVELS, sort_levels
from kernelmill.encoding.monotone import choose_transform
from kernelmill.errors import Doubt, Message, Remedy
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError
from kernelmill.io.limits import MOST_TEXT_BYTES

__all__ = ["CategoryCounts", "NumericMoments", "fewest_rows"]

_ENOUGH = 50  # rows, before a column is called doubtful
_OUTLYING = 1000.0  # times the range of 95 % of the values, before one is called doubtful
MOST_DISTINCT = 100_000  # strings that are counted before a column is called an identifier
MOST_CATEGORIES = 256  # that get a column each
MOST_RARE = 1000  # pooled ones that a model file lists
_MOST_ORDERS = 1000  # dictionaries of a column in order that are compared


class NumericMoments:
    """The mean and the standard deviation of a numeric column, computed block by block."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.missing = 0
        self.mean = 0.0
        self._squares = 0.0
        self._unit = (
            0.0  # of the mean and the deviations, so that squares neither overflow nor underflow
        )
        self.least, self.most = math.inf, -math.inf
        self.only_zero_one = True
        self._counts_up, self._first, self._previous = True, math.nan, math.nan
        self._has_values = False
        self._middle: Any = None  # quantiles of a sample

    def update(self, values: NDArray[np.float64]) -> None:
        """Add float64 values, of which NaN is missing; the others are finite."""
        if len(values) and not self._has_values:
            self._has_values, self._first = True, float(values[0])
        if self._counts_up and len(values):
            steps = np.diff(values)
            follows = math.isnan(self._previous) or values[0] == self._previous + 1
            self._counts_up = bool(follows and (steps == 1).all())
            self._previous = float(values[-1])
        present = values[~np.isnan(values)]
        self.missing += len(values) - len(present)
        if len(present) == 0:
            return
        self.least = min(self.least, float(present.min()))
        self.most = max(self.most, float(present.max()))
        if self.only_zero_one:
            self.only_zero_one = bool(((present == 0) | (present == 1)).all())
        self._change_unit(max(abs(self.least), abs(self.most)) or 1.0)
        scaled = present / self._unit
        mean = float(scaled.mean())
        self._add(mean, float(((scaled - mean) ** 2).sum()), len(scaled))

    def _change_unit(self, unit: float) -> None:
        if unit > self._unit:
            self.mean *= self._unit / unit
            self._squares *= (self._unit / unit) ** 2
            self._unit = unit

    def _add(self, mean: float, squares: float, n: int) -> None:
        """Add n values with a mean and a sum of squared deviations, in the same unit."""
        total = self.count + n
        shift = mean - self.mean
        self._squares += squares + shift * shift * self.count * n / total
        self.mean += shift * n / total
        self.count = total

    def merge(self, later: NumericMoments) -> None:
        """Add the moments of the rows that follow; `later` is changed.

        The mean and the standard deviation equal those of a single pass up to rounding; all other
        results are identical.
        """
        if later._has_values and self._has_values:
            follows = math.isnan(self._previous) or later._first == self._previous + 1
            self._counts_up = self._counts_up and later._counts_up and follows
        elif later._has_values:
            self._has_values, self._first = True, later._first
            self._counts_up = later._counts_up
        if later._has_values:
            self._previous = later._previous
        self.missing += later.missing
        self.least, self.most = min(self.least, later.least), max(self.most, later.most)
        self.only_zero_one = self.only_zero_one and later.only_zero_one
        if later.count:
            unit = max(self._unit, later._unit)
            self._change_unit(unit)
            later._change_unit(unit)
            self._add(later.mean, later._squares, later.count)

    def encoding(
        self,
        *,
        marks: bool,
        sample: NDArray[np.float64] | None = None,
        transform: str = "auto",
        n_knots: int = 64,
        target: NDArray[np.float64] | None = None,
    ) -> NumericEncoding:
        """Return the fitted encoding; columns that have only 0 and 1 are not scaled.

        `sample` contains values of the column, with NaN for missing ones. Without a sample, no
        transform is chosen; see `choose_transform`.
        """
        marks = marks and self.missing > 0 and self.count > 0
        if self.count == 0 or self.least == self.most:
            return NumericEncoding(self.name, self.least if self.count else 0.0, 0.0, marks)
        if self.only_zero_one:
            # As for categories: scaled, rare ones would be far from all other rows.
            return NumericEncoding(self.name, 0.0, 1.0, marks)
        deviation = self.deviation
        mean = self.mean * self._unit
        if not (math.isfinite(deviation) and math.isfinite(mean)) or deviation == 0:
            raise TableError(
                f"column {self.name!r} has values from {self.least:g} to {self.most:g}, which "
                "cannot be standardized in float64",
                "divide the column by a power of ten",
                Remedy("leave the column out", drop=[self.name]),
            )
        chosen = None
        if sample is not None:
            present = ~np.isnan(sample)
            chosen = choose_transform(
                sample[present],
                transform,
                least=self.least,
                most=self.most,
                n_knots=n_knots,
                target=None if target is None else target[present],
            )
            if present.any():
                self._middle = np.quantile(sample[present], [0.025, 0.5, 0.975])
        both = chosen is not None and not chosen.is_linear and transform == "auto"
        return NumericEncoding(self.name, mean, deviation, marks, chosen, both)

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 without values."""
        return math.sqrt(self._squares / self.count) * self._unit if self.count else 0.0

    def note(self, encoding: Any) -> Message | None:
        """A note for the user if the column looks like a row number, or has an extreme value."""
        if self._counts_up and self.count >= _ENOUGH and encoding.scale:
            return Doubt(
                f"Column {self.name!r} increases by one from row to row",
                Remedy("if it is a row number, leave it out", drop=[self.name]),
            )
        if self._middle is None or self.only_zero_one:
            return None
        low, middle, high = self._middle.tolist()
        farthest = max(self.least, self.most, key=lambda value: abs(value / 2 - middle / 2))
        if high > low and abs(farthest / 2 - middle / 2) > _OUTLYING * (high / 2 - low / 2):
            return Doubt(
                f"Column {self.name!r} has the value {plain.number(farthest)}, but 95 % of its "
                f"values are from {plain.number(low)} to {plain.number(high)}",
                "if it is an error, correct it or leave it empty",
            )
        return None

    def detail(self, encoding: NumericEncoding) -> str:
        """Return a short description for the user."""
        if not encoding.scale:
            return "constant: left out"
        if self.only_zero_one:
            return "0 or 1: not scaled"
        if encoding.transform is not None and encoding.transform.is_linear:
            ends = map(plain.number, encoding.transform.knots)
            return f"standardized, clipped to {' to '.join(ends)}"
        if encoding.transform is not None:
            low, median, high = map(plain.number, self._middle)
            also = "; also linear" if encoding.both else ""
            return f"normal scores of ranks, median {median}, 95 % from {low} to {high}{also}"
        return (
            f"mean {plain.number(encoding.mean)}, standard deviation {plain.number(encoding.scale)}"
        )


class CategoryCounts:
    """The categories of a column and the number of rows of each.

    Parameters
    ----------
    name : str
    ordered : bool, default=False
        Whether the dictionaries of the column are sorted by level.
    """

    def __init__(self, name: str, *, ordered: bool = False) -> None:
        self.name = name
        # The different dictionaries, if they are in order.
        self._orders: set[tuple[str, ...]] | None = set() if ordered else None
        self.count = 0
        self.missing = 0
        self.counts: Counter[str] = Counter()
        self._length = 0  # of all different strings, in characters

    def update(self, values: Any) -> None:
        """Add a dictionary array of strings."""
        missing = values.null_count
        self.missing += missing
        self.count += len(values) - missing
        indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
        found = np.bincount(indices, minlength=len(values.dictionary))
        for string, times in zip(values.dictionary.to_pylist(), found.tolist(), strict=True):
            if times and string is not None:
                self._length += 0 if string in self.counts else len(string)
                self.counts[string] += times
        self._check_distinct()
        if self._orders is not None and len(self._orders) < _MOST_ORDERS:
            levels = values.dictionary.to_pylist()
            self._orders.add(tuple(level for level in levels if level is not None))

    def merge(self, later: CategoryCounts) -> None:
        """Add the counts of the rows that follow."""
        self.missing += later.missing
        self.count += later.count
        self._length += sum(len(each) for each in later.counts if each not in self.counts)
        self.counts.update(later.counts)
        self._check_distinct()
        if self._orders is not None:
            self._orders |= later._orders or set()

    def _check_distinct(self) -> None:
        """Raise an error for strings that are too many, or too long, to be categories."""
        if len(self.counts) > MOST_DISTINCT or self._length > MOST_TEXT_BYTES:
            raise self._identifier_error()

    def _identifier_error(self) -> TableError:
        frequent = [string for string, _ in self.counts.most_common(3)]
        some = ", ".join(repr(each if len(each) <= 40 else f"{each[:37]}...") for each in frequent)
        is_long = self._length > MOST_TEXT_BYTES
        length = f", of {plain.count(self._length, 'character')} together" if is_long else ""
        return TableError(
            f"column {self.name!r} has {plain.count(len(self.counts))} different strings in "
            f"{plain.count(self.count, 'row')} ({some}, ...){length}: it appears to be an "
            "identifier or free text",
            Remedy("leave the column out", drop=[self.name]),
        )

    def encoding(self, *, marks: bool, ordinal: bool = False) -> CategoryEncoding | OrdinalEncoding:
        """Return the fitted encoding: frequent categories sorted by name, rare ones pooled.

        A column with a single category is left out. If `ordinal`, categories that have an order are
        encoded as one number.
        """
        if len(self.counts) > 1000 and 2 * len(self.counts) > self.count:
            raise self._identifier_error()
        if len(self.counts) <= 1:  # as of a constant number
            return CategoryEncoding(
                self.name,
                (),
                False,
                marks and self.missing > 0 and self.count > 0,
                tuple(self.counts),
            )
        if ordinal and (found := self._ordinal(marks and self.missing > 0)) is not None:
            return found
        least = fewest_rows(self.count)
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        kept = [string for string, times in ranked[:MOST_CATEGORIES] if times >= least]
        others = len(kept) < len(ranked)
        rare = sorted(self.counts.keys() - set(kept))
        return CategoryEncoding(
            self.name,
            tuple(sorted(kept)),
            others,
            marks and self.missing > 0,
            tuple(rare) if len(rare) <= MOST_RARE else (),
        )

    def _ordinal(self, marks: bool) -> OrdinalEncoding | None:
        """The encoding of levels that have an order: that of the file, or that of numbers."""
        levels = _find_order(self._orders or set())
        starts = None
        if not levels:
            levels, starts = sort_levels(self.counts) or ((), None)
        if len(self.counts) < FEWEST_LEVELS or not len(self.counts) <= len(levels) <= MOST_LEVELS:
            return None
        ranks, counts = np.arange(len(levels)), np.array([self.counts[each] for each in levels])
        mean = float((ranks * counts).sum() / self.count)
        scale = math.sqrt(((ranks - mean) ** 2 * counts).sum() / self.count)
        return OrdinalEncoding(self.name, levels, mean, scale, marks, starts)

    def note(self, encoding: Any) -> Message | None:
        """Return a note for the user if the categories have an order, or if most are rare."""
        if isinstance(encoding, OrdinalEncoding):
            return Message(
                f"Column {self.name!r} has {len(encoding.levels)} categories in order, from "
                f"{encoding.levels[0]!r} to {encoding.levels[-1]!r}, which are encoded as one "
                "number",
                Remedy("to one-hot encode them, do not transform columns", transform="none"),
            )
        kept = sum(self.counts[each] for each in encoding.categories)
        if len(self.counts) > 1 and self.count >= _ENOUGH and 2 * kept < self.count:
            some = ", ".join(repr(string) for string in list(self.counts)[:3])
            return Doubt(
                f"Most values of column {self.name!r} are rare categories ({some}, ...), which are "
                "pooled",
                "if the values are numbers, write them without units and spaces",
                Remedy("if the values are identifiers, leave the column out", drop=[self.name]),
            )
        return None

    def detail(self, encoding: CategoryEncoding | OrdinalEncoding) -> str:
        """Return a short description for the user."""
        if isinstance(encoding, OrdinalEncoding):
            levels = encoding.levels
            return f"{len(levels)} categories in order, {levels[0]} to {levels[-1]}"
        if len(self.counts) <= 1:
            return "constant: left out"
        pooled = len(self.counts) - len(encoding.categories)
        text = f"{len(self.counts)} categories"
        return text + (f", {pooled} rare pooled" if pooled else "")


def _find_order(orders: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest of some lists of levels, if it has those of all others in the same order."""
    longest = max(sorted(orders), key=len, default=())
    places = {level: place for place, level in enumerate(longest)}
    for order in orders:
        found = [places.get(level, -1) for level in order]
        if any(b <= a for a, b in pairwise([-1, *found])):
            return ()
    return longest


def fewest_rows(n_rows: int) -> int:
    """Return the number of rows that a category needs for a column: 2 of 100, 10 of 10,000 rows."""
    return max(2, min(10, n_rows // 200), n_rows // 10_000)
