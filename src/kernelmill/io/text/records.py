"""The records of delimited text and the values in them.

A quote opens a quoted value only at the beginning of the value. Inside, two quotes stand for one.
What follows the closing quote belongs to the value. pyarrow reads the same way, and much faster.
This module cuts text into blocks between records, and reads slowly to report the line of an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

__all__ = [
    "COMMA_NUMBER_PATTERN",
    "DATE_PATTERN",
    "DECIMAL_COMMA_PATTERN",
    "LONG_INTEGER",
    "MISSING_MARKERS",
    "NUMBER_PATTERN",
    "Record",
    "count_lines",
    "find_long_record",
    "find_open_quote",
    "is_date",
    "is_large_integer",
    "is_number",
    "last_record_end",
    "parse_number",
    "split_records",
]

MISSING_MARKERS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "<NA>", "#N/A", "#NA"),
    *("#N/A N/A", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Markers of missing values: those of `pandas.read_csv`, and the question mark."""

# For Python's re and for RE2, which pyarrow uses. All patterns match in linear time: no two parts
# that follow each other can take the same characters.
NUMBER_PATTERN = (
    r"^[+-]?([0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
)
# With a decimal comma, and points between groups of three digits.
_GROUPED = r"[0-9]{1,3}(\.[0-9]{3})+"
_EXPONENT = r"([eE][+-]?[0-9]+)?"
DECIMAL_COMMA_PATTERN = rf"^[+-]?([0-9]+|{_GROUPED})?,[0-9]+{_EXPONENT}$"
COMMA_NUMBER_PATTERN = (
    rf"^[+-]?(([0-9]+|{_GROUPED})(,[0-9]*)?{_EXPONENT}|,[0-9]+{_EXPONENT}"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
)
_TIME = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?[AaPp][Mm])?"
_DAY_OR_MONTH = r"[0-9]{1,2}"
_NAME = r"[A-Za-z]{3,9}"
_DAY = "|".join(
    [
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}",
        r"[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}",
        r"[0-3]?[0-9]/[0-3]?[0-9]/[0-9]{2}([0-9]{2})?",
        r"[0-3]?[0-9]\.[01]?[0-9]\.[0-9]{2}([0-9]{2})?",  # German
        r"[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}",
        rf"{_DAY_OR_MONTH} {_NAME} [0-9]{{2}}([0-9]{{2}})?",  # 5 Jan 2024
        rf"{_DAY_OR_MONTH}-{_NAME}-[0-9]{{2}}([0-9]{{2}})?",
        rf"{_NAME} {_DAY_OR_MONTH},? [0-9]{{4}}",  # Jan 5, 2024
    ]
)
DATE_PATTERN = rf"^(({_DAY})(([T ]|, ){_TIME} ?(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?|{_TIME})$"

LONG_INTEGER = re.compile(rb"(?<![0-9.])[0-9]{16,}(?![0-9.eE])")

_NUMBER = {".": re.compile(NUMBER_PATTERN), ",": re.compile(COMMA_NUMBER_PATTERN)}
_DATE = re.compile(DATE_PATTERN)


def is_number(value: str, decimal: str = ".") -> bool:
    """Return whether a trimmed value is a number that `float` accepts (1_000 is not)."""
    return _NUMBER[decimal].match(value) is not None


def is_large_integer(value: str) -> bool:
    """Whether a trimmed value is an integer beyond 2**53, which float64 may not represent."""
    digits = value.lstrip("+-").lstrip("0")
    if len(digits) < 16 or not (digits.isascii() and digits.isdigit()):
        return False
    return len(digits) > 16 or int(digits) > 2**53


def parse_number(value: str, decimal: str = ".") -> float:
    """Convert a trimmed value to a number."""
    return float(value if decimal == "." else value.replace(".", "").replace(",", "."))


def is_date(value: str) -> bool:
    """Return whether a trimmed value is a date, a time or both."""
    return _DATE.match(value) is not None


Record = tuple[int, list[str]]  # the line where it begins, its values

_QUOTE = 0x22
_CLOSING = re.compile(rb'[^"]*(?:""[^"]*)*"(?!")')


