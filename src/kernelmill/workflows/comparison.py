"""Comparison of models on the rows of a table: linear, random features, and the exact kernel."""

from __future__ import annotations

import ctypes
import gc
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.svm import SVC

from kernelmill.arguments import check_choice, check_integer
from kernelmill.encoding.encoder import MISSING
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError
from kernelmill.kernels import Gaussian
from kernelmill.learners import KernelClassifier, KernelRegressor
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, SilentProgress
from kernelmill.workflows.evaluation import measure_kernel_error
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.records import ComparedModel, Comparison, describe_source
from kernelmill.workflows.survey import TASKS, open_source, survey_table
from kernelmill.workflows.training import EncodedRows, concatenate_rows, encode_held_out
from kernelmill.workflows.tuning import TunedSettings, tune_settings

__all__ = ["PeakMemory", "compare_table"]

_LINEAR_C = (0.01, 0.1, 1.0, 10.0)
_ROWS_TO_CHOOSE = 8000


def compare_table(
    source: Any,
    target: str | int | None = None,
    *,
    task: str = "auto",
    missing: str = "error",
    drop: Sequence[str | int] = (),
    kernel: Any = None,
    n_components: Sequence[int] = (256, 1024, 4096),
    rows: int = 50_000,
    exact_rows: int = 5_000,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **table_options: Any,
) -> Comparison:
    r"""Compare a linear model, kernel machines on random features and the exact kernel machine.

    All models are trained on the same random sample of the rows and tested on other rows, a
    quarter of the table or 10,000 rows. The length scale and the penalty are tuned once, on the
    sample, for all machines of the kernel; the linear model and the polynomial kernel have
    penalties of their own.

    Parameters
    ----------
    source : path, list of paths, or glob pattern
    target : str or int
    task : {"auto", "classification", "regression"}, default="auto"
    missing : {"error", "impute"}, default="error"
    drop : sequence of str or int
    kernel : str or Kernel, optional
        A shift-invariant kernel; Gaussian by default.
    n_components : sequence of int, default=(256, 1024, 4096)
        The numbers of features of `Fastfood`; the other maps have the middle one.
    rows : int, default=50_000
        The largest number of rows to train on.
    exact_rows : int, default=5_000
        The largest number of rows for the exact machine, whose cost grows with their square or
        cube.
    random_state : int, default=0
    n_threads : int, optional
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
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> rows = (f"{a},{b},{'in' if a * a + b * b < 1 else 'out'}" for a, b in X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rings.csv"
    ...     _ = path.write_text("a,b,place\n" + "\n".join(rows))
    ...     comparison = kernelmill.compare_table(path, "place", n_components=[64])
    >>> errors = {model.name: model.error for model in comparison.models}
    >>> errors["fastfood"] < errors["linear"]
    True
    """
    progress = SilentProgress() if progress is None else progress
    check_choice("task", task, TASKS)
    check_choice("missing", missing, MISSING)
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
        holdout=None,
        stream=Stream.from_seed(seed).substream("table"),
        progress=progress,
        sample_rows=check_integer("rows", rows, 10),
        default_holdout=0.25,
    )
    if survey.held_out.share == 0:
        raise TableError(
            f"{describe_source(source)} has {survey.n_rows} rows with a target, but a comparison "
            "needs at least 100"
        )
    test = [part for part in encode_held_out(table, survey) if len(part.target)]
    experiment = _Experiment(
        EncodedRows(survey.sample, survey.sample_target),
        concatenate_rows(test),
        survey.n_classes,
        seed,
        n_threads,
    )
    choice = MapChoice("fastfood", kernel)
    tuned = experiment.tune(choice, max(sizes), progress=progress)
    fits = _list_fits(experiment, tuned, choice, sizes, exact_rows)
    progress.start("Comparing", len(fits), "models")
    models = []
    for fit in fits:
        models.append(fit())
        progress.advance(1)
    fitted = experiment.make_map(choice, tuned, max(sizes)).fit(survey.sample[:10])
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
        settings=_given_settings(task, missing, kernel, drop, table_options),
    )


