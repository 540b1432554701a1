"""Results of `kernelmill reproduce` as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table

from kernelmill.formatting import plain, shorten

if TYPE_CHECKING:
    from kernelmill.experiments import Cell, Experiment, Outcome

__all__ = ["render_list", "render_outcome", "render_overview"]

_MOST_LINES = 60
_VERDICTS = ("better", "same", "worse", "other settings")
_CHECKS = ("confirmed", "within chance", "not confirmed")


def render_list(experiments: Sequence[Experiment]) -> Iterator[RenderableType]:
    """The names of experiments, by paper."""
    paper = None
    for each in experiments:
        if each.paper != paper:
            if paper is not None:
                yield ""
            paper = each.paper
            yield f"{paper.key}: {paper.authors}"
        yield f"  {each.name:<26} {shorten(f'{each.place}. {each.title}', 50)}"


def render_outcome(outcome: Outcome) -> Iterator[RenderableType]:
    """The values of an experiment beside the published ones, and the statements checked."""
    experiment = outcome.experiment
    yield f"{experiment.paper.authors}, {experiment.place}: {experiment.title}"
    from kernelmill.experiments import CONFIDENCE  # noqa: PLC0415 # imports scikit-learn

    yield f"means ± half-widths of {100 * CONFIDENCE:.0f} % intervals"
    lines = outcome.lines
    if lines:
        table = _table(experiment.row, "what", "paper", "here", "verdict")
        for line in lines[:_MOST_LINES]:
            row = line.row if isinstance(line.row, str) else plain.number(line.row)
            printed = f"{line.published} {line.unit}".strip() if line.published else ""
            word = "" if line.verdict.word == "not compared" else line.verdict.word
            table.add_row(
                shorten(row, 22), line.column, printed, _value(line.cell, line.unit), word
            )
        yield table
    if len(lines) > _MOST_LINES:
        yield f"... and {plain.count(len(lines) - _MOST_LINES)} more on the page"
    for text, check in outcome.checks:
        yield f"{check.word}: {text}{f' ({check.explained})' if check.explained else ''}"
    for reason, parts in outcome.missing_by_reason.items():
        yield f"not run: {parts}: {reason}"
    yield ""


def render_overview(outcomes: Sequence[Outcome]) -> Iterator[RenderableType]:
    """Return the number of values and statements of each experiment for each verdict."""
    table = _table("experiment", "values", "statements", "time")
    for outcome in outcomes:
        counts = outcome.count_verdicts()
        values, statements = (
            ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
            for words in (_VERDICTS, _CHECKS)
        )
        seconds = plain.duration(outcome.record.seconds)
        table.add_row(outcome.experiment.name, values, statements, seconds)
    yield table
    missing = [each.missing_parts for each in outcomes if each.missing]
    if missing:
        yield f"not run: {', '.join(missing)}"


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading)
    return table


def _value(cell: Cell, unit: str) -> str:
    interval = cell.interval
    text = plain.number(interval.mean, 3)
    if interval.known and interval.high > interval.mean:
        text += f" ± {plain.number(interval.high - interval.mean, 2)}"
    return f"{text} {unit}".strip()
