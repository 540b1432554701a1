"""How a classifier is trained: by descent, to the minimum, or from normal equations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.base import KernelMachine
from kernelmill.learners.digests import digest_of_block
from kernelmill.learners.lbfgs import minimize
from kernelmill.learners.losses import LOSSES, signs_of
from kernelmill.learners.mapped_rows import take_rows
from kernelmill.learners.problem import Blocks, LabelledRows, Problem, RowSource
from kernelmill.learners.run import Run
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.learners.training import PLAIN_EPOCHS, Training
from kernelmill.learners.training_state import TrainingState, state_from_arrays
from kernelmill.random import Stream

__all__ = ["DEFAULT_C", "TrainedClassifier", "default_alpha", "default_epochs"]

_MOST_EXACT_FEATURES = 8192  # their moments take half a gigabyte
_ROWS_TO_SEE = 100_000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 500
DEFAULT_C = 10.0
_DEFAULT_ALPHA = 1e-6
_LBFGS_ITERATIONS = 1000
_EXACT_ROWS = 2048


def default_epochs(n_rows: int | None) -> int:
    """Return the number of passes in which 100,000 rows are seen, from 4 to 500."""
    if n_rows is None:
        return _FEWEST_EPOCHS
    return int(np.clip(-(-_ROWS_TO_SEE // n_rows), _FEWEST_EPOCHS, _MOST_EPOCHS))


def default_alpha(n_rows: int | None) -> float:
    """Return the penalty that stands for C = 10, or 1e-6 for an unknown number of rows."""
    return _DEFAULT_ALPHA if n_rows is None else 1 / (DEFAULT_C * n_rows)


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
            self.alpha_ = default_alpha(n_rows)

    def _open_checkpoint(self, run: Run, X: Any, y: Any, sample_weight: Any) -> Stream | None:
        if run.path is None:
            return None
        if self.solver in ("lbfgs", "exact"):
            raise ArgumentError(
                f"needs solver='sgd', got solver={self.solver!r}",
                Remedy("do without a checkpoint", checkpoint=None),
                parameter="checkpoint",
            )
        return self._open_run(run, digest_of_block(X, y, sample_weight))

    def _problem(self) -> Problem:
        return Problem(self._features, LOSSES[self.loss], self.alpha_, n_classes=len(self.classes_))

    def _learn(
        self,
        source: RowSource,
        probe: NDArray[Any],
        run: Run,
    ) -> None:
        """Train from the beginning, or from a saved state; `probe` are the features of a row."""
        run.set_origin(self.stream_, probe)
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
            self._minimize(source.blocks, probe, run)
        else:
            self._descend(source, probe, run)

    def _descend(self, source: RowSource, probe: NDArray[Any], run: Run) -> None:
        n_epochs = 1
        if self.epochs is not None:
            n_epochs = int(self.epochs)
        elif source.repeatable:
            plain = self.solver_ == "plain_sgd"
            n_epochs = PLAIN_EPOCHS if plain else default_epochs(source.n_rows)
        state = TrainingState(self.stream_)
        if run.saved is not None:
            n_outputs = self._problem().n_outputs
            state = state_from_arrays(
                run.saved, self.stream_, probe.shape[1], n_outputs, probe.dtype
            )
        run.begin(None if source.n_rows is None else n_epochs * source.n_rows)
        training = self._training_with(run, probe.shape[1], one_block=source.one_block)
        training.run(source.blocks, n_epochs, state)
        self._take_weights(state)
        self._training = state.without_spectrum()

    def _descend_further(self, rows: LabelledRows) -> None:
        if self._training is None:
            state = TrainingState(self.stream_)
        else:
            state = self._training.for_more_rows()
        run = self._verbose_run()
        run.begin(len(rows.codes))
        n_features = self._probe(rows.X).shape[1]
        self._training_with(run, n_features).run(lambda: [rows], 1, state)
        self._take_weights(state)
        self._training = state

    def _training_with(self, run: Run, n_features: int, *, one_block: bool = False) -> Training:
        return Training(
            self._problem(),
            n_features=n_features,
            batch_size=self.batch_size,
            plain=self.solver_ == "plain_sgd",
            one_block=one_block,
            validation_fraction=self.validation_fraction or 0.0,
            patience=self.patience,
            current=run,
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

    def _minimize(self, blocks: Blocks, probe: NDArray[Any], run: Run) -> None:
        problem = self._problem()
        n_iterations = self.epochs or _LBFGS_ITERATIONS
        run.begin()

        def report(number: int, value: float) -> None:
            run.progress.end_pass(f"pass {number + 1}/{n_iterations}  objective {value:.6g}")

        found = minimize(
            problem,
            blocks,
            self.stream_,
            max_iter=n_iterations,
            tol=float(self.tol),
            callback=report,
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
