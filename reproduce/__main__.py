"""Rerun experiments of the papers and compare with published values: `python -m reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import RenderableType
from rich.table import Table

from kernelmill.cli.program.errors import Interrupted, UsageError
from kernelmill.cli.program.files import OutputFolder, make_folder
from kernelmill.cli.program.group import run
from kernelmill.cli.program.options import Command, Option, general_options, seed_option
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.formatting import plain, shorten
from reproduce import (
    CONFIDENCE,
    EXPERIMENTS,
    Cell,
    Experiment,
    Outcome,
    Scale,
    load_record,
    run_experiment,
    select_experiments,
)
from reproduce.page import write_experiments

__all__ = ["command", "main"]

_RUN = "Experiments"
_MOST_LINES = 60
_VERDICTS = ("better", "same", "worse", "other settings")
_CHECKS = ("confirmed", "within chance", "not confirmed")


@click.command(
    "reproduce",
    cls=Command,
    examples=[
        ("python -m reproduce --list", "list the experiments"),
        ("python -m reproduce fastfood-table-3 --quick", "one table, smaller sizes"),
        ("python -m reproduce fastfood-table-3:wine", "one row of it, with the paper's sizes"),
        ("python -m reproduce fastfood", "all of one paper"),
        ("python -m reproduce all --quick --out results", "a few minutes"),
    ],
)
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    cls=Option,
    section=_RUN,
    help="List the names of the experiments.",
)
@click.option(
    "--quick",
    is_flag=True,
    cls=Option,
    section=_RUN,
    help="Smaller sizes and fewer runs than in the papers.",
)
@click.option(
    "--out",
    "-o",
    cls=Option,
    section=_RUN,
    type=OutputFolder(),
    metavar="FOLDER",
    help="Folder for the results; created if it does not exist. Default: build/results, or "
    "build/results-quick.",
)
@click.option(
    "--fresh",
    is_flag=True,
    cls=Option,
    section=_RUN,
    help="Run experiments again even if the folder has their results.",
)
@seed_option(_RUN)
@general_options
@click.pass_context
def command(
    context: click.Context,
    names: tuple[str, ...],
    listed: bool,
    quick: bool,
    out: str | None,
    fresh: bool,
    random_state: int,
) -> None:
    """Rerun experiments of the papers and compare the results with the published ones.

    NAME is an experiment, a paper or "all"; NAME:PART is a part of it, such as one data set. Data
    sets are read from the folder in the environment variable KERNELMILL_DATA, or downloaded from
    OpenML; missing ones are reported. The results are a page (index.html), Markdown, JSON and
    plots in the output folder. After Ctrl-C, run the same command again to resume.
    """
    terminal = get_terminal(context)
    if listed:
        experiments = select_experiments(names or ["all"], EXPERIMENTS)
        listing = [{"name": e.name, "place": e.place, "title": e.title} for e in experiments]
        terminal.give({"experiments": listing}, *_render_list(experiments))
        return
    if not names:
        raise UsageError("NAME is missing", "python -m reproduce --list", "use the name all")
    experiments = select_experiments(names, EXPERIMENTS)
    scale = Scale.QUICK if quick else Scale.FULL
    folder = make_folder(out or f"build/results{'-quick' if quick else ''}")
    try:
        with ProgressBars(terminal) as progress:
            for experiment in experiments:
                run_experiment(
                    experiment,
                    scale=scale,
                    seed=random_state,
                    folder=folder,
                    fresh=fresh,
                    progress=progress,
                )
    except KeyboardInterrupt:
        _write_page(folder)
        raise Interrupted(
            f"interrupted: finished parts are kept in {folder}",
            "run the same command again to resume (without --fresh)",
        ) from None
    page, outcomes = _write_page(folder)
    chosen = {each.name for each in experiments}
    shown = [each for each in outcomes if each.experiment.name in chosen]
    details = [part for each in shown for part in _render_outcome(each)] if len(shown) < 4 else []
    terminal.give(
        {"results": [each.to_json() for each in shown], "page": str(page)},
        *details,
        *_render_overview(shown),
        "",
        f"Page: {page}",
    )


def _write_page(folder: Path) -> tuple[Path, list[Outcome]]:
    """Write the page of all results in the folder, also of earlier commands."""
    outcomes = [
        Outcome(experiment, load_record(path))
        for name, experiment in EXPERIMENTS.items()
        if (path := folder / f"{name}.json").exists()
    ]
    return write_experiments(folder, outcomes)[0], outcomes


def _render_list(experiments: Sequence[Experiment]) -> Iterator[RenderableType]:
    """The names of experiments, by paper."""
    paper = None
    for each in experiments:
        if each.paper != paper:
            if paper is not None:
                yield ""
            paper = each.paper
            yield f"{paper.key}: {paper.authors}"
        yield f"  {each.name:<26} {shorten(f'{each.place}. {each.title}', 50)}"


def _render_outcome(outcome: Outcome) -> Iterator[RenderableType]:
    """The values of an experiment beside the published ones, and the statements checked."""
    experiment = outcome.experiment
    yield f"{experiment.paper.authors}, {experiment.place}: {experiment.title}"
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


def _render_overview(outcomes: Sequence[Outcome]) -> Iterator[RenderableType]:
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, with the arguments of the process by default; return the exit code."""
    return run(arguments, command, "python -m reproduce")


if __name__ == "__main__":
    sys.exit(main())
