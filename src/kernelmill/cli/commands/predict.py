"""`kernelmill predict`: write the predictions for the rows of a table to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.program.errors import Interrupted, UsageError
from kernelmill.cli.program.files import STDOUT, OutputPath, load_table_model
from kernelmill.cli.program.options import (
    Command,
    Option,
    cluster_option,
    data_argument,
    general_options,
    max_memory_option,
    model_argument,
    new_table_options,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.formatting import plain

__all__ = ["command"]

_RESULT = "Predictions"


@click.command(
    "predict",
    cls=Command,
    short_help="Predict the target of new rows.",
    examples=[
        ("kernelmill predict adult.kmill new.csv --out predictions.csv", "predicted classes"),
        (
            "kernelmill predict adult.kmill new.csv -o p.parquet --probabilities",
            "with class probabilities",
        ),
        ("zcat new.csv.gz | kernelmill predict adult.kmill - -o - | head", "in a pipe"),
        (
            "kernelmill predict wine.kmill new.csv -o w.csv --std --keep-columns",
            "standard deviations, next to the input columns",
        ),
    ],
)
@model_argument
@data_argument
@click.option(
    "--out",
    "-o",
    cls=Option,
    type=OutputPath("the predictions", remote=True),
    section=_RESULT,
    metavar="FILE",
    required=True,
    help="Output file: .csv, .tsv, .jsonl, .parquet, .feather, .arrow or .npy; overwritten if "
    "it exists. - is stdout, as CSV.",
)
@click.option(
    "--probabilities",
    cls=Option,
    section=_RESULT,
    is_flag=True,
    help="Add a column for the probability of each class (classifiers trained with log_loss).",
)
@click.option(
    "--std",
    cls=Option,
    section=_RESULT,
    is_flag=True,
    help="Add the predictive standard deviation (regression).",
)
@click.option(
    "--keep-columns",
    cls=Option,
    section=_RESULT,
    is_flag=True,
    help="Include the columns of DATA, before the predictions.",
)
@click.option(
    "--escape-formulas",
    cls=Option,
    section=_RESULT,
    is_flag=True,
    help="In CSV, put ' before strings that spreadsheets would run as formulas (=, +, -, @).",
)
@cluster_option(_RESULT)
@max_memory_option(_RESULT)
@new_table_options
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    model: str,
    source: str | list[str],
    out: Path,
    probabilities: bool,
    std: bool,
    keep_columns: bool,
    escape_formulas: bool,
    cluster: str | None,
    max_memory: int,
    table: dict[str, Any],
) -> None:
    """Predict the target of every row of DATA with MODEL, in the order of the rows.

    DATA must have the columns that the model was trained on, by name, in any order. Other columns,
    including the target, are ignored.
    """
    terminal = get_terminal(context)
    to_stdout = str(out) == STDOUT
    if to_stdout and terminal.json:
        raise UsageError("must be a file with --json, got stdout", parameter="out")
    loaded = load_table_model(model, max_memory)
    begin = time.perf_counter()
    try:
        with ProgressBars(terminal) as progress:
            n_rows = loaded.predict_table(
                source,
                out=out,
                probabilities=probabilities,
                std=std,
                keep_columns=keep_columns,
                escape_formulas=escape_formulas,
                cluster=cluster,
                progress=progress,
                **table,
            )
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {out} was not written") from None
    seconds = time.perf_counter() - begin
    rate = plain.count(n_rows / max(seconds, 1e-9))
    if to_stdout:
        return
    terminal.give(
        {"rows": n_rows, "out": str(out), "seconds": seconds},
        f"{plain.count(n_rows, 'prediction')} in {out} ({plain.duration(seconds)}, {rate} rows/s)",
    )
