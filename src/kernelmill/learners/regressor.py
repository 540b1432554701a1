"""Kernel ridge regression, which is also a Gaussian process, on features that are never stored."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from kernelmill.learners.base import KernelMachine
from kernelmill.learners.conjugate_gradients import ridge_by_conjugate_gradients
from kernelmill.learners.feature_map import unfitted_feature_map
from kernelmill.learners.mapped_rows import n_rows_of, rows_per_block, take_rows
from kernelmill.learners.penalty import penalties, single_penalty
from kernelmill.learners.regression_rows import (
    Block,
    checked_targets,
    feature_blocks,
    gathered,
    optional_weights,
    unpacked,
)
from kernelmill.learners.ridge import checked_alpha
from kernelmill.learners.ridge_fit import ridge_fit
from kernelmill.learners.statistics import RidgeStatistics, rows_per_update
from kernelmill.learners.tuning import tuned_map
from kernelmill.maps.base import checked_choice
from kernelmill.random.arguments import checked_integer, checked_positive
from kernelmill.runtime.threads import resolve_threads

__all__ = ["EXACT_BYTES", "KernelRegressor"]

EXACT_BYTES = 1 << 30
"""What solver="auto" lets the two D x D matrices of the exact solver take: up to 8192 features."""

_Array = NDArray[np.float64]
_OF_ONE_FIT = ("alphas_", "scores_", "tuning_", "statistics_", "_fit")


def _fits(n_features: int) -> bool:
    """Whether the moments and their factor, in float64, are within the bound."""
    return 2 * 8 * n_features**2 <= EXACT_BYTES


def _adds_rows(regressor: KernelRegressor) -> bool:
    """Whether there is a partial_fit: conjugate gradients need all rows in each iteration."""
    if regressor.solver == "cg":
        raise AttributeError("partial_fit needs solver='exact', got 'cg'; set another solver.")
    return True


class KernelRegressor(
    RegressorMixin,  # type: ignore[misc] # scikit-learn is untyped
    MultiOutputMixin,  # type: ignore[misc]
    KernelMachine,
):
    """Kernel ridge regression at linear cost, with the uncertainties of a Gaussian process.

    Minimizes Σ wᵢ |yᵢ - zᵢᵀW - b|² + α|W|² over W and b, for features zᵢ of a map whose inner
    products estimate a kernel. That is kernel ridge regression with the map's kernel, and the mean
    of a Gaussian process with it: covariance s² zᵀz', noise of variance σ²/wᵢ, α = σ²/s², and a
    flat prior of the constant b (Rasmussen & Williams 2006, sections 2.3 and 2.7). Features are
    made a block at a time and never stored: the memory does not depend on the number of rows.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill, any scikit-learn transformer, or the name of a map, which stands for it
        with 2048 components.
    alpha : float or sequence of float, optional
        The penalty. Of several, the best one by `scoring` is taken. The variances of noise and
        process are then estimated, at this ratio, by their evidence. Neither `alpha` nor
        `noise` means alpha=1, as in scikit-learn's `KernelRidge`.
    noise : float, optional
        The variance of the noise of a Gaussian process that has the map's kernel as it is as its
        covariance, instead of `alpha`: the same weights as alpha=noise, and absolute uncertainties
        as those of scikit-learn's ``GaussianProcessRegressor(kernel, alpha=noise)``.
    fit_intercept : bool, default=True
        Whether there is a constant b. Without it, results are exactly those of `KernelRidge` and
        `GaussianProcessRegressor` with the kernel zᵀz'.
    solver : {"auto", "exact", "cg"}, default="auto"
        "exact" passes over the rows once and factors a D x D matrix, for D features. "cg",
        conjugate gradients, passes over them in each iteration and holds no such matrix; it has no
        uncertainties. "auto" is "exact" for up to 8192 features, for which the matrices take 1 GiB.
    scoring : {"gcv", "loo"}, default="gcv"
        How several `alpha` are compared: generalized cross-validation, or the mean squared error of
        leaving out each row, which takes a second pass over the rows.
    tune : bool, default=False
        Choose the length scale of the map by the evidence of at most 2048 rows with at most 1024
        features, and with it alpha, unless `alpha` or `noise` is given. The map has to have a
        parameter `length_scale` or `gamma`; of a pipeline, the last step.
    tune_budget : int, default=20
        How many length scales to try.
    max_iter : int, default=500
        Iterations of "cg".
    tol : float, default=1e-6
        When "cg" stops: the norm of the residual of the normal equations, relative to that of their
        right-hand side.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the map, if it has no seed of its own, and whatever rows are sampled.
    n_threads : int, optional
        For the map and the linear algebra; as many as there are CPUs by default.
    verbose : int, default=0
        Whether tuning and "cg" tell on stderr how far they are.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, D)
    intercept_ : ndarray of shape (n_outputs,)
    feature_map_ : transformer
        The fitted map.
    alpha_ : float
        The penalty in use.
    noise_ : float or ndarray of shape (n_outputs,)
        The variance of the noise of a row of weight one: given, or estimated. NaN where one row
        alone, beside an intercept, leaves it open.
    alphas_, scores_ : ndarray
        Of several `alpha`: their values and scores, which are estimates of the squared error.
    tuning_ : dict of ndarray
        With `tune`: the length scales tried, their best alpha and log evidence.
    statistics_ : RidgeStatistics
        Of the exact solver: what it knows of the rows.
    n_iter_ : int
        Iterations of "cg"; 1 for the exact solver.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `sample_weight` says how precise rows are: the noise of row i has variance σ²/wᵢ. For the
    weights, W and b, that is the same as repeating rows; for noise and evidence it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.learners.regressor import KernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1000, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(1000)
    >>> model = KernelRegressor(Fastfood(n_components=256), tune=True, random_state=0).fit(X, y)
    >>> mean, std = model.predict(np.array([[0.0], [30.0]]), return_std=True)
    >>> bool(abs(mean[0]) < 0.1 and std[0] < 0.1 < std[1])
    True
    >>> bool(0.08 < np.sqrt(model.noise_) < 0.12)
    True
    """

    def __init__(
        self,
        feature_map: Any = "fastfood",
        *,
        alpha: Any = None,
        noise: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        scoring: str = "gcv",
        tune: bool = False,
        tune_budget: int = 20,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.feature_map = feature_map
        self.alpha = alpha
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.scoring = scoring
        self.tune = tune
        self.tune_budget = tune_budget
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map and the weights.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional
            Not negative. A row of weight zero is as if it were absent, except that a length scale
            that the map takes from the data counts all rows.

        Returns
        -------
        self
            If anything is raised, an interrupt included, it stays as it was before the call.
        """
        return self._fit_anew([(X, y, sample_weight)], self.solver)

    def fit_blocks(self, blocks: Iterable[Any]) -> Self:
        """Fit to rows that come in blocks; the map is fitted, and tuned, on the first of them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Of any sizes; at most one is held at a time. The exact solver takes each once; "cg"
            needs something that can be passed over again, such as a list.

        Returns
        -------
        self
            As by `fit` of all rows with the same map, up to rounding. If anything is raised, it
            stays as it was before the call.
        """
        self._refuse_leave_one_out()
        try:
            iter(blocks)
        except TypeError:
            raise TypeError(
                f"blocks must be an iterable of (X, y), got {type(blocks).__name__}."
            ) from None
        return self._fit_anew(blocks, self.solver)

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take in more rows and solve again; the first call fits, and tunes, the map.

        What the map took from the first rows, its length scale for one, stays. A tuned alpha stays
        too; of several `alpha`, the best one is chosen again.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional

        Returns
        -------
        self
            As by `fit` of all rows so far with the same map, up to rounding. If anything is
            raised, it stays as it was before the call.
        """
        self._refuse_leave_one_out()
        if not hasattr(self, "coef_"):
            return self._fit_anew([(X, y, sample_weight)], self.solver, adding=True)
        if not hasattr(self, "statistics_"):
            raise ValueError(
                "partial_fit needs what the exact solver knows of earlier rows, got a regressor "
                "fitted by conjugate gradients; fit with solver='exact', or all rows at once."
            )
        with self._unchanged_on_failure(), self._threads():
            self._check_parameters()
            rows = rows_per_update(self.coef_.shape[1])
            statistics = RidgeStatistics(*self.coef_.shape[::-1])
            X, Y, weights = self._checked_block(X, y, sample_weight, reset=False)
            for block in feature_blocks(self.feature_map_, X, Y, weights, rows):
                statistics.update(*block)
            # Into the new ones, not the old ones: those stay whole whatever happens.
            statistics.merge(self.statistics_)
            tuned = self.alpha_ if hasattr(self, "tuning_") else None
            self._solve(statistics, tuned)
        return self

    def predict(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """The mean of the process, which is the ridge fit, and its standard deviation if asked for.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        return_std : bool, default=False
        include_noise : bool, default=False
            Whether the standard deviation is that of a new target of weight one, noise included;
            by default it is that of the function without noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        std : ndarray of the same shape
            Only with `return_std`. The uncertainty of the intercept is part of it.
        """
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        if return_std and not hasattr(self, "_fit"):
            raise ValueError(
                "return_std needs the exact solver, got a regressor fitted by solver='cg'; set "
                "solver='exact' and fit again."
            )
        if return_std and np.isnan(self.noise_).any():
            raise ValueError(
                "return_std needs two rows to estimate the noise beside an intercept, got one; "
                "give noise, or fit_intercept=False."
            )
        n_outputs = len(self.coef_)
        mean = np.empty((n_rows_of(X), n_outputs))
        spread = np.empty((n_rows_of(X), 1)) if return_std else None
        weights = np.asfortranarray(self.coef_.T)
        with self._threads():
            # The spread takes a solve with a D x D matrix, which is not read for a few rows.
            rows = rows_per_update(len(weights)) if return_std else None
            for block, features in self._feature_blocks(X, rows):
                Z = features.astype(np.float64)  # a copy: the spread is found in its place
                np.matmul(Z, weights, out=mean[block])
                if spread is not None:
                    spread[block, 0] = self._fit.relative_variances(Z)
        mean += self.intercept_
        if spread is None:
            return mean if self._targets_ndim == 2 else mean[:, 0]
        std = np.sqrt((spread + (1.0 if include_noise else 0.0)) * self.noise_)
        return (mean, std) if self._targets_ndim == 2 else (mean[:, 0], std[:, 0])

    def log_marginal_likelihood(
        self, *, alpha: float | None = None, noise: float | None = None
    ) -> float:
        """The logarithm of the evidence of the fitted rows, outputs added up.

        With an intercept, p(y) is the integral of p(y | b) over its flat prior db, with the factor
        (2π)^(-(n-1)/2): what Rasmussen & Williams (2006) have in equation 2.45. Only the statistics
        are needed, in O(D³) for another alpha or noise than the fitted ones.

        Parameters
        ----------
        alpha : float, optional
            Another ratio of the variances of noise and process; the noise is estimated for it.
        noise : float, optional
            Another variance of the noise; that of the process is one.
        """
        check_is_fitted(self)
        if not hasattr(self, "statistics_"):
            raise ValueError(
                "log_marginal_likelihood needs the exact solver, got a regressor fitted by "
                "solver='cg'; set solver='exact' and fit again."
            )
        evidence = self._fit.evidence
        variances = np.atleast_1d(np.asarray(self.noise_, dtype=np.float64))
        if alpha is not None or noise is not None:
            given = single_penalty(alpha, noise)
            intercept = self._fit.feature_mean is not None
            evidence = ridge_fit(self.statistics_, given, fit_intercept=intercept).evidence
            variances = evidence.noise() if noise is None else np.full(len(self.coef_), given)
        return float(evidence.log_likelihood(variances).sum())

    def _fit_anew(self, blocks: Iterable[Any], solver: str, *, adding: bool = False) -> Self:
        with self._unchanged_on_failure(), self._threads():
            self._check_parameters()
            for name in _OF_ONE_FIT:
                self.__dict__.pop(name, None)
            numbered = enumerate(blocks)
            first = next(numbered, None)
            if first is None:
                raise ValueError("blocks must have at least one block of rows, got none.")
            rows_of_first = [self._checked_block(*unpacked(first[1], 0), reset=True)]
            is_all = isinstance(blocks, list) and len(blocks) == 1
            tuned = self._tune(*rows_of_first[0]) if self.tune else None
            n_features = self._features(take_rows(rows_of_first[0][0], slice(0, 1))).shape[1]
            rows = rows_per_update(n_features)
            del first

            # Small ones, whose memory is used again and not asked of the system each time.
            few = min(rows, rows_per_block(n_features, 8))

            def first_pass() -> Iterator[Block]:
                yield from feature_blocks(self.feature_map_, *rows_of_first[0], few)
                if not is_all:
                    rows_of_first.clear()  # not to be held while others come
                for number, block in numbered:
                    checked = self._checked_block(*unpacked(block, number), reset=False)
                    yield from feature_blocks(self.feature_map_, *checked, few)

            if solver == "auto":
                solver = "exact" if _fits(n_features) else "cg"
                if adding and solver == "cg":
                    raise ValueError(
                        f"partial_fit must have at most 8192 features, got {n_features}, to stay "
                        "within 1 GiB; take fewer components, or set solver='exact' and have the "
                        "memory."
                    )
            if solver == "exact":
                statistics = RidgeStatistics(n_features, self._n_outputs)
                for block in gathered(first_pass(), rows):
                    statistics.update(*block)
                again = None
                if self.scoring == "loo" and is_all:
                    again = feature_blocks(self.feature_map_, *rows_of_first[0], rows)
                self._solve(statistics, tuned, again)
            else:
                self._iterate(rows_of_first if is_all else blocks, is_all, rows, tuned)
        return self

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
        self, blocks: Iterable[Any], checked: bool, rows: int, tuned: float | None
    ) -> None:
        """Set what conjugate gradients find."""
        if iter(blocks) is blocks:
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

        def one_pass() -> Iterator[Block]:
            for number, block in enumerate(blocks):
                part = unpacked(block, number)
                if not checked:
                    part = self._checked_block(*part, reset=False)
                yield from feature_blocks(self.feature_map_, *part, rows)

        solution = ridge_by_conjugate_gradients(
            one_pass,
            alpha,
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_iter=self.max_iter,
            stream=self.stream_,
            report=self._report,
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

    def _tune(self, X: Any, Y: _Array, weights: _Array | None) -> float:
        tuned = tuned_map(
            unfitted_feature_map(self.feature_map, self.stream_, self.n_threads),
            self.feature_map_,
            X,
            Y,
            weights,
            alpha=None if self.alpha is None else checked_alpha("alpha with tune=True", self.alpha),
            noise=self.noise,
            fit_intercept=self.fit_intercept,
            budget=self.tune_budget,
            stream=self.stream_,
            report=self._report,
        )
        self.feature_map_ = tuned.feature_map.fit(X)
        self.tuning_ = tuned.table
        return tuned.alpha

    def _set_noise(self, estimate: _Array) -> None:
        noise = estimate if self.noise is None else np.full_like(estimate, self.noise)
        self.noise_ = noise if self._targets_ndim == 2 else float(noise[0])

    def _checked_block(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, _Array, _Array | None]:
        if y is None:
            checked_targets(self, y, 0)
        X = self._start(X) if reset else self._checked_rows(X, reset=False)
        n_rows = n_rows_of(X)
        Y = checked_targets(self, y, n_rows)
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

    def _check_parameters(self) -> None:
        checked_choice("solver", self.solver, ("auto", "exact", "cg"))
        checked_choice("scoring", self.scoring, ("gcv", "loo"))
        checked_integer("tune_budget", self.tune_budget, 1)
        checked_integer("max_iter", self.max_iter, 1)
        checked_positive("tol", self.tol)
        penalties(self.alpha, self.noise)

    def _refuse_leave_one_out(self) -> None:
        if self.scoring == "loo" and np.ndim(self.alpha) > 0:
            raise ValueError(
                "scoring must be 'gcv' for rows that come one after the other, got 'loo', which "
                "takes a second pass over them; set scoring='gcv', or give all rows to fit."
            )

    def _threads(self) -> AbstractContextManager[Any]:
        resolve_threads(self.n_threads)
        if self.n_threads is None:
            return nullcontext()
        limits: AbstractContextManager[Any] = threadpool_limits(self.n_threads, user_api="blas")
        return limits

    def _report(self, line: str) -> None:
        if self.verbose:
            sys.stderr.write(f"{type(self).__name__}: {line}\n")
