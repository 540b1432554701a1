"""Errors of kernel values and of Gram matrices, as means over seeds with confidence intervals.

Kernel values are measured over pairs of rows, as by Sivertsen (2014, section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from kernelmill.arguments import check_integer, check_positive
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.fields import Stored
from kernelmill.maps.base import check_data
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Transformer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "GramErrors",
    "KernelErrors",
    "Measured",
    "RangeErrors",
    "effective_dimension",
    "gram_errors",
    "kernel_errors",
    "mean_of_seeds",
]

Rows: TypeAlias = "NDArray[np.float64] | csr_array"
KernelFunction: TypeAlias = Callable[[Rows, Rows], NDArray[np.float64]]

_CONFIDENCE = 0.95
_BLOCK_ELEMENTS = 1 << 21  # Maximum number of feature values computed at a time.
_DIAGONAL_BLOCK = 256  # Pairs whose exact values are taken from the diagonal of one matrix.


@dataclass(frozen=True)
class Measured(Stored):
    """A mean over seeds with its 95 % interval; iterating yields the three numbers.

    Attributes
    ----------
    value : float
    low, high : float
        NaN if there is a single seed.
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    def __truediv__(self, unit: float) -> Measured:
        return Measured(*(each / unit for each in self))

    def __str__(self) -> str:
        if not math.isfinite(self.low) or not math.isfinite(self.high):
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class RangeErrors(Stored):
    """Errors of the pairs of rows whose exact kernel values are in an interval.

    Attributes
    ----------
    low, high : float
        The interval.
    n_pairs : int
        The number of pairs of all seeds.
    absolute, relative : Measured
        Means of the absolute and of the relative errors.
    """

    low: float
    high: float
    n_pairs: int
    absolute: Measured
    relative: Measured


def mean_of_seeds(values: ArrayLike) -> Measured:
    """Return the mean of the values of independent seeds, with Student's interval.

    NaN values, of seeds without any pairs to measure, are ignored.

    Examples
    --------
    >>> from kernelmill.diagnostics import mean_of_seeds
    >>> print(mean_of_seeds([1.0, 2.0, 3.0]))
    2 [-0.4841, 4.484]
    """
    numbers = np.asarray(values, np.float64).ravel()
    numbers = numbers[~np.isnan(numbers)]
    if numbers.size == 0:
        return Measured(np.nan)
    mean = float(numbers.mean())
    if numbers.size == 1 or not np.isfinite(mean):
        return Measured(mean)
    quantile = float(stdtrit(numbers.size - 1, (1 + _CONFIDENCE) / 2))
    half = quantile * float(numbers.std(ddof=1)) / np.sqrt(numbers.size)
    return Measured(mean, float(mean - half), float(mean + half))


def _fit_with_seeds(
    feature_map: Transformer, X: Rows, n_seeds: int | None, first_seed: int
) -> Iterator[tuple[int, Transformer]]:
    """Yield consecutive seeds and copies of a map fitted to X with them.

    Yield the map itself if `n_seeds` is None.
    """
    first_seed = check_integer("random_state", first_seed, 0)
    if n_seeds is None:
        check_is_fitted(feature_map)
        yield first_seed, feature_map
        return
    for seed in range(first_seed, first_seed + check_integer("n_seeds", n_seeds, 1)):
        yield seed, clone(feature_map).set_params(random_state=seed).fit(X)


