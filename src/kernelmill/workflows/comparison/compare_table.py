"""Comparison of models on the rows of a table: linear, random features, trees, exact kernels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from kernelmill.arguments import check_choice, check_integer
from kernelmill.encoding import MISSING, TASKS
from kernelmill.encoding.encoder import Encoder
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError
from kernelmill.io.sources import is_data
from kernelmill.io.table import check_columns
from kernelmill.learners.regressor import LEAST_SINGLE_ALPHA
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, SilentProgress, reports_progress
from kernelmill.workflows.comparison.baselines import (
    fit_in_time,
    make_exact,
    make_nystroem,
    make_trees,
    tree_columns,
)
from kernelmill.workflows.comparison.benchmark import FitBenchmark
from kernelmill.workflows.evaluation import measure_kernel_error
from kernelmill.workflows.records import DEFAULT_FIT, ComparedModel, Comparison, describe_source
from kernelmill.workflows.splits import divide_sample
from kernelmill.workflows.training.encoded_rows import (
    ENCODED_BYTES,
    EncodedRows,
    concatenate_rows,
    count_encoded_bytes,
    encode_held_out,
)
from kernelmill.workflows.training.survey import choose_unit, open_inputs, survey_table
from kernelmill.workflows.tuning.kernel_search import takes_directions
from kernelmill.workflows.tuning.map_choice import AUTO, DIRECTIONS, STEPS, MapChoice
from kernelmill.workflows.tuning.settings import TunedSettings

__all__ = ["collect_settings", "compare_table"]

_LINEAR_C = (0.01, 0.1, 1.0, 10.0)
_RIDGES = tuple(10.0**power for power in range(-2, 5))
_ROWS_TO_CHOOSE = 8000
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
    weights: str | int | None = None,
    groups: Any = None,
    holdout_last: str | int | None = None,
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

    All models are trained on the same random sample of the rows and tested on other rows, a quarter
    of the table or 10,000 rows. Rows with equal inputs are not divided. "fit (defaults)" uses the
    map and the number of features that `fit_table` chooses for the whole table, and its time
    includes tuning. The length scale and the penalty are tuned once, on the sample, for all models
    with this kernel (random features, Nyström features, the exact kernel machine); the penalties of
    the linear model, the polynomial kernel and principal components are tuned separately. Principal
    components are included if `fit_table` would try them: for more than 20,000 rows with at least
    96 dense columns. Boosted trees and the random forest are those of scikit-learn with default
    parameters. Their inputs are the encoded columns, with one column of codes per category column
    instead of indicators. Trees are trained on fewer rows if all rows would take longer than about
    a minute, and the exact machine is trained on as many rows as take about 30 seconds; the results
    contain these numbers.

    Parameters
    ----------
    source : path, list of paths, glob pattern, or data in memory
    target : str or int
    task : {"auto", "classification", "regression"}, default="auto"
    missing : {"error", "impute"}, default="error"
    transform : {"auto", "none", "rank"}, default="auto"
    drop : sequence of str or int
    day_first : bool, optional
    weights : str or int, optional
        The column of row weights, used in tuning, training and errors of all models. It is not an
        input.
    groups : str, int or array_like of shape (n_rows,), optional
    holdout_last : str or int, optional
        As in `fit_table`: groups stay together, or models are tested on the latest rows.
    kernel : str or Kernel, optional
        A shift-invariant kernel; Gaussian by default.
    n_components : sequence of int, default=(256, 1024, 4096)
        The numbers of features of `Fastfood`. The other maps use the middle one.
    rows : int, default=50_000
        The maximum number of training rows.
    exact_rows : int, optional
        The maximum number of training rows of the exact machine, whose cost grows with their square
        or cube. By default the number that takes about 30 seconds, at most 10,000.
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
    table, inputs, weights, division = open_inputs(
        source,
        target,
        task,
        table_options,
        drop,
        weights=weights,
        groups=groups,
        holdout_last=holdout_last,
        parameters=signature(compare_table).parameters,
    )
    survey = survey_table(
        table,
        inputs,
        task=task,
        missing=missing,
        transform=transform,
        day_first=day_first,
        weights=weights,
        division=division,
        holdout=None,
        stream=Stream.from_seed(seed).substream("table"),
        progress=progress,
        sample_rows=check_integer("rows", rows, 10),
        default_holdout=0.25,
        requires_holdout=True,
    )
    survey = choose_unit(survey, Stream.from_seed(seed).substream("table"), progress)
    test = [part for part in encode_held_out(table, survey) if len(part.target)]
    training = EncodedRows(
        survey.sample, survey.sample_target, survey.sample_weight, survey.sample_keys
    )
    benchmark = FitBenchmark(
        _with_weight(training, "training"),
        _with_weight(concatenate_rows(test), "test"),
        survey.n_classes,
        seed,
        n_threads,
        survey.encoder.groups(),
        n_fit=survey.n_rows,
        in_memory=count_encoded_bytes(survey) <= ENCODED_BYTES,
        in_order=survey.in_order,
        independent=survey.has_independent_rows,
    )
    begin = time.perf_counter()
    default = benchmark.tune(MapChoice(AUTO, kernel), None, progress=progress, as_fit=True)
    seconds = time.perf_counter() - begin
    tuned = benchmark.tune(MapChoice(AUTO, kernel), max(sizes), progress=progress)
    choice = tuned.choice
    # Where `fit_table` chooses landmarks, it does not try principal components.
    directions = default.choice.name != "nystroem" and takes_directions(choice, survey.sample)
    fits = _list_fits(benchmark, tuned, choice, sizes, exact_rows, survey.encoder, directions)
    fits.insert(1, partial(benchmark.fit_default, default, seconds))
    # Without a total, since the times of models differ by orders of magnitude.
    progress.start(f"Comparing {len(fits)} models", None, "models")
    models = []
    for fit in fits:
        models.append(fit())
        progress.advance(1)
    fitted = benchmark.make_map(choice, tuned, max(sizes)).fit(survey.sample[:10])
    options = {"day_first": day_first, "weights": weights, **division.settings, **table_options}
    settings = collect_settings(task, missing, transform, kernel, drop, options)
    return Comparison(
        task=survey.reader.task,
        source=describe_source(source),
        target=str(inputs.target),
        n_train=benchmark.n_rows,
        n_test=len(benchmark.test.target),
        error_name="rmse" if survey.n_classes is None else "error",
        models=models,
        kernel_check=measure_kernel_error(fitted, survey.sample),
        notes=[
            *(str(note) for note in survey.notes),
            *([] if weights is None else [f"Rows are weighted by column {weights!r}."]),
        ],
        settings=_best_settings(models, choice.kernel, settings),
        in_memory=is_data(source),
        division=survey.division,
    )


def _with_weight(rows: EncodedRows, which: str) -> EncodedRows:
    """Return the rows whose weight is not zero; some scikit-learn models reject zero weights."""
    if rows.weight is None:
        return rows
    if not rows.weight.any():
        raise TableError(f"the weights of all {which} rows are 0", "correct them")
    return rows.select(rows.weight > 0)


def collect_settings(
    task: str, missing: str, transform: str, kernel: Any, drop: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the settings that differ from the defaults and that a fit to the same table needs."""
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
    """Return the given settings, with map, kernel and size of the best kernel machine.

    Those of the default fit are none, and it is the best unless another one has less error. Maps
    of polynomial kernels take no other kernel.
    """
    ours = [model for model in models if model.family in ("features", "nystroem")]
    best = min(
        ours, key=lambda model: (model.error, model.name != DEFAULT_FIT, model.n_components or 0)
    )
    if best.name == DEFAULT_FIT:
        return given
    settings = given | {"feature_map": best.name, "n_components": best.n_components}
    if best.name not in ("fastfood", "random_fourier", "nystroem", STEPS, DIRECTIONS):
        settings.pop("kernel", None)
    elif isinstance(kernel, str):
        settings["kernel"] = kernel
    return settings


