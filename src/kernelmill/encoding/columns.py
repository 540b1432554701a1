"""The encoding of one column of a table, fitted and applied block by block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.io.errors import TableError

__all__ = [
    "CategoryCounts",
    "CategoryEncoding",
    "ColumnEncoding",
    "NumericEncoding",
    "NumericMoments",
]

_ENOUGH = 50  # rows to have doubts
MOST_DISTINCT = 100_000  # texts that are counted before a column is called an identifier
MOST_CATEGORIES = 256  # that get a column of their own


class ColumnEncoding(ABC):
    """How the values of a column become some columns of numbers."""

    name: str

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Columns of the encoded rows."""

    @abstractmethod
    def names(self) -> list[str]:
        """The name of each of them."""

    @abstractmethod
    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a column into `out` of shape (n_rows, n_columns), which holds zeros."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The encoding as JSON."""


@dataclass(frozen=True)
class NumericEncoding(ColumnEncoding):
    """(x - mean) / scale; a missing x is the mean, and is marked in a second column if `marks`."""

    name: str
    mean: float
    scale: float  # 0: the column is constant and left out
    marks: bool = False

    @property
    def n_columns(self) -> int:
        """One, one more with marks, none for a constant."""
        return (self.scale != 0) + self.marks

    def names(self) -> list[str]:
        """The column's name, and that of the marks."""
        return ([self.name] if self.scale else []) + ([f"{self.name} is missing"] * self.marks)

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode float64 values with NaN where there is none."""
        missing = np.isnan(values)
        if self.scale:
            # Halves, so that not even the largest numbers overflow.
            scaled = (values / 2 - self.mean / 2) / (self.scale / 2)
            scaled[missing] = 0.0
            out[:, 0] = scaled
        if self.marks:
            out[:, -1] = missing

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": "numeric",
            "name": self.name,
            "mean": self.mean,
            "scale": self.scale,
            "marks": self.marks,
        }


@dataclass(frozen=True)
class CategoryEncoding(ColumnEncoding):
    """One column of 0 and 1 for each category, one for all others, one for missing values.

    Without a column for others, a category that was not there in training is a row of zeros.
    """

    name: str
    categories: tuple[str, ...]
    others: bool = False
    marks: bool = False

    @property
    def n_columns(self) -> int:
        """As many as categories, and those of others and missing ones."""
        return len(self.categories) + self.others + self.marks

    def names(self) -> list[str]:
        """Name = category."""
        return (
            [f"{self.name} = {category}" for category in self.categories]
            + [f"{self.name} is another"] * self.others
            + [f"{self.name} is missing"] * self.marks
        )

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a dictionary array of strings."""
        positions = self.positions(values)
        rows = np.flatnonzero(positions >= 0)
        out[rows, positions[rows]] = 1

    def positions(self, values: Any) -> NDArray[np.int64]:
        """Which of its columns is 1 for each value; -1 where none is."""
        known = {category: place for place, category in enumerate(self.categories)}
        unknown = len(self.categories) if self.others else -1
        of_null = self.n_columns - 1 if self.marks else unknown
        lookup = [known.get(text, unknown) for text in values.dictionary.to_pylist()]
        indices = values.indices.fill_null(len(lookup)).to_numpy(zero_copy_only=False)
        positions: NDArray[np.int64] = np.array([*lookup, of_null], dtype=np.int64)[indices]
        return positions

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": "category",
            "name": self.name,
            "categories": list(self.categories),
            "others": self.others,
            "marks": self.marks,
        }


