"""Means over independent seeds, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError, Remedy

__all__ = ["Measured", "fit_with_seeds", "mean_of_seeds"]

CONFIDENCE = 0.95


class Measured(NamedTuple):
    """A measured mean with its 95 % interval.

    Attributes
    ----------
    value : float
    low, high : float
        NaN if there is a single seed.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if not np.isfinite([self.low, self.high]).all():
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_of_seeds(values: ArrayLike) -> Measured:
    """Return the mean of the values of independent seeds, with Student's interval.

    Values that are NaN, of seeds without any pairs to measure, do not count.

    Examples
    --------
    >>> from kernelmill.diagnostics import mean_of_seeds
    >>> print(mean_of_seeds([1.0, 2.0, 3.0]))
    2 [-0.4841, 4.484]
    """
    numbers = np.asarray(values, np.float64).ravel()
    numbers = numbers[~np.isnan(numbers)]
    if numbers.size == 0:
        return Measured(np.nan, np.nan, np.nan)
    mean = float(numbers.mean())
    if numbers.size == 1 or not np.isfinite(mean):
        return Measured(mean, np.nan, np.nan)
    quantile = float(stdtrit(numbers.size - 1, (1 + CONFIDENCE) / 2))
    half = quantile * float(numbers.std(ddof=1)) / np.sqrt(numbers.size)
    return Measured(mean, float(mean - half), float(mean + half))


def fit_with_seeds(
    feature_map: Any, X: Any, n_seeds: int | None, first_seed: int
) -> Iterator[tuple[int, Any]]:
    """Copies of a map, fitted to X with consecutive seeds; the map itself if `n_seeds` is None.

    Yields
    ------
    seed, fitted_map
    """
    first_seed = check_integer("random_state", first_seed, 0)
    if n_seeds is None:
        check_is_fitted(feature_map)
        yield first_seed, feature_map
        return
    for seed in range(first_seed, first_seed + check_integer("n_seeds", n_seeds, 1)):
        yield seed, clone(feature_map).set_params(random_state=seed).fit(X)


def exact_kernel_of(fitted_map: Any, kernel: Any) -> Any:
    """Return the function of two matrices that a map estimates: its own, or the given one."""
    if kernel is not None:
        return kernel
    with suppress(AttributeError):
        return fitted_map.exact_kernel
    raise ArgumentError(
        f"must be given for {type(fitted_map).__name__}, which has no exact_kernel",
        Remedy("pass a function of two matrices of rows", kernel=...),
        parameter="kernel",
    )
