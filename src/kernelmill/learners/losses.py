r"""The objectives of classifiers: the mean loss of the scores plus an L2 penalty on the weights.

Two classes have one score f with targets t = ±1. More classes have a score each: "log_loss" is
then softmax, and the other losses separate one class from the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.special is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.learners.blocks import Block
from kernelmill.learners.features import Features

__all__ = [
    "DEFAULT_C",
    "LOSSES",
    "ClassifierFit",
    "Loss",
    "Objective",
    "classes_of_scores",
    "default_alpha",
    "log_probabilities_of_scores",
    "probabilities_of_scores",
    "signs_of_classes",
]

DEFAULT_C, _MOST_C = 10.0, 1000.0
"""The least C = 1 / (alpha n) of a classifier that is given no alpha, and the most."""

_ROWS_PER_C = 100
_ALPHA_OF_UNKNOWN_ROWS = 1e-6


def default_alpha(n_rows: int | None, loss: str = "log_loss") -> float:
    """Return the penalty of a classifier that is given none.

    It stands for C = 10. With the log loss, C is n / 100 from 1000 rows on and 1000 from 100,000:
    many rows, each seen a few times, do not overfit. For an unknown number of rows it is 1e-6.

    Examples
    --------
    >>> from kernelmill.learners import default_alpha
    >>> default_alpha(1000), default_alpha(100_000), default_alpha(None)
    (0.0001, 1e-08, 1e-06)
    """
    if n_rows is None:
        return _ALPHA_OF_UNKNOWN_ROWS
    C = DEFAULT_C
    if loss == "log_loss":
        C = float(np.clip(n_rows / _ROWS_PER_C, DEFAULT_C, _MOST_C))
    return 1 / (C * n_rows)


class Loss(ABC):
    """A convex function of the scores of a row and of its class."""

    smooth = True

    @abstractmethod
    def curvature(self, n_classes: int) -> float:
        """Return the second derivative by a score that step sizes are based on."""

    @abstractmethod
    def first_scores(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best constant scores, given the share of each class."""

    @abstractmethod
    def derivatives(
        self, scores: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the loss of each row, and its derivatives by the scores.

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            May be overwritten.
        codes : ndarray of int of shape (n,)
            The number of the class of each row.
        """


def signs_of_classes(codes: NDArray[np.intp], n_outputs: int, dtype: Any) -> NDArray[Any]:
    """Return targets of +1 for the class of a row and -1 for the others."""
    if n_outputs == 1:
        return (2 * codes - 1).astype(dtype)[:, None]
    signs = np.full((len(codes), n_outputs), -1, dtype)
    signs[np.arange(len(codes)), codes] = 1
    return signs


class LogLoss(Loss):
    r""":math:`\log(1 + e^{-tf})`, and :math:`\log \sum_c e^{f_c} - f_y` for more than two."""

    def curvature(self, n_classes: int) -> float:
        # p (1 - p) where all classes are alike. The largest possible value, 1/4 or 1/2, would make
        # steps too small for many classes; derivatives are bounded, so larger steps do no harm.
        return max(1 / 8, (1 - 1 / n_classes) / n_classes)

    def first_scores(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = np.log(shares)
        return logs - logs.mean() if len(shares) > 2 else logs[1:] - logs[:1]

    def derivatives(
        self, scores: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if scores.shape[1] == 1:
            signs = signs_of_classes(codes, 1, scores.dtype)
            margins = signs * scores
            return np.logaddexp(0, -margins)[:, 0], -signs * scipy.special.expit(-margins)
        rows = np.arange(len(codes))
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[rows, codes].copy()
        np.exp(scores, out=scores)
        totals = scores.sum(axis=1, keepdims=True)
        scores /= totals
        scores[rows, codes] -= 1
        return np.log(totals[:, 0]) - own, scores


class Squared(Loss):
    r""":math:`(t - f)^2 / 2`: least squares."""

    def curvature(self, n_classes: int) -> float:
        return 1.0

    def first_scores(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return 2 * (shares if len(shares) > 2 else shares[1:]) - 1

    def derivatives(
        self, scores: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        scores -= signs_of_classes(codes, scores.shape[1], scores.dtype)
        return 0.5 * np.einsum("ij,ij->i", scores, scores), scores


class SquaredHinge(Loss):
    r""":math:`\max(0, 1 - tf)^2`: the loss of LinearSVC."""

    def curvature(self, n_classes: int) -> float:
        return 2.0

    def first_scores(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        # The minimum of p (1 - f)² + (1 - p) (1 + f)² lies between -1 and 1.
        return 2 * (shares if len(shares) > 2 else shares[1:]) - 1

    def derivatives(
        self, scores: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        signs = signs_of_classes(codes, scores.shape[1], scores.dtype)
        gaps = np.maximum(1 - signs * scores, 0)
        return np.einsum("ij,ij->i", gaps, gaps), -2 * signs * gaps


class Hinge(Loss):
    r""":math:`\max(0, 1 - tf)`: the loss of SVC."""

    smooth = False

    def curvature(self, n_classes: int) -> float:
        return 1.0  # the hinge has no curvature; this value allows steps that cross a margin of 1

    def first_scores(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        # The minimum of p max(0, 1 - f) + (1 - p) max(0, 1 + f).
        return np.where((shares if len(shares) > 2 else shares[1:]) > 0.5, 1.0, -1.0)

    def derivatives(
        self, scores: NDArray[Any], codes: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        signs = signs_of_classes(codes, scores.shape[1], scores.dtype)
        gaps = np.maximum(1 - signs * scores, 0)
        return gaps.sum(axis=1), -signs * (gaps > 0)


LOSSES: dict[str, Loss] = {
    "log_loss": LogLoss(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "squared": Squared(),
}


@dataclass(frozen=True)
class Objective:
    """The mean loss plus alpha / 2 times the squared norm of the weights without the intercept.

    Attributes
    ----------
    features : callable
        Computes the features of checked rows.
    n_features, dtype
        Of its output.
    loss : Loss
    alpha : float
    n_classes : int
    n_threads : int, default=None
        Of products with the features.
    """

    features: Features
    n_features: int
    dtype: Any
    loss: Loss
    alpha: float
    n_classes: int
    n_threads: int | None = None

    @property
    def n_outputs(self) -> int:
        """One score for two classes, otherwise one for each."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def curvature(self) -> float:
        """The curvature of the loss."""
        return self.loss.curvature(self.n_classes)

    def first_scores(self, block: Block) -> NDArray[np.float64]:
        """Return constant scores to start from, by the classes of these rows."""
        counts = np.bincount(block.y, block.weight, self.n_classes).astype(np.float64)
        total = float(counts.sum())
        typical = total / len(block.y)  # one more row of each class: none is impossible
        if not typical > 0:
            counts, total, typical = np.ones(self.n_classes), float(self.n_classes), 1.0
        return self.loss.first_scores((counts + typical) / (total + self.n_classes * typical))

    def loss_of(self, scores: NDArray[np.float64], block: Block) -> float:
        """Return the mean loss of these rows if all of them have the same scores."""
        counts = np.bincount(block.y, block.weight, self.n_classes).astype(np.float64)
        each = np.tile(scores, (self.n_classes, 1))
        losses = self.loss.derivatives(each, np.arange(self.n_classes))[0]
        return float(losses @ counts / max(float(counts.sum()), np.finfo(np.float64).tiny))


def classes_of_scores(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Return the class of the largest score; with two classes, by the sign of the one score."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(scores.argmax(axis=1))


def probabilities_of_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """Return the probability of each class: the logistic function or softmax of the scores."""
    if scores.shape[1] == 1:
        return np.hstack([scipy.special.expit(-scores), scipy.special.expit(scores)])
    return np.asarray(scipy.special.softmax(scores, axis=1))


def log_probabilities_of_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithms of the probabilities; the scores are overwritten."""
    if scores.shape[1] == 1:
        return np.hstack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


class ClassifierFit(NamedTuple):
    """The result of a solver for classifiers.

    Attributes
    ----------
    coef, intercept : ndarray of shapes (n_outputs, D) and (n_outputs,)
    loss_curve, validation_curve : sequence of float
        By epochs or iterations.
    state
        What the solver needs to add more rows, if it can.
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    loss_curve: Sequence[float] = ()
    validation_curve: Sequence[float] = ()
    state: Any = None
