"""Refinement of bandwidth and penalty with the loss and the solver of a classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer

from kernelmill.learners import DEFAULT_C, KernelClassifier
from kernelmill.learners.solvers.choice import BRIEF_LBFGS
from kernelmill.maps.registry import map_name
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.records import TuningPoint
from kernelmill.workflows.tuning.budget import budget_factor, count_seconds_of_landmarks
from kernelmill.workflows.tuning.kernel_search import MOST_STEPS, Sample, typical_scale
from kernelmill.workflows.tuning.map_choice import LINE, MapChoice
from kernelmill.workflows.tuning.memory import TuningMemory, read_number

__all__ = ["Refined", "Refinement"]

_Array = NDArray[np.float64]

ONE_LOSS = 2
"""The duration of one evaluation of the loss, in units of the shortest tuning step."""

_REFINING_COMPONENTS = 2048
_REFINING_ROWS = 8000  # for Nyström features, whose cost is O(D²) for each
_MINIMIZED_ROWS = 10_000  # for L-BFGS on random features
_ROWS_TO_SEE = 40_000
_NEAR, _FAR = 1.1, 1.5  # times the smallest loss: worth a closer look, or not worth another
_TOLERANCE = 1e-5
_FEW_ROWS = 2000  # of landmarks, for which quasi-Newton steps are faster than descent
_SECONDS_OF_FEATURE = 3e-9  # of one row, in a classifier
_WORTH_IT = 0.995  # a weaker penalty must lower the loss by at least half a percent


class _Fold:
    """Training rows and validation rows."""

    def __init__(self, sample: Sample, out: slice, most_rows: int) -> None:
        assert sample.codes is not None
        is_out = np.zeros(len(sample.codes), bool)
        is_out[out] = True
        training = np.flatnonzero(~is_out)[:most_rows]
        self.X, self.codes = sample.X[training], sample.codes[training]
        self.weights = sample.weights_of(training)
        known = np.flatnonzero(is_out & np.isin(sample.codes, self.codes))
        self.validation_X, self.validation_codes = sample.X[known], sample.codes[known]
        self.validation_weights = sample.weights_of(known)
        self._features: tuple[Any, Any, Any] | None = None

    @property
    def is_useful(self) -> bool:
        return len(np.unique(self.codes)) > 1 and len(self.validation_codes) > 0

    def map_rows(self, feature_map: Any) -> tuple[Any, Any, Any]:
        """Return a map, and the rows to train on and to validate with.

        Nyström features are computed once for all penalties, since they take long.
        """
        if map_name(feature_map) != "nystroem":
            return feature_map, self.X, self.validation_X
        scale = feature_map.length_scale  # a refinement has one kernel
        if self._features is None or not np.array_equal(self._features[0], scale):
            feature_map.fit(self.X)
            features = feature_map.transform(self.X), feature_map.transform(self.validation_X)
            self._features = (scale, *features)
        return FunctionTransformer(), *self._features[1:]


class Refined(NamedTuple):
    """The best penalty and factor of the length scales, and their loss, as it was recorded."""

    factor: float
    C: float
    loss: float = math.inf
    point: TuningPoint | None = None


class Refinement:
    """Search around a bandwidth with the loss and the solver of the model.

    Ridge regression on few rows finds length scales that suit few rows: more rows, and other
    penalties, need shorter ones. If there are few rows, each quarter is used for validation in
    turn, since the last one alone would leave the choice to chance. `scales` are the initial length
    scales, for each quarter those learned without it; the search varies a common factor.
    """

    def __init__(
        self,
        choice: MapChoice,
        sample: Sample,
        scales: Sequence[Any],
        *,
        n_components: int,
        loss: str,
        seed: int,
        n_threads: int | None,
        n_rows: int,
        budget: float,
        points: list[TuningPoint],
        progress: Progress,
        memory: TuningMemory,
        lbfgs: bool = False,
    ) -> None:
        self._choice = choice
        self._lbfgs = lbfgs
        self._memory = memory
        self._n_rows = n_rows
        self._n_components = min(n_components, int(_REFINING_COMPONENTS * budget_factor(budget)))
        self._loss, self._seed, self._n_threads = loss, seed, n_threads
        self._points, self._progress = points, progress
        most = _MINIMIZED_ROWS if lbfgs else len(sample.Y)
        if choice.name == "nystroem":
            most = _REFINING_ROWS
        folds = [_Fold(sample, out, most) for out in sample.quarters()]
        useful = [place for place, fold in enumerate(folds) if fold.is_useful]
        self._folds = [folds[place] for place in useful]
        self._scales = [scales[place] for place in useful]
        self._tried: dict[tuple[float, float], TuningPoint] = {}

    def best(self, fixed_C: float | None, *, search_length_scale: bool) -> Refined:
        """Return the factor and C = 1 / (alpha n) with the smallest loss on the validation rows."""
        if not self._folds:
            return Refined(1.0, fixed_C or DEFAULT_C)
        C = fixed_C or self._better_C(1.0, DEFAULT_C, steps=(10.0, 0.1))
        factor = 1.0
        if search_length_scale:
            step = 2**-0.5
            if self._loss_at(factor * step, C) >= self._loss_at(factor, C):
                step = 2**0.5
            for _ in range(MOST_STEPS):
                if self._loss_at(factor * step, C) >= self._loss_at(factor, C):
                    break
                factor *= step
        if fixed_C is None:
            C = self._better_C(factor, C, steps=(10**0.5, 10**-0.5))
        return Refined(factor, C, self._loss_at(factor, C), self._tried[factor, C])

    def best_line(self, to_beat: float) -> Refined:
        """Return the best C of a kernel that is mostly linear, if its loss is close to the other.

        Squared errors, by which kernels are compared, do not show that a line separates classes.
        """
        C = DEFAULT_C / LINE
        if not self._folds:
            return Refined(1.0, C)
        if self._loss_at(1.0, C) < _FAR * to_beat:
            C = self._better_C(1.0, C, steps=(10.0, 0.1))
        if self._loss_at(1.0, C) < _NEAR * to_beat:
            C = self._better_C(1.0, C, steps=(10**0.5, 10**-0.5))
        return Refined(1.0, C, self._loss_at(1.0, C), self._tried[1.0, C])

    def n_components_of(self, _found: Refined) -> int:
        """Return the number of features that the loss was measured with."""
        return self._n_components

    def seconds_at_size(self, _found: Refined, n_components: int) -> float:
        """Return the estimated time of `best_at_size`; 0 if the search had that many features."""
        n_rows = max((len(fold.codes) for fold in self._folds), default=0)
        is_nystroem = self._choice.name == "nystroem"
        n_components = min(n_components, n_rows) if is_nystroem else n_components
        if n_components <= self._n_components:
            return 0.0
        landmarks = count_seconds_of_landmarks(n_components, n_rows) if is_nystroem else 0.0
        losses = 3 * _ROWS_TO_SEE * n_components * _SECONDS_OF_FEATURE
        return len(self._folds) * (landmarks + losses)

    def best_at_size(self, found: Refined, n_components: int) -> Refined:
        """Return the best C for all features of the model: more of them may need another penalty.

        The search uses fewer features.
        """
        if self.seconds_at_size(found, n_components) == 0:
            return found
        self._n_components = n_components
        if not self._folds:
            return found
        C = self._better_C(found.factor, found.C, steps=(10**0.5, 10**-0.5))
        return found._replace(C=C, point=self._tried.get((found.factor, C), found.point))

    def best_at_minimum(self, found: Refined) -> Refined:
        """Return the best C at the minimum of the objective, for the result of another refinement.

        Stopping gradient descent early acts as a penalty, so it would choose weaker ones.
        """
        if not self._folds:
            return found
        C = self._better_C(found.factor, found.C, steps=(10**0.5, 10**-0.5))
        return found._replace(C=C, point=self._tried.get((found.factor, C), found.point))

    def _better_C(self, factor: float, C: float, steps: tuple[float, ...]) -> float:
        """Return the best value that is reached from C by these factors, one after the other."""
        for step in steps:
            enough = _WORTH_IT if step > 1 else 1.0
            while 1e-6 < C < 1e6:
                if self._loss_at(factor, C * step) >= enough * self._loss_at(factor, C):
                    break
                C *= step
        return C

    def _loss_at(self, factor: float, C: float) -> float:
        if (factor, C) not in self._tried:
            scaled = [None if scale is None else scale * factor for scale in self._scales]
            step = ("loss", self._choice, scaled, C, self._n_components, self._lbfgs)
            pairs = zip(self._folds, scaled, strict=True)
            loss = self._memory.recall(
                step,
                lambda: float(np.mean([self._measure(fold, scale, C) for fold, scale in pairs])),
                read_number,
            )
            solver = "L-BFGS" if self._lbfgs else ""
            criterion = "log loss" if self._loss == "log_loss" else "error"
            # As the penalty of the final model: C is the same, and alpha depends on the rows.
            point = TuningPoint(
                typical_scale(scaled[-1]),
                1 / (C * self._n_rows),
                loss,
                criterion,
                kernel=self._choice.kernel_name,
                per_column=isinstance(scaled[-1], np.ndarray),
                n_components=self._n_components,
                variant=", ".join(filter(None, [self._choice.variant, solver])),
            )
            self._points.append(point)
            self._progress.advance(ONE_LOSS)
            self._tried[factor, C] = point
        return self._tried[factor, C].error

    def _measure(self, fold: _Fold, length_scale: Any, C: float) -> float:
        n = len(fold.codes)
        feature_map, X, validation_X = fold.map_rows(
            self._choice.make(length_scale, self._n_components, self._seed, self._n_threads)
        )
        quick = self._choice.name == "nystroem" and n <= _FEW_ROWS and self._loss == "log_loss"
        epochs = int(np.clip(-(-_ROWS_TO_SEE // n), 2, 100))
        learner = KernelClassifier(
            feature_map,
            loss=self._loss,
            alpha=1 / (C * n),
            solver="lbfgs" if quick else "sgd",
            tol=_TOLERANCE,
            epochs=epochs,
            random_state=self._seed,
            n_threads=self._n_threads,
        )
        if self._lbfgs:
            learner.set_params(**BRIEF_LBFGS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # near enough for a comparison
            learner.fit(X, fold.codes, sample_weight=fold.weights)
        codes, weights = fold.validation_codes, fold.validation_weights
        return _held_out_loss(learner, validation_X, codes, weights)


def _held_out_loss(
    learner: KernelClassifier, X: Any, codes: NDArray[Any], weights: _Array | None
) -> float:
    if learner.loss == "log_loss":
        places = np.searchsorted(learner.classes_, codes)
        logarithms = learner.predict_log_proba(X)
        return float(-np.average(logarithms[np.arange(len(codes)), places], weights=weights))
    return float(np.average(learner.predict(X) != codes, weights=weights))
