"""`kernelmill transform`: write the random features of the rows of a table to a file."""

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


@click.command(
    "transform",
    cls=Command,
    short_help="Write the random features of rows to a file.",
    examples=[
        ("kernelmill transform adult.kmill new.csv --out features.npy", "an array for numpy.load"),
    ],
)
@model_argument
@data_argument
@click.option(
    "--out",
    "-o",
    cls=Option,
    type=OutputPath("the features"),
    section="Features",
    metavar="FILE",
    required=True,
    help="An .npy file with a float32 array, or a .parquet, .arrow, .feather, .csv, .tsv or .jsonl "
    "file with a column for each feature; overwritten if it exists. - is stdout, as CSV.",
)
@max_memory_option("Features")
@new_table_options
@general_options
@click.pass_context
def command(
    context: click.Context,
    model: str,
    source: str | list[str],
    out: Path,
    max_memory: int,
    table: dict[str, Any],
) -> None:
    """Write the random features that MODEL computes for every row of DATA.

    The inner product of the features of two rows approximates the kernel, so a linear method on
    the features is a kernel method. The columns are encoded as in training.
    """
    terminal = get_terminal(context)
    to_stdout = str(out) == STDOUT
    if to_stdout and terminal.json:
        raise UsageError("must be a file with --json, got stdout", parameter="out")
    loaded = load_table_model(model, max_memory, with_estimator=True)
    begin = time.perf_counter()
    try:
        with ProgressBars(terminal) as progress:
            n_rows = loaded.transform_table(source, out=out, progress=progress, **table)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {out} was not written") from None
    seconds = time.perf_counter() - begin
    if to_stdout:
        return
    n_components = loaded.summary.n_components
    n_bytes = out.stat().st_size
    terminal.give(
        {
            "rows": n_rows,
            "n_components": n_components,
            "out": str(out),
            "bytes": n_bytes,
            "seconds": seconds,
        },
        f"{plain.count(n_rows, 'row')} of {plain.count(n_components, 'feature')} in {out} "
        f"({plain.size(n_bytes)}, {plain.duration(seconds)})",
    )
