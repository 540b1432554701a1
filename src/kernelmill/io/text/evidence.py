"""Kinds of columns and decimal separators, detected from the first rows of a text file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from kernelmill.errors import Doubt, Message, Remedy
from kernelmill.io.errors import suggest_codes
from kernelmill.io.text.amounts import (
    NumberStyle,
    are_loose_numbers,
    detect_style,
    find_sign,
    is_amount,
    strip_sign,
    write_minus,
)
from kernelmill.io.text.records import (
    COMMA_NUMBER_PATTERN,
    DATE_PATTERN,
    DECIMAL_COMMA_PATTERN,
    NUMBER_PATTERN,
    is_large_integer,
    is_number,
)
from kernelmill.io.text.words import Words, share_patterns

__all__ = [
    "ColumnEvidence",
    "TextSample",
    "describe_amounts",
    "find_doubt",
    "find_large_integer",
    "find_leading_zeros",
    "find_separators",
    "inspect_columns",
]

# A column with at least this number of different values, and this share of numbers among them, is
# numeric: the other values are errors, which the parser reports.
_FEWEST_VALUES = 20
_SHARE_OF_NUMBERS = 0.95

_NO_DIGIT = "^[^0-9]*$"
_WORDS_SHOWN = 200

# Numbers of which a type keeps what is written, except final zeros. Others may be codes: 0042, 1E5.
_PLAIN_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
_PLAIN_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)$"
_LONG_NUMBER = r"[1-9](\.?[0-9]){15}|0{300}"  # more than 15 digits, or below the range of float64

_NUMBERS = {".": NUMBER_PATTERN, ",": COMMA_NUMBER_PATTERN}

# Numbers with digit groups, by the mark between them: 1,691.50; and those without a decimal
# point, which may also be decimal numbers: 1,691 but not 0,691. Before them, commas of others.
_DECIMAL_COMMA = r",[0-9]{1,2}([^0-9]|$)|,[0-9]{4}|[0-9]{4},|\.[0-9]+,"
_GROUPS = {m: rf"^[^0-9.,]*[0-9]{{1,3}}(\{m}[0-9]{{3}})+([^0-9\{m}]|$)" for m in ",."}
_ONLY_GROUPS = {m: rf"^[^0-9.,]*[1-9][0-9]{{0,2}}(\{m}[0-9]{{3}})+[^0-9.,]*$" for m in ",."}


@dataclass(frozen=True, slots=True)  # there may be 100,000
class ColumnEvidence:
    """The properties of the first values of a column.

    Attributes
    ----------
    name : str
    decimal : str
        "." or "," if the column has numbers with such a decimal point, else "".
    kinds : dict of str to str
        The kind of the column, by the decimal point of the file.
    doubts : dict of str to Message
        A note on a column that may not be of this kind, by the decimal point of the file.
    all_missing : bool
        Whether there are rows, but no values.
    """

    name: str
    decimal: str
    kinds: dict[str, str]
    doubts: dict[str, Message]
    all_missing: bool
    zeros: str = ""  # a value with leading zeros
    styles: dict[str, NumberStyle] = field(default_factory=dict)  # by the decimal point
    example: str = ""  # a value with a sign or digit groups
    large: str = ""  # an integer that float64 may not represent
    loose: tuple[str, ...] = ()  # decimal points with which values are numbers of different styles
    sign: str = ""  # that of numbers, if there is one
    bare: str = ""  # a number without it
    type: str = "string"  # "int64" or "float64" if all values are such numbers
    separators: str = ""  # commas and points between digit groups
    grouped: str = ""  # a comma or point that may separate digit groups in all values
    marked: str = ""  # a value with it
    pointed: bool = False  # whether a number has a point


@dataclass(frozen=True)
class TextSample:
    """The properties of the columns in the first rows of a text file.

    Attributes
    ----------
    columns : tuple of ColumnEvidence
    n_rows, n_bytes : int
        The number of rows that were inspected, and of bytes of text.
    is_whole : bool
        Whether these are all rows of the table.
    """

    columns: tuple[ColumnEvidence, ...]
    n_rows: int
    n_bytes: int
    is_whole: bool = False

    def detect_decimal(
        self, ignored: Collection[str], trained_marks: Mapping[str, tuple[str, str]] | None = None
    ) -> str:
        """The decimal point: a comma if some columns have decimal commas and none has points.

        Columns in `ignored` are not considered. Numbers such as 1.691 do not count where those of
        training had digit groups with this mark. If none counts, it is that of training.
        """
        used = [each for each in self.columns if each.name not in ignored]
        known = trained_marks or {}
        had_commas = any(decimal == "," for decimal, _ in known.values())
        separators = {name: "." if had_commas else each for name, (_, each) in known.items()}
        found = {
            each.decimal
            for each in used
            if not each.grouped or separators.get(each.name) != each.grouped
        }
        if not found - {""}:
            return "," if had_commas else "."
        return "," if "," in found and "." not in found else "."

    def find_styles(self, decimal: str, declared: Collection[str]) -> dict[str, NumberStyle]:
        """Return the styles of columns whose numbers have signs or digit groups.

        Styles of columns that are `declared` numeric may be loose.
        """
        loose = NumberStyle(decimal=decimal, loose=True)
        found = {
            each.name: loose
            if decimal in each.loose and each.name in declared
            else each.styles.get(decimal)
            if decimal in each.kinds or not each.styles
            else loose
            for each in self.columns
        }
        return {name: style for name, style in found.items() if style is not None}

    def find_marks(self, decimal: str) -> dict[str, tuple[str, str]]:
        """Return the decimal points and separators of columns of numbers, except plain ones."""
        found = {
            each.name: (decimal, "".join(mark for mark in each.separators if mark != decimal)[:1])
            for each in self.columns
            if "numeric" in each.kinds.values() or each.loose
        }
        return {name: marks for name, marks in found.items() if marks != (".", "")}

    def find_signs(self, styles: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return the sign of numbers of columns with styles, and a number without it."""
        return {c.name: (c.sign, c.bare) for c in self.columns if c.sign and c.name in styles}

    def detect_kinds(
        self, decimal: str, given: Collection[str]
    ) -> tuple[dict[str, str], list[Message | str]]:
        """The kind of each column, and notes on doubtful ones, except if their kind is given."""
        notes: list[Message | str] = []
        for each in self.columns:
            doubt = each.doubts.get(decimal)
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
                        f"Column {each.name!r} is read as categories: its values have leading "
                        f"zeros, as in {each.zeros!r}",
                        Remedy(
                            "if they are numbers, read the column as numbers", numeric=[each.name]
                        ),
                        column=each.name,
                    )
                )
        kinds = {each.name: each.kinds for each in self.columns}
        # With the decimal point of training, others were inspected.
        return {n: k[decimal] if decimal in k else k["."] for n, k in kinds.items()}, notes