class NumericMoments:
    """Mean and deviation of a numeric column, merged block by block."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.missing = 0
        self.mean = 0.0
        self._squares = 0.0
        self._unit = 0.0  # of the mean and the deviations: squares neither overflow nor vanish
        self.least, self.most = math.inf, -math.inf
        self.only_zero_one = True
        self._counts_up, self._previous = True, math.nan

    def update(self, values: NDArray[np.float64]) -> None:
        """Take in float64 values with NaN where there is none; the others are finite."""
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
        unit = max(abs(self.least), abs(self.most)) or 1.0
        if unit > self._unit:
            self.mean *= self._unit / unit
            self._squares *= (self._unit / unit) ** 2
            self._unit = unit
        scaled = present / self._unit
        mean, n = float(scaled.mean()), len(scaled)
        total = self.count + n
        shift = mean - self.mean
        self._squares += (
            float(((scaled - mean) ** 2).sum()) + shift * shift * self.count * n / total
        )
        self.mean += shift * n / total
        self.count = total

    def encoding(self, *, marks: bool) -> NumericEncoding:
        """The encoding learnt; columns of nothing but 0 and 1 stay as they are."""
        marks = marks and self.missing > 0
        if self.count == 0 or self.least == self.most:
            return NumericEncoding(self.name, self.least if self.count else 0.0, 0.0, marks)
        if self.only_zero_one:
            # As categories are encoded: rare ones would otherwise be far from all other rows.
            return NumericEncoding(self.name, 0.0, 1.0, marks)
        deviation = math.sqrt(self._squares / self.count) * self._unit
        mean = self.mean * self._unit
        if not (math.isfinite(deviation) and math.isfinite(mean)) or deviation == 0:
            raise TableError(
                f"column {self.name!r} has values from {self.least:g} to {self.most:g}, which "
                "float64 cannot standardize; divide it by a power of ten, or drop the column."
            )
        return NumericEncoding(self.name, mean, deviation, marks)

    def note(self, encoding: Any) -> str | None:
        """What the user may want to change."""
        if self._counts_up and self.count >= _ENOUGH and encoding.scale:
            return (
                f"Column {self.name!r} counts up by one from row to row: a row number? To leave it "
                f"out, say drop=[{self.name!r}] (--drop {self.name})."
            )
        return None

    def detail(self, encoding: NumericEncoding) -> str:
        """What was found, for people."""
        if not encoding.scale:
            return "constant: left out"
        if self.only_zero_one:
            return "0 or 1: kept as it is"
        return f"mean {encoding.mean:.4g}, deviation {encoding.scale:.4g}"


class CategoryCounts:
    """The categories of a column and how often each is there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.missing = 0
        self.counts: Counter[str] = Counter()

    def update(self, values: Any) -> None:
        """Take in a dictionary array of strings."""
        missing = values.null_count
        self.missing += missing
        self.count += len(values) - missing
        indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
        found = np.bincount(indices, minlength=len(values.dictionary))
        for text, times in zip(values.dictionary.to_pylist(), found.tolist(), strict=True):
            if times and text is not None:
                self.counts[text] += times
        if len(self.counts) > MOST_DISTINCT:
            self._refuse()

    def _refuse(self) -> None:
        some = ", ".join(repr(text) for text, _ in self.counts.most_common(3))
        raise TableError(
            f"column {self.name!r} has {len(self.counts):,} different texts in {self.count:,} rows "
            f"({some}, ...): an identifier or free text, from which nothing can be learnt as "
            f"categories; leave it out: drop=[{self.name!r}] (--drop {self.name})."
        )

    def encoding(self, *, marks: bool) -> CategoryEncoding:
        """The encoding learnt: frequent categories in order of their names, rare ones pooled."""
        if len(self.counts) > 1000 and 2 * len(self.counts) > self.count:
            self._refuse()
        least = fewest_rows(self.count)
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        kept = [text for text, times in ranked[:MOST_CATEGORIES] if times >= least]
        others = len(kept) < len(ranked)
        return CategoryEncoding(self.name, tuple(sorted(kept)), others, marks and self.missing > 0)

    def note(self, encoding: Any) -> str | None:
        """What the user may want to change."""
        kept = sum(self.counts[each] for each in encoding.categories)
        if self.count >= _ENOUGH and 2 * kept < self.count:
            some = ", ".join(repr(text) for text in list(self.counts)[:3])
            return (
                f"Most values of column {self.name!r} are rare categories ({some}, ...) and were "
                "pooled. If they are numbers, write them without signs such as % and spaces; if "
                f"they are identifiers, say drop=[{self.name!r}] (--drop {self.name})."
            )
        return None

    def detail(self, encoding: CategoryEncoding) -> str:
        """What was found, for people."""
        pooled = len(self.counts) - len(encoding.categories)
        text = f"{len(self.counts)} categories"
        return text + (f", {pooled} rare pooled" if pooled else "")


def fewest_rows(n_rows: int) -> int:
    """How many rows a category must have for a column of its own: 2 of 100, 10 of 10,000 rows."""
    return max(2, min(10, n_rows // 200), n_rows // 10_000)


def numeric_values(column: Any, name: str, first_row: int, file: Any) -> NDArray[np.float64]:
    """A numeric column as float64 with NaN where there is none; infinite values are refused."""
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise TableError(
            f"{file}: column {name!r} must hold numbers, as in training, got {column.type}; "
            "convert it."
        )
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise TableError(
            f"{file}: column {name!r} is {values[row]} in row {first_row + row + 1}; replace it "
            "by a number, or by nothing and set missing='impute' (--missing impute)."
        )
    result: NDArray[np.float64] = values
    return result


def category_values(column: Any) -> Any:
    """A column as a dictionary array of strings; numbers become texts."""
    if pa.types.is_dictionary(column.type):
        if not pa.types.is_string(column.type.value_type):
            column = column.dictionary_decode()
        else:
            return column
    if pa.types.is_floating(column.type):
        whole = column.cast(pa.int64(), safe=False)
        if whole.cast(column.type).equals(column):
            column = whole
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode()
