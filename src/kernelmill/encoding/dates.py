"""Encoding of dates and times: year, month, weekday, time of day, elapsed time."""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelmill.encoding.columns import ColumnEncoding
from kernelmill.errors import Message, Remedy
from kernelmill.files.fields import ADDED
from kernelmill.files.kinds import Choice, Float, ListOf
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError

__all__ = [
    "DateEncoding",
    "DateFormats",
    "check_zones",
    "date_values",
    "find_seconds",
    "format_seconds",
]

_DAY = 86_400.0
_MICROSECONDS = {"days": 86_400_000_000, "s": 1_000_000, "ms": 1000}
_MOST_MICROSECONDS = 2**63 - 1
_MOST_OFFSET = 14 * 60  # minutes from UTC, in Kiribati
_TIME = (
    r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2}(?:[.,][0-9]+)?))?"
    r"(?: ?(?P<p>[AaPp][Mm]))?(?: ?(?P<z>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_THEN_TIME = rf"(?:(?:[T ]|, ){_TIME})?$"
_D, _M, _Y, _N = (
    r"(?P<d>[0-9]{1,2})",
    r"(?P<m>[0-9]{1,2})",
    r"(?P<y>[0-9]{4}|[0-9]{2})",
    r"(?P<n>[A-Za-z]{3,9})",
)
# The separators s and t must be equal, which RE2 cannot express; there is a day d or e, not both.
_PATTERNS = {
    "year first": rf"^(?P<y>[0-9]{{4}})(?P<s>[-/]){_M}(?P<t>[-/]){_D}{_THEN_TIME}",
    "day first": rf"^{_D}(?P<s>[./-]){_M}(?P<t>[./-]){_Y}{_THEN_TIME}",
    "month first": rf"^{_M}(?P<s>[/-]){_D}(?P<t>[/-]){_Y}{_THEN_TIME}",
    "name of the month": (
        rf"^(?:{_D}(?P<s>[ -]))?{_N}(?:(?P<t>[ -])|(?: (?P<e>[0-9]{{1,2}}),? )){_Y}{_THEN_TIME}"
    ),
    "time": rf"^{_TIME}$",
}
_CLOCK = ":[0-9]{2}"
_ZONED = f"{_CLOCK}.*(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$"
_SHORT_YEAR = rf"^{_D}[./ -](?:{_M}|{_N})[./ -][0-9]{{2}}(?:[^0-9]|$)"
FORMATS = (*_PATTERNS, "elapsed")
PARTS = ("year", "month", "weekday", "time of day", "elapsed time")
_LAST_YEAR = 68  # of two digits that is in this century, as in Python's `strptime`
_CYCLES = {"month": 12.0, "weekday": 7.0, "time of day": _DAY}
_MONTHS = {
    name.lower(): number
    for names in (calendar.month_abbr, calendar.month_name)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}