def describe_amounts(name: str, example: str) -> Message:
    """Return a note on a column of amounts, percentages or digit groups."""
    return Message(
        f"Column {name!r} is read as numbers: its values have symbols (%, $), decimal commas, "
        f"digit groups or negative numbers in parentheses, as in {example!r}",
        Remedy("if they are categories, read the column as categories", categorical=[name]),
        column=name,
    )


def _describe_large(name: str, example: str) -> Doubt:
    return Doubt(
        f"Column {name!r} is read as categories: it has integers beyond 2**53, such as {example}, "
        "which float64 does not represent exactly",
        Remedy("if they are measurements, round them", numeric=[name]),
        Remedy("if they are identifiers, leave the column out", drop=[name]),
        column=name,
    )


def inspect_columns(sample: Any, n_bytes: int, decimal: str | None) -> TextSample:
    """Inspect a record batch of categories; `decimal` is None if it has to be detected."""
    words = share_patterns([column.dictionary for column in sample.columns])
    decimals = [_find_decimal(each) if decimal is None else "" for each in words]
    points = (decimal or ".", ",") if "," in decimals else (decimal or ".",)
    found = zip(sample.schema.names, words, decimals, strict=True)
    columns = (_inspect_column(*each, points, sample.num_rows > 0) for each in found)
    return TextSample(tuple(columns), sample.num_rows, n_bytes)


