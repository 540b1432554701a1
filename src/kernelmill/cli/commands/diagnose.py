"""`kernelmill diagnose`: the number of features that each map needs on a table, and their cost."""

# ruff: noqa: PLC0415 # workflows are imported when the command runs
from __future__ import annotations

from typing import Any

import click

from kernelmill.cli.program.files import check_output
from kernelmill.cli.program.options import (
    Command,
    Option,
    data_argument,
    day_first_option,
    drop_option,
    general_options,
    missing_option,
    report_option,
    seed_option,
    table_options,
    task_option,
    threads_option,
    transform_option,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.diagnosis import render_diagnosis
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import build_json

__all__ = ["command"]

_DIAGNOSIS = "Diagnosis"


class _LengthScale(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """A number, or a rule that takes it from the data."""

    name = "length scale"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("scale", "median"):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"must be a number, 'scale' or 'median', got {value!r}", param, ctx)


@click.command(
    "diagnose",
    cls=Command,
    short_help="Report how many features each map needs, and what they cost.",
    examples=[
        ("kernelmill diagnose wine.csv --tolerance 0.02", "all columns are inputs"),
        (
            "kernelmill diagnose adult.data -t 14 --missing impute --report d.html",
            "also the effect on ridge regression, and an HTML report",
        ),
        (
            "kernelmill diagnose a.csv --kernel polynomial:degree=2,coef0=1",
            "maps of a polynomial kernel",
        ),
    ],
)
@data_argument
@click.option(
    "--tolerance",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=0.05,
    show_default=True,
    metavar="X",
    help="Largest allowed error of a kernel value, in units of the mean of k(x, x).",
)
@click.option(
    "--probability",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Fraction of the pairs of rows whose error must be within the tolerance.",
)
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_DIAGNOSIS,
    metavar="COL",
    help="Column to predict, which is not an input: its name, or its index from 0. Default: all "
    "columns are inputs.",
)
@click.option(
    "--kernel",
    cls=Option,
    section=_DIAGNOSIS,
    default="gaussian",
    show_default=True,
    metavar="NAME",
    help="Kernel: gaussian, matern:nu=2.5, laplacian, polynomial:degree=2,coef0=1, ...",
)
@click.option(
    "--length-scale",
    cls=Option,
    section=_DIAGNOSIS,
    type=_LengthScale(),
    metavar="X",
    help="Length scale (bandwidth) of the kernel: a number, scale (the default) or median.",
)
@click.option(
    "--alpha",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=1.0,
    show_default=True,
    metavar="X",
    help="Penalty of a ridge regression on all rows, for the effective dimension.",
)
@click.option(
    "--rows",
    cls=Option,
    section=_DIAGNOSIS,
    type=click.IntRange(min=2),
    default=2000,
    show_default=True,
    metavar="N",
    help="Maximum number of rows in the sample.",
)
@task_option(_DIAGNOSIS)
@missing_option(_DIAGNOSIS)
@transform_option(_DIAGNOSIS)
@drop_option(_DIAGNOSIS)
@day_first_option(_DIAGNOSIS)
@threads_option(_DIAGNOSIS)
@seed_option(_DIAGNOSIS)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    source: str | list[str],
    report: str | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Measure how well each map approximates a kernel on a sample of DATA.

    Prints the number of features that each map needs to reach the tolerance (by a bound, by the
    theoretical variance, and as measured), and the time and memory that they take for all rows.
    """
    terminal = get_terminal(context)
    page = None if report is None else check_output("report", report, source)
    from kernelmill.workflows import diagnose_table

    with ProgressBars(terminal) as progress:
        diagnosis = diagnose_table(source, **settings, **table, progress=progress)
    if page is not None:
        from kernelmill.report import write_diagnosis

        write_diagnosis(page, progress.name_options(diagnosis))
    terminal.give(
        {
            "diagnosis": build_json(diagnosis),
            "report": None if page is None else str(page),
        },
        *render_diagnosis(diagnosis, progress.shown_notes),
        *([] if page is None else ["", f"Report: {page}"]),
    )
