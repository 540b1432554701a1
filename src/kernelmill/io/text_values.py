"""What a value in a text file is: missing, a number, a date or other text."""

from __future__ import annotations

import re

__all__ = [
    "COMMA_NUMBER_PATTERN",
    "DATE_PATTERN",
    "DECIMAL_COMMA_PATTERN",
    "MISSING_MARKERS",
    "NUMBER_PATTERN",
    "WHOLE_NUMBER_PATTERN",
    "is_date",
    "is_number",
    "number_of",
]

MISSING_MARKERS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")

# For Python and for RE2, which pyarrow uses.
NUMBER_PATTERN = (
    r"^[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
)
WHOLE_NUMBER_PATTERN = r"^[+-]?[0-9]+$"
# With a comma for the decimal point, and points between groups of three digits.
_GROUPED = r"[0-9]{1,3}(\.[0-9]{3})+"
_EXPONENT = r"([eE][+-]?[0-9]+)?"
DECIMAL_COMMA_PATTERN = rf"^[+-]?([0-9]+|{_GROUPED})?,[0-9]+{_EXPONENT}$"
COMMA_NUMBER_PATTERN = (
    rf"^[+-]?(([0-9]+|{_GROUPED})(,[0-9]*)?{_EXPONENT}|,[0-9]+{_EXPONENT}"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
)
_TIME = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?[AaPp][Mm])?"
DATE_PATTERN = (
    rf"^(([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|[0-9]{{1,4}}/[0-9]{{1,2}}/[0-9]{{1,4}})"
    rf"([T ]{_TIME} ?(Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?)?|{_TIME})$"
)

_NUMBER = {".": re.compile(NUMBER_PATTERN), ",": re.compile(COMMA_NUMBER_PATTERN)}
_DATE = re.compile(DATE_PATTERN)


def is_number(value: str, decimal: str = ".") -> bool:
    """Whether a trimmed value is a number, as `float` takes it (but not 1_000)."""
    return _NUMBER[decimal].match(value) is not None


def number_of(value: str, decimal: str = ".") -> float:
    """The number that a trimmed value is."""
    return float(value if decimal == "." else value.replace(".", "").replace(",", "."))


def is_date(value: str) -> bool:
    """Whether a trimmed value is a date, a time or both."""
    return _DATE.match(value) is not None
