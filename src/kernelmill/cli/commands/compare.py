"""`kernelmill compare`: error and cost of kernel machines, trees and a linear model."""

# ruff: noqa: PLC0415 # workflows are imported when the command runs
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelmill.cli.program.files import STDOUT, default_model_name
from kernelmill.cli.program.options import (
    Command,
    Option,
    data_argument,
    day_first_option,
    drop_option,
    general_options,
    groups_option,
    holdout_last_option,
    missing_option,
    report_option,
    seed_option,
    table_options,
    task_option,
    threads_option,
    transform_option,
)
from kernelmill.cli.program.signals import exit_on_interrupt
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import build_json, render_comparison

if TYPE_CHECKING:
    from kernelmill.workflows.records import Comparison

__all__ = ["command"]

_COMPARISON = "Comparison"


@click.command(
    "compare",
    cls=Command,
    short_help="Compare random features with a linear model, trees and the exact kernel.",
    examples=[
        ("kernelmill compare wine.csv --target quality", "error, time and memory of each"),
        (
            "kernelmill compare adult.data -t 14 --missing impute --report c.html",
            "also an HTML report",
        ),
        ("kernelmill compare a.csv -t y -n 512 -n 8192", "with 512 and 8192 features"),
    ],
)
@data_argument
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_COMPARISON,
    metavar="COL",
    help="Column to predict: its name, or its index from 0.",
)
@task_option(_COMPARISON)
@click.option(
    "--n-components",
    "-n",
    cls=Option,
    section=_COMPARISON,
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Number of features; may be repeated. Default: 256, 1024 and 4096.",
)
@missing_option(_COMPARISON)
@transform_option(_COMPARISON)
@drop_option(_COMPARISON)
@day_first_option(_COMPARISON)
@groups_option(_COMPARISON)
@holdout_last_option(_COMPARISON)
@click.option(
    "--weights",
    cls=Option,
    section=_COMPARISON,
    metavar="COL",
    help="Column of row weights, used in tuning, training and errors; it is not an input.",
)
@click.option(
    "--kernel",
    cls=Option,
    section=_COMPARISON,
    metavar="NAME",
    help="Shift-invariant kernel: gaussian, matern, cauchy, ... Default: chosen as "
    "kernelmill fit does.",
)
@click.option(
    "--rows",
    cls=Option,
    section=_COMPARISON,
    type=click.IntRange(min=10),
    default=50_000,
    show_default=True,
    metavar="N",
    help="Maximum number of training rows.",
)
@click.option(
    "--exact-rows",
    cls=Option,
    section=_COMPARISON,
    type=click.IntRange(min=10),
    metavar="N",
    help="Maximum number of training rows of the exact kernel machine. Default: the number that "
    "takes about 30 seconds, at most 10,000.",
)
@threads_option(_COMPARISON)
@seed_option(_COMPARISON)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    source: str | list[str],
    n_components: tuple[int, ...],
    report: Path | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Compare random features with a linear model, trees and the exact kernel machine.

    All models are trained on the same rows of DATA. If there are many rows, slow models are
    trained on a subset: the exact kernel machine, whose cost grows with the square of the number
    of rows, and trees if there are also many columns. Prints the test error, the number of
    training rows, the time and the memory of each model.
    """
    terminal = get_terminal(context)
    with exit_on_interrupt():
        from kernelmill.workflows import compare_table

    if n_components:
        settings["n_components"] = n_components
    with ProgressBars(terminal) as progress:
        comparison = compare_table(source, **settings, **table, progress=progress)
    if report is not None:
        from kernelmill.report import write_report

        write_report(report, comparison=progress.name_options(comparison))
    terminal.give(
        {
            "comparison": build_json(comparison),
            "report": None if report is None else str(report),
        },
        *render_comparison(comparison, progress.shown_notes),
        *([] if report is None else ["", f"Report: {report}"]),
        *_suggest_fit(comparison, source),
    )


def _free_name(name: str) -> str:
    """Return the name of a model file that does not exist: wine.kmill, or wine-2.kmill, ..."""
    path, number = Path(name), 2
    while path.exists():
        path, number = Path(name).with_stem(f"{Path(name).stem}-{number}"), number + 1
    return str(path)


def _suggest_fit(comparison: Comparison, source: str | list[str]) -> list[str]:
    """Return the command that fits the best of the kernel machines, for one file."""
    if not isinstance(source, str) or source == STDOUT:
        return []
    from kernelmill.report.usage import explain_fit, fit_lines

    reason = explain_fit(comparison)
    command = fit_lines(comparison, _free_name(default_model_name(source)))[0]
    return [*(["", reason] if reason else []), f"Next: {command}"]
