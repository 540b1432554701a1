"""`kernelmill evaluate`: how good a model is on rows whose targets are known."""

# ruff: noqa: PLC0415 # reports wait until the command runs
from __future__ import annotations

from typing import Any

import click

from kernelmill.cli.program.files import check_output, load_table_model
from kernelmill.cli.program.options import (
    Command,
    general_options,
    new_table_options,
    report_option,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import evaluation_tables, json_of

__all__ = ["command"]


@click.command(
    "evaluate",
    cls=Command,
    short_help="Measure the error of a model on a data file.",
    examples=[
        ("kernelmill evaluate adult.kmill adult-test.csv", "errors, confusion matrix, calibration"),
        ("kernelmill evaluate adult.kmill adult-test.csv --report test.html", "also as a page"),
        ("kernelmill evaluate adult.kmill adult-test.csv --json", "for a program"),
    ],
)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@new_table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    model: str,
    data: tuple[str, ...],
    report: str | None,
    table: dict[str, Any],
) -> None:
    """Predict the rows of DATA with MODEL and compare with their targets.

    Use rows that the model was not trained on. Classes: share of wrong answers with a 95 %
    interval, confusion matrix, calibration of the probabilities. Numbers: root mean squared error,
    R², how many targets lie within the intervals that were predicted.
    """
    terminal = get_terminal(context)
    page = None if report is None else check_output("--report", report, [model, *data])
    loaded = load_table_model(model)
    with ProgressBars(terminal) as progress:
        evaluation = loaded.evaluate_table(
            list(data) if len(data) > 1 else data[0], progress=progress, **table
        )
    if page is not None:
        from kernelmill.report import write_report

        write_report(page, fit=loaded.summary, evaluation=evaluation, model=model)
    terminal.give(
        {
            "evaluation": json_of(evaluation),
            "report": None if page is None else str(page),
        },
        *evaluation_tables(evaluation, progress.said),
        *([] if page is None else ["", f"Report: {page}"]),
    )
