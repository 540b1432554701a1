"""Numbers and names as people read them, in text, tables and on axes."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

__all__ = [
    "bare_percent",
    "compact",
    "count",
    "counted",
    "is_number",
    "list_of",
    "number",
    "percent",
    "percent_range",
    "printable",
    "quoted",
    "quoted_column",
    "seconds",
    "shorten",
    "size",
]

NO_VALUE = "\N{EN DASH}"
_SPACE = "\N{NO-BREAK SPACE}"


def is_number(value: float | None) -> bool:
    """Whether there is a value that can be shown: neither None nor NaN nor infinite."""
    return value is not None and math.isfinite(value)


def printable(text: object) -> str:
    """`text` without characters that no page can hold: control characters, halves of pairs.

    Directions of writing are kept to themselves by the page, so the marks that switch them go too.
    """
    return "".join(
        " "
        if each in "\n\r\t"
        else "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(each) in ("Cc", "Cs") or each in "\u202a\u202b\u202d\u202e"
        else each
        for each in str(text)
    )


def quoted(name: str) -> str:
    """A name of the data, told apart from the words around it."""
    return f"\N{LEFT SINGLE QUOTATION MARK}{printable(name)}\N{RIGHT SINGLE QUOTATION MARK}"


def quoted_column(name: str) -> str:
    """A column's name, or its index in a table without names."""
    return f"column {name}" if name.isdecimal() else quoted(name)


def shorten(text: str, length: int, keep_end: int = 0) -> str:
    """`text`; where it is longer than `length`, its first and `keep_end` last characters."""
    text = printable(text)
    if len(text) <= length:
        return text
    return text[: length - 1 - keep_end].rstrip() + "…" + text[len(text) - keep_end :]


def count(value: int | None) -> str:
    """A whole number with its thousands set apart."""
    return NO_VALUE if value is None else f"{value:,}".replace("-", "\N{MINUS SIGN}")


def counted(value: int, noun: str, plural: str = "") -> str:
    """So many of something: "1 row", "2 rows"; nouns whose plural is not an s give it."""
    return f"{count(value)} {noun if value == 1 else plural or noun + 's'}"


def number(value: float | None, digits: int = 4) -> str:
    """A number to so many significant digits, without an exponent where that is readable."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if -4 <= magnitude < 7:
        text = f"{value:,.{max(0, digits - 1 - magnitude)}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    else:
        text = f"{value:.{digits - 1}e}"
        mantissa, exponent = text.split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "\N{MINUS SIGN}")


def bare_percent(share: float | None) -> str:
    """A share in percent, without the sign; small ones get a digit more."""
    if share is None or not math.isfinite(share):
        return NO_VALUE
    digits = 1 if abs(share) >= 0.00995 or share == 0 else 2
    return f"{100 * share:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def percent(share: float | None) -> str:
    """A share in percent."""
    text = bare_percent(share)
    return text if text == NO_VALUE else f"{text}{_SPACE}%"


def percent_range(low: float | None, high: float | None) -> str:
    """From one share to another, in percent; nothing where one of them is not known."""
    if not is_number(low) or not is_number(high):
        return ""
    return f"{bare_percent(low)}\N{EN DASH}{percent(high)}"


def seconds(value: float | None) -> str:
    """A length of time, to two or three digits."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if value < 0.0005:
        return f"{1e6 * value:.0f}{_SPACE}µs"
    if value < 0.1:
        return f"{number(1e3 * value, 2)}{_SPACE}ms"
    if value < 99.5:
        return f"{number(value, 3)}{_SPACE}s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min{_SPACE}{rest}{_SPACE}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}{_SPACE}h{_SPACE}{minutes}{_SPACE}min"


def size(n_bytes: int | None) -> str:
    """An amount of memory, in decimal units as in the terminal."""
    if n_bytes is None:
        return NO_VALUE
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    digits = 0 if value >= 9.95 or unit == "B" else 1
    return f"{value:,.{digits}f}{_SPACE}{unit}"


def compact(value: float) -> str:
    """A large number for an axis: 1,000 but 20k and 1.5M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit > 1e3):
            return number(value / unit, 3) + name
    return number(value, 4)


def list_of(names: Iterable[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
