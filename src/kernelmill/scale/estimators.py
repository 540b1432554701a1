"""Estimators for Dask collections: they are fitted on the workers and predict lazily."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelmill.errors import ArgumentError
from kernelmill.learners import KernelClassifier, KernelRegressor
from kernelmill.learners.blocks import count_rows
from kernelmill.learners.run import Run
from kernelmill.learners.solvers.choice import choose_solver, takes_one_pass
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.learners.targets import check_labels, check_targets
from kernelmill.random import Stream
from kernelmill.scale.cluster import Cluster
from kernelmill.scale.collections import is_dask, map_rows, pieces_of

__all__ = ["DaskKernelClassifier", "DaskKernelRegressor"]

_NOT_FOR_PREDICTION = ("statistics_", "_state")  # as large as D x D


class _OnCluster:
    """The shared part of both estimators; `_plain` is the class of the plain estimator."""

    _plain: type

    def __init__(
        self, feature_map: Any = "fastfood", *, client: Any = None, **parameters: Any
    ) -> None:
        super().__init__(feature_map, **parameters)  # type: ignore[call-arg]
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._plain._get_param_names(), "client"])  # type: ignore[attr-defined]

    @property
    def client_(self) -> Any:
        """The client in use: the given one, or that of the surrounding code, or None."""
        return Cluster(self.client).client

    def to_local(self) -> Any:
        """Return the fitted estimator without Dask, which can be saved and loaded."""
        check_is_fitted(self)
        plain = self._unfitted()
        vars(plain).update({name: vars(self)[name] for name in self._fitted_names()})
        return plain

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the fitted model to a file, the same as that of the plain estimator.

        Parameters
        ----------
        path : str or path
        **options
            Those of the plain estimator's `save`.
        """
        self.to_local().save(path, **options)

    def _unfitted(self) -> Any:
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        del parameters["client"]
        return self._plain(**parameters)

    def _fitted_names(self) -> list[str]:
        return [name for name in vars(self) if name not in self._get_param_names()]

    def _fit_pieces(
        self, X: Any, y: Any, sample_weight: Any, *, persist: bool, **options: Any
    ) -> None:
        """Fit a plain estimator to the rows where they are, and take over what it has learned."""
        cluster = Cluster(self.client)
        cluster.check_versions()
        plain = clone(self._unfitted())
        stream = Stream.from_random_state(plain.random_state)
        pieces = pieces_of(X, y, sample_weight, cluster, seed=int(stream.integers(1, 2**31)[0]))
        if persist:
            pieces.persist()
        if "classes" in options and options["classes"] is None and plain.class_weight != "balanced":
            options["classes"] = pieces.find_labels(
                partial(check_labels, name=type(plain).__name__)
            )
        plain.fit_blocks(pieces, **options)
        for name in self._fitted_names():
            delattr(self, name)
        parameters = self._get_param_names()
        vars(self).update(
            {name: value for name, value in vars(plain).items() if name not in parameters}
        )

    def _map(self, method: str, X: Any, columns: Any = None, **options: Any) -> Any:
        """Return what a method of the plain estimator returns, lazily for Dask collections."""
        check_is_fitted(self)
        plain = self.to_local()
        if not is_dask(X):
            return getattr(plain, method)(X, **options)
        light = copy.copy(plain)
        unused = (
            _NOT_FOR_PREDICTION if options.get("return_std") else (*_NOT_FOR_PREDICTION, "_fit")
        )
        for name in unused:
            vars(light).pop(name, None)
        return map_rows(_PredictRows(light, method, options), X, columns=columns)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "client": None}


class _PredictRows:
    """The result of a method for some rows; the columns of several results side by side."""

    def __init__(self, model: Any, method: str, options: dict[str, Any]) -> None:
        self.model = model
        self.method = method
        self.options = options

    def __call__(self, rows: Any) -> NDArray[Any]:
        found = getattr(self.model, self.method)(rows, **self.options)
        if isinstance(found, tuple):
            return np.hstack([part.reshape(count_rows(rows), -1) for part in found])
        return np.asarray(found)


def _gives_probabilities(classifier: Any) -> bool:
    return hasattr(classifier._unfitted(), "predict_proba")


def _count_features(feature_map: Any) -> int | None:
    """Return the number of features of a map that is not fitted yet; None if it is not known."""
    n_components = getattr(feature_map, "n_components", None)
    return n_components if isinstance(n_components, int) else None


