"""A length scale for each column, or for each group of columns, by evidence on a sample of rows.

The model is ridge regression on random Fourier features of the kernel, as a Gaussian process:
y ~ N(b, s² (Z Zᵀ + α I)) with Z = [cos P, sin P] / √h and P = X diag(w) Ωᵀ. The h frequencies Ω
stay fixed while the inverse length scales w and the penalty α are searched, so that the evidence
is a smooth function of them, and its gradient is exact (Rasmussen & Williams, 2006, chapter 5). The
constant b and the variance s² are eliminated. Classes are regressed on as signs, one output each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels import Kernel, resolve
from kernelmill.learners.statistics import check_some_weight
from kernelmill.learners.tuning.copies import list_together, merge_copies, residuals_without
from kernelmill.maps.base import FeatureMap
from kernelmill.random import Stream
from kernelmill.random.row_hashes import Keys, hash_rows
from kernelmill.runtime.threads import one_blas_thread
from kernelmill.transforms import sincos

__all__ = [
    "MOST_COLUMNS",
    "LearnedScales",
    "TunedColumns",
    "learn_length_scales",
    "leave_one_out",
    "leave_one_out_errors",
    "tune_columns",
    "walk_ridges",
]

MOST_COLUMNS = 4096
"""With more columns than this, one length scale for all of them is the better choice."""

_Array = NDArray[np.float64]

_ROWS = 2500
_FREQUENCIES = 256
_SPREAD = 1.0  # standard deviation of the prior of log length scales around the isotropic optimum
_FARTHEST = 8.0  # of log length scales from the isotropic optimum
_MOST_FREE = 200  # columns; length scales of more are drawn towards the isotropic optimum
_LOG_ALPHA = (-9.0, 5.0)
_STARTS = (0.25, 0.5, 1.0, 2.0, 4.0)  # length scales, in units of the median distance
_MEDIAN_ROWS = 500
_ISOTROPIC_EVALUATIONS = 15
_FIRST_LOG_ALPHA = math.log(0.1)
_TYPICAL = 0.7  # length scale to start from, in units of the median distance
_LEAST_FACTOR, _MOST_FACTOR = 0.2, 4.0  # of inverse length scales by what columns explain
# Of length scales of another kernel: those of the Laplacian kernel divide a sum and are longer.
_FACTORS_OF_START = (0.5, 1.0, 2.0, 4.0, 8.0)
_FIRST_ROWS, _FIRST_FREQUENCIES = 1000, 128  # of the searches that only say where to begin
_FIRST_EVALUATIONS = 15  # of each start, before the best one is continued
_JUDGED_ROWS = 8000
_JUDGED_COMPONENTS = 1024
_WIDE_NUMBERS = 1 << 24  # of a sample with more than `MOST_COLUMNS` columns
_LARGE_TARGET = 1e12  # the evidence does not depend on the unit of the targets
_LEAST_RIDGE = 1e-8  # smaller numbers are lost in rounding


@dataclass(frozen=True)
class LearnedScales:
    """The result of a search for length scales.

    Attributes
    ----------
    length_scale : ndarray of shape (n_columns,)
    isotropic : float
        The best length scale that all columns share.
    alpha : float
        The penalty at `length_scale`.
    log_evidence : float
        Per row and output, up to a constant.
    """

    length_scale: _Array
    isotropic: float
    alpha: float
    log_evidence: float


class EvidenceProblem:
    """The negative log evidence of a sample, per row and output, as a function of logarithms.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32
    Y : ndarray of shape (n, T)
        Targets; their means are subtracted.
    frequencies : ndarray of shape (h, d)
        Frequencies of the kernel at length scale 1.
    sample_weight : ndarray of shape (n,), optional
        The noise of row i has variance σ²/wᵢ: features and targets of the row are multiplied by
        √wᵢ, once the weighted means are subtracted.
    """

    def __init__(
        self,
        X: NDArray[np.float32],
        Y: _Array,
        frequencies: _Array,
        sample_weight: _Array | None = None,
    ) -> None:
        size = float(np.abs(Y).max(initial=0.0))
        if size > 0 and not 1 / _LARGE_TARGET < size < _LARGE_TARGET:  # products are in float32
            Y = Y / size
        self.X = X
        self._targets, self._weights = Y, sample_weight
        self.Y = _center(Y, sample_weight)
        self.frequencies = frequencies
        self._total = max(float(np.vdot(self.Y, self.Y)), 1e-300)  # constant targets have none

    def first(self, n_rows: int, n_frequencies: int) -> EvidenceProblem:
        """Return the problem of the first rows and frequencies: a tenth of the time."""
        if len(self.Y) <= n_rows and len(self.frequencies) <= n_frequencies:
            return self
        weights = None if self._weights is None else self._weights[:n_rows]
        if weights is not None and not weights.any():
            return self
        return EvidenceProblem(
            self.X[:n_rows], self._targets[:n_rows], self.frequencies[:n_frequencies], weights
        )

    def value(self, log_weights: _Array, log_alpha: float) -> tuple[float, _Array, float]:
        """Return the negative log evidence and its derivatives.

        Parameters
        ----------
        log_weights : ndarray of shape (d,)
            Logarithms of the inverse length scales.
        log_alpha : float

        Returns
        -------
        value : float
            Infinite where rounding leaves no positive definite matrix.
        d_log_weights : ndarray of shape (d,)
        d_log_alpha : float
        """
        n, n_outputs = self.Y.shape
        h = len(self.frequencies)
        weights, alpha = np.exp(log_weights), float(np.exp(log_alpha))
        scaled = self.frequencies * weights
        phases = self.X @ scaled.T.astype(np.float32)
        sine, cosine = sincos(phases, n_threads=1)
        Z = np.concatenate([cosine, sine], axis=1)
        Z *= np.float32(h**-0.5)
        Z = _center(Z, self._weights, out=Z)
        # Products in float32, the factorization in float64: rounding of the products is some 1e-5
        # of the smallest alpha that is searched.
        moments = (Z.T @ Z).astype(np.float64)
        moments[np.diag_indices(2 * h)] += alpha
        factor, failed = dpotrf(moments, lower=1)
        if failed:
            return np.inf, np.zeros_like(log_weights), 0.0
        log_determinant = 2 * float(np.log(factor.diagonal()).sum())
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        coef = inverse @ (Z.T @ self.Y.astype(np.float32)).astype(np.float64)
        residuals = self.Y - Z @ coef.astype(np.float32)
        misfit = max(float(np.vdot(self.Y, residuals)), 1e-12 * self._total)
        total = n * n_outputs
        value = 0.5 * np.log(misfit / total)
        value += 0.5 * (log_determinant - 2 * h * log_alpha) / n
        # With respect to Z: T Z M⁻¹ - (n T / misfit) R Uᵀ, for weights U and residuals R.
        gradient = Z @ (inverse / n).astype(np.float32)
        gradient -= residuals.astype(np.float32) @ (coef.T / misfit).astype(np.float32)
        if self._weights is not None:  # the sums over rows vanish, as they do without weights
            gradient *= np.sqrt(self._weights, dtype=np.float32)[:, np.newaxis]
        of_phases = cosine * gradient[:, h:] - sine * gradient[:, :h]
        products = (of_phases.T @ self.X).astype(np.float64)
        d_log_weights = (products * scaled).sum(axis=0) * h**-0.5
        d_alpha = 0.5 * float(np.vdot(coef, coef)) / misfit
        d_alpha += 0.5 * (float(np.trace(inverse)) - 2 * h / alpha) / n
        return float(value), d_log_weights, d_alpha * alpha


def _center(
    Z: NDArray[Any], sample_weight: _Array | None, out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Subtract the weighted mean, and multiply rows by the roots of their weights."""
    shares = None if sample_weight is None else sample_weight / sample_weight.sum()
    mean = Z.mean(axis=0) if shares is None else shares.astype(Z.dtype) @ Z
    centered: NDArray[Any] = np.subtract(Z, mean, out=out)
    if sample_weight is not None:
        centered *= np.sqrt(sample_weight).astype(Z.dtype)[:, np.newaxis]
    return centered


