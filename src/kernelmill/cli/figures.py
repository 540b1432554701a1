"""Numbers as people read them: 12,400 rows, 1.4 MB, 2 min 5 s, 14.6 %."""

from __future__ import annotations

import math

__all__ = ["counted", "duration", "number", "percent", "significant", "size"]


def number(value: float) -> str:
    """A count, with separators.

    Examples
    --------
    >>> number(581012)
    '581,012'
    """
    return f"{value:,.0f}"


def counted(value: float, noun: str) -> str:
    """So many of something whose plural has an s.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def significant(value: float | None, digits: int = 4) -> str:
    """A measurement; a dash for none.

    Examples
    --------
    >>> significant(0.123456), significant(1e-7), significant(None)
    ('0.1235', '1e-07', '-')
    >>> significant(123456.7)
    '123,457'
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 10**digits and abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share of one; a dash for none.

    Examples
    --------
    >>> percent(0.1463), percent(None)
    ('14.6 %', '-')
    """
    return "-" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f} %"


def size(n_bytes: float | None) -> str:
    """Bytes in decimal units; a dash for none.

    Examples
    --------
    >>> size(512), size(132_400), size(2.5e9)
    ('512 B', '132 kB', '2.5 GB')
    """
    if n_bytes is None:
        return "-"
    value, unit = float(n_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if value >= 9.95 or unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float | None) -> str:
    """A time span; a dash for none.

    Examples
    --------
    >>> duration(0.0042), duration(3.14), duration(125), duration(7260)
    ('4.2 ms', '3.1 s', '2 min 5 s', '2 h 1 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 99.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
