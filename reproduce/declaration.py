"""What an experiment of a paper is: how it is measured, what was published, what is claimed.

An `Experiment` is declared once for each table or figure. Measured values are `Cell` objects, with
one value for each run; tables, plots, pages and verdicts are derived from them. A figure is a table
whose rows are numbers, the values of its x-axis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

import numpy as np
from scipy.stats import t as student

__all__ = [
    "CONFIDENCE",
    "Cell",
    "Check",
    "Claim",
    "Column",
    "ConfidenceInterval",
    "Experiment",
    "Paper",
    "Points",
    "Published",
    "Results",
    "Scale",
]

CONFIDENCE = 0.99
"""The probability that an interval covers the mean of infinitely many runs."""

Key = str | float
Value = TypeVar("Value")


class Scale(Enum):
    """How large an experiment is: as in the paper, for a first look, or to test the code."""

    FULL = "full"
    QUICK = "quick"
    TEST = "test"

    def choose(self, full: Value, quick: Value, test: Value) -> Value:
        """Return the value for this scale.

        Examples
        --------
        >>> from reproduce import Scale
        >>> Scale.QUICK.choose(60_000, 2000, 100)
        2000
        """
        return {Scale.FULL: full, Scale.QUICK: quick, Scale.TEST: test}[self]


@dataclass(frozen=True)
class Paper:
    """A paper, and how its experiments are named on the command line."""

    key: str  # "fastfood"
    authors: str  # "Le, Sarlós & Smola (2013)"
    title: str
    introduction: str  # what its experiments are about


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean and the interval for it; both ends are NaN if it is not known."""

    mean: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class Cell:
    """The measured values of one place of a table, or one point of a curve.

    Parameters
    ----------
    row, column : str or float, str
    runs : sequence of float
        One value for each run; runs differ in seed, split of the rows, or round of timing.
    half_width : float, optional
        Of the interval, for values of a single run, such as an error on so many test rows.
    deviation : str, default=""
        How the settings differ from those of the paper: "1,000 of 4,080 training rows".

    Examples
    --------
    >>> from reproduce import Cell
    >>> Cell(512, "Fastfood", (0.1, 0.12, 0.11)).interval.mean
    0.11
    """

    row: Key
    column: str
    runs: tuple[float, ...]
    half_width: float | None = None
    deviation: str = ""

    @property
    def interval(self) -> ConfidenceInterval:
        """The mean over the runs and its interval, by Student's t."""
        mean = float(np.mean(self.runs))
        half = self.half_width
        if half is None and len(self.runs) > 1:
            error = float(np.std(self.runs, ddof=1)) / math.sqrt(len(self.runs))
            half = float(student.ppf((1 + CONFIDENCE) / 2, len(self.runs) - 1)) * error
        if half is None:
            return ConfidenceInterval(mean, math.nan, math.nan)
        return ConfidenceInterval(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Points:
    """Points of a scatter plot: a sample of pairs, such as exact and estimated kernel values."""

    panel: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Column:
    """A column of a table, or a curve of a figure.

    Parameters
    ----------
    name : str
    unit : str, default=""
        Such as "s" or "%".
    better : {"lower", "higher", ""}, default="lower"
        Which differences from the paper are improvements; "" if the value is not to be compared,
        such as a time on another machine.
    panel : str, default=""
        Curves of one panel are drawn together.
    ours : bool, default=True
        Whether kernelmill computes it; the others are peers, run for comparison.
    label : str, default=""
        The name in its panel, where that is shorter than the name of the column.
    """

    name: str
    unit: str = ""
    better: str = "lower"
    panel: str = ""
    ours: bool = True
    label: str = ""


@dataclass(frozen=True)
class Published:
    """A figure of the paper as it is printed: "0.231", "78.87±0.06", "24x", "n.a.".

    Examples
    --------
    >>> from reproduce import Published
    >>> figure = Published("78.87±0.06")
    >>> figure.value, figure.spread, figure.rounding
    (78.87, 0.06, 0.005)
    """

    text: str

    _NUMBER = re.compile(r"(\d+)(?:\.(\d+))?")

    @property
    def value(self) -> float | None:
        """The number; None for "n.a."."""
        found = self._NUMBER.search(self.text)
        return float(found[0]) if found else None

    @property
    def spread(self) -> float:
        """The standard deviation over runs; 0 if the paper does not print it."""
        _, sign, after = self.text.partition("±")
        found = self._NUMBER.search(after)
        return float(found[0]) if sign and found else 0.0

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit."""
        found = self._NUMBER.search(self.text)
        return 0.5 * 10.0 ** -len(found[2] or "") if found else 0.0


@dataclass(frozen=True)
class Check:
    """Whether a statement of the paper holds here."""

    word: str  # "confirmed", "within chance", "not confirmed" or "not measured"
    found: str = ""  # "1.02 times (0.99 to 1.05)"
    reason: str = ""  # why it is not confirmed

    @property
    def explained(self) -> str:
        """What was found, and why it is not what the paper says."""
        return ". ".join(each for each in (self.found, self.reason) if each)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, checked with the measured values."""

    text: str
    check: Callable[[Results], Check]
    full_only: bool = False  # about times that smaller sizes say nothing about
    reason: str = ""  # why it does not hold here, as far as is known; shown if it does not


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    name : str
        On the command line: "fastfood-table-3".
    paper : Paper
    place : str
        "Table 3".
    title : str
    settings : str
        What is measured, and how; where it differs from the paper, how.
    row : str
        The heading of the rows, or the label of the x-axis.
    columns : tuple of Column
    parts : mapping of str to tuple of str
        The parts in which it is run and resumed, with the data sets that each one needs.
    measure : callable
        From a part, a scale and a seed to cells and points.
    published : mapping of (row, column) to str
        The paper's values as printed.
    published_runs : int, default=1
        Over how many runs the paper's values are means; 0 if they are not random. Where
        the paper does not print their spread, it is taken to be that of the runs here.
    claims : tuple of Claim
        What the paper says about figures that it does not print.
    reasons : mapping of str to str
        Why values differ from the paper: by row, by column, or "" for all.
    not_comparable : mapping of str to str
        Rows that cannot be compared with the paper, and why.
    value : str
        What the values are, for the y-axis: "root mean squared error"; "" if that differs from
        panel to panel, whose names then begin with it.
    log_y : bool, default=False
    """

    name: str
    paper: Paper
    place: str
    title: str
    settings: str
    row: str
    columns: tuple[Column, ...]
    parts: Mapping[str, tuple[str, ...]]
    measure: Callable[[str, Scale, int], Iterable[Cell | Points]]
    value: str
    published: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    published_runs: int = 1
    claims: tuple[Claim, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    not_comparable: Mapping[str, str] = field(default_factory=dict)
    log_y: bool = False

    def column(self, name: str) -> Column:
        """Return the column of this name."""
        return next(each for each in self.columns if each.name == name)

    def reason(self, row: Key, column: str) -> str:
        """Why values of this row and column differ from the paper, as far as is known."""
        found = [self.reasons[key] for key in (str(row), column, "") if key in self.reasons]
        return " ".join(found)


@dataclass(frozen=True)
class Results:
    """The cells and points of an experiment; partial if it was interrupted or data are missing."""

    cells: Sequence[Cell] = ()
    points: Sequence[Points] = ()

    def get(self, row: Key, column: str) -> Cell | None:
        """Return the cell at this place."""
        for cell in self.cells:
            if cell.row == row and cell.column == column:
                return cell
        return None

    def rows(self) -> list[Key]:
        """Return the rows in the order in which they were measured."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    def common_rows(self, *columns: str) -> list[Key]:
        """Return the rows that have cells in all of these columns."""
        return [
            row for row in self.rows() if all(self.get(row, each) is not None for each in columns)
        ]
