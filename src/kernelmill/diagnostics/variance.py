"""The theoretical variance of the kernel estimates of a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernelmill.diagnostics.approximation import Rows, exact_values
from kernelmill.diagnostics.bounds import (
    SketchMoments,
    independent_variance,
    inner_products,
    sketch_moments,
)
from kernelmill.maps import (
    CountSketch,
    Fastfood,
    GaussianTemplates,
    PrincipalFourier,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.maps.hashing import lattice_multipliers

if TYPE_CHECKING:
    from kernelmill.maps.base import FeatureMap
    from kernelmill.maps.random_fourier import ShiftInvariantMap

__all__ = ["EstimateMoments", "Variance", "estimate_moments", "estimate_variance"]

# Beyond these limits, collision-free buckets are treated as independent ones.
_MAX_LENGTH = 1 << 16
_MAX_DEGREE = 12  # Sums have 3^p terms.
_MAX_ENTRIES = 1 << 20  # Elements of 2^p spectra.


class Variance(NamedTuple):
    """The variance of the estimate of each pair of rows.

    Attributes
    ----------
    values : ndarray of shape (n_pairs,)
    is_exact : bool
        Whether it is that of the map, up to rounding; otherwise that of a similar construction.
    """

    values: NDArray[np.float64]
    is_exact: bool


class EstimateMoments(NamedTuple):
    """Variance and bias of the estimate of each pair; of features before they get length 1.

    Attributes
    ----------
    variance : ndarray of shape (n_pairs,)
    is_exact : bool
    bias : ndarray of shape (n_pairs,) or float
        The remainder of a truncated series.
    """

    variance: NDArray[np.float64]
    is_exact: bool
    bias: NDArray[np.float64] | float = 0.0


def estimate_variance(
    fitted_map: FeatureMap, X: Rows, Y: Rows, n_components: int | None = None
) -> Variance | None:
    r"""Return the variance of a map's estimates of k(x, y) over seeds; None where it is not known.

    It is exact for `RandomFourier` with independent frequencies, for which :math:`\cos(\omega \cdot
    v)` has the variance :math:`(1 + k(2v)) / 2 - k(v)^2`, and for `TensorSketch`, `CountSketch` and
    `RandomMaclaurin`. For `TaylorSketch` with ``normalize=False`` it is the exact mean squared
    error, since the series is truncated. The variance of independent frequencies is also returned
    for orthogonal frequencies and for `Fastfood`, whose variances are 0.2 to 1.15 times as large
    (up to 2 times with ``blocks="independent"``); that of independent centers for
    `GaussianTemplates`; and that of features of any length for `TaylorSketch` with features of
    length 1.

    Parameters
    ----------
    fitted_map : FeatureMap
    X, Y : ndarray or CSR matrix of shape (n_pairs, n_columns)
        Pairs of rows.
    n_components : int, optional
        The number of features, if it is not that of the map.

    Returns
    -------
    Variance or None

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import RandomFourier
    >>> from kernelmill.diagnostics import estimate_variance
    >>> x, y = np.zeros((1, 3)), np.ones((1, 3))
    >>> features = RandomFourier(n_components=1000, length_scale=1.0).fit(x)
    >>> estimate_variance(features, x, y)
    Variance(values=array([0.0009029]), is_exact=True)
    """
    check_is_fitted(fitted_map)
    size = int(fitted_map.n_components) if n_components is None else int(n_components)
    moments = estimate_moments(fitted_map, X, Y, size)
    if moments is None:
        return None
    is_exact = moments.is_exact and not getattr(fitted_map, "normalize", False)
    return Variance(moments.variance + np.square(moments.bias), is_exact)


def estimate_moments(fitted_map: FeatureMap, X: Rows, Y: Rows, size: int) -> EstimateMoments | None:
    """Return variance and bias of the estimates of `size` features; None where not known."""
    rule = _RULES.get(type(fitted_map))
    return None if rule is None else rule(fitted_map, X, Y, size)


def _fourier_moments(
    fitted_map: ShiftInvariantMap, X: Rows, Y: Rows, size: int
) -> EstimateMoments | None:
    if getattr(fitted_map, "sampling", "iid") == "qmc":
        return None
    if getattr(fitted_map, "structure", "") == "fft":
        return None
    if getattr(fitted_map, "factors", None) is not None or fitted_map.features == "projection":
        return None
    kernel = partial(fitted_map.kernel_, length_scale=fitted_map.length_scale_)
    k, k_of_twice = (exact_values(kernel, X, Z) for Z in (Y, 2 * Y - X))
    of_cosine = np.maximum((1 + k_of_twice) / 2 - k**2, 0.0)  # Rounding may go below 0.
    if fitted_map.features == "complex":
        variance = of_cosine / size
    elif fitted_map.features == "cos_phase":
        variance = (of_cosine + 0.5) / size
    else:  # An odd number of features ends with a single cosine of a phase.
        n_pairs, odd = divmod(size, 2)
        variance = 4 / size**2 * (n_pairs * of_cosine + odd * (of_cosine + 0.5) / 4)
    is_exact = isinstance(fitted_map, RandomFourier) and fitted_map.sampling == "iid"
    return EstimateMoments(variance, is_exact)


def _principal_moments(
    fitted_map: PrincipalFourier, X: Rows, Y: Rows, size: int
) -> EstimateMoments | None:
    components = fitted_map._components
    return _fourier_moments(fitted_map, components(X), components(Y), size)


def _sketch_moments(
    fitted_map: TensorSketch | CountSketch, X: Rows, Y: Rows, size: int
) -> EstimateMoments:
    kernel = fitted_map.kernel_
    moments = sketch_moments(X, Y, gamma=kernel.gamma, coef0=kernel.coef0)
    dim = X.shape[1] + (kernel.coef0 > 0)
    return _tensor_moments(moments, dim, size, kernel.degree, fitted_map.hashing)


def _tensor_moments(
    moments: SketchMoments, dim: int, length: int, degree: int, hashing: str
) -> EstimateMoments:
    """Return the variance of a tensor sketch, of independent hashing if sums would be too long."""
    if hashing == "independent":
        return EstimateMoments(independent_variance(moments, degree, length), is_exact=True)
    if dim**degree <= length:  # No collisions.
        return EstimateMoments(np.zeros(len(moments.a)), is_exact=True)
    if degree > _MAX_DEGREE or length > _MAX_LENGTH or length << degree > _MAX_ENTRIES:
        return EstimateMoments(independent_variance(moments, degree, length), is_exact=False)
    a, b, g = moments
    total = np.zeros(len(a))
    for (straight, crossed), probability in _collision_probabilities(dim, length, degree).items():
        total += probability * a ** (degree - straight - crossed) * b**straight * g**crossed
    return EstimateMoments(np.maximum(total, 0.0), is_exact=True)


@lru_cache(maxsize=512)
def _collision_probabilities(dim: int, length: int, degree: int) -> dict[tuple[int, int], float]:
    r"""Return sums of collision probabilities by the numbers of straight and crossed factors.

    The square of an estimate is a sum over four indices i, j, k, l of the tensor power, where i and
    j share one bucket, and k and l share one. Signs cancel all terms except those where each factor
    has either i = j and k = l; or (straight) i = k and j = l, which differ; or (crossed) i = l and
    j = k, which differ. Differences of buckets must vanish in both pairs: straight factors add to
    both, crossed ones with opposite signs.
    """
    vanishing = _vanishing_probabilities(dim, length, degree)
    subsets = np.arange(1 << degree)
    sizes = np.bitwise_count(subsets).astype(np.int64)
    found: dict[tuple[int, int], float] = {}
    for straight in subsets:
        disjoint = subsets[subsets & straight == 0]
        products = np.bincount(sizes[disjoint], weights=vanishing[disjoint] @ vanishing[straight])
        for crossed, probability in enumerate(products):
            key = (int(sizes[straight]), crossed)
            if any(key):
                found[key] = found.get(key, 0.0) + max(0.0, float(probability))
    return found


def _vanishing_probabilities(dim: int, length: int, degree: int) -> NDArray[np.float64]:
    """Return probabilities that sums of differences over each subset of factors are 0, length / 2.

    Sums u (straight) and v (crossed) have u + v = u - v = 0 if u = v is 0, or half an even length.
    """
    spectra = np.ones((1, length // 2 + 1), np.complex128)
    for multiplier in lattice_multipliers(dim, length, degree):
        spectra = np.concatenate([spectra, spectra * _difference_spectrum(dim, length, multiplier)])
    # The inverse transform at two points; frequencies other than the ends occur twice.
    copies = np.full(spectra.shape[1], 2.0)
    copies[0] = 1
    is_even = length % 2 == 0
    copies[-1] -= is_even
    signs = is_even * (-1.0) ** np.arange(copies.size)
    found = spectra.real @ np.column_stack([copies, copies * signs]) / length
    found[0] = (1, 0)  # The empty subset has the sum 0.
    return np.asarray(found)


def _difference_spectrum(dim: int, length: int, multiplier: int) -> NDArray[np.complex128]:
    """Return the transform of the distribution of the difference of two buckets mod the length."""
    if dim > length:  # Every bucket occurs `copies` times.
        copies = -(-dim // length)
        probabilities = np.full(length, copies / (copies * length - 1))
        probabilities[0] = (copies - 1) / (copies * length - 1)
        return np.asarray(np.fft.rfft(probabilities))
    occupied = np.zeros(length)
    occupied[multiplier * np.arange(dim, dtype=np.int64) % length] = 1
    # The autocorrelation of the occupied buckets counts ordered pairs, and each with itself.
    pairs = np.square(np.abs(np.fft.rfft(occupied))) - dim
    return np.asarray(pairs / max(1, dim * (dim - 1)), np.complex128)


def _maclaurin_moments(
    fitted_map: RandomMaclaurin, X: Rows, Y: Rows, size: int
) -> EstimateMoments | None:
    a, b, g = sketch_moments(X, Y)
    square = fitted_map.radius_**2
    # Of one factor: the second moment |x|^2 |y|^2 + 2 <x,y>^2 - 2 sum x_i^2 y_i^2, and the mean.
    second, first = (a + b + g) / square**2, inner_products(X, Y) / square
    terms, shares = fitted_map._terms()
    exact = np.zeros(terms.size, bool)
    exact[:2] = fitted_map.h01
    exact[0] |= size * shares[0] >= shares.sum()
    random = np.where(exact, 0.0, shares)
    n_random = size - int(exact[0] and terms[0] > 0) - X.shape[1] * int(exact[1] and terms[1] > 0)
    if n_random < 1:
        return None
    total = np.zeros(len(a))
    means = np.zeros((terms.size, len(a)))  # Mean of a feature of each degree.
    for n in np.flatnonzero(random):
        weight = terms[n] * random.sum() / (random[n] * n_random)
        total += weight * terms[n] * (second**n - first ** (2 * n))
        means[n] = weight * first**n
    of_degrees = _variance_of_degrees(means, random, n_random)
    return EstimateMoments(np.maximum(total, 0.0) + of_degrees, is_exact=True)


def _variance_of_degrees(
    means: NDArray[np.float64], shares: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Return the variance due to `spread_degrees`, which rounds with one uniform variable.

    The numbers of features of the degrees change where the variable passes the fractional parts of
    the expected numbers, cumulated from the highest degree. The variance is a sum over the
    intervals between these points.
    """
    if not shares.any():
        return np.zeros(means.shape[1])
    ends = np.concatenate([[0.0], np.cumsum(shares[::-1])])
    ends *= count / ends[-1]
    borders = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    middles = (borders[1:] + borders[:-1]) / 2
    numbers = np.diff(np.ceil(ends[np.newaxis] - middles[:, np.newaxis]), axis=1)[:, ::-1]
    estimates = numbers @ means
    lengths = np.diff(borders)[:, np.newaxis]
    expected = (lengths * estimates).sum(axis=0)
    return np.asarray((lengths * np.square(estimates - expected)).sum(axis=0))