def exact_kernel_of(fitted_map: Transformer, kernel: KernelFunction | None) -> KernelFunction:
    """Return the given kernel, or the one that the map estimates if it is None."""
    found: KernelFunction | None = kernel or getattr(fitted_map, "exact_kernel", None)
    if found is None:
        raise ArgumentError(
            f"must be given for {type(fitted_map).__name__}, which has no exact_kernel",
            Remedy("pass a function of two matrices of rows", kernel=...),
            parameter="kernel",
        )
    return found


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
        The number of rows from which the pairs are drawn.

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
        """|difference| / |exact value|: infinite if only the exact value is 0, 0 if both are."""
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
        return _masked_mean(self.relative_errors, self.exact != 0)

    @property
    def capped_relative(self) -> Measured:
        """The mean relative error of the pairs where it is at most 100 %."""
        errors = self.relative_errors
        return _masked_mean(errors, errors <= 1)

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
            return Measured(value)
        half = (below.high - below.low) / 2
        low, high = np.quantile(errors, np.clip([share - half, share + half], 0, 1))
        return Measured(value, float(low), float(high))

    def over_range(self, edges: int | ArrayLike = 10) -> list[RangeErrors]:
        """Return the errors in sections of the range of exact values (Sivertsen, Figure 4.6).

        Parameters
        ----------
        edges : int or array_like, default=10
            The number of sections of equal length, or their ends.

        Returns
        -------
        list of RangeErrors
            The sections that contain pairs. The last one includes its end.
        """
        ends = np.asarray(edges, np.float64)
        if np.ndim(edges) == 0:
            n_sections = check_integer("edges", edges, 1)
            ends = np.linspace(self.exact.min(), self.exact.max(), n_sections + 1)
        absolute, relative = np.abs(self.differences), self.relative_errors
        found = []
        for section, (low, high) in enumerate(pairwise(ends.tolist()), start=2):
            is_below = np.less_equal if section == len(ends) else np.less
            inside = (self.exact >= low) & is_below(self.exact, high)
            if inside.any():
                of_absolute = _masked_mean(absolute, inside)
                of_relative = _masked_mean(relative, inside & (self.exact != 0))
                found.append(RangeErrors(low, high, int(inside.sum()), of_absolute, of_relative))
        return found

    def sample(self, n_pairs: int = 1000) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return exact and estimated values of at most `n_pairs` pairs (Figures 4.1 and 4.4)."""
        step = max(1, -(-self.exact.size // check_integer("n_pairs", n_pairs, 1)))
        return self.exact.ravel()[::step], self.estimated.ravel()[::step]


def _masked_mean(values: NDArray[np.float64], mask: NDArray[np.bool_]) -> Measured:
    """Return the mean over seeds of the means of the selected values of each seed."""
    with np.errstate(invalid="ignore"):  # NaN for seeds without such values
        return mean_of_seeds(np.where(mask, values, 0.0).sum(axis=1) / mask.sum(axis=1))


def kernel_errors(
    feature_map: Transformer,
    X: ArrayLike | csr_array,
    Y: ArrayLike | csr_array | None = None,
    *,
    kernel: KernelFunction | None = None,
    n_pairs: int | None = 1000,
    n_seeds: int | None = 8,
    random_state: int = 0,
    fit_on: ArrayLike | csr_array | None = None,
) -> KernelErrors:
    """Measure the errors of a map's kernel estimates on pairs of rows.

    Parameters
    ----------
    feature_map : transformer
        A map of kernelmill, or another transformer with a `random_state`, such as scikit-learn's
        `RBFSampler`. It is copied and fitted to X once for each seed.
    X : array_like or CSR matrix of shape (n_rows, n_columns)
    Y : array_like or CSR matrix of shape (n_rows, n_columns), optional
        If given, row i of X is paired with row i of Y. Otherwise, each seed draws its own pairs of
        different rows of X, so that intervals include the randomness of this choice.
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
        (`Nystroem`) is exact there: pass other rows to measure its errors on new ones.

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
    if others is None:
        check_two_rows(rows)
    if n_pairs is not None:
        n_pairs = check_integer("n_pairs", n_pairs, 1)
    exact, estimated, n_components = [], [], 0
    training = X if fit_on is None else check_rows(fit_on, "fit_on")
    for seed, fitted in _fit_with_seeds(feature_map, training, n_seeds, random_state):
        function = exact_kernel_of(fitted, kernel)
        if others is not None:
            left, right = rows, others
        elif n_pairs is not None:
            left, right = draw_pairs(rows, n_pairs, seed)
        else:
            Z = _features(fitted, rows)
            all_pairs, n_components = np.triu_indices(len(Z), 1), Z.shape[1]
            estimated.append(np.real(Z @ Z.conj().T)[all_pairs])
            exact.append(np.asarray(function(rows, rows))[all_pairs])
            continue
        n_components = int(fitted.transform(left[:1]).shape[1])
        estimated.append(_estimate(fitted, left, right, n_components))
        exact.append(exact_values(function, left, right))
    return KernelErrors(np.array(exact), np.array(estimated), n_components, int(rows.shape[0]))


def check_rows(X: ArrayLike | csr_array, name: str) -> Rows:
    """Return X as a finite matrix of floats; errors about other matrices mention their names."""
    try:
        rows: Rows = check_data(BaseEstimator(), X, reset=True)
    except ValueError as error:
        if name == "X":
            raise
        raise ArgumentError(f"must be a matrix of numbers: {error}", parameter=name) from error
    return rows


def check_two_rows(rows: Rows) -> None:
    """Raise an error unless there are pairs of different rows."""
    if rows.shape[0] < 2:
        raise ArgumentError("must have at least two rows to make pairs of, got 1", parameter="X")


