"""`kernelmill demo`: train, evaluate and compare on handwritten digits, without a network."""

# ruff: noqa: PLC0415 # scikit-learn and workflows are imported when the command runs
from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.program.files import OutputFolder, make_folder
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import Terminal, get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import (
    build_json,
    render_comparison,
    render_evaluation,
    render_summary,
)
from kernelmill.files.atomic_file import atomic_write
from kernelmill.formatting import plain
from kernelmill.runtime.threads import one_blas_thread

__all__ = ["command"]

N_TEST = 597  # of 1797 images
N_COMPONENTS = (64, 256, 1024)  # a thousand images do not need more


@click.command(
    "demo",
    cls=Command,
    short_help="Take a tour with handwritten digits.",
    examples=[("kernelmill demo --out digits", "write the files to the folder digits")],
)
@click.option(
    "--out",
    "-o",
    type=OutputFolder(),
    metavar="FOLDER",
    default="kernelmill-demo",
    show_default=True,
    help="Folder for the files; created if it does not exist.",
)
@general_options
@click.pass_context
def command(context: click.Context, out: str) -> None:
    """Train, evaluate and compare on handwritten digits, and write a report.

    The images come with scikit-learn and are written to CSV files first; the rest works the same
    way with any data file. Each step is shown with its command line. Takes less than a minute.
    """
    terminal = get_terminal(context)
    begin = time.perf_counter()
    # Products of a thousand rows are too small for two BLAS threads, which would only wait.
    with one_blas_thread():
        record = _run_steps(terminal, make_folder(out))
    seconds = time.perf_counter() - begin
    page = Path(record["report"]).resolve().as_uri()
    terminal.give(
        {**record, "seconds": seconds},
        "",
        f"Done in {plain.duration(seconds)}. Open the report in a browser: {page}",
    )


def _run_steps(terminal: Terminal, folder: Path) -> dict[str, Any]:
    """Run the commands one after the other and print each with its result."""
    from kernelmill.report import write_report
    from kernelmill.workflows import compare_table, fit_table

    train, test = folder / "digits-train.csv", folder / "digits-test.csv"
    path, page = folder / "digits.kmill", folder / "report.html"
    n_train = write_digits(train, test)
    terminal.show(
        f"Handwritten digits: {plain.count(n_train)} images for training, "
        f"{plain.count(N_TEST)} for testing, 64 pixels each"
    )
    n_components = N_COMPONENTS[-1]
    terminal.show("", f"$ kernelmill fit {train} --target digit -n {n_components} --out {path}")
    with ProgressBars(terminal) as progress:
        model = fit_table(str(train), "digit", n_components=n_components, progress=progress)
        model.save(path)
    terminal.show(*render_summary(model.summary, progress.shown_notes))
    terminal.show(f"Model: {path} ({plain.size(path.stat().st_size)})")
    terminal.show("", f"$ kernelmill evaluate {path} {test}")
    with ProgressBars(terminal) as progress:
        evaluation = model.evaluate_table(str(test), progress=progress)
    terminal.show(*render_evaluation(evaluation, progress.shown_notes))
    sizes = " ".join(f"-n {n}" for n in N_COMPONENTS)
    terminal.show("", f"$ kernelmill compare {train} --target digit {sizes}")
    with ProgressBars(terminal) as progress:
        comparison = compare_table(
            str(train), "digit", n_components=N_COMPONENTS, progress=progress
        )
    terminal.show(*render_comparison(comparison, progress.shown_notes))
    terminal.show(
        "With a thousand rows the exact machine is fast; its cost grows with their square."
    )
    write_report(page, fit=model.summary, evaluation=evaluation, comparison=comparison)
    return {
        "folder": str(folder),
        "model": str(path),
        "report": str(page),
        "summary": build_json(model.summary),
        "evaluation": build_json(evaluation),
        "comparison": build_json(comparison),
    }


def write_digits(train: Path, test: Path) -> int:
    """Write the images to two CSV files with a header; return the number in the first one."""
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
        atomic_write(path, ["\n".join([*lines, ""]).encode()])
    return len(rows) - N_TEST
