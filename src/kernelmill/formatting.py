"""Formatting of numbers, sizes, durations and names for readers.

There is one set of rules and two typographies: `plain` for terminals, messages and logs, `html`
for HTML pages and plots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

from kernelmill.errors import escape_controls

__all__ = [
    "Formatter",
    "clean_text",
    "html",
    "is_number",
    "join_words",
    "name_of",
    "plain",
    "shorten",
]


@dataclass(frozen=True)
class Formatter:
    """The rules, for one typography.

    Missing values, NaN and infinities become `no_value`.

    Parameters
    ----------
    space : str
        Between a number and its unit.
    minus : str
    no_value : str
    range_dash : str
        Between the two ends of a range.
    quotes : (str, str)
        Around names taken from data.

    Examples
    --------
    >>> from kernelmill.formatting import plain
    >>> plain.count(581012), plain.count(1, "row"), plain.count(2, "class", "classes")
    ('581,012', '1 row', '2 classes')
    >>> plain.number(0.123456), plain.number(-1.5e-7), plain.number(None)
    ('0.1235', '-1.5e-7', '-')
    >>> plain.percent(0.1463), plain.size(132_400), plain.duration(125)
    ('14.6 %', '132 kB', '2 min 5 s')
    """

    space: str
    minus: str
    no_value: str
    range_dash: str
    quotes: tuple[str, str]

    def count(self, value: float | None, noun: str = "", plural: str = "") -> str:
        """Return an integer with thousands separators, and what it counts.

        The plural of `noun` ends in an s unless it is given.
        """
        if not is_number(value):
            return self.no_value
        digits = self._format_sign(f"{value:,.0f}")
        if not noun:
            return digits
        return f"{digits} {noun if value == 1 else plural or noun + 's'}"

    def number(self, value: float | None, digits: int = 4) -> str:
        """Return a number with this many significant digits; exponents beyond 1e-4 and 1e7."""
        if not is_number(value):
            return self.no_value
        if value == 0:
            return "0"
        magnitude = math.floor(math.log10(abs(value)))
        if -4 <= magnitude < 7:
            return self._format_sign(_strip_zeros(f"{value:,.{max(0, digits - 1 - magnitude)}f}"))
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return self._format_sign(f"{_strip_zeros(mantissa)}e{int(exponent)}")

    def percent(self, share: float | None, *, sign: bool = True) -> str:
        """Return a fraction of one in percent, with a second decimal below one percent."""
        if not is_number(share):
            return self.no_value
        decimals = 1 if abs(share) >= 0.00995 or share == 0 else 2
        text = self._format_sign(f"{100 * share:.{decimals}f}")
        return f"{text}{self.space}%" if sign else text

    def percent_range(self, low: float | None, high: float | None) -> str:
        """Return a range of fractions in percent; an empty string unless both ends are numbers."""
        if not is_number(low) or not is_number(high):
            return ""
        return f"{self.percent(low, sign=False)}{self.range_dash}{self.percent(high)}"

    def duration(self, seconds: float | None) -> str:
        """Return a duration with two or three digits, in units from µs to hours."""
        if not is_number(seconds):
            return self.no_value
        if seconds < 0.0005:
            return f"{1e6 * seconds:.0f}{self.space}µs"
        if seconds < 0.0995:
            return f"{self.number(1e3 * seconds, 2)}{self.space}ms"
        if seconds < 99.5:
            decimals = 2 if seconds < 9.995 else 1
            return f"{_strip_zeros(f'{seconds:.{decimals}f}')}{self.space}s"
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return self.space.join((str(minutes), "min", str(rest), "s"))
        hours, minutes = divmod(minutes, 60)
        return self.space.join((f"{hours:,}", "h", str(minutes), "min"))

    def size(self, n_bytes: float | None) -> str:
        """Return a number of bytes in decimal units."""
        if not is_number(n_bytes):
            return self.no_value
        value, unit = float(n_bytes), "B"
        for larger in ("kB", "MB", "GB", "TB"):
            if value < 999.5:
                break
            value, unit = value / 1000, larger
        decimals = 0 if value >= 9.95 or unit == "B" else 1
        return f"{value:,.{decimals}f}{self.space}{unit}"

    def compact(self, value: float | None) -> str:
        """Return a number for an axis: 1,000 but 20k and 1.5M."""
        if not is_number(value):
            return self.no_value
        for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= 10 * unit or (abs(value) >= unit > 1e3):
                return self.number(value / unit, 3) + name
        return self.number(value)

    def quote(self, name: str) -> str:
        """Return a name taken from data, distinct from the words around it."""
        return f"{self.quotes[0]}{clean_text(name)}{self.quotes[1]}"

    def quote_column(self, name: str) -> str:
        """Return the name of a column, or its index in a table without names."""
        return f"column {name}" if name.isdecimal() else self.quote(name)

    def _format_sign(self, text: str) -> str:
        return text.replace("-", self.minus)


plain = Formatter(space=" ", minus="-", no_value="-", range_dash="-", quotes=("'", "'"))
html = Formatter(
    space="\N{NO-BREAK SPACE}",
    minus="\N{MINUS SIGN}",
    no_value="\N{EN DASH}",
    range_dash="\N{EN DASH}",
    quotes=("\N{LEFT SINGLE QUOTATION MARK}", "\N{RIGHT SINGLE QUOTATION MARK}"),
)


def is_number(value: float | None) -> TypeGuard[float]:
    """Return whether a value can be shown: it is neither None nor NaN nor infinite."""
    return value is not None and math.isfinite(value)


def clean_text(text: object) -> str:
    r"""Return the text with control characters, surrogates and direction overrides replaced.

    They would break a page, a terminal or the order of the text that follows them.

    Examples
    --------
    >>> from kernelmill.formatting import clean_text
    >>> clean_text("one\ntwo")
    'one two'
    """
    return "".join(
        " "
        if each in "\n\r\t"
        else "\N{REPLACEMENT CHARACTER}"
        if escape_controls(each) != each
        else each
        for each in str(text)
    )


def shorten(text: str, length: int, keep_end: int = 0) -> str:
    """Return the text, cut to `length` characters of which the last `keep_end` are its end.

    Examples
    --------
    >>> from kernelmill.formatting import shorten
    >>> shorten("class number 38", 10, keep_end=3)
    'class… 38'
    """
    text = clean_text(text)
    if len(text) <= length:
        return text
    return text[: length - 1 - keep_end].rstrip() + "…" + text[len(text) - keep_end :]


def join_words(words: Iterable[str]) -> str:
    """Return a list in a sentence: "a", "a and b", "a, b and c".

    Examples
    --------
    >>> from kernelmill.formatting import join_words
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _strip_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def name_of(function: Callable[..., Any] | None) -> str:
    """Return the name of a function, without the address in its repr."""
    return str(getattr(function, "__name__", repr(function)))
