"""The length scale of a map and the noise by evidence: a bounded search on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.blocks import Block, count_rows, take_rows
from kernelmill.learners.evidence import log_evidence_at, most_likely_alpha
from kernelmill.learners.features import compute_feature_blocks, compute_features
from kernelmill.learners.statistics import RidgeStatistics, check_some_weight, rows_per_update
from kernelmill.maps.scales import typical_length_scale
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress

__all__ = ["TUNING_COMPONENTS", "TUNING_ROWS", "TunedMap", "tune_map"]

TUNING_ROWS = 2048
TUNING_COMPONENTS = 1024

_GRID = (0, 1, -1, 2, -2, 3, -3)
_FARTHEST = 20
_INDIFFERENCE = 1e-9  # of log evidences: the first of those that differ by rounding is taken
_PRECISION = 0.02  # of the binary logarithm of the length scale


@dataclass(frozen=True)
class TunedMap:
    """The result of tuning.

    Attributes
    ----------
    feature_map : transformer
        Unfitted, with the best length scale.
    alpha : float
        The best penalty for it.
    table : dict of ndarray
        One entry per evaluation, in order: the parameter under its name, the best "alpha" for it,
        and "log_evidence".
    """

    feature_map: Any
    alpha: float
    table: dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class _TunedParameter:
    """The parameter that is tuned: the prefix of its estimator, its name, and the initial value.

    If there is a length scale for each column, the value is their geometric mean, and their
    proportions stay as they are.
    """

    prefix: str
    name: str
    start: float
    proportions: NDArray[np.float64] | None = None

    def value(self, offset: float) -> float:
        """Return the value after doubling the length scale `offset` times."""
        power = 1.0 if self.name == "length_scale" else -2.0
        return float(self.start * 2.0 ** (power * offset))

    def set_on(self, feature_map: Any, value: float) -> Any:
        """Return a copy of the map with the value."""
        scale = value if self.proportions is None else value * self.proportions
        copy = clone(feature_map).set_params(**{self.prefix + self.name: scale})
        if self.name == "length_scale" and f"{self.prefix}gamma" in copy.get_params():
            copy.set_params(**{f"{self.prefix}gamma": None})
        return copy


def tune_map(
    unfitted: Any,
    fitted: Any,
    block: Block,
    *,
    alpha: float | None,
    noise: float | None,
    fit_intercept: bool,
    budget: int,
    stream: Stream,
    progress: Progress,
) -> TunedMap:
    """Choose the length scale of the map, and the penalty, by the largest evidence.

    At most `TUNING_ROWS` rows, chosen by the stream, and `TUNING_COMPONENTS` features of the map
    are used, so that the time of an evaluation does not depend on the size of the data.

    Parameters
    ----------
    unfitted, fitted : transformer
        The map with a fixed seed, and the same fitted on X: the search starts at its scale.
    block : Block
        Checked rows.
    alpha, noise : float or None
        At most one of them is given, and then fixed.
    fit_intercept : bool
    budget : int
        The number of length scales to try.
    stream : Stream
    progress : Progress
        Receives a line of text after each evaluation.
    """
    scale = _find_scale(unfitted, fitted)
    small = clone(unfitted)
    components = f"{scale.prefix}n_components"
    if small.get_params().get(components, 0) > TUNING_COMPONENTS:
        small.set_params(**{components: TUNING_COMPONENTS})
    sample = _sample_rows(block, stream)
    tried: dict[float, tuple[float, float]] = {}

    def evaluate(offset: float) -> float:
        if offset not in tried:
            candidate = scale.set_on(small, scale.value(offset))
            try:
                tried[offset] = _evaluate(candidate, sample, alpha, noise, fit_intercept)
            except (ValueError, FloatingPointError):
                if not tried:  # at the initial scale, the scale is not the reason
                    raise
                tried[offset] = (np.nan, -np.inf)
            progress.end_pass(
                f"{scale.name} {scale.value(offset):.4g}: alpha {tried[offset][0]:.3g}, "
                f"log evidence {tried[offset][1]:.6g}"
            )
        return tried[offset][1]

    best = _search(evaluate, budget)
    table = {
        scale.name: np.array([scale.value(offset) for offset in tried]),
        "alpha": np.array([found for found, _ in tried.values()]),
        "log_evidence": np.array([value for _, value in tried.values()]),
    }
    return TunedMap(scale.set_on(unfitted, scale.value(best)), tried[best][0], table)


def _search(evaluate: Callable[[float], float], budget: int) -> float:
    """Return the offset of the largest value within the budget: doubling, then Brent's method."""
    values: dict[float, float] = {}

    def best() -> float:
        top = max(values.values())
        equal = _INDIFFERENCE * (1.0 + abs(top)) if np.isfinite(top) else 0.0
        return next(offset for offset, value in values.items() if value >= top - equal)

    for offset in _GRID[:budget]:
        values[offset] = evaluate(offset)
    while len(values) < budget and abs(best()) < _FARTHEST:
        neighbor = best() + (1 if best() > 0 else -1)
        if neighbor in values:
            break
        values[neighbor] = evaluate(neighbor)
    left = budget - len(values)
    if left > 0:
        middle = best()

        def loss(offset: float) -> float:
            values[float(offset)] = evaluate(float(offset))
            return -values[float(offset)]

        minimize_scalar(
            loss,
            bounds=(middle - 1, middle + 1),
            method="bounded",
            options={"maxiter": left, "xatol": _PRECISION},
        )
    return best()