def _given_settings(
    task: str, missing: str, kernel: Any, drop: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """The settings that differ from the defaults and that a fit to the same table needs."""
    given: dict[str, Any] = {"drop": [drop] if isinstance(drop, (str, int)) else drop, **options}
    if task != "auto":
        given["task"] = task
    if missing != "error":
        given["missing"] = missing
    if isinstance(kernel, str):
        given["kernel"] = kernel
    settings = {
        name: list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
        for name, value in given.items()
    }
    return {name: value for name, value in settings.items() if value is not None and value != []}


@dataclass(frozen=True)
class _Experiment:
    """Training rows and test rows, the same for all models."""

    training: EncodedRows
    test: EncodedRows
    n_classes: int | None
    seed: int
    n_threads: int | None

    def tune(
        self,
        choice: MapChoice,
        n_components: int,
        *,
        progress: Progress,
        n_rows: int | None = None,
        has_length_scale: bool = True,
    ) -> TunedSettings:
        """Tune a map on the first `n_rows` training rows, by default all of them."""
        return tune_settings(
            lambda length_scale, size: choice.make(
                length_scale, size or n_components, self.seed, self.n_threads
            ),
            self.training.X[:n_rows],
            self.training.target[:n_rows],
            n_classes=self.n_classes,
            n_components=n_components,
            length_scale=None,
            has_length_scale=has_length_scale,
            alpha=None,
            loss="log_loss",
            n_rows=len(self.training.target),
            seed=self.seed,
            progress=progress,
        )

    def make_map(self, choice: MapChoice, tuned: TunedSettings, n_components: int) -> Any:
        """An unfitted map with the tuned length scale."""
        return choice.make(tuned.length_scale, n_components, self.seed, self.n_threads)

    def fit_features(
        self, choice: MapChoice, tuned: TunedSettings, n_components: int, detail: str = ""
    ) -> ComparedModel:
        """A kernel machine on the features of a map."""
        learner = (KernelRegressor if self.n_classes is None else KernelClassifier)(
            self.make_map(choice, tuned, n_components),
            alpha=tuned.alpha,
            random_state=self.seed,
            n_threads=self.n_threads,
        )
        return self.measure(
            choice.name, "features", learner, n_components=n_components, detail=detail
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
        X, target = self.training
        copy = clone(model) if isinstance(model, BaseEstimator) else model
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
    exact_rows: int,
) -> list[Callable[[], ComparedModel]]:
    """The models of the comparison, each as a function that fits and measures it."""
    middle = sizes[len(sizes) // 2]
    fourier = MapChoice("random_fourier", choice.kernel)
    return [
        lambda: _fit_linear(experiment),
        *(partial(experiment.fit_features, choice, tuned, size) for size in sizes),
        lambda: experiment.fit_features(fourier, tuned, middle),
        lambda: _fit_polynomial(experiment, middle),
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
    """The polynomial kernel, with a penalty of its own."""
    choice = MapChoice("tensor_sketch", options={"degree": 2, "coef0": 1.0})
    tuned = experiment.tune(
        choice,
        n_components,
        progress=SilentProgress(),
        n_rows=_ROWS_TO_CHOOSE,
        has_length_scale=False,
    )
    return experiment.fit_features(choice, tuned, n_components, "degree 2, coef0 = 1")


def _fit_exact(
    experiment: _Experiment, tuned: TunedSettings, choice: MapChoice, most_rows: int
) -> ComparedModel:
    n_rows = len(experiment.training.target)
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(experiment.training.X[:2])
    if experiment.n_classes is None:
        model, detail = _ExactRidge(fitted.exact_kernel, tuned.alpha), "KernelRidge, centered"
    else:
        # The penalty was tuned for all rows: C is the same for fewer.
        model, detail = SVC(C=1 / (tuned.alpha * n_rows), cache_size=500), "SVC"
        if isinstance(fitted.kernel_, Gaussian):
            model.set_params(gamma=1 / (2 * fitted.length_scale_**2))
        else:
            model.set_params(kernel=fitted.exact_kernel)
    n_train = min(n_rows, most_rows)
    return experiment.measure("exact kernel", "exact", model, n_train=n_train, detail=detail)


class _ExactRidge:
    """KernelRidge with an intercept, for a kernel that is a function of matrices."""

    def __init__(self, kernel: Callable[..., Any], alpha: float) -> None:
        self._kernel, self._model = kernel, KernelRidge(alpha=alpha, kernel="precomputed")

    def fit(self, X: Any, target: NDArray[Any]) -> None:
        self._X, self._mean = X, float(target.mean())
        self._model.fit(self._kernel(X), target - self._mean)

    def predict(self, X: Any) -> Any:
        return self._model.predict(self._kernel(X, self._X)) + self._mean


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
