"""`kernelmill compare`: what kernels are worth on a data file, and what they cost."""

# ruff: noqa: PLC0415 # workflows wait until the command runs
from __future__ import annotations

from typing import Any

import click

from kernelmill.cli.program.files import check_output
from kernelmill.cli.program.options import (
    Command,
    Option,
    drop_option,
    general_options,
    missing_option,
    report_option,
    seed_range,
    table_options,
    task_option,
    thread_range,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import comparison_tables, json_of

__all__ = ["command"]

_CONTEST = "Comparison"


@click.command(
    "compare",
    cls=Command,
    short_help="Compare a linear model, the maps and the exact kernel.",
    examples=[
        ("kernelmill compare wine.csv --target quality", "error, time and memory of each"),
        ("kernelmill compare adult.data -t 14 --missing impute --report c.html", "with plots"),
        ("kernelmill compare a.csv -t y -n 512 -n 8192", "at these numbers of features"),
    ],
)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_CONTEST,
    metavar="COL",
    help="The column to predict: its name, or its index from 0.",
)
@task_option(_CONTEST)
@click.option(
    "--n-components",
    "-n",
    cls=Option,
    section=_CONTEST,
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Number of features; repeat for more. 256, 1024 and 4096 by default.",
)
@missing_option(_CONTEST)
@drop_option(_CONTEST)
@click.option(
    "--kernel",
    cls=Option,
    section=_CONTEST,
    metavar="NAME",
    help="A shift-invariant kernel: gaussian (the default), matern, cauchy, ...",
)
@click.option(
    "--rows",
    cls=Option,
    section=_CONTEST,
    type=click.IntRange(min=10),
    default=50_000,
    show_default=True,
    metavar="N",
    help="How many rows to train on at most.",
)
@click.option(
    "--exact-rows",
    cls=Option,
    section=_CONTEST,
    type=click.IntRange(min=10),
    default=5_000,
    show_default=True,
    metavar="N",
    help="How many of them the exact machine gets at most.",
)
@click.option(
    "--threads",
    "n_threads",
    cls=Option,
    section=_CONTEST,
    type=thread_range,
    metavar="N",
    help="Threads of the native core. All CPUs by default.",
)
@click.option(
    "--seed",
    cls=Option,
    section=_CONTEST,
    type=seed_range,
    default=0,
    show_default=True,
    metavar="N",
    help="Of all random choices.",
)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    data: tuple[str, ...],
    n_components: tuple[int, ...],
    seed: int,
    report: str | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Train a linear model, kernel machines on random features, and the exact kernel machine.

    On the same rows of DATA; the exact machine, whose cost grows with the square of their number,
    on a part of them where there are many. Shows test error, time and memory of each.
    """
    terminal = get_terminal(context)
    page = None if report is None else check_output("--report", report, data)
    from kernelmill.workflows import compare_table

    if n_components:
        settings["n_components"] = n_components
    with ProgressBars(terminal) as progress:
        comparison = compare_table(
            list(data) if len(data) > 1 else data[0],
            **settings,
            **table,
            random_state=seed,
            progress=progress,
        )
    if page is not None:
        from kernelmill.report import write_report

        write_report(page, comparison=comparison)
    terminal.give(
        {
            "comparison": json_of(comparison),
            "report": None if page is None else str(page),
        },
        *comparison_tables(comparison, progress.said),
        *([] if page is None else ["", f"Report: {page}"]),
    )
