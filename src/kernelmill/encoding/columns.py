"""The encoding of one column of a table, fitted and applied block by block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.levels import FEWEST_LEVELS, MOST_LEVELS, find_number, sort_levels
from kernelmill.encoding.monotone import MonotoneTransform, choose_transform
from kernelmill.errors import Doubt, Message, Remedy
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError
from kernelmill.storage.fields import ADDED, Stored
from kernelmill.storage.kinds import Float, ListOf, Text

__all__ = [
    "CategoryCounts",
    "CategoryEncoding",
    "ColumnEncoding",
    "NumericEncoding",
    "NumericMoments",
    "OrdinalEncoding",
    "add_spellings",
    "category_values",
    "fewest_rows",
    "numeric_values",
]

_FARTHEST = 10.0  # standard deviations, of columns that are also encoded by a transform
_ENOUGH = 50  # rows, before a column is called doubtful
_OUTLYING = 1000.0  # times the range of 95 % of the values, before one is called doubtful
MOST_DISTINCT = 100_000  # strings that are counted before a column is called an identifier
MOST_CATEGORIES = 256  # that get a column each
MOST_RARE = 1000  # pooled ones that a model file lists
_MOST_ORDERS = 1000  # dictionaries of a column in order that are compared


class ColumnEncoding(Stored, ABC):
    """How the values of a column become columns of numbers."""

    name: str

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of encoded columns."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the encoded columns."""

    @abstractmethod
    def groups(self) -> list[tuple[str, int]]:
        """The name and the number of encoded columns of each group, in order."""

    @abstractmethod
    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a column into `out` of shape (n_rows, n_columns), which holds zeros."""


@dataclass(frozen=True)
class NumericEncoding(ColumnEncoding):
    """(x - mean) / scale, or t(x); a missing x becomes 0, and 1 in a further column if `marks`.

    The mean and the scale are those of the column, also if it has a `transform` t, whose mean is 0
    and whose variance is 1. If `both`, t(x) is followed by (x - mean) / scale, cut at ±10: learned
    length scales then tell which of them matters.
    """

    name: str
    mean: Annotated[float, Float()]
    scale: Annotated[float, Float(low=0)]  # 0: the column is constant and left out
    marks: bool = False
    transform: MonotoneTransform | None = field(default=None, metadata=ADDED)
    both: bool = field(default=False, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.transform is not None and self.scale == 0:
            raise ValueError("a constant column must not have a transform")
        if self.both and self.transform is None:
            raise ValueError("a column without a transform cannot have both encodings")

    @property
    def n_columns(self) -> int:
        """One, none for a constant, two for both encodings, and one more with marks."""
        return (self.scale != 0) + self.both + self.marks

    def names(self) -> list[str]:
        """The name of the column, of its linear encoding if there are both, and of the marks."""
        return (
            ([self.name] if self.scale else [])
            + [f"{self.name} (linear)"] * self.both
            + [f"{self.name} is missing"] * self.marks
        )

    def groups(self) -> list[tuple[str, int]]:
        """Each column by itself: how far numbers are apart says nothing about missing ones."""
        return [(name, 1) for name in self.names()]

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode float64 values, of which NaN is missing."""
        missing = np.isnan(values)
        if self.transform is not None:
            out[:, 0] = np.where(missing, 0.0, self.transform.apply(values))
        if self.scale and (self.transform is None or self.both):
            # Halves, so that the difference of the largest numbers does not overflow.
            scaled = (values / 2 - self.mean / 2) / (self.scale / 2)
            scaled[missing] = 0.0
            if self.both:
                np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)
            out[:, int(self.both)] = scaled
        if self.marks:
            out[:, -1] = missing


