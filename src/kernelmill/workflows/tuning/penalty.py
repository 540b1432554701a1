"""The penalty of a model that is not tuned: the best of a few around the default.

The default suits tables with little noise. With more noise, a model overfits, and its error can
be larger than that of a constant prediction. A few hundred features of at most 2000 rows show which
power of ten suits: the best one hardly depends on their numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelmill.learners import Run, default_alpha
from kernelmill.learners.blocks import Block
from kernelmill.learners.losses import LOSSES, Objective
from kernelmill.learners.solvers.exact import solve_statistics
from kernelmill.learners.solvers.lbfgs import solve_lbfgs
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.random import Stream
from kernelmill.random.row_hashes import Keys
from kernelmill.workflows.records import TuningPoint
from kernelmill.workflows.tuning.kernel_search import Sample, typical_scale
from kernelmill.workflows.tuning.map_choice import MapChoice

__all__ = ["ChosenPenalty", "are_comparable", "choose_penalty"]

_FEWEST_COMPARED_ROWS = 20
_FEWEST_KEYS = 4  # one for each part of the sample
_MOST_ROWS, _FEWEST_ROWS = 2000, 100
_MOST_FEATURES, _FEWEST_FEATURES = 256, 64
_MOST_NUMBERS = 1 << 24  # of these rows, or of their features
_WEAKEST, _STRONGEST = -2, 5  # powers of ten, relative to the default
_WORTH_IT = 0.995  # a weaker penalty must lower the loss by at least half a percent
_ITERATIONS, _TOLERANCE = 30, 1e-3


class ChosenPenalty(NamedTuple):
    """A penalty, and those that were tried."""

    alpha: float
    points: list[TuningPoint]
    notes: tuple[str, ...]


def are_comparable(target: NDArray[Any]) -> bool:
    """Return whether settings can be compared on a sample: 20 rows or more, not of one target."""
    return len(target) >= _FEWEST_COMPARED_ROWS and len(np.unique(target)) > 1


def choose_penalty(
    choice: MapChoice,
    X: Any,
    target: NDArray[Any],
    *,
    n_classes: int | None,
    n_components: int,
    length_scale: Any,
    loss: str,
    n_rows: int,
    seed: int,
    n_threads: int | None,
    sample_weight: NDArray[np.float64] | None = None,
    sample_keys: Keys | None = None,
    in_order: bool = False,
) -> ChosenPenalty:
    """Choose the penalty of a model that is trained on `n_rows` rows.

    The default is multiplied by ten while that lowers the loss on validation rows; if it does not
    the first time, it is divided by ten. If a constant prediction has a lower loss, the penalty is
    the strongest one, for which the model is about that constant. The parameters are those of
    `tune_settings`.
    """
    is_named = isinstance(choice.feature_map, str)  # others may have coefficients of their own
    n_features = min(n_components, _MOST_FEATURES) if is_named else n_components
    most = np.clip(_MOST_NUMBERS // max(X.shape[1], n_features), _FEWEST_ROWS, _MOST_ROWS)
    rows = slice(int(most))
    weight = None if sample_weight is None else sample_weight[rows]
    default = 1.0 if n_classes is None else default_alpha(n_rows, loss)
    if not are_comparable(target):
        return ChosenPenalty(default, [], ())
    keys = None if sample_keys is None else sample_keys[rows]
    if keys is not None and len(np.unique(keys)) < _FEWEST_KEYS:
        return ChosenPenalty(default, [], ())  # parts of so few keys have nothing in common
    sample = Sample.of(X[rows], target[rows], n_classes, weight, keys, in_order=in_order)
    if is_named:
        n_features = min(n_features, max(_FEWEST_FEATURES, len(sample.Y) // 4))
    folds: list[_FoldFeatures] = []
    for out in sample.quarters():
        is_out = np.zeros(len(sample.Y), bool)
        is_out[out] = True
        known = sample.X[np.flatnonzero(~is_out)]
        steps = choice.with_steps_of(known, n_features, length_scale)
        fitted = steps.make(length_scale, n_features, seed, n_threads).fit(known)
        training = _map_rows(fitted, sample, np.flatnonzero(~is_out))
        validation = _map_rows(fitted, sample, np.flatnonzero(is_out))
        if n_classes is None:
            folds.append(_RegressorFold(training, validation))
        else:
            folds.append(_ClassifierFold(training, validation, n_classes, loss, seed))
    tried: dict[int, float] = {}

    def measure(power: int) -> float:
        if power not in tried:
            tried[power] = float(np.mean([fold.measure(10.0**power) for fold in folds]))
        return tried[power]

    best, notes = _walk(measure, 1) or _walk(measure, -1), list[str]()
    constant = float(np.mean([fold.loss_of_constant() for fold in folds]))
    is_known = 0 < constant < math.inf  # squares of very large or small targets are not
    if is_known and (best == _STRONGEST or measure(best) >= constant):
        best = _STRONGEST
        measure(best)
        notes.append(
            "No penalty gives a clearly lower loss on validation rows than a constant prediction, "
            "so the strongest one is used."
        )
    points = [
        TuningPoint(
            typical_scale(length_scale),
            default * 10.0**power,
            error,
            folds[0].criterion,
            kernel=str(choice.kernel_name),
            per_column=isinstance(length_scale, np.ndarray),
            n_components=folds[0].n_features,
            variant=choice.variant,
            chosen=power == best,
        )
        for power, error in tried.items()
    ]
    return ChosenPenalty(default * 10.0**best, points, tuple(notes))


def _map_rows(fitted: Any, sample: Sample, rows: NDArray[np.intp]) -> Block:
    """Return the features, targets and weights of some rows."""
    target = sample.Y[:, 0] if sample.codes is None else sample.codes
    features = np.asarray(fitted.transform(sample.X[rows]))
    return Block(features, target[rows], sample.weights_of(rows))


def _walk(measure: Callable[[int], float], step: int) -> int:
    """Return the power of ten that is reached from 0 by steps that lower the loss."""
    power, enough = 0, 1.0 if step > 0 else _WORTH_IT
    while _WEAKEST <= power + step <= _STRONGEST:
        if not measure(power + step) < enough * measure(power):
            break
        power += step
    return power


class _FoldFeatures(Protocol):
    """The features of training rows and of validation rows."""

    n_features: int
    criterion: str

    def measure(self, factor: float) -> float:
        """Return the loss on validation rows with the default penalty times a factor."""

    def loss_of_constant(self) -> float:
        """Return the loss on validation rows of a constant learned from the training rows."""


class _RegressorFold:
    criterion = "squared error"

    def __init__(self, training: Block, validation: Block) -> None:
        self.n_features: int = training.X.shape[1]
        self._training, self._validation = training, validation
        self._statistics = RidgeStatistics(self.n_features, 1)
        self._statistics.update(training.X, training.y, training.weight)

    def measure(self, factor: float) -> float:
        fit = solve_statistics(self._statistics, factor, fit_intercept=True)
        return self._loss_of(self._validation.X @ fit.coef[0] + fit.intercept[0])

    def loss_of_constant(self) -> float:
        return self._loss_of(np.average(self._training.y, weights=self._training.weight))

    def _loss_of(self, predicted: Any) -> float:
        squares = (self._validation.y - predicted) ** 2
        return float(np.average(squares, weights=self._validation.weight))


class _ClassifierFold:
    def __init__(
        self, training: Block, validation: Block, n_classes: int, loss: str, seed: int
    ) -> None:
        self.n_features: int = training.X.shape[1]
        self._training, self._validation = training, validation
        self._default = default_alpha(len(training.y), loss)
        self._stream = Stream.from_seed(seed)
        name = loss if LOSSES[loss].smooth else "squared_hinge"
        self.criterion = f"{name.removesuffix('_loss').replace('_', ' ')} loss"
        self._objective = Objective(
            np.asarray,
            n_features=self.n_features,
            dtype=training.X.dtype,
            loss=LOSSES[name],
            alpha=self._default,
            n_classes=n_classes,
        )

    def measure(self, factor: float) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # near enough for a comparison
            fit = solve_lbfgs(
                replace(self._objective, alpha=factor * self._default),
                [self._training],
                Run(),
                stream=self._stream,
                max_iter=_ITERATIONS,
                tol=_TOLERANCE,
            )
        return self._loss_of(self._validation.X @ fit.coef.T + fit.intercept)

    def loss_of_constant(self) -> float:
        scores = self._objective.first_scores(self._training)
        return self._loss_of(np.tile(scores, (len(self._validation.y), 1)))

    def _loss_of(self, scores: NDArray[Any]) -> float:
        scores = scores.astype(np.float64)
        losses = self._objective.loss.derivatives(scores, self._validation.y)[0]
        return float(np.average(losses, weights=self._validation.weight))
