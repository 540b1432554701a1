"""The theoretical variance of the kernel estimates of a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.diagnostics.bounds import SketchMoments, inner_products, sketch_moments
from kernelmill.diagnostics.kernel_error import exact_values
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
from kernelmill.sketches.hashing import lattice_multipliers

__all__ = ["Variance", "estimate_variance"]

_MOST_COLUMNS = 1 << 16  # beyond, collision-free buckets are taken to be as good as random ones
_MOST_FACTORS = 12  # 3^p products of factors are summed
_MOST_ENTRIES = 1 << 20  # of 2^p spectra


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


def estimate_variance(
    fitted_map: Any, X: Any, Y: Any, n_components: int | None = None
) -> Variance | None:
    r"""Return the variance of a map's estimates of k(x, y) over seeds; None where it is not known.

    Known exactly: `RandomFourier` with independent frequencies, for which :math:`\cos(\omega \cdot
    v)` has the variance :math:`(1 + k(2v)) / 2 - k(v)^2`; `TensorSketch`, `CountSketch`,
    `RandomMaclaurin`, and `TaylorSketch` with ``normalize=False``, for which it is the mean square
    of the error: the series ends. Those of independent frequencies also stand for orthogonal
    ones and for `Fastfood`, whose variances are 0.2 to 1.15 times as large (with
    ``blocks="independent"`` up to 2 times); those of independent centres for `GaussianTemplates`,
    and those of features of any length for `TaylorSketch` with features of length 1.

    Parameters
    ----------
    fitted_map : FeatureMap
    X, Y : ndarray or CSR matrix of shape (n_pairs, n_columns)
        Pairs of rows.
    n_components : int, optional
        For another number of features than that of the map.

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
    rule = _RULES.get(type(fitted_map))
    size = int(fitted_map.n_components) if n_components is None else int(n_components)
    return None if rule is None else rule(fitted_map, X, Y, size)


def _fourier_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    if getattr(fitted_map, "sampling", "iid") == "qmc":
        return None
    if getattr(fitted_map, "structure", "") == "fft":
        return None
    if getattr(fitted_map, "factors", None) is not None or fitted_map.features == "projection":
        return None
    kernel = partial(fitted_map.kernel_, length_scale=fitted_map.length_scale_)
    k, k_of_twice = (exact_values(kernel, X, Z) for Z in (Y, 2 * Y - X))
    of_cosine = np.maximum((1 + k_of_twice) / 2 - k**2, 0.0)  # rounding
    if fitted_map.features == "complex":
        values = of_cosine / size
    elif fitted_map.features == "cos_phase":
        values = (of_cosine + 0.5) / size
    else:  # an odd number ends with half a cosine of a phase
        n_pairs, odd = divmod(size, 2)
        values = 4 / size**2 * (n_pairs * of_cosine + odd * (of_cosine + 0.5) / 4)
    is_exact = isinstance(fitted_map, RandomFourier) and fitted_map.sampling == "iid"
    return Variance(np.asarray(values), is_exact)


def _principal_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    components = fitted_map._components
    return _fourier_variance(fitted_map, components(X), components(Y), size)


def _sketch_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    kernel = fitted_map.kernel_
    moments = sketch_moments(X, Y, gamma=kernel.gamma, coef0=kernel.coef0)
    dim = X.shape[1] + (kernel.coef0 > 0)
    return _tensor_variance(moments, dim, size, kernel.degree, fitted_map.hashing)


def _tensor_variance(
    moments: SketchMoments, dim: int, length: int, degree: int, hashing: str
) -> Variance:
    """The variance of a tensor sketch; for independent hashing where sums would be too long."""
    is_exact = hashing == "independent" or dim**degree <= length
    if not is_exact and degree <= _MOST_FACTORS and length <= _MOST_COLUMNS:
        is_exact = length << degree <= _MOST_ENTRIES
    chances = _collision_chances(dim, length, degree, hashing if is_exact else "independent")
    a, b, g = moments
    total = np.zeros(len(a))
    for (straight, crossed), chance in chances.items():
        total += chance * a ** (degree - straight - crossed) * b**straight * g**crossed
    return Variance(np.maximum(total, 0.0), is_exact)


