"""Mini-batch stochastic gradient descent on features, preconditioned and averaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.losses import Loss
from kernelmill.learners.spectrum import TopSpectrum

__all__ = ["Descent", "Weights"]

_AVERAGING = 8.0


@dataclass
class Weights:
    """What descent has arrived at, and how far it has come.

    Attributes
    ----------
    last : ndarray of shape (D + 1, n_outputs)
        Weights of the features and, below them, of the constant.
    average : ndarray of shape (D + 1, n_outputs)
        Their average over the steps, recent ones counting more (polynomial decay averaging, Shamir
        & Zhang, 2013): what predictions use.
    n_steps, n_rows : int
        Steps taken, and rows seen in them.
    """

    last: NDArray[Any]
    average: NDArray[Any]
    n_steps: int = 0
    n_rows: int = 0

    @classmethod
    def constant_scores(
        cls, n_features: int, scores: NDArray[np.float64], constant: float, dtype: Any
    ) -> Self:
        """Weights that give every row these scores."""
        start = np.zeros((n_features + 1, len(scores)), dtype)
        start[-1] = scores / constant
        return cls(start, start.copy())

    def copy(self) -> Weights:
        """Weights of their own."""
        return Weights(self.last.copy(), self.average.copy(), self.n_steps, self.n_rows)


@dataclass
class Descent:
    """How steps are made.

    The objective is the mean loss plus ``alpha / 2`` times the squared norm of the weights, the
    intercept left out. The step size falls with the square root of the rows seen.

    Parameters
    ----------
    loss : Loss
    alpha : float
    spectrum : TopSpectrum
        Without eigenvectors in it, descent is plain.
    curvature : float
        Of the loss: see `Loss.curvature`.
    decay_rows : int
        After so many rows steps are shorter by the square root of two.
    fixed_step : float, default=None
        Instead of steps from the spectrum: constant ones, without averaging.
    """

    loss: Loss
    alpha: float
    spectrum: TopSpectrum
    curvature: float
    decay_rows: int
    fixed_step: float | None = None
    _damping: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        spectrum = self.spectrum
        self._damping = spectrum.damping.astype(spectrum.vectors.dtype)[:, None]

    def step(self, weights: Weights, Z: NDArray[Any], codes: NDArray[np.intp]) -> float:
        """Improve the weights by a batch; returns the sum of its losses before that."""
        n = len(Z)
        last, constant = weights.last, self.spectrum.constant
        losses, derivatives = self.loss.derivatives(self._scores(last, Z), codes)
        move = np.empty_like(last)
        np.matmul(Z.T, derivatives, out=move[:-1])
        move[-1] = constant * derivatives.sum(axis=0)
        move /= n
        if self.alpha:
            move[:-1] += self.alpha * last[:-1]
        vectors = self.spectrum.vectors
        if vectors.shape[1]:
            move -= vectors @ (self._damping * (vectors.T @ move))
        if self.fixed_step is None:
            move *= self._step_size(n, weights.n_rows)
            move *= self._share_that_helps(last, move, derivatives, self._scores(move, Z))
        else:
            move *= self.fixed_step
        last -= move
        weights.n_steps += 1
        weights.n_rows += n
        if self.fixed_step is None:
            np.subtract(last, weights.average, out=move)
            move *= (_AVERAGING + 1) / (weights.n_steps + _AVERAGING)
            weights.average += move
        else:
            weights.average[...] = last
        return float(losses.sum(dtype=np.float64))

    def _scores(self, weights: NDArray[Any], Z: NDArray[Any]) -> NDArray[Any]:
        scores: NDArray[Any] = Z @ weights[:-1]
        scores += self.spectrum.constant * weights[-1]
        return scores

    def _step_size(self, n: int, n_rows: int) -> float:
        r"""Half of the largest stable step, and less as time goes on.

        For least squares in mean square: with :math:`\beta` the largest :math:`z^T P z` and
        :math:`\lambda` the largest eigenvalue that P leaves, steps below
        :math:`2 b / (h (\beta + (b - 1) \lambda))` are (Ma, Bassily & Belkin, 2018).
        """
        spectrum = self.spectrum
        steepest = self.curvature * (spectrum.longest_left + (n - 1) * spectrum.largest_left)
        decay = np.sqrt(1 + n_rows / self.decay_rows)
        return float(n / (steepest + n * self.alpha) / decay)

    def _share_that_helps(
        self,
        last: NDArray[Any],
        move: NDArray[Any],
        derivatives: NDArray[Any],
        change: NDArray[Any],
    ) -> float:
        """How much of a move to make: no more than lowers the objective of its own batch the most.

        Rows unlike those of the sample, which can be longer or in directions that P damps too
        little, would throw the weights about otherwise.
        """
        n = len(change)
        gain = float(np.vdot(derivatives, change)) / n
        bend = self.curvature * float(np.vdot(change, change)) / n
        if self.alpha:
            gain += self.alpha * float(np.vdot(last[:-1], move[:-1]))
            bend += self.alpha * float(np.vdot(move[:-1], move[:-1]))
        return gain / bend if bend > gain > 0 else 1.0
