"""`kernelmill fit`: from a data file to a model file."""

# ruff: noqa: PLC0415 # workflows are imported when the command runs
from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kernelmill.cli.program.errors import CommandError, Interrupted, UsageError
from kernelmill.cli.program.files import (
    STDOUT,
    FitCheckpoint,
    InputPath,
    OutputPath,
    default_model_name,
)
from kernelmill.cli.program.options import (
    Command,
    Option,
    cluster_option,
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
from kernelmill.cli.program.terminal import (
    Terminal,
    discard_stdout,
    get_terminal,
    stdout_errors,
)
from kernelmill.cli.render.messages import find_parameter
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import build_json, render_summary
from kernelmill.errors import ArgumentError, KernelmillError, Message, Remedy
from kernelmill.formatting import plain
from kernelmill.learners.losses import LOSSES
from kernelmill.learners.run import CHECKPOINT_SECONDS
from kernelmill.learners.solvers import SOLVERS
from kernelmill.learners.stored import WEIGHTS
from kernelmill.maps.registry import MAPS

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = ["command"]

_MAPS = list(MAPS)
_MODEL = "Model"
_TRAINING = "Training"
_COPY = "copy it: the folder is temporary"


def _first(source: str | list[str]) -> str:
    return source if isinstance(source, str) else source[0]


def _parse_map_options(
    context: click.Context, _: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any] | None:
    """Return NAME=VALUE pairs as a dict; values are JSON, or else strings."""
    options: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise UsageError(
                f"must be NAME=VALUE, such as degree=3, got {each!r}", parameter="map_options"
            )
        name = name.replace("-", "_")
        if find_parameter(name, context.command) is not None:
            raise UsageError(
                f"must not set {name}",
                Remedy("use the option for it", **{name: ...}),
                parameter="map_options",
            )
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options or None


def _parse_class_weight(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> str | dict[str, float] | None:
    """Return "balanced", or LABEL=NUMBER pairs as a dict."""
    if given in ((), ("balanced",)):
        return "balanced" if given else None
    weights = {}
    for each in given:
        label, sign, number = each.rpartition("=")
        try:
            weights[label] = float(number)
        except ValueError:
            sign = ""
        if not sign or not label:
            raise UsageError(
                f"must be balanced, or LABEL=NUMBER such as yes=5, got {each!r}",
                parameter="class_weight",
            )
    return weights


@click.command(
    "fit",
    cls=Command,
    short_help="Train a model on a data file.",
    examples=[
        ("kernelmill fit wine.csv --target quality", "all other settings are chosen automatically"),
        (
            "kernelmill fit adult.data -t 14 --missing impute -o adult.kmill",
            "no header: the target by its index",
        ),
        (
            "kernelmill fit 'part-*.parquet' -t label --report fit.html",
            "many files as one table, and an HTML report",
        ),
        (
            "kernelmill fit a.csv -t y --map tensor_sketch --map-option degree=3",
            "polynomial kernel",
        ),
        (
            "kernelmill fit patients.csv -t y --group patient",
            "the error on new patients: rows of one patient stay together",
        ),
        (
            "kernelmill fit a.csv -t y --folds 5 --class-weight balanced",
            "cross-validated error, rare classes count as much as others",
        ),
        ("kernelmill fit big.csv -t y --resume", "resume after Ctrl-C or a crash"),
        ("kernelmill fit a.csv -t y --json | jq .summary.held_out.metrics", "JSON for programs"),
    ],
)
@data_argument
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_MODEL,
    metavar="COL",
    help="Column to predict: its name, or its index from 0 (-1 is the last). Not needed for files "
    "that contain labels (svmlight, idx, npz with y).",
)
@click.option(
    "--out",
    "-o",
    cls=Option,
    section=_MODEL,
    type=OutputPath(
        "the model",
        remote=True,
        default=lambda given: default_model_name(_first(given["source"])),
        others=FitCheckpoint.list_outputs,
    ),
    metavar="MODEL",
    help="Model file, or a URL such as s3://bucket/a.kmill; overwritten if it exists. Default: the "
    "name of DATA with .kmill, in the current folder. - is stdout.",
)
@task_option(_MODEL)
@click.option(
    "--map",
    "feature_map",
    cls=Option,
    section=_MODEL,
    type=click.Choice(["auto", *_MAPS]),
    metavar="MAP",
    default="auto",
    show_default=True,
    help=f"Feature map: {', '.join(_MAPS)}. auto chooses nystroem for small tables (the model "
    "file then contains rows of the data). For larger tables it chooses additive_fourier "
    "or principal_fourier if step functions or principal components lower the error, "
    "otherwise fastfood, or random_fourier for the Laplacian kernel.",
)
@click.option(
    "--kernel",
    cls=Option,
    section=_MODEL,
    metavar="NAME",
    help="Kernel: gaussian, exponential, matern, rational_quadratic, cauchy, ball_convolution, "
    "laplacian (only with the maps auto, nystroem and random_fourier). Parameters follow a "
    "colon: matern:nu=2.5, rational_quadratic:alpha=1, ball_convolution:t=40. Default: the "
    "one of gaussian, matern, matern:nu=2.5, exponential, rational_quadratic and laplacian "
    "with the smallest error on validation rows.",
)
@click.option(
    "--map-option",
    "map_options",
    cls=Option,
    section=_MODEL,
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_map_options,
    help="Another parameter of the map, such as degree=3 (tensor_sketch). May be repeated.",
)
@click.option(
    "--n-components",
    "-n",
    cls=Option,
    section=_MODEL,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of features. More features are slower and more accurate. Default: increased "
    "while the error decreases, within --budget: up to 6144 landmarks for small tables "
    "(see --map), otherwise 4096 to 16384 random features for classification and 2048 to "
    "8192 for regression. A larger budget raises these limits by up to a factor of four.",
)
@click.option(
    "--length-scale",
    cls=Option,
    section=_MODEL,
    type=float,
    metavar="X",
    help="Length scale (bandwidth) of the kernel, for all columns. Default: one for each column, "
    "learned from a sample.",
)
@click.option(
    "--alpha",
    cls=Option,
    section=_MODEL,
    type=float,
    metavar="X",
    help="Strength of the L2 penalty. Chosen on validation rows by default.",
)
@click.option(
    "--loss",
    cls=Option,
    section=_MODEL,
    type=click.Choice(list(LOSSES)),
    metavar="LOSS",
    help=f"Loss for classification: {', '.join(LOSSES)}. Only log_loss gives probabilities.",
)
@click.option(
    "--precision",
    cls=Option,
    section=_MODEL,
    type=click.Choice(WEIGHTS),
    default="float32",
    show_default=True,
    help="Precision of the coefficients in the file: float16 halves its size, float64 is lossless.",
)
@click.option(
    "--uncertainty/--no-uncertainty",
    cls=Option,
    section=_MODEL,
    default=None,
    callback=lambda _, __, given: "auto" if given is None else given,
    help="Store the matrix that `predict --std` needs in the model file of a regressor: 2 N² "
    "bytes for N features. Default: stored for up to 4096 features.",
)
@click.option(
    "--tune/--no-tune",
    cls=Option,
    section=_TRAINING,
    default=True,
    help="Tune kernel, length scales, alpha and number of features on a sample of the rows. On "
    "by default. Without tuning, only alpha is chosen, among a few: training is faster and often "
    "much less accurate.",
)
@click.option(
    "--column-scales/--no-column-scales",
    cls=Option,
    section=_TRAINING,
    default=True,
    help="Learn a length scale for each column, and use these length scales if they lower the "
    "error on validation rows. On by default.",
)
@click.option(
    "--budget",
    cls=Option,
    section=_TRAINING,
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Approximate training time in seconds on two cores; it limits the number of features. "
    "The time is estimated, not measured, so results do not depend on the machine.",
)
@missing_option(_TRAINING)
@transform_option(_TRAINING)
@drop_option(_TRAINING)
@day_first_option(_TRAINING)
@click.option(
    "--holdout",
    cls=Option,
    section=_TRAINING,
    type=click.FloatRange(min=0, max=0.9),
    metavar="FRACTION",
    help="Fraction of the rows to hold out from training to measure the error. Default: 0.1, at "
    "most 10,000 rows.",
)
@groups_option(_TRAINING)
@holdout_last_option(_TRAINING)
@click.option(
    "--validation",
    cls=Option,
    section=_TRAINING,
    type=InputPath(),
    metavar="FILE",
    help="Measure the error on this table instead of on held-out rows of DATA.",
)
@click.option(
    "--folds",
    cls=Option,
    section=_TRAINING,
    type=click.IntRange(min=2, max=1000),
    metavar="K",
    help="Also estimate the error and its interval by K-fold cross-validation. This fits K more "
    "models with the same settings.",
)
@click.option(
    "--refit",
    cls=Option,
    section=_TRAINING,
    is_flag=True,
    help="Train again on all rows after the held-out error has been measured.",
)
@click.option(
    "--weights",
    cls=Option,
    section=_TRAINING,
    metavar="COL",
    help="Column of row weights, used in tuning, training and errors; it is not an input.",
)
@click.option(
    "--class-weight",
    cls=Option,
    section=_TRAINING,
    metavar="W",
    multiple=True,
    callback=_parse_class_weight,
    help="balanced gives all classes the same total weight. LABEL=NUMBER sets the weight of the "
    "rows of one class; may be repeated.",
)
@click.option(
    "--epochs",
    cls=Option,
    section=_TRAINING,
    type=click.IntRange(min=1),
    metavar="N",
    help="Passes over the rows (classification). Default: at least 4.",
)
@click.option(
    "--solver",
    cls=Option,
    section=_TRAINING,
    type=click.Choice(list(dict.fromkeys(sum(SOLVERS.values(), ())))),
    metavar="SOLVER",
    default="auto",
    show_default=True,
    help="For classification: sgd, lbfgs (to convergence), exact (with --loss squared) or "
    "plain_sgd (fixed steps). For regression: exact or cg (many features).",
)
@click.option(
    "--batch-size",
    cls=Option,
    section=_TRAINING,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of rows in a gradient step. Default: up to 256 with the solver sgd, 10 with "
    "plain_sgd.",
)
@click.option(
    "--learning-rate",
    cls=Option,
    section=_TRAINING,
    type=float,
    metavar="X",
    help="Step size of plain_sgd. Default: 0.001. sgd estimates its own.",
)
@seed_option(_TRAINING)
@threads_option(_TRAINING)
@cluster_option(_TRAINING)
@click.option(
    "--resume",
    cls=Option,
    section=_TRAINING,
    is_flag=True,
    help="Resume from MODEL.checkpoint, which training writes regularly and at its end, and which "
    "is removed when the model is written (in the current folder if MODEL is a URL). "
    "Without this option training starts from the beginning; an earlier checkpoint is kept as "
    "MODEL.checkpoint.old until the new model is written.",
)
@click.option(
    "--checkpoint-seconds",
    cls=Option,
    section=_TRAINING,
    type=click.FloatRange(min=0),
    default=CHECKPOINT_SECONDS,
    show_default=True,
    metavar="S",
    help="Seconds between two checkpoints.",
)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    source: str | list[str],
    *,
    out: Path,
    precision: str,
    uncertainty: bool | str,
    resume: bool,
    report: Path | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Train a kernel machine on DATA and write it to a model file.

    DATA is CSV or other delimited text (also compressed), JSON lines, Parquet, Arrow, NPY, NPZ,
    idx or svmlight; - is stdin. Several files, or a pattern in quotes, are read as one table.
    Strings become categories. Numbers are standardized or, if they share a unit as pixels do,
    divided by one number. The model file stores the encoding.
    """
    terminal = get_terminal(context)
    if str(out) == STDOUT:
        if resume or terminal.json or report is not None:
            problem = "must be a file with --resume, --json and --report, got stdout"
            raise UsageError(problem, parameter="out")
        _print_model(terminal, precision, uncertainty, source, settings | table)
        return
    opening = None
    if context.get_parameter_source("out") is ParameterSource.DEFAULT:
        opening = f"the model will be written to {out} (--out MODEL for another name)"
    with exit_on_interrupt():
        from kernelmill.learners.run import CheckpointError
        from kernelmill.workflows import fit_table

    checkpoint = FitCheckpoint(out)
    checkpoint.lock()
    context.call_on_close(checkpoint.unlock)
    if (note := checkpoint.prepare(resume)) is not None:
        terminal.note(note)
    try:
        with ProgressBars(terminal, opening) as progress:
            model = fit_table(
                source, **settings, **table, checkpoint=checkpoint.path, progress=progress
            )
        _save_or_keep(terminal, model, out, precision, uncertainty, checkpoint)
    except KeyboardInterrupt:
        raise Interrupted(*checkpoint.describe_interrupt()) from None
    except UnsavedModelError:
        raise
    except BaseException as error:
        if (note := checkpoint.restore()) is not None:
            terminal.note(note)
        if isinstance(error, CheckpointError):
            remedy = "run again without --resume to start from the beginning"
            error.message = Message(error.message.problem, remedy, parameter="checkpoint")
        raise
    checkpoint.discard_old()
    if report is not None:
        _write_page(terminal, report, model, out, progress)
    n_bytes = out.stat().st_size
    terminal.give(
        {
            "model": str(out),
            "bytes": n_bytes,
            "report": None if report is None else str(report),
            "summary": build_json(model.summary),
        },
        *render_summary(model.summary, progress.shown_notes, terminal.command),
        "",
        f"Model: {out} ({plain.size(n_bytes)})",
        *([] if report is None else [f"Report: {report}"]),
        f"Next: kernelmill predict {shlex.quote(str(out))} {_suggest_name(_first(source), table)} "
        "--out predictions.csv",
    )


class UnsavedModelError(CommandError):
    """A model could not be written; the message tells where the work of its training is."""


def _save_or_keep(
    terminal: Terminal,
    model: TableModel,
    path: Path,
    precision: str,
    uncertainty: bool | str,
    checkpoint: FitCheckpoint,
) -> None:
    """Save the model; if that fails, keep its training and raise an error that says how."""
    try:
        _save(terminal, model, path, precision, uncertainty)
        return
    except (OSError, KernelmillError) as error:
        problem = f"{path} cannot be written: {_give_reason(error)}"
    if checkpoint.is_last:
        kept, other = checkpoint.path, path.with_name(f"OTHER{path.suffix}")
        raise UnsavedModelError(
            f"{problem}; the training has finished, and its checkpoint is kept in {kept}",
            "run again with --resume, which does not train again",
            f"write another file: mv {shlex.quote(str(kept))} {other.name}.checkpoint, and run "
            f"again with --resume --out {other.name}",
        )
    try:
        with _keeping_folder() as folder:
            _save(terminal, model, folder / path.name, precision, uncertainty)
    except (OSError, KernelmillError) as error:
        problem += f", and neither can a temporary file: {_give_reason(error)}"
        if (note := checkpoint.restore()) is not None:
            raise UnsavedModelError(problem, f"free some disk space: {note}") from None
        problem += "; the work of this training is lost"
        raise UnsavedModelError(problem, "free some disk space") from None
    raise UnsavedModelError(f"{problem}; it was written to {folder / path.name} instead", _COPY)


@contextmanager
def _keeping_folder() -> Iterator[Path]:
    """Yield a temporary folder, which stays unless there is an error."""
    folder = Path(tempfile.mkdtemp(prefix="kernelmill-"))
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _give_reason(error: Exception) -> str:
    """Return why a file cannot be written, as a clause."""
    if isinstance(error, KernelmillError):
        return error.message.problem
    return ((isinstance(error, OSError) and error.strerror) or str(error)).lower()


def _save(
    terminal: Terminal, model: TableModel, path: Path, precision: str, uncertainty: bool | str
) -> None:
    """Save the model; parts that cannot be saved are left out, so that it is not lost."""
    try:
        model.save(path, weights=precision, uncertainty=uncertainty)
    except ArgumentError as error:
        model.save(path, weights=precision)
        terminal.note(f"saved without standard deviations: {error}")


def _write_page(
    terminal: Terminal, page: Path, model: TableModel, path: Path, progress: ProgressBars
) -> None:
    """Write the report; if that fails, print that there is a model."""
    from kernelmill.report import write_report

    try:
        write_report(page, fit=progress.name_options(model.summary), model=str(path))
    except OSError:
        terminal.note(f"the model was written to {path}")
        raise


def _print_model(
    terminal: Terminal,
    precision: str,
    uncertainty: bool | str,
    source: str | list[str],
    settings: dict[str, Any],
) -> None:
    """Fit a model and write its file to stdout; there is no checkpoint."""
    with exit_on_interrupt():
        from kernelmill.workflows import fit_table

    with _keeping_folder() as folder:
        path = folder / "model.kmill"
        with ProgressBars(terminal) as progress:
            model = fit_table(source, **settings, progress=progress)
        _save(terminal, model, path, precision, uncertainty)
    try:
        with stdout_errors():
            sys.stdout.flush()
            with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
                stream.write(path.read_bytes())
    except (KernelmillError, BrokenPipeError) as error:
        discard_stdout()
        reason = "the reader of stdout has ended"
        if isinstance(error, KernelmillError):
            reason = error.message.problem
        raise UnsavedModelError(
            f"{reason}; the model was written to {path} instead", _COPY
        ) from None
    shutil.rmtree(folder)


def _suggest_name(data: str, table: dict[str, Any]) -> str:
    """Return a name for a file of new rows; text files have many suffixes."""
    from kernelmill.io.sources import detect_format, find_files

    try:
        is_text = detect_format(find_files(data)[0], table.get("format")) == "text"
    except OSError:  # the file was removed during training
        is_text = False
    return "NEW.csv" if is_text else "NEW"
