"""Kernel ridge regression, which is also a Gaussian process, on features that are never stored."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelmill.arguments import check_choice, check_integer, check_not_negative
from kernelmill.errors import ArgumentError, ArgumentTypeError, Doubt, Remedy
from kernelmill.learners.base import KernelMachine
from kernelmill.learners.blocks import Block, BlockSource, count_rows, take_rows
from kernelmill.learners.features import compute_features
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.posterior import Posterior
from kernelmill.learners.ridge import RidgeObjective, check_penalties
from kernelmill.learners.run import Run
from kernelmill.learners.saving import learner_record
from kernelmill.learners.solvers.cg import CgFit
from kernelmill.learners.solvers.choice import RidgeSolver
from kernelmill.learners.solvers.exact import (
    RidgeFit,
    add_rows,
    collect_statistics,
    solve_statistics,
)
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.learners.targets import TargetShape, check_optional_weights, check_targets
from kernelmill.learners.tuning import tune_map
from kernelmill.maps.registry import map_name
from kernelmill.maps.shift_invariant import ShiftInvariantMap
from kernelmill.maps.transformers import make_feature_map
from kernelmill.random import Stream
from kernelmill.runtime.threads import limit_blas_threads
from kernelmill.storage import write_model_file

__all__ = ["LEAST_SINGLE_ALPHA", "KernelRegressor"]

_Array = NDArray[np.float64]
LEAST_SINGLE_ALPHA = 1e-7  # of landmarks, whose features are exact to some 1e-5 in float32
_OF_ONE_FIT = (
    "alphas_",
    "scores_",
    "tuning_",
    "learned_scales_",
    "statistics_",
    "_fit",
    "_is_loaded",
)


def _adds_rows(regressor: KernelRegressor) -> bool:
    """Return whether partial_fit is available: "cg" needs all rows in each iteration."""
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
    flat prior of the constant b (Rasmussen & Williams, 2006, sections 2.3 and 2.7). Features are
    computed a block at a time and never stored: memory does not depend on the number of rows.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill, any scikit-learn transformer, or the name of a map, which stands for
        that map with 2048 components.
    alpha : float or sequence of float, optional
        The penalty. Of several, the best one by `scoring` is used. The variances of noise and
        process are estimated by their evidence, with this ratio. The default, if `noise` is not
        given either, is 1, as in scikit-learn's `KernelRidge`.
    noise : float, optional
        Instead of `alpha`: the variance of the noise of a Gaussian process whose covariance is the
        kernel of the map. The weights are those of alpha=noise, and the uncertainties are absolute,
        like those of scikit-learn's ``GaussianProcessRegressor(kernel, alpha=noise)``.
    fit_intercept : bool, default=True
        Whether there is a constant b. Without it, results are exactly those of `KernelRidge` and
        `GaussianProcessRegressor` with the kernel zᵀz'.
    solver : {"auto", "exact", "cg"}, default="auto"
        "exact" passes over the rows once and factors a D x D matrix, for D features. "cg",
        conjugate gradients, passes over them in each iteration and needs no such matrix; it gives
        no uncertainties. "auto" is "exact" for up to 8192 features, whose matrices take 1 GiB.
    scoring : {"gcv", "loo"}, default="gcv"
        How several `alpha` are compared: generalized cross-validation, or the mean squared error of
        leaving out each row, which takes a second pass over the rows.
    tune : bool or "columns", default=False
        True chooses the length scale of the map by the evidence of at most 2048 rows with at most
        1024 features, and also alpha unless `alpha` or `noise` is given. The map, or the last step
        of a pipeline, must have a parameter `length_scale` or `gamma`. "columns" learns a length
        scale for each column by evidence (automatic relevance determination), for maps of
        kernelmill, and falls back to one for all columns unless that has a lower error on other
        rows. Weights of rows are not used for that.
    column_groups : array_like of int of shape (n_features,), optional
        With ``tune="columns"``: columns with the same number share a length scale, such as the
        one-hot columns of a category.
    tune_budget : int, default=20
        The number of length scales to try.
    max_iter : int, default=500
        The maximum number of iterations of "cg".
    tol : float, default=1e-6
        "cg" stops when the norm of the residual of the normal equations, relative to that of their
        right-hand side, is smaller.
    checkpoint : str or path, default=None
        A file in which `fit` and `fit_blocks` save their state. If the process dies, the same call
        resumes from there with the same result, bit for bit with the same number of threads; at
        the end the file is deleted. The blocks have to be the same again: a list, not an iterator.
        The state of the exact solver takes 8 D² bytes. Tuning, if any, is repeated.
    checkpoint_seconds : float, default=60.0
        The least time between two states that are saved.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the map if its own `random_state` is None, and the sampling of rows.
    n_threads : int, optional
        For the map and the linear algebra of fitting; the default is the number of CPUs.
    verbose : int, default=0
        1 prints the progress of tuning and "cg" to stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, D)
    intercept_ : ndarray of shape (n_outputs,)
    feature_map_ : transformer
        The fitted map.
    alpha_ : float
        The penalty in use.
    noise_ : float or ndarray of shape (n_outputs,)
        The variance of the noise of a row of weight one: given, or estimated. NaN if there is one
        row only and an intercept.
    alphas_, scores_ : ndarray
        With several `alpha`: their values and scores, which are estimates of the squared error.
    tuning_ : dict of ndarray
        With ``tune=True``: the length scales tried, the best alpha for each and its log evidence.
        With ``tune="columns"``: the "error" with one length scale, and with one for each column.
    learned_scales_ : LearnedScales
        With ``tune="columns"``.
    statistics_ : RidgeStatistics
        The statistics of the rows, with the exact solver.
    n_iter_ : int
        The number of iterations of "cg"; 1 with the exact solver.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    `sample_weight` gives the precision of rows: the noise of row i has variance σ²/wᵢ. For W and b
    that is the same as repeating rows; for noise and evidence it is not.

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

    alpha_: float
    noise_: Any
    alphas_: _Array
    scores_: _Array | None
    tuning_: dict[str, _Array]
    statistics_: RidgeStatistics
    n_iter_: int
    _fit: RidgeFit
    _targets: TargetShape

    _score_dtype = np.float64

    def __init__(
        self,
        feature_map: Any = "fastfood",
        *,
        alpha: Any = None,
        noise: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        scoring: str = "gcv",
        tune: Any = False,
        tune_budget: int = 20,
        column_groups: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
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
        self.column_groups = column_groups
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, run: Run | None = None) -> Self:
        """Fit the map and the weights.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional
            Not negative. A row of weight zero counts as absent, except that a length scale that
            the map estimates from the data depends on all rows.
        run : Run, optional
            Checkpoint and progress of the training run, instead of those that the parameters
            `checkpoint`, `checkpoint_seconds` and `verbose` describe. The caller finishes it.

        Returns
        -------
        self
            If anything is raised, an interrupt included, it stays as it was before the call.
        """
        with self._start_run(run) as current, self._limit_blas(X):
            self._check_parameters()
            self._fit_source(BlockSource.from_arrays(X, y, sample_weight), current)
        return self

    def fit_blocks(self, blocks: Iterable[Any], *, run: Run | None = None) -> Self:
        """Fit to rows that come in blocks; the map is fitted, and tuned, on the first of them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Of any sizes; at most one is held at a time. The exact solver takes each once; "cg"
            needs something that can be passed over repeatedly, such as a list.
        run : Run, optional
            As in `fit`.

        Returns
        -------
        self
            As by `fit` of all rows with the same map, up to rounding. If anything is raised, it
            stays as it was before the call.
        """
        self._solver().check_one_pass(self.alpha)
        with self._start_run(run) as current, limit_blas_threads(self.n_threads):
            self._check_parameters()
            self._fit_source(BlockSource(blocks), current)
        return self

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows and solve again; the first call fits, and tunes, the map.

        What the map estimated from the first rows, such as its length scale, stays. A tuned alpha
        stays too; of several `alpha`, the best one is chosen again.

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
        self._solver().check_one_pass(self.alpha)
        with self._unchanged_on_failure(), limit_blas_threads(self.n_threads):
            self._check_parameters()
            if not hasattr(self, "coef_"):
                source = BlockSource.from_arrays(X, y, sample_weight)
                self._fit_source(source, self._make_run(), adding=True)
                return self
            known = self._posterior().require_statistics()
            block = self._check_block(X, y, sample_weight)
            statistics = add_rows(known, self._features(), block)
            tuned = self.alpha_ if hasattr(self, "tuning_") else None
            self._solve_statistics(statistics, self._penalty(tuned))
        return self

    def predict(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """Return the mean of the process, which is the ridge fit, and optionally its deviation.

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
        if not return_std:
            return self._predictions(self._scores(X, self._score_dtype))
        posterior = self._posterior()
        posterior.require_fit()
        X = self._check_rows(X, reset=False)
        mean, variances = self._linear_model().means_and_variances(X, posterior)
        std = np.sqrt((variances + (1.0 if include_noise else 0.0)) * self.noise_)
        return self._targets.restore(mean), self._targets.restore(std)

    def _predictions(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._targets.restore(scores))

    def log_marginal_likelihood(
        self, *, alpha: float | None = None, noise: float | None = None
    ) -> float:
        """Return the log evidence of the fitted rows, summed over outputs.

        With an intercept, p(y) is the integral of p(y | b) over its flat prior db, with the factor
        (2π)^(-(n-1)/2): equation 2.45 of Rasmussen & Williams (2006). It is computed from the
        statistics alone, in O(D³) for other alpha or noise than the fitted ones.

        Parameters
        ----------
        alpha : float, optional
            Another ratio of the variances of noise and process; the noise is estimated for it.
        noise : float, optional
            Another variance of the noise; that of the process is one.
        """
        check_is_fitted(self)
        return self._posterior().log_marginal_likelihood(alpha, noise)

    def statistics(self, X: Any, y: Any, sample_weight: Any = None) -> MappedStatistics:
        """Return the statistics of some rows, for `fit_statistics`; the regressor does not change.

        Several machines each collect the statistics of their own rows; merged, they determine one
        model. All of them need the same map: with an integer `random_state`, its own or that of
        the regressor, and a number as its length scale. Merging statistics of two maps is an
        error. To tune the length scale, fit some rows with ``tune=True`` first and use the fitted
        ``model.feature_map_``.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional

        Returns
        -------
        MappedStatistics
            They can be pickled and take 8 D² bytes. They do not depend on `alpha`, `noise` and
            `fit_intercept`.
        """
        return self.statistics_of_blocks([(X, y, sample_weight)])

    def statistics_of_blocks(self, blocks: Iterable[Any]) -> MappedStatistics:
        """Return the statistics of rows that come in blocks, as by `statistics` of all of them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Of any sizes; at most one is held at a time, and each is taken once.

        Returns
        -------
        MappedStatistics
        """
        collector = clone(self)
        with limit_blas_threads(self.n_threads):
            collector._check_parameters()
            self._solver().check_statistics(self.alpha, "statistics")
            if self.tune:
                raise ArgumentError(
                    "must be False to compute statistics, got True: each machine would tune its "
                    "own map",
                    "tune on a sample of the rows with fit, and use the fitted feature_map_",
                    parameter="tune",
                )
            source = BlockSource(blocks)
            probe = collector._start(source, Run())
            self._solver().resolve(probe.shape[1], adding=True)
            statistics = MappedStatistics(
                collector.feature_map_,
                probe.shape[1],
                collector._targets.n_outputs,
                n_features_in=getattr(collector, "n_features_in_", None),
                feature_names_in=getattr(collector, "feature_names_in_", None),
                targets_ndim=collector._targets.ndim,
            )
            collect_statistics(collector._features(), source, Run(), statistics)
        return statistics

    def fit_statistics(self, statistics: MappedStatistics) -> Self:
        """Fit to the rows whose statistics were collected, by this or by other regressors.

        Parameters
        ----------
        statistics : MappedStatistics
            From `statistics` or `statistics_of_blocks`, merged. A copy is kept, to which
            `partial_fit` can add rows. The map is that of the statistics, not `feature_map`.

        Returns
        -------
        self
            As by `fit` of all rows with the same map, up to rounding. If anything is raised, it
            stays as it was before the call.
        """
        if not isinstance(statistics, MappedStatistics):
            raise ArgumentTypeError(
                "must be returned by KernelRegressor.statistics, which includes the map, got "
                f"{type(statistics).__name__}",
                parameter="statistics",
            )
        with self._unchanged_on_failure(), limit_blas_threads(self.n_threads):
            self._check_parameters()
            self._solver().check_statistics(self.alpha, "fit_statistics")
            for name in _OF_ONE_FIT:
                self.__dict__.pop(name, None)
            known = copy.deepcopy(statistics)
            self.feature_map_ = known.feature_map
            self.stream_ = Stream.from_random_state(self.random_state)
            for name in ("n_features_in", "feature_names_in"):
                self.__dict__.pop(f"{name}_", None)
                if getattr(known, name) is not None:
                    setattr(self, f"{name}_", getattr(known, name))
            self._targets = TargetShape(known.targets_ndim, known.n_targets)
            self._solve_statistics(known, self._penalty(None))
        return self

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        weights: str = "float32",
        uncertainty: bool | str = "auto",
    ) -> None:
        """Write the fitted regressor to a file, for `load_learner`; see `KernelMachine.save`.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the weights in the file.
        uncertainty : bool or "auto", default="auto"
            Whether the file has what ``predict(X, return_std=True)`` needs, which takes 2 D² bytes
            (4 D² with float64 weights). "auto" is True up to 4096 features, if available. The
            statistics of the rows are never in the file.
        """
        record, tensors = learner_record(self, weights, uncertainty)
        write_model_file(path, kind="learner", record=record, tensors=tensors)

    def _solver(self) -> RidgeSolver:
        return RidgeSolver.from_parameters(self.get_params(deep=False))

    def _posterior(self) -> Posterior:
        return Posterior(
            fit=getattr(self, "_fit", None),
            statistics=getattr(self, "statistics_", None),
            noise=np.atleast_1d(np.asarray(self.noise_, dtype=np.float64)),
            is_loaded=hasattr(self, "_is_loaded"),
        )

    def _check_parameters(self) -> None:
        self._solver().check()
        check_integer("tune_budget", self.tune_budget, 1)
        if isinstance(self.tune, str):
            check_choice("tune", self.tune, ("columns",))
        check_penalties(self.alpha, self.noise)

    def _start(self, source: BlockSource, run: Run) -> NDArray[Any]:
        """Fit the map, and tune it, on the first block; return the features of one row.

        From then on the source gives checked blocks.
        """
        if run.path is not None:
            source.require_passes(
                "a checkpoint", Remedy("train without a checkpoint", checkpoint=None)
            )
        X, y, sample_weight, _ = source.first
        stream, digest = self._open_checkpoint(run, source.first)
        if y is None:
            check_targets(y, 0, type(self).__name__)
        X = self._fit_map(X, y, stream)
        Y = check_targets(y, count_rows(X), type(self).__name__)
        self._targets = TargetShape.of_targets(Y)
        weights = check_optional_weights(sample_weight, len(Y))
        source.check_with(self._check_block, Block(X, Y, weights), digest=digest)
        return compute_features(self.feature_map_, take_rows(X, slice(0, 1)))

    def _fit_source(self, source: BlockSource, run: Run, *, adding: bool = False) -> None:
        """Fit the map on the first block and the weights on all; `adding` if more rows follow."""
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        probe = self._start(source, run)
        tuned = None
        if self.tune:
            tuned = self._tune(source.first, run)
            probe = compute_features(self.feature_map_, take_rows(source.first.X, slice(0, 1)))
        run.set_origin(self.stream_, probe)
        run.begin()
        objective = RidgeObjective(
            self._features(),
            n_features=probe.shape[1],
            n_targets=self._targets.n_outputs,
            penalty=self._penalty(tuned),
            fit_intercept=bool(self.fit_intercept),
            equal_lengths=isinstance(self.feature_map_, ShiftInvariantMap)
            and self.feature_map_.features != "projection",
        )
        solver = self._solver().resolve(probe.shape[1], adding=adding)
        fit, statistics = solver.solve(objective, source, run, stream=self.stream_)
        self._take_fit(fit, statistics, objective.penalty)
        least = float(np.min(self.alpha_))
        is_single = probe.dtype == np.float32 and map_name(self.feature_map_) == "nystroem"
        if is_single and least < LEAST_SINGLE_ALPHA:
            run.progress.note(
                Doubt(
                    f"The penalty {least:g} is below the rounding error of landmark features in "
                    "float32, so predictions may be poor",
                    Remedy("use a larger penalty", alpha=LEAST_SINGLE_ALPHA),
                    "pass X as float64",
                )
            )

    def _penalty(self, tuned: float | _Array | None) -> float | _Array:
        return check_penalties(self.alpha, self.noise) if tuned is None else tuned

    def _solve_statistics(self, statistics: RidgeStatistics, penalty: float | _Array) -> None:
        fit = solve_statistics(statistics, penalty, fit_intercept=bool(self.fit_intercept))
        self._take_fit(fit, statistics, penalty)

    def _take_fit(
        self,
        fit: RidgeFit | CgFit,
        statistics: RidgeStatistics | None,
        penalty: float | _Array,
    ) -> None:
        for name in ("alphas_", "scores_"):
            self.__dict__.pop(name, None)
        self._set_weights(fit.coef, fit.intercept)
        self.alpha_, self.n_iter_ = fit.alpha, max(1, fit.n_iter)
        noise = fit.noise() if self.noise is None else np.full(len(fit.coef), float(self.noise))
        self.noise_ = noise if self._targets.ndim == 2 else float(noise[0])
        if statistics is not None:
            self.statistics_ = statistics
        if isinstance(fit, RidgeFit):
            self._fit = fit
            if isinstance(penalty, np.ndarray):
                self.alphas_, self.scores_ = penalty, fit.scores

    def _tune(self, block: Block, run: Run) -> float | _Array:
        if isinstance(self.tune, str):
            Y = block.y.reshape(len(block.y), -1)
            found = self._tune_columns(block.X, Y, block.weight, run.progress)
            self.tuning_ = {"error": found.errors}
            penalty = check_penalties(self.alpha, self.noise)
            given = self.alpha is not None or self.noise is not None
            return found.alpha if not given else penalty
        alpha = self.alpha
        if alpha is not None:
            alpha = check_not_negative("alpha with tune=True", alpha)
        tuned = tune_map(
            make_feature_map(self.feature_map, self.stream_, self.n_threads),
            self.feature_map_,
            block,
            alpha=alpha,
            noise=self.noise,
            fit_intercept=self.fit_intercept,
            budget=self.tune_budget,
            stream=self.stream_,
            progress=run.progress,
        )
        self.feature_map_ = tuned.feature_map.fit(block.X)
        self.tuning_ = tuned.table
        return tuned.alpha

    def _check_block(self, X: Any, y: Any, sample_weight: Any) -> Block:
        """Return checked rows, with targets like those of the first rows."""
        if y is None:
            check_targets(y, 0, type(self).__name__)
        X = self._check_rows(X, reset=False)
        Y = check_targets(y, count_rows(X), type(self).__name__)
        self._targets.require(Y)
        return Block(X, Y, check_optional_weights(sample_weight, len(Y)))