class DaskKernelClassifier(_OnCluster, KernelClassifier):
    """`KernelClassifier` for Dask arrays and data frames.

    The map is fitted on a sample of 8192 rows, and its seed is sent to the workers, which return
    sums or averaged weights. Other rows and their features never leave the workers.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
    client : distributed.Client, default=None
        By default the current client. If there is none, or if Dask is configured to use another
        scheduler, tasks run in this process.
    **parameters
        The parameters of `KernelClassifier`. `n_threads` is the number of threads of each task.

    Attributes
    ----------
    client_ : distributed.Client or None
    classes_, coef_, intercept_, ...
        As in `KernelClassifier`.

    Notes
    -----
    "lbfgs" and "exact" minimize the same objective as on one machine. "sgd" runs on several groups
    of chunks in parallel and averages the weights after each epoch; the groups do not depend on the
    number of workers. Rows are shuffled only within chunks, which should not be sorted by class.
    For "sgd" and "lbfgs", which take several passes, workers keep the data in memory, or on disk if
    Dask spills.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> from kernelmill import Fastfood
    >>> from kernelmill.scale import DaskKernelClassifier
    >>> X = da.random.default_rng(0).normal(size=(4000, 2), chunks=(1000, 2))
    >>> y = ((X**2).sum(axis=1) < 1).astype(int)
    >>> features = Fastfood(n_components=256)
    >>> with dask.config.set(scheduler="synchronous"):
    ...     classifier = DaskKernelClassifier(features, solver="lbfgs", random_state=0).fit(X, y)
    ...     labels = classifier.predict(X)  # lazy
    ...     bool((labels == y).mean().compute() > 0.97)
    True
    >>> type(classifier.to_local()).__name__
    'KernelClassifier'
    """

    _plain = KernelClassifier

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        run: Run | None = None,
    ) -> Self:
        """Fit the map and the weights.

        Parameters
        ----------
        X : dask array or data frame of shape (n, d)
        y : dask array or series of shape (n,)
        sample_weight : dask array or series of shape (n,), default=None
        classes : array_like, default=None
            All labels. If None, they are collected in the pass that draws the sample or, with
            ``class_weight="balanced"``, in an additional pass.
        run : Run, default=None
            As in `KernelClassifier.fit`.

        Returns
        -------
        self
            The fitted estimator. If an error is raised, the estimator is unchanged.
        """
        n_features = _count_features(self.feature_map)
        solver = choose_solver("classification", self.solver, loss=self.loss, n_features=n_features)
        persist = not takes_one_pass(solver)
        self._fit_pieces(X, y, sample_weight, persist=persist, classes=classes, run=run)
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the scores, lazily for Dask collections.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory

        Returns
        -------
        dask array or data frame, or ndarray
        """
        n_classes = len(self.classes_)
        columns = "score" if n_classes == 2 else self.classes_.tolist()
        return self._map("decision_function", X, columns)

    def predict(self, X: Any) -> Any:
        """Return the most likely class of each row, lazily for Dask collections.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory

        Returns
        -------
        dask array or, of a data frame, series; or ndarray
        """
        return self._map("predict", X, "prediction")

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, lazily for Dask collections.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory

        Returns
        -------
        dask array or, of a data frame, data frame with the labels as columns; or ndarray
        """
        return self._map("predict_proba", X, self.classes_.tolist())

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        return self._map("predict_log_proba", X, self.classes_.tolist())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, which is computed immediately.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, or in memory.
        """
        plain = self.to_local()
        if not is_dask(X):
            return float(plain.score(X, y, sample_weight))
        pieces = pieces_of(X, y, sample_weight, Cluster(self.client))
        correct, total = pieces.fold(_CorrectFold(plain), _add)
        _check_scored(total)
        return float(correct / total)


class DaskKernelRegressor(_OnCluster, KernelRegressor):
    """`KernelRegressor` for Dask arrays and data frames.

    The map is fitted and tuned on a sample of 8192 rows, and its seed and length scales are sent to
    the workers. Each worker sums the statistics of its rows, which take 8 D² bytes. The sums are
    merged in a fixed tree, so the weights are bit-identical for the same chunks on any number of
    workers. With more than 8192 features, conjugate gradients make one pass over the rows per
    iteration instead, and workers keep the data in memory, or on disk if Dask spills.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
    client : distributed.Client, default=None
        By default the current client. If there is none, or if Dask is configured to use another
        scheduler, tasks run in this process.
    **parameters
        The parameters of `KernelRegressor`. `n_threads` is the number of threads of each task.

    Attributes
    ----------
    client_ : distributed.Client or None
    coef_, intercept_, ...
        As in `KernelRegressor`.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> from kernelmill import Fastfood
    >>> from kernelmill.scale import DaskKernelRegressor
    >>> X = da.random.default_rng(0).uniform(-3, 3, size=(4000, 1), chunks=(1000, 1))
    >>> y = da.sin(2 * X[:, 0])
    >>> with dask.config.set(scheduler="synchronous"):
    ...     model = DaskKernelRegressor(Fastfood(n_components=64), alpha=0.01, random_state=0)
    ...     mean, std = model.fit(X, y).predict(X, return_std=True)  # lazy
    ...     bool(abs(mean - y).max().compute() < 0.1)
    True
    """

    _plain = KernelRegressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, run: Run | None = None) -> Self:
        """Fit the map and the weights.

        Parameters
        ----------
        X : dask array or data frame of shape (n, d)
        y : dask array, series or data frame of shape (n,) or (n, n_outputs)
        sample_weight : dask array or series of shape (n,), default=None
        run : Run, default=None
            As in `KernelRegressor.fit`.

        Returns
        -------
        self
            The fitted estimator. If an error is raised, the estimator is unchanged.
        """
        n_features = _count_features(self.feature_map)
        solver = choose_solver("regression", self.solver, n_features=n_features)
        self._fit_pieces(X, y, sample_weight, persist=not takes_one_pass(solver), run=run)
        return self

    def predict(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """Return the predictive mean and, optionally, the standard deviation, lazily.

        Parameters
        ----------
        X : dask array or data frame, or rows in memory
        return_std, include_noise : bool, default=False
            As in `KernelRegressor.predict`.

        Returns
        -------
        mean, and std with `return_std`
            Dask arrays or, of a data frame, series (frames of several outputs); or ndarrays.
        """
        check_is_fitted(self)
        if not is_dask(X):
            return self._map("predict", X, return_std=return_std, include_noise=include_noise)
        n_outputs, flat = len(self.coef_), self._targets.ndim == 1
        names: Any = "prediction" if flat else [f"prediction {i}" for i in range(n_outputs)]
        if not return_std:
            return self._map("predict", X, names)
        listed = [names] if flat else names
        stds = [name.replace("prediction", "std") for name in listed]
        both = self._map(
            "predict", X, [*listed, *stds], return_std=True, include_noise=include_noise
        )
        if hasattr(both, "columns"):
            return (both[names], both["std"]) if flat else (both[listed], both[stds])
        if flat:
            return both[:, 0], both[:, 1]
        return both[:, :n_outputs], both[:, n_outputs:]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², averaged over outputs, which is computed immediately.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, or in memory.
        """
        plain = self.to_local()
        if not is_dask(X):
            return float(plain.score(X, y, sample_weight))
        pieces = pieces_of(X, y, sample_weight, Cluster(self.client))
        sums = pieces.fold(_ResidualFold(plain), RidgeStatistics.merge)
        _check_scored(sums.weight)
        n_outputs = sums.n_targets // 2
        residuals = sums.target_moments + sums.weight * sums.target_mean**2
        return float(np.mean(1 - residuals[n_outputs:] / sums.target_moments[:n_outputs]))


