"""From a table to a model: survey, tuning, training, evaluation."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Doubt, Message, Remedy
from kernelmill.files.outputs import Output, check_outputs
from kernelmill.formatting import join_words, plain
from kernelmill.io import Table
from kernelmill.io.sources import find_files, is_data, with_labels
from kernelmill.learners import KernelRegressor, Run
from kernelmill.learners.run import CHECKPOINT_SECONDS
from kernelmill.learners.stored import MAX_UNCERTAIN_FEATURES
from kernelmill.learners.targets import compute_class_factors
from kernelmill.maps.registry import describe_construction
from kernelmill.maps.scales import typical_length_scale
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, reports_progress
from kernelmill.runtime.threads import one_blas_thread
from kernelmill.workflows.clusters import spread
from kernelmill.workflows.evaluation import class_names, measure_kernel_error
from kernelmill.workflows.model.table_model import TableModel
from kernelmill.workflows.records import (
    ColumnRelevance,
    Evaluation,
    FitSummary,
    describe_source,
)
from kernelmill.workflows.training.checks import (
    check_arguments,
    check_classification,
    check_storable,
)
from kernelmill.workflows.training.encoded_rows import (
    ENCODED_BYTES,
    count_encoded_bytes,
    encode_table,
    small_block_bytes,
)
from kernelmill.workflows.training.plan import (
    Settings,
    TrainingPlan,
    learning_curve,
    number_class_weights,
)
from kernelmill.workflows.training.relevance import (
    find_identifiers,
    learn_scales_again,
    measure_partial_dependence,
    rank_columns,
)
from kernelmill.workflows.training.survey import (
    Survey,
    choose_unit,
    open_inputs,
    scale_survey_rows,
    survey_table,
)
from kernelmill.workflows.tuning.budget import USUAL_BUDGET, default_components
from kernelmill.workflows.tuning.map_choice import AUTO, STEPS, MapChoice
from kernelmill.workflows.tuning.memory import TuningMemory
from kernelmill.workflows.tuning.penalty import ChosenPenalty, are_comparable, choose_penalty
from kernelmill.workflows.tuning.settings import TunedSettings, tune_settings

__all__ = ["fit_table"]

_NEARLY_ALL = 0.95  # of the variance, or of the errors without a model


@reports_progress
def fit_table(
    source: Any,
    target: str | int | None = None,
    *,
    task: str = "auto",
    feature_map: Any = AUTO,
    kernel: Any = None,
    n_components: int | None = None,
    length_scale: Any = None,
    alpha: float | None = None,
    loss: str | None = None,
    tune: bool = True,
    column_scales: bool = True,
    budget: float = USUAL_BUDGET,
    missing: str = "error",
    transform: str = "auto",
    drop: Sequence[str | int] = (),
    day_first: bool | None = None,
    holdout: float | None = None,
    groups: Any = None,
    holdout_last: str | int | None = None,
    validation: Any = None,
    folds: int | None = None,
    refit: bool = False,
    weights: str | int | None = None,
    class_weight: Any = None,
    epochs: int | None = None,
    solver: str = "auto",
    batch_size: int | None = None,
    learning_rate: float | None = None,
    map_options: dict[str, Any] | None = None,
    memory: int = ENCODED_BYTES,
    random_state: int = 0,
    n_threads: int | None = None,
    checkpoint: Any = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: Any = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **table_options: Any,
) -> TableModel:
    """Fit a model that predicts one column of a table from the others, in bounded memory.

    The first pass fits the encoding of the columns: numbers are standardized (columns that hold
    only 0 and 1 stay unchanged, skewed and heavy-tailed ones are transformed), categories are
    one-hot encoded (rare ones are pooled), images are divided by 255 and sparse columns by their
    largest absolute value. Columns in one unit, such as pixels, are divided by one number where
    that lowers the error on a sample. The length scale and the penalty are tuned on a sample of at
    most 80,000 rows. Some rows are held out from training, and the summary reports the error on
    them. For polynomial kernels, rows are scaled to similar lengths.

    Parameters
    ----------
    source : path, list of paths, glob pattern, or data in memory
        As for `kernelmill.io.open_table`: files, or a data frame of pandas or polars, an Arrow
        table, a dictionary of arrays, a NumPy array, or a pair (X, y).
    target : str or int
        The column to predict: its name, or its zero-based index. Not allowed for files that contain
        labels (svmlight, idx, NPZ).
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is classification for strings and for at most 30 distinct integers.
    feature_map : str or FeatureMap, default="auto"
        A name as for `KernelClassifier`, or a map of kernelmill. With tuning, "auto" chooses
        "nystroem" for up to 20,000 rows, and in regression for as many rows as the budget allows
        (about 78,000 by default); the model then contains rows of the table. For more rows, it
        chooses "additive_fourier" or "principal_fourier" if step functions or principal components
        of columns lower the error on validation rows, otherwise "fastfood", or "random_fourier" for
        kernels that are not radial. A name stands for a map with good defaults: "fastfood" is SORF,
        and polynomial kernels are (⟨x, y⟩ + 1)² on rows that are scaled to similar lengths unless
        `map_options` has a gamma.
    kernel : str or Kernel, optional
        The kernel, if the map supports several: "gaussian", "matern", "rational_quadratic", ...,
        also with parameters: "matern:nu=2.5". The Laplacian kernel needs the map "auto",
        "random_fourier" or "nystroem". By default the one of "gaussian", "matern", "matern:nu=2.5",
        "exponential", "rational_quadratic" and "laplacian" (with random features only for at most
        128 encoded columns) with the smallest error on validation rows.
    n_components : int, optional
        The number of features. By default it is increased while the error on validation rows
        decreases, within the budget: 4096 to 16384 for classification and 2048 to 8192 for
        regression; 2048 to 6144 landmarks, or all rows if there are fewer. A budget above the
        default raises the upper limits by up to a factor of four.
    length_scale : float or array_like of shape (n_inputs,), optional
        The length scale of the kernel for encoded rows, or one for each encoded column. By default,
        a length scale for each column is learned by maximizing the evidence.
    alpha : float, optional
        The penalty, as in `KernelClassifier` and `KernelRegressor`. Chosen by default.
    loss : {"log_loss", "hinge", "squared_hinge", "squared"}, optional
        The loss of a classifier. The default "log_loss" provides probabilities.
    tune : bool, default=True
        Whether to choose kernel, length scales, penalty and number of features on a sample. If
        False, the defaults of the map and the estimator are used, and the penalty is the default
        one times the power of ten that suits validation rows of at most 2000 rows.
    column_scales : bool, default=True
        Whether to learn a length scale for each column; the one-hot columns of a category share
        one. The learned length scales are used if they lower the error on validation rows.
    budget : float, default=60.0
        The approximate training time in seconds on two cores, which limits the number of features.
        The time is estimated from the numbers of rows and features, not measured, so that the same
        call gives the same model on every machine.
    missing : {"error", "impute"}, default="error"
        How to handle missing values. "error" raises an error. "impute" replaces missing numbers
        with the mean and adds an indicator column, treats a missing category as a category of its
        own, and leaves out rows without a target.
    transform : {"auto", "none", "rank"}, default="auto"
        Which numeric columns are replaced by the normal scores of their ranks: skewed and
        heavy-tailed ones ("auto"), none, or all with at least three distinct values ("rank"). With
        "none", ordered categories such as "10-19", "20-64" and "65+" are one-hot encoded; otherwise
        they are encoded as one number.
    drop : sequence of str or int
        Columns to leave out.
    day_first : bool, optional
        Whether the day or the month comes first in dates such as 01/02/2023. It is required for
        columns whose dates are ambiguous. Dates are encoded as year, month, weekday, time of day
        and elapsed time.
    holdout : float, optional
        The fraction of the rows to hold out. By default 0.1, but at most 10,000 rows, and none if
        there are fewer than 100 rows. Rows with equal inputs are never divided between training and
        held-out rows, nor among folds and validation rows, so the fraction is approximate.
    groups : str, int or array_like of shape (n_rows,), optional
        A column, such as the number of a patient, or for data in memory an array. Rows with the
        same value stay together: whole groups are held out, at least one, and validate in tuning
        and in folds. The error is then that of rows from new groups. The column is not an input.
        Rows without a value are one group. Copies of rows in different groups may be divided.
    holdout_last : str or int, optional
        A column of dates or numbers by which the latest rows are held out, instead of random ones.
        Rows with equal values stay together. Tuning is validated by the latest of the other rows,
        and each of the folds is tested with a model that is fitted to earlier rows. The column is
        an input unless it is among the dropped ones. With ``missing="impute"``, rows without a
        value count as the earliest.
    validation : path, list of paths, glob pattern, or data in memory, optional
        A table on which the error is measured instead. No rows of `source` are then held out,
        unless `holdout` is given.
    folds : int, optional
        Also estimate the error by cross-validation with this number of folds. For each fold, a
        model with the same settings is fitted to the rows outside the fold.
    refit : bool, default=False
        Whether to fit the model again to all rows after the error has been measured. The reported
        error is that of the first model. The second fit has no checkpoint.
    weights : str or int, optional
        The column of row weights, which is not an input. Weights are used in tuning, training and
        errors. Only their ratios matter.
    class_weight : "balanced" or dict, optional
        Factors that multiply the row weights of each class in tuning and training, as in
        `KernelClassifier`; "balanced" gives all classes the same total weight.
    epochs : int, optional
        The number of passes over the rows for a classifier. By default enough to process 100,000
        rows, and at least 4.
    solver : str, default="auto"
        For classification, as in `KernelClassifier`: "sgd", "lbfgs", "exact" (for the loss
        "squared") or "plain_sgd". With "auto", tuned classifiers on random features are trained by
        "lbfgs" if more than 2,000 rows are in memory and the budget allows it. For regression, as
        in `KernelRegressor`: "exact" or "cg". The solver "exact" of a classifier writes checkpoints
        only on a cluster.
    batch_size : int, optional
        The number of rows in a step of "sgd" and "plain_sgd".
    learning_rate : float, optional
        The step size of "plain_sgd".
    map_options : dict, optional
        Further parameters of a named map, such as ``{"degree": 3}``.
    memory : int, default=256 MiB
        Encoded rows are kept in memory if they take at most this many bytes; otherwise the table
        is read again in each pass.
    random_state : int, default=0
        The seed of all random choices.
    n_threads : int, optional
    checkpoint : path, optional
        A file for the state of tuning and training. If the process is interrupted, the same call
        resumes from it. The last state stays in it until `TableModel.save` deletes it.
    checkpoint_seconds : float, default=60.0
        The time between checkpoints.
    cluster : str, distributed.Client or Dask cluster, optional
        Run everything except tuning on the workers of a cluster: the address of a scheduler such as
        "tcp://10.0.0.1:8786", or "local" or "local:N" for N new processes on this machine, each
        with one thread. Workers read pieces of the files, which must be available to them under the
        same paths.
    verbose : bool, default=False
        Whether to print notes and stages, with their progress every five seconds, on stderr. If
        False, only doubts about the data are reported, as warnings. The summary contains all notes.
    progress : Progress, optional
        An object that receives progress reports instead.
    **table_options
        As for `kernelmill.io.open_table`: `delimiter`, `header`, `categorical`, ...

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
    ...     path = pathlib.Path(folder) / "rows.npy"
    ...     np.save(path, np.c_[X, X[:, 0] * X[:, 1]])
    ...     model = kernelmill.fit_table(path, 2, n_components=128, kernel="gaussian")
    >>> model.summary.task, model.summary.held_out.metrics["r2"] > 0.9
    ('regression', True)
    """
    assert progress is not None  # `reports_progress` gives one
    check_arguments(
        source,
        validation,
        task=task,
        length_scale=length_scale,
        alpha=alpha,
        loss=loss,
        tune=tune,
        column_scales=column_scales,
        budget=budget,
        missing=missing,
        transform=transform,
        day_first=day_first,
        holdout=holdout,
        folds=folds,
        refit=refit,
        epochs=epochs,
        memory=memory,
        n_threads=n_threads,
    )
    length_scale = np.asarray(length_scale) if np.ndim(length_scale) else length_scale
    seed = check_integer("random_state", random_state, 0, 2**63 - 1)
    choice = MapChoice(feature_map, kernel, map_options or {})
    choice.check()
    run = Run(checkpoint, checkpoint_seconds=checkpoint_seconds, progress=progress)
    with run.lock(), ExitStack() as stack:
        clock = _Clock()
        with clock.stage("read"):
            table, inputs, weights, division = open_inputs(
                source,
                target,
                task,
                table_options,
                drop,
                weights=weights,
                groups=groups,
                holdout_last=holdout_last,
                parameters=signature(fit_table).parameters,
            )
            files = _list_files(table, validation, checkpoint)
            pieces = stack.enter_context(spread(table, cluster, progress))
            survey = survey_table(
                table,
                inputs,
                fold=None if pieces is None else pieces.survey,
                weights=weights,
                division=division,
                task=task,
                missing=missing,
                transform=transform,
                day_first=day_first,
                holdout=0.0 if validation is not None and holdout is None else holdout,
                stream=Stream.from_seed(seed).substream("table"),
                progress=progress,
                tune=tune and length_scale is None,
                suggests_folds=folds is None,
            )
        with clock.stage("tune"):
            survey = choose_unit(survey, Stream.from_seed(seed).substream("table"), progress)
        with clock.stage("read"):
            if choice.scales_rows:
                survey = scale_survey_rows(survey, progress)
            encoded = None if pieces else encode_table(table, survey, memory, progress)
            if encoded is None and "block_bytes" not in table_options:
                table = table.with_block_bytes(small_block_bytes(table))
        check_classification(survey.reader, loss=loss, class_weight=class_weight)
        settings = Settings(
            choice=choice,
            n_components=choice.n_components(n_components),
            loss=loss or "log_loss",
            epochs=epochs,
            seed=seed,
            n_threads=n_threads,
            solver=solver,
            batch_size=batch_size,
            learning_rate=learning_rate,
            class_weight=class_weight,
        )
        settings.check(survey.reader.task, survey.n_rows)
        check_storable(settings, survey, run)
        with clock.stage("tune"):
            tuned, others = _tune(
                _GivenSettings(length_scale, alpha, tune, column_scales, budget),
                settings,
                survey,
                run,
                in_memory=count_encoded_bytes(survey) <= memory,
            )
            settings = settings.with_tuned(tuned)
        plan = TrainingPlan(settings, tuned, survey, table, encoded, progress, pieces).check_folds(
            folds
        )
        with clock.stage("train"):
            learner = plan.fit(run, watched=True)
        with clock.stage("evaluate"), one_blas_thread():
            if validation is None:
                held_out = plan.evaluate(learner, describe_source(source))
            else:
                held_out = plan.evaluate_table(learner, validation, table_options)
            check = measure_kernel_error(learner.feature_map_, survey.sample)
            relevance = rank_columns(learner, survey, others)
            dependence = measure_partial_dependence(learner, survey, relevance)
        n_held_out = held_out.n_rows if held_out is not None else 0
        n_trained = survey.n_rows - (n_held_out if validation is None else 0)
        curve = learning_curve(learner, n_trained, run)
        with clock.stage("cross-validate", folds is not None):
            folded = None if folds is None else plan.cross_validate(folds)
        refitted = refit and n_trained < survey.n_rows
        with clock.stage("refit", refitted):
            learner = plan.fit_all_rows() if refitted else learner
        summary = FitSummary(
            task=survey.reader.task,
            source=describe_source(source),
            target=str(inputs.target),
            n_rows=survey.n_rows if refitted else n_trained,
            n_held_out=n_held_out,
            columns=survey.columns,
            n_inputs=survey.encoder.n_inputs,
            map_name=tuned.choice.name,
            kernel="linear"
            if tuned.choice.is_linear
            else str(getattr(learner.feature_map_, "kernel_", "")),
            n_components=learner.coef_.shape[-1],
            length_scale=None
            if tuned.choice.is_linear
            else typical_length_scale(learner.feature_map_),
            alpha=float(learner.alpha_),
            loss="squared" if survey.n_classes is None else settings.loss,
            solver=settings.choose_solver(survey.reader.task, learner.coef_.shape[-1]),
            construction=describe_construction(learner.feature_map_),
            seed=seed,
            seconds=clock.seconds,
            peak_memory=_peak_memory(),
            classes=class_names(survey.reader.classes),
            tuning=tuned.points,
            learning_curve=curve,
            kernel_check=check,
            held_out=held_out,
            notes=[
                str(note)
                for note in (
                    *survey.notes,
                    *tuned.notes,
                    *_note_on_groups(survey, held_out, relevance, progress),
                    *_note_on_std(learner, progress),
                )
            ],
            version=version("kernelmill"),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            column_relevance=relevance,
            partial_dependence=dependence,
            weights="" if weights is None else str(weights),
            class_weight=_describe_class_weight(class_weight),
            cross_validation=folded,
            refitted=refitted,
            division=survey.division,
        )
        return TableModel(
            learner, survey.encoder, inputs, survey.reader, summary, checkpoint, files
        )


def _list_files(table: Table, validation: Any, checkpoint: Any) -> tuple[Path, ...]:
    """Return all files that are read; raise if the checkpoint is one of them."""
    files = with_labels(table.files)
    if validation is not None and not is_data(validation):
        files += with_labels(find_files(validation))
    if checkpoint is not None:
        check_outputs([Output(checkpoint, "checkpoint", "the checkpoint")], files)
    return tuple(files)


def _note_on_groups(
    survey: Survey,
    evaluation: Evaluation | None,
    relevance: list[ColumnRelevance],
    progress: Progress,
) -> list[Message]:
    """Add a note if the error is tiny because of a column that may identify groups of rows."""
    if evaluation is None or survey.division.by != "inputs" or survey.held_out.share <= 0:
        return []
    metrics = evaluation.metrics
    if survey.n_classes is None:
        explained = metrics["r2"] or 0.0
    else:
        explained = 1 - (metrics["error"] or 0.0) / (metrics["baseline_error"] or 1.0)
    found = find_identifiers(survey, relevance) if explained > _NEARLY_ALL else {}
    if not found:
        return []
    shown = join_words(f"{name!r} ({plain.count(n)} values)" for name, n in found.items())
    note = Doubt(
        f"The error is near 0, and predictions depend mostly on {shown}. If rows with the same "
        "value are from one patient, machine or the like, this is not the error of new ones",
        Remedy("keep such rows together", groups=max(found, key=lambda name: found[name])),
        Remedy("leave out what identifies them", drop=list(found)),
    )
    progress.note(note)
    return [note]


def _note_on_std(learner: Any, progress: Progress) -> list[Message]:
    """Add a note if a regressor or its file has no standard deviations, after all stages."""
    if not isinstance(learner, KernelRegressor):
        return []
    n_components = learner.coef_.shape[-1]
    if not hasattr(learner, "statistics_"):
        note = Message(
            "Standard deviations are not available with the conjugate gradient solver",
            Remedy("use the exact solver", solver="exact"),
        )
    elif n_components > MAX_UNCERTAIN_FEATURES:
        size = plain.size(2 * n_components**2)
        note = Message(
            f"The model file will not support standard deviations, which would take {size} for "
            f"{plain.count(n_components, 'feature')}",
            Remedy("store them anyway", uncertainty=True),
        )
    else:
        return []
    progress.note(note)
    return [note]


def _describe_class_weight(given: Any) -> str:
    if isinstance(given, Mapping):
        return ", ".join(f"{label}: {plain.number(weight)}" for label, weight in given.items())
    return "" if given is None else str(given)


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, happens: bool = True) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        if happens:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


def _peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(frozen=True)
class _GivenSettings:
    """The arguments of a fit that tuning depends on."""

    length_scale: Any
    alpha: float | None
    tune: bool
    column_scales: bool
    budget: float


def _tune(
    given: _GivenSettings, settings: Settings, survey: Survey, run: Run, *, in_memory: bool
) -> tuple[TunedSettings, list[NDArray[np.float64]]]:
    """Return the settings to train with, and length scales learned from other rows."""
    steps = TuningMemory(run)
    if given.tune:
        samples = survey.sample, survey.sample_target, survey.sample_weight, survey.sample_keys
        rows = survey.n_rows, *samples, in_memory
        searched = given, replace(settings, n_threads=None), survey.division
        steps.open({"the digest of the data": rows, "the digest of the settings": searched})
    with steps.save_at_end(), one_blas_thread():
        tuned = _choose_settings(given, settings, survey, steps, run.progress, in_memory=in_memory)
        is_searched = given.length_scale is None and settings.choice.has_length_scale
        if not is_searched or tuned.choice.name == STEPS:  # whose relevance is that of predictions
            return tuned, []
        others = learn_scales_again(
            tuned, survey, settings.seed, settings.n_threads, run.progress, steps
        )
        return tuned, others


def _choose_settings(
    given: _GivenSettings,
    settings: Settings,
    survey: Survey,
    steps: TuningMemory,
    progress: Progress,
    *,
    in_memory: bool,
) -> TunedSettings:
    length_scale, alpha = given.length_scale, given.alpha
    has_length_scale = settings.choice.has_length_scale
    if length_scale is not None and not has_length_scale:
        problem = f"cannot be set: {settings.choice.name} has no length scale"
        raise ArgumentError(problem, "leave it out", parameter="length_scale")
    target = survey.sample_target
    if not given.tune or not are_comparable(target):
        if length_scale is None and has_length_scale:
            # Rows of the sample, since the first rows may differ from the rest.
            fitted = settings.make_map(None, 16).fit(survey.sample)
            length_scale = float(fitted.length_scale_)
        n_components = settings.n_components or default_components(survey.reader.task)
        if alpha is not None:
            chosen = ChosenPenalty(alpha, [], ())
        else:
            chosen = choose_penalty(
                settings.choice,
                survey.sample,
                target,
                n_classes=survey.n_classes,
                n_components=n_components,
                length_scale=length_scale,
                loss=settings.loss,
                n_rows=survey.n_rows,
                seed=settings.seed,
                n_threads=settings.n_threads,
                sample_weight=_tuning_weights(survey, settings.class_weight),
                sample_keys=survey.sample_keys,
                in_order=survey.in_order,
            )
        for note in chosen.notes:
            progress.note(note)
        choice = settings.choice.with_steps_of(survey.sample, n_components, length_scale)
        return TunedSettings(
            choice, length_scale, chosen.alpha, n_components, chosen.points, chosen.notes
        )
    tuned = tune_settings(
        settings.choice,
        survey.sample,
        target,
        n_classes=survey.n_classes,
        n_components=settings.n_components,
        length_scale=length_scale,
        alpha=alpha,
        loss=settings.loss,
        solver=settings.solver,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        n_rows=survey.n_rows,
        in_memory=in_memory,
        seed=settings.seed,
        n_threads=settings.n_threads,
        progress=progress,
        groups=survey.encoder.groups(),
        column_scales=given.column_scales,
        steps=True,
        budget=given.budget,
        sample_weight=_tuning_weights(survey, settings.class_weight),
        sample_keys=survey.sample_keys,
        in_order=survey.in_order,
        independent=survey.has_independent_rows,
        memory=steps,
    )
    for note in tuned.notes:
        progress.note(note)
    choice = tuned.choice.with_steps_of(survey.sample, tuned.n_components, tuned.length_scale)
    return replace(tuned, choice=choice)


def _tuning_weights(survey: Survey, class_weight: Any) -> NDArray[np.float64] | None:
    """Return the weights of the rows of the sample, times those of their classes."""
    classes, codes = survey.reader.classes, survey.sample_target
    if class_weight is None or classes is None:
        return survey.sample_weight
    weights = np.ones(len(codes)) if survey.sample_weight is None else survey.sample_weight
    totals = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    by_number = number_class_weights(class_weight, classes)
    factors = compute_class_factors(by_number, np.arange(len(classes)), totals)
    return weights if factors is None else weights * factors[codes]
