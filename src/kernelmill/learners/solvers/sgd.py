"""Mini-batch stochastic gradient descent on features, preconditioned and averaged.

A run can stop after any batch and resume there with the same result, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.blocks import Block, RowTaker, count_rows, slice_rows, take_rows
from kernelmill.learners.features import ReusedMemory, rows_per_block
from kernelmill.learners.few_outputs import score_rows
from kernelmill.learners.losses import ClassifierFit, Objective, classes_of_scores
from kernelmill.learners.run import Run, Watch
from kernelmill.learners.solvers.descent import Descent, Weights, held_out_rows, visiting_order
from kernelmill.learners.solvers.sgd_state import SgdState, state_from_arrays, state_to_arrays
from kernelmill.learners.solvers.spectrum import MOST_DIRECTIONS, TopSpectrum, rows_to_sample
from kernelmill.maps.finite import SMALLER_ROWS, require_finite
from kernelmill.runtime.threads import one_blas_thread

__all__ = [
    "PLAIN_EPOCHS",
    "PLAIN_LEARNING_RATE",
    "SgdSettings",
    "Training",
    "decay_rows",
    "default_epochs",
    "solve_sgd",
]

_ROWS_TO_SEE = 100_000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 500
# Curtó et al. (2017, McKernel), captions of Figures 2 and 3; the step is for unit features.
PLAIN_EPOCHS, _PLAIN_BATCH, PLAIN_LEARNING_RATE = 20, 10, 0.001

# Steps become shorter by the square root of two in this number of passes over the first rows.
_DECAY_EPOCHS, _FEWEST_DECAY_ROWS = 4, 1 << 13
_LARGEST_BATCH = 256
_MOST_VISITS = 1 << 24  # of the rows of a block in an epoch, by the weights of a checkpoint


def default_epochs(n_rows: int | None) -> int:
    """Return the number of passes in which 100,000 rows are seen, from 4 to 500.

    Examples
    --------
    >>> from kernelmill.learners import default_epochs
    >>> default_epochs(1000), default_epochs(10**9), default_epochs(None)
    (100, 4, 4)
    """
    if n_rows is None:
        return _FEWEST_EPOCHS
    return int(np.clip(-(-_ROWS_TO_SEE // n_rows), _FEWEST_EPOCHS, _MOST_EPOCHS))


@dataclass(frozen=True)
class SgdSettings:
    """How to descend.

    Attributes
    ----------
    n_epochs : int
        The number of passes, or the most if there are held-out rows.
    batch_size : int or None
        None for one that suits the number of rows.
    plain : bool
        Without preconditioning and averaging, with fixed steps; all weights start at zero, and the
        intercept is the weight of a constant of the size of a cosine.
    learning_rate : float
        The step of plain descent, for features of unit size: cosines and sines.
    one_block : bool
        Whether the first block has all the rows.
    validation_fraction : float
        The share of rows to hold out.
    patience : int
        Stop after this number of epochs without a better score on the held-out rows.
    """

    n_epochs: int
    batch_size: int | None = None
    plain: bool = False
    learning_rate: float = PLAIN_LEARNING_RATE
    one_block: bool = False
    validation_fraction: float = 0.0
    patience: int = 3


def solve_sgd(
    objective: Objective,
    blocks: Iterable[Block],
    run: Run,
    settings: SgdSettings,
    state: SgdState,
) -> ClassifierFit:
    """Pass over the blocks until all epochs are done or the held-out score stops improving.

    Parameters
    ----------
    objective : Objective
    blocks : iterable of Block
        Gives the same blocks in each pass.
    run : Run
        If it has a saved state, training resumes from there.
    settings : SgdSettings
    state : SgdState
        The state to start from otherwise; it is changed.
    """
    saved = run.take_saved()
    if saved is not None:
        state = state_from_arrays(
            saved,
            state.stream,
            objective,
            settings.n_epochs,
            holds_out=settings.validation_fraction > 0,
        )
    training = Training(objective, settings, run, state)
    training.pass_over(blocks)
    return training.finish()


@dataclass(frozen=True)
class Training:
    """The passes of one call of `solve_sgd`, or the part of them that one machine has.

    Parameters
    ----------
    objective : Objective
    settings : SgdSettings
    run : Run
    state : SgdState
        It is changed.
    """

    objective: Objective
    settings: SgdSettings
    run: Run
    state: SgdState

    def pass_over(self, blocks: Iterable[Block]) -> None:
        """Train until the end."""
        state = self.state
        if self.run.watch is not None:
            self.run.watch.begin(state.epoch * state.weight_rows + state.loss_rows)
        while not self.has_ended:
            self.visit(blocks)
            self.end_epoch(lambda: self.count_correct(blocks))
        self.run.save_last(state_to_arrays(state))
        if self.run.watch is not None:
            self._measure(self.run.watch)

    @property
    def has_ended(self) -> bool:
        """Whether all epochs are done, or the held-out score has stopped improving."""
        state, settings = self.state, self.settings
        is_stale = settings.validation_fraction and state.n_stale >= settings.patience
        return state.epoch >= settings.n_epochs or bool(is_stale)

    def visit(self, blocks: Iterable[Block]) -> None:
        """Take the steps of one epoch, or of the rest of it."""
        state = self.state
        resumed, n_blocks = (state.block if state.batch else -1), 0
        for index, block in enumerate(blocks):
            n_blocks += 1
            if index < state.block:
                continue
            for n_rows in self._steps(block, index):
                mean = state.loss_sum / state.loss_rows
                status = f"pass {state.epoch + 1}/{self.settings.n_epochs}  loss {mean:.4g}"
                self.run.progress.advance(n_rows, status)
                watch = self.run.watch
                if watch is not None and watch.advance(n_rows, state.loss_sum, state.loss_rows):
                    self._measure(watch)
                if self.run.is_due():
                    self.run.save(state_to_arrays(state))
            state.block, state.batch = index + 1, 0
        self._check_position(resumed < n_blocks)

    def end_epoch(self, count_correct: Callable[[], tuple[float, float]]) -> None:
        """Record the loss of the epoch and the held-out score.

        `count_correct` returns the weights of correctly classified and of all held-out rows.
        """
        state, fraction = self.state, self.settings.validation_fraction
        if state.loss_rows == 0:
            error = ArgumentError("are all zero: no rows to train on", parameter="sample_weight")
            raise self.run.explain(error)
        state.loss_curve.append(state.loss_sum / state.loss_rows)
        state.loss_sum, state.loss_rows = 0.0, 0
        text = f"pass {state.epoch + 1}/{self.settings.n_epochs}  loss {state.loss_curve[-1]:.5g}"
        if fraction:
            self._keep_best(*count_correct())
            text += f"  held-out accuracy {state.validation_curve[-1]:.5g}"
        self.run.progress.end_pass(text)
        state.epoch, state.block = state.epoch + 1, 0

    def begin(self, block: Block) -> None:
        """Estimate the spectrum and the first weights from these rows, which are not visited."""
        state = self.state
        state.weight_sum = len(block.y) if block.weight is None else float(block.weight.sum())
        state.weight_rows = len(block.y)
        mean_weight = state.weight_sum / state.weight_rows
        if mean_weight <= 0:
            raise ArgumentError("are all zero: no rows to train on", parameter="sample_weight")
        stream = state.stream.substream("first rows")
        self._sample_spectrum(
            block, visiting_order(len(block.y), block.weight, mean_weight, stream)
        )
        state.sample = None

    def finish(self) -> ClassifierFit:
        """Return the fit: the averaged weights, or those with the best held-out score."""
        state = self.state
        assert state.weights is not None
        assert state.spectrum is not None
        weights = state.weights.average if state.best is None else state.best
        return ClassifierFit(
            np.ascontiguousarray(weights[:-1].T),
            state.spectrum.constant * weights[-1],
            state.loss_curve,
            state.validation_curve,
            state,
        )

    def _measure(self, watch: Watch) -> None:
        """Measure the averaged weights on the watched rows."""
        weights, spectrum = self.state.weights, self.state.spectrum
        if weights is None or spectrum is None:
            return
        scores = self._score(self.objective.features(watch.X), weights, spectrum)
        wrong = classes_of_scores(scores) != watch.codes
        watch.add(self.objective.loss.derivatives(scores, watch.codes)[0], wrong)

    def _score(self, Z: NDArray[Any], weights: Weights, spectrum: TopSpectrum) -> NDArray[Any]:
        """Return the scores of rows by the averaged weights."""
        average = weights.average.T
        Z = Z.astype(average.dtype, copy=False)
        scores = score_rows(Z, average[:, :-1], self.objective.n_threads)
        scores += spectrum.constant * average[:, -1]
        return scores

    def _steps(self, block: Block, index: int) -> Iterator[int]:
        """Visit the rows of a block in random order; yield the number of rows of each batch."""
        state = self.state
        out = held_out_rows(block.y, self.settings.validation_fraction, state.stream, index)
        chosen = np.flatnonzero(~out)
        weights = None if block.weight is None else block.weight[chosen]
        if state.epoch == 0 and state.batch == 0:
            state.weight_sum += len(chosen) if weights is None else float(weights.sum())
            state.weight_rows += len(chosen)
        mean_weight = state.weight_sum / max(state.weight_rows, 1)
        if mean_weight <= 0:
            return
        if weights is None and mean_weight != 1.0:
            weights = np.ones(len(chosen))  # of a block without weights among others with some
        order = chosen[self._visiting_order(len(chosen), weights, mean_weight, index)]
        if len(order) == 0:
            return
        if state.batch == 0:
            self._sample_spectrum(block, order)
        assert state.weights is not None
        assert state.spectrum is not None
        descent = self._descent(state.spectrum, state.decay_rows)
        usual = _PLAIN_BATCH if self.settings.plain else _batch_size(len(order))
        size = self.settings.batch_size or usual
        self._check_position((state.batch - 1) * size < len(order))
        n_features = len(state.weights.last) - 1
        # Batches that fit into the cache together are mapped together.
        fitting = rows_per_block(n_features, state.weights.last.itemsize)
        together = max(1, fitting // size) * size
        # Later rows take on the type of the first ones, which is that of the weights.
        features = ReusedMemory(self.objective.features, state.weights.last.dtype)
        take = RowTaker(block.X)
        for mapped in slice_rows(len(order), together):
            if mapped.stop <= state.batch * size:
                continue
            visited = order[mapped]
            rows, scores = take(visited), None
            if together == size:
                weights_now = state.weights.last.T[:, :-1]
                Z, scores = features.score(rows, weights_now, self.objective.n_threads)
            else:
                Z = features(rows)
            for batch in slice_rows(len(visited), size):
                if mapped.start + batch.start < state.batch * size:
                    continue
                codes = block.y[visited[batch]]
                loss = descent.step(state.weights, Z[batch], codes, scores)
                state.is_limited |= descent.has_shortened
                if not np.isfinite(loss):
                    require_finite(Z[batch], take_rows(rows, batch), "features")
                    error = ArgumentError(
                        "the loss of a batch is not finite: scores are too large", *SMALLER_ROWS
                    )
                    raise self.run.explain(error)
                state.loss_sum += loss
                state.loss_rows += len(codes)
                state.batch += 1
                yield len(codes)

    def _visiting_order(
        self, n_rows: int, weights: NDArray[np.float64] | None, mean_weight: float, index: int
    ) -> NDArray[np.intp]:
        """Return the order of the rows of a block in this epoch."""
        state = self.state
        if self.run.has_resumed and weights is not None:  # the mean is that of the checkpoint
            self._check_position(float(weights.sum()) <= mean_weight * max(_MOST_VISITS, n_rows))
        stream = state.stream.substream("order", state.epoch, index)
        return visiting_order(n_rows, weights, mean_weight, stream)

    def _check_position(self, is_possible: bool) -> None:
        """Raise an error about the checkpoint if its position is not one of these rows."""
        if not is_possible:
            raise self.run.explain(ArgumentError("its position is not one of the data"))

    def _descent(self, spectrum: TopSpectrum, decay_rows: int) -> Descent:
        objective = self.objective
        fixed_step = None
        if self.settings.plain:
            # A step on features and a constant of unit size, in terms of z = unit * (features).
            fixed_step = self.settings.learning_rate / spectrum.constant**2
        return Descent(
            objective.loss,
            objective.alpha,
            spectrum,
            objective.curvature,
            decay_rows,
            fixed_step,
            objective.n_threads,
            limited=self.state.epoch == 0 or self.state.is_limited,
        )

    def _sample_spectrum(self, block: Block, order: NDArray[np.intp]) -> None:
        """Estimate the spectrum from the next rows; again whenever the sample has doubled."""
        state = self.state
        if state.epoch > 0 and state.spectrum is not None:
            state.sample = None  # these rows were seen before
        if state.spectrum is not None and state.sample is None:
            return
        features = self.objective.features
        probe = features(take_rows(block.X, order[:1]))
        n_rows = len(order) if self.settings.one_block else None
        wanted = rows_to_sample(probe.shape[1], probe.itemsize, n_rows)
        missing = wanted - (0 if state.sample is None else len(state.sample))
        sample = features(take_rows(block.X, order[:missing]))
        if state.sample is not None:
            sample = np.concatenate([state.sample, sample], dtype=state.sample.dtype)
        if self.settings.plain and state.constant is None:
            state.constant = _unit_size(sample)
        built = 0 if state.spectrum is None else state.spectrum.n_rows
        if len(sample) >= min(2 * built, wanted):
            state.is_limited |= built > 0
            with one_blas_thread():  # results must not depend on the number of threads
                state.spectrum = TopSpectrum.of_sample(
                    sample,
                    ridge=self.objective.alpha / self.objective.curvature,
                    complete=self.settings.one_block and len(order) <= wanted,
                    most=0 if self.settings.plain else MOST_DIRECTIONS,
                    constant=state.constant,
                )
            state.constant = state.spectrum.constant
        state.sample = sample if len(sample) < wanted else None
        if state.weights is None:
            assert state.spectrum is not None
            state.decay_rows = decay_rows(count_rows(block.X))
            scores = self.objective.first_scores(block)
            if self.settings.plain:
                scores = np.zeros_like(scores)
            loss = self.objective.loss_of(scores, block)
            state.weights = Weights.constant_scores(
                sample.shape[1], scores, loss, state.spectrum.constant, sample.dtype
            )

    def count_correct(self, blocks: Iterable[Block]) -> tuple[float, float]:
        """Return the weights of correctly classified and of all held-out rows."""
        state = self.state
        assert state.weights is not None
        assert state.spectrum is not None
        size = rows_per_block(self.objective.n_features, np.dtype(self.objective.dtype).itemsize)
        correct = total = 0.0
        for index, block in enumerate(blocks):
            out = held_out_rows(block.y, self.settings.validation_fraction, state.stream, index)
            chosen = np.flatnonzero(out)
            for part in slice_rows(len(chosen), size):
                some = chosen[part]
                Z = self.objective.features(take_rows(block.X, some))
                scores = self._score(Z, state.weights, state.spectrum)
                weights = np.ones(len(some)) if block.weight is None else block.weight[some]
                correct += float(weights[classes_of_scores(scores) == block.y[some]].sum())
                total += float(weights.sum())
        return correct, total

    def _keep_best(self, correct: float, total: float) -> None:
        """Record the score on the held-out rows; keep the weights if it is the best yet."""
        state = self.state
        assert state.weights is not None
        if total == 0:
            fraction = self.settings.validation_fraction
            raise ArgumentError(
                f"is {fraction}, which holds out no row of positive weight",
                "hold out more rows",
                Remedy("hold out none", validation_fraction=None),
                parameter="validation_fraction",
            )
        score = correct / total
        if not state.validation_curve or score > max(state.validation_curve):
            state.best, state.n_stale = state.weights.average.copy(), 0
        else:
            state.n_stale += 1
        state.validation_curve.append(score)


def decay_rows(n_rows: int) -> int:
    """Return the number of rows after which steps are shorter by the square root of two."""
    return _DECAY_EPOCHS * max(n_rows, _FEWEST_DECAY_ROWS)


def _unit_size(Z: NDArray[Any]) -> float:
    """Return what the features have in place of cosines and sines, whose squares sum to D / 2."""
    mean_square = float(np.mean(np.einsum("ij,ij->i", Z, Z, dtype=np.float64)))
    return float(np.sqrt(2 * mean_square / Z.shape[1])) or 1.0


def _batch_size(n_rows: int) -> int:
    """Return 256, or less if a pass would have few steps."""
    return int(np.clip(n_rows // 8, 16, _LARGEST_BATCH))