class _Found(NamedTuple):
    log_weights: _Array  # one for each group
    log_alpha: float
    value: float


def learn_length_scales(
    kernel: Kernel,
    X: Any,
    Y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    stream: Stream,
    max_evaluations: int = 40,
    start: LearnedScales | None = None,
    n_rows: int = _ROWS,
    n_frequencies: int = _FREQUENCIES,
    sample_weight: _Array | None = None,
) -> LearnedScales:
    """Maximize the evidence over a length scale for each column, or for each group of columns.

    The search starts from the best length scale for all columns and from two other points, and
    continues from the best of the three. A normal prior on the logarithms, centered at that length
    scale, keeps the length scales of columns similar unless the data distinguish them.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
        At most `n_rows` of the rows are used, drawn by the stream.
    Y : array_like of shape (n, T)
        Targets: numbers, or the signs of classes.
    groups : array_like of int of shape (d,), optional
        Columns with the same number share a length scale. By default, each column has its own.
    stream : Stream
        Frequencies and rows are drawn from it.
    max_evaluations : int, default=40
        The maximum number of evaluations of the evidence with all rows. Evaluations with fewer rows
        and frequencies choose the starting point and are not counted.
    start : LearnedScales, optional
        Start from these length scales, such as those of another kernel, times a common factor.
    n_rows, n_frequencies : int
        The time is proportional to ``n_rows * n_frequencies**2``.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows, with mean 1.

    Returns
    -------
    LearnedScales

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels import Gaussian
    >>> from kernelmill.learners.tuning.length_scales import learn_length_scales
    >>> from kernelmill.random import Stream
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> Y = np.sin(3 * X[:, :1])  # the other columns do not matter
    >>> learned = learn_length_scales(
    ...     Gaussian(), X, Y, stream=Stream.from_seed(0), n_frequencies=32
    ... )
    >>> bool(learned.length_scale[1:].min() > 5 * learned.length_scale[0])
    True
    """
    problem, group_of_column = _make_problem(
        kernel, X, Y, groups, stream, n_rows, n_frequencies, sample_weight
    )
    small = problem.first(_FIRST_ROWS, _FIRST_FREQUENCIES)

    def search(
        searched: EvidenceProblem, begin: _Array, log_alpha: float, evaluations: int
    ) -> _Found:
        # Tighter for many columns and few rows, which would overfit.
        crowding = 1 + (int(group_of_column.max()) + 1) / len(searched.Y)
        prior = 0.5 * crowding / (_SPREAD**2 * searched.Y.size)
        return _minimize(searched, group_of_column, begin, log_alpha, evaluations, center, prior)

    with one_blas_thread():
        if start is not None:
            logs = _means_of_groups(-np.log(start.length_scale), group_of_column)
            log_alpha = float(np.log(start.alpha))
            shifts = np.log(_FACTORS_OF_START)
            values = [small.value((logs - s)[group_of_column], log_alpha)[0] for s in shifts]
            shift = shifts[int(np.argmin(values))]
            center = -float(np.log(start.isotropic)) - shift
            best = search(problem, logs - shift, log_alpha, max_evaluations)
        else:
            unit = _median_distance(kernel, problem.X)
            isotropic = _find_isotropic(small, unit)
            center = float(isotropic.log_weights[0])
            begins = _starts(problem, group_of_column, center, unit)
            alphas = (isotropic.log_alpha, _FIRST_LOG_ALPHA, _FIRST_LOG_ALPHA)
            found = [
                search(small, begin, log_alpha, _FIRST_EVALUATIONS)
                for begin, log_alpha in zip(begins, alphas, strict=True)
            ]
            best = min(found, key=lambda each: each.value)
            best = search(problem, best.log_weights, best.log_alpha, max_evaluations)
    # Pixels of images: length scales of so many columns would overfit the sample.
    kept = min(1.0, math.sqrt(_MOST_FREE / len(best.log_weights)))
    log_weights = center + kept * (best.log_weights - center)
    return LearnedScales(
        length_scale=np.exp(-log_weights)[group_of_column],
        isotropic=float(np.exp(-center)),
        alpha=float(np.exp(best.log_alpha)),
        log_evidence=-best.value,
    )


