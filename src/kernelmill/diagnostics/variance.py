"""The variance of the kernel estimates of a map, where theory gives it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.diagnostics.bounds import sketch_moments
from kernelmill.diagnostics.kernel_error import exact_values
from kernelmill.maps import (
    CountSketch,
    Fastfood,
    GaussianTemplates,
    RandomFourier,
    RandomMaclaurin,
    TensorSketch,
)
from kernelmill.sketches.hashing import lattice_multipliers

__all__ = ["Variance", "estimate_variance"]

_MOST_COLUMNS = 1 << 16  # beyond, collision-free buckets are taken to be as good as random ones
_MOST_FACTORS = 5  # 3^p products of factors are summed


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
    r"""The variance of a map's estimates of k(x, y) over its seeds; None where it is not known.

    Known exactly: `RandomFourier` with independent frequencies, for which :math:`\cos(\omega \cdot
    v)` has the variance :math:`(1 + k(2v)) / 2 - k(v)^2`; `TensorSketch` and `CountSketch`. Those
    of independent frequencies also stand for orthogonal ones and for `Fastfood`, whose variances
    are 0.2 to 1.15 times as large (with ``blocks="independent"`` up to 2 times);
    those of independent centres for `GaussianTemplates`. For `RandomMaclaurin`, the chance that
    rounding gives to the numbers of columns of each degree is left out.

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


def _sketch_variance(fitted_map: Any, X: Any, Y: Any, size: int) -> Variance | None:
    kernel = fitted_map.kernel_
    moments = sketch_moments(X, Y, gamma=kernel.gamma, coef0=kernel.coef0)
    dim = X.shape[1] + (kernel.coef0 > 0)
    if kernel.degree > _MOST_FACTORS and fitted_map.hashing != "independent":
        return None
    independent = fitted_map.hashing == "independent"
    is_exact = independent or size <= _MOST_COLUMNS or dim**kernel.degree <= size
    chances = _collision_chances(
        dim, size, kernel.degree, "independent" if not is_exact else fitted_map.hashing
    )
    a, b, g = moments
    total = np.zeros(len(a))
    for (straight, crossed), chance in chances.items():
        total += chance * a ** (kernel.degree - straight - crossed) * b**straight * g**crossed
    return Variance(np.maximum(total, 0.0), is_exact)


@lru_cache(maxsize=64)
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
    multipliers = lattice_multipliers(dim, length, degree)
    spectra = [_difference_spectrum(dim, length, each) for each in multipliers]
    chances: dict[tuple[int, int], float] = {}
    for kinds in itertools.product("=bg", repeat=degree):
        parts = [[spectra[k] for k in range(degree) if kinds[k] == kind] for kind in "bg"]
        if not any(parts):
            continue
        laws = [np.fft.irfft(np.prod(part, axis=0), length) for part in parts if part]
        # Sums u and v of the two kinds have u + v = u - v = 0: u = v is 0, or half the length.
        roots = [0] if length % 2 or len(laws) == 1 else [0, length // 2]
        chance = sum(math.prod(law[root] for law in laws) for root in roots)
        key = (len(parts[0]), len(parts[1]))
        chances[key] = chances.get(key, 0.0) + max(0.0, float(chance))
    return chances


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
    # Per factor: the second moment |x|^2 |y|^2 + 2 <x,y>^2 - 2 sum x_i^2 y_i^2, and <x,y>^2
    second, first = (a + b + g) / square**2, a / square**2
    terms, shares = fitted_map._terms()
    exact = np.zeros(terms.size, bool)
    exact[:2] = fitted_map.h01
    exact[0] |= size * shares[0] >= shares.sum()
    rest = np.where(exact, 0.0, shares)
    n_random = size - int(exact[0] and terms[0] > 0) - X.shape[1] * int(exact[1] and terms[1] > 0)
    if n_random < 1:
        return None
    total = np.zeros(len(a))
    for n in np.flatnonzero(rest):
        weight = terms[n] ** 2 * rest.sum() / (rest[n] * n_random)
        total += weight * (second**n - first**n)
    return Variance(np.maximum(total, 0.0), is_exact=False)


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
    TensorSketch: _sketch_variance,
    CountSketch: _sketch_variance,
    RandomMaclaurin: _maclaurin_variance,
    GaussianTemplates: _template_variance,
}
