"""`kernelmill demo`: the whole way on handwritten digits, without a network."""

# ruff: noqa: PLC0415 # scikit-learn and workflows wait until the command runs
from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.figures import duration, number, size
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import Terminal, get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import (
    comparison_tables,
    evaluation_tables,
    json_of,
    summary_tables,
)
from kernelmill.runtime.blas import one_blas_thread

__all__ = ["command"]

N_TEST = 597  # of 1797 images
N_COMPONENTS = (64, 256, 1024)  # a thousand images do not need more


@click.command(
    "demo",
    cls=Command,
    short_help="See it work on handwritten digits.",
    examples=[("kernelmill demo --out digits", "files into the folder digits")],
)
@click.option(
    "--out",
    "-o",
    metavar="FOLDER",
    default="kernelmill-demo",
    show_default=True,
    help="Where the files go; made if it is not there.",
)
@general_options
@click.pass_context
def command(context: click.Context, out: str) -> None:
    """Train, evaluate and compare on handwritten digits, and write a report.

    The images ship with scikit-learn and are written as CSV files first: what follows is what any
    data file gets. Each step is shown with its command line. Under a minute.
    """
    terminal = get_terminal(context)
    begin = time.perf_counter()
    # Products of a thousand rows are too small for two threads of BLAS, which would only wait.
    with one_blas_thread():
        record = _shown(terminal, Path(out))
    seconds = time.perf_counter() - begin
    page = Path(record["report"]).resolve().as_uri()
    terminal.give(
        {**record, "seconds": seconds},
        "",
        f"Done in {duration(seconds)}. The report, for a browser: {page}",
    )


def _shown(terminal: Terminal, folder: Path) -> dict[str, Any]:
    """Run the commands in their order and show each with its result."""
    from kernelmill.report import write_report
    from kernelmill.workflows import compare_table, fit_table

    folder.mkdir(parents=True, exist_ok=True)
    train, test = folder / "digits-train.csv", folder / "digits-test.csv"
    path, page = folder / "digits.kmill", folder / "report.html"
    n_train = write_digits(train, test)
    terminal.show(
        f"Handwritten digits: {number(n_train)} images to train, {number(N_TEST)} to test, "
        "64 pixels each"
    )
    n_components = N_COMPONENTS[-1]
    terminal.show("", f"$ kernelmill fit {train} --target digit -n {n_components} --out {path}")
    with ProgressBars(terminal) as progress:
        model = fit_table(str(train), "digit", n_components=n_components, progress=progress)
        model.save(path)
    terminal.show(*summary_tables(model.summary, progress.said))
    terminal.show(f"Model: {path} ({size(path.stat().st_size)})")
    terminal.show("", f"$ kernelmill evaluate {path} {test}")
    with ProgressBars(terminal) as progress:
        evaluation = model.evaluate_table(str(test), progress=progress)
    terminal.show(*evaluation_tables(evaluation, progress.said))
    sizes = " ".join(f"-n {n}" for n in N_COMPONENTS)
    terminal.show("", f"$ kernelmill compare {train} --target digit {sizes}")
    with ProgressBars(terminal) as progress:
        comparison = compare_table(
            str(train), "digit", n_components=N_COMPONENTS, progress=progress
        )
    terminal.show(*comparison_tables(comparison, progress.said))
    terminal.show(
        "With a thousand rows the exact machine is quick; its cost grows with their square."
    )
    write_report(page, fit=model.summary, evaluation=evaluation, comparison=comparison)
    return {
        "folder": str(folder),
        "model": str(path),
        "report": str(page),
        "summary": json_of(model.summary),
        "evaluation": json_of(evaluation),
        "comparison": json_of(comparison),
    }


def write_digits(train: Path, test: Path) -> int:
    """Write the images as two CSV files with a header; how many are in the first one."""
    import numpy as np
    from sklearn.datasets import load_digits

    from kernelmill.random import Stream

    images, digits = load_digits(return_X_y=True)
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    rows = np.column_stack([images.astype(int), digits])[
        Stream.from_seed(0).permutation(len(digits))
    ]
    header = ",".join([*names, "digit"])
    for path, part in ((train, rows[N_TEST:]), (test, rows[:N_TEST])):
        lines = [header, *(",".join(map(str, row)) for row in part.tolist())]
        path.write_text("\n".join(lines) + "\n")
    return len(rows) - N_TEST
