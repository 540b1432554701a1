"""`kernelmill evaluate`: measure the error of a model on rows whose targets are known."""

# ruff: noqa: PLC0415 # reports are imported when the command runs
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.program.files import load_table_model
from kernelmill.cli.program.options import (
    Command,
    Option,
    cluster_option,
    data_argument,
    general_options,
    max_memory_option,
    model_argument,
    new_table_options,
    report_option,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.messages import translate_note
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import build_json, render_evaluation

__all__ = ["command"]


@click.command(
    "evaluate",
    cls=Command,
    short_help="Measure the error of a model on a data file.",
    examples=[
        ("kernelmill evaluate adult.kmill adult-test.csv", "error, confusion matrix, calibration"),
        (
            "kernelmill evaluate adult.kmill adult-test.csv --report test.html",
            "also an HTML report",
        ),
        ("kernelmill evaluate adult.kmill adult-test.csv --json", "JSON for programs"),
    ],
)
@model_argument
@data_argument
@click.option(
    "--weights",
    cls=Option,
    section="Evaluation",
    metavar="COL",
    help="Column of row weights. Default: the one used in training, if DATA has it.",
)
@cluster_option("Evaluation")
@max_memory_option("Evaluation")
@new_table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    model: str,
    source: str | list[str],
    weights: str | None,
    cluster: str | None,
    report: Path | None,
    max_memory: int,
    table: dict[str, Any],
) -> None:
    """Predict the targets of DATA with MODEL and compare them with the true targets.

    Use rows that the model was not trained on. Classification: error with a 95% interval, area
    under the ROC curve for two classes, confusion matrix with the recall of each class, calibration
    of the probabilities. Regression: root mean squared error, R², coverage of the prediction
    intervals.
    """
    terminal = get_terminal(context)
    loaded = load_table_model(model, max_memory)
    with ProgressBars(terminal) as progress:
        evaluation = loaded.evaluate_table(
            source,
            weights=True if weights is None else weights,
            cluster=cluster,
            progress=progress,
            **table,
        )
    if report is not None:
        from kernelmill.cli.commands.fit import command as fit_command
        from kernelmill.report import write_report

        named = progress.name_options(evaluation)
        notes = [translate_note(note, fit_command) for note in loaded.summary.notes]
        fit = replace(loaded.summary, notes=notes)
        write_report(report, fit=fit, evaluation=named, model=model)
    terminal.give(
        {
            "evaluation": build_json(evaluation),
            "report": None if report is None else str(report),
        },
        *render_evaluation(evaluation, progress.shown_notes, terminal.command),
        *([] if report is None else ["", f"Report: {report}"]),
    )
