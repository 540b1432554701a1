"""Kernel ridge regression and Gaussian processes on features that are never stored."""

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
from kernelmill.files import write_model_file
from kernelmill.learners.base import KernelMachine
from kernelmill.learners.blocks import Block, BlockSource, count_rows, take_rows
from kernelmill.learners.features import compute_features
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.posterior import Posterior
from kernelmill.learners.ridge import RidgeObjective, check_penalties
from kernelmill.learners.run import CHECKPOINT_SECONDS, Run
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
from kernelmill.learners.tuning.map_scale import tune_map
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.maps.registry import make_feature_map, map_name
from kernelmill.random import Stream
from kernelmill.runtime.threads import limit_blas_threads

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

    Minimizes Σ wᵢ |yᵢ - zᵢᵀW - b|² + α|W|² over W and b, where zᵢ are the features of a map whose
    inner products estimate a kernel. This is kernel ridge regression with the map's kernel, and
    also the mean of a Gaussian process with covariance s² zᵀz', noise variance σ²/wᵢ, α = σ²/s²,
    and a flat prior on the constant b (Rasmussen & Williams, 2006, sections 2.3 and 2.7). Features
    are computed one block at a time and never stored, so memory does not depend on the number of
    rows.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill, any scikit-learn transformer, or the name of a map with 2048
        components, as in `KernelClassifier`.
    alpha : float or sequence of float, optional
        The strength of the L2 penalty. If several are given, the best one by `scoring` is used. The
        variances of noise and process have this ratio and are estimated by maximizing the evidence.
        The default, if `noise` is not given either, is 1, as in scikit-learn's `KernelRidge`.
    noise : float, optional
        The noise variance of a Gaussian process whose covariance is the kernel of the map; an
        alternative to `alpha`. The weights are those of alpha=noise, and the standard deviations
        are absolute, as in scikit-learn's ``GaussianProcessRegressor(kernel, alpha=noise)``.
    fit_intercept : bool, default=True
        Whether to fit the constant b. Without it, the results equal those of `KernelRidge` and
        `GaussianProcessRegressor` with the kernel zᵀz'.
    solver : {"auto", "exact", "cg"}, default="auto"
        "exact" makes one pass over the rows and factors a D x D matrix, for D features. "cg"
        (conjugate gradients) makes one pass per iteration and needs no such matrix, but provides no
        standard deviations. "auto" selects "exact" for up to 8192 features, whose matrices take 1
        GiB.
    scoring : {"gcv", "loo"}, default="gcv"
        How several values of `alpha` are compared: by generalized cross-validation, or by
        leave-one-out squared errors, which takes a second pass over the rows.
    tune : bool or "columns", default=False
        True chooses the length scale of the map by maximizing the evidence of at most 2048 rows
        with at most 1024 features, and also alpha unless `alpha` or `noise` is given. The map, or
        the last step of a pipeline, must have a parameter `length_scale` or `gamma`. "columns"
        learns a length scale for each column (automatic relevance determination) for maps of
        kernelmill. The learned length scales are used only if they lower the error on other rows;
        otherwise all columns share one length scale. Row weights are not used for this.
    column_groups : array_like of int of shape (n_features,), optional
        For ``tune="columns"``: columns with the same number share a length scale, such as the
        one-hot columns of a categorical column.
    tune_budget : int, default=20
        The number of length scales to try.
    max_iter : int, default=500
        The maximum number of iterations of "cg".
    tol : float, default=1e-6
        "cg" stops when the norm of the residual of the normal equations, relative to the norm of
        the right-hand side, is below `tol`.
    checkpoint : str or path, default=None
        A file in which `fit` and `fit_blocks` save their state. If the process is interrupted, the
        same call resumes from this state; with the same number of threads, the result is
        bit-identical. The file is deleted at the end. The same blocks must be passed again, as a
        list, not as an iterator. The state of the exact solver takes 8 D² bytes. Tuning is
        repeated.
    checkpoint_seconds : float, default=60.0
        The minimum time between checkpoints.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sampling of rows, and of the map if its own `random_state` is None.
    n_threads : int, optional
        The number of threads of the map and of the linear algebra in fitting; the default is the
        number of CPUs.
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
        The noise variance of a row of weight one, given or estimated. NaN if there is only one row
        and an intercept.
    alphas_, scores_ : ndarray
        If several values of `alpha` are given: the values and their scores, which estimate the
        squared error.
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
    `sample_weight` is the precision of each row: the noise of row i has variance σ²/wᵢ. For W and
    b, this is equivalent to repeating rows; for the noise and the evidence, it is not.

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
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
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
            Non-negative weights. Rows of weight zero are ignored, except when the map estimates its
            length scale from the data.
        run : Run, optional
            The checkpoint and progress of the training run. It replaces the parameters
            `checkpoint`, `checkpoint_seconds` and `verbose`. The caller finishes the run.

        Returns
        -------
        self
            The fitted regressor. If an error or an interrupt is raised, the regressor is unchanged.
        """
        with self._start_run(run) as current, self._limit_blas(X):
            self._check_parameters()
            self._fit_source(BlockSource.from_arrays(X, y, sample_weight), current)
        return self

    def fit_blocks(self, blocks: Iterable[Any], *, run: Run | None = None) -> Self:
        """Fit to blocks of rows. The map is fitted and tuned on the first block.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Blocks of any sizes, with one block in memory at a time. The exact solver iterates over
            the blocks once; "cg" needs an iterable that can be iterated over repeatedly, such as a
            list.
        run : Run, optional
            As in `fit`.

        Returns
        -------
        self
            The same regressor as after `fit` on all rows with the same map, up to rounding. If an
            error is raised, the regressor is unchanged.
        """
        self._solver().check_one_pass(self.alpha)
        with self._start_run(run) as current, limit_blas_threads(self.n_threads):
            self._check_parameters()
            self._fit_source(BlockSource(blocks), current)
        return self

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows and solve again. The first call fits and tunes the map.

        Parameters that the map estimated from the first rows, such as its length scale, are kept,
        and so is a tuned alpha. If several values of `alpha` are given, the best one is chosen
        again.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional

        Returns
        -------
        self
            The same regressor as after `fit` on all rows so far with the same map, up to rounding.
            If an error is raised, the regressor is unchanged.
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
        """Return the predictive mean and, optionally, the standard deviation.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        return_std : bool, default=False
        include_noise : bool, default=False
            Whether the standard deviation includes the noise of a new target of weight one. By
            default it is the standard deviation of the noise-free function.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        std : ndarray of the same shape
            Only returned if `return_std` is True. It includes the uncertainty of the intercept.
        """
        check_is_fitted(self)
        if not return_std:
            return self._predictions(self._scores(X, self._score_dtype))
        posterior = self._posterior()
        posterior.require_fit()
        X = self._check_rows(X, reset=False)
        mean, std = self._linear_model().means_and_deviations(X, posterior, include_noise)
        return self._targets.restore(mean), self._targets.restore(std)

    def _predictions(self, scores: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._targets.restore(scores))

    def log_marginal_likelihood(
        self, *, alpha: float | None = None, noise: float | None = None
    ) -> float:
        """Return the log marginal likelihood (evidence) of the fitted rows, summed over outputs.

        With an intercept, p(y) is the integral of p(y | b) over its flat prior db, with the factor
        (2π)^(-(n-1)/2): equation 2.45 of Rasmussen & Williams (2006). It is computed from the
        statistics only; values of alpha or noise other than the fitted ones take O(D³).

        Parameters
        ----------
        alpha : float, optional
            The ratio of the variances of noise and process, if it differs from the fitted one; the
            noise is then estimated.
        noise : float, optional
            The noise variance, if it differs from the fitted one; the variance of the process is
            then one.
        """
        check_is_fitted(self)
        return self._posterior().log_marginal_likelihood(alpha, noise)

    def statistics(self, X: Any, y: Any, sample_weight: Any = None) -> MappedStatistics:
        """Return the statistics of rows for `fit_statistics`, without changing the regressor.

        Several machines can collect the statistics of their own rows; the merged statistics
        determine one model. All machines need the same map, with an integer `random_state` (of the
        map or of the regressor) and a number as its length scale. Merging statistics of different
        maps is an error. To tune the length scale, first fit to a sample of the rows with
        ``tune=True``, then use the fitted ``model.feature_map_``.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional

        Returns
        -------
        MappedStatistics
            The statistics, which can be pickled and take 8 D² bytes. They do not depend on `alpha`,
            `noise` and `fit_intercept`.
        """
        return self.statistics_of_blocks([(X, y, sample_weight)])

    def statistics_of_blocks(self, blocks: Iterable[Any]) -> MappedStatistics:
        """Return the statistics of blocks of rows, as `statistics` does for all rows.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Blocks of any sizes, with one block in memory at a time. They are iterated over once.

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
        """Fit to the rows whose statistics this or other regressors have collected.

        Parameters
        ----------
        statistics : MappedStatistics
            The merged results of `statistics` or `statistics_of_blocks`. A copy is kept, to which
            `partial_fit` can add rows. The map of the statistics is used, not `feature_map`.

        Returns
        -------
        self
            The same regressor as after `fit` on all rows with the same map, up to rounding. If an
            error is raised, the regressor is unchanged.
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
            Whether to store the matrix that ``predict(X, return_std=True)`` needs, which takes 2 D²
            bytes (4 D² with float64 weights). "auto" stores it for up to 4096 features, if it is
            available. The statistics of the rows are never stored.
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
        X, y, sample_weight = source.first
        stream = self._open_checkpoint(run, source)
        if y is None:
            check_targets(y, 0, type(self).__name__)
        X = self._fit_map(X, y, stream)
        Y = check_targets(y, count_rows(X), type(self).__name__)
        self._targets = TargetShape.of_targets(Y)
        weights = check_optional_weights(sample_weight, len(Y))
        source.check_with(self._check_block, Block(X, Y, weights))
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
        self._check_resumed(source, run, fit.coef, fit.intercept, fit.noise())
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
