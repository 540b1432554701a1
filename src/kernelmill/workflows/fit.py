"""From a table to a model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.encoding.encoder import MISSING
from kernelmill.encoding.inputs import chosen_inputs
from kernelmill.encoding.targets import text_of_label
from kernelmill.io import Table
from kernelmill.learners.losses import LOSSES
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, SilentProgress
from kernelmill.workflows.evaluation import scores_for
from kernelmill.workflows.kernel_check import kernel_check
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.memory import peak_memory
from kernelmill.workflows.model import TableModel, described_source
from kernelmill.workflows.records import Evaluation, FitSummary
from kernelmill.workflows.source import opened_source
from kernelmill.workflows.survey import Survey, survey
from kernelmill.workflows.training import SLICE, Settings, learning_curve, trained
from kernelmill.workflows.training_rows import (
    TrainingRows,
    held_out_rows,
    kept_rows,
    small_blocks,
)
from kernelmill.workflows.tuning import Tuned, tuned_settings

__all__ = ["fit_table"]

_KEPT_BYTES = 256 << 20
TASKS = ("auto", "classification", "regression")


def fit_table(
    source: Any,
    target: str | int | None = None,
    *,
    task: str = "auto",
    feature_map: Any = "fastfood",
    kernel: Any = None,
    n_components: int | None = None,
    length_scale: float | None = None,
    alpha: float | None = None,
    loss: str | None = None,
    tune: bool = True,
    missing: str = "error",
    drop: Sequence[str | int] = (),
    holdout: float | None = None,
    epochs: int | None = None,
    map_options: dict[str, Any] | None = None,
    memory: int = _KEPT_BYTES,
    random_state: int = 0,
    n_threads: int | None = None,
    checkpoint: Any = None,
    checkpoint_seconds: float = 60.0,
    progress: Progress | None = None,
    **table_options: Any,
) -> TableModel:
    """Learn to predict one column of a table from the others, in bounded memory.

    The first pass learns how to encode the columns: numbers are standardized (columns of nothing
    but 0 and 1 stay), categories become columns of 0 and 1 (rare ones are pooled), images are
    divided by 255 and sparse columns by their largest absolute value. Length scale and penalty are
    chosen on a sample of at most 80,000 rows. Some rows are held out and never trained on: the
    summary says how well the model predicts them.

    Parameters
    ----------
    source : path, list of paths, or glob pattern
        As `kernelmill.io.open_table` takes it.
    target : str or int
        The column to predict: its name, or its place counted from 0. Not for files that carry their
        own labels (svmlight, idx, NPZ).
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is classification for texts and for at most 30 different whole numbers.
    feature_map : str or FeatureMap, default="fastfood"
        A name as for `KernelClassifier`, or one of kernelmill's maps.
    kernel : str or Kernel, optional
        For maps that have a choice: "gaussian", "matern", "laplacian", ...
    n_components : int, optional
        The number of features: 4096 for classification and 2048 for regression.
    length_scale : float, optional
        Of the kernel, for encoded rows. By default tuned.
    alpha : float, optional
        The penalty, as in `KernelClassifier` and `KernelRegressor`. By default tuned.
    loss : {"log_loss", "hinge", "squared_hinge", "squared"}, optional
        Of a classifier; "log_loss", the default, has probabilities.
    tune : bool, default=True
        Whether to choose length scale and penalty by the error on a part of the sample. Otherwise
        they are the defaults of the map and the learner.
    missing : {"error", "impute"}, default="error"
        What a missing value does. "impute": numbers become the mean and are marked in a column of
        their own, categories get one more category, rows without a target are left out.
    drop : sequence of str or int
        Columns to leave out.
    holdout : float, optional
        The share of rows to hold out. By default a tenth, at most 10,000 rows, and none of fewer
        than 100 rows.
    epochs : int, optional
        Passes over the rows for a classifier; by default so many that 100,000 rows are seen, and at
        least 4.
    map_options : dict, optional
        Further parameters of a named map, such as ``{"degree": 3}``.
    memory : int, default=256 MiB
        Encoded rows that take no more bytes are kept; others are read again in each pass.
    random_state : int, default=0
        The seed of everything random.
    n_threads : int, optional
    checkpoint : path, optional
        A file that keeps the state of training; if the process dies, the same call goes on from
        there. `TableModel.save` removes it.
    checkpoint_seconds : float, default=60.0
        How often it is written.
    progress : Progress, optional
        Told how far the work is.
    **table_options
        As `kernelmill.io.open_table` takes them: `delimiter`, `header`, `categorical`, ...

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder) / "rows.npy", np.c_[X, X[:, 0] * X[:, 1]])
    ...     model = kernelmill.fit_table(pathlib.Path(folder) / "rows.npy", 2, n_components=128)
    >>> model.summary.task, model.summary.held_out.metrics["r2"] > 0.9
    ('regression', True)
    """
    progress = SilentProgress() if progress is None else progress
    _check(task, loss, missing, holdout, length_scale, alpha, epochs, memory)
    seed = check_integer("random_state", random_state, 0, 2**63 - 1)
    if n_threads is not None:
        check_integer("n_threads", n_threads, 1, 1024)
    choice = MapChoice(feature_map, kernel, map_options or {})
    clock = _Clock()
    stream = Stream.from_seed(seed).substream("table")
    with clock.stage("read"):
        table, target = opened_source(source, target, task, table_options)
        inputs = chosen_inputs(table, target, drop)
        found = survey(
            table,
            inputs,
            task=task,
            missing=missing,
            holdout=holdout,
            stream=stream,
            progress=progress,
        )
        for note in found.notes:
            progress.note(note)
        kept = kept_rows(table, found, memory, progress)
        if kept is None and "block_bytes" not in table_options:
            surveyed, small = table, small_blocks(table)
            table, _ = opened_source(source, target, task, {**table_options, "block_bytes": small})
            surveyed.check_unchanged()
    if loss is not None and found.reader.task == "regression":
        raise ValueError(f"loss is for classification, got loss={loss!r} for regression.")
    settings = Settings(
        choice=choice,
        n_components=choice.n_components(n_components, found.reader.task),
        loss=loss or "log_loss",
        epochs=epochs,
        seed=seed,
        n_threads=n_threads,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
    )
    with clock.stage("tune"):
        tuned = _tuned(settings, found, length_scale, alpha, tune, progress)
    with clock.stage("train"):
        rows = TrainingRows(table, found, seed)
        learner = trained(settings, tuned, found, rows, kept, progress)
    with clock.stage("evaluate"):
        held_out = _evaluated(learner, table, found, kept, described_source(source), progress)
        check = kernel_check(learner.feature_map_, found.sample)
    n_held_out = held_out.n_rows if held_out is not None else 0
    n_trained = found.n_rows - n_held_out
    summary = FitSummary(
        task=found.reader.task,
        source=described_source(source),
        target=str(inputs.target),
        n_rows=n_trained,
        n_held_out=n_held_out,
        columns=found.columns,
        n_inputs=found.encoder.n_inputs,
        map_name=choice.name,
        kernel=_kernel_text(learner.feature_map_),
        n_components=learner.coef_.shape[-1],
        length_scale=getattr(learner.feature_map_, "length_scale_", None),
        alpha=float(learner.alpha_),
        loss=settings.loss if found.reader.classes is not None else "squared",
        seed=seed,
        seconds=clock.seconds,
        peak_memory=peak_memory(),
        classes=_class_texts(found.reader.classes),
        tuning=tuned.points,
        learning_curve=learning_curve(learner, n_trained),
        kernel_check=check,
        held_out=held_out,
        notes=found.notes,
        version=version("kernelmill"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return TableModel(learner, found.encoder, inputs, found.reader, summary, checkpoint)


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin


def _check(
    task: str,
    loss: str | None,
    missing: str,
    holdout: float | None,
    length_scale: float | None,
    alpha: float | None,
    epochs: int | None,
    memory: int,
) -> None:
    check_choice("task", task, TASKS)
    check_choice("missing", missing, MISSING)
    if loss is not None:
        check_choice("loss", loss, tuple(LOSSES))
    if holdout is not None and not (isinstance(holdout, Real) and 0 <= float(holdout) <= 0.9):
        raise ValueError(f"holdout must be a share from 0 to 0.9, got {holdout!r}.")
    if length_scale is not None:
        check_positive("length_scale", length_scale)
    if alpha is not None and not (isinstance(alpha, Real) and 0 <= float(alpha) < np.inf):
        raise ValueError(f"alpha must be a number, finite and not negative, got {alpha!r}.")
    if epochs is not None:
        check_integer("epochs", epochs, 1)
    check_integer("memory", memory, 0)


def _tuned(
    settings: Settings,
    found: Survey,
    length_scale: float | None,
    alpha: float | None,
    tune: bool,
    progress: Progress,
) -> Tuned:
    has_length_scale = settings.choice.has_length_scale
    n_rows = found.n_rows
    classes = found.reader.classes
    if length_scale is not None and not has_length_scale:
        raise ValueError(
            f"{settings.choice.name} has no length scale to set; leave out length_scale "
            "(--length-scale)."
        )
    if not tune or len(found.sample_target) < 20 or len(np.unique(found.sample_target)) < 2:
        if alpha is None:
            alpha = 1.0 if classes is None else 1 / (10.0 * n_rows)
        if length_scale is None and has_length_scale:
            # From the sample: the first rows may be unlike the others.
            fitted = settings.make_map(None, 16).fit(found.sample)
            length_scale = float(fitted.length_scale_)
        return Tuned(length_scale, alpha, [])
    return tuned_settings(
        settings.make_map,
        found.sample,
        found.sample_target,
        n_classes=None if classes is None else len(classes),
        n_components=settings.n_components,
        length_scale=length_scale,
        has_length_scale=has_length_scale,
        alpha=alpha,
        loss=settings.loss,
        n_rows=n_rows,
        seed=settings.seed,
        progress=progress,
    )


def _evaluated(
    learner: Any, table: Table, found: Survey, kept: Any, source: str, progress: Progress
) -> Evaluation | None:
    if found.held_out.share <= 0:
        return None
    scores = scores_for(learner, found.reader.classes)
    progress.start("Evaluating", None)
    parts = held_out_rows(table, found) if kept is None else [kept[1]]
    for X, target in parts:
        for begin in range(0, len(target), SLICE):
            scores.update(X[begin : begin + SLICE], target[begin : begin + SLICE])
        progress.advance(len(target))
    if scores.n_rows == 0:
        return None
    return scores.finish(f"{source}: held-out rows", [])


def _class_texts(classes: NDArray[Any] | None) -> list[str] | None:
    return None if classes is None else [text_of_label(label) for label in classes.tolist()]


def _kernel_text(fitted_map: Any) -> str:
    return str(getattr(fitted_map, "kernel_", ""))
