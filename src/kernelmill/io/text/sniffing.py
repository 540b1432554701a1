"""What the first lines of a text file show: delimiter, header, names and kinds of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from kernelmill.io.errors import TableError
from kernelmill.io.table_file import unique_names
from kernelmill.io.text.records import (
    COMMA_NUMBER_PATTERN,
    DATE_PATTERN,
    DECIMAL_COMMA_PATTERN,
    MISSING_MARKERS,
    NUMBER_PATTERN,
    WHOLE_NUMBER_PATTERN,
    Record,
    is_date,
    is_number,
    records,
)

__all__ = [
    "WHITESPACE",
    "Dialect",
    "detect_decimal",
    "detect_dialect",
    "detect_kinds",
    "records_of",
    "single_spaced",
]

WHITESPACE = "whitespace"

_NAMES_OF_DELIMITERS = {
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
_RECORDS_LOOKED_AT = 200

_RUNS = re.compile(rb"[ \t]+")
_LINE_ENDS = re.compile(rb" ?(\r\n|\n|\r) ?")


@dataclass(frozen=True)
class Dialect:
    """How the values of a text file are arranged."""

    delimiter: str  # one character, or WHITESPACE
    header: bool
    names: tuple[str, ...]
    decimal: str = "."  # in numbers: "." or ","
    notes: list[str] = field(default_factory=list)

    @property
    def quotes(self) -> bool:
        """Whether values may be in quotes."""
        return self.delimiter != WHITESPACE

    @property
    def separator(self) -> str:
        """The character between values, after `single_spaced` where that is needed."""
        return " " if self.delimiter == WHITESPACE else self.delimiter


def single_spaced(data: bytes) -> bytes:
    """Runs of spaces and tabs as one space, none at the ends of lines."""
    return _LINE_ENDS.sub(rb"\1", _RUNS.sub(b" ", data).strip(b" "))


def records_of(text: str, delimiter: str, first_line: int) -> list[Record]:
    """The first records of a text, without the lines that have nothing but spaces."""
    quotes = delimiter != WHITESPACE
    if not quotes:
        text, delimiter = single_spaced(text.encode()).decode(), " "
    found: list[Record] = []
    for line, values in records(text, delimiter, first_line, quotes=quotes):
        if len(values) > 1 or values[0].strip():
            found.append((line, [value.strip() for value in values]))
        if len(found) == _RECORDS_LOOKED_AT:
            break
    return found


def detect_dialect(
    text: str,
    first_line: int,
    delimiter: str | None,
    header: bool | None,
    decimal: str | None = None,
) -> Dialect:
    """The dialect of a text that holds the first complete records of a file.

    Without a given `decimal` it is the point: which of both it is, the columns tell later.
    """
    notes = []
    if delimiter is None:
        delimiter = _likely_delimiter(text, first_line, decimal)
        if delimiter != ",":
            notes.append(f"The delimiter is {_NAMES_OF_DELIMITERS[delimiter]}.")
    else:
        delimiter = check_delimiter(delimiter)
    found = [values for _, values in records_of(text, delimiter, first_line)]
    point = decimal or "."
    if not found:
        return Dialect(delimiter, False, (), point, notes)
    width = _usual_width(found)[0]
    if header is None:
        decimals = ("." if delimiter == "," else ".,") if decimal is None else decimal
        header = _has_header(found, width, decimals)
        if not header:
            notes.append("No header was found: columns are numbered from 0.")
        elif len(found) == 1:
            notes.append("The only line is taken for the names of the columns.")
    if not header:
        return Dialect(delimiter, False, tuple(str(i) for i in range(width)), point, notes)
    names, changed = unique_names(found[0])
    return Dialect(delimiter, True, names, point, notes + changed)


def check_delimiter(given: str) -> str:
    """A delimiter as the user may spell it."""
    delimiter = _SPELLINGS.get(given, given)
    if delimiter == WHITESPACE:
        return delimiter
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise TableError(
            "delimiter must be one ASCII character other than a quote, or 'whitespace' for runs of "
            f"spaces and tabs, got {given!r}."
        )
    return delimiter


def _usual_width(found: Sequence[Sequence[str]]) -> tuple[int, float]:
    """The most frequent number of values in a record, and the share of such records."""
    widths = Counter(len(values) for values in found)
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    return width, count / len(found)


def _likely_delimiter(text: str, first_line: int, decimal: str | None) -> str:
    best, best_share = None, 0.0
    # Commas last: they are also decimal points in files that have semicolons between values.
    for candidate in ("\t", ";", "|", ","):
        if candidate not in text or candidate == decimal:
            continue
        found = [values for _, values in records_of(text, candidate, first_line)]
        width, share = _usual_width(found) if found else (1, 0.0)
        if width > 1 and share > best_share:
            best, best_share = candidate, share
    if best is not None:
        return best
    found = [values for _, values in records_of(text, WHITESPACE, first_line)]
    width, share = _usual_width(found) if found else (1, 0.0)
    # Words of free text seldom have numbers in one place throughout.
    if width > 1 and share == 1.0:
        columns = zip(*(found[1:] or found), strict=True)
        if any(_share_typed(column, decimal or ".") == 1.0 for column in columns):
            return WHITESPACE
    return ","


def _share_typed(column: Sequence[str], decimals: str) -> float:
    """The share of numbers or dates among the values that are not missing.

    Numbers have one of the given decimal points, all the same one.
    """
    present = [value for value in column if value not in MISSING_MARKERS]
    if not present:
        return 0.0
    numbers = max(sum(is_number(value, each) for value in present) for each in decimals)
    dates = sum(is_date(value) for value in present)
    return max(numbers, dates) / len(present)


def _has_header(found: list[list[str]], width: int, decimals: str) -> bool:
    first = found[0]
    if len(first) != width:
        return False

    def is_no_name(value: str) -> bool:
        number = any(is_number(value, each) for each in decimals)
        return number or value in MISSING_MARKERS or is_date(value)

    if any(map(is_no_name, first)):
        # Tools that write row numbers give them a column without a name.
        unnamed = first[0] == "" and len(first) > 1
        rest = first[1:] if unnamed else first
        if not unnamed or any(map(is_no_name, rest)):
            return False
    below = [values for values in found[1:] if len(values) == width]
    if not below:
        return True
    columns = list(zip(*below, strict=True))
    if any(_share_typed(column, decimals) > 0.5 for column in columns):
        return True
    occurs_again = any(name in column for name, column in zip(first, columns, strict=True))
    return not occurs_again and any(len(set(column)) < len(column) for column in columns)


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
