"""`kernelmill fit`: from a data file to a model file."""

# ruff: noqa: PLC0415 # workflows wait until the command runs
from __future__ import annotations

import json
from typing import Any

import click

from kernelmill.cli.figures import size
from kernelmill.cli.program.errors import Interrupted
from kernelmill.cli.program.files import FitCheckpoint, check_output, default_model_name
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
from kernelmill.cli.render.results import json_of, summary_tables

__all__ = ["command"]

MAPS = [
    "fastfood",
    "random_fourier",
    "taylor_sketch",
    "gaussian_templates",
    "tensor_sketch",
    "dot_product_fastfood",
    "random_maclaurin",
    "count_sketch",
]
LOSSES = ["log_loss", "hinge", "squared_hinge", "squared"]
_OWN_OPTIONS = {
    "n_components": "-n N",
    "random_state": "--seed N",
    "n_threads": "--threads N",
    "length_scale": "--length-scale X",
}
_MODEL = "Model"
_TRAINING = "Training"


def map_options(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any] | None:
    """NAME=VALUE as a dict; values are numbers, true, false, null or else texts."""
    found: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{each!r} should be NAME=VALUE, such as degree=3")
        name = name.replace("-", "_")
        if name in _OWN_OPTIONS:
            raise click.BadParameter(f"{name} has an option of its own; use {_OWN_OPTIONS[name]}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found or None


@click.command(
    "fit",
    cls=Command,
    short_help="Train a model on a data file.",
    examples=[
        ("kernelmill fit wine.csv --target quality", "a good model with no other setting"),
        ("kernelmill fit adult.data -t 14 --missing impute -o adult.kmill", "no header: by index"),
        ("kernelmill fit 'part-*.parquet' -t label --report fit.html", "many files, and a page"),
        ("kernelmill fit a.csv -t y --map tensor_sketch --map-option degree=3", "polynomials"),
        ("kernelmill fit big.csv -t y --resume", "go on after Ctrl-C or a crash"),
        ("kernelmill fit a.csv -t y --json | jq .summary.held_out.metrics", "for programs"),
    ],
)
@click.argument("data", nargs=-1, required=True)
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_MODEL,
    metavar="COL",
    help="The column to predict: its name, or its index from 0. Not needed for files that carry "
    "labels (svmlight, idx, npz with y).",
)
@click.option(
    "--out",
    "-o",
    cls=Option,
    section=_MODEL,
    metavar="MODEL",
    help="The model file; overwritten if it exists. By default DATA's name with .kmill, here.",
)
@task_option(_MODEL)
@click.option(
    "--map",
    "feature_map",
    cls=Option,
    section=_MODEL,
    type=click.Choice(MAPS),
    metavar="MAP",
    default="fastfood",
    show_default=True,
    help=f"The feature map: {', '.join(MAPS)}.",
)
@click.option(
    "--kernel",
    cls=Option,
    section=_MODEL,
    metavar="NAME",
    help="The kernel, for maps that have a choice: gaussian (the default), matern, laplacian (with "
    "random_fourier), ...",
)
@click.option(
    "--map-option",
    "map_options",
    cls=Option,
    section=_MODEL,
    metavar="NAME=VALUE",
    multiple=True,
    callback=map_options,
    help="A further parameter of the map, such as degree=3 (tensor_sketch). Repeat for more.",
)
@click.option(
    "--n-components",
    "-n",
    cls=Option,
    section=_MODEL,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of features; more are better and slower. By default 4096 for classes, 2048 for "
    "numbers.",
)
@click.option(
    "--length-scale",
    cls=Option,
    section=_MODEL,
    type=float,
    metavar="X",
    help="Distance of rows over which the kernel falls. Tuned by default.",
)
@click.option(
    "--alpha",
    cls=Option,
    section=_MODEL,
    type=float,
    metavar="X",
    help="Penalty of large weights. Tuned by default.",
)
@click.option(
    "--loss",
    cls=Option,
    section=_MODEL,
    type=click.Choice(LOSSES),
    metavar="LOSS",
    help=f"Loss of classifiers: {', '.join(LOSSES)}. log_loss has probabilities.",
)
@click.option(
    "--weights",
    cls=Option,
    section=_MODEL,
    type=click.Choice(["float16", "float32", "float64"]),
    default="float32",
    show_default=True,
    help="Weights in the file; float16 halves it, float64 keeps every bit.",
)
@click.option(
    "--tune/--no-tune",
    cls=Option,
    section=_TRAINING,
    default=True,
    help="Search length scale and alpha on a part of the rows. On by default; without it fits are "
    "quicker, and often much worse.",
)
@missing_option(_TRAINING)
@drop_option(_TRAINING)
@click.option(
    "--holdout",
    cls=Option,
    section=_TRAINING,
    type=click.FloatRange(min=0, max=0.9),
    metavar="SHARE",
    help="Share of the rows that are kept out of training to measure the error. By default a "
    "tenth, at most 10,000 rows.",
)
@click.option(
    "--epochs",
    cls=Option,
    section=_TRAINING,
    type=click.IntRange(min=1),
    metavar="N",
    help="Passes over the rows (classes). By default at least 4.",
)
@click.option(
    "--seed",
    cls=Option,
    section=_TRAINING,
    type=seed_range,
    default=0,
    show_default=True,
    metavar="N",
    help="Of all random choices: the same seed, the same model.",
)
@click.option(
    "--threads",
    cls=Option,
    section=_TRAINING,
    type=thread_range,
    metavar="N",
    help="Threads of the native core. All CPUs by default.",
)
@click.option(
    "--resume",
    cls=Option,
    section=_TRAINING,
    is_flag=True,
    help="Go on from MODEL.checkpoint, which training writes now and then and removes when it is "
    "done. Without this option training starts anew; an earlier checkpoint is kept as "
    "MODEL.checkpoint.old until the new model is written.",
)
@click.option(
    "--checkpoint-seconds",
    cls=Option,
    section=_TRAINING,
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="S",
    help="How often the checkpoint is written.",
)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    data: tuple[str, ...],
    *,
    out: str | None,
    weights: str,
    seed: int,
    threads: int | None,
    resume: bool,
    report: str | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Train a kernel machine on DATA and write it to a model file.

    DATA is CSV or other delimited text (also .gz), Parquet, Arrow, NPY, NPZ, idx or svmlight;
    several files, or a pattern in quotes, are one table. Columns of text become categories, numbers
    are standardized, and the model file remembers how.
    """
    terminal = get_terminal(context)
    opening = None
    if out is None:
        out = default_model_name(data[0])
        opening = f"the model goes to {out} (--out MODEL for another name)"
    path = check_output("--out", out, data)
    page = None if report is None else check_output("--report", report, [*data, out])
    from kernelmill.workflows import fit_table

    checkpoint = FitCheckpoint(path)
    said = checkpoint.prepare(resume)
    if said:
        terminal.note(said)
    try:
        with ProgressBars(terminal, opening) as progress:
            model = fit_table(
                list(data) if len(data) > 1 else data[0],
                **settings,
                **table,
                random_state=seed,
                n_threads=threads,
                checkpoint=checkpoint.path,
                progress=progress,
            )
        model.save(path, weights=weights)
    except KeyboardInterrupt:
        raise Interrupted(checkpoint.after_interrupt()) from None
    except BaseException:
        kept = checkpoint.after_failure()
        if kept:
            terminal.note(kept)
        raise
    checkpoint.remove()
    if page is not None:
        from kernelmill.report import write_report

        write_report(page, fit=model.summary, model=str(path))
    record = {
        "model": str(path),
        "bytes": path.stat().st_size,
        "report": None if page is None else str(page),
        "summary": json_of(model.summary),
    }
    terminal.give(
        record,
        *summary_tables(model.summary, progress.said),
        "",
        f"Model: {path} ({size(path.stat().st_size)})",
        *([] if page is None else [f"Report: {page}"]),
        f"Next: kernelmill predict {path} {_new_name(data[0], table)} --out predictions.csv",
    )


def _new_name(data: str, table: dict[str, Any]) -> str:
    """What a file of new rows might be called; text files go by many names."""
    from kernelmill.io.sources import detect_format, source_files

    try:
        is_text = detect_format(source_files(data)[0], table.get("format")) == "text"
    except OSError:  # gone while the model was trained
        is_text = False
    return "NEW.csv" if is_text else "NEW"
