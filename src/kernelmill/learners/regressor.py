"""Kernel ridge regression, which is also a Gaussian process, on features that are never stored."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.learners.mapped_rows import take_rows
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.penalty import penalties
from kernelmill.learners.regression_rows import feature_blocks
from kernelmill.learners.regressor_prediction import PredictingRegressor
from kernelmill.learners.resumable_blocks import ResumableBlocks
from kernelmill.learners.run import Run
from kernelmill.learners.statistics import RidgeStatistics, rows_per_update
from kernelmill.learners.stored import learner_record
from kernelmill.random import Stream
from kernelmill.storage import write_model_file

__all__ = ["KernelRegressor"]


def _adds_rows(regressor: KernelRegressor) -> bool:
    """Whether there is a partial_fit: conjugate gradients need all rows in each iteration."""
    if regressor.solver == "cg":
        raise AttributeError("partial_fit needs solver='exact', got 'cg'; set another solver.")
    return True


class KernelRegressor(
    RegressorMixin,  # type: ignore[misc] # scikit-learn is untyped
    MultiOutputMixin,  # type: ignore[misc]
    PredictingRegressor,
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
    checkpoint : str or path, default=None
        A file in which `fit` and `fit_blocks` keep their state. If the process dies, the same call
        goes on from there and gives the same result, bit for bit with as many threads; at the end
        the file is removed. Blocks have to be the same again: a list, not an iterator. The state
        of the exact solver takes 8 D² bytes. Tuning, if any, is done again.
    checkpoint_seconds : float, default=60.0
        How often it is written.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the map, if it has no seed of its own, and whatever rows are sampled.
    n_threads : int, optional
        For the map and the linear algebra of fitting; as many as there are CPUs by default.
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
            Not negative. A row of weight zero is as if it were absent, except that a length scale
            that the map takes from the data counts all rows.
        run : Run, optional
            Checkpoint and progress of the training run, in place of those that the parameters
            `checkpoint`, `checkpoint_seconds` and `verbose` describe. The caller finishes it.

        Returns
        -------
        self
            If anything is raised, an interrupt included, it stays as it was before the call.
        """
        with self._running(run) as current, self._threads():
            self._check_parameters()
            self._fit_anew([(X, y, sample_weight)], current)
        return self

    def fit_blocks(self, blocks: Iterable[Any], *, run: Run | None = None) -> Self:
        """Fit to rows that come in blocks; the map is fitted, and tuned, on the first of them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Of any sizes; at most one is held at a time. The exact solver takes each once; "cg"
            needs something that can be passed over again, such as a list.
        run : Run, optional
            As in `fit`.

        Returns
        -------
        self
            As by `fit` of all rows with the same map, up to rounding. If anything is raised, it
            stays as it was before the call.
        """
        self._refuse_leave_one_out()
        with self._running(run) as current, self._threads():
            self._check_parameters()
            self._fit_anew(blocks, current)
        return self

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
        if hasattr(self, "_is_loaded"):
            raise ValueError(
                "partial_fit cannot go on with a regressor from a file, which holds no statistics "
                "of earlier rows; fit again with all rows, or keep the regressor in memory."
            )
        if hasattr(self, "coef_") and not hasattr(self, "statistics_"):
            raise ValueError(
                "partial_fit needs what the exact solver knows of earlier rows, got a regressor "
                "fitted by conjugate gradients; fit with solver='exact', or all rows at once."
            )
        with self._unchanged_on_failure(), self._threads():
            self._check_parameters()
            if not hasattr(self, "coef_"):
                self._fit_anew([(X, y, sample_weight)], self._verbose_run(), adding=True)
                return self
            rows = rows_per_update(self.coef_.shape[1])
            statistics = RidgeStatistics(*self.coef_.shape[::-1])
            X, Y, weights = self._check_block(X, y, sample_weight, reset=False)
            for block in feature_blocks(self.feature_map_, X, Y, weights, rows):
                statistics.update(*block)
            # Into the new ones, not the old ones: those stay whole whatever happens.
            statistics.merge(self.statistics_)
            tuned = self.alpha_ if hasattr(self, "tuning_") else None
            self._solve(statistics, tuned)
        return self

    def statistics(self, X: Any, y: Any, sample_weight: Any = None) -> MappedStatistics:
        """What some rows contribute to a fit, for `fit_statistics`; the regressor stays as it is.

        Several machines each collect those of their own rows; merged, they make one model. All
        of them need the same map: one with an integer `random_state`, its own or the
        regressor's, and a number as its length scale. Merging statistics of two maps is an error.
        A length scale can be tuned on some rows first: the fitted ``model.feature_map_`` of
        ``tune=True`` is a map as it is wanted here.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array_like of shape (n_samples,), optional

        Returns
        -------
        MappedStatistics
            They can be pickled and take 8 D² bytes. `alpha`, `noise` and `fit_intercept` have no
            part in them.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill import Fastfood
        >>> from kernelmill.learners.regressor import KernelRegressor
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> y = np.sin(2 * X[:, 0])
        >>> feature_map = Fastfood(n_components=64, length_scale=1.0, random_state=0)
        >>> model = KernelRegressor(feature_map, alpha=0.01)
        >>> first = model.statistics(X[:100], y[:100])  # on one machine
        >>> second = model.statistics(X[100:], y[100:])  # on another one
        >>> merged = model.fit_statistics(first.merge(second))
        >>> whole = KernelRegressor(feature_map, alpha=0.01).fit(X, y)
        >>> bool(np.allclose(merged.predict(X), whole.predict(X)))
        True
        """
        return self.statistics_of_blocks([(X, y, sample_weight)])

    def statistics_of_blocks(self, blocks: Iterable[Any]) -> MappedStatistics:
        """What rows that come in blocks contribute to a fit, as by `statistics` of all of them.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Of any sizes; at most one is held at a time, and each is taken once.

        Returns
        -------
        MappedStatistics
        """
        collector = clone(self)
        with collector._threads():
            collector._check_parameters()
            collector._refuse_what_needs_rows("statistics")
            if self.tune:
                raise ValueError(
                    "tune must be False for statistics, got True: machines would tune their maps "
                    "apart; tune on some rows with fit, and give the fitted map, feature_map_."
                )
            source = ResumableBlocks(collector, blocks, Run())
            probe = collector._features(take_rows(source.first_rows()[0], slice(0, 1)))
            collector._solver_for(probe.shape[1], adding=True)
            statistics = MappedStatistics(
                collector.feature_map_,
                probe.shape[1],
                collector._n_outputs,
                n_features_in=getattr(collector, "n_features_in_", None),
                feature_names_in=getattr(collector, "feature_names_in_", None),
                targets_ndim=collector._targets_ndim,
            )
            collector._collected(source, statistics, Run())
        return statistics

    def fit_statistics(self, statistics: MappedStatistics) -> Self:
        """Fit to the rows that statistics were collected of, by this or by other regressors.

        Parameters
        ----------
        statistics : MappedStatistics
            From `statistics` or `statistics_of_blocks`, merged. A copy is kept, and `partial_fit`
            can go on from it. The map is that of the statistics, whatever `feature_map` is.

        Returns
        -------
        self
            As by `fit` of all rows with the same map, up to rounding. If anything is raised, it
            stays as it was before the call.
        """
        if not isinstance(statistics, MappedStatistics):
            raise TypeError(
                "statistics must be what KernelRegressor.statistics returns, which has the map "
                f"too, got {type(statistics).__name__}."
            )
        with self._unchanged_on_failure(), self._threads():
            self._check_parameters()
            self._refuse_what_needs_rows("fit_statistics")
            self._forget_fit()
            known = copy.deepcopy(statistics)
            self.feature_map_ = known.feature_map
            self.stream_ = Stream.from_random_state(self.random_state)
            for name in ("n_features_in", "feature_names_in"):
                self.__dict__.pop(f"{name}_", None)
                if getattr(known, name) is not None:
                    setattr(self, f"{name}_", getattr(known, name))
            self._targets_ndim, self._n_outputs = known.targets_ndim, known.n_targets
            self._solve(known, None)
        return self

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        weights: str = "float32",
        uncertainty: bool | str = "auto",
    ) -> None:
        """Write the fitted regressor to a file, for `load_learner`.

        The file is a safetensors file with the parameters, the seed and what was learnt; no code,
        no coefficients of the map and no statistics of the rows. An existing one is replaced when
        the new one is complete.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the weights in the file. With "float64" predictions are the same to
            the last bit.
        uncertainty : bool or "auto", default="auto"
            Whether the file has what ``predict(X, return_std=True)`` needs, which takes 2 D² bytes
            (4 D² with float64 weights). "auto" is up to 4096 features, if there is any.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from kernelmill import Fastfood, KernelRegressor
        >>> from kernelmill.learners import load_learner
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = KernelRegressor(Fastfood(n_components=64), random_state=0)
        >>> model = model.fit(X, np.sin(X[:, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "sine.kmill")
        ...     model.save(path, weights="float64")
        ...     again = load_learner(path)
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        record, tensors = learner_record(self, weights, uncertainty)
        write_model_file(path, kind="learner", record=record, tensors=tensors)

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, ("auto", "exact", "cg"))
        check_choice("scoring", self.scoring, ("gcv", "loo"))
        check_integer("tune_budget", self.tune_budget, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol)
        penalties(self.alpha, self.noise)

    def _refuse_what_needs_rows(self, method: str) -> None:
        self._refuse_leave_one_out()
        if self.solver == "cg":
            raise ValueError(f"{method} needs solver='exact', got 'cg'; set another solver.")

    def _refuse_leave_one_out(self) -> None:
        if self.scoring == "loo" and np.ndim(self.alpha) > 0:
            raise ValueError(
                "scoring must be 'gcv' for rows that come one after the other, got 'loo', which "
                "takes a second pass over them; set scoring='gcv', or give all rows to fit."
            )
