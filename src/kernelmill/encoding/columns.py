"""Encodings of single table columns as numeric columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.levels import FEWEST_LEVELS, find_number
from kernelmill.encoding.monotone import MonotoneTransform
from kernelmill.errors import Remedy
from kernelmill.files.fields import ADDED, Stored
from kernelmill.files.kinds import Float, ListOf, Text
from kernelmill.io.errors import TableError

__all__ = [
    "CategoryEncoding",
    "ColumnEncoding",
    "NumericEncoding",
    "OrdinalEncoding",
    "add_spellings",
    "category_values",
    "numeric_values",
]

_FARTHEST = 10.0  # standard deviations, of columns that are also encoded by a transform


class ColumnEncoding(Stored, ABC):
    """The encoding of a table column as numeric columns."""

    name: str

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of encoded columns."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the encoded columns."""

    @abstractmethod
    def groups(self) -> list[tuple[str, int]]:
        """Return the name and the number of encoded columns of each group, in order."""

    @abstractmethod
    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a column into `out` of shape (n_rows, n_columns), which holds zeros."""


@dataclass(frozen=True)
class NumericEncoding(ColumnEncoding):
    """(x - mean) / scale, or t(x); a missing x becomes 0, and 1 in a further column if `marks`.

    The mean and the scale are those of the column, even if it has a `transform` t, whose mean is 0
    and whose variance is 1. If `both`, t(x) is followed by (x - mean) / scale, clipped to ±10:
    learned length scales then determine which one is relevant.
    """

    name: str
    mean: Annotated[float, Float()]
    scale: Annotated[float, Float(low=0)]  # 0 if the column is constant and left out
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
        """Each column is a group: distances of numbers say nothing about missing values."""
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

    Without a column for other categories, a category that did not occur in training is encoded as
    zeros. `rare` contains the pooled categories; it is empty if there are more than 1000 of them.
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
        """Names such as "town = Rome"."""
        return (
            [f"{self.name} = {category}" for category in self.categories]
            + [f"{self.name} is other"] * self.others
            + [f"{self.name} is missing"] * self.marks
        )

    def groups(self) -> list[tuple[str, int]]:
        """One group of all columns."""
        return [(self.name, self.n_columns)] if self.n_columns else []

    def count_unseen(self, values: Any) -> Counter[str]:
        """Return the categories that did not occur in training; none if that is not known."""
        if self.others and not self.rare:
            return Counter()
        return _count_others(values, {*add_spellings(self.categories), *self.rare})

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode a dictionary array of strings."""
        positions = self.positions(values)
        rows = np.flatnonzero(positions >= 0)
        out[rows, positions[rows]] = 1

    def positions(self, values: Any) -> NDArray[np.int64]:
        """Return the encoded column that is 1 for each value; -1 if none is."""
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

    If the levels represent numbers, `starts` contains the smallest number of each level, and a
    level that did not occur in training gets the rank of the level that includes its number.
    Otherwise it is encoded as 0.
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
        """Return the name of the column, and that of the marks."""
        return [self.name] + [f"{self.name} is missing"] * self.marks

    def groups(self) -> list[tuple[str, int]]:
        """Return the groups of a numeric column."""
        return [(name, 1) for name in self.names()]

    def count_unseen(self, values: Any) -> Counter[str]:
        """Return the levels that did not occur in training."""
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
    """Return the position of each category, and that of the other spellings of false and true.

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
    """Return the counts of the strings of a dictionary array that are not known."""
    strings = values.dictionary.to_pylist()
    new = {place: string for place, string in enumerate(strings) if string not in known}
    if not new:
        return Counter()
    indices = values.indices.drop_null().to_numpy(zero_copy_only=False)
    found = np.bincount(indices, minlength=len(strings))
    return Counter(
        {string: int(found[place]) for place, string in new.items() if string and found[place]}
    )


def numeric_values(column: Any, name: str, first_row: int, file: Any) -> NDArray[np.float64]:
    """Convert a numeric column to float64, with NaN for missing values; infinity is an error."""
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise TableError(
            f"{file}: column {name!r} must hold numbers, as in training, got {column.type}",
            "convert it to numbers",
        )
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise TableError(
            f"{file}: column {name!r} is {values[row]} in row {first_row + row + 1}",
            "replace it with a number",
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