def _make_problem(
    kernel: Kernel,
    X: Any,
    Y: ArrayLike,
    groups: ArrayLike | None,
    stream: Stream,
    n_rows: int,
    n_frequencies: int,
    weights: _Array | None,
) -> tuple[EvidenceProblem, NDArray[np.int64]]:
    n, dim = X.shape
    targets = np.asarray(Y, np.float64).reshape(n, -1)
    numbers = np.arange(dim) if groups is None else np.asarray(groups)
    if numbers.shape != (dim,) or numbers.dtype.kind not in "iu":
        raise ArgumentError(
            f"must contain one integer for each of the {dim} columns, got shape {numbers.shape} "
            f"and dtype {numbers.dtype}",
            parameter="groups",
        )
    group_of_column = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    n_rows, h = check_integer("n_rows", n_rows, 2), check_integer("n_frequencies", n_frequencies, 1)
    if dim > MOST_COLUMNS:
        if group_of_column.max() > 0:
            raise ArgumentError(
                f"must have at most {MOST_COLUMNS} columns to learn one length scale per column, "
                f"got {dim}",
                "use one length scale for all of them",
                parameter="X",
            )
        fitting = _WIDE_NUMBERS // dim  # dense rows and frequencies take little memory
        n_rows, h = max(min(n_rows, fitting), 64), max(min(h, fitting), 16)
    if n > n_rows:
        rows = np.unique(stream.substream("rows").integers(n_rows, n))
        X, targets = X[rows], targets[rows]
        weights = None if weights is None else weights[rows]
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    frequencies = kernel.frequencies(stream.substream("frequencies"), h, dim)
    problem = EvidenceProblem(dense.astype(np.float32), targets, frequencies, weights)
    return problem, group_of_column


