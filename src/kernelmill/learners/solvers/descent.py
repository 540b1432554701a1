"""Steps of descent: the order of the rows, the weights, and what a step does to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.learners.few_outputs import lay_out_columns, lay_out_rows, score_rows
from kernelmill.learners.losses import Loss
from kernelmill.learners.solvers.spectrum import TopSpectrum
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = ["Descent", "Weights", "held_out_rows", "visiting_order"]

_AVERAGING = 8.0
# The length of steps, in halves of the longest stable ones, is 1.6 / (1 + 1.2 q) where a share q of
# the loss remains, which is a measure of the noise of gradients.
_LENGTH, _NOISE = 1.6, 1.2
_RECENT_ROWS = 1 << 13  # over which the loss is averaged


@dataclass
class Weights:
    """The weights of descent, and the number of its steps.

    Attributes
    ----------
    last : ndarray of shape (D + 1, n_outputs)
        Weights of the features and, below them, of the constant.
    average : ndarray of shape (D + 1, n_outputs)
        Their average over the steps, recent ones counting more (polynomial decay averaging, Shamir
        & Zhang, 2013): what predictions use.
    n_steps, n_rows : int
        Steps taken, and rows seen in them.
    first_loss, recent_loss : float
        The mean loss of constant scores, and of recent rows before their steps; 0 if not known.

    Notes
    -----
    Columns are contiguous, as native products take them.
    """

    last: NDArray[Any]
    average: NDArray[Any]
    n_steps: int = 0
    n_rows: int = 0
    first_loss: float = 0.0
    recent_loss: float = 0.0

    def __post_init__(self) -> None:
        self.last, self.average = lay_out_columns(self.last), lay_out_columns(self.average)

    @classmethod
    def constant_scores(
        cls, n_features: int, scores: NDArray[np.float64], loss: float, constant: float, dtype: Any
    ) -> Self:
        """Return weights that give every row these scores, with this mean loss."""
        start = np.zeros((n_features + 1, len(scores)), dtype)
        start[-1] = scores / constant
        return cls(start, start.copy(), first_loss=loss)

    def copy(self) -> Weights:
        """Return a copy."""
        return replace(self, last=self.last.copy(), average=self.average.copy())

    @property
    def unexplained(self) -> float:
        """The share of the loss of constant scores that remains, 1 if it is not known."""
        if not 0 < self.first_loss < np.inf:
            return 1.0
        return min(1.0, self.recent_loss / self.first_loss)

    def count(self, losses: float, n_rows: int) -> None:
        """Count a step on rows with this sum of losses."""
        self.n_steps += 1
        self.n_rows += n_rows
        self.recent_loss += min(1.0, n_rows / _RECENT_ROWS) * (losses / n_rows - self.recent_loss)


@dataclass
class Descent:
    """One step of descent on a batch.

    The objective is the mean loss plus ``alpha / 2`` times the squared norm of the weights, the
    intercept left out. The step size falls with the square root of the rows seen, and with
    the share of the loss that remains.

    Parameters
    ----------
    loss : Loss
    alpha : float
    spectrum : TopSpectrum
        Without eigenvectors, descent is plain.
    curvature : float
        Of the loss: see `Loss.curvature`.
    decay_rows : int
        The number of rows after which steps are shorter by the square root of two.
    fixed_step : float, default=None
        Instead of steps from the spectrum: constant ones, without averaging.
    n_threads : int, default=None
    limited : bool, default=True
        Whether no step is longer than the one that lowers the objective of its batch the most.
        Otherwise a product is saved.

    Attributes
    ----------
    has_shortened : bool
        Whether this limit has shortened a step.
    """

    loss: Loss
    alpha: float
    spectrum: TopSpectrum
    curvature: float
    decay_rows: int
    fixed_step: float | None = None
    n_threads: int | None = None
    limited: bool = True
    has_shortened: bool = field(init=False, default=False)
    _directions: NDArray[Any] = field(init=False)
    _damping: NDArray[Any] = field(init=False)
    _move: NDArray[Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        spectrum = self.spectrum
        self._directions = lay_out_columns(spectrum.vectors).T
        self._damping = spectrum.damping.astype(spectrum.vectors.dtype)

    def step(
        self,
        weights: Weights,
        Z: NDArray[Any],
        codes: NDArray[np.intp],
        scores: NDArray[Any] | None = None,
    ) -> float:
        """Improve the weights by a batch; return the sum of its losses before that.

        `scores` are the products of Z with the weights, without the constant, if they are known;
        they are overwritten.
        """
        n, Z = len(Z), lay_out_rows(Z)
        last, average = weights.last.T, weights.average.T
        if scores is None:
            scores = score_rows(Z, last[:, :-1], self.n_threads)
        scores += self.spectrum.constant * last[:, -1]
        losses, derivatives = self.loss.derivatives(scores, codes)
        if self._move is None:  # not a new array in each step, whose pages would be new as well
            self._move = lay_out_columns(np.zeros_like(last.T, order="C")).T
        if self.fixed_step is None:
            # The share of a step that lowers the objective of its batch the most is taken. Rows
            # unlike those of the sample can be longer, or lie in directions that P damps too
            # little. Without this limit they would make descent unstable.
            step = self._step_size(n, weights)
            curvature = self.curvature if self.limited else 0.0
            averaging = (_AVERAGING + 1) / (weights.n_steps + 1 + _AVERAGING)
        else:
            step, curvature, averaging = self.fixed_step, 0.0, 1.0
        share = _native.descend(
            Z,
            np.divide(derivatives, n, order="C"),
            self._directions,
            self._damping,
            last,
            average,
            self._move,
            step,
            self.alpha,
            self.spectrum.constant,
            curvature,
            averaging,
            resolve_threads(self.n_threads),
        )
        self.has_shortened |= share < 1
        total = float(losses.sum(dtype=np.float64))
        weights.count(total, n)
        return total

    def _step_size(self, n: int, weights: Weights) -> float:
        r"""Return 0.8 of the largest stable step, less for large losses and as more rows are seen.

        For least squares in mean square: with :math:`\beta` the largest :math:`z^T P z` and
        :math:`\lambda` the largest eigenvalue that P leaves, steps below
        :math:`2 b / (h (\beta + (b - 1) \lambda))` are (Ma, Bassily & Belkin, 2018).
        """
        spectrum = self.spectrum
        steepest = self.curvature * (spectrum.longest_left + (n - 1) * spectrum.largest_left)
        decay = np.sqrt(1 + weights.n_rows / self.decay_rows)
        length = _LENGTH / (1 + _NOISE * weights.unexplained)
        return float(length * n / (steepest + n * self.alpha) / decay)


def visiting_order(
    n_rows: int, weights: NDArray[np.float64] | None, mean_weight: float, stream: Stream
) -> NDArray[np.intp]:
    """Return a shuffled list with row i weights[i] / mean_weight times on average.

    By systematic sampling: the number of visits of a row is rounded up or down, never more. Steps
    on such a list need no weights, and one heavy row does not make them large. Without weights it
    is a permutation.
    """
    rows = np.arange(n_rows, dtype=np.intp)
    if weights is not None:
        edges = np.cumsum(weights) / mean_weight
        offset = float(stream.substream("offset").uniforms(1)[0])
        counts = np.diff(np.floor(edges + offset), prepend=np.floor(offset)).astype(np.intp)
        rows = np.repeat(rows, counts)
    if len(rows) == 0:
        return rows
    order: NDArray[np.intp] = rows[stream.permutation(len(rows))]
    return order


def held_out_rows(
    classes: NDArray[np.intp], fraction: float, stream: Stream, block: int
) -> NDArray[np.bool_]:
    """Return which rows of a block are held out: this fraction of each class, at random.

    The same rows in every pass. At least one row of each class is left for training.
    """
    out = np.zeros(len(classes), bool)
    if not fraction:
        return out
    shuffled = stream.substream("held out", block).permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sorted_classes = classes[by_class]
    starts = np.flatnonzero(np.diff(sorted_classes, prepend=-1))
    sizes = np.diff(starts, append=len(classes))
    ranks = np.arange(len(classes)) - np.repeat(starts, sizes)
    taken = np.repeat(np.minimum(np.round(sizes * fraction), sizes - 1), sizes)
    out[by_class] = ranks < taken
    return out
