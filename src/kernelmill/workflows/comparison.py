"""Comparison of models on the rows of a table: linear, random features, trees, exact kernels."""

from __future__ import annotations

import ctypes
import gc
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV

from kernelmill.arguments import check_choice, check_integer
from kernelmill.encoding.encoder import MISSING, Encoder, RowScaling
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError
from kernelmill.io.sources import is_data
from kernelmill.io.table import check_columns
from kernelmill.learners import KernelClassifier, KernelRegressor
from kernelmill.learners.regressor import LEAST_SINGLE_ALPHA
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, SilentProgress, reports_progress
from kernelmill.workflows.contenders import (
    fit_in_time,
    make_exact,
    make_nystroem,
    make_trees,
    tree_columns,
)
from kernelmill.workflows.encoded_rows import EncodedRows, concatenate_rows, encode_held_out
from kernelmill.workflows.evaluation import measure_kernel_error
from kernelmill.workflows.map_choice import AUTO, MapChoice
from kernelmill.workflows.records import ComparedModel, Comparison, describe_source
from kernelmill.workflows.survey import TASKS, open_source, survey_table
from kernelmill.workflows.tuning import TunedSettings, tune_settings

__all__ = ["PeakMemory", "compare_table", "given_settings"]

_LINEAR_C = (0.01, 0.1, 1.0, 10.0)
_ROWS_TO_CHOOSE = 8000
_LENGTHS = ("epochs", "max_iter", "n_estimators")  # what makes a fit long, not large
_MOST_EXACT_ROWS = 10_000  # their kernel matrix takes 800 MB


@reports_progress
def compare_table(
    source: Any,
    target: str | int | None = None,
    *,
    task: str = "auto",
    missing: str = "error",
    transform: str = "auto",
    drop: Sequence[str | int] = (),
    day_first: bool | None = None,
    kernel: Any = None,
    n_components: Sequence[int] = (256, 1024, 4096),
    rows: int = 50_000,
    exact_rows: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **table_options: Any,
) -> Comparison:
    r"""Compare kernel machines on random features with a linear model, trees and the exact kernel.

    All models are trained on the same random sample of the rows and tested on other rows, a
    quarter of the table or 10,000 rows. The length scale and the penalty are tuned once, on the
    sample, for all machines of the kernel (random features, Nyström features, the exact machine);
    the linear model and the polynomial kernel have penalties of their own. Boosted trees and the
    random forest are those of scikit-learn with its defaults; they get the encoded columns, with
    one column of codes instead of indicators for each category column. Trees get fewer rows if
    all of them would take longer than a minute or so, and the exact machine gets as many as it can
    take in 30 seconds; the records hold the numbers.

    Parameters
    ----------
    source : path, list of paths, glob pattern, or data in memory
    target : str or int
    task : {"auto", "classification", "regression"}, default="auto"
    missing : {"error", "impute"}, default="error"
    transform : {"auto", "none", "rank"}, default="auto"
    drop : sequence of str or int
    day_first : bool, optional
    kernel : str or Kernel, optional
        A shift-invariant kernel; Gaussian by default.
    n_components : sequence of int, default=(256, 1024, 4096)
        The numbers of features of `Fastfood`; the other maps have the middle one.
    rows : int, default=50_000
        The largest number of rows to train on.
    exact_rows : int, optional
        The largest number of rows for the exact machine, whose cost grows with their square or
        cube. By default as many as it can take in about 30 seconds, at most 10,000.
    random_state : int, default=0
    n_threads : int, optional
    verbose : bool, default=False
        As in `fit_table`.
    progress : Progress, optional
    **table_options
        As for `kernelmill.io.open_table`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> x = np.random.default_rng(0).uniform(-3, 3, 300)
    >>> rows = (f"{each},{np.sin(2 * each)}" for each in x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "waves.csv"
    ...     _ = path.write_text("x,y\n" + "\n".join(rows))
    ...     comparison = kernelmill.compare_table(path, "y", n_components=[64], kernel="gaussian")
    >>> errors = {model.name: model.error for model in comparison.models}
    >>> errors["fastfood"] < errors["linear"]
    True
    """
    assert progress is not None  # `reports_progress` gives one
    check_choice("task", task, TASKS)
    check_choice("missing", missing, MISSING)
    check_choice("transform", transform, TRANSFORMS)
    sizes = sorted(check_integer("n_components", size, 1) for size in n_components)
    if not sizes:
        raise ArgumentError("must hold at least one number, got none", parameter="n_components")
    seed = check_integer("random_state", random_state, 0)
    table, target = open_source(source, target, task, table_options)
    inputs = choose_inputs(table, target, drop)
    survey = survey_table(
        table,
        inputs,
        task=task,
        missing=missing,
        transform=transform,
        day_first=day_first,
        holdout=None,
        stream=Stream.from_seed(seed).substream("table"),
        progress=progress,
        sample_rows=check_integer("rows", rows, 10),
        default_holdout=0.25,
    )
    if survey.held_out.share == 0:
        raise TableError(
            f"{describe_source(source)} has {survey.n_rows} rows with a target, but a comparison "
            "needs at least 100",
            "give a larger table",
        )
    test = [part for part in encode_held_out(table, survey) if len(part.target)]
    experiment = _Experiment(
        EncodedRows(survey.sample, survey.sample_target),
        concatenate_rows(test),
        survey.n_classes,
        seed,
        n_threads,
        survey.encoder.groups(),
    )
    tuned = experiment.tune(MapChoice(AUTO, kernel), max(sizes), progress=progress)
    choice = tuned.choice
    fits = _list_fits(experiment, tuned, choice, sizes, exact_rows, survey.encoder)
    progress.start("Comparing", len(fits), "models")
    models = []
    for fit in fits:
        models.append(fit())
        progress.advance(1)
    fitted = experiment.make_map(choice, tuned, max(sizes)).fit(survey.sample[:10])
    options = {"day_first": day_first, **table_options}
    settings = given_settings(task, missing, transform, kernel, drop, options)
    return Comparison(
        task=survey.reader.task,
        source=describe_source(source),
        target=str(inputs.target),
        n_train=len(survey.sample_target),
        n_test=len(experiment.test.target),
        error_name="rmse" if survey.n_classes is None else "error",
        models=models,
        kernel_check=measure_kernel_error(fitted, survey.sample),
        notes=[str(note) for note in survey.notes],
        settings=_best_settings(models, choice.kernel, settings),
        in_memory=is_data(source),
    )


