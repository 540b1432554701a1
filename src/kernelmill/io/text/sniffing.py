"""What the first lines of a text file show: delimiter, header, names and kinds of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from kernelmill.errors import ArgumentError, Doubt, Message, Remedy
from kernelmill.io.table_file import make_unique
from kernelmill.io.text.amounts import NumberStyle, detect_style, is_amount, strip_sign
from kernelmill.io.text.records import (
    COMMA_NUMBER_PATTERN,
    DATE_PATTERN,
    DECIMAL_COMMA_PATTERN,
    MISSING_MARKERS,
    NUMBER_PATTERN,
    Record,
    is_date,
    is_large_integer,
    is_number,
    split_records,
)

__all__ = [
    "WHITESPACE",
    "Dialect",
    "TextSample",
    "describe_amounts",
    "detect_dialect",
    "find_doubt",
    "find_large_integer",
    "find_leading_zeros",
    "first_records",
    "inspect_columns",
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
    """How the values of a text file are separated and what its columns are called."""

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
    """The first records of a text, without lines that have only spaces."""
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
    first_line: int,
    delimiter: str | None,
    header: bool | None,
    decimal: str | None = None,
) -> Dialect:
    """Detect the dialect of a text that holds the first complete records of a file.

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
    if header is None:
        decimals = ("." if delimiter == "," else ".,") if decimal is None else decimal
        header = _detect_header(found, width, decimals)
        if not header:
            notes.append("No header was detected: columns are numbered from 0.")
        elif len(found) == 1:
            notes.append("The only line is read as the names of the columns.")
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
    """The share of numbers or of dates among the values that are not missing.

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


# A column with at least this number of different values, and this share of numbers among them, is
# numeric: the other values are errors, which the parser reports.
_FEWEST_VALUES = 20
_SHARE_OF_NUMBERS = 0.95

_NUMBERS = {".": NUMBER_PATTERN, ",": COMMA_NUMBER_PATTERN}


@dataclass(frozen=True)
class ColumnEvidence:
    """What the first values of a column show.

    Attributes
    ----------
    name : str
    decimal : str
        "." or "," if the column has numbers with such a decimal point, else "".
    kinds : dict of str to str
        The kind of the column, by the decimal point of the file.
    doubts : dict of str to (Message or None)
        A note on a column that may not be of this kind, by the decimal point of the file.
    all_missing : bool
        Whether there are rows, but no values.
    """

    name: str
    decimal: str
    kinds: dict[str, str]
    doubts: dict[str, Message | None]
    all_missing: bool
    zeros: str = ""  # a value with leading zeros
    styles: dict[str, NumberStyle | None] = field(default_factory=dict)  # by the decimal point
    example: str = ""  # a value with a sign or groups of digits
    large: str = ""  # an integer that float64 may not represent


@dataclass(frozen=True)
class TextSample:
    """What the first rows of a text file show of its columns.

    Attributes
    ----------
    columns : tuple of ColumnEvidence
    n_rows, n_bytes : int
        The number of rows that were inspected, and of bytes of text.
    """

    columns: tuple[ColumnEvidence, ...]
    n_rows: int
    n_bytes: int

    def detect_decimal(self, ignored: Collection[str]) -> str:
        """The decimal point: a comma if some columns have decimal commas and none has points.

        Columns in `ignored` are not considered.
        """
        found = {each.decimal for each in self.columns if each.name not in ignored}
        return "," if "," in found and "." not in found else "."

    def find_styles(self, decimal: str) -> dict[str, NumberStyle]:
        """The styles of columns whose numbers have signs or groups of digits."""
        found = {each.name: each.styles.get(decimal) for each in self.columns}
        return {name: style for name, style in found.items() if style is not None}

    def detect_kinds(
        self, decimal: str, given: Collection[str]
    ) -> tuple[dict[str, str], list[Message | str]]:
        """The kind of each column, and notes on doubtful ones, except if their kind is given."""
        notes: list[Message | str] = []
        for each in self.columns:
            doubt = each.doubts[decimal]
            if each.all_missing:
                notes.append(
                    Doubt(
                        f"All inspected values of column {each.name!r} are missing",
                        column=each.name,
                    )
                )
            elif doubt is not None and each.name not in given:
                notes.append(doubt)
            elif each.example and each.name not in given and each.styles.get(decimal):
                notes.append(describe_amounts(each.name, each.example))
            elif each.large and each.name not in given:
                notes.append(_describe_large(each.name, each.large))
            elif each.zeros and each.name not in given:
                notes.append(
                    Message(
                        f"Column {each.name!r} has leading zeros, as in {each.zeros!r}, so that "
                        "its values are categories",
                        Remedy("if they are numbers, read them as such", numeric=[each.name]),
                        column=each.name,
                    )
                )
        return {each.name: each.kinds[decimal] for each in self.columns}, notes


def describe_amounts(name: str, example: str) -> Message:
    """A note on a column of amounts, percentages or groups of digits."""
    return Message(
        f"Column {name!r} is read as numbers: its values have signs, decimal commas or groups of "
        f"digits, as in {example!r}",
        Remedy("if they are categories, read them as such", categorical=[name]),
        column=name,
    )


def _describe_large(name: str, example: str) -> Doubt:
    return Doubt(
        f"Column {name!r} is read as categories: it has integers beyond 2**53, such as {example}, "
        "which float64 cannot tell from their neighbours",
        Remedy("if they are measurements, round them", numeric=[name]),
        Remedy("if they are identifiers, leave the column out", drop=[name]),
        column=name,
    )


def inspect_columns(sample: Any, n_bytes: int, decimal: str | None) -> TextSample:
    """Inspect a record batch of categories; `decimal` is None if it has to be detected."""
    words = [column.dictionary for column in sample.columns]
    point = decimal or "."
    numbers = [pc.match_substring_regex(each, _NUMBERS[point]) for each in words]
    decimals = [""] * len(words)
    if decimal is None:
        decimals = [_find_decimal(*pair) for pair in zip(words, numbers, strict=True)]
    columns = []
    for name, each, found, own in zip(sample.schema.names, words, numbers, decimals, strict=True):
        evidence = {point: _detect_kind(name, each, found)}
        if "," in decimals:
            found_with_commas = pc.match_substring_regex(each, COMMA_NUMBER_PATTERN)
            evidence[","] = _detect_kind(name, each, found_with_commas)
        kinds = {key: kind for key, (kind, _) in evidence.items()}
        doubts = {key: doubt for key, (_, doubt) in evidence.items()}
        all_missing = len(each) == 0 and sample.num_rows > 0
        zeros = find_leading_zeros(each) if "numeric" in kinds.values() else ""
        large = find_large_integer(each) if "numeric" in kinds.values() else ""
        if zeros or large:
            kinds = dict.fromkeys(kinds, "category")
        styles: dict[str, NumberStyle | None] = {}
        for key in kinds:
            is_open = kinds[key] == "category" and not zeros and not large
            if is_open and (style := detect_style(each, key)):
                kinds[key], doubts[key], styles[key] = "numeric", None, style
        example = str(each[0].as_py()) if styles else ""
        columns.append(
            ColumnEvidence(name, own, kinds, doubts, all_missing, zeros, styles, example, large)
        )
    return TextSample(tuple(columns), sample.num_rows, n_bytes)


def _detect_kind(name: str, words: Any, numbers: Any) -> tuple[str, Message | None]:
    """The kind of a column, and a note if that is doubtful.

    `words` are the different values, `numbers` is whether each of them is a number.
    """
    n_numbers = _count(numbers)
    if _are_numbers(n_numbers, len(words)):  # also if all values are missing
        return "numeric", None
    if pc.all(pc.match_substring_regex(words, DATE_PATTERN)).as_py():
        return "date", None
    return "category", find_doubt(name, words, numbers, n_numbers)


def find_leading_zeros(words: Any) -> str:
    """A value such as 007, if all are digits: such values are codes or labels."""
    if not pc.all(pc.match_substring_regex(words, "^[0-9]+$")).as_py():
        return ""
    found = words.filter(pc.match_substring_regex(words, "^0[0-9]+$"))
    return str(found[0].as_py()) if len(found) else ""


def find_large_integer(words: Any) -> str:
    """An integer among the words that float64 may not represent; empty if there is none."""
    long = words.filter(pc.match_substring_regex(words, "^[+-]?[0-9]{16,}$")).to_pylist()
    return next((word for word in long if is_large_integer(word)), "")


def _count(found: Any) -> int:
    return pc.sum(found).as_py() or 0


def _are_numbers(n_numbers: int, n_words: int) -> bool:
    """Whether a column with this number of numbers among its different values is numeric."""
    if n_numbers == n_words:
        return True
    return n_words >= _FEWEST_VALUES and n_numbers >= _SHARE_OF_NUMBERS * n_words


def find_doubt(name: str, words: Any, numbers: Any, n_numbers: int) -> Doubt | None:
    """A note on a column of categories that may be meant as numbers."""
    others = words.filter(pc.invert(numbers))
    with_commas = pc.match_substring_regex(words, DECIMAL_COMMA_PATTERN)
    in_groups = pc.match_substring_regex(words, "^[+-]?[0-9]{1,3}(,[0-9]{3})+$")
    decimal_commas = pc.any(pc.and_not(with_commas, in_groups)).as_py()
    if decimal_commas and _are_numbers(
        _count(pc.match_substring_regex(words, COMMA_NUMBER_PATTERN)), len(words)
    ):
        return Doubt(
            f"Column {name!r} is read as categories: its values, such as "
            f"{words.filter(with_commas)[0].as_py()!r}, have decimal commas",
            "write decimal points to have numbers",
            column=name,
        )
    if n_numbers >= 20 and len(others) <= max(5, n_numbers // 20):
        return Doubt(
            f"Column {name!r} is read as categories: most of its values are numbers, but "
            f"{others[0].as_py()[:40]!r} is not",
            "if it stands for a missing value, leave it empty",
            column=name,
        )
    some = words[:_RECORDS_SNIFFED].to_pylist()
    amounts = [word for word in some if is_amount(word)]
    first = next((word for word in amounts if not is_number(word)), None)
    if first is not None and len(amounts) >= max(2, _SHARE_OF_NUMBERS * len(some)):
        other = next((word for word in amounts if _shape(word) != _shape(first)), amounts[-1])
        return Doubt(
            f"Column {name!r} is read as categories: its values look like numbers, but do not have "
            f"the same sign and the same groups of digits, as in {first!r} and {other!r}",
            "write all of them alike to have numbers",
            column=name,
        )
    return None


def _shape(word: str) -> str:
    return re.sub("[0-9]+", "0", word)


def _find_decimal(words: Any, numbers: Any) -> str:
    """The decimal point in a column of numbers; empty if there are none or only integers."""
    if _are_numbers(_count(numbers), len(words)):
        return "." if pc.any(pc.match_substring(words, ".")).as_py() else ""
    if (bare := strip_sign(words)) != words:
        return _find_decimal(bare, pc.match_substring_regex(bare, NUMBER_PATTERN))
    if (style := detect_style(words, ".")) is not None and pc.any(
        pc.match_substring(words, ".")
    ).as_py():
        return style.decimal  # with groups of digits: 1,257.30
    if pc.any(pc.match_substring_regex(words, DECIMAL_COMMA_PATTERN)).as_py():
        n_numbers = _count(pc.match_substring_regex(words, COMMA_NUMBER_PATTERN))
        return "," if _are_numbers(n_numbers, len(words)) else ""
    return ""
