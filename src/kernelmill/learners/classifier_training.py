"""How a classifier is trained: by descent, to the minimum, or from normal equations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelmill.learners.base import KernelMachine
from kernelmill.learners.checkpoint import Checkpoint
from kernelmill.learners.digests import digest_of_block
from kernelmill.learners.lbfgs import minimize
from kernelmill.learners.losses import LOSSES, signs_of
from kernelmill.learners.mapped_rows import take_rows
from kernelmill.learners.problem import Blocks, LabelledRows, Problem, RowSource
from kernelmill.learners.progress import Progress
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.learners.training import PLAIN_EPOCHS, Training
from kernelmill.learners.training_state import TrainingState, state_from_arrays

__all__ = ["TrainedClassifier"]

_MOST_EXACT_FEATURES = 8192  # their moments take half a gigabyte
_ROWS_TO_SEE = 100_000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 500
_DEFAULT_C, _DEFAULT_ALPHA = 10.0, 1e-6
_LBFGS_ITERATIONS = 1000
_EXACT_ROWS = 2048


class TrainedClassifier(KernelMachine):
    """The solvers of `KernelClassifier`, which has the parameters and the public methods."""

    loss: str
    alpha: float | None
    solver: str
    epochs: int | None
    batch_size: int | None
    validation_fraction: float | None
    patience: int
    tol: float
    checkpoint: Any
    checkpoint_seconds: float
    verbose: int

    alpha_: float
    classes_: NDArray[Any]
    solver_: str
    loss_curve_: list[float]
    validation_curve_: list[float]
    n_iter_: int
    _listener: Callable[[int], None] | None = None  # of whoever shows the progress of `fit`
    _training: TrainingState | None
    _statistics: RidgeStatistics | None

    def _probe(self, X: Any) -> NDArray[Any]:
        """The features of one row: how many there are, and of which dtype."""
        return self._features(take_rows(X, slice(0, 1)))

    def _set_solver(self, n_features: int) -> None:
        self.solver_ = self.solver
        if self.solver == "auto":
            exact = self.loss == "squared" and n_features <= _MOST_EXACT_FEATURES
            self.solver_ = "exact" if exact else "sgd"

    def _set_alpha(self, n_rows: int | None) -> None:
        if self.alpha is not None:
            self.alpha_ = float(self.alpha)
        else:
            self.alpha_ = _DEFAULT_ALPHA if n_rows is None else 1 / (_DEFAULT_C * n_rows)

    def _checkpoint(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Checkpoint | None, Mapping[str, NDArray[Any]] | None]:
        """The checkpoint of a training on data that begin so, and the state found in it."""
        if self.checkpoint is None:
            return None, None
        if self.solver in ("lbfgs", "exact"):
            raise ValueError(
                f"A checkpoint needs solver='sgd', got solver={self.solver!r}; set checkpoint=None."
            )
        return self._opened_checkpoint(digest_of_block(X, y, sample_weight))

    def _problem(self) -> Problem:
        return Problem(self._features, LOSSES[self.loss], self.alpha_, n_classes=len(self.classes_))

    def _learn(
        self,
        source: RowSource,
        probe: NDArray[Any],
        checkpoint: Checkpoint | None,
        saved: Mapping[str, NDArray[Any]] | None,
    ) -> None:
        """Train from the beginning, or from a saved state; `probe` are the features of a row."""
        self._training = self._statistics = None
        self._set_solver(probe.shape[1])
        self._set_alpha(source.n_rows)
        if self.solver_ == "exact":
            self._solve(source.blocks(), None)
        elif not source.repeatable and (self.solver_ == "lbfgs" or self.validation_fraction):
            what = "solver='lbfgs'" if self.solver_ == "lbfgs" else "validation_fraction"
            raise ValueError(
                f"{what} needs several passes over the blocks, and a generator gives one; give a "
                "list or an object whose __iter__ starts anew."
            )
        elif self.solver_ == "lbfgs":
            self._minimize(source.blocks, probe)
        else:
            self._descend(source, probe, checkpoint, saved)

    def _n_epochs(self, n_rows: int | None) -> int:
        if self.epochs is not None:
            return int(self.epochs)
        if self.solver_ == "plain_sgd":
            return PLAIN_EPOCHS
        if n_rows is None:
            return _FEWEST_EPOCHS
        return int(np.clip(-(-_ROWS_TO_SEE // n_rows), _FEWEST_EPOCHS, _MOST_EPOCHS))

    def _descend(
        self,
        source: RowSource,
        probe: NDArray[Any],
        checkpoint: Checkpoint | None,
        saved: Mapping[str, NDArray[Any]] | None,
    ) -> None:
        n_epochs = self._n_epochs(source.n_rows) if source.repeatable else 1
        state = TrainingState(self.stream_)
        if saved is not None:
            n_outputs = self._problem().n_outputs
            state = state_from_arrays(saved, probe.shape[1], n_outputs, probe.dtype)
        progress = Progress(self.verbose, n_epochs, source.n_rows or 0, self._listener)
        training = self._training_with(
            progress, probe.shape[1], checkpoint, one_block=source.one_block
        )
        training.run(source.blocks, n_epochs, state)
        self._take_weights(state)
        self._training = state.without_spectrum()
        if checkpoint is not None and not self._keeps_checkpoint:
            checkpoint.remove()

    def _descend_further(self, rows: LabelledRows) -> None:
        if self._training is None:
            state = TrainingState(self.stream_)
        else:
            state = self._training.for_more_rows()
        progress = Progress(self.verbose, 1, len(rows.codes))
        n_features = self._probe(rows.X).shape[1]
        self._training_with(progress, n_features).run(lambda: [rows], 1, state)
        self._take_weights(state)
        self._training = state

    def _training_with(
        self,
        progress: Progress,
        n_features: int,
        checkpoint: Checkpoint | None = None,
        *,
        one_block: bool = False,
    ) -> Training:
        return Training(
            self._problem(),
            n_features=n_features,
            batch_size=self.batch_size,
            plain=self.solver_ == "plain_sgd",
            one_block=one_block,
            validation_fraction=self.validation_fraction or 0.0,
            patience=self.patience,
            progress=progress,
            checkpoint=checkpoint,
        )

    def _take_weights(self, state: TrainingState) -> None:
        assert state.weights is not None
        assert state.spectrum is not None
        weights = state.weights.average if state.best is None else state.best
        self.coef_ = np.ascontiguousarray(weights[:-1].T)
        self.intercept_ = state.spectrum.constant * weights[-1]
        self.loss_curve_ = state.loss_curve
        self.validation_curve_ = state.validation_curve
        self.n_iter_ = len(state.loss_curve)

    def _minimize(self, blocks: Blocks, probe: NDArray[Any]) -> None:
        problem = self._problem()
        n_iterations = self.epochs or _LBFGS_ITERATIONS
        progress = Progress(self.verbose, n_iterations)
        found = minimize(
            problem,
            blocks,
            self.stream_,
            max_iter=n_iterations,
            tol=float(self.tol),
            callback=lambda number, value: progress.end_of_pass(number, f"objective {value:.6g}"),
        )
        if not found.converged:
            warnings.warn(
                f"L-BFGS stopped after {len(found.curve)} iterations, before the gradient was "
                f"below tol={self.tol}: {found.message}; raise epochs or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.coef_ = np.ascontiguousarray(found.coef.T, dtype=probe.dtype)
        self.intercept_ = found.intercept.astype(probe.dtype)
        self.loss_curve_, self.validation_curve_ = found.curve, []
        self.n_iter_ = len(found.curve)

    def _solve(self, blocks: Iterable[LabelledRows], statistics: RidgeStatistics | None) -> None:
        """Least squares of the signs, from the statistics so far and the rows of more blocks."""
        n_outputs = self._problem().n_outputs
        for rows in blocks:
            for part, Z in self._feature_blocks(rows.X, _EXACT_ROWS):
                if statistics is None:
                    statistics = RidgeStatistics(Z.shape[1], n_outputs)
                weights = None if rows.weights is None else rows.weights[part]
                statistics.update(Z, signs_of(rows.codes[part], n_outputs, np.float64), weights)
        assert statistics is not None
        if not statistics.weight > 0:
            raise ValueError("All weights are zero: there are no rows to train on.")
        # The mean of squares / 2 and alpha / 2 here; their sum and alpha there.
        alpha = self.alpha_ * statistics.weight
        coef, intercept = statistics.finalize().solve(alpha)
        self.coef_, self.intercept_ = coef, intercept
        self._statistics = statistics
        self.loss_curve_, self.validation_curve_ = [], []
        self.n_iter_ = 1
