"""Errors of kernel estimates over pairs of rows, as Sivertsen (2014, section 4.1) measures them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from kernelmill.arguments import check_integer
from kernelmill.diagnostics.seeds import (
    Measured,
    exact_kernel_of,
    fit_with_seeds,
    mean_of_seeds,
)
from kernelmill.errors import ArgumentError
from kernelmill.maps.transformers import check_data
from kernelmill.random import Stream

__all__ = ["KernelErrors", "RangeErrors", "kernel_errors"]

_BLOCK_ELEMENTS = 1 << 21  # of the features of a block of pairs
_DIAGONAL_BLOCK = 256  # pairs whose exact values are the diagonal of one small matrix


class RangeErrors(NamedTuple):
    """Errors of the pairs whose exact kernel values are in an interval.

    Attributes
    ----------
    low, high : float
        The interval.
    n_pairs : int
        The errors of all seeds.
    absolute, relative : Measured
        Means of the absolute and of the relative errors.
    """

    low: float
    high: float
    n_pairs: int
    absolute: Measured
    relative: Measured


@dataclass(frozen=True, eq=False)
class KernelErrors:
    """Estimated and exact kernel values of pairs of rows, and the errors between them.

    All errors are means over the pairs of a seed, and then over seeds, whose spread gives the
    95 % interval.

    Attributes
    ----------
    exact, estimated : ndarray of shape (n_seeds, n_pairs)
    n_components : int
        The number of features.
    n_rows : int
        The number of rows that the pairs are from.

    Examples
    --------
    >>> from kernelmill.diagnostics import KernelErrors
    >>> errors = KernelErrors([[0.5, 0.1]], [[0.4, 0.3]])
    >>> print(errors.absolute, errors.capped_relative, errors.share_capped)
    0.15 0.2 0.5
    """

    exact: NDArray[np.float64] = field(repr=False)
    estimated: NDArray[np.float64] = field(repr=False)
    n_components: int = 0
    n_rows: int = 0

    def __post_init__(self) -> None:
        for name in ("exact", "estimated"):
            object.__setattr__(self, name, np.atleast_2d(np.asarray(getattr(self, name), float)))
        if self.exact.shape != self.estimated.shape:
            raise ArgumentError(
                f"must have the shape of exact, {self.exact.shape}, got {self.estimated.shape}",
                parameter="estimated",
            )

    @property
    def differences(self) -> NDArray[np.float64]:
        """Estimated minus exact values."""
        return self.estimated - self.exact

    @property
    def relative_errors(self) -> NDArray[np.float64]:
        """|difference| / |exact value|: infinite for exact values of 0, unless both are."""
        off = np.abs(self.differences)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(off == 0, 0.0, off / np.abs(self.exact))

    @property
    def absolute(self) -> Measured:
        """The mean absolute error (Sivertsen, 2014, eq. 4.2)."""
        return mean_of_seeds(np.abs(self.differences).mean(axis=1))

    @property
    def rms(self) -> Measured:
        """The root mean squared error of a seed."""
        return mean_of_seeds(np.sqrt(np.square(self.differences).mean(axis=1)))

    @property
    def bias(self) -> Measured:
        """The mean difference, which differs from 0 only by chance if the map is unbiased."""
        return mean_of_seeds(self.differences.mean(axis=1))

    @property
    def relative(self) -> Measured:
        """The mean relative error of the pairs whose exact value is not 0 (eq. 4.3).

        A few pairs with exact values near 0 may dominate it.
        """
        return mean_of_seeds(_masked_means(self.relative_errors, self.exact != 0))

    @property
    def capped_relative(self) -> Measured:
        """The mean relative error of those pairs where it is at most 100 %."""
        errors = self.relative_errors
        return mean_of_seeds(_masked_means(errors, errors <= 1))

    @property
    def share_capped(self) -> Measured:
        """E %, the share of pairs whose relative error is at most 100 %; from 0 to 1."""
        return mean_of_seeds((self.relative_errors <= 1).mean(axis=1))

    def quantile(self, share: float) -> Measured:
        """Return the absolute error that this share of all pairs of all seeds does not exceed.

        Its interval follows from that of the share of pairs below it, over seeds (Woodruff, 1952).
        The quantiles of single seeds would be too small on average: errors of one seed resemble
        each other.
        """
        if not 0 < share <= 1:
            raise ArgumentError(f"must be above 0 and at most 1, got {share!r}", parameter="share")
        errors = np.abs(self.differences)
        value = float(np.quantile(errors, share))
        below = mean_of_seeds((errors <= value).mean(axis=1))
        if not np.isfinite(below.low):
            return Measured(value, np.nan, np.nan)
        half = (below.high - below.low) / 2
        ends = np.quantile(errors, np.clip([share - half, share + half], 0, 1))
        return Measured(value, float(ends[0]), float(ends[1]))

    def over_range(self, edges: int | ArrayLike = 10) -> list[RangeErrors]:
        """Errors in sections of the range of exact values (Sivertsen, 2014, Figure 4.6).

        Parameters
        ----------
        edges : int or array_like, default=10
            The number of sections of equal length, or their ends.

        Returns
        -------
        list of RangeErrors
            The sections that have pairs.
        """
        if np.ndim(edges) == 0:
            n_sections = check_integer("edges", edges, 1)
            ends = np.linspace(self.exact.min(), self.exact.max(), n_sections + 1)
        else:
            ends = np.asarray(edges, np.float64)
        last = len(ends) - 2
        places = np.clip(np.searchsorted(ends, self.exact, side="right") - 1, -1, last)
        # The end of the last section belongs to it, and what is beyond to none.
        places[(self.exact > ends[-1]) | (self.exact < ends[0])] = -1
        absolute, relative = np.abs(self.differences), self.relative_errors
        found = []
        for section in range(last + 1):
            inside = places == section
            if inside.any():
                found.append(
                    RangeErrors(
                        float(ends[section]),
                        float(ends[section + 1]),
                        int(inside.sum()),
                        mean_of_seeds(_masked_means(absolute, inside)),
                        mean_of_seeds(_masked_means(relative, inside & (self.exact != 0))),
                    )
                )
        return found

    def sample(self, n_pairs: int = 1000) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Exact and estimated values of at most so many pairs, for a plot (Figures 4.1, 4.4)."""
        step = max(1, -(-self.exact.size // check_integer("n_pairs", n_pairs, 1)))
        return self.exact.ravel()[::step], self.estimated.ravel()[::step]


def _masked_means(values: NDArray[np.float64], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean of the chosen values of each row; NaN if there are none."""
    counts = mask.sum(axis=1)
    sums = np.where(mask, values, 0.0).sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def kernel_errors(
    feature_map: Any,
    X: Any,
    Y: Any = None,
    *,
    kernel: Any = None,
    n_pairs: int | None = 1000,
    n_seeds: int | None = 8,
    random_state: int = 0,
    fit_on: Any = None,
) -> KernelErrors:
    """Measure the errors of a map's kernel estimates on pairs of rows.

    Parameters
    ----------
    feature_map : transformer
        A map of kernelmill, or another transformer with a `random_state`, such as scikit-learn's
        `RBFSampler`. It is copied and fitted to X once for each seed.
    X : array_like or CSR matrix of shape (n_rows, n_columns)
    Y : array_like or CSR matrix of shape (n_rows, n_columns), optional
        With Y, the pairs are the rows of X with the rows of Y of the same number. Without, each
        seed gets pairs of different rows of X of its own, drawn at random, so that intervals
        include the chance of that choice.
    kernel : callable, optional
        The exact kernel, ``kernel(X, Y)`` of two matrices; by default `exact_kernel` of the map.
    n_pairs : int or None, default=1000
        The number of pairs of a seed, if Y is not given; None takes all pairs of rows of X, of
        which there should be at most a few thousand.
    n_seeds : int or None, default=8
        None measures the map as it is fitted, with its own seed.
    random_state : int, default=0
        The first of the seeds, which are consecutive.
    fit_on : array_like or CSR matrix of shape (any, n_columns), optional
        The rows that the map is fitted to; by default X. A map with landmarks among its rows
        (`Nystroem`) is exact there: give other rows to see its errors on new ones.

    Returns
    -------
    KernelErrors

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.diagnostics import kernel_errors
    >>> X = np.random.default_rng(0).uniform(size=(500, 16))
    >>> errors = kernel_errors(Fastfood(n_components=512, length_scale=2.0), X)
    >>> print(errors.absolute)
    0.01395 [0.01106, 0.01683]
    """
    rows = check_rows(X, "X")
    others = None if Y is None else check_rows(Y, "Y")
    if others is not None and others.shape != rows.shape:
        raise ArgumentError(
            f"must have the shape of X, {rows.shape}, got {others.shape}", parameter="Y"
        )
    if others is None and rows.shape[0] < 2:
        raise ArgumentError("must have at least two rows to make pairs of, got 1", parameter="X")
    if n_pairs is not None:
        n_pairs = check_integer("n_pairs", n_pairs, 1)
    exact, estimated = [], []
    training = X if fit_on is None else check_rows(fit_on, "fit_on")
    for seed, fitted in fit_with_seeds(feature_map, training, n_seeds, random_state):
        function = exact_kernel_of(fitted, kernel)
        if others is None and n_pairs is None:
            Z = _widen(fitted.transform(rows))
            all_pairs, n_components = np.triu_indices(len(Z), 1), Z.shape[1]
            values = np.real(Z @ Z.conj().T)[all_pairs]
            exact.append(np.asarray(function(rows, rows))[all_pairs])
        else:
            left, right = (rows, others) if others is not None else draw_pairs(rows, n_pairs, seed)
            values, n_components = _estimates(fitted, left, right)
            exact.append(exact_values(function, left, right))
        estimated.append(values)
    return KernelErrors(np.array(exact), np.array(estimated), n_components, int(rows.shape[0]))


class _AnyEstimator(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """Stands for the estimator that scikit-learn's checks need."""


def check_rows(X: Any, name: str) -> Any:
    try:
        return check_data(_AnyEstimator(), X, reset=True)
    except ValueError as error:
        if name == "X":
            raise
        raise ArgumentError(f"must be a matrix of numbers: {error}", parameter=name) from error


def draw_pairs(rows: Any, n_pairs: int | None, seed: int) -> tuple[Any, Any]:
    """Pairs of different rows, with repetition."""
    assert n_pairs is not None
    n = rows.shape[0]
    stream = Stream.from_seed(seed).substream("pairs of rows")
    first, second = (
        np.minimum((stream.substream(name).uniforms(n_pairs) * size).astype(np.int64), size - 1)
        for name, size in (("first", n), ("second", n - 1))
    )
    second += second >= first
    return rows[first], rows[second]


def exact_values(kernel: Any, left: Any, right: Any) -> NDArray[np.float64]:
    """Return the kernel of each pair."""
    values = np.empty(left.shape[0])
    for begin in range(0, len(values), _DIAGONAL_BLOCK):
        part = slice(begin, begin + _DIAGONAL_BLOCK)
        values[part] = np.diagonal(kernel(left[part], right[part]))
    return values


def _widen(Z: Any) -> NDArray[Any]:
    """Features in double precision: a sum of float32 products would have an error of its own."""
    values = np.asarray(Z)
    return values.astype(np.complex128 if np.iscomplexobj(values) else np.float64, copy=False)


def _estimates(fitted_map: Any, left: Any, right: Any) -> tuple[NDArray[np.float64], int]:
    """Return the inner product of the features of each pair, and the number of features."""
    values = np.empty(left.shape[0])
    n_columns = int(fitted_map.transform(left[:1]).shape[1])
    step = max(1, _BLOCK_ELEMENTS // n_columns)
    for begin in range(0, len(values), step):
        part = slice(begin, begin + step)
        first, second = (_widen(fitted_map.transform(each[part])) for each in (left, right))
        values[part] = np.real(np.einsum("ij,ij->i", first, second.conj()))
    return values, n_columns
