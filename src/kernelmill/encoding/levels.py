"""Categories that have an order because they name numbers: "10-19", "<5", "65+", "3rd".

Only strings that clearly are quantities are accepted. Codes such as "4711" or "area 408" have
digits but no order, so plain numbers and words followed by a number are not accepted, except for a
few words such as "level".
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["FEWEST_LEVELS", "MOST_LEVELS", "find_number", "sort_levels"]

FEWEST_LEVELS = 3
MOST_LEVELS = 64

# No leading zeros: those are codes.
_NUMBER = r"[$€£]?-?(?:[1-9]\d{0,2}(?:,\d{3})+|0|[1-9]\d*)(?:\.\d+)?"
_UNIT = r"[a-z%°]+\.?"
_PATTERN = re.compile(
    rf"""
    (?:(?P<word>level|grade|stage|tier|rank|degree|step|phase|score)[\s_.-]*)?
    (?:(?P<below><=?|≤|under|below|less\ than|up\ to)|(?P<above>>=?|≥|over|above|more\ than))?\s*
    (?P<first>{_NUMBER})\s*(?P<unit>{_UNIT})??\s*
    (?:(?:-|\u2013|\u2014|to|\.\.)\s*(?P<second>{_NUMBER})\s*(?P<unit_of_second>{_UNIT})??)?\s*
    (?P<more>\+|plus|(?:and|or)\ (?:over|above|more|older|up))?\s*
    (?P<last_unit>{_UNIT})?
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, order=True)
class _Level:
    """The numbers that a string stands for, from `low` to `high`."""

    low: float
    high: float
    units: frozenset[str]
    is_quantity: bool  # with a range, a bound, a unit or a word such as "level"

    @property
    def start(self) -> float:
        """The smallest of them, or a number just below the upper bound."""
        return math.nextafter(self.high, -math.inf) if math.isinf(self.low) else self.low

    @property
    def number(self) -> float:
        """A number that represents all of them."""
        is_bounded = math.isfinite(self.low) and math.isfinite(self.high)
        return (self.low + self.high) / 2 if is_bounded else self.start


def sort_levels(strings: Collection[str]) -> tuple[tuple[str, ...], tuple[float, ...]] | None:
    """Return the strings in the order of the numbers they name, and the smallest number of each.

    The result is None if they have no order: ranges must not overlap, and all units must be equal.

    Examples
    --------
    >>> from kernelmill.encoding.levels import sort_levels
    >>> sort_levels(["65+", "18-24", "<18", "25-64"])
    (('<18', '18-24', '25-64', '65+'), (17.999999999999996, 18.0, 25.0, 65.0))
    >>> sort_levels(["10115", "20095", "80331"]) is None  # codes
    True
    """
    if not FEWEST_LEVELS <= len(strings) <= MOST_LEVELS:
        return None
    levels = {}
    for string in strings:
        level = _read_level(string)
        if level is None:
            return None
        levels[string] = level
    if len({unit for level in levels.values() for unit in level.units}) > 1:
        return None
    if not any(level.is_quantity for level in levels.values()):
        return None
    ordered = sorted(levels, key=lambda each: (levels[each].low, levels[each].high))
    starts = tuple(levels[each].start for each in ordered)
    apart = all(levels[a].high <= levels[b].low for a, b in pairwise(ordered))
    if not apart or any(b <= a for a, b in pairwise(starts)):
        return None
    return tuple(ordered), starts


def find_number(string: str) -> float | None:
    """Return the number that stands for a string, if it names one.

    Examples
    --------
    >>> from kernelmill.encoding.levels import find_number
    >>> find_number("25-34 years"), find_number("unknown")
    (29.5, None)
    """
    level = _read_level(string)
    return None if level is None else level.number


def _read_level(string: str) -> _Level | None:
    if len(string) > 40:  # a sentence
        return None
    match = _PATTERN.fullmatch(" ".join(string.lower().split()))
    if match is None:
        return None
    low = high = _parse(match["first"])
    if match["second"] is not None:
        high = _parse(match["second"])
    bounds = [match["below"], match["above"], match["more"]]
    n_bounds = sum(each is not None for each in bounds)
    if high < low or not math.isfinite(high) or n_bounds + (match["second"] is not None) > 1:
        return None
    if match["below"] is not None:
        low = -math.inf
    elif n_bounds:
        # ">16" may follow "16".
        is_strict = match["above"] is not None and match["above"] not in (">=", "≥")
        low, high = math.nextafter(low, math.inf) if is_strict else low, math.inf
    found = (match["unit"], match["unit_of_second"], match["last_unit"])
    units = frozenset(_spell(unit) for unit in found if unit)
    # One letter may be part of a code: 4A.
    has_unit = any(len(unit) > 1 or unit in "%°" for unit in units)
    is_range = n_bounds > 0 or match["second"] is not None
    return _Level(low, high, units, is_range or has_unit or match["word"] is not None)


def _parse(number: str) -> float:
    return float(number.lstrip("$€£").replace(",", ""))


def _spell(unit: str) -> str:
    """Return a unit without its plural; all endings of ordinal numbers are the same."""
    return "th" if unit in ("st", "nd", "rd") else unit.rstrip(".").rstrip("s") or unit