def _evaluate(
    candidate: Any,
    sample: Block,
    alpha: float | None,
    noise: float | None,
    fit_intercept: bool,
) -> tuple[float, float]:
    """Return the best penalty for a map, and its log evidence."""
    candidate.fit(sample.X)
    features = partial(compute_features, candidate)
    statistics: RidgeStatistics | None = None
    for Z, targets, part in compute_feature_blocks(features, sample, rows_per_update(1024)):
        if statistics is None:
            statistics = RidgeStatistics(Z.shape[1], targets.shape[1])
        statistics.update(Z, targets, part)
    assert statistics is not None
    equations = statistics.finalize(fit_intercept=fit_intercept)
    fixed = alpha if noise is None else noise
    if fixed is None:
        fixed, value = most_likely_alpha(equations)
    else:
        value = log_evidence_at(equations, fixed, noise)
    return fixed, value if np.isfinite(value) else -np.inf


def _sample_rows(block: Block, stream: Stream) -> Block:
    """Return at most `TUNING_ROWS` of the rows with a positive weight."""
    X, Y, weights = block
    present = np.arange(count_rows(X)) if weights is None else np.flatnonzero(weights)
    check_some_weight(len(present))
    if len(present) > TUNING_ROWS:
        draws = stream.substream("rows for tuning").integers(TUNING_ROWS, len(present))
        present = present[np.unique(draws)]
    elif len(present) == count_rows(X):
        return block
    return Block(take_rows(X, present), Y[present], None if weights is None else weights[present])


def _find_scale(unfitted: Any, fitted: Any) -> _TunedParameter:
    prefix, last = "", fitted
    if isinstance(fitted, Pipeline):
        prefix, last = f"{fitted.steps[-1][0]}__", fitted.steps[-1][1]
    parameters = unfitted.get_params() if hasattr(unfitted, "get_params") else {}
    scales = getattr(last, "length_scale_", None)
    if isinstance(scales, np.ndarray) and np.isfinite(scales).any():
        start = typical_length_scale(last)
        assert start is not None
        return _TunedParameter(prefix, "length_scale", start, scales / start)
    for name in ("length_scale", "gamma"):
        if prefix + name in parameters:
            for found in (f"{name}_", f"_{name}", name):
                start = getattr(last, found, None)
                if isinstance(start, (int, float, np.number)) and start > 0:
                    return _TunedParameter(prefix, name, float(start))
    raise ArgumentError(
        f"must have a parameter length_scale or gamma if tune=True, got {unfitted!r}",
        "use a map with one, such as Fastfood or RandomFourier",
        Remedy("use a grid search instead", tune=False),
        parameter="feature_map",
    )