def _median_distance(kernel: Kernel, X: NDArray[np.float32]) -> float:
    rows = X[:_MEDIAN_ROWS]
    distances = kernel.distances(rows)[np.triu_indices(len(rows), 1)]
    positive = distances[distances > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _find_isotropic(problem: EvidenceProblem, unit: float) -> _Found:
    """Return the best common length scale: the best of a few, then a search around it."""
    together = np.zeros(problem.X.shape[1], np.int64)
    tried = {}
    for factor in _STARTS:
        log_weight = -np.log(unit * factor)
        tried[log_weight] = problem.value(np.full(len(together), log_weight), _FIRST_LOG_ALPHA)[0]
    begin = np.array([min(tried, key=lambda each: tried[each])])
    return _minimize(problem, together, begin, _FIRST_LOG_ALPHA, _ISOTROPIC_EVALUATIONS, 0.0, 0.0)


def _starts(
    problem: EvidenceProblem, group_of_column: NDArray[np.int64], center: float, unit: float
) -> list[_Array]:
    """Return points to start from: evidence has local optima where a linear function explains much.

    The isotropic optimum; the median distance; and that distance divided by more for the columns
    whose bins explain more of the targets.
    """
    n_groups = int(group_of_column.max()) + 1
    explained = np.zeros(n_groups)
    if len(group_of_column) <= MOST_COLUMNS:
        np.maximum.at(explained, group_of_column, _explained_by_bins(problem.X, problem.Y))
    relative = np.sqrt(explained / max(float(explained.max()), 1e-12))
    typical = -np.log(_TYPICAL * unit)
    return [
        np.full(n_groups, center),
        np.full(n_groups, typical),
        typical + np.log(_LEAST_FACTOR + (_MOST_FACTOR - _LEAST_FACTOR) * relative),
    ]


def _explained_by_bins(X: NDArray[np.float32], Y: _Array) -> _Array:
    """Return the share of the variance that the means in bins of each column explain, unbiased."""
    n, n_bins = len(Y), max(2, min(16, len(Y) // 20))
    ranks = np.argsort(np.argsort(X, axis=0, kind="stable"), axis=0, kind="stable")
    bins = ranks * n_bins // n
    total = float(np.vdot(Y, Y))
    shares = np.empty(X.shape[1])
    for column, numbers in enumerate(bins.T):
        counts = np.maximum(np.bincount(numbers, minlength=n_bins), 1)
        sums = np.stack([np.bincount(numbers, y, minlength=n_bins) for y in Y.T])
        shares[column] = float((sums**2 / counts).sum())
    noise = (n_bins - 1) / max(1, n - 1)
    return np.maximum(shares / max(total, 1e-300) - noise, 0.0)


def _minimize(
    problem: EvidenceProblem,
    group_of_column: NDArray[np.int64],
    begin: _Array,
    log_alpha: float,
    evaluations: int,
    center: float,
    prior: float,
) -> _Found:
    """Return the best point that L-BFGS passes; `prior` weighs squared distances from `center`."""
    best = _Found(begin, log_alpha, np.inf)

    def objective(point: _Array) -> tuple[float, _Array]:
        nonlocal best
        logs = point[:-1]
        value, of_columns, of_alpha = problem.value(logs[group_of_column], float(point[-1]))
        if not np.isfinite(value):
            return 1e6, np.zeros_like(point)
        value += prior * float(np.vdot(logs - center, logs - center))
        if value < best.value:
            best = _Found(logs.copy(), float(point[-1]), value)
        of_groups = np.bincount(group_of_column, of_columns, minlength=len(logs))
        return value, np.append(of_groups + 2 * prior * (logs - center), of_alpha)

    middle = center if prior else float(begin[0])
    bounds = [(middle - _FARTHEST, middle + _FARTHEST)] * len(begin) + [_LOG_ALPHA]
    inside = np.clip(np.append(begin, log_alpha), *np.transpose(bounds))
    minimize(
        objective,
        inside,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxfun": evaluations, "maxiter": evaluations},
    )
    return best


def _means_of_groups(values: _Array, group_of_column: NDArray[np.int64]) -> _Array:
    counts = np.bincount(group_of_column)
    return np.bincount(group_of_column, values) / counts


@dataclass(frozen=True)
class TunedColumns:
    """A map with a length scale for each column or one for all columns, whichever has less error.

    Attributes
    ----------
    feature_map : FeatureMap
        Unfitted.
    alpha : float
        The best penalty for it.
    learned : LearnedScales
    errors : ndarray of shape (2,)
        Mean squared leave-one-out errors, with one length scale and with one for each column.
    """

    feature_map: FeatureMap
    alpha: float
    learned: LearnedScales
    errors: _Array


def tune_columns(
    feature_map: Any,
    X: Any,
    Y: _Array,
    *,
    groups: ArrayLike | None,
    stream: Stream,
    sample_weight: _Array | None = None,
) -> TunedColumns:
    """Learn a length scale for each column, and use them if they lower the error on other rows.

    Parameters
    ----------
    feature_map : FeatureMap
        Unfitted, with a parameter `length_scale`.
    X, Y
        Rows and targets. Length scales are learned from three quarters of them at most.
    groups, stream
        As in `learn_length_scales`.
    sample_weight : ndarray of shape (n,), optional
        Weights with any mean. Rows of weight zero are left out.
    """
    if not isinstance(feature_map, FeatureMap) or "length_scale" not in feature_map.get_params():
        raise ArgumentError(
            "must be a map of kernelmill with a length scale for tune='columns', got "
            f"{feature_map!r}",
            "use Fastfood or RandomFourier",
            Remedy("tune nothing", tune=False),
            parameter="feature_map",
        )
    n = len(Y)
    order = np.argsort(stream.substream("order of rows").uniforms(n), kind="stable")
    if sample_weight is not None:
        order = order[sample_weight[order] > 0]
        check_some_weight(len(order))
    order = order[:_JUDGED_ROWS]
    keys = hash_rows(X[order])
    _, first_of, place = np.unique(keys, return_index=True, return_inverse=True)
    together = np.argsort(first_of[place], kind="stable")  # copies next to each other
    order, keys = order[together], keys[together]
    X, Y = X[order], Y[order]
    unit, weights = 1.0, None
    if sample_weight is not None:
        unit = float(sample_weight[order].mean())
        weights = sample_weight[order] / unit
    n_learning = min(_ROWS, max(2, (3 * len(Y)) // 4))
    while n_learning < len(Y) and keys[n_learning] == keys[n_learning - 1]:
        n_learning += 1
    kernel = resolve(getattr(feature_map, "kernel", "gaussian"))
    distinct, means, mean_weights = merge_copies(
        X[:n_learning], Y[:n_learning], None if weights is None else weights[:n_learning]
    )
    learned = learn_length_scales(
        kernel,
        distinct,
        means,
        groups=groups,
        stream=stream,
        n_frequencies=int(np.clip(n_learning // 8, 32, _FREQUENCIES)),
        sample_weight=mean_weights,
    )
    first = n_learning if n_learning < len(Y) else 0
    small = min(int(feature_map.n_components), _JUDGED_COMPONENTS)
    tried = []
    for scale in (learned.isotropic, learned.length_scale):
        parameters = {**feature_map.get_params(deep=False), "length_scale": scale}
        if "gamma" in parameters:
            parameters["gamma"] = None
        made = type(feature_map)(**{**parameters, "n_components": small}).fit(X)
        errors = leave_one_out_errors(made, X, Y, first, sample_weight=weights, keys=keys)
        best = min(errors, key=lambda ridge: errors[ridge])
        tried.append((errors[best], best, type(feature_map)(**parameters)))
    _, alpha, chosen = min(tried, key=lambda each: each[0])
    return TunedColumns(chosen, alpha * unit, learned, np.array([error for error, _, _ in tried]))


def leave_one_out_errors(
    fitted: Any,
    X: Any,
    Y: _Array,
    first: int,
    *,
    start: float = 0.1,
    least: float = _LEAST_RIDGE,
    sample_weight: _Array | None = None,
    keys: Keys | None = None,
) -> dict[float, float]:
    """Mean squared leave-one-out errors of the rows from `first` on, for some ridges.

    With weights, whose mean is 1, it is the weighted mean. For `keys`, see `leave_one_out`.
    """
    measure = leave_one_out(fitted, X, Y, first, sample_weight, keys)
    return walk_ridges([measure], start=start, least=least)


def walk_ridges(
    measures: Sequence[Callable[[float], float]], *, start: float, least: float
) -> dict[float, float]:
    """Return the mean of some errors as functions of the ridge, for some ridges.

    These are `start` times powers of √10, on both sides of the best one, and at least about
    `least`.
    """

    def measure(ridge: float) -> float:
        return sum(each(ridge) for each in measures) / len(measures)

    errors = {start: measure(start)}
    _walk(errors, measure, 10**0.5, 1e8 * start)
    if min(errors, key=lambda ridge: errors[ridge]) == start:
        _walk(errors, measure, 10**-0.5, least)
    return errors


def leave_one_out(
    fitted: Any,
    X: Any,
    Y: _Array,
    first: int,
    sample_weight: _Array | None = None,
    keys: Keys | None = None,
) -> Callable[[float], float]:
    """The mean squared leave-one-out error of the rows from `first` on, as a function of the ridge.

    The residual of row i without that row is rᵢ / (1 - hᵢ), for its leverage hᵢ. With `keys`, rows
    from `first` on whose keys are equal are left out together; no earlier row may have their key.
    """
    Z = np.asarray(fitted.transform(X), np.float64)
    n = len(Z)
    Z = _center(Z, sample_weight, out=Z)
    centered = _center(Y, sample_weight)
    judged_weights = np.ones(n - first) if sample_weight is None else sample_weight[first:]
    total = Y.shape[1] * max(float(judged_weights.sum()), 1e-300)
    moments = Z.T @ Z
    products = Z.T @ centered
    judged, residuals = np.asfortranarray(Z[first:].T), centered[first:]
    together = list_together(None if keys is None else keys[first:])
    roots = np.sqrt(judged_weights)

    def measure(ridge: float) -> float:
        shifted = moments.copy()
        shifted[np.diag_indices(len(shifted))] += ridge
        factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
        if failed:
            return math.inf
        with np.errstate(all="ignore"):
            halves = solve_triangular(factor, judged, lower=True, check_finite=False)
            weights = solve_triangular(factor, products, lower=True, check_finite=False)
            leverages = np.einsum("ij,ij->j", halves, halves) + judged_weights / n
            with_all = residuals - halves.T @ weights
            left_out = with_all / (1 - np.minimum(leverages, 1 - 1e-9))[:, np.newaxis]
            try:
                for rows in together:
                    left_out[rows] = residuals_without(with_all, halves.T, roots, n, rows)
            except np.linalg.LinAlgError:
                return math.inf
            error = float(np.sum(left_out**2)) / total
        return error if math.isfinite(error) else math.inf

    return measure


def _walk(
    errors: dict[float, float], measure: Callable[[float], float], factor: float, limit: float
) -> None:
    """Multiply the best ridge by the factor while that lowers the error, up to a limit."""
    ridge = min(errors, key=lambda each: errors[each])
    while (ridge < limit) if factor > 1 else (ridge > limit):
        best, ridge = errors[ridge], ridge * factor
        errors[ridge] = measure(ridge)
        if not errors[ridge] < best:
            return