@dataclass(frozen=True)
class CategoryEncoding(ColumnEncoding):
    """One column of 0 and 1 for each category, one for all others, one for missing values.

    Without a column for others, a category that did not occur in training is a row of zeros. `rare`
    has the categories that are pooled as others; it is empty if there are more than 1000 of them.
    """

    name: str
    categories: Annotated[tuple[str, ...], ListOf(Text())]
    others: bool = False
    marks: bool = False
    rare: Annotated[tuple[str, ...], ListOf(Text())] = field(default=(), metadata=ADDED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        object.__setattr__(self, "rare", tuple(self.rare))
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("categories must be different strings, got one of them twice")

    @property
    def n_columns(self) -> int:
        """The number of categories, and one each for others and missing values."""
        return len(self.categories) + self.others + self.marks

    def names(self) -> list[str]:
        """Such as "town = Rome"."""
        return (
            [f"{self.name} = {category}" for category in self.categories]
            + [f"{self.name} is another"] * self.others
            + [f"{self.name} is missing"] * self.marks
        )

    def groups(self) -> list[tuple[str, int]]:
        """One of all columns."""
        return [(self.name, self.n_columns)] if self.n_columns else []

    def count_unseen(self, values: Any) -> Counter[str]:
        """The categories that did not occur in training; none if that is not known."""
        if self.others and not self.rare:
            return Counter()
        return _count_others(values, {*add_spellings(self.categories), *self.rare})

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a dictionary array of strings."""
        positions = self.positions(values)
        rows = np.flatnonzero(positions >= 0)
        out[rows, positions[rows]] = 1

    def positions(self, values: Any) -> NDArray[np.int64]:
        """The encoded column that is 1 for each value; -1 if none is."""
        known = add_spellings(self.categories)
        unknown = len(self.categories) if self.others else -1
        of_null = self.n_columns - 1 if self.marks else unknown
        lookup = [known.get(string, unknown) for string in values.dictionary.to_pylist()]
        indices = values.indices.fill_null(len(lookup)).to_numpy(zero_copy_only=False)
        positions: NDArray[np.int64] = np.array([*lookup, of_null], dtype=np.int64)[indices]
        return positions


@dataclass(frozen=True)
class OrdinalEncoding(ColumnEncoding):
    """(rank - mean) / scale of the levels, in order; a missing level is encoded as a number is.

    If the levels name numbers, `starts` has the smallest of each, and a level that did not occur in
    training gets the rank of the one that includes its number. Otherwise it becomes 0.
    """

    name: str
    levels: Annotated[tuple[str, ...], ListOf(Text(), FEWEST_LEVELS)]
    mean: Annotated[float, Float()]
    scale: Annotated[float, Float(above=0)]
    marks: bool = False
    starts: Annotated[tuple[float, ...] | None, ListOf(Float())] = field(
        default=None, metadata=ADDED
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(set(self.levels)) != len(self.levels):
            raise ValueError("levels must be different strings, got one of them twice")
        if self.starts is not None:
            object.__setattr__(self, "starts", tuple(self.starts))
            if len(self.starts) != len(self.levels):
                raise ValueError(f"there must be a start for each of {len(self.levels)} levels")
            if any(b <= a for a, b in pairwise(self.starts)):
                raise ValueError("the starts of levels must be increasing")

    @property
    def n_columns(self) -> int:
        """One, and one more with marks."""
        return 1 + self.marks

    def names(self) -> list[str]:
        """The name of the column, and that of the marks."""
        return [self.name] + [f"{self.name} is missing"] * self.marks

    def groups(self) -> list[tuple[str, int]]:
        """As of a number."""
        return [(name, 1) for name in self.names()]

    def count_unseen(self, values: Any) -> Counter[str]:
        """The levels that did not occur in training."""
        return _count_others(values, set(self.levels))

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a dictionary array of strings."""
        known = {level: float(rank) for rank, level in enumerate(self.levels)}
        ranks = [
            known[string] if string in known else self._find_rank(string)
            for string in values.dictionary.to_pylist()
        ]
        indices = values.indices.fill_null(len(ranks)).to_numpy(zero_copy_only=False)
        scaled = (np.array([*ranks, self.mean]) - self.mean) / self.scale
        out[:, 0] = scaled[indices]
        if self.marks:
            out[:, 1] = indices == len(ranks)

    def _find_rank(self, string: str | None) -> float:
        number = None if string is None else find_number(string)
        if self.starts is None or number is None:
            return self.mean
        return float(max(0, int(np.searchsorted(self.starts, number, side="right")) - 1))


_BOOLEANS = (("false", "False", "FALSE"), ("true", "True", "TRUE"))


def add_spellings(categories: Iterable[str]) -> dict[str, int]:
    """The position of each category, and that of the other spellings of false and true.

    Text files have "True", and booleans of Parquet files and data frames become "true".

    Examples
    --------
    >>> from kernelmill.encoding.columns import add_spellings
    >>> add_spellings(["False", "red"])
    {'False': 0, 'red': 1, 'false': 0, 'FALSE': 0}
    """
    positions = {category: position for position, category in enumerate(categories)}
    for spellings in _BOOLEANS:
        known = [positions[each] for each in spellings if each in positions]
        if len(known) == 1:
            positions = {**positions, **dict.fromkeys(spellings, known[0])}
    return positions


def _count_others(values: Any, known: set[str]) -> Counter[str]:
    """How often each string of a dictionary array occurs that is not known."""
    strings = values.dictionary.to_pylist()
    new = {place: string for place, string in enumerate(strings) if string not in known}
    if not new:
        return Counter()
    indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
    found = np.bincount(indices, minlength=len(strings))
    return Counter(
        {string: int(found[place]) for place, string in new.items() if string and found[place]}
    )


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
        """Add what another one learned from the rows that follow, which is changed.

        The mean and the deviation are those of one pass to rounding, all else is the same.
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

        `sample` has values of the column, of which NaN is missing. Without it there is no
        transform; see `choose_transform`.
        """
        marks = marks and self.missing > 0
        if self.count == 0 or self.least == self.most:
            return NumericEncoding(self.name, self.least if self.count else 0.0, 0.0, marks)
        if self.only_zero_one:
            # As for categories: scaled, rare ones would be far from all other rows.
            return NumericEncoding(self.name, 0.0, 1.0, marks)
        deviation = math.sqrt(self._squares / self.count) * self._unit
        mean = self.mean * self._unit
        if not (math.isfinite(deviation) and math.isfinite(mean)) or deviation == 0:
            raise TableError(
                f"column {self.name!r} has values from {self.least:g} to {self.most:g}, which "
                "float64 cannot standardize",
                "divide it by a power of ten",
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

    def note(self, encoding: Any) -> Message | None:
        """A note for the user if the column looks like a row number, or has a value far outside."""
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
                f"Column {self.name!r} has a value of {plain.number(farthest)}, though 95 % are "
                f"from {plain.number(low)} to {plain.number(high)}",
                "if it is an error, correct it or leave it empty",
            )
        return None

    def detail(self, encoding: NumericEncoding) -> str:
        """A short description for the user."""
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
            return f"rank to normal, median {median}, 95 % from {low} to {high}{also}"
        return f"mean {encoding.mean:.4g}, deviation {encoding.scale:.4g}"


class CategoryCounts:
    """The categories of a column and the number of rows of each.

    Parameters
    ----------
    name : str
    ordered : bool, default=False
        Whether the dictionaries of the column are in the order of its levels.
    """

    def __init__(self, name: str, *, ordered: bool = False) -> None:
        self.name = name
        # The different dictionaries, if they are in order.
        self._orders: set[tuple[str, ...]] | None = set() if ordered else None
        self.count = 0
        self.missing = 0
        self.counts: Counter[str] = Counter()

    def update(self, values: Any) -> None:
        """Add a dictionary array of strings."""
        missing = values.null_count
        self.missing += missing
        self.count += len(values) - missing
        indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
        found = np.bincount(indices, minlength=len(values.dictionary))
        for string, times in zip(values.dictionary.to_pylist(), found.tolist(), strict=True):
            if times and string is not None:
                self.counts[string] += times
        if len(self.counts) > MOST_DISTINCT:
            raise self._identifier_error()
        if self._orders is not None and len(self._orders) < _MOST_ORDERS:
            levels = values.dictionary.to_pylist()
            self._orders.add(tuple(level for level in levels if level is not None))

    def merge(self, later: CategoryCounts) -> None:
        """Add the counts of the rows that follow."""
        self.missing += later.missing
        self.count += later.count
        self.counts.update(later.counts)
        if len(self.counts) > MOST_DISTINCT:
            raise self._identifier_error()
        if self._orders is not None:
            self._orders |= later._orders or set()

    def _identifier_error(self) -> TableError:
        some = ", ".join(repr(string) for string, _ in self.counts.most_common(3))
        return TableError(
            f"column {self.name!r} has {len(self.counts):,} different strings in {self.count:,} "
            f"rows ({some}, ...): it looks like an identifier or free text",
            Remedy("leave the column out", drop=[self.name]),
        )

    def encoding(self, *, marks: bool, ordinal: bool = False) -> CategoryEncoding | OrdinalEncoding:
        """Return the fitted encoding: frequent categories sorted by name, rare ones pooled.

        If `ordinal`, categories that have an order become one number.
        """
        if len(self.counts) > 1000 and 2 * len(self.counts) > self.count:
            raise self._identifier_error()
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
        """A note for the user if the categories have an order, or if most are rare."""
        if isinstance(encoding, OrdinalEncoding):
            return Message(
                f"Column {self.name!r} has {len(encoding.levels)} categories in order, from "
                f"{encoding.levels[0]!r} to {encoding.levels[-1]!r}, which become one number",
                Remedy("to encode each by itself, transform nothing", transform="none"),
            )
        kept = sum(self.counts[each] for each in encoding.categories)
        if self.count >= _ENOUGH and 2 * kept < self.count:
            some = ", ".join(repr(string) for string in list(self.counts)[:3])
            return Doubt(
                f"Most values of column {self.name!r} are rare categories ({some}, ...), which are "
                "pooled",
                "if they are numbers, write them without signs such as % and spaces",
                Remedy("if they are identifiers, leave the column out", drop=[self.name]),
            )
        return None

    def detail(self, encoding: CategoryEncoding | OrdinalEncoding) -> str:
        """A short description for the user."""
        if isinstance(encoding, OrdinalEncoding):
            levels = encoding.levels
            return f"{len(levels)} categories in order, {levels[0]} to {levels[-1]}"
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
    """The number of rows that a category needs for a column: 2 of 100, 10 of 10,000 rows."""
    return max(2, min(10, n_rows // 200), n_rows // 10_000)


def numeric_values(column: Any, name: str, first_row: int, file: Any) -> NDArray[np.float64]:
    """Convert a numeric column to float64, with NaN for missing values; infinity is an error."""
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise TableError(
            f"{file}: column {name!r} must hold numbers, as in training, got {column.type}",
            "convert it",
        )
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise TableError(
            f"{file}: column {name!r} is {values[row]} in row {first_row + row + 1}",
            "replace it by a number",
            Remedy("leave the value empty and impute missing values", missing="impute"),
        )
    result: NDArray[np.float64] = values
    return result


def category_values(column: Any) -> Any:
    """Convert a column to a dictionary array of strings; numbers are written as strings."""
    if pa.types.is_dictionary(column.type):
        if not pa.types.is_string(column.type.value_type):
            column = column.dictionary_decode()
        else:
            return column
    if pa.types.is_floating(column.type):
        integers = column.cast(pa.int64(), safe=False)
        if integers.cast(column.type).equals(column):
            column = integers
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode()
