"""The kinds of the columns of a text file, from its first rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from kernelmill.io.errors import TableError
from kernelmill.io.table import index_of_column, places_of
from kernelmill.io.table_file import Column
from kernelmill.io.text_values import (
    COMMA_NUMBER_PATTERN,
    DATE_PATTERN,
    DECIMAL_COMMA_PATTERN,
    NUMBER_PATTERN,
    WHOLE_NUMBER_PATTERN,
)

__all__ = ["detect_decimal", "detect_kinds", "given_kinds", "overridden_kinds"]

# A column with so many different values, of which such a share are numbers, is one of numbers: the
# others are faults, which the parser names.
_FEWEST_VALUES = 20
_SHARE_OF_NUMBERS = 0.95

_NUMBERS = {".": NUMBER_PATTERN, ",": COMMA_NUMBER_PATTERN}


def detect_kinds(
    sample: Any, decimal: str = ".", given: Collection[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """The kind of each column of a record batch of categories, and notes on doubtful ones.

    Of columns in `given`, the user told the kind: there is no doubt.
    """
    kinds: dict[str, str] = {}
    notes: list[str] = []
    for name, column in zip(sample.schema.names, sample.columns, strict=True):
        words = column.dictionary
        numbers = pc.match_substring_regex(words, _NUMBERS[decimal])
        n_numbers = _count(numbers)
        if n_numbers == len(words):  # also if all values are missing
            kinds[name] = "numeric"
            if len(words) == 0 and sample.num_rows > 0:
                notes.append(f"All values of column {name!r} that were looked at are missing.")
        elif _are_numbers(n_numbers, len(words)):
            kinds[name] = "numeric"
        elif pc.all(pc.match_substring_regex(words, DATE_PATTERN)).as_py():
            kinds[name] = "date"
        else:
            kinds[name] = "category"
            if name not in given:
                notes += _doubts(name, words, numbers, n_numbers)
    return kinds, notes


def _count(found: Any) -> int:
    return pc.sum(found).as_py() or 0


def _are_numbers(n_numbers: int, n_words: int) -> bool:
    """Whether so many numbers among different values make a column of numbers."""
    if n_numbers == n_words:
        return True
    return n_words >= _FEWEST_VALUES and n_numbers >= _SHARE_OF_NUMBERS * n_words


def _doubts(name: str, words: Any, numbers: Any, n_numbers: int) -> list[str]:
    others = words.filter(pc.invert(numbers))
    with_commas = pc.match_substring_regex(words, DECIMAL_COMMA_PATTERN)
    if pc.any(with_commas).as_py() and _are_numbers(
        _count(pc.match_substring_regex(words, COMMA_NUMBER_PATTERN)), len(words)
    ):
        return [
            f"Column {name!r} is read as categories: its values, such as "
            f"{words.filter(with_commas)[0].as_py()!r}, have decimal commas; write points to have "
            "numbers."
        ]
    if n_numbers >= 20 and len(others) <= max(5, n_numbers // 20):
        return [
            f"Column {name!r} is read as categories: most of its values are numbers, but "
            f"{others[0].as_py()[:40]!r} is not; if it means a missing value, leave it empty."
        ]
    return []


def detect_decimal(sample: Any, left_out: Collection[str]) -> str:
    """The decimal point of a record batch of categories.

    It is a comma if there are columns of numbers with commas, and none of numbers with points.
    Columns in `left_out` do not count.
    """
    commas = False
    for name, column in zip(sample.schema.names, sample.columns, strict=True):
        words = column.dictionary
        if name in left_out or len(words) == 0:
            continue
        if _count(pc.match_substring_regex(words, WHOLE_NUMBER_PATTERN)) == len(words):
            continue
        if _are_numbers(_count(pc.match_substring_regex(words, NUMBER_PATTERN)), len(words)):
            if pc.any(pc.match_substring(words, ".")).as_py():
                return "."
        elif pc.any(pc.match_substring_regex(words, DECIMAL_COMMA_PATTERN)).as_py():
            numbers = pc.match_substring_regex(words, COMMA_NUMBER_PATTERN)
            commas = commas or _are_numbers(_count(numbers), len(words))
    return "," if commas else "."


def given_kinds(
    names: Sequence[str],
    categorical: Sequence[str | int],
    numeric: Sequence[str | int],
    source: str,
) -> dict[str, str]:
    """The kinds that the user gives, by the names of columns."""
    by_name = places_of(names)
    places = {
        kind: {index_of_column(each, by_name, None, source) for each in given}
        for kind, given in (("category", categorical), ("numeric", numeric))
    }
    both = sorted(places["category"] & places["numeric"])
    if both:
        raise TableError(
            f"column {names[both[0]]!r} must be in categorical or in numeric, got it in both."
        )
    return {names[place]: kind for kind, each in places.items() for place in each}


def overridden_kinds(kinds: Mapping[str, str], given: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns, with the kinds that the user gives."""
    return tuple(Column(name, given.get(name, kind)) for name, kind in kinds.items())