def split_records(text: str, delimiter: str, first_line: int, *, quotes: bool) -> Iterator[Record]:
    """Yield the records of a text, each with the number of the line where it begins.

    Empty lines are skipped. A quoted value that is not closed extends to the end of the text.
    """
    stop = re.escape(delimiter)
    plain = re.compile(rf"[^{stop}\r\n]*")
    quoted = re.compile(rf'"([^"]*(?:""[^"]*)*)"?([^{stop}\r\n]*)')
    place, end, line = 0, len(text), first_line
    while place < end:
        begin, values, blank = line, list[str](), True
        while True:
            if quotes and text.startswith('"', place):
                found = quoted.match(text, place)
                assert found is not None
                line += count_lines(found[1].encode())
                values.append(found[1].replace('""', '"') + found[2])
                blank = False
            else:
                found = plain.match(text, place)
                assert found is not None
                values.append(found[0])
            place = found.end()
            if not text.startswith(delimiter, place):
                break
            place += 1
        if place < end:  # at the end of a line
            place += 2 if text.startswith("\r\n", place) else 1
            line += 1
        if values != [""] or not blank:
            yield begin, values


def count_lines(data: bytes) -> int:
    r"""Return the number of line ends: \n, \r\n or \r."""
    returns = data.count(b"\r")
    return data.count(b"\n") + (returns - data.count(b"\r\n") if returns else 0)


def last_record_end(data: bytes, delimiter: bytes, *, quotes: bool) -> int:
    """Return the offset after the last complete record, or 0; `data` begins with a record."""
    if not quotes or b'"' not in data:
        return _last_line_end(data, len(data))
    array = np.frombuffer(data, dtype=np.uint8)
    places = np.flatnonzero(array == _QUOTE)
    # If every second quote opens a value or belongs to a doubled one, a newline is inside a value
    # if and only if the number of quotes before it is odd.
    opening = places[::2]
    before = array[np.maximum(opening - 1, 0)]
    allowed = np.frombuffer(delimiter + b'\r\n"', dtype=np.uint8)
    if not np.all(np.isin(before, allowed) | (opening == 0)):
        return _scan_values(data, delimiter)[0]
    stop = len(data)
    while (end := _last_line_end(data, stop)) > 0:
        quotes_before = int(np.searchsorted(places, end - 1))
        if quotes_before % 2 == 0:
            return end
        stop = int(places[quotes_before - 1])  # the newline is in the value that opens here
    return 0


def find_long_record(data: bytes, delimiter: bytes, longest: int, *, quotes: bool) -> int | None:
    """Return the offset of a record of more than `longest` bytes; `data` begins with a record."""
    begin = 0
    while len(data) - begin > longest:
        end = last_record_end(data[begin : begin + longest + 1], delimiter, quotes=quotes)
        if end == 0:
            return begin
        begin += end
    return None


def _last_line_end(data: bytes, stop: int, start: int = 0) -> int:
    """Return the offset after the last newline in `data[start:stop]`, 0 if there is none."""
    end = data.rfind(b"\n", start, stop) + 1
    if end == 0:  # lines may end in \r alone; the last byte could be half of \r\n
        end = data.rfind(b"\r", start, min(stop, len(data) - 1)) + 1
    return end


def find_open_quote(data: bytes, delimiter: bytes) -> int | None:
    """Return the offset of a quote that is not closed, if any; `data` begins with a record."""
    return _scan_values(data, delimiter)[1]


def _scan_values(data: bytes, delimiter: bytes) -> tuple[int, int | None]:
    """The end of the last record and the offset of a quote that is not closed, value by value."""
    opening = re.compile(rb"[" + re.escape(delimiter) + rb'\r\n]"')
    place, end = 0, 0
    quote = 0 if data.startswith(b'"') else -1
    while True:
        if quote < 0:
            found = opening.search(data, max(place - 1, 0))
            quote = -1 if found is None else found.end() - 1
        last = _last_line_end(data, len(data) if quote < 0 else quote, place)
        end = max(end, last)
        if quote < 0:
            return end, None
        closed = _CLOSING.match(data, quote + 1)
        if closed is None:
            return end, quote
        place, quote = closed.end(), -1