def _inspect_column(
    name: str, words: Words, decimal: str, points: tuple[str, ...], has_rows: bool
) -> ColumnEvidence:
    """The properties of the words of a column, for each possible decimal separator."""
    kinds, doubts = dict[str, str](), dict[str, Message]()
    for point in points:
        kinds[point], doubt = _detect_kind(name, words, _NUMBERS[point])
        if doubt is not None:
            doubts[point] = doubt
    is_numeric = "numeric" in kinds.values()
    zeros = find_leading_zeros(words) if is_numeric else ""
    large = find_large_integer(words) if is_numeric else ""
    if zeros or large:
        kinds = dict.fromkeys(kinds, "category")
    styles: dict[str, NumberStyle] = {}
    loose: list[str] = []
    if not (zeros or large or words.any(_NO_DIGIT)):
        for point in points:
            is_plain = kinds[point] == "numeric" and words.all(_NUMBERS[point])
            if kinds[point] == "date" or is_plain:
                continue
            if (style := detect_style(words.array, point)) is not None:
                kinds[point], styles[point] = "numeric", style
                doubts.pop(point, None)
            elif kinds[point] == "category" and are_loose_numbers(words.array, point):
                loose.append(point)
    example = words.first(NUMBER_PATTERN, found=False) if styles else ""
    sign, bare = find_sign(words.array) if styles or loose else ("", "")
    all_missing = len(words) == 0 and has_rows
    is_number = "numeric" in kinds.values() or bool(loose)
    grouped = _find_grouped(words) if is_number else ""
    return ColumnEvidence(
        *(name, decimal, kinds, doubts, all_missing, zeros, styles, example, large),
        loose=tuple(loose),
        sign=sign,
        bare=bare,
        type="string" if large else _find_type(words),
        separators=find_separators(words) if is_number else "",
        grouped=grouped,
        marked=words.first(re.escape(grouped)) if grouped else "",
        pointed=is_number and words.any(r"\."),
    )


def find_separators(words: Words) -> str:
    """Return the commas and points between digit groups."""
    return "".join(mark for mark in ",." if words.any(_GROUPS[mark]))


def _find_grouped(words: Words) -> str:
    """The comma or point of a column if it may separate digit groups wherever it occurs."""
    commas, points = words.count(","), words.count(r"\.")
    if (commas == 0) == (points == 0):
        return ""
    mark = "," if commas else "."
    return mark if words.count(_ONLY_GROUPS[mark]) == commas + points else ""


def _find_type(words: Words) -> str:
    """Return the type that represents all of the words."""
    if len(words) == 0:
        return "string"
    if words.all(_PLAIN_INTEGER):
        return "int64"
    is_plain = words.all(_PLAIN_NUMBER) and not words.any(_LONG_NUMBER)
    return "float64" if is_plain else "string"


def _detect_kind(name: str, words: Words, numbers: str) -> tuple[str, Message | None]:
    """The kind of a column, and a note if that is doubtful; `numbers` is the pattern of numbers."""
    if _are_numbers(words.count(numbers), len(words)):  # also if all values are missing
        return "numeric", None
    if words.all(DATE_PATTERN):
        return "date", None
    return "category", find_doubt(name, words, "," if numbers == COMMA_NUMBER_PATTERN else ".")


def find_leading_zeros(words: Words) -> str:
    """Return a value such as 007, if all are digits: such values are codes or labels."""
    if not words.any("^0[0-9]+$") or not words.all("^[0-9]+$"):
        return ""
    return words.first("^0[0-9]+$")


def find_large_integer(words: Words) -> str:
    """Return an integer among the words that float64 may not represent; empty if there is none."""
    pattern = "^[+-]?[0-9]{16,}$"
    if not words.any(pattern):
        return ""
    long = words.array.filter(words.match(pattern)).to_pylist()
    return next((word for word in long if is_large_integer(word)), "")


def _are_numbers(n_numbers: int, n_words: int) -> bool:
    """Return whether a column with this number of numbers among its different values is numeric."""
    if n_numbers == n_words:
        return True
    return n_words >= _FEWEST_VALUES and n_numbers >= _SHARE_OF_NUMBERS * n_words


