"""Delimiter, header and column names, detected from the first lines of a text file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelmill.errors import ArgumentError, Message
from kernelmill.io.limits import check_n_columns
from kernelmill.io.table_file import make_unique
from kernelmill.io.text.amounts import is_amount
from kernelmill.io.text.records import (
    MISSING_MARKERS,
    Record,
    is_date,
    is_number,
    split_records,
)

__all__ = [
    "WHITESPACE",
    "Dialect",
    "detect_dialect",
    "first_records",
    "squeeze_spaces",
]

WHITESPACE = "whitespace"

_DELIMITER_NAMES = {
    "\t": "a tab",
    ";": "a semicolon",
    "|": "a bar",
    ",": "a comma",
    WHITESPACE: "whitespace",
}
_SPELLINGS = {
    "\\t": "\t",
    "tab": "\t",
    "comma": ",",
    "semicolon": ";",
    "bar": "|",
    "pipe": "|",
    " ": WHITESPACE,
    "space": WHITESPACE,
}
_RECORDS_SNIFFED = 200

_RUNS = re.compile(rb"[ \t]+")
_LINE_ENDS = re.compile(rb" ?(\r\n|\n|\r) ?")


@dataclass(frozen=True)
class Dialect:
    """The delimiter of a text file and the names of its columns."""

    delimiter: str  # one character, or WHITESPACE
    header: bool
    names: tuple[str, ...]
    decimal: str = "."  # in numbers: "." or ","
    notes: list[Message | str] = field(default_factory=list)
    unnamed_last: bool = False  # the header has no name for the last column

    @property
    def quotes(self) -> bool:
        """Whether values may be quoted."""
        return self.delimiter != WHITESPACE

    @property
    def separator(self) -> str:
        """The character between values, after `squeeze_spaces` if the delimiter is whitespace."""
        return " " if self.delimiter == WHITESPACE else self.delimiter


def squeeze_spaces(data: bytes) -> bytes:
    """Replace runs of spaces and tabs by one space, and remove them at the ends of lines."""
    return _LINE_ENDS.sub(rb"\1", _RUNS.sub(b" ", data).strip(b" "))


def first_records(text: str, delimiter: str, first_line: int) -> list[Record]:
    """Return the first records of a text, without lines that have only spaces."""
    quotes = delimiter != WHITESPACE
    if not quotes:
        text, delimiter = squeeze_spaces(text.encode()).decode(), " "
    found: list[Record] = []
    for line, values in split_records(text, delimiter, first_line, quotes=quotes):
        if len(values) > 1 or values[0].strip():
            found.append((line, [value.strip() for value in values]))
        if len(found) == _RECORDS_SNIFFED:
            break
    return found


def detect_dialect(
    text: str,
    path: Path,
    first_line: int,
    delimiter: str | None,
    header: bool | None,
    decimal: str | None = None,
    *,
    is_whole: bool = False,
) -> Dialect:
    """Detect the dialect of a text that holds the first complete records of a file, or all of them.

    Without a given `decimal` it is the point, until the columns are inspected.
    """
    notes: list[Message | str] = []
    if delimiter is None:
        delimiter = _detect_delimiter(text, first_line, decimal)
        if delimiter != ",":
            notes.append(f"The delimiter is {_DELIMITER_NAMES[delimiter]}.")
    else:
        delimiter = check_delimiter(delimiter)
    found = [values for _, values in first_records(text, delimiter, first_line)]
    point = decimal or "."
    if not found:
        return Dialect(delimiter, False, (), point, notes)
    width = _most_common_width(found)[0]
    check_n_columns(path, max(width, len(found[0])))
    if header is None:
        decimals = ("." if delimiter == "," else ".,") if decimal is None else decimal
        header = _detect_header(found, width, decimals)
        if not header:
            notes.append("No header was detected: columns are numbered from 0.")
        elif len(found) == 1 and is_whole:
            notes.append("The only line is read as the column names.")
    if not header:
        return Dialect(delimiter, False, tuple(str(i) for i in range(width)), point, notes)
    names, changed = make_unique(found[0])
    return Dialect(delimiter, True, names, point, notes + changed, found[0][-1] == "")


def check_delimiter(given: str) -> str:
    """Convert a delimiter as the user spells it."""
    delimiter = _SPELLINGS.get(given, given)
    if delimiter == WHITESPACE:
        return delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ArgumentError(
            "must be one ASCII character other than a quote, or 'whitespace' for runs of spaces "
            f"and tabs, got {given!r}",
            parameter="delimiter",
        )
    return delimiter


def _most_common_width(found: Sequence[Sequence[str]]) -> tuple[int, float]:
    """The most frequent number of values in a record, and the share of records that have it."""
    widths = Counter(len(values) for values in found)
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    return width, count / len(found)


def _detect_delimiter(text: str, first_line: int, decimal: str | None) -> str:
    best, best_share = None, 0.0
    # Commas last: files with semicolons between values may have decimal commas.
    for candidate in ("\t", ";", "|", ","):
        if candidate not in text or candidate == decimal:
            continue
        found = [values for _, values in first_records(text, candidate, first_line)]
        width, share = _most_common_width(found) if found else (1, 0.0)
        if width > 1 and share > best_share:
            best, best_share = candidate, share
    if best is not None:
        return best
    found = [values for _, values in first_records(text, WHITESPACE, first_line)]
    width, share = _most_common_width(found) if found else (1, 0.0)
    # Free text seldom has a number at the same position of every line.
    if width > 1 and share == 1.0:
        columns = zip(*(found[1:] or found), strict=True)
        if any(_typed_share(column, decimal or ".") == 1.0 for column in columns):
            return WHITESPACE
    return ","


def _typed_share(column: Sequence[str], decimals: str) -> float:
    """Return the share of numbers or of dates among the values that are not missing.

    The numbers of a column all have the same one of the given decimal points.
    """
    present = [value for value in column if value not in MISSING_MARKERS]
    if not present:
        return 0.0
    numbers = max(
        sum(is_number(value, each) or is_amount(value) for value in present) for each in decimals
    )
    dates = sum(is_date(value) for value in present)
    return max(numbers, dates) / len(present)


def _detect_header(found: list[list[str]], width: int, decimals: str) -> bool:
    first = found[0]
    if len(first) != width:
        return False

    def is_no_name(value: str) -> bool:
        number = any(is_number(value, each) for each in decimals) or is_amount(value)
        return number or value in MISSING_MARKERS or is_date(value)

    below = [values for values in found[1:] if len(values) == width]
    # Some tools write row numbers in a column without a name, or a delimiter at the end of lines.
    named = [name for name in first if name]
    if 2 * len(named) < len(first) or any(map(is_no_name, named)):
        return False
    if not below:
        return True
    columns = list(zip(*below, strict=True))
    pairs = [(name, column) for name, column in zip(first, columns, strict=True) if name]
    if any(_typed_share(column, decimals) > 0.5 for _, column in pairs):
        return True
    if len(named) < len(first):
        return False
    occurs_again = any(name in column for name, column in pairs)
    return not occurs_again and any(len(set(column)) < len(column) for column in columns)