def given_settings(
    task: str, missing: str, transform: str, kernel: Any, drop: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """The settings that differ from the defaults and that a fit to the same table needs."""
    given: dict[str, Any] = {"drop": check_columns("drop", drop), **options}
    if task != "auto":
        given["task"] = task
    if missing != "error":
        given["missing"] = missing
    if transform != "auto":
        given["transform"] = transform
    if isinstance(kernel, str):
        given["kernel"] = kernel
    settings = {
        name: list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
        for name, value in given.items()
    }
    return {name: value for name, value in settings.items() if value is not None and value != []}


def _best_settings(
    models: list[ComparedModel], kernel: Any, given: dict[str, Any]
) -> dict[str, Any]:
    """The given settings, with map, kernel and size of the best kernel machine.

    Without the map, a fit might take one that is not among the models. Maps of polynomial kernels
    take no other kernel.
    """
    ours = [model for model in models if model.family in ("features", "nystroem")]
    best = min(ours, key=lambda model: (model.error, model.n_components or 0))
    settings = given | {"feature_map": best.name, "n_components": best.n_components}
    if best.name not in ("fastfood", "random_fourier", "nystroem"):
        settings.pop("kernel", None)
    elif isinstance(kernel, str):
        settings["kernel"] = kernel
    return settings


@dataclass(frozen=True)
class _Experiment:
    """Training rows and test rows, the same for all models."""

    training: EncodedRows
    test: EncodedRows
    n_classes: int | None
    seed: int
    n_threads: int | None
    groups: NDArray[Any]

    def tune(
        self,
        choice: MapChoice,
        n_components: int,
        *,
        progress: Progress,
        n_rows: int | None = None,
    ) -> TunedSettings:
        """Tune a map on the first `n_rows` training rows, by default all of them."""
        return tune_settings(
            choice,
            self.training.X[:n_rows],
            self.training.target[:n_rows],
            n_classes=self.n_classes,
            n_components=n_components,
            n_rows=len(self.training.target),
            in_memory=False,  # random features are compared with landmarks, see below
            seed=self.seed,
            n_threads=self.n_threads,
            progress=progress,
            groups=self.groups,
        )

    def with_scaled_rows(self) -> _Experiment:
        """The same rows, scaled to similar lengths."""
        scaling = RowScaling.of_rows(self.training.X)
        return replace(
            self,
            training=self.training._replace(X=scaling.apply(self.training.X)),
            test=self.test._replace(X=scaling.apply(self.test.X)),
        )

    def make_map(self, choice: MapChoice, tuned: TunedSettings, n_components: int) -> Any:
        """An unfitted map with the tuned length scale."""
        return choice.make(tuned.length_scale, n_components, self.seed, self.n_threads)

    @property
    def task(self) -> str:
        """The task of the models."""
        return "regression" if self.n_classes is None else "classification"

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.training.target)

    def fit_features(
        self, choice: MapChoice, tuned: TunedSettings, n_components: int, detail: str = ""
    ) -> ComparedModel:
        """A kernel machine on the features of a map."""
        learner = self.make_learner(self.make_map(choice, tuned, n_components), tuned)
        return self.measure(
            choice.name, "features", learner, n_components=n_components, detail=detail
        )

    def make_learner(self, feature_map: Any, tuned: TunedSettings) -> Any:
        """An unfitted learner of ours on the features of a transformer."""
        return (KernelRegressor if self.n_classes is None else KernelClassifier)(
            feature_map, alpha=tuned.alpha, random_state=self.seed, n_threads=self.n_threads
        )

    def measure(
        self,
        name: str,
        family: str,
        model: Any,
        *,
        n_components: int | None = None,
        n_train: int | None = None,
        detail: str = "",
    ) -> ComparedModel:
        """Train and test a model, and measure its error, times and memory."""
        X, target = self.training.X[:n_train], self.training.target[:n_train]
        self._warm_up(model)
        memory = PeakMemory()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the time is measured as it is
            model.fit(X, target)
        fitted = time.perf_counter()
        predicted = model.predict(self.test.X)
        end = time.perf_counter()
        if self.n_classes is None:
            error = float(np.sqrt(np.mean((np.ravel(predicted) - self.test.target) ** 2)))
        else:
            error = float(np.mean(predicted != self.test.target))
        return ComparedModel(
            name=name,
            family=family,
            n_components=n_components,
            n_train=len(target),
            error=error,
            fit_seconds=fitted - start,
            predict_seconds=end - fitted,
            peak_memory=memory.bytes_more(),
            detail=detail,
        )

    def _warm_up(self, model: Any) -> None:
        """Fit to a few rows: libraries allocate their buffers before the measurement."""
        X, target = self.training.X, self.training.target
        known = model.get_params()
        copy = clone(model).set_params(**{name: 1 for name in _LENGTHS if name in known})
        _, first = np.unique(target, return_index=True)
        rows = np.unique(np.r_[first[:50], : min(64, len(target))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.fit(X[rows], target[rows])
            copy.predict(X[:2])


def _list_fits(
    experiment: _Experiment,
    tuned: TunedSettings,
    choice: MapChoice,
    sizes: list[int],
    exact_rows: int | None,
    encoder: Encoder,
) -> list[Callable[[], ComparedModel]]:
    """The models of the comparison, each as a function that fits and measures it."""
    middle = sizes[len(sizes) // 2]
    others = [] if choice.name == "random_fourier" else [MapChoice("random_fourier", choice.kernel)]
    return [
        lambda: _fit_linear(experiment),
        *(partial(experiment.fit_features, choice, tuned, size) for size in sizes),
        *(partial(experiment.fit_features, other, tuned, middle) for other in others),
        lambda: _fit_polynomial(experiment, middle),
        lambda: _fit_nystroem(experiment, tuned, choice, middle),
        *_list_trees(experiment, encoder),
        lambda: _fit_exact(experiment, tuned, choice, exact_rows),
    ]


def _fit_linear(experiment: _Experiment) -> ComparedModel:
    """The linear model; its penalty is chosen on validation rows, as for the kernel machines."""
    if experiment.n_classes is None:
        model = RidgeCV(10.0 ** np.arange(-2, 5))
        return experiment.measure("linear", "linear", model, detail="RidgeCV")
    X = experiment.training.X[:_ROWS_TO_CHOOSE]
    target = experiment.training.target[:_ROWS_TO_CHOOSE]
    n = (3 * len(target)) // 4
    scores = {}
    for C in _LINEAR_C if len(np.unique(target[:n])) > 1 else (1.0,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = LogisticRegression(C=C, max_iter=100, tol=1e-2).fit(X[:n], target[:n])
            scores[C] = fitted.score(X[n:], target[n:])
    C = max(scores, key=lambda each: (scores[each], -each))
    model = LogisticRegression(C=C, max_iter=200, tol=1e-3)
    return experiment.measure("linear", "linear", model, detail=f"LogisticRegression, C = {C:g}")


def _fit_polynomial(experiment: _Experiment, n_components: int) -> ComparedModel:
    """The polynomial kernel, with a penalty of its own; rows are scaled as in a fit."""
    choice = MapChoice("tensor_sketch", options={"degree": 2, "coef0": 1.0})
    experiment = experiment.with_scaled_rows()
    tuned = experiment.tune(
        choice,
        n_components,
        progress=SilentProgress(),
        n_rows=_ROWS_TO_CHOOSE,
    )
    return experiment.fit_features(choice, tuned, n_components, "degree 2, coef0 = 1")


def _fit_nystroem(
    experiment: _Experiment, tuned: TunedSettings, choice: MapChoice, n_components: int
) -> ComparedModel:
    """Nyström features of the same kernel, in blocks, and the same linear model on them."""
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(experiment.training.X[:2])
    n_components = min(n_components, experiment.n_rows)  # one for each row it is based on
    features = make_nystroem(fitted, n_components, experiment.seed)
    if experiment.n_classes is None:  # the penalty is that of random features, which may be tiny
        tuned = replace(tuned, alpha=max(tuned.alpha, LEAST_SINGLE_ALPHA))
    learner = experiment.make_learner(features, tuned)
    detail = f"Nystroem and {type(learner).__name__}"
    return experiment.measure(
        "nystroem", "nystroem", learner, n_components=n_components, detail=detail
    )


def _list_trees(experiment: _Experiment, encoder: Encoder) -> list[Callable[[], ComparedModel]]:
    columns = tree_columns(encoder, experiment.training.X, experiment.test.X)
    if columns is None:
        return []
    trees = make_trees(
        experiment.n_classes, columns.is_category, experiment.seed, experiment.n_threads
    )
    theirs = replace(
        experiment,
        training=experiment.training._replace(X=columns.training),
        test=experiment.test._replace(X=columns.test),
    )
    return [
        partial(
            theirs.measure,
            each.name,
            "trees",
            each.model,
            n_train=min(experiment.n_rows, each.most_rows),
            detail=each.detail,
        )
        for each in trees
    ]


def _fit_exact(
    experiment: _Experiment, tuned: TunedSettings, choice: MapChoice, most_rows: int | None
) -> ComparedModel:
    n_rows = experiment.n_rows
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(experiment.training.X[:2])
    model, detail, power = make_exact(fitted, tuned.alpha, n_rows, experiment.task)

    def measure(rows: int) -> ComparedModel:
        return experiment.measure("exact kernel", "exact", model, n_train=rows, detail=detail)

    if most_rows is not None:
        return measure(min(n_rows, most_rows))
    return fit_in_time(measure, min(n_rows, _MOST_EXACT_ROWS), power)


class PeakMemory:
    """The peak of the resident memory beyond its amount at the start, on Linux.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows.comparison import PeakMemory
    >>> memory = PeakMemory()
    >>> block = np.ones(1 << 22)
    >>> peak = memory.bytes_more()
    >>> peak is None or peak > 1 << 24
    True
    """

    def __init__(self) -> None:
        gc.collect()
        # Freed memory that the C library keeps would hide what is allocated from it again.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        # Resets the peak (Linux, proc(5)); without permission, the result is an upper bound.
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._start = _read_status("VmRSS")

    def bytes_more(self) -> int | None:
        """The bytes beyond the start; None if the system does not report them."""
        peak = _read_status("VmHWM")
        return None if peak is None or self._start is None else max(0, peak - self._start)


def _read_status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
