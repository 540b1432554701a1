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
        scores = Z @ last[:-1]
        scores += constant * last[-1]
        losses, derivatives = self.loss.derivatives(scores, codes)
        gradient = np.empty_like(last)
        np.matmul(Z.T, derivatives, out=gradient[:-1])
        gradient[-1] = constant * derivatives.sum(axis=0)
        gradient /= n
        if self.alpha:
            gradient[:-1] += self.alpha * last[:-1]
        vectors = self.spectrum.vectors
        if vectors.shape[1]:
            gradient -= vectors @ (self._damping * (vectors.T @ gradient))
        gradient *= self._step_size(weights, Z)
        last -= gradient
        weights.n_steps += 1
        weights.n_rows += n
        if self.fixed_step is None:
            share = (_AVERAGING + 1) / (weights.n_steps + _AVERAGING)
            np.subtract(last, weights.average, out=gradient)
            gradient *= share
            weights.average += gradient
        else:
            weights.average[...] = last
        return float(losses.sum(dtype=np.float64))

    def _step_size(self, weights: Weights, Z: NDArray[Any]) -> float:
        r"""Half of the largest stable step, and less as time goes on.

        For least squares in mean square: with :math:`\beta` the largest :math:`z^T P z` and
        :math:`\lambda` the largest eigenvalue that P leaves, steps below
        :math:`2 b / (h (\beta + (b - 1) \lambda))` are (Ma, Bassily & Belkin, 2018).
        """
        if self.fixed_step is not None:
            return self.fixed_step
        n, spectrum = len(Z), self.spectrum
        steepest = self.curvature * (spectrum.longest_left + (n - 1) * spectrum.largest_left)
        size = n / (steepest + n * self.alpha)
        size /= np.sqrt(1 + weights.n_rows / self.decay_rows)
        # A row longer than any of the sample must not throw the weights about.
        longest = float(np.einsum("ij,ij->i", Z, Z).max())
        return float(size * min(1.0, spectrum.longest / max(longest, 1e-300)))
