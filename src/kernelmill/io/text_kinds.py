"""The kinds of the columns of a text file, from its first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from kernelmill.io.errors import TableError
from kernelmill.io.table import index_of_column
from kernelmill.io.table_file import Column
from kernelmill.io.text_values import DATE_PATTERN, NUMBER_PATTERN

__all__ = ["detect_kinds", "overridden_kinds"]

_DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"


def detect_kinds(sample: Any) -> tuple[dict[str, str], list[str]]:
    """The kind of each column of a record batch of categories, and notes on doubtful ones."""
    kinds: dict[str, str] = {}
    notes: list[str] = []
    for name, column in zip(sample.schema.names, sample.columns, strict=True):
        words = column.dictionary
        numbers = pc.match_substring_regex(words, NUMBER_PATTERN)
        n_numbers = pc.sum(numbers).as_py() or 0
        if n_numbers == len(words):  # also if all values are missing
            kinds[name] = "numeric"
            if len(words) == 0 and sample.num_rows > 0:
                notes.append(f"All values of column {name!r} that were looked at are missing.")
        elif pc.all(pc.match_substring_regex(words, DATE_PATTERN)).as_py():
            kinds[name] = "date"
        else:
            kinds[name] = "category"
            notes += _doubts(name, words, numbers, n_numbers)
    return kinds, notes


def _doubts(name: str, words: Any, numbers: Any, n_numbers: int) -> list[str]:
    others = words.filter(pc.invert(numbers))
    if pc.all(pc.match_substring_regex(words, _DECIMAL_COMMA)).as_py():
        return [
            f"Column {name!r} is read as categories: its values, such as {words[0].as_py()!r}, "
            "have decimal commas; write points to have numbers."
        ]
    if n_numbers >= 20 and len(others) <= max(5, n_numbers // 20):
        return [
            f"Column {name!r} is read as categories: most of its values are numbers, but "
            f"{others[0].as_py()[:40]!r} is not; if it means a missing value, leave it empty."
        ]
    return []


def overridden_kinds(
    kinds: dict[str, str],
    categorical: Sequence[str | int],
    numeric: Sequence[str | int],
    source: str,
) -> tuple[Column, ...]:
    """The columns, with the kinds that the user gives."""
    names = list(kinds)
    places = {
        kind: {index_of_column(each, names, None, source) for each in given}
        for kind, given in (("category", categorical), ("numeric", numeric))
    }
    both = sorted(places["category"] & places["numeric"])
    if both:
        raise TableError(
            f"column {names[both[0]]!r} must be in categorical or in numeric, got it in both."
        )
    given = {place: kind for kind, each in places.items() for place in each}
    return tuple(
        Column(name, given.get(place, kind)) for place, (name, kind) in enumerate(kinds.items())
    )