def find_doubt(name: str, words: Words, decimals: str = ".,") -> Doubt | None:
    """Return a note on a column of categories that may be meant as numbers.

    It suggests to declare the column numeric if that works with one of the decimal points.
    """
    if words.all(_NO_DIGIT):
        return None
    numbers = _NUMBERS[decimals[0]]
    are_commas = _are_numbers(words.count(COMMA_NUMBER_PATTERN), len(words))
    if "," not in decimals and words.any(","):
        is_loose = are_loose_numbers(words.array, ",") and not are_loose_numbers(words.array, ".")
        are_commas = are_commas or is_loose
    if are_commas and words.any(_DECIMAL_COMMA):
        given = Remedy(
            "if all numbers of the file have decimal commas, set the decimal separator", decimal=","
        )
        return Doubt(
            f"Column {name!r} is read as categories: its values, such as "
            f"{words.first(_DECIMAL_COMMA)!r}, have decimal commas",
            "write decimal points to use the column as numbers",
            *([] if "," in decimals else [given]),
            column=name,
        )
    if (other := _find_odd_word(words, numbers)) is not None:
        return Doubt(
            f"Column {name!r} is read as categories: most of its values are numbers, but "
            f"{other!r} is not",
            *suggest_codes(other),
            column=name,
        )
    if words.all("^[0-9]{1,2}-[0-9]{1,2}-[0-9]{2}$"):
        return Doubt(
            f"Column {name!r} is read as categories: its values, such as "
            f"{words.array[0].as_py()!r}, may be dates with two-digit years",
            Remedy("if the year comes last, read the column as dates", dates=[name]),
            column=name,
        )
    some = words.array[:_WORDS_SHOWN].to_pylist()
    amounts = [word for word in some if is_amount(word)]
    first = next((word for word in amounts if not is_number(word)), None)
    if first is not None and len(amounts) >= max(2, _SHARE_OF_NUMBERS * len(some)):
        other = next((word for word in amounts if _shape(word) != _shape(first)), amounts[-1])
        as_numbers = Remedy(
            "if the symbols and groups do not matter, read the column as numbers", numeric=[name]
        )
        return Doubt(
            f"Column {name!r} is read as categories: its values look like numbers, but have "
            f"different symbols or digit groups, as in {first!r} and {other!r}",
            "write all values in the same format to use them as numbers",
            *([as_numbers] if any(are_loose_numbers(words.array, d) for d in decimals) else []),
            column=name,
        )
    return None


def _find_odd_word(words: Words, numbers: str) -> str | None:
    """Return a value among others that are numbers, which may have signs or digit groups."""
    n_numbers = words.count(numbers)
    if n_numbers >= 20 and len(words) - n_numbers <= max(5, n_numbers // 20):
        return words.first(numbers, found=False)[:40]
    if n_numbers >= 3 and len(words) - n_numbers == 1:  # such as l2 and 3o among few numbers
        other = words.first(numbers, found=False)
        return other[:40] if re.search("[0-9]", other) and re.search("[A-Za-z]", other) else None
    n_others = words.count(_NO_DIGIT)
    if not 0 < n_others <= max(1, len(words) // 20):
        return None
    amounts = words.array.filter(pc.invert(words.match(_NO_DIGIT)))
    style = detect_style(amounts, "," if numbers == COMMA_NUMBER_PATTERN else ".")
    has_style = style is not None and bool(style.sign or style.separator)
    return words.first(_NO_DIGIT)[:40] if has_style else None


def _shape(word: str) -> str:
    return re.sub("[0-9]+", "0", word)


def _find_decimal(words: Words) -> str:
    """Return the decimal point in a column of numbers; empty if there are none or only integers."""
    if _are_numbers(words.count(NUMBER_PATTERN), len(words)):
        return "." if words.any(r"\.") else ""
    if words.any(_NO_DIGIT):
        return ""
    if (bare := strip_sign(write_minus(words.array))) != words.array:
        return _find_decimal(Words(bare))
    if words.any(r"\.") and (style := detect_style(words.array, ".")) is not None:
        return style.decimal  # with digit groups: 1,257.30
    if words.any(DECIMAL_COMMA_PATTERN):
        n_numbers = words.count(COMMA_NUMBER_PATTERN)
        return "," if _are_numbers(n_numbers, len(words)) else ""
    return ""
