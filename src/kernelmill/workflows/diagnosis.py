"""The number of features that maps need on a table, measured on a sample of its rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.diagnostics import (
    FeatureRequirement,
    KernelErrors,
    Measured,
    RangeErrors,
    effective_dimension,
    gram_errors,
    kernel_errors,
    list_maps,
    mean_of_seeds,
    min_features,
    recommend_map,
    required_features,
    resolve_kernel,
)
from kernelmill.diagnostics.approximation import Rows
from kernelmill.encoding import MISSING, TASKS
from kernelmill.encoding.encoder import RowScaling
from kernelmill.encoding.inputs import choose_inputs
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.encoding.row_keys import find_division
from kernelmill.formatting import plain
from kernelmill.io import Table, TableError, open_table
from kernelmill.io.row_sample import RowSample
from kernelmill.io.sources import is_data
from kernelmill.io.table import check_columns
from kernelmill.kernels import DotProductKernel, Kernel
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.registry import map_parameters
from kernelmill.maps.scales import typical_length_scale
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, reports_progress
from kernelmill.workflows.comparison.compare_table import collect_settings
from kernelmill.workflows.records import KernelCheck, Result, Setting, describe_source
from kernelmill.workflows.training.survey import (
    Survey,
    choose_unit,
    make_input_learner,
    open_inputs,
    survey_table,
)
from kernelmill.workflows.tuning.map_choice import MapChoice

__all__ = ["Diagnosis", "GramCheck", "diagnose_table"]

_GRAM_ROWS = 600
_SHOWN_PAIRS = 1500
_MAX_FEATURES = 16_384
# Parameters of maps that are arguments of `fit_table`.
_FIT_ARGUMENTS = ("kernel", "length_scale", "n_components", "random_state", "n_threads")


@dataclass(frozen=True, repr=False)
class GramCheck(Result):
    """Errors of the Gram matrix of a sample, and their effect on ridge regression.

    Attributes
    ----------
    n_rows, n_components : int
    kernel_spectral, kernel_frobenius : float
        The norms of the exact matrix.
    spectral, frobenius : Measured
        The norms of the difference.
    alpha : float
        The penalty for this number of rows.
    effective_dimension : Measured
        The mean over several sets of rows; without an interval if the matrix has all rows.
    distance : Measured
    fit_change : Measured or None
        None without a target.
    """

    n_rows: int
    n_components: int
    kernel_spectral: float
    kernel_frobenius: float
    spectral: Measured
    frobenius: Measured
    alpha: float
    effective_dimension: Measured
    distance: Measured
    fit_change: Measured | None = None


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """The number of features that each map needs on a table, and errors of the recommended map.

    Attributes
    ----------
    source : str
    target : str
        "" if none is given.
    n_rows, n_sample, n_inputs : int
    kernel : str
    length_scale : float or None
    tolerance, probability : float
    requirements : list of FeatureRequirement
    recommended : int or None
        An index of `requirements`.
    recommendation : str
    errors : dict of str to Measured
        Errors of the recommended map with `n_components` features: absolute, rms, quantile, ...
    n_components : int or None
    ranges : list of RangeErrors
    kernel_check : KernelCheck or None
    gram : list of GramCheck
        With increasing numbers of features, up to `n_components`.
    seed : int
    seconds : float
    notes : list of str
    settings : dict
        Keyword arguments to fit the recommended map to the same table.
    in_memory : bool
        Whether the table was in memory.
    """

    source: str
    target: str
    n_rows: int
    n_sample: int
    n_inputs: int
    kernel: str
    length_scale: float | None
    tolerance: float
    probability: float
    requirements: list[FeatureRequirement]
    recommended: int | None
    recommendation: str
    errors: dict[str, Measured]
    n_components: int | None
    ranges: list[RangeErrors]
    kernel_check: KernelCheck | None
    gram: list[GramCheck]
    seed: int
    seconds: float
    notes: list[str] = field(default_factory=list)
    settings: dict[str, Setting] = field(default_factory=dict)
    in_memory: bool = False


@reports_progress
def diagnose_table(
    source: Any,
    target: str | int | None = None,
    *,
    tolerance: float = 0.05,
    probability: float = 0.95,
    kernel: str | Kernel | DotProductKernel = "gaussian",
    length_scale: float | str | ArrayLike | None = None,
    alpha: float = 1.0,
    task: str = "auto",
    missing: str = "error",
    transform: str = "auto",
    drop: Sequence[str | int] = (),
    day_first: bool | None = None,
    groups: Any = None,
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
    task, missing, transform, drop, day_first, groups
        As in `fit_table`. The column of groups is not an input.
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
        division = find_division(table, groups, None)
        no_input = [] if division.column is None else [division.column]
        sample = _sample_inputs(
            table,
            [*check_columns("drop", drop), *no_input],
            size,
            stream,
            progress,
            missing=missing,
            transform=transform,
            day_first=day_first,
        )
    else:
        table, inputs, _, division = open_inputs(
            source,
            target,
            task,
            table_options,
            drop,
            groups=groups,
            parameters=signature(diagnose_table).parameters,
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
            division=division,
            tune=length_scale is None,
        )
        sample = _SampledRows.of_survey(choose_unit(survey, stream, progress), size)
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
                most_features=_MAX_FEATURES,
                random_state=seed,
            )
        )
        progress.advance(1)
    recommended, sentence = recommend_map(requirements)
    first = clone(maps[0]).set_params(n_components=16, random_state=seed).fit(sample.X)
    scale = typical_length_scale(first)
    n_components: int | None = None
    errors: KernelErrors | None = None
    gram: list[GramCheck] = []
    if recommended is not None:
        progress.start("Examining the recommended map")
        best = maps[recommended]
        n_components = min(requirements[recommended].n_components or 1, _MAX_FEATURES)
        sized = clone(best).set_params(n_components=n_components)
        errors = kernel_errors(sized, sample.X, n_pairs=1000, n_seeds=8, random_state=seed)
        gram = _check_gram(best, n_components, sample, alpha, seed)
        sentence += _warn_of_dimension(gram[-1], alpha)
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
        errors={} if errors is None else _list_errors(errors, probability),
        n_components=n_components,
        ranges=[] if errors is None else errors.over_range(10),
        kernel_check=None if errors is None else _check_kernel(errors),
        gram=gram,
        seed=seed,
        seconds=time.perf_counter() - begin,
        notes=sample.notes,
        settings=collect_settings(
            task,
            missing,
            transform,
            None,
            drop,
            {"day_first": day_first, **division.settings, **table_options},
        )
        | _fit_settings(recommended, requirements, maps, kernel, scale),
        in_memory=is_data(source),
    )


def _warn_of_dimension(gram: GramCheck, alpha: float) -> str:
    """Return a sentence if the tolerance is small for kernel values but large for models."""
    dimension = gram.effective_dimension.value
    if dimension <= gram.n_components:
        return ""
    return (
        f" A ridge regression with penalty {plain.number(alpha)} would use more: its effective "
        f"dimension is above {plain.count(math.floor(dimension))}."
    )


def _fit_settings(
    recommended: int | None,
    requirements: list[FeatureRequirement],
    maps: list[FeatureMap],
    kernel: str | Kernel | DotProductKernel,
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
    options = {
        name: value
        for name, value in given.items()
        if name not in _FIT_ARGUMENTS
        and isinstance(value, (bool, int, float, str))
        and value != getattr(default, name)
    }
    return settings | ({"map_options": options} if options else {})


class _SampledRows(NamedTuple):
    """Encoded rows in random order, with their targets if there are any."""

    X: Rows
    target: NDArray[np.float64] | None
    n_rows: int  # Number of rows of the table.
    notes: list[str]

    @classmethod
    def of_survey(cls, survey: Survey, size: int) -> _SampledRows:
        """Return at most `size` sampled rows; a target of classes becomes the most frequent one."""
        target = survey.sample_target
        if survey.n_classes is not None:
            target = (target == np.bincount(target).argmax()).astype(np.float64)
        notes = [str(note) for note in survey.notes]
        return cls(survey.sample[:size], target[:size], survey.n_rows, notes)

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


def _list_errors(errors: KernelErrors, probability: float) -> dict[str, Measured]:
    return {
        "absolute": errors.absolute,
        "rms": errors.rms,
        "capped_relative": errors.capped_relative,
        "share_capped": errors.share_capped,
        "quantile": errors.quantile(probability),
    }


def _check_kernel(errors: KernelErrors) -> KernelCheck:
    exact, estimated = errors.sample(_SHOWN_PAIRS)
    return KernelCheck(exact.tolist(), estimated.tolist(), errors.rms.value, errors.n_components)


def _check_gram(
    feature_map: FeatureMap, n_components: int, sample: _SampledRows, alpha: float, seed: int
) -> list[GramCheck]:
    """Return errors of the Gram matrix of some rows, for up to `n_components` features."""
    X, n_all = sample.X, sample.X.shape[0]
    n = min(_GRAM_ROWS, n_all)
    # The eigenvalues of the Gram matrix of all rows are larger by the ratio of the numbers of rows.
    alpha = alpha * n / sample.n_rows
    smallest = max(16, min_features(feature_map, X.shape[1]))
    fitted = clone(feature_map).set_params(n_components=smallest, random_state=seed).fit(X)
    blocks = (X[begin : begin + n] for begin in range(0, n_all - n + 1, n))
    dimension = mean_of_seeds(
        [effective_dimension(fitted.exact_kernel(rows, rows), alpha) for rows in blocks]
    )
    target = None if sample.target is None else sample.target[:n]
    if target is not None and not np.ptp(target):
        target = None
    checks = []
    for size in sorted({max(smallest, n_components // part) for part in (16, 4, 1)}):
        sized = clone(feature_map).set_params(n_components=size)
        errors = gram_errors(sized, X[:n], target, alpha=alpha, n_seeds=4, random_state=seed)
        checks.append(GramCheck(**vars(errors) | {"effective_dimension": dimension}))
    return checks
