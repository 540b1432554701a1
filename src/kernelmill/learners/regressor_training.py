"""How KernelRegressor is trained: from blocks of rows to statistics or iterations, to weights."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from kernelmill.learners.base import KernelMachine
from kernelmill.learners.conjugate_gradients import Iteration, ridge_by_conjugate_gradients
from kernelmill.learners.feature_map import unfitted_feature_map
from kernelmill.learners.mapped_rows import n_rows_of, rows_per_block, take_rows
from kernelmill.learners.passed_blocks import PassedBlocks
from kernelmill.learners.penalty import penalties
from kernelmill.learners.regression_rows import (
    Block,
    check_targets,
    feature_blocks,
    gathered,
    optional_weights,
)
from kernelmill.learners.regression_state import (
    PassedRows,
    iteration_from_arrays,
    iteration_to_arrays,
    rows_from_arrays,
    rows_to_arrays,
)
from kernelmill.learners.resumable_blocks import ResumableBlocks, Rows
from kernelmill.learners.ridge import check_alpha
from kernelmill.learners.ridge_fit import RidgeFit, ridge_fit
from kernelmill.learners.run import Run
from kernelmill.learners.statistics import RidgeStatistics, rows_per_update
from kernelmill.learners.tuning import tuned_map
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads

__all__ = ["EXACT_BYTES", "TrainedRegressor"]

EXACT_BYTES = 1 << 30
"""What solver="auto" lets the two D x D matrices of the exact solver take: up to 8192 features."""

_Array = NDArray[np.float64]
_OF_ONE_FIT = ("alphas_", "scores_", "tuning_", "statistics_", "_fit", "_is_loaded")


class TrainedRegressor(KernelMachine):
    """The solvers of `KernelRegressor`, which has the parameters and the public methods."""

    alpha: Any
    noise: float | None
    fit_intercept: bool
    solver: str
    scoring: str
    tune: bool
    tune_budget: int
    max_iter: int
    tol: float
    verbose: int

    alpha_: float
    noise_: Any
    alphas_: _Array
    scores_: _Array | None
    tuning_: dict[str, _Array]
    statistics_: RidgeStatistics
    n_iter_: int
    _fit: RidgeFit
    _targets_ndim: int
    _n_outputs: int

    def _fit_anew(self, blocks: Iterable[Any], run: Run, *, adding: bool = False) -> None:
        """Fit the map on the first block and the weights on all; `adding` if more rows follow."""
        self._forget_fit()
        source = ResumableBlocks(self, blocks, run)
        tuned = self._tune(*source.first_rows(), run) if self.tune else None
        probe = self._features(take_rows(source.first_rows()[0], slice(0, 1)))
        run.set_origin(self.stream_, probe)
        run.begin()
        if self._solver_for(probe.shape[1], adding=adding) == "exact":
            statistics = RidgeStatistics(probe.shape[1], self._n_outputs)
            statistics = self._collected(source, statistics, run)
            again = None
            if self.scoring == "loo" and source.is_all:
                rows = rows_per_update(probe.shape[1])
                again = feature_blocks(self.feature_map_, *source.first_rows(), rows)
            self._solve(statistics, tuned, again)
        else:
            self._iterate(source, probe.shape[1], tuned, run)

    def _forget_fit(self) -> None:
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)

    def _solver_for(self, n_features: int, *, adding: bool) -> str:
        """What "auto" means for as many features; what adds rows needs the exact solver."""
        fits = 2 * 8 * n_features**2 <= EXACT_BYTES
        if self.solver == "auto" and not fits and adding:
            raise ValueError(
                f"partial_fit and statistics must have at most 8192 features, got {n_features}, to "
                "stay within 1 GiB; take fewer components, or set solver='exact' and have the "
                "memory."
            )
        if self.solver != "auto":
            return self.solver
        return "exact" if fits else "cg"

    def _collected(
        self, source: ResumableBlocks, statistics: RidgeStatistics, run: Run
    ) -> RidgeStatistics:
        """The statistics, or those in the checkpoint, with the rows of the blocks."""
        n_features = statistics.n_features
        done = PassedRows(statistics, 0, b"")
        if run.saved is not None:
            done = rows_from_arrays(run.saved, n_features, statistics.n_targets)
            run.saved, statistics = None, done.statistics
        passed = PassedBlocks()
        rows = rows_per_update(n_features)
        # Small ones, whose memory is used again and not asked of the system each time.
        few = min(rows, rows_per_block(n_features, 8))

        def features() -> Iterator[Block]:
            to_skip, is_compared = done.n_passed, False
            for checked in source.once(passed):
                n_rows = n_rows_of(checked[0])
                if n_rows > to_skip:
                    if not is_compared:
                        source.compare_rows(passed, done.n_passed, done.digest)
                        is_compared = True
                    yield from feature_blocks(self.feature_map_, *checked, few, begin=to_skip)
                to_skip = max(0, to_skip - n_rows)
                del checked  # not to be held while the next one comes
            if not is_compared:
                source.compare_rows(passed, done.n_passed, done.digest)

        n_passed = done.n_passed
        for block in gathered(features(), rows):
            statistics.update(*block)
            n_passed += len(block[1])
            digest = passed.digest(n_passed)
            run.progress.advance(len(block[1]))
            if run.is_due():
                run.save(rows_to_arrays(PassedRows(statistics, n_passed, digest)))
        return statistics

    def _solve(
        self,
        statistics: RidgeStatistics,
        tuned: float | None,
        rows: Iterable[Block] | None = None,
    ) -> None:
        """Set what follows from the statistics; `rows` are for leaving out each of them."""
        penalty = penalties(self.alpha, self.noise) if tuned is None else tuned
        fit = ridge_fit(statistics, penalty, fit_intercept=bool(self.fit_intercept), rows=rows)
        for name in ("alphas_", "scores_"):
            self.__dict__.pop(name, None)
        if isinstance(penalty, np.ndarray):
            self.alphas_, self.scores_ = penalty, fit.scores
        self._fit = fit
        self.coef_, self.intercept_, self.alpha_ = fit.coef, fit.intercept, fit.alpha
        self._set_noise(fit.evidence.noise())
        self.statistics_ = statistics
        self.n_iter_ = 1

    def _iterate(
        self, source: ResumableBlocks, n_features: int, tuned: float | None, run: Run
    ) -> None:
        """Set what conjugate gradients find."""
        if not source.repeatable:
            raise ValueError(
                "blocks must be something to pass over repeatedly for solver='cg', such as a list, "
                "got an iterator; or set solver='exact'."
            )
        alpha = penalties(self.alpha, self.noise) if tuned is None else tuned
        if not isinstance(alpha, float) or alpha == 0.0:
            raise ValueError(
                f"alpha must be one positive number for solver='cg', got {self.alpha!r}; set "
                "solver='exact' to compare several."
            )
        saved: Iteration | None = None
        digest: bytes | None = None
        if run.saved is not None:
            saved, digest = iteration_from_arrays(run.saved, n_features, self._n_outputs)
            run.saved = None
        rows = rows_per_update(n_features)

        def one_pass() -> Iterator[Block]:
            nonlocal digest
            passed = PassedBlocks()
            found = b""
            for checked in source.again(passed):
                for block in feature_blocks(self.feature_map_, *checked, rows):
                    yield block
                    run.progress.advance(len(block[1]))
                found = passed.digest(passed.n_rows)
                del checked
            if digest is not None:
                source.compare_rows(passed, passed.n_rows, digest)
            digest = found

        def keep(iteration: Iteration) -> None:
            if run.is_due():
                assert digest is not None  # there was a pass before
                run.save(iteration_to_arrays(iteration, digest))

        solution = ridge_by_conjugate_gradients(
            one_pass,
            alpha,
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_iter=self.max_iter,
            stream=self.stream_,
            report=run.progress.end_pass,
            saved=saved,
            keep=keep,
        )
        if solution.residual > self.tol:
            warnings.warn(
                f"Conjugate gradients stopped after {solution.n_iter} iterations at a residual of "
                f"{solution.residual:.1e}, above tol={self.tol:g}; increase max_iter, alpha or "
                "tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.alpha_ = alpha
        n_degrees = solution.n_rows - bool(self.fit_intercept)
        self._set_noise(
            solution.objective / n_degrees if n_degrees else solution.objective * np.nan
        )
        self.n_iter_ = max(1, solution.n_iter)

    def _tune(self, X: Any, Y: _Array, weights: _Array | None, run: Run) -> float:
        tuned = tuned_map(
            unfitted_feature_map(self.feature_map, self.stream_, self.n_threads),
            self.feature_map_,
            X,
            Y,
            weights,
            alpha=None if self.alpha is None else check_alpha("alpha with tune=True", self.alpha),
            noise=self.noise,
            fit_intercept=self.fit_intercept,
            budget=self.tune_budget,
            stream=self.stream_,
            report=run.progress.end_pass,
        )
        self.feature_map_ = tuned.feature_map.fit(X)
        self.tuning_ = tuned.table
        return tuned.alpha

    def _set_noise(self, estimate: _Array) -> None:
        noise = estimate if self.noise is None else np.full_like(estimate, self.noise)
        self.noise_ = noise if self._targets_ndim == 2 else float(noise[0])

    def _check_block(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, stream: Stream | None = None
    ) -> Rows:
        """Checked rows; the first ones, with `reset`, are what the map is fitted on."""
        if y is None:
            check_targets(self, y, 0)
        X = self._start(X, stream, y) if reset else self._check_rows(X, reset=False)
        n_rows = n_rows_of(X)
        Y = check_targets(self, y, n_rows)
        shape = Y.shape[1:]
        if reset:
            self._targets_ndim, self._n_outputs = Y.ndim, Y[:1].size
        elif (Y.ndim, Y[:1].size) != (self._targets_ndim, self._n_outputs):
            first = () if self._targets_ndim == 1 else (self._n_outputs,)
            raise ValueError(
                f"y must be of shape (n_samples, *{first}) as in the first rows, got (n_samples, "
                f"*{shape}); to change the outputs, call fit."
            )
        return X, Y, optional_weights(sample_weight, n_rows)

    def _threads(self) -> AbstractContextManager[Any]:
        resolve_threads(self.n_threads)
        if self.n_threads is None:
            return nullcontext()
        limits: AbstractContextManager[Any] = threadpool_limits(self.n_threads, user_api="blas")
        return limits