@lru_cache(maxsize=512)
def _collision_chances(
    dim: int, length: int, degree: int, hashing: str
) -> dict[tuple[int, int], float]:
    r"""Sums of probabilities of collisions, by the numbers of straight and crossed places.

    The square of an estimate is a sum over four indices i, j, k, l of the tensor power, i and j in
    one bucket, k and l in one. Signs leave those of which, at each place, i = j and k = l; or
    (straight) i = k and j = l are different; or (crossed) i = l and j = k are. Differences of
    buckets have to vanish in both pairs: straight places add to both, crossed ones with opposite
    signs.
    """
    if hashing == "independent":
        twice = 1 if length % 2 else 2
        return {
            (straight, crossed): math.comb(degree, straight)
            * math.comb(degree - straight, crossed)
            * (1 / length if straight == 0 or crossed == 0 else twice / length**2)
            for straight in range(degree + 1)
            for crossed in range(degree + 1 - straight)
            if straight + crossed > 0
        }
    if dim**degree <= length:
        return {}
    laws = _laws_of_sums(dim, length, degree)
    places = np.arange(1 << degree)
    sizes = np.bitwise_count(places).astype(np.int64)
    chances: dict[tuple[int, int], float] = {}
    for straight in places:
        others = places[places & straight == 0]  # subsets of the places that are left
        found = np.bincount(sizes[others], weights=laws[others] @ laws[straight])
        for crossed, chance in enumerate(found):
            key = (int(sizes[straight]), crossed)
            if any(key):
                chances[key] = chances.get(key, 0.0) + max(0.0, float(chance))
    return chances


