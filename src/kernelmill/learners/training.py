"""Stochastic gradient descent by passes over blocks of rows, able to stop anywhere and go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.mapped_rows import n_rows_of, row_blocks, rows_per_block, take_rows
from kernelmill.learners.problem import Blocks, LabelledRows, Problem, codes_of_scores
from kernelmill.learners.row_order import held_out_rows, visiting_order
from kernelmill.learners.run import Run
from kernelmill.learners.sgd import Descent, Weights
from kernelmill.learners.spectrum import MOST_DIRECTIONS, TopSpectrum, rows_to_sample
from kernelmill.learners.training_state import TrainingState, state_to_arrays
from kernelmill.runtime.blas import one_blas_thread

__all__ = ["PLAIN_BATCH", "PLAIN_EPOCHS", "Training"]

# Curtó et al., McKernel, captions of Figures 2 and 3; the step is for features of unit size.
PLAIN_EPOCHS, PLAIN_BATCH, _PLAIN_STEP = 20, 10, 0.001

_DECAY_ROWS = 1 << 13
_LARGEST_BATCH = 256
_WORTH_SHARING = 1 << 24  # multiplications in a product from which on threads help more than wait


@dataclass(frozen=True)
class Training:
    """How a problem is solved by descent.

    Parameters
    ----------
    problem : Problem
    n_features : int
        Of the map's output.
    batch_size : int or None
        None for one that suits the number of rows.
    plain : bool
        Without preconditioning and averaging, with fixed steps.
    one_block : bool
        Whether the first block holds all the rows there are.
    validation_fraction : float
    patience : int
        Stop after so many epochs without a better score on the rows held out.
    current : Run
    """

    problem: Problem
    n_features: int
    batch_size: int | None
    plain: bool
    one_block: bool
    validation_fraction: float
    patience: int
    current: Run

    def run(self, blocks: Blocks, n_epochs: int, state: TrainingState) -> None:
        """Pass over the blocks until `n_epochs` are done or the scores get no better.

        `blocks` is called for every pass and gives the same blocks each time. `state` is what the
        training goes on from, and what it has arrived at in the end.
        """
        product = (self.batch_size or _LARGEST_BATCH) * self.n_features * self.problem.n_outputs
        with one_blas_thread() if product < _WORTH_SHARING else nullcontext():
            self._run(blocks, n_epochs, state)

    def _run(self, blocks: Blocks, n_epochs: int, state: TrainingState) -> None:
        while state.epoch < n_epochs:
            for index, rows in enumerate(blocks()):
                if index < state.block:
                    continue
                for n_rows in self._steps(rows, index, state):
                    mean = state.loss_sum / state.loss_rows
                    status = f"pass {state.epoch + 1}/{n_epochs}  loss {mean:.4g}"
                    self.current.progress.advance(n_rows, status)
                    if self.current.is_due():
                        self.current.save(state_to_arrays(state))
                state.block, state.batch = index + 1, 0
            if state.loss_rows == 0:
                raise ValueError("All weights are zero: there are no rows to train on.")
            state.loss_curve.append(state.loss_sum / state.loss_rows)
            state.loss_sum, state.loss_rows = 0.0, 0
            text = f"pass {state.epoch + 1}/{n_epochs}  loss {state.loss_curve[-1]:.5g}"
            if self.validation_fraction:
                self._validate(blocks(), state)
                text += f"  held-out accuracy {state.validation_curve[-1]:.5g}"
            self.current.progress.end_pass(text)
            state.epoch, state.block = state.epoch + 1, 0
            if self.validation_fraction and state.n_stale >= self.patience:
                break

    def _steps(self, rows: LabelledRows, index: int, state: TrainingState) -> Iterator[int]:
        """Visit the rows of a block in random order; yields the number of rows of each batch."""
        out = held_out_rows(rows.codes, self.validation_fraction, state.stream, index)
        chosen = np.flatnonzero(~out)
        weights = None if rows.weights is None else rows.weights[chosen]
        if state.epoch == 0 and state.batch == 0:
            state.weight_sum += len(chosen) if weights is None else float(weights.sum())
            state.weight_rows += len(chosen)
        mean_weight = state.weight_sum / max(state.weight_rows, 1)
        if mean_weight <= 0:
            return
        if weights is None and mean_weight != 1.0:
            weights = np.ones(len(chosen))  # of a block without weights among others with some
        order_stream = state.stream.substream("order", state.epoch, index)
        order = chosen[visiting_order(len(chosen), weights, mean_weight, order_stream)]
        if len(order) == 0:
            return
        if state.batch == 0:
            self._sample_spectrum(rows, order, state)
        assert state.weights is not None
        assert state.spectrum is not None
        descent = self._descent(state.spectrum, state.decay_rows)
        size = self.batch_size or (PLAIN_BATCH if self.plain else _batch_size(len(order)))
        n_features = len(state.weights.last) - 1
        # Batches that fit into the cache together are mapped together.
        fitting = rows_per_block(n_features, state.weights.last.itemsize)
        for mapped in row_blocks(len(order), max(1, fitting // size) * size):
            if mapped.stop <= state.batch * size:
                continue
            visited = order[mapped]
            Z = self.problem.features(take_rows(rows.X, visited))
            for batch in row_blocks(len(visited), size):
                if mapped.start + batch.start < state.batch * size:
                    continue
                codes = rows.codes[visited[batch]]
                loss = descent.step(state.weights, Z[batch], codes)
                if not np.isfinite(loss):
                    raise ValueError(
                        "The loss of a batch is not finite: features or scores of some rows are "
                        "too large; scale the columns of X, or look for rows far from the others."
                    )
                state.loss_sum += loss
                state.loss_rows += len(codes)
                state.batch += 1
                yield len(codes)

    def _descent(self, spectrum: TopSpectrum, decay_rows: int) -> Descent:
        problem = self.problem
        fixed_step = None
        if self.plain:
            # Features of unit size have a squared norm of D / 2 instead of |z|².
            n_features = len(spectrum.vectors) - 1
            fixed_step = _PLAIN_STEP * n_features / 2 / max(spectrum.mean_square, 1e-300)
        return Descent(
            problem.loss, problem.alpha, spectrum, problem.curvature, decay_rows, fixed_step
        )

    def _sample_spectrum(
        self, rows: LabelledRows, order: NDArray[np.intp], state: TrainingState
    ) -> None:
        """Learn the spectrum from the rows to come first; again whenever the sample has doubled."""
        if state.epoch > 0 and state.spectrum is not None:
            state.sample = None  # these rows were seen before
        if state.spectrum is not None and state.sample is None:
            return
        features = self.problem.features
        probe = features(take_rows(rows.X, order[:1]))
        wanted = rows_to_sample(probe.shape[1], probe.itemsize)
        missing = wanted - (0 if state.sample is None else len(state.sample))
        sample = features(take_rows(rows.X, order[:missing]))
        if state.sample is not None:
            sample = np.concatenate([state.sample, sample])
        built = 0 if state.spectrum is None else state.spectrum.n_rows
        if len(sample) >= min(2 * built, wanted):
            state.spectrum = TopSpectrum.of_sample(
                sample,
                ridge=self.problem.alpha / self.problem.curvature,
                complete=self.one_block and len(order) <= wanted,
                most=0 if self.plain else MOST_DIRECTIONS,
                constant=state.constant,
            )
            state.constant = state.spectrum.constant
        state.sample = sample if len(sample) < wanted else None
        if state.weights is None:
            assert state.spectrum is not None
            state.decay_rows = max(n_rows_of(rows.X), _DECAY_ROWS)
            scores = self.problem.first_scores(rows)
            state.weights = Weights.constant_scores(
                sample.shape[1], scores, state.spectrum.constant, sample.dtype
            )

    def _validate(self, blocks: Iterable[LabelledRows], state: TrainingState) -> None:
        """Score the averaged weights on the rows held out; keep them if they are the best yet."""
        assert state.weights is not None
        assert state.spectrum is not None
        average, constant = state.weights.average, state.spectrum.constant
        right = total = 0.0
        for index, rows in enumerate(blocks):
            out = held_out_rows(rows.codes, self.validation_fraction, state.stream, index)
            chosen = np.flatnonzero(out)
            for part in row_blocks(len(chosen), rows_per_block(len(average), average.itemsize)):
                some = chosen[part]
                scores = self.problem.features(take_rows(rows.X, some)) @ average[:-1]
                scores += constant * average[-1]
                weights = np.ones(len(some)) if rows.weights is None else rows.weights[some]
                right += float(weights[codes_of_scores(scores) == rows.codes[some]].sum())
                total += float(weights.sum())
        if total == 0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} holds out no row of positive "
                "weight; raise it, or set it to None."
            )
        score = right / total
        if not state.validation_curve or score > max(state.validation_curve):
            state.best, state.n_stale = average.copy(), 0
        else:
            state.n_stale += 1
        state.validation_curve.append(score)


def _batch_size(n_rows: int) -> int:
    """256, or less where that would leave few steps to a pass."""
    return int(np.clip(n_rows // 8, 16, _LARGEST_BATCH))
