"""Statistics of rows together with their map, which several machines collect and merge."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError
from kernelmill.learners.features import compute_features
from kernelmill.learners.statistics import RidgeStatistics
from kernelmill.random import Stream

__all__ = ["MappedStatistics"]

_LENGTHS = (0.01, 1.0, 100.0)  # of rows that maps are compared at; one suits the length scale
_TOLERANCE = 1e-6  # of the largest feature; other machines round differently, by far less


class MappedStatistics(RidgeStatistics):
    """Statistics of rows with the map that computed their features.

    `KernelRegressor.statistics` returns them. They can be pickled, sent and merged;
    `KernelRegressor.fit_statistics` fits a model to them. The map adds little to their size: its
    coefficients are functions of its seed.

    Parameters
    ----------
    feature_map : transformer
        The fitted map.
    n_features, n_targets : int
        As in `RidgeStatistics`.
    n_features_in : int or None
        The number of columns of the rows, if they have columns.
    feature_names_in : ndarray of str or None
    targets_ndim : {1, 2}
        The number of dimensions of the targets as given, and of predictions.

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

    def __init__(
        self,
        feature_map: Any,
        n_features: int,
        n_targets: int,
        *,
        n_features_in: int | None,
        feature_names_in: NDArray[Any] | None,
        targets_ndim: int,
    ) -> None:
        super().__init__(n_features, n_targets)
        self.feature_map = feature_map
        self.n_features_in = n_features_in
        self.feature_names_in = feature_names_in
        self.targets_ndim = targets_ndim
        self._probe = None
        if n_features_in is not None and feature_names_in is None:
            self._probe = _features_of_fixed_rows(feature_map, n_features_in)

    def merge(self, other: RidgeStatistics) -> Self:
        """Add the rows of other statistics, which stay as they are.

        Parameters
        ----------
        other : MappedStatistics or RidgeStatistics
            Statistics of the same map. For `MappedStatistics` this is checked by the features of
            a few rows; frames with column names are compared by these names only.

        Returns
        -------
        self
        """
        if isinstance(other, MappedStatistics):
            self._check_same_origin(other)
        return super().merge(other)

    def _check_same_origin(self, other: MappedStatistics) -> None:
        if self.n_features_in != other.n_features_in or not np.array_equal(
            _names(self), _names(other)
        ):
            raise ArgumentError(
                "must be statistics of rows with the same columns, "
                f"{self.n_features_in} {_names(self)}, got {other.n_features_in} {_names(other)}",
                parameter="other",
            )
        if self.targets_ndim != other.targets_ndim:
            raise ArgumentError(
                f"must be statistics of targets with {self.targets_ndim} dimension(s), got "
                f"{other.targets_ndim}",
                "pass y in the same shape everywhere",
                parameter="other",
            )
        same = type(self.feature_map) is type(other.feature_map)
        if same and self._probe is not None and other._probe is not None:
            same = _agree(self._probe, other._probe)
        if not same:
            raise ArgumentError(
                "must be statistics of the same map, got statistics of a map with other features",
                "use the same feature_map in all regressors, with an integer random_state and a "
                "number as length_scale or gamma, so that nothing is estimated from the data",
                parameter="other",
            )


def _names(statistics: MappedStatistics) -> list[str]:
    names = statistics.feature_names_in
    return [] if names is None else list(names)


def _features_of_fixed_rows(feature_map: Any, n_columns: int) -> NDArray[Any] | None:
    """Return features that identify a map; None for a map that cannot take such rows."""
    row = Stream.from_seed(0).substream("rows to compare maps").normals(n_columns)
    rows = np.outer(_LENGTHS, row / np.linalg.norm(row))
    try:
        with np.errstate(all="ignore"):
            return compute_features(feature_map, rows)
    except (TypeError, ValueError):
        return None


def _agree(first: NDArray[Any], second: NDArray[Any]) -> bool:
    if first.shape != second.shape:
        return False
    finite = np.isfinite(first)
    if not np.array_equal(finite, np.isfinite(second)):
        return False
    first, second = np.where(finite, first, 0.0), np.where(finite, second, 0.0)
    bound = _TOLERANCE * np.abs(first).max(axis=1, keepdims=True)
    return bool((np.abs(first - second) <= bound).all())
