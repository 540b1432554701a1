"""Statements of the papers about curves and columns, checked with measured values.

A statement is confirmed if the whole interval of the measured value satisfies it, and not confirmed
if no part of it does. In between it is neither: "within chance".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from kernelmill.formatting import plain
from reproduce.declaration import (
    CONFIDENCE,
    Cell,
    Check,
    Claim,
    ConfidenceInterval,
    Key,
    Results,
)

__all__ = ["claim_ratio", "claim_rows", "claim_slope", "claim_value", "mean_ratio"]

_NOT_MEASURED = Check("not measured")


def claim_ratio(
    text: str,
    above: str,
    below: str,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    rows: Sequence[Key] | None = None,
) -> Claim:
    """Return the claim that the geometric mean over rows of a ratio of columns is in a range.

    Examples
    --------
    >>> from reproduce import Cell, Results
    >>> from reproduce.claims import claim_ratio
    >>> results = Results([Cell(1, "a", (2.0, 2.1, 2.0)), Cell(1, "b", (1.0, 1.1, 1.1))])
    >>> claim_ratio("a is above b", "a", "b", at_least=1.0).check(results).word
    'confirmed'
    """

    def check(results: Results) -> Check:
        ratio = mean_ratio(results, above, below, rows)
        if not math.isfinite(ratio.mean):
            return _NOT_MEASURED
        return Check(_compare(ratio, at_least, at_most), f"{above} / {below} = {_show(ratio)}")

    return Claim(text, check)


def claim_slope(text: str, column: str, low: float, high: float, start: float = 0.0) -> Claim:
    """Return the claim that a curve falls or grows as a power of x with an exponent in a range.

    Only values of x from `start` on count.

    Examples
    --------
    >>> from reproduce import Cell, Results
    >>> from reproduce.claims import claim_slope
    >>> results = Results([Cell(n, "error", (n**-0.5,)) for n in (16, 64, 256)])
    >>> claim_slope("errors fall", "error", -0.55, -0.45).check(results).found
    'error: exponent -0.5'
    """

    def check(results: Results) -> Check:
        cells = [cell for cell in results.cells if cell.column == column]
        cells = [cell for cell in cells if float(cell.row) >= start and np.mean(cell.runs) > 0]
        cells = [cell for cell in cells if float(cell.row) > 0]
        if len(cells) < 2:
            return _NOT_MEASURED
        x = np.log([float(cell.row) for cell in cells])
        weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        interval = _combine(cells, weights)
        found = f"{column}: exponent {_show(interval)}"
        return Check(_compare(interval, low, high), found)

    return Claim(text, check)


def claim_rows(
    text: str,
    column: str,
    above: Key,
    below: Key,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Claim:
    """Return the claim that the ratio of two rows of a column is in a range."""

    def check(results: Results) -> Check:
        cells = [results.get(above, column), results.get(below, column)]
        renamed = [
            Cell("ratio", str(row), cell.runs, cell.half_width)
            for row, cell in zip((above, below), cells, strict=True)
            if cell is not None
        ]
        ratio = mean_ratio(Results(renamed), str(above), str(below))
        if not math.isfinite(ratio.mean):
            return _NOT_MEASURED
        found = f"{column}: {above} / {below} = {_show(ratio)}"
        return Check(_compare(ratio, at_least, at_most), found)

    return Claim(text, check)


def claim_value(
    text: str,
    row: Key,
    column: str,
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Claim:
    """Return the claim that one value is in a range."""

    def check(results: Results) -> Check:
        cell = results.get(row, column)
        if cell is None:
            return _NOT_MEASURED
        found = f"{column} at {row}: {_show(cell.interval)}"
        return Check(_compare(cell.interval, at_least, at_most), found)

    return Claim(text, check)


def mean_ratio(
    results: Results, above: str, below: str, rows: Sequence[Key] | None = None
) -> ConfidenceInterval:
    """Return the geometric mean over rows of the ratio of two columns, with its interval.

    Rows whose two cells have different settings, such as numbers of training rows, do not count.
    """
    cells: list[Cell] = []
    signs: list[float] = []
    for row in results.common_rows(above, below):
        first, second = results.get(row, above), results.get(row, below)
        if first is None or second is None or first.deviation != second.deviation:
            continue
        if rows is None or row in rows:
            cells += [first, second]
            signs += [1.0, -1.0]
    if not cells or min(np.mean(cell.runs) for cell in cells) <= 0:
        return ConfidenceInterval(math.nan, math.nan, math.nan)
    logs = _combine(cells, 2 * np.array(signs) / len(signs))
    return ConfidenceInterval(math.exp(logs.mean), math.exp(logs.low), math.exp(logs.high))


def _combine(cells: Sequence[Cell], weights: NDArray[np.float64]) -> ConfidenceInterval:
    """Return a weighted sum of the logarithms of the means of cells.

    Runs share their seeds and often their data. So the interval is that of the jackknife, which
    leaves out the same run of all cells. Where cells have different numbers of runs, or one each,
    their means are taken as independent.
    """
    means = np.array([np.mean(cell.runs) for cell in cells])
    value = float(weights @ np.log(means))
    sizes = [len(cell.runs) for cell in cells]
    n = sizes[0]
    if min(sizes) == max(sizes) > 1:
        runs = np.array([cell.runs for cell in cells])
        without = (runs.sum(axis=1, keepdims=True) - runs) / (n - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = weights @ np.log(without)
        error, degrees = math.sqrt((n - 1) ** 2 / n) * float(np.std(left, ddof=1)), n - 1.0
    else:
        errors = np.array([_standard_error(cell) for cell in cells])
        if not errors.any():
            return ConfidenceInterval(value, math.nan, math.nan)
        error = float(np.linalg.norm(weights * errors / means))
        degrees = sum(sizes) - len(sizes) or math.inf
    half = float(student.ppf((1 + CONFIDENCE) / 2, degrees)) * error
    return ConfidenceInterval(value, value - half, value + half)


def _standard_error(cell: Cell) -> float:
    """The standard error of the mean of a cell; for a single run, from its interval, if any."""
    if len(cell.runs) > 1:
        return float(np.std(cell.runs, ddof=1)) / math.sqrt(len(cell.runs))
    return (cell.half_width or 0.0) / float(norm.ppf((1 + CONFIDENCE) / 2))


def _compare(value: ConfidenceInterval, at_least: float, at_most: float) -> str:
    low, high = (value.low, value.high) if value.known else (value.mean, value.mean)
    if at_least <= low and high <= at_most:
        return "confirmed"
    return "within chance" if low <= at_most and high >= at_least else "not confirmed"


def _show(value: ConfidenceInterval) -> str:
    text = plain.number(value.mean, 3)
    if not value.known:
        return text
    return f"{text} ({plain.number(value.low, 3)} to {plain.number(value.high, 3)})"
