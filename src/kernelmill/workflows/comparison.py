"""Models side by side on the rows of a table: linear, on random features, and exact kernels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from kernelmill.encoding.inputs import chosen_inputs
from kernelmill.io import TableError
from kernelmill.io.row_sample import joined_rows
from kernelmill.kernels import Gaussian
from kernelmill.learners import KernelClassifier, KernelRegressor
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, SilentProgress
from kernelmill.workflows.fit import TASKS
from kernelmill.workflows.kernel_check import kernel_check
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.memory import PeakMemory
from kernelmill.workflows.model import described_source
from kernelmill.workflows.records import ComparedModel, Comparison
from kernelmill.workflows.source import opened_source
from kernelmill.workflows.survey import survey
from kernelmill.workflows.training_rows import held_out_rows
from kernelmill.workflows.tuning import Tuned, tuned_settings

__all__ = ["compare_table"]

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

    All are trained on a random sample of the rows and judged on others, a quarter of the table or
    10,000 rows. Length scale and penalty are tuned once, on the sample, for all machines of the
    kernel; the linear model and the polynomial kernel have penalties chosen for them.

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
        Of `Fastfood`; the other maps are tried with the middle one.
    rows : int, default=50_000
        How many rows to train on at most.
    exact_rows : int, default=5_000
        How many of them the exact machine gets, whose cost grows with their square or cube.
    random_state : int, default=0
    n_threads : int, optional
    progress : Progress, optional
    **table_options
        As `kernelmill.io.open_table` takes them.

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
    sizes = [check_integer("n_components", size, 1) for size in n_components]
    if not sizes:
        raise ValueError("n_components must hold at least one number, got none.")
    seed = check_integer("random_state", random_state, 0)
    table, target = opened_source(source, target, task, table_options)
    inputs = chosen_inputs(table, target, drop)
    found = survey(
        table,
        inputs,
        task=task,
        missing=missing,
        holdout=None,
        stream=Stream.from_seed(seed).substream("table"),
        progress=progress,
        sample_rows=check_integer("rows", rows, 10),
        usual_holdout=0.25,
    )
    for note in found.notes:
        progress.note(note)
    if found.held_out.share == 0:
        raise TableError(
            f"{described_source(source)} has {found.n_rows} rows with a target; a comparison needs "
            "at least 100."
        )
    test = _joined_held_out(table, found)
    classes = found.reader.classes
    choice = MapChoice("fastfood", kernel)
    tuned = tuned_settings(
        lambda length_scale, size: choice.make(length_scale, size or 1024, seed, n_threads),
        found.sample,
        found.sample_target,
        n_classes=None if classes is None else len(classes),
        n_components=max(sizes),
        length_scale=None,
        has_length_scale=True,
        alpha=None,
        loss="log_loss",
        n_rows=len(found.sample_target),
        seed=seed,
        progress=progress,
    )
    contest = _Contest(found.sample, found.sample_target, *test, classes is not None)
    models = _contend(contest, tuned, choice, sizes, exact_rows, seed, n_threads, progress)
    fitted = choice.make(tuned.length_scale, max(sizes), seed, n_threads).fit(found.sample[:10])
    return Comparison(
        task=found.reader.task,
        source=described_source(source),
        target=str(inputs.target),
        n_train=len(found.sample_target),
        n_test=len(test[1]),
        error_name="error" if classes is not None else "rmse",
        models=models,
        kernel_check=kernel_check(fitted, found.sample),
        notes=found.notes,
        settings=_settings(task, missing, kernel, drop, table_options),
    )


def _settings(
    task: str, missing: str, kernel: Any, drop: Any, options: dict[str, Any]
) -> dict[str, list[str]]:
    """What was given and a fit would need again."""
    given: dict[str, Any] = {"drop": drop, **options}
    if task != "auto":
        given["task"] = task
    if missing != "error":
        given["missing"] = missing
    if isinstance(kernel, str):
        given["kernel"] = kernel
    lists = {
        name: list(value) if isinstance(value, (list, tuple)) else [value]
        for name, value in given.items()
        if value is not None
    }
    return {name: [str(each) for each in value] for name, value in lists.items() if value}


def _joined_held_out(table: Any, found: Any) -> tuple[Any, NDArray[Any]]:
    parts = [part for part in held_out_rows(table, found) if len(part[1])]
    return joined_rows([X for X, _ in parts]), np.concatenate([target for _, target in parts])


@dataclass(frozen=True)
class _Contest:
    """The rows all contenders get."""

    X: Any
    target: NDArray[Any]
    test_X: Any
    test_target: NDArray[Any]
    is_classification: bool

    def run(
        self,
        name: str,
        family: str,
        model: Any,
        *,
        n_components: int | None = None,
        n_train: int | None = None,
        detail: str = "",
    ) -> ComparedModel:
        """Train, predict and measure."""
        X, target = self.X[:n_train], self.target[:n_train]
        self._warm_up(model)
        memory = PeakMemory()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is timed as it is
            model.fit(X, target)
        fitted = time.perf_counter()
        predicted = model.predict(self.test_X)
        end = time.perf_counter()
        if self.is_classification:
            error = float(np.mean(predicted != self.test_target))
        else:
            error = float(np.sqrt(np.mean((np.ravel(predicted) - self.test_target) ** 2)))
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
        """Take what is taken only once, such as buffers of libraries, before the measurement."""
        few = clone(model) if isinstance(model, BaseEstimator) else model
        _, first = np.unique(self.target, return_index=True)
        rows = np.unique(np.r_[first[:50], : min(64, len(self.target))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            few.fit(self.X[rows], self.target[rows])
            few.predict(self.X[:2])


def _contend(
    contest: _Contest,
    tuned: Tuned,
    choice: MapChoice,
    sizes: list[int],
    exact_rows: int,
    seed: int,
    n_threads: int | None,
    progress: Progress,
) -> list[ComparedModel]:
    n = len(contest.target)
    middle = sorted(sizes)[len(sizes) // 2]
    tries: list[Callable[[], ComparedModel]] = [lambda: _linear(contest)]

    def on(other: MapChoice, size: int) -> Callable[[], ComparedModel]:
        made = other.make(tuned.length_scale, size, seed, n_threads)
        return lambda: contest.run(
            other.name,
            "features",
            _learner(made, contest, tuned, seed, n_threads),
            n_components=size,
        )

    tries += [on(choice, size) for size in sorted(sizes)]
    tries.append(on(MapChoice("random_fourier", choice.kernel), middle))
    polynomial = MapChoice("tensor_sketch", options={"degree": 2, "coef0": 1.0})
    tries.append(lambda: _polynomial(contest, polynomial, middle, seed, n_threads))
    few = min(n, exact_rows)
    tries.append(lambda: _exact(contest, tuned, choice, few))
    progress.start("Comparing", len(tries), "models")
    models = []
    for attempt in tries:
        models.append(attempt())
        progress.advance(1)
    return models


def _learner(
    feature_map: Any, contest: _Contest, tuned: Tuned, seed: int, n_threads: int | None
) -> Any:
    kind = KernelClassifier if contest.is_classification else KernelRegressor
    return kind(feature_map, alpha=tuned.alpha, random_state=seed, n_threads=n_threads)


def _linear(contest: _Contest) -> ComparedModel:
    """The linear model, with a penalty chosen on other rows as for the kernel machines."""
    if not contest.is_classification:
        model = RidgeCV(10.0 ** np.arange(-2, 5))
        return contest.run("linear", "linear", model, detail="RidgeCV")
    X, target = contest.X[:_ROWS_TO_CHOOSE], contest.target[:_ROWS_TO_CHOOSE]
    n = (3 * len(target)) // 4
    scores = {}
    for C in _LINEAR_C if len(np.unique(target[:n])) > 1 else (1.0,):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = LogisticRegression(C=C, max_iter=100, tol=1e-2).fit(X[:n], target[:n])
            scores[C] = fitted.score(X[n:], target[n:])
    C = max(scores, key=lambda each: (scores[each], -each))
    model = LogisticRegression(C=C, max_iter=200, tol=1e-3)
    return contest.run("linear", "linear", model, detail=f"LogisticRegression, C = {C:g}")


def _polynomial(
    contest: _Contest, choice: MapChoice, size: int, seed: int, n_threads: int | None
) -> ComparedModel:
    """The polynomial kernel, with a penalty of its own."""
    tuned = tuned_settings(
        lambda _, components: choice.make(None, components or size, seed, n_threads),
        contest.X[:_ROWS_TO_CHOOSE],
        contest.target[:_ROWS_TO_CHOOSE],
        n_classes=int(contest.target.max()) + 1 if contest.is_classification else None,
        n_components=size,
        length_scale=None,
        has_length_scale=False,
        alpha=None,
        loss="log_loss",
        n_rows=len(contest.target),
        seed=seed,
        progress=SilentProgress(),
    )
    made = choice.make(None, size, seed, n_threads)
    model = _learner(made, contest, tuned, seed, n_threads)
    detail = "degree 2, coef0 = 1"
    return contest.run(choice.name, "features", model, n_components=size, detail=detail)


def _exact(contest: _Contest, tuned: Tuned, choice: MapChoice, n_train: int) -> ComparedModel:
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(contest.X[:2])
    if contest.is_classification:
        # The penalty was tuned for all rows: C is the same for fewer.
        model = SVC(C=1 / (tuned.alpha * len(contest.target)), cache_size=500)
        if isinstance(fitted.kernel_, Gaussian):
            model.set_params(gamma=1 / (2 * fitted.length_scale_**2))
        else:
            model.set_params(kernel=fitted.exact_kernel)
        detail = "SVC"
    else:
        model, detail = _ExactRidge(fitted.exact_kernel, tuned.alpha), "KernelRidge, centered"
    return contest.run("exact kernel", "exact", model, n_train=n_train, detail=detail)


class _ExactRidge:
    """KernelRidge, which has no intercept of its own, of a function of whole matrices."""

    def __init__(self, kernel: Callable[..., Any], alpha: float) -> None:
        self._kernel, self._model = kernel, KernelRidge(alpha=alpha, kernel="precomputed")

    def fit(self, X: Any, target: NDArray[Any]) -> None:
        self._X, self._mean = X, float(target.mean())
        self._model.fit(self._kernel(X), target - self._mean)

    def predict(self, X: Any) -> Any:
        return self._model.predict(self._kernel(X, self._X)) + self._mean
