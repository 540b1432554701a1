"""The number of features that maps need on a table, measured on a sample of its rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.diagnostics import (
    FeatureRequirement,
    effective_dimension,
    gram_errors,
    kernel_errors,
    list_maps,
    mean_of_seeds,
    recommend_map,
    required_features,
)
from kernelmill.diagnostics.needed_features import least_size
from kernelmill.diagnostics.recommendation import resolve_kernel
from kernelmill.encoding import MISSING, TASKS
from kernelmill.encoding.encoder import RowScaling
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.formatting import plain
from kernelmill.io import Table, TableError, open_table
from kernelmill.io.row_sample import RowSample
from kernelmill.io.sources import is_data
from kernelmill.kernels import DotProductKernel
from kernelmill.maps.registry import map_parameters
from kernelmill.maps.scales import typical_length_scale
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, reports_progress
from kernelmill.workflows.comparison.compare_table import collect_settings
from kernelmill.workflows.records import (
    Diagnosis,
    ErrorRange,
    GramCheck,
    Interval,
    KernelCheck,
    Setting,
    describe_source,
)
from kernelmill.workflows.training.survey import (
    choose_unit,
    make_input_learner,
    open_inputs,
    survey_table,
)
from kernelmill.workflows.tuning.map_choice import MapChoice

__all__ = ["diagnose_table"]

_GRAM_ROWS = 600
_SHOWN_PAIRS = 1500
_MOST_FEATURES = 16_384
# Of maps, which a fit has arguments for.
_OTHER_PARAMETERS = ("kernel", "length_scale", "n_components", "random_state", "n_threads")


@reports_progress
def diagnose_table(
    source: Any,
    target: str | int | None = None,
    *,
    tolerance: float = 0.05,
    probability: float = 0.95,
    kernel: Any = "gaussian",
    length_scale: Any = None,
    alpha: float = 1.0,
    task: str = "auto",
    missing: str = "error",
    transform: str = "auto",
    drop: Sequence[str | int] = (),
    day_first: bool | None = None,
    rows: int = 2000,
    random_state: int = 0,
    n_threads: int | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **table_options: Any,
) -> Diagnosis:
    r"""Report how many features each map needs on a table, their cost and their errors.

    The columns are encoded as for `fit_table`, and a random sample of the rows is measured. For
    polynomial kernels, rows are scaled to similar lengths, as `fit_table` does.

    Parameters
    ----------
    source : path, list of paths, glob pattern, or data in memory
    target : str or int, optional
        The column to predict, which is not an input. If given, the effect on ridge regression is
        measured.
    tolerance : float, default=0.05
        The largest allowed error of a kernel value, in units of the mean of k(x, x).
    probability : float, default=0.95
        The fraction of the pairs of rows whose error must be within the tolerance.
    kernel : str or kernel, default="gaussian"
    length_scale : float, {"scale", "median"} or array_like, optional
        The length scale of a shift-invariant kernel; "scale" by default.
    alpha : float, default=1.0
        The penalty of a ridge regression on all rows, for the effective dimension.
    task, missing, transform, drop, day_first
        As in `fit_table`.
    rows : int, default=2000
        The maximum number of rows in the sample.
    random_state : int, default=0
    n_threads : int, optional
    verbose : bool, default=False
        As in `fit_table`.
    progress : Progress, optional
    **table_options
        As for `kernelmill.io.open_table`.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows import diagnose_table
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> found = diagnose_table(X, tolerance=0.1)
    >>> [each.label for each in found.requirements][:3]
    ['fastfood', 'fastfood (sorf)', 'random_fourier']
    >>> found.requirements[2].from_bound
    1476
    """
    assert progress is not None  # `reports_progress` gives one
    begin = time.perf_counter()
    for name, value, choices in (
        ("task", task, TASKS),
        ("missing", missing, MISSING),
        ("transform", transform, TRANSFORMS),
    ):
        check_choice(name, value, choices)
    check_positive("tolerance", tolerance)
    check_positive("alpha", alpha)
    seed = check_integer("random_state", random_state, 0)
    size = check_integer("rows", rows, 2)
    resolved = resolve_kernel(kernel)
    stream = Stream.from_seed(seed).substream("table")
    if target is None:
        table = open_table(source, **table_options)
        sample = _sample_inputs(
            table,
            drop,
            size,
            stream,
            progress,
            missing=missing,
            transform=transform,
            day_first=day_first,
        )
    else:
        table, inputs, _ = open_inputs(
            source, target, task, table_options, drop, None, signature(diagnose_table).parameters
        )
        survey = survey_table(
            table,
            inputs,
            task=task,
            missing=missing,
            transform=transform,
            holdout=0.0,
            stream=stream,
            progress=progress,
            sample_rows=size,
            day_first=day_first,
            tune=length_scale is None,
        )
        survey = choose_unit(survey, stream, progress)
        numbers = survey.sample_target
        if survey.n_classes is not None:  # the most frequent class against the others
            numbers = (numbers == np.bincount(numbers).argmax()).astype(np.float64)
        notes = [str(note) for note in survey.notes]
        sample = _SampledRows(survey.sample[:size], numbers[:size], survey.n_rows, notes)
    if sample.X.shape[0] < 2:
        raise TableError(f"{table.files[0]} has fewer than two rows", "use a file with more rows")
    if isinstance(resolved, DotProductKernel):
        sample = sample.scale_rows()
    maps = list_maps(resolved, sample.X.shape[1], length_scale=length_scale, n_threads=n_threads)
    progress.start("Measuring", len(maps), "maps")
    requirements = []
    for each in maps:
        requirements.append(
            required_features(
                each,
                sample.X,
                tolerance,
                probability,
                n_rows=sample.n_rows,
                most_features=_MOST_FEATURES,
                random_state=seed,
            )
        )
        progress.advance(1)
    recommended, sentence = recommend_map(requirements)
    first = clone(maps[0]).set_params(n_components=16, random_state=seed).fit(sample.X)
    scale = typical_length_scale(first)
    details: dict[str, Any] = {
        "errors": {},
        "n_components": None,
        "ranges": [],
        "kernel_check": None,
        "gram": [],
    }
    if recommended is not None:
        progress.start("Examining the recommended map")
        details = _examine(
            maps[recommended], requirements[recommended], sample, alpha=alpha, seed=seed
        )
        sentence += _warn_of_dimension(details["gram"][-1], alpha)
    return Diagnosis(
        source=describe_source(source),
        target="" if target is None else str(target),
        n_rows=sample.n_rows,
        n_sample=int(sample.X.shape[0]),
        n_inputs=int(sample.X.shape[1]),
        kernel=kernel if isinstance(kernel, str) else str(resolved),
        length_scale=scale,
        tolerance=float(tolerance),
        probability=float(probability),
        requirements=requirements,
        recommended=recommended,
        recommendation=sentence,
        seed=seed,
        seconds=time.perf_counter() - begin,
        notes=sample.notes,
        settings=collect_settings(
            task, missing, transform, None, drop, {"day_first": day_first, **table_options}
        )
        | _fit_settings(recommended, requirements, maps, kernel, scale),
        in_memory=is_data(source),
        **details,
    )


def _warn_of_dimension(gram: GramCheck, alpha: float) -> str:
    """Return a sentence if the tolerance is small for kernel values but large for models."""
    dimension = gram.effective_dimension.value or 0.0
    if dimension <= gram.n_components:
        return ""
    return (
        f" A ridge regression with penalty {plain.number(alpha)} would use more: its effective "
        f"dimension is above {plain.count(math.floor(dimension))}."
    )


def _fit_settings(
    recommended: int | None,
    requirements: list[FeatureRequirement],
    maps: list[Any],
    kernel: Any,
    scale: float | None,
) -> dict[str, Setting]:
    """Return the arguments of a fit with the recommended map that differ from the defaults."""
    if recommended is None:
        return {}
    best = requirements[recommended]
    assert best.n_components is not None
    settings: dict[str, Setting] = {
        "feature_map": best.map_name,
        "n_components": best.n_components,
    }
    if "kernel" in map_parameters(best.map_name) and isinstance(kernel, str):
        settings["kernel"] = kernel
    if scale is not None:
        settings["length_scale"] = scale
    given = maps[recommended].get_params(deep=False)
    default = MapChoice(best.map_name, settings.get("kernel")).make(None, 16, 0, None)
    options: dict[str, Any] = {
        name: value
        for name, value in given.items()
        if name not in _OTHER_PARAMETERS
        and isinstance(value, (bool, int, float, str))
        and value != getattr(default, name)
    }
    return settings | ({"map_options": options} if options else {})


class _SampledRows(NamedTuple):
    """Encoded rows in random order, with their targets if there are any."""

    X: Any
    target: NDArray[np.float64] | None
    n_rows: int  # of the table
    notes: list[str]

    def scale_rows(self) -> _SampledRows:
        """Return the sample with rows scaled to similar lengths, for polynomial kernels."""
        scaling = RowScaling.of_rows(self.X)
        note = (
            "Rows are divided by √(r² + |x|²/9), r = "
            f"{plain.number(scaling.radius)}, for a kernel of inner products."
        )
        return self._replace(X=scaling.apply(self.X), notes=[*self.notes, note])


def _sample_inputs(
    table: Table,
    drop: Sequence[str | int],
    size: int,
    stream: Stream,
    progress: Progress,
    *,
    missing: str,
    transform: str,
    day_first: bool | None,
) -> _SampledRows:
    """Encode a sample of the rows of a table without a target, in one pass."""
    inputs = choose_inputs(table, None, drop)
    table = inputs.ignore_others(table)
    learner = make_input_learner(table, inputs, missing, transform, day_first)
    sample = RowSample(size, stream.substream("sample"))
    n_rows = 0
    progress.start("Reading", table.n_rows)
    for block in table.blocks():
        learner.update(inputs.data(block.data), file=block.file, first_row=block.row_in_file)
        sample.update(block)
        n_rows += block.n_rows
        progress.advance(block.n_rows)
    if n_rows == 0:
        raise TableError(f"{table.files[0]} has no rows", "use a file with rows")
    data = inputs.data(sample.rows()[0].data)
    encoder, _, column_notes = learner.finish(data, None)
    notes = [*table.notes, *column_notes]
    for note in notes:
        progress.note(note)
    return _SampledRows(encoder.encode(data), None, n_rows, [str(note) for note in notes])


def _examine(
    feature_map: Any,
    requirement: FeatureRequirement,
    sample: _SampledRows,
    *,
    alpha: float,
    seed: int,
) -> dict[str, Any]:
    """Return the errors of a map with as many features as it needs, or as can be measured."""
    assert requirement.n_components is not None
    size = min(requirement.n_components, _MOST_FEATURES)
    sized = clone(feature_map).set_params(n_components=size)
    errors = kernel_errors(sized, sample.X, n_pairs=1000, n_seeds=8, random_state=seed)
    exact, estimated = errors.sample(_SHOWN_PAIRS)
    dimension = _measure_dimension(feature_map, sample, alpha, seed)
    least = max(16, least_size(feature_map, sample.X.shape[1]))
    return {
        "errors": {
            "absolute": Interval.of(errors.absolute),
            "rms": Interval.of(errors.rms),
            "capped_relative": Interval.of(errors.capped_relative),
            "share_capped": Interval.of(errors.share_capped),
            "quantile": Interval.of(errors.quantile(requirement.probability)),
        },
        "n_components": size,
        "ranges": [
            ErrorRange(
                each.low,
                each.high,
                each.n_pairs,
                Interval.of(each.absolute),
                Interval.of(each.relative),
            )
            for each in errors.over_range(10)
        ],
        "kernel_check": KernelCheck(
            exact.tolist(), estimated.tolist(), errors.rms.value, errors.n_components
        ),
        "gram": [
            _check_gram(
                clone(feature_map).set_params(n_components=each), sample, alpha, seed, dimension
            )
            for each in sorted({max(least, size // 16), max(least, size // 4), max(least, size)})
        ],
    }


def _measure_dimension(feature_map: Any, sample: _SampledRows, alpha: float, seed: int) -> Interval:
    """Return the effective dimension at the penalty `alpha` for all rows, over sets of rows."""
    least = max(16, least_size(feature_map, sample.X.shape[1]))
    fitted = clone(feature_map).set_params(n_components=least, random_state=seed).fit(sample.X)
    n = min(_GRAM_ROWS, sample.X.shape[0])
    found = [
        effective_dimension(fitted.exact_kernel(rows, rows), alpha * n / sample.n_rows)
        for rows in (sample.X[at : at + n] for at in range(0, sample.X.shape[0] - n + 1, n))
    ]
    return Interval.of(mean_of_seeds(found))


def _check_gram(
    feature_map: Any, sample: _SampledRows, alpha: float, seed: int, dimension: Interval
) -> GramCheck:
    """Return the errors of the Gram matrix of some rows, at a penalty `alpha` for all rows."""
    X = sample.X[:_GRAM_ROWS]
    target = None if sample.target is None else sample.target[:_GRAM_ROWS]
    if target is not None and not np.ptp(target):
        target = None
    # The Gram matrix of all rows is so many times as large.
    scaled = alpha * X.shape[0] / sample.n_rows
    gram = gram_errors(feature_map, X, target, alpha=scaled, n_seeds=4, random_state=seed)
    assert gram.distance is not None
    return GramCheck(
        n_rows=gram.n_rows,
        n_components=gram.n_components,
        kernel_spectral=gram.kernel_spectral,
        kernel_frobenius=gram.kernel_frobenius,
        spectral=Interval.of(gram.spectral),
        frobenius=Interval.of(gram.frobenius),
        alpha=scaled,
        effective_dimension=dimension,
        distance=Interval.of(gram.distance),
        fit_change=None if gram.fit_change is None else Interval.of(gram.fit_change),
    )
