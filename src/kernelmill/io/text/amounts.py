"""Formatted numbers: percentages, currencies, digit groups.

The values of a column have one style: one sign, such as % or $, and one separator of groups of
three digits. Negative ones may be in parentheses, have a minus after them, or that of typography
(U+2212), unless all are: (1), (2) and (3) may be labels. A column whose values disagree is not read
as numbers, unless it is declared numeric, by a user or a model: then values may lack the sign and
the groups. In any case the number is the one that is written: 5 % is 5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.io.text.records import COMMA_NUMBER_PATTERN, NUMBER_PATTERN

__all__ = [
    "NumberStyle",
    "are_loose_numbers",
    "detect_style",
    "find_sign",
    "find_signs",
    "is_amount",
    "strip_sign",
    "write_minus",
]

_SIGNS = ("%", "‰", "US$", "$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "CHF", "JPY")
_ANY_SIGN = "|".join(map(re.escape, _SIGNS))
_BEFORE = rf"^([+-]?) ?(?:{_ANY_SIGN}) ?"
_AFTER = rf"[ \x{{00a0}}\x{{202f}}]?(?:{_ANY_SIGN})$"
_SPACES = (" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}")
_SEPARATORS = {".": (",", "'", *_SPACES), ",": (".", "'", *_SPACES)}
_PLAIN = {".": NUMBER_PATTERN, ",": COMMA_NUMBER_PATTERN}
_MINUS = "\N{MINUS SIGN}"
_PARENTHESES = rf"^((?:{_ANY_SIGN})? ?)\(([^()+-]*[0-9][^()+-]*)\)( ?(?:{_ANY_SIGN})?)$"
_MINUS_AFTER = rf"^([^()+-]*[0-9])-( ?(?:{_ANY_SIGN})?)$"
_AMOUNT = re.compile(
    rf"[+-]?(?:{_ANY_SIGN})? ?[+-]?[0-9][0-9.,' ]*[ \u00a0\u202f]?(?:{_ANY_SIGN})?"
)
# What may be around the digits and the exponent of a number of any style, and what is left of it.
_AROUND = re.compile(rf"{_ANY_SIGN}|[().,' \u00a0\u202f{_MINUS}]")
_DIGITS = re.compile(r"[+-]*([0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)-?", re.IGNORECASE)


@dataclass(frozen=True)
class NumberStyle:
    """The sign of all numbers of a column, and the separator of digit groups; or neither.

    If it is `loose`, numbers may have no sign or any one of them, and any separator or none.
    """

    sign: str = ""
    separator: str = ""
    decimal: str = "."
    loose: bool = False

    def to_numbers(self, words: Any) -> Any:
        """Convert strings to float64; others than such numbers raise `pyarrow.ArrowInvalid`."""
        bare = write_minus(pc.utf8_trim_whitespace(words))
        if self.loose:
            if len(find_signs(bare)) > 1:
                raise pa.ArrowInvalid("with different signs")
            bare = strip_sign(bare)
            for separator in _SEPARATORS[self.decimal]:
                pattern = replace(self, separator=separator)._group_pattern()
                grouped = pc.match_substring_regex(bare, pattern)
                bare = pc.if_else(grouped, pc.replace_substring(bare, separator, ""), bare)
        elif self.sign:
            if not pc.all(_has_sign(bare, self.sign), min_count=0).as_py():
                raise pa.ArrowInvalid(f"not with {self.sign}")
            bare = strip_sign(bare)
        if self.separator and not self.loose:
            groups = pc.match_substring_regex(bare, self._group_pattern())
            if not pc.all(groups, min_count=0).as_py():
                raise pa.ArrowInvalid("not in groups of three digits")
            bare = pc.replace_substring(bare, self.separator, "")
        if not pc.all(pc.match_substring_regex(bare, _PLAIN[self.decimal]), min_count=0).as_py():
            raise pa.ArrowInvalid("not a number")
        if self.decimal == ",":
            bare = pc.replace_substring(pc.replace_substring(bare, ".", ""), ",", ".")
        return bare.cast(pa.float64())

    def _group_pattern(self) -> str:
        groups = rf"[0-9]{{1,3}}({re.escape(self.separator)}[0-9]{{3}})+|[0-9]{{1,3}}"
        return rf"^[+-]?({groups})({re.escape(self.decimal)}[0-9]+)?$"

    def is_number(self, value: str) -> bool:
        """Return whether a trimmed value is a number of this style."""
        return self.find_number(value) is not None

    def describe(self, value: str) -> str:
        """Return the end of a message "is not a number" for a value that is not in this style."""
        points = " with a decimal comma" if self.decimal == "," else ""
        commas = NumberStyle(decimal=",", loose=True)
        if self.decimal == "." and "," in value and commas.is_number(value):
            points = " with a decimal point"
        is_strict = self.sign and not self.loose
        return points + (
            f" with {self.sign}, as other values of the column are" if is_strict else ""
        )

    def find_number(self, value: str) -> float | None:
        """Return the number that a trimmed value stands for; None if it is none of this style."""
        try:
            found: float | None = self.to_numbers(pa.array([value]))[0].as_py()
        except pa.ArrowInvalid:
            return None
        return found


def is_amount(value: str) -> bool:
    """Return whether a trimmed value may be a number with a sign or with digit groups."""
    bare = re.sub(_PARENTHESES, r"-\1\2\3", value.replace(_MINUS, "-"))
    return _AMOUNT.fullmatch(re.sub(_MINUS_AFTER, r"-\1\2", bare)) is not None


def write_minus(words: Any) -> Any:
    """Write a minus before negative numbers: those in parentheses, and those with it after them."""
    bare = pc.replace_substring(words, _MINUS, "-")
    bare = pc.replace_substring_regex(bare, _PARENTHESES, r"-\1\2\3")
    return pc.replace_substring_regex(bare, _MINUS_AFTER, r"-\1\2")


def strip_sign(words: Any) -> Any:
    """Remove a sign before or after each number."""
    return pc.replace_substring_regex(pc.replace_substring_regex(words, _BEFORE, r"\1"), _AFTER, "")


def find_signs(words: Any) -> list[str]:
    """Return the different signs of some words."""
    found = pc.extract_regex(words, rf"(?P<sign>{_ANY_SIGN})").drop_null()
    signs: list[str] = pc.unique(pc.struct_field(found, "sign")).to_pylist() if len(found) else []
    return signs


def find_sign(words: Any) -> tuple[str, str]:
    """Return the only sign of some words and one without it, or empty strings."""
    signs = find_signs(words)
    if len(signs) != 1:
        return "", ""
    bare = words.filter(pc.invert(_has_sign(words, signs[0])))
    return signs[0], str(bare[0].as_py()) if len(bare) else ""


def _has_sign(words: Any, sign: str) -> Any:
    """Return whether each value has the sign; a plain zero needs none."""
    is_zero = pc.equal(words, "0")
    return pc.or_(pc.match_substring(words, sign), is_zero)


def are_loose_numbers(words: Any, decimal: str) -> bool:
    """Return whether a column with these different values may be declared numeric."""
    if len(words) == 0 or not is_amount(words[0].as_py()):
        return False
    try:
        NumberStyle(decimal=decimal, loose=True).to_numbers(words)
    except pa.ArrowInvalid:
        return False
    return True


def detect_style(words: Any, decimal: str) -> NumberStyle | None:
    """Return the style of a column with these different values; None if not all are such numbers.

    Plain numbers have a style without sign and separator.
    """
    # Most columns of strings need no further look, each of which takes a tenth of a millisecond.
    if len(words) == 0 or not _DIGITS.fullmatch(_AROUND.sub("", words[0].as_py().strip())):
        return None
    unusual = pc.match_substring_regex(words, f"{_PARENTHESES}|{_MINUS_AFTER}")
    if pc.all(unusual).as_py() and len(words) > 1:
        return None
    if len(signs := find_signs(words)) > 1:
        return None
    sign = signs[0] if signs else ""
    if sign and not pc.all(_has_sign(words, sign), min_count=0).as_py():
        return None
    for separator in ("", *_SEPARATORS[decimal]):
        style = NumberStyle(sign, separator, decimal)
        try:
            style.to_numbers(words)
        except pa.ArrowInvalid:
            continue
        return style
    return None
