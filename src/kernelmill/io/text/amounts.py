"""Numbers as people write them: percentages, currencies, groups of digits.

The values of a column have one style: one sign, such as % or $, and one separator of groups of
three digits. A column whose values disagree is not read as numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.io.text.records import COMMA_NUMBER_PATTERN, NUMBER_PATTERN

__all__ = ["NumberStyle", "detect_style", "is_amount", "strip_sign"]

_SIGNS = ("%", "‰", "US$", "$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "CHF", "JPY")
_ANY_SIGN = "|".join(map(re.escape, _SIGNS))
_BEFORE = rf"^([+-]?) ?(?:{_ANY_SIGN}) ?"
_AFTER = rf"[ \x{{00a0}}\x{{202f}}]?(?:{_ANY_SIGN})$"
_SPACES = (" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}")
_SEPARATORS = {".": (",", "'", *_SPACES), ",": (".", "'", *_SPACES)}
_PLAIN = {".": NUMBER_PATTERN, ",": COMMA_NUMBER_PATTERN}
_AMOUNT = re.compile(
    rf"[+-]?(?:{_ANY_SIGN})? ?[+-]?[0-9][0-9.,' ]*[ \u00a0\u202f]?(?:{_ANY_SIGN})?"
)


@dataclass(frozen=True)
class NumberStyle:
    """The sign of all numbers of a column, and the separator of groups of digits; or neither."""

    sign: str = ""
    separator: str = ""
    decimal: str = "."

    def to_numbers(self, words: Any) -> Any:
        """Convert strings to float64; others than such numbers raise `pyarrow.ArrowInvalid`."""
        bare = pc.utf8_trim_whitespace(words)
        if self.sign:
            if not pc.all(_has_sign(bare, self.sign), min_count=0).as_py():
                raise pa.ArrowInvalid(f"not with {self.sign}")
            bare = strip_sign(bare)
        if self.separator:
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
        """Whether a trimmed value is a number of this style."""
        return self.find_number(value) is not None

    def describe(self) -> str:
        """What messages say after "is not a number"."""
        commas = " with a decimal comma" if self.decimal == "," else ""
        return commas + (f" with {self.sign}, as others of the column are" if self.sign else "")

    def find_number(self, value: str) -> float | None:
        """The number that a trimmed value stands for; None if it is none of this style."""
        try:
            found: float | None = self.to_numbers(pa.array([value]))[0].as_py()
        except pa.ArrowInvalid:
            return None
        return found


def is_amount(value: str) -> bool:
    """Whether a trimmed value may be a number with a sign or with groups of digits."""
    return _AMOUNT.fullmatch(value) is not None


def strip_sign(words: Any) -> Any:
    """Remove a sign before or after each number."""
    return pc.replace_substring_regex(pc.replace_substring_regex(words, _BEFORE, r"\1"), _AFTER, "")


def _has_sign(words: Any, sign: str) -> Any:
    """Whether each value has the sign; a plain zero needs none."""
    is_zero = pc.equal(words, "0")
    return pc.or_(pc.match_substring(words, sign), is_zero)


def detect_style(words: Any, decimal: str) -> NumberStyle | None:
    """The style of a column with these different values; None if not all are such numbers.

    Plain numbers have a style without sign and separator.
    """
    if len(words) == 0:
        return None
    found = pc.extract_regex(words, rf"(?P<sign>{_ANY_SIGN})").drop_null()
    signs = pc.unique(pc.struct_field(found, "sign")).to_pylist() if len(found) else []
    if len(signs) > 1:
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
