"""Results of an experiment compared with those of the paper: verdicts, checked statements.

An `Outcome` is what pages, Markdown, JSON and terminals show.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from kernelmill.formatting import is_number
from reproduce.declaration import (
    CONFIDENCE,
    Cell,
    Check,
    Experiment,
    Key,
    Published,
    Results,
)
from reproduce.running import Record

__all__ = ["Line", "Outcome", "Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """How a measured value compares with the published one."""

    word: str  # "better", "same", "worse", "other settings", "not compared" or "not measured"
    ratio: float = math.nan  # measured / published
    reason: str = ""


def judge(experiment: Experiment, results: Results, row: Key, column: str) -> Verdict:
    """Compare a cell with the figure of the paper.

    "same": they differ by no more than chance and rounding allow, that is, by the root of the sum
    of squares of the half-widths of both intervals, plus half a unit of the last printed digit. The
    published value is taken to vary from run to run as those here do.

    Examples
    --------
    >>> from reproduce import EXPERIMENTS, Cell, Results, judge
    >>> experiment = EXPERIMENTS["fastfood-table-3"]
    >>> results = Results([Cell("Wine Quality", "Fastfood RBF", (0.62, 0.64, 0.63, 0.63))])
    >>> judge(experiment, results, "Wine Quality", "Fastfood RBF").word
    'better'
    """
    cell = results.get(row, column)
    if cell is None:
        return Verdict("not measured")
    printed = Published(experiment.published.get((row, column), ""))
    value, better = printed.value, experiment.column(column).better
    if value is None or not better:
        return Verdict("not compared")
    if str(row) in experiment.not_comparable:
        return Verdict("not compared", reason=experiment.not_comparable[str(row)])
    interval = cell.interval
    ratio = interval.mean / value if value else math.nan
    if cell.deviation:
        return Verdict("other settings", ratio, cell.deviation)
    ours = interval.high - interval.mean if interval.known else 0.0
    theirs = _half_width(printed, cell, experiment.published_runs)
    difference = interval.mean - value
    if abs(difference) <= math.hypot(ours, theirs) + printed.rounding:
        return Verdict("same", ratio)
    word = "better" if (difference < 0) == (better == "lower") else "worse"
    return Verdict(word, ratio, experiment.reason(row, column))


def _half_width(printed: Published, cell: Cell, n_runs: int) -> float:
    """Half the width of the interval of a published mean over so many runs."""
    if n_runs == 0:
        return 0.0
    spread, degrees = printed.spread, n_runs - 1
    if (not spread or not degrees) and len(cell.runs) > 1:
        spread, degrees = float(np.std(cell.runs, ddof=1)), len(cell.runs) - 1
    if not degrees:
        return 0.0
    return float(student.ppf((1 + CONFIDENCE) / 2, degrees)) * spread / math.sqrt(n_runs)


@dataclass(frozen=True)
class Line:
    """One measured value beside the published one."""

    row: Key
    column: str
    unit: str
    published: str
    cell: Cell
    verdict: Verdict


@dataclass(frozen=True)
class Outcome:
    """An experiment, its results, and how they compare with the paper.

    Examples
    --------
    >>> from reproduce import EXPERIMENTS, Outcome, Scale, run_experiment
    >>> experiment = EXPERIMENTS["fastfood-figure-1"]
    >>> outcome = Outcome(experiment, run_experiment(experiment, scale=Scale.TEST))
    >>> len(outcome.checks) == len(experiment.claims)
    True
    """

    experiment: Experiment
    record: Record

    @property
    def results(self) -> Results:
        """The cells and points of all parts, in the order in which they are declared."""
        found = self.record.parts
        parts = [found[name] for name in self.experiment.parts if name in found]
        return Results(
            [cell for part in parts for cell in part.cells],
            [points for part in parts for points in part.points],
        )

    @property
    def lines(self) -> list[Line]:
        """All measured values, in the order of measurement.

        Files of other versions may have columns that are not declared any more.
        """
        experiment, results = self.experiment, self.results
        declared = {column.name for column in experiment.columns}
        return [
            Line(
                cell.row,
                cell.column,
                experiment.column(cell.column).unit,
                experiment.published.get((cell.row, cell.column), ""),
                cell,
                judge(experiment, results, cell.row, cell.column),
            )
            for cell in results.cells
            if cell.column in declared
        ]

    @property
    def n_runs(self) -> str:
        """How many runs the values are means of: "5 runs of each value"; "" without values."""
        counts = [len(cell.runs) for cell in self.results.cells]
        if not counts:
            return ""
        least, most = min(counts), max(counts)
        number = str(most) if least == most else f"{least} to {most}"
        return f"{number} run{'' if most == 1 else 's'} of each value"

    @property
    def checks(self) -> list[tuple[str, Check]]:
        """The paper's statements, and whether they hold here."""
        results, is_full = self.results, self.record.scale == "full"
        checks = []
        for claim in self.experiment.claims:
            if claim.full_only and not is_full:
                check = Check("not measured", "it is about the paper's sizes")
            else:
                check = claim.check(results)
            if check.word == "not confirmed":
                check = replace(check, reason=claim.reason)
            checks.append((claim.text, check))
        return checks

    @property
    def missing(self) -> dict[str, str]:
        """The parts that were not run, and why."""
        found = self.record.parts
        return {
            name: found[name].missing if name in found else "it was not run"
            for name in self.experiment.parts
            if name not in found or found[name].missing
        }

    @property
    def missing_by_reason(self) -> dict[str, str]:
        """Why parts were not run, and which: those of one data set have one reason."""
        found: dict[str, list[str]] = {}
        for part, reason in self.missing.items():
            found.setdefault(reason, []).append(part)
        return {reason: "; ".join(parts) for reason, parts in found.items()}

    @property
    def missing_parts(self) -> str:
        """The experiment and its parts that were not run; "" if there are none."""
        return f"{self.experiment.name} ({'; '.join(self.missing)})" if self.missing else ""

    def count_verdicts(self) -> Counter[str]:
        """How often each verdict occurs, over values and statements."""
        words = [line.verdict.word for line in self.lines]
        return Counter(words) + Counter(check.word for _, check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Everything that pages show, as values that the `json` module can write."""
        lines = []
        for line in self.lines:
            interval = line.cell.interval
            lines.append(
                {
                    "row": line.row,
                    "column": line.column,
                    "unit": line.unit,
                    "published": line.published or None,
                    "measured": _number(interval.mean),
                    "low": _number(interval.low),
                    "high": _number(interval.high),
                    "runs": len(line.cell.runs),
                    "verdict": line.verdict.word,
                    "ratio": _number(line.verdict.ratio),
                    "reason": line.verdict.reason,
                }
            )
        record = self.record
        return {
            "name": self.experiment.name,
            "paper": self.experiment.paper.authors,
            "place": self.experiment.place,
            "title": self.experiment.title,
            "scale": record.scale,
            "seed": record.seed,
            "version": record.version,
            "commit": ", ".join(record.commits) or record.commit,
            "created": record.created,
            "machine": record.machine,
            "seconds": record.seconds,
            "confidence": CONFIDENCE,
            "missing": self.missing,
            "values": lines,
            "claims": [{"text": text, **asdict(check)} for text, check in self.checks],
        }


def _number(value: float) -> float | None:
    return value if is_number(value) else None
