"""Scores of predictions, collected block by block in bounded memory, and errors of feature maps."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy  # scipy.special is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.targets import format_label
from kernelmill.errors import ArgumentError
from kernelmill.random import Stream
from kernelmill.workflows.records import Calibration, Coverage, Evaluation, KernelCheck, Ranking

__all__ = [
    "ClassifierScores",
    "RegressorScores",
    "Scores",
    "auc_interval",
    "class_names",
    "has_std",
    "make_scores",
    "measure_kernel_error",
    "wilson_interval",
]

_Array = NDArray[np.float64]

_SHOWN_ROWS = 2000
_COVERAGE_ROWS = 10_000  # a standard deviation costs as much as D predictions
_KERNEL_CHECK_ROWS = 45  # 990 pairs, enough for a plot
_AUC_BINS = 1 << 16
_RANKING_POINTS = 200
_CALIBRATION_BINS = 10
_NOMINAL = (0.5, 0.6827, 0.8, 0.9, 0.95, 0.99)


class Scores(ABC):
    """Scores of the predictions for rows whose targets are known.

    Scores of consecutive rows merge: those of the whole are the same to rounding, but plots may
    show other rows of a regressor.

    Parameters
    ----------
    learner : KernelClassifier or KernelRegressor
    """

    def __init__(self, learner: Any) -> None:
        self.n_rows = 0
        self._learner = learner
        self._begin = time.perf_counter()

    def __getstate__(self) -> dict[str, Any]:
        """Return the scores without the learner, which is large; they can only be merged."""
        return {**self.__dict__, "_learner": None}

    @abstractmethod
    def update(self, X: Any, target: NDArray[Any], weight: _Array | None = None) -> None:
        """Predict encoded rows and compare with their targets: numbers of classes, or values.

        Rows count with their weights in all metrics; counts of rows remain counts.
        """

    @abstractmethod
    def merge(self, later: Any) -> None:
        """Add the scores of rows that follow."""

    @abstractmethod
    def finish(self, source: str, notes: list[str]) -> Evaluation:
        """Return the evaluation of all rows."""

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin


def make_scores(learner: Any, classes: NDArray[Any] | None, first_row: int = 0) -> Scores:
    """Return the scores of a learner; `classes` are its labels, None for regression.

    `first_row` is the number of rows before, in scores that are merged with others.
    """
    if classes is None:
        return RegressorScores(learner, first_row)
    return ClassifierScores(learner, classes)


class ClassifierScores(Scores):
    """Errors and confusion matrix, AUC of two classes; log loss and calibration of probabilities.

    The AUC is computed from counts of scores in fine bins, in constant memory: ties within a bin
    count half.
    """

    def __init__(self, learner: Any, classes: NDArray[Any]) -> None:
        super().__init__(learner)
        self._classes = classes
        n = len(classes)
        self._confusion = np.zeros((n, n), np.int64)
        self._weighted = np.zeros((n, n))  # sums of weights
        self._squared_weights = np.zeros(n)  # of each class
        self._has_weights = False
        self._has_probabilities = learner.loss == "log_loss"
        self._log_loss = 0.0
        # Sums over bins: of rows, of weights, of probabilities and of correct predictions.
        self._bins = np.zeros((4, _CALIBRATION_BINS))
        self._ranks = np.zeros((2, _AUC_BINS)) if n == 2 else None

    def update(self, X: Any, target: NDArray[Any], weight: _Array | None = None) -> None:
        """Predict rows and compare with the numbers of their classes."""
        if len(target) == 0:
            return
        self._has_weights |= weight is not None
        weight = np.ones(len(target)) if weight is None else weight
        n = len(self._classes)
        if self._has_probabilities:
            probabilities = np.asarray(self._learner.predict_proba(X), np.float64)
            predicted = probabilities.argmax(axis=1)
            self._update_probabilities(probabilities, predicted, target, weight)
        else:
            scores = self._learner.decision_function(X)
            predicted = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
            if self._ranks is not None:
                # Differences of 0.1 % are seen from 1e-6 to 1e6.
                self._update_ranks(np.arcsinh(1e6 * scores.astype(np.float64)), target, weight)
        places = target * n + predicted
        self._confusion += np.bincount(places, minlength=n * n).reshape(n, n)
        self._weighted += np.bincount(places, weight, minlength=n * n).reshape(n, n)
        self._squared_weights += np.bincount(target, weight**2, minlength=n)
        self.n_rows += len(target)

    def _update_probabilities(
        self,
        probabilities: NDArray[Any],
        predicted: NDArray[Any],
        target: NDArray[Any],
        weight: _Array,
    ) -> None:
        rows = np.arange(len(target))
        self._log_loss -= float(weight @ np.log(probabilities[rows, target].clip(1e-15)))
        sure = probabilities[rows, predicted]
        bins = np.minimum((sure * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
        summed = (None, weight, weight * sure, weight * (predicted == target))
        for row, weights in enumerate(summed):
            self._bins[row] += np.bincount(bins, weights, _CALIBRATION_BINS)
        if self._ranks is not None:
            # Log odds: probabilities near 0 and 1 are ranked as finely as the others.
            odds = np.log(probabilities[:, 1].clip(1e-15)) - np.log(probabilities[:, 0].clip(1e-15))
            self._update_ranks(odds, target, weight)

    def _update_ranks(self, scores: _Array, target: NDArray[Any], weight: _Array) -> None:
        """Add rows by a score between about -35 and 35."""
        assert self._ranks is not None
        place = ((scores + 35) / 70 * (_AUC_BINS - 1)).clip(0, _AUC_BINS - 1).astype(int)
        for label in (0, 1):
            own = target == label
            self._ranks[label] += np.bincount(place[own], weight[own], minlength=_AUC_BINS)

    def merge(self, later: ClassifierScores) -> None:
        """Add the scores of rows that follow."""
        self.n_rows += later.n_rows
        self._confusion += later._confusion
        self._weighted += later._weighted
        self._has_weights |= later._has_weights
        self._squared_weights += later._squared_weights
        self._log_loss += later._log_loss
        self._bins += later._bins
        if self._ranks is not None and later._ranks is not None:
            self._ranks += later._ranks

    @property
    def n_effective(self) -> float:
        """The number of rows of equal weights whose error has the same variance (Kish 1965)."""
        total = float(self._weighted.sum())
        return total**2 / float(self._squared_weights.sum()) if total else 0.0

    def finish(self, source: str, notes: list[str]) -> Evaluation:
        """Return the evaluation of all rows."""
        seconds = self._seconds()
        total, right = float(self._weighted.sum()), float(np.trace(self._weighted))
        error = 1 - right / total if total else math.nan
        low, high = wilson_interval(error * self.n_effective, self.n_effective)
        of_class = self._weighted.sum(axis=1)
        there = of_class > 0
        recall = np.diag(self._weighted)[there] / of_class[there]
        metrics: dict[str, float | None] = {
            "error": error,
            "error_low": low,
            "error_high": high,
            "baseline_error": float(1 - of_class.max() / total) if total else math.nan,
            "balanced_error": float(1 - recall.mean()) if there.any() else math.nan,
        }
        calibration = None
        if self._has_probabilities and total:
            metrics["log_loss"] = self._log_loss / total
            metrics["baseline_log_loss"] = float(scipy.special.entr(of_class / total).sum())
            counts, sums, sure, correct = self._bins[:, self._bins[1] > 0]
            calibration = Calibration(
                (sure / sums).tolist(), (correct / sums).tolist(), counts.astype(int).tolist()
            )
        if self._ranks is not None:
            area = _area_under_curve(self._ranks)
            metrics["auc"] = area
            effective = of_class**2 / np.maximum(self._squared_weights, 1e-300)
            metrics["auc_low"], metrics["auc_high"] = auc_interval(area, *map(float, effective))
            metrics["average_precision"] = _average_precision(self._ranks)
        return Evaluation(
            task="classification",
            source=source,
            n_rows=self.n_rows,
            metrics=metrics,
            seconds=seconds,
            classes=class_names(self._classes),
            confusion=self._confusion.tolist(),
            calibration=calibration,
            notes=[*notes, *_note_on_weights(total)],
            ranking=self._rank() if self._has_probabilities else None,
            weighted_confusion=self._weighted.tolist() if self._has_weights else None,
        )

    def _rank(self) -> Ranking | None:
        """Return the recall against the share of the rows, for at most 200 thresholds."""
        if self._ranks is None or not self._ranks.any(axis=1).all():
            return None
        share, recall = _count_above(self._ranks)
        # Half of the thresholds are among the most probable rows, where rare classes are.
        half = _RANKING_POINTS // 2
        grid = np.r_[np.geomspace(share[0], 1.0, half), np.linspace(share[0], 1.0, half)]
        places = np.unique(np.searchsorted(share, grid).clip(0, len(share) - 1))
        positive = (class_names(self._classes) or [])[1]
        base_rate = float(self._ranks[1].sum() / self._ranks.sum())
        return Ranking(
            positive,
            base_rate,
            [round(float(each), 6) for each in share[places]],
            [round(float(each), 6) for each in recall[places]],
        )


class RegressorScores(Scores):
    """Squared and absolute errors, and the coverage of intervals by the first 10,000 rows."""

    def __init__(self, learner: Any, first_row: int = 0) -> None:
        super().__init__(learner)
        self._first_row = first_row
        self._squares = self._absolute = 0.0
        self._mean = self._spread = 0.0
        self._total = 0.0  # of the weights
        self._inside = np.zeros(len(_NOMINAL))
        self._n_covered, self._covered_weight = 0, 0.0
        self._with_std = True
        self._stream = Stream.from_seed(0).substream("rows to show")
        self._shown: list[NDArray[np.float64]] = []

    def update(self, X: Any, target: NDArray[Any], weight: _Array | None = None) -> None:
        """Predict rows and compare with their targets."""
        if len(target) == 0:
            return
        weight = np.ones(len(target)) if weight is None else weight
        if self.n_rows == 0:
            self._with_std = has_std(self._learner, X[:1])
        room = _COVERAGE_ROWS - self._first_row - self._n_covered if self._with_std else 0
        if room > 0:
            predicted, std = self._learner.predict(X[:room], return_std=True, include_noise=True)
            distance = np.abs(target[:room] - predicted) / np.maximum(std, 1e-300)
            limits = scipy.special.ndtri((1 + np.array(_NOMINAL)) / 2)
            self._inside += weight[:room] @ (distance[:, None] <= limits)
            self._n_covered += len(predicted)
            self._covered_weight += float(weight[:room].sum())
            if len(target) > room:
                predicted = np.concatenate([predicted, self._learner.predict(X[room:])])
        else:
            predicted = self._learner.predict(X)
        self._update_errors(predicted, target, weight)

    def _update_errors(self, predicted: NDArray[Any], target: NDArray[Any], weight: _Array) -> None:
        error = predicted - target
        self._squares += float(weight @ error**2)
        self._absolute += float(weight @ np.abs(error))
        ranks = self._stream.uniforms(len(target), start=self._first_row + self.n_rows)
        self._shown.append(np.column_stack([ranks, target, predicted]))
        total = float(weight.sum())
        mean = float(weight @ target) / total if total else 0.0
        self._add(len(target), total, mean, float(weight @ (target - mean) ** 2))

    def _add(self, n_rows: int, weight: float, mean: float, spread: float) -> None:
        """Add the weighted mean of targets and the sum of their squared deviations from it."""
        total = self._total + weight
        if weight > 0:
            shift = mean - self._mean
            self._spread += spread + shift**2 * self._total * weight / total
            self._mean += shift * weight / total
        self._total = total
        self.n_rows += n_rows
        if sum(map(len, self._shown)) > 2 * _SHOWN_ROWS:
            self._prune()

    def merge(self, later: RegressorScores) -> None:
        """Add the scores of rows that follow."""
        self._squares += later._squares
        self._absolute += later._absolute
        self._inside += later._inside
        self._n_covered += later._n_covered
        self._covered_weight += later._covered_weight
        self._shown += later._shown
        if later.n_rows:
            self._add(later.n_rows, later._total, later._mean, later._spread)

    def _prune(self) -> None:
        rows = np.concatenate(self._shown)
        self._shown = [rows[np.argsort(rows[:, 0], kind="stable")[:_SHOWN_ROWS]]]

    def finish(self, source: str, notes: list[str]) -> Evaluation:
        """Return the evaluation of all rows."""
        seconds = self._seconds()
        total = self._total or math.nan
        if self._shown:
            self._prune()
        shown = self._shown[0] if self._shown else np.empty((0, 3))
        coverage = None
        if self._covered_weight:
            coverage = Coverage(list(_NOMINAL), (self._inside / self._covered_weight).tolist())
        return Evaluation(
            task="regression",
            source=source,
            n_rows=self.n_rows,
            metrics={
                "rmse": math.sqrt(self._squares / total),
                "mae": self._absolute / total,
                "r2": 1 - self._squares / self._spread if self._spread > 0 else math.nan,
                "target_std": math.sqrt(self._spread / total),
            },
            seconds=seconds,
            coverage=coverage,
            actual=shown[:, 1].tolist(),
            predicted=shown[:, 2].tolist(),
            notes=[*notes, *_note_on_weights(self._total)],
        )


def _note_on_weights(total: float) -> list[str]:
    return [] if total else ["All rows have weight 0, so their error is not known."]


def class_names(classes: NDArray[Any] | None) -> list[str] | None:
    """Return the labels of the classes as strings; None for regression."""
    return None if classes is None else [format_label(label) for label in classes.tolist()]


def has_std(learner: Any, row: Any) -> bool:
    """Return whether the regressor predicts standard deviations; not all solvers and files do."""
    try:
        learner.predict(row, return_std=True)
    except ValueError:
        return False
    return True


def wilson_interval(n_wrong: float, n_rows: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of an error rate (Wilson 1927)."""
    if n_rows == 0:
        return math.nan, math.nan
    z = 1.959963984540054
    share = n_wrong / n_rows
    center = (share + z * z / (2 * n_rows)) / (1 + z * z / n_rows)
    half = z * math.sqrt(share * (1 - share) / n_rows + z * z / (4 * n_rows**2))
    half /= 1 + z * z / n_rows
    # Equal to 0 or 1 but for rounding where no row or every row is misclassified.
    return 0.0 if share == 0 else center - half, 1.0 if share == 1 else center + half