@dataclass(frozen=True)
class DateEncoding(ColumnEncoding):
    """Parts of a date, each as numbers.

    The year and the elapsed time (of dates: since 1970) are standardized. Month, weekday and time
    of day are encoded as points on a circle, (cos, sin), so December is next to January. Dates and
    times with an offset are converted to UTC. A missing date is encoded as 0 in all columns, and as
    1 in an indicator column if `marks`.

    Parameters
    ----------
    name : str
    format : str
        The order of day, month and year in strings: one of `FORMATS`.
    parts : sequence of str
        Those of `PARTS` that vary.
    means, scales : sequence of float
        Means and standard deviations of the year and of the elapsed time in seconds.
    marks : bool
    zoned : bool or None
        Whether times have an offset from UTC; None if not known, as in older files.
    """

    name: str
    format: Annotated[str, Choice(*FORMATS)]
    parts: Annotated[tuple[str, ...], ListOf(Choice(*PARTS))]
    means: Annotated[tuple[float, ...], ListOf(Float(), 2, 2)]
    scales: Annotated[tuple[float, ...], ListOf(Float(above=0), 2, 2)]
    marks: bool = False
    zoned: bool | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        for name in ("parts", "means", "scales"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def n_columns(self) -> int:
        """Two for each part on a circle, one for each other, and one for the marks."""
        return sum(size for _, size in self.groups())

    def names(self) -> list[str]:
        """Names such as "date (year)" and "date (month, sine)"."""
        found = []
        for part in self.parts:
            ways = (", cosine", ", sine") if part in _CYCLES else ("",)
            found += [f"{self.name} ({part}{way})" for way in ways]
        return found + [f"{self.name} is missing"] * self.marks

    def groups(self) -> list[tuple[str, int]]:
        """One group for each part."""
        groups = [(f"{self.name} ({part})", 2 if part in _CYCLES else 1) for part in self.parts]
        return groups + [(f"{self.name} is missing", 1)] * self.marks

    def write(self, values: Any, out: NDArray[Any]) -> None:
        """Encode seconds, of which NaN is missing."""
        missing = np.isnan(values)
        seconds = np.where(missing, 0.0, values)
        place = 0
        for part in self.parts:
            found = find_part(part, seconds)
            if part in _CYCLES:
                angle = 2 * np.pi * found / _CYCLES[part]
                out[:, place], out[:, place + 1] = np.cos(angle), np.sin(angle)
                out[missing, place : place + 2] = 0.0
                place += 2
            else:
                which = 0 if part == "year" else 1
                column = (found - self.means[which]) / self.scales[which]
                out[:, place] = np.where(missing, 0.0, column)
                place += 1
        if self.marks:
            out[:, place] = missing


def find_part(part: str, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of dates that are given in seconds since 1970."""
    if part == "elapsed time":
        return seconds
    days = np.floor(seconds / _DAY)
    if part == "time of day":
        return seconds - days * _DAY
    if part == "weekday":
        return (days + 3) % 7  # Monday is 0; 1970 began on a Thursday
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]").astype(np.int64)
    found = months // 12 + 1970 if part == "year" else months % 12
    return found.astype(np.float64)


def format_seconds(seconds: float, format_: str) -> str:
    """Return a date, a time of day or an elapsed time, given in seconds, as text."""
    if format_ == "elapsed":
        return f"{plain.number(seconds)} s"
    text = str(np.datetime64(round(seconds), "s"))
    return text[11:16] if format_ == "time" else text.removesuffix("T00:00:00")


def find_zones(column: Any) -> tuple[str, str, int]:
    """Return a time with an offset from UTC, one without, and the row of the latter.

    The results are empty if there is no such time. Dates without a time have no offset.
    """
    if pa.types.is_temporal(column.type):
        if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
            return "", "", 0
        row = int(np.argmax(column.is_valid().to_numpy(zero_copy_only=False)))
        shown = column[row : row + 1].cast(pa.string())[0].as_py()  # Python's end with year 9999
        return ("", shown, row) if column.type.tz is None else (shown, "", 0)
    words = pc.utf8_trim_whitespace(column.cast(pa.string()))
    zoned = pc.match_substring_regex(words, _ZONED).fill_null(False)
    bare = pc.and_not(pc.match_substring_regex(words, _CLOCK).fill_null(False), zoned)
    places = [pc.index(each, True).as_py() for each in (zoned, bare)]
    first, second = (words[place].as_py() if place >= 0 else "" for place in places)
    return first, second, max(places[1], 0)


def check_zones(
    column: Any, name: str, zoned: bool | None, file: Any = "the table", first_row: int = 0
) -> None:
    """Raise an error for times without an offset if those of training had one, or conversely."""
    if zoned is None:
        return
    with_offset, without, row = find_zones(column)
    if not (without if zoned else with_offset):
        return
    if zoned:
        place = f"{without!r} in row {first_row + row + 1}, without an offset from UTC"
        had, remedy = "one", "write all times with an offset, such as +00:00 for UTC"
    else:
        place = f"{with_offset!r}, with an offset from UTC"
        had, remedy = "none", "write all times without an offset, in the time zone of training"
    problem = f"{file}: column {name!r} has {place}, but times had {had} in training"
    raise TableError(problem, remedy)


def date_values(
    column: Any, name: str, format_: str, file: Any = "the table", first_row: int = 0
) -> NDArray[np.float64]:
    """Seconds since 1970 (or of the day, or elapsed) of dates; NaN is missing.

    A string that is not a date in the format, or a date that is out of range, raises an error with
    the row.
    """
    if pa.types.is_temporal(column.type):
        _check_range(column, name, file, first_row)
    seconds, wrong = find_seconds(column, format_)
    if wrong.any():
        row = int(np.argmax(wrong))
        found = str(column[row].as_py()).strip()
        raise TableError(
            f"{file}: column {name!r} has {found!r} in row {first_row + row + 1}, "
            f"which is not a valid date; dates of this column are {format_}, as in training",
            "correct it",
        )
    return seconds


def find_seconds(column: Any, format_: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The same seconds, NaN also for strings that are not such dates, and which strings are not."""
    if pa.types.is_temporal(column.type):
        return _seconds_of_type(column), np.zeros(len(column), bool)
    return _parse(pc.utf8_trim_whitespace(column.cast(pa.string())), format_)


def _check_range(column: Any, name: str, file: Any, first_row: int) -> None:
    """Raise an error for a date or duration whose microseconds are no 64-bit integer."""
    kind = column.type
    unit = "days" if pa.types.is_date32(kind) else getattr(kind, "unit", "ms")  # of date64
    most = _MOST_MICROSECONDS // _MICROSECONDS.get(unit, 1)
    numbers = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
    wrong = pc.or_(pc.greater(numbers, most), pc.less(numbers, -most)).fill_null(False)
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise TableError(
            f"{file}: column {name!r} has {numbers[row].as_py()} ({kind}) in row "
            f"{first_row + row + 1}, which is out of range: more than 292,000 years",
            "correct it",
            "correct it or leave it empty",
        )


def _seconds_of_type(column: Any) -> NDArray[np.float64]:
    kind = column.type
    if pa.types.is_time32(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.time64("us"), safe=False)
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    else:
        column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
    micro: NDArray[np.float64] = (
        column.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    )
    return micro / 1e6


def _parse(words: Any, format_: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Seconds of strings, NaN where they are missing, and which strings are not dates.

    Dates with the year first, such as 2024-05-31, may be among those of other formats.
    """
    seconds, wrong = _parse_one_format(words, format_)
    if wrong.any() and format_ in ("day first", "month first", "name of the month"):
        others, neither = _parse_one_format(words, "year first")
        seconds, wrong = np.where(wrong, others, seconds), wrong & neither
    return seconds, wrong


def _parse_one_format(words: Any, format_: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    is_null = words.is_null().to_numpy(zero_copy_only=False)
    if format_ not in _PATTERNS:
        return np.full(len(words), np.nan), ~is_null
    found = pc.extract_regex(words, _PATTERNS[format_])
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    fields = {each.name for each in found.type}

    def number(name: str) -> NDArray[np.float64]:
        if name not in fields:
            return np.full(len(words), np.nan)
        text = pc.replace_substring(pc.struct_field(found, name), ",", ".")
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
        values: NDArray[np.float64] = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return values

    hours, minutes, parts_of_minute = number("H"), number("M"), number("S")
    clock = np.nan_to_num(minutes) * 60 + np.nan_to_num(parts_of_minute)
    if "p" in fields:
        half = pc.utf8_lower(pc.struct_field(found, "p")).to_pylist()
        after_noon = np.array([each == "pm" for each in half])
        before_noon = np.array([each == "am" for each in half])
        wrong_half = (after_noon | before_noon) & ~((hours >= 1) & (hours <= 12))
        hours = np.where((after_noon | before_noon) & (hours == 12), 0.0, hours)
        hours = np.where(wrong_half, np.inf, hours + 12.0 * after_noon)
    right = ~(hours > 23) & ~(minutes > 59) & ~(parts_of_minute >= 61)
    clock += np.nan_to_num(hours, posinf=0.0) * 3600
    offsets = _offsets(found)
    right &= ~np.isnan(offsets)
    clock -= np.nan_to_num(offsets)
    if format_ == "time":
        return np.where(matched, clock % _DAY, np.nan), ~is_null & ~(matched & right)
    days, fits = _count_days(number, found, fields)
    fits &= _separators_agree(found, fields)
    seconds = days * _DAY + clock
    return np.where(matched & fits, seconds, np.nan), ~is_null & ~(matched & fits & right)


def _count_days(
    number: Any, found: Any, fields: set[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Days since 1970, and whether there is such a day."""
    years, days = number("y"), number("d")
    if "n" in fields:
        days = np.where(np.isnan(days), number("e"), days)
        names = pc.utf8_lower(pc.struct_field(found, "n")).to_pylist()
        months = np.array([_MONTHS.get(name or "", np.nan) for name in names], np.float64)
    else:
        months = number("m")
    two_digits = pc.equal(pc.utf8_length(pc.struct_field(found, "y")), 2).fill_null(False)
    century = np.where(years > _LAST_YEAR, 1900, 2000)
    years = years + np.where(two_digits.to_numpy(zero_copy_only=False), century, 0)
    known: NDArray[np.bool_] = ~(np.isnan(years) | np.isnan(months) | np.isnan(days))
    known &= (months >= 1) & (months <= 12) & (days >= 1)
    whole = np.where(known, (years - 1970) * 12 + months - 1, 0).astype(np.int64)
    first = whole.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    length = (whole + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) - first
    known &= ~(days > length)
    counted = first.astype(np.float64) + np.where(known, days - 1.0, 0.0)
    return counted, known


def _separators_agree(found: Any, fields: set[str]) -> NDArray[np.bool_]:
    """Return whether dates are written as 2024-05-31 or 2024/05/31, but not as 2024-05/31."""
    first, second = pc.struct_field(found, "s"), pc.struct_field(found, "t")
    agree = pc.equal(first, second)
    if "e" in fields:  # May 31, 2024: no day before the month
        has_day_after = pc.not_equal(pc.struct_field(found, "e"), "")
        agree = pc.if_else(has_day_after, pc.equal(first, ""), agree)
    values: NDArray[np.bool_] = agree.fill_null(False).to_numpy(zero_copy_only=False)
    return values


def _offsets(found: Any) -> NDArray[np.float64]:
    """Return the seconds by which local times are ahead of UTC; NaN for an impossible offset."""
    zones = pc.struct_field(found, "z").to_pylist()
    offsets = {zone: _offset(zone) for zone in set(zones)}
    return np.array([offsets[zone] for zone in zones], np.float64)


def _offset(zone: str | None) -> float:
    if not zone or zone[0] not in "+-":
        return 0.0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if minutes > 59 or hours * 60 + minutes > _MOST_OFFSET:
        return np.nan
    return (1 if zone[0] == "+" else -1) * (hours * 3600.0 + minutes * 60.0)


class DateFormats:
    """Detects the format of a column of dates, block by block, and fits its encoding.

    A format remains possible as long as all values are dates in this format.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.missing = 0
        self.count = 0
        self._formats: list[str] | None = None
        self._example = self._short_year = ""
        self._zoned = self._bare = ""  # a time with an offset from UTC, and one without

    def update(self, column: Any, *, file: Any, first_row: int) -> None:
        """Add the dates of a block: strings, or a temporal type."""
        if pa.types.is_temporal(column.type):
            _check_range(column, self.name, file, first_row)
        self.missing += column.null_count
        self.count += len(column) - column.null_count
        zoned, bare, _ = find_zones(column)
        self._zoned, self._bare = self._zoned or zoned, self._bare or bare
        self._check_zones()
        if pa.types.is_temporal(column.type):
            kind = column.type
            is_time = pa.types.is_time32(kind) or pa.types.is_time64(kind)
            elapsed = "elapsed" if pa.types.is_duration(kind) else "year first"
            self._formats = ["time" if is_time else elapsed]
            return
        words = pc.utf8_trim_whitespace(column.cast(pa.string()))
        if len(words) == words.null_count:
            return
        self._example = self._example or words.drop_null()[0].as_py()
        known = list(_PATTERNS) if self._formats is None else self._formats
        left = {each: _parse(words, each)[1] for each in known}
        possible = [each for each, wrong in left.items() if not wrong.any()]
        if not possible:
            row = min(int(np.argmax(wrong)) for wrong in left.values())
            row = max(row, *(int(np.argmax(wrong)) for wrong in left.values()))
            raise TableError(
                f"{file}: column {self.name!r} has {words[row].as_py()!r} in row "
                f"{first_row + row + 1}, which is not a date in the format of other values, such "
                f"as {self._example!r}",
                *self._remedies(),
            )
        self._formats = possible
        if not self._short_year:
            short = words.filter(pc.match_substring_regex(words, _SHORT_YEAR))
            self._short_year = short[0].as_py() if len(short) else ""

    def merge(self, later: DateFormats) -> None:
        """Add the formats that another one detected in the rows that follow."""
        self.missing += later.missing
        self.count += later.count
        if self._formats is not None and later._formats is not None:
            possible = [each for each in self._formats if each in later._formats]
            if not possible:
                raise TableError(
                    f"column {self.name!r} has dates in different formats, such as "
                    f"{self._example!r} and {later._example!r}",
                    *self._remedies(),
                )
            self._formats = possible
        self._formats = self._formats or later._formats
        self._example = self._example or later._example
        self._short_year = self._short_year or later._short_year
        self._zoned, self._bare = self._zoned or later._zoned, self._bare or later._bare
        self._check_zones()

    def _check_zones(self) -> None:
        if self._zoned and self._bare:
            raise TableError(
                f"column {self.name!r} has times with an offset from UTC, such as "
                f"{self._zoned!r}, and without, such as {self._bare!r}",
                "write all of them with an offset or all without",
                *self._remedies()[1:],
            )

    def _remedies(self) -> tuple[Remedy | str, ...]:
        """Return the remedies for dates in different formats."""
        return (
            "write all dates in one format, preferably 2024-05-31",
            Remedy("leave the column out", drop=[self.name]),
            Remedy("read it as categories", categorical=[self.name]),
        )

    def choose_format(self, day_first: bool | None) -> str:
        """Return the format of the column; `day_first` decides where several are possible."""
        formats = self._formats or ["year first"]
        if formats[0] == "day first" and "month first" in formats:
            if day_first is None:
                raise TableError(
                    f"column {self.name!r} has dates such as {self._example!r}, in which either "
                    "the day or the month may come first",
                    Remedy("read the day first", day_first=True),
                    Remedy("read the month first", day_first=False),
                    "write the dates as 2024-05-31",
                    Remedy("leave the column out", drop=[self.name]),
                )
            return "day first" if day_first else "month first"
        return formats[0]

    def encoding(self, sample: Any, *, marks: bool, day_first: bool | None) -> DateEncoding:
        """Return the fitted encoding; parts that do not vary in `sample` are left out."""
        chosen = self.choose_format(day_first)
        seconds = date_values(sample, self.name, chosen)
        seconds = seconds[~np.isnan(seconds)]
        names: tuple[str, ...] = PARTS
        if chosen in ("time", "elapsed"):
            names = ("time of day",) if chosen == "time" else ("elapsed time",)
        parts = tuple(part for part in names if len(seconds) and np.ptp(find_part(part, seconds)))
        moments = []
        for part in ("year", "elapsed time"):
            found = find_part(part, seconds) if part in parts else np.zeros(1)
            moments.append((float(found.mean()), float(found.std()) or 1.0))
        means, scales = zip(*moments, strict=True)
        zoned = bool(self._zoned) if self._zoned or self._bare else None
        marked = marks and self.missing > 0
        return DateEncoding(self.name, chosen, parts, means, scales, marked, zoned)

    def note(self, encoding: Any) -> Message:
        """Return a note about how the dates were read."""
        zone = f"; times with an offset, as in {self._zoned!r}, are converted to UTC"
        years = f"; two-digit years, as in {self._short_year!r}, are read as 1969 to 2068"
        return Message(
            f"Column {self.name!r} has dates ({encoding.format}), which are encoded as "
            f"{', '.join(encoding.parts) or 'nothing, since they are all equal'}"
            f"{years if self._short_year else ''}{zone if self._zoned else ''}",
            Remedy("drop the column if it does not help to predict the target", drop=[self.name]),
        )

    def detail(self, encoding: DateEncoding) -> str:
        """Return a short description for the user."""
        return f"dates, {encoding.format}: {', '.join(encoding.parts) or 'left out'}"
