"""`kernelmill transform`: the random features of the rows of a table, in a file."""

from __future__ import annotations

import time
from typing import Any

import click

from kernelmill.cli.figures import counted, duration, size
from kernelmill.cli.program.errors import Interrupted
from kernelmill.cli.program.files import check_output, load_table_model
from kernelmill.cli.program.options import Command, Option, general_options, new_table_options
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars

__all__ = ["command"]


@click.command(
    "transform",
    cls=Command,
    short_help="Write the features of rows, for other programs.",
    examples=[
        ("kernelmill transform adult.kmill new.csv --out features.npy", "a row for each row"),
    ],
)
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--out",
    "-o",
    cls=Option,
    section="Features",
    metavar="FILE",
    required=True,
    help="An .npy file of float32, for numpy.load, or a .parquet, .arrow, .feather, .csv or .tsv "
    "file with a column for each feature; overwritten if it exists.",
)
@new_table_options
@general_options
@click.pass_context
def command(
    context: click.Context, model: str, data: tuple[str, ...], out: str, table: dict[str, Any]
) -> None:
    """Write the features that MODEL computes of every row of DATA.

    Inner products of the features of two rows are about the value of the kernel: any linear
    method on them is a kernel method. The columns are encoded as in training.
    """
    terminal = get_terminal(context)
    path = check_output("--out", out, [model, *data])
    loaded = load_table_model(model)
    begin = time.perf_counter()
    try:
        with ProgressBars(terminal) as progress:
            n_rows = loaded.transform_table(
                list(data) if len(data) > 1 else data[0], out=path, progress=progress, **table
            )
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {path} was not written") from None
    seconds = time.perf_counter() - begin
    n_components = loaded.summary.n_components
    n_bytes = path.stat().st_size
    terminal.give(
        {
            "rows": n_rows,
            "n_components": n_components,
            "out": str(path),
            "bytes": n_bytes,
            "seconds": seconds,
        },
        f"{counted(n_rows, 'row')} of {counted(n_components, 'feature')} in {path} "
        f"({size(n_bytes)}, {duration(seconds)})",
    )