def _check_scored(weight: float) -> None:
    """Raise if there is nothing to score."""
    if not weight > 0:
        raise ArgumentError(
            "must have at least one row whose weight is not zero, got none", parameter="X"
        )


class _CorrectFold:
    """Sums the weights of correctly classified rows, and of all."""

    def __init__(self, model: KernelClassifier) -> None:
        self.model = model

    def __call__(
        self, before: NDArray[np.float64] | None, blocks: Iterable[Any], _: int
    ) -> NDArray[np.float64]:
        total = np.zeros(2) if before is None else before.copy()
        for X, y, weight in blocks:
            if count_rows(X):
                weights = np.ones(len(y)) if weight is None else weight
                total += weights[self.model.predict(X) == y].sum(), weights.sum()
        return total


def _add(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return a + b


class _ResidualFold:
    """Collects the moments of targets and of residuals."""

    def __init__(self, model: KernelRegressor) -> None:
        self.model = model

    def __call__(
        self, before: RidgeStatistics | None, blocks: Iterable[Any], _: int
    ) -> RidgeStatistics:
        n_outputs = len(self.model.coef_)
        sums = RidgeStatistics(1, 2 * n_outputs)
        for X, y, weight in blocks:
            if count_rows(X):
                Y = check_targets(y, count_rows(X), type(self.model).__name__)
                Y = Y.reshape(-1, n_outputs)
                residuals = Y - self.model.predict(X).reshape(-1, n_outputs)
                sums.update(np.ones((len(Y), 1)), np.hstack([Y, residuals]), weight)
        return sums if before is None else sums.merge(before)