def _laws_of_sums(dim: int, length: int, degree: int) -> NDArray[np.float64]:
    """Probabilities that sums of differences over each subset of places are 0 or length / 2.

    Sums u and v of the two kinds have u + v = u - v = 0 if u = v is 0, or half an even length.
    """
    spectra = np.ones((1, length // 2 + 1), np.complex128)
    for multiplier in lattice_multipliers(dim, length, degree):
        spectra = np.concatenate([spectra, spectra * _difference_spectrum(dim, length, multiplier)])
    # The inverse transform at two points; other frequencies than the ends occur twice.
    copies = np.full(spectra.shape[1], 2.0)
    copies[0] = 1
    if length % 2 == 0:
        copies[-1] = 1
    signs = (-1.0) ** np.arange(copies.size) if length % 2 == 0 else np.zeros(copies.size)
    laws = spectra.real @ np.column_stack([copies, copies * signs]) / length
    laws[0] = (1, 0)  # no places, no difference
    return np.asarray(laws)


def _difference_spectrum(dim: int, length: int, multiplier: int) -> NDArray[np.complex128]:
    """The transform of the distribution of the difference of two buckets, modulo the length."""
    if dim > length:  # every bucket c times among c * length places
        copies = -(-dim // length)
        law = np.full(length, copies / (copies * length - 1))
        law[0] = (copies - 1) / (copies * length - 1)
        return np.asarray(np.fft.rfft(law))
    occupied = np.zeros(length)
    occupied[multiplier * np.arange(dim, dtype=np.int64) % length] = 1
    # The autocorrelation of the occupied buckets counts ordered pairs, and each with itself.
    pairs = np.square(np.abs(np.fft.rfft(occupied))) - dim
    return np.asarray(pairs / max(1, dim * (dim - 1)), np.complex128)


def _maclaurin_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    a, b, g = sketch_moments(X, Y)
    square = fitted_map.radius_**2
    # Per factor: the second moment |x|^2 |y|^2 + 2 <x,y>^2 - 2 sum x_i^2 y_i^2, and <x,y>
    second, first = (a + b + g) / square**2, inner_products(X, Y) / square
    terms, shares = fitted_map._terms()
    exact = np.zeros(terms.size, bool)
    exact[:2] = fitted_map.h01
    exact[0] |= size * shares[0] >= shares.sum()
    rest = np.where(exact, 0.0, shares)
    n_random = size - int(exact[0] and terms[0] > 0) - X.shape[1] * int(exact[1] and terms[1] > 0)
    if n_random < 1:
        return None
    total = np.zeros(len(a))
    means = np.zeros((terms.size, len(a)))  # of a column of each degree
    for n in np.flatnonzero(rest):
        weight = terms[n] * rest.sum() / (rest[n] * n_random)
        total += weight * terms[n] * (second**n - first ** (2 * n))
        means[n] = weight * first**n
    return Variance(np.maximum(total, 0.0) + _variance_of_spread(means, rest, n_random), True)


def _variance_of_spread(
    means: NDArray[np.float64], shares: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Return the variance due to `spread_degrees`, which rounds with one uniform variable.

    The numbers of columns change where the variable passes the fractional parts of the expected
    numbers, added up from the highest degree, so the variance is a sum over the sections between
    these points.
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


class TaylorMoments(NamedTuple):
    """The estimates of a Taylor sketch before its features are scaled to length 1.

    Attributes
    ----------
    bias : ndarray of shape (n_pairs,)
        What the end of the series leaves out.
    variance : ndarray of shape (n_pairs,)
    is_exact : bool
    """

    bias: NDArray[np.float64]
    variance: NDArray[np.float64]
    is_exact: bool


def taylor_moments(fitted_map: TaylorSketch, X: Any, Y: Any, size: int) -> TaylorMoments:
    """Bias and variance of the estimates of pairs, for `size` columns."""
    dense = [each if isinstance(each, np.ndarray) else each.toarray() for each in (X, Y)]
    center = 0.0 if fitted_map.center_ is None else fitted_map.center_
    U, V = ((each - center) / fitted_map.length_scale_ for each in dense)
    inner, moments = inner_products(U, V), sketch_moments(U, V)
    factors = np.exp(-(inner_products(U, U) + inner_products(V, V)) / 2)
    columns = fitted_map.allocate(size, X.shape[1])
    total, estimate, is_exact = np.zeros(len(inner)), factors.copy(), True
    for n, count in enumerate(columns[1:], start=1):
        weights = factors / math.factorial(n)
        found = _tensor_variance(moments, X.shape[1], count, n, fitted_map.hashing)
        total += weights**2 * found.values
        estimate += weights * inner**n
        is_exact &= found.is_exact
    return TaylorMoments(estimate - factors * np.exp(inner), total, is_exact)


def _taylor_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    bias, variance, is_exact = taylor_moments(fitted_map, X, Y, size)
    return Variance(variance + bias**2, is_exact and not fitted_map.normalize)


def _template_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    if not fitted_map.proper or np.ndim(fitted_map.length_scale_) > 0:
        return None
    scale = float(fitted_map.length_scale_)
    center = 0.0 if fitted_map.center_ is None else fitted_map.center_
    dense = [each if isinstance(each, np.ndarray) else each.toarray() for each in (X, Y)]
    sums = np.square(dense[0] + dense[1] - 2 * center).sum(axis=1) / scale**2
    k = exact_values(fitted_map.exact_kernel, X, Y)
    ratio = (scale / fitted_map.template_scale_) ** 2
    q = (ratio - 2) / (ratio + 2)
    with np.errstate(over="ignore"):
        growth = np.exp(X.shape[1] / 2 * math.log((1 + q) ** 2 / (4 * q)) + q * sums)
    return Variance(k**2 * (growth - 1) / size, is_exact=False)


_RULES: dict[type, Callable[[Any, Any, Any, int], Variance | None]] = {
    RandomFourier: _fourier_variance,
    Fastfood: _fourier_variance,
    PrincipalFourier: _principal_variance,
    TensorSketch: _sketch_variance,
    CountSketch: _sketch_variance,
    RandomMaclaurin: _maclaurin_variance,
    TaylorSketch: _taylor_variance,
    GaussianTemplates: _template_variance,
}