def _list_fits(
    benchmark: FitBenchmark,
    tuned: TunedSettings,
    choice: MapChoice,
    sizes: list[int],
    exact_rows: int | None,
    encoder: Encoder,
    directions: bool,
) -> list[Callable[[], ComparedModel]]:
    """Return the models of the comparison, each as a function that fits and measures it."""
    middle = sizes[len(sizes) // 2]
    names = ["random_fourier", STEPS]
    others = [MapChoice(name, choice.kernel) for name in names if name != choice.name]
    return [
        lambda: _fit_linear(benchmark),
        *(partial(benchmark.fit_features, choice, tuned, size) for size in sizes),
        *(partial(benchmark.fit_features, other, tuned, middle) for other in others),
        *([lambda: _fit_directions(benchmark, choice, middle)] if directions else []),
        lambda: _fit_polynomial(benchmark, middle),
        lambda: _fit_nystroem(benchmark, tuned, choice, middle),
        *_list_trees(benchmark, encoder),
        lambda: _fit_exact(benchmark, tuned, choice, exact_rows),
    ]


def _fit_linear(benchmark: FitBenchmark) -> ComparedModel:
    """Return the linear model; its penalty is chosen on validation rows, as for all models."""
    rows = benchmark.training.select(slice(_ROWS_TO_CHOOSE))
    order, ends = divide_sample(rows.keys, None, len(rows.target), in_order=benchmark.in_order)
    rows = rows if order is None else rows.select(order)
    first, others = rows.select(slice(ends[-2])), rows.select(slice(ends[-2], None))
    is_regression = benchmark.n_classes is None
    strengths = _RIDGES if is_regression else _LINEAR_C
    if not is_regression and len(np.unique(first.target)) == 1:
        strengths = (1.0,)
    scores = {}
    for each in strengths:
        fitted = _make_linear(is_regression, each, max_iter=100, tol=1e-2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted.fit(*first.block())
            scores[each] = fitted.score(*others.block())
    chosen = max(scores, key=lambda each: (scores[each], -each))
    model = _make_linear(is_regression, chosen, max_iter=200, tol=1e-3)
    name = f"Ridge, alpha = {chosen:g}" if is_regression else f"LogisticRegression, C = {chosen:g}"
    return benchmark.measure("linear", "linear", model, detail=name)


def _make_linear(is_regression: bool, strength: float, **options: Any) -> Any:
    return Ridge(strength) if is_regression else LogisticRegression(C=strength, **options)


def _fit_directions(benchmark: FitBenchmark, choice: MapChoice, n_components: int) -> ComparedModel:
    """Return a fit of the kernel on principal components, with its own length scale and penalty."""
    choice = MapChoice(DIRECTIONS, choice.kernel)
    tuned = benchmark.tune(choice, n_components, progress=SilentProgress(), n_rows=_ROWS_TO_CHOOSE)
    return benchmark.fit_features(choice, tuned, n_components, "64 principal components")


def _fit_polynomial(benchmark: FitBenchmark, n_components: int) -> ComparedModel:
    """Return a fit of the polynomial kernel with its own penalty; rows are scaled."""
    choice = MapChoice("tensor_sketch", options={"degree": 2, "coef0": 1.0})
    benchmark = benchmark.with_scaled_rows()
    tuned = benchmark.tune(
        choice,
        n_components,
        progress=SilentProgress(),
        n_rows=_ROWS_TO_CHOOSE,
    )
    return benchmark.fit_features(choice, tuned, n_components, "degree 2, coef0 = 1")


def _fit_nystroem(
    benchmark: FitBenchmark, tuned: TunedSettings, choice: MapChoice, n_components: int
) -> ComparedModel:
    """Return a fit of the same kernel with Nyström features, computed in blocks."""
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(benchmark.training.X[:2])
    n_components = min(n_components, benchmark.n_rows)  # one for each row it is based on
    features = make_nystroem(fitted, n_components, benchmark.seed)
    if benchmark.n_classes is None:  # the penalty is that of random features, which may be tiny
        tuned = replace(tuned, alpha=max(tuned.alpha, LEAST_SINGLE_ALPHA))
    learner = benchmark.make_learner(features, tuned)
    detail = f"Nystroem and {type(learner).__name__}"
    return benchmark.measure(
        "nystroem", "nystroem", learner, n_components=n_components, detail=detail
    )


def _list_trees(benchmark: FitBenchmark, encoder: Encoder) -> list[Callable[[], ComparedModel]]:
    columns = tree_columns(encoder, benchmark.training.X, benchmark.test.X)
    if columns is None:
        return []
    trees = make_trees(
        benchmark.n_classes, columns.is_category, benchmark.seed, benchmark.n_threads
    )
    theirs = replace(
        benchmark,
        training=benchmark.training._replace(X=columns.training),
        test=benchmark.test._replace(X=columns.test),
    )
    return [
        partial(
            theirs.measure,
            each.name,
            "trees",
            each.model,
            n_train=min(benchmark.n_rows, each.most_rows),
            detail=each.detail,
        )
        for each in trees
    ]


def _fit_exact(
    benchmark: FitBenchmark, tuned: TunedSettings, choice: MapChoice, most_rows: int | None
) -> ComparedModel:
    n_rows = benchmark.n_rows
    fitted = choice.make(tuned.length_scale, 16, 0, 1).fit(benchmark.training.X[:2])
    model, detail, power = make_exact(fitted, tuned.alpha, n_rows, benchmark.task)

    def measure(rows: int) -> ComparedModel:
        return benchmark.measure("exact kernel", "exact", model, n_train=rows, detail=detail)

    if most_rows is not None:
        return measure(min(n_rows, most_rows))
    return fit_in_time(measure, min(n_rows, _MOST_EXACT_ROWS), power)