def draw_pairs(rows: Rows, n_pairs: int, seed: int) -> tuple[Rows, Rows]:
    """Draw pairs of different rows, with repetition."""
    n = rows.shape[0]
    stream = Stream.from_seed(seed).substream("pairs of rows")
    first, second = (
        np.minimum((stream.substream(name).uniforms(n_pairs) * size).astype(np.int64), size - 1)
        for name, size in (("first", n), ("second", n - 1))
    )
    second += second >= first
    return rows[first], rows[second]


def exact_values(kernel: KernelFunction, left: Rows, right: Rows) -> NDArray[np.float64]:
    """Return the kernel of each pair."""
    values = np.empty(left.shape[0])
    for begin in range(0, len(values), _DIAGONAL_BLOCK):
        part = slice(begin, begin + _DIAGONAL_BLOCK)
        values[part] = np.diagonal(kernel(left[part], right[part]))
    return values


def _features(fitted_map: Transformer, rows: Rows) -> NDArray[np.float64]:
    """Return features in double precision; sums of float32 products would add their own error."""
    Z = np.asarray(fitted_map.transform(rows))
    return Z.astype(np.complex128 if np.iscomplexobj(Z) else np.float64, copy=False)


def _estimate(
    fitted_map: Transformer, left: Rows, right: Rows, n_components: int
) -> NDArray[np.float64]:
    """Return the inner product of the features of each pair, a block of pairs at a time."""
    values = np.empty(left.shape[0])
    step = max(1, _BLOCK_ELEMENTS // n_components)
    for begin in range(0, len(values), step):
        part = slice(begin, begin + step)
        first, second = (_features(fitted_map, each[part]) for each in (left, right))
        values[part] = np.real(np.einsum("ij,ij->i", first, second.conj()))
    return values


@dataclass(frozen=True)
class GramErrors:
    r"""The distance between the Gram matrix K of some rows and its estimate.

    Attributes
    ----------
    n_rows, n_components : int
    kernel_frobenius, kernel_spectral : float
        The norms of K.
    frobenius, spectral : Measured
        The norms of the difference, over seeds. An error of :math:`\epsilon` in each entry is at
        most :math:`\epsilon n` in both.
    alpha : float or None
        The penalty that the following attributes are for; None if it was not given.
    effective_dimension : float or None
        :math:`tr K (K + \alpha)^{-1}`.
    distance : Measured or None
        The smallest :math:`\Delta` with :math:`(1 - \Delta) (K + \alpha) \preceq \hat K + \alpha
        \preceq (1 + \Delta) (K + \alpha)`. Below 1, ridge regression on the features has at most
        :math:`1 / (1 - \Delta)` times the risk of the exact one (Avron et al., 2017).
    fit_change : Measured or None
        :math:`|\hat f - f| / |f|`, f the fitted values of ridge regression at the rows; None
        without targets.
    """

    n_rows: int
    n_components: int
    kernel_frobenius: float
    kernel_spectral: float
    frobenius: Measured
    spectral: Measured
    alpha: float | None = None
    effective_dimension: float | None = None
    distance: Measured | None = None
    fit_change: Measured | None = None


def gram_errors(
    feature_map: Transformer,
    X: ArrayLike | csr_array,
    y: ArrayLike | None = None,
    *,
    alpha: float | None = None,
    kernel: KernelFunction | None = None,
    n_seeds: int | None = 8,
    random_state: int = 0,
) -> GramErrors:
    """Measure the errors of the Gram matrix of the rows of X, in O(n³).

    Parameters
    ----------
    feature_map : transformer
        As for :func:`kernel_errors`.
    X : array_like or CSR matrix of shape (n_rows, n_columns)
        At most a few thousand rows.
    y : array_like of shape (n_rows,), optional
        Targets of a ridge regression. They are centered.
    alpha : float, optional
        Its penalty, that of scikit-learn's `KernelRidge`.
    kernel, n_seeds, random_state
        As for :func:`kernel_errors`.

    Returns
    -------
    GramErrors

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.diagnostics import gram_errors
    >>> X = np.random.default_rng(0).uniform(size=(200, 5))
    >>> errors = gram_errors(Fastfood(n_components=500), X, X.sum(axis=1), alpha=1.0)
    >>> print(f"{errors.effective_dimension:.1f}; {errors.distance}; {errors.fit_change}")
    37.9; 0.5473 [0.4733, 0.6214]; 0.04805 [0.04086, 0.05525]
    """
    if y is not None and alpha is None:
        raise ArgumentError("must be given with targets, got None", parameter="alpha")
    penalty = None if alpha is None else check_positive("alpha", alpha)
    fitted_maps = (each for _, each in _fit_with_seeds(feature_map, X, n_seeds, random_state))
    first = next(fitted_maps)
    # Length scales and centers depend on X, not on the seed, so all maps estimate the same kernel.
    K = np.asarray(exact_kernel_of(first, kernel)(X, X), np.float64)
    K = (K + K.T) / 2
    ridge = None if penalty is None else _Ridge(K, penalty)
    targets = None if y is None else _center(y, K.shape[0])
    frobenius, spectral, distances, changes = [], [], [], []
    for fitted in chain([first], fitted_maps):
        Z = _features(fitted, X)
        estimate = np.real(Z @ Z.conj().T)
        off = estimate - K
        frobenius.append(np.linalg.norm(off))
        spectral.append(_spectral_norm(off))
        if ridge is not None:
            distances.append(_spectral_norm(ridge.whiten(off)))
            if targets is not None:
                fit = ridge.smooth(targets)
                change = _Ridge(estimate, ridge.alpha).smooth(targets) - fit
                changes.append(np.linalg.norm(change) / np.linalg.norm(fit))
    return GramErrors(
        n_rows=K.shape[0],
        n_components=Z.shape[1],
        kernel_frobenius=float(np.linalg.norm(K)),
        kernel_spectral=_spectral_norm(K),
        frobenius=mean_of_seeds(frobenius),
        spectral=mean_of_seeds(spectral),
        alpha=penalty,
        effective_dimension=None if penalty is None else effective_dimension(K, penalty),
        distance=mean_of_seeds(distances) if distances else None,
        fit_change=mean_of_seeds(changes) if changes else None,
    )


def effective_dimension(K: ArrayLike, alpha: float) -> float:
    r"""Return the effective dimension of ridge regression, :math:`tr K (K + \alpha)^{-1}`.

    About as many features are needed, times a logarithm, if they are chosen well; with plain random
    features, as many as n / alpha at worst (Avron et al., 2017). For a sample of m of the n rows,
    pass alpha m / n to estimate the number for all rows from the Gram matrix of the sample.

    Parameters
    ----------
    K : array_like of shape (n_rows, n_rows)
        A Gram matrix.
    alpha : float
        The penalty, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.diagnostics import effective_dimension
    >>> effective_dimension(np.diag([3.0, 1.0]), 1.0)
    1.25
    """
    matrix = np.asarray(K, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"must be a square matrix, got shape {matrix.shape}", parameter="K")
    values = np.maximum(scipy.linalg.eigvalsh(matrix), 0.0)  # Rounding may leave negative ones.
    return float((values / (values + check_positive("alpha", alpha))).sum())


class _Ridge:
    """Solves systems of K + alpha with a Cholesky factor L."""

    def __init__(self, K: NDArray[np.float64], alpha: float) -> None:
        self.alpha = alpha
        try:
            self.factor = scipy.linalg.cholesky(K + alpha * np.eye(len(K)), lower=True)
        except np.linalg.LinAlgError as error:
            raise ArgumentError(
                f"must be large enough for K + alpha to be positive definite in float64, got "
                f"{alpha:.3g}",
                Remedy("use a larger penalty", alpha=...),
                parameter="alpha",
            ) from error

    def smooth(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the fitted values K (K + alpha)^-1 y."""
        solved: NDArray[np.float64] = scipy.linalg.cho_solve((self.factor, True), targets)
        return targets - self.alpha * solved

    def whiten(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return L^-1 M L^-T."""
        half = scipy.linalg.solve_triangular(self.factor, matrix, lower=True)
        return np.asarray(scipy.linalg.solve_triangular(self.factor, half.T, lower=True))


def _spectral_norm(matrix: NDArray[np.float64]) -> float:
    """Return the largest absolute eigenvalue of a symmetric matrix."""
    symmetric = (matrix + matrix.T) / 2
    n = len(symmetric)
    ends = [scipy.linalg.eigvalsh(symmetric, subset_by_index=(at, at)) for at in {0, n - 1}]
    return float(np.abs(ends).max())


def _center(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    targets = np.asarray(y, np.float64)
    if targets.shape != (n_rows,):
        raise ArgumentError(
            f"must have one number for each of the {n_rows} rows, got shape {targets.shape}",
            parameter="y",
        )
    centered: NDArray[np.float64] = targets - targets.mean()
    if not np.isfinite(centered).all() or not centered.any():
        found = "only equal numbers" if np.isfinite(centered).all() else "NaN or infinity"
        raise ArgumentError(
            f"must hold finite numbers that are not all equal, got {found}", parameter="y"
        )
    return centered
