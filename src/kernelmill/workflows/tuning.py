"""Tuning of the length scale and the penalty on a sample of the rows, of which a quarter validates.

Length scales are compared by ridge regression, for classification on the signs of the classes:
this takes a fraction of the time of another loss. For a classifier, the search continues with its
own loss on more rows (docs/decisions/014 has the measurements).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelmill.learners import DEFAULT_C, KernelClassifier
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import one_blas_thread
from kernelmill.workflows.records import TuningPoint

__all__ = ["TunedSettings", "tune_settings"]

_TUNING_COMPONENTS = 1024
_MOST_COARSE_ROWS = 8000
_MOST_RIDGE_ROWS = 20_000
_COARSE = (-2.0, -1.0, 0.0, 1.0, 2.0)  # binary logarithms of length scale / median distance
_FARTHEST = 4
_RIDGES = tuple((10.0 ** np.arange(-5.0, 2.5, 0.5)).tolist())
_REFINING_COMPONENTS = 2048
_ROWS_TO_SEE = 40_000
_MOST_STEPS = 6
_WORTH_IT = 0.995  # a penalty is replaced only for at least half a percent of the loss


@dataclass(frozen=True)
class TunedSettings:
    """The best settings, and all settings that were tried."""

    length_scale: float | None
    alpha: float
    points: list[TuningPoint]


@dataclass(frozen=True)
class Sample:
    """Training rows, followed by validation rows."""

    X: Any
    Y: NDArray[np.float64]  # signs of classes, or centered values
    codes: NDArray[Any] | None  # of classes
    n_train: int

    @classmethod
    def of(cls, X: Any, target: NDArray[Any], n_classes: int | None) -> Sample:
        """A sample of which the last quarter validates."""
        n_train = max(1, (3 * len(target)) // 4)
        if n_classes is None:
            return cls(X, np.asarray(target, np.float64)[:, None], None, n_train)
        signs = np.where(target[:, None] == np.arange(n_classes), 1.0, -1.0)
        return cls(X, signs[:, 1:] if n_classes == 2 else signs, target, n_train)

    def first(self, n_rows: int) -> Sample:
        """The first training rows and the first validation rows, `n_rows` in all."""
        total = len(self.Y)
        if n_rows >= total:
            return self
        kept = np.r_[: (3 * n_rows) // 4, self.n_train : self.n_train + n_rows // 4]
        kept = kept[kept < total]
        codes = None if self.codes is None else self.codes[kept]
        return Sample(self.X[kept], self.Y[kept], codes, (3 * n_rows) // 4)


def tune_settings(
    make_map: Callable[[float | None, int | None], Any],
    X: Any,
    target: NDArray[Any],
    *,
    n_classes: int | None,
    n_components: int,
    length_scale: float | None,
    has_length_scale: bool,
    alpha: float | None,
    loss: str,
    n_rows: int,
    seed: int,
    progress: Progress,
) -> TunedSettings:
    """Choose the length scale and the penalty that are not given.

    Parameters
    ----------
    make_map : callable
        Returns an unfitted map for a length scale (None if it has none) and a number of features.
    X, target
        The sample, in random order.
    n_classes : int or None
        None for regression.
    length_scale, alpha : float or None
        Given values are kept.
    n_rows : int
        The number of rows the model will be trained on: the penalty of a classifier is per row.
    """
    sample = Sample.of(X, target, n_classes)
    points: list[TuningPoint] = []
    ridge = 1.0
    is_given = length_scale is not None
    components = min(n_components, _TUNING_COMPONENTS)
    progress.start("Tuning", None, "settings")
    if length_scale is None and has_length_scale:
        search = _Search(make_map, sample.first(_MOST_RIDGE_ROWS), components, points, progress)
        length_scale, ridge = search.best_length_scale(refine=n_classes is None)
    elif alpha is None and n_classes is None:
        search = _Search(make_map, sample.first(_MOST_RIDGE_ROWS), components, points, progress)
        _, ridge = search.at(length_scale)
    if n_classes is None:
        return TunedSettings(length_scale, ridge if alpha is None else alpha, points)
    refinement = _Refinement(make_map, sample, n_components, loss, seed, n_rows, points, progress)
    fixed_C = None if alpha is None else 1 / max(alpha * n_rows, 1e-300)
    is_free = has_length_scale and not is_given
    length_scale, C = refinement.best(length_scale, fixed_C, search_length_scale=is_free)
    return TunedSettings(length_scale, 1 / (C * n_rows) if alpha is None else alpha, points)


class _Search:
    """Search over length scales by ridge regression, from coarse to fine."""

    def __init__(
        self,
        make_map: Callable[[float | None, int | None], Any],
        sample: Sample,
        n_components: int,
        points: list[TuningPoint],
        progress: Progress,
    ) -> None:
        self._make_map = make_map
        self._sample = sample
        self._n_components = n_components
        self._points = points
        self._progress = progress

    def best_length_scale(self, *, refine: bool) -> tuple[float, float]:
        """The best length scale and its ridge; to a factor of two unless `refine`."""
        unit = median_distance(self._sample.X[:1000])
        coarse = self._sample.first(_MOST_COARSE_ROWS)
        tried = {step: self.at(unit * 2.0**step, coarse) for step in _COARSE}
        while True:  # until the best one is not at the edge, up to a limit
            best = min(tried, key=lambda step: tried[step][0])
            beyond = best + (1.0 if best == max(tried) else -1.0)
            if best not in (min(tried), max(tried)) or abs(beyond) > _FARTHEST:
                break
            tried[beyond] = self.at(unit * 2.0**beyond, coarse)
        if not refine:
            return unit * 2.0**best, tried[best][1]
        # Around it with all rows: more rows need shorter length scales.
        fine = tried if coarse is self._sample else {}
        for step in (best - 1, best - 0.5, best, best + 0.5):
            if step not in fine:
                fine[step] = self.at(unit * 2.0**step)
        best = min(fine, key=lambda step: fine[step][0])
        return unit * 2.0**best, fine[best][1]

    def at(self, length_scale: float | None, sample: Sample | None = None) -> tuple[float, float]:
        """The smallest mean squared error with this length scale, and its ridge."""
        sample = self._sample if sample is None else sample
        fitted = self._make_map(length_scale, self._n_components).fit(sample.X[: sample.n_train])
        # On a busy machine, BLAS threads spend more time waiting for each other than working.
        with one_blas_thread():
            errors = _ridge_errors(fitted, sample, _RIDGES)
        best = int(np.argmin(errors))
        for ridge, error in zip(_RIDGES, errors, strict=True):
            if math.isfinite(error):
                self._points.append(TuningPoint(length_scale or 0.0, ridge, error))
        self._progress.advance(1)
        return float(errors[best]), _RIDGES[best]


def _ridge_errors(fitted: Any, sample: Sample, ridges: Sequence[float]) -> list[float]:
    """Mean squared errors on the validation rows, for each ridge."""
    Z = np.asarray(fitted.transform(sample.X), np.float64)
    n = sample.n_train
    mean, target_mean = Z[:n].mean(axis=0), sample.Y[:n].mean(axis=0)
    Z -= mean
    gram = Z[:n].T @ Z[:n]
    moments = Z[:n].T @ (sample.Y[:n] - target_mean)
    validation = sample.Y[n:] - target_mean
    diagonal = gram.diagonal().copy()
    errors = []
    for ridge in ridges:
        np.fill_diagonal(gram, diagonal + ridge)
        try:
            weights = cho_solve(cho_factor(gram, lower=True, check_finite=False), moments)
        except LinAlgError:
            errors.append(math.inf)
            continue
        errors.append(float(np.mean((Z[n:] @ weights - validation) ** 2)))
    return [error if math.isfinite(error) else math.inf for error in errors]


class _Refinement:
    """Search around a length scale with the loss and the solver of the model.

    Ridge regression on few rows finds length scales that suit few rows: more rows, and other
    penalties, need shorter ones.
    """

    def __init__(
        self,
        make_map: Callable[[float | None, int | None], Any],
        sample: Sample,
        n_components: int,
        loss: str,
        seed: int,
        n_rows: int,
        points: list[TuningPoint],
        progress: Progress,
    ) -> None:
        self._make_map = make_map
        self._n_rows = n_rows
        self._n_components = min(n_components, _REFINING_COMPONENTS)
        self._loss, self._seed = loss, seed
        self._points, self._progress = points, progress
        n = sample.n_train
        assert sample.codes is not None
        self._X, self._codes = sample.X[:n], sample.codes[:n]
        known = np.flatnonzero(np.isin(sample.codes[n:], self._codes))
        self._validation_X, self._validation_codes = sample.X[n:][known], sample.codes[n:][known]
        self._losses: dict[tuple[float | None, float], float] = {}

    def best(
        self, length_scale: float | None, fixed_C: float | None, *, search_length_scale: bool
    ) -> tuple[float | None, float]:
        """The length scale and C = 1 / (alpha n) with the smallest loss on the validation rows."""
        if len(np.unique(self._codes)) < 2 or len(self._validation_codes) == 0:
            return length_scale, fixed_C or DEFAULT_C
        C = fixed_C or self._better_C(length_scale, DEFAULT_C)
        if length_scale is not None and search_length_scale:
            step = 2**-0.5
            if self._loss_at(length_scale * step, C) >= self._loss_at(length_scale, C):
                step = 2**0.5
            for _ in range(_MOST_STEPS):
                if self._loss_at(length_scale * step, C) >= self._loss_at(length_scale, C):
                    break
                length_scale *= step
            if fixed_C is None:
                C = self._better_C(length_scale, C)
        return length_scale, C

    def _better_C(self, length_scale: float | None, C: float) -> float:
        """The best value that is reached from C by factors of ten."""
        factor = 10.0
        if self._loss_at(length_scale, C * factor) >= self._loss_at(length_scale, C):
            factor = 0.1
        while 1e-2 < C < 1e5:
            if self._loss_at(length_scale, C * factor) >= _WORTH_IT * self._loss_at(
                length_scale, C
            ):
                break
            C *= factor
        return C

    def _loss_at(self, length_scale: float | None, C: float) -> float:
        if (length_scale, C) not in self._losses:
            n = len(self._codes)
            learner = KernelClassifier(
                self._make_map(length_scale, self._n_components),
                loss=self._loss,
                alpha=1 / (C * n),
                epochs=int(np.clip(-(-_ROWS_TO_SEE // n), 2, 100)),
                random_state=self._seed,
            )
            learner.fit(self._X, self._codes)
            loss = _held_out_loss(learner, self._validation_X, self._validation_codes)
            criterion = "log loss" if self._loss == "log_loss" else "error"
            # As the penalty of the final model: C is the same, and alpha depends on the rows.
            point = TuningPoint(length_scale or 0.0, 1 / (C * self._n_rows), loss, criterion)
            self._points.append(point)
            self._progress.advance(1)
            self._losses[length_scale, C] = loss
        return self._losses[length_scale, C]


def _held_out_loss(learner: KernelClassifier, X: Any, codes: NDArray[Any]) -> float:
    if learner.loss == "log_loss":
        places = np.searchsorted(learner.classes_, codes)
        logarithms = learner.predict_log_proba(X)
        return float(-logarithms[np.arange(len(codes)), places].mean())
    return float(np.mean(learner.predict(X) != codes))


def median_distance(X: Any) -> float:
    """The median distance between different rows."""
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    rows = rows.astype(np.float64)
    squares = (rows**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * rows @ rows.T
    upper = distances[np.triu_indices(len(rows), 1)]
    positive = upper[upper > 1e-9 * max(float(squares.max()), 1e-300)]
    return float(np.sqrt(np.median(positive))) if len(positive) else 1.0