def auc_interval(auc: float, n_first: float, n_second: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of an AUC, given the numbers of rows of both classes.

    It is method 5 of Newcombe (2006), which like that of Wilson (1927) for an error has a width
    even if all pairs are in order.

    Examples
    --------
    >>> from kernelmill.workflows.evaluation import auc_interval
    >>> low, high = auc_interval(0.72, 800, 200)
    >>> round(low, 3), round(high, 3)
    (0.679, 0.757)
    """
    if math.isnan(auc):
        return math.nan, math.nan
    z = 1.959963984540054
    others = (n_first + n_second) / 2 - 1

    def is_outside(value: float) -> bool:
        pairs = 1 + others * ((1 - value) / (2 - value) + value / (1 + value))
        variance = value * (1 - value) * pairs / (n_first * n_second)
        return (auc - value) ** 2 > z * z * variance

    def find_limit(outside: float) -> float:
        inside = auc
        for _ in range(50):  # bisections
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if is_outside(middle) else (middle, outside)
        return inside

    # Equal to 0 or 1 but for rounding where no pair or every pair is in order.
    return 0.0 if auc == 0 else find_limit(0.0), 1.0 if auc == 1 else find_limit(1.0)


def _area_under_curve(ranks: _Array) -> float:
    """Return the fraction of pairs of the two classes that are in order; ties count half."""
    first, second = ranks
    if not (first.any() and second.any()):
        return math.nan
    below = np.cumsum(first) - first
    return float((second * (below + first / 2)).sum() / (first.sum() * second.sum()))


def _count_above(ranks: _Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the shares of rows and of the second class above each threshold, highest first."""
    rows = ranks.sum(axis=0)[::-1]
    filled = rows > 0
    share = np.cumsum(rows)[filled] / rows.sum()
    recall = np.cumsum(ranks[1][::-1])[filled] / ranks[1].sum()
    return share, recall


def _average_precision(ranks: _Array) -> float:
    """Return the mean precision over the recall, as a sum of steps, as in scikit-learn."""
    if not ranks.any(axis=1).all():
        return math.nan
    share, recall = _count_above(ranks)
    precision = recall / share * (ranks[1].sum() / ranks.sum())
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def measure_kernel_error(fitted_map: Any, X: Any) -> KernelCheck | None:
    """Compare estimated with exact kernel values, for all pairs of the first rows of X."""
    from kernelmill.diagnostics import kernel_errors  # noqa: PLC0415 # predictions do without

    X = X[:_KERNEL_CHECK_ROWS]
    if X.shape[0] < 2 or not hasattr(fitted_map, "exact_kernel"):
        return None
    try:
        errors = kernel_errors(fitted_map, X, n_pairs=None, n_seeds=None)
    except ArgumentError:  # a map without a known kernel, such as one with custom coefficients
        return None
    return KernelCheck(
        exact=errors.exact[0].tolist(),
        estimated=errors.estimated[0].tolist(),
        rms_error=errors.rms.value,
        n_components=errors.n_components,
    )