def _taylor_moments(fitted_map: TaylorSketch, X: Rows, Y: Rows, size: int) -> EstimateMoments:
    U, V = (each / fitted_map.length_scale_ for each in _center_rows(fitted_map, X, Y))
    inner, moments = inner_products(U, V), sketch_moments(U, V)
    factors = np.exp(-(inner_products(U, U) + inner_products(V, V)) / 2)
    total, estimate, is_exact = np.zeros(len(inner)), factors.copy(), True
    for n, count in enumerate(fitted_map.allocate(size, X.shape[1])[1:], start=1):
        weights = factors / math.factorial(n)
        found = _tensor_moments(moments, X.shape[1], count, n, fitted_map.hashing)
        total += weights**2 * found.variance
        estimate += weights * inner**n
        is_exact &= found.is_exact
    return EstimateMoments(total, is_exact, bias=estimate - factors * np.exp(inner))


def _template_moments(
    fitted_map: GaussianTemplates, X: Rows, Y: Rows, size: int
) -> EstimateMoments | None:
    if not fitted_map.proper or np.ndim(fitted_map.length_scale_) > 0:
        return None
    scale = float(fitted_map.length_scale_)
    U, V = _center_rows(fitted_map, X, Y)
    sums = np.square(U + V).sum(axis=1) / scale**2
    k = exact_values(fitted_map.exact_kernel, X, Y)
    ratio = (scale / fitted_map.template_scale_) ** 2
    q = (ratio - 2) / (ratio + 2)
    with np.errstate(over="ignore"):
        growth = np.exp(X.shape[1] / 2 * math.log((1 + q) ** 2 / (4 * q)) + q * sums)
    return EstimateMoments(k**2 * (growth - 1) / size, is_exact=False)


def _center_rows(
    fitted_map: TaylorSketch | GaussianTemplates, *matrices: Rows
) -> list[NDArray[np.float64]]:
    """Return dense rows minus the center of the map."""
    dense = (each if isinstance(each, np.ndarray) else each.toarray() for each in matrices)
    center = 0.0 if fitted_map.center_ is None else fitted_map.center_
    return [each - center for each in dense]


_RULES: dict[type, Callable[..., EstimateMoments | None]] = {
    RandomFourier: _fourier_moments,
    Fastfood: _fourier_moments,
    PrincipalFourier: _principal_moments,
    TensorSketch: _sketch_moments,
    CountSketch: _sketch_moments,
    RandomMaclaurin: _maclaurin_moments,
    TaylorSketch: _taylor_moments,
    GaussianTemplates: _template_moments,
}
