"""Legendre polynomials in d dimensions, and kernels as sums of them.

They are the Gegenbauer polynomials of index d/2 - 1, normalized to 1 at 1: on the unit sphere they
are the reproducing kernels of the spherical harmonics of one degree, divided by how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_positive
from kernelmill.kernels.angles import SpherePower, Zonal, mean_power_coefficients
from kernelmill.kernels.base import MAX_DEGREES, RotationInvariantKernel
from kernelmill.kernels.dot_product import DotProductKernel

__all__ = [
    "SphericalExpansion",
    "legendre_polynomials",
    "legendre_recurrence",
    "log_number_of_harmonics",
    "number_of_harmonics",
    "power_in_legendre_polynomials",
    "spherical_expansion",
]

_EPS = float(np.finfo(np.float64).eps)
_DEFAULT_DEGREE_OF_ZONAL = 32
_ROUNDINGS = 64
"""Coefficients from quadrature within this many roundings of 0 cannot be distinguished from 0."""

_LONGEST_SERIES = 1 << 11


def number_of_harmonics(dim: int, degree: int) -> int:
    """Return the number of independent spherical harmonics of a degree in `dim` dimensions.

    Examples
    --------
    >>> from kernelmill.kernels.gegenbauer import number_of_harmonics
    >>> [number_of_harmonics(3, n) for n in range(5)]
    [1, 3, 5, 7, 9]
    """
    d, n = check_dim(dim), check_integer("degree", degree, 0)
    return 1 if n == 0 else (2 * n + d - 2) * math.comb(n + d - 3, n - 1) // n


def log_number_of_harmonics(dim: int, degrees: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithms of these numbers, which themselves overflow soon, elementwise."""
    array = np.asarray(degrees)
    known = {int(n): math.log(number_of_harmonics(dim, int(n))) for n in np.unique(array)}
    return np.array([known[int(n)] for n in array.ravel()], np.float64).reshape(array.shape)


def legendre_recurrence(
    dim: int, max_degree: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the coefficients of :math:`L_{n+1}(t) = a_n t L_n(t) - b_n L_{n-1}(t)`.

    Returns
    -------
    a, b : ndarray of shape (max_degree,)
        Those of n = 0, ..., max_degree - 1; :math:`b_0` is 0.
    """
    d, count = check_dim(dim), check_integer("max_degree", max_degree, 0)
    n = np.arange(1, count)
    a, b = np.ones(count), np.zeros(count)
    a[1:] = (2 * n + d - 2) / (n + d - 2)
    b[1:] = n / (n + d - 2)
    return a, b


def legendre_polynomials(t: ArrayLike, dim: int, max_degree: int) -> NDArray[np.float64]:
    """Return the polynomials of degrees 0, ..., max_degree at t, along a new first axis.

    Examples
    --------
    >>> from kernelmill.kernels.gegenbauer import legendre_polynomials
    >>> legendre_polynomials([0.5, 1.0], 3, 2)
    array([[ 1.   ,  1.   ],
           [ 0.5  ,  1.   ],
           [-0.125,  1.   ]])
    """
    t = np.asarray(t, np.float64)
    a, b = legendre_recurrence(dim, max_degree)
    out = np.ones((a.size + 1, *t.shape))
    for n in range(a.size):
        out[n + 1] = a[n] * t * out[n] - (b[n] * out[n - 1] if n else 0.0)
    return out


def power_in_legendre_polynomials(dim: int, max_power: int) -> NDArray[np.float64]:
    r"""Return the coefficients in :math:`t^k = \sum_n c_{k,n} L_n(t)`: row k, column n.

    They are not negative and rows sum to 1: since :math:`t L_n` is the mean of :math:`L_{n+1}`,
    with probability (n + d - 2) / (2 n + d - 2), and :math:`L_{n-1}`, row k holds where a random
    walk from 0 is after k such steps. Nothing cancels.

    Examples
    --------
    >>> from kernelmill.kernels.gegenbauer import power_in_legendre_polynomials
    >>> power_in_legendre_polynomials(3, 3)
    array([[1.        , 0.        , 0.        , 0.        ],
           [0.        , 1.        , 0.        , 0.        ],
           [0.33333333, 0.        , 0.66666667, 0.        ],
           [0.        , 0.6       , 0.        , 0.4       ]])
    """
    count = check_integer("max_power", max_power, 0) + 1
    out = np.zeros((count, count))
    for k, row in enumerate(_walk(check_dim(dim), count)):
        out[k] = row
    return out


def _walk(dim: int, count: int) -> Iterator[NDArray[np.float64]]:
    """Yield the distributions over degrees 0, ..., count - 1 after 0, ..., count - 1 steps."""
    n = np.arange(1, count)
    up, down = np.ones(count), np.zeros(count)
    up[1:] = (n + dim - 2) / (2 * n + dim - 2)
    down[1:] = n / (2 * n + dim - 2)
    place = np.zeros(count)
    place[0] = 1.0
    for _ in range(count):
        yield place
        moved = np.zeros(count)
        moved[1:] = place[:-1] * up[:-1]
        moved[:-1] += place[1:] * down[1:]
        place = moved


@dataclass(frozen=True, eq=False)
class SphericalExpansion:
    r"""A kernel as a sum of Legendre polynomials of the cosine of the angle.

    .. math::

        k(x, y) = \sum_j w_j (\lVert x \rVert \lVert y \rVert)^{q_j} L_{n_j, d}(\cos\theta)

    Attributes
    ----------
    dim : int
        d, at least 2.
    weights : ndarray of shape (n_terms,)
        :math:`w_j`, positive.
    radial_power : ndarray of shape (n_terms,)
        :math:`q_j`, in float64.
    degree : ndarray of int64 of shape (n_terms,)
        :math:`n_j`.
    remainder : float
        The part of k(x, x) that is missing for x of the norm for which the expansion was made: 0
        for a polynomial, and not negative up to rounding of the sum.
    """

    dim: int
    weights: NDArray[np.float64]
    radial_power: NDArray[np.float64]
    degree: NDArray[np.int64]
    remainder: float = field(default=0.0)

    def value(self, cosine: ArrayLike, product_of_norms: ArrayLike = 1.0) -> NDArray[np.float64]:
        """Return the sum at angles of these cosines and at these products of norms, elementwise."""
        cosine, product = np.broadcast_arrays(
            np.asarray(cosine, np.float64), np.asarray(product_of_norms, np.float64)
        )
        total = np.zeros(cosine.shape)
        polynomials = legendre_polynomials(cosine, self.dim, int(self.degree.max(initial=0)))
        for power in np.unique(self.radial_power):
            own = self.radial_power == power
            part = np.tensordot(self.weights[own], polynomials[self.degree[own]], axes=1)
            total = total + part * product**power
        return np.asarray(total)


def spherical_expansion(
    kernel: RotationInvariantKernel,
    dim: int,
    *,
    max_degree: int | None = None,
    radius: float = 1.0,
) -> SphericalExpansion:
    r"""Expand a kernel in Legendre polynomials of the cosine of the angle, in `dim` dimensions.

    Parameters
    ----------
    kernel : DotProductKernel, SpherePower or Zonal
        For a `DotProductKernel` the term :math:`a_k t^k` becomes

        .. math::

            a_k (\lVert x \rVert \lVert y \rVert)^k \sum_{n \le k} c_{k,n} L_n(\cos\theta),

        exact for points of all norms. (With :math:`\lVert x \rVert^n` instead of
        :math:`\lVert x \rVert^k`, as in eq. 16 of Le, Sarlós & Smola, 2013, it would hold on the
        unit sphere only.)
    dim : int
        At least 2: on a line there are no harmonics beyond degree 1. Points on a line may be given
        a second coordinate 0.
    max_degree : int, default=None
        The highest power of t, for `Zonal` the highest degree of a polynomial. By default all that
        matter at `radius`, for `Zonal` 32.
    radius : float, default=1.0
        The norm of points for which an infinite series should be complete.

    Returns
    -------
    SphericalExpansion
        Ordered by radial power, then degree.

    Notes
    -----
    The coefficients of a `Zonal` kernel are integrals over the sphere, computed with an absolute
    error of about :math:`10^{-14} \sqrt{N(d, n)}`, where N is the number of harmonics. Those that
    cannot be distinguished from 0 are omitted: in many dimensions all but the lowest degrees,
    unless the kernel has Maclaurin coefficients. `remainder` is the size of that part.

    Examples
    --------
    >>> from kernelmill.kernels import Polynomial, spherical_expansion
    >>> found = spherical_expansion(Polynomial(2, coef0=1.0), 3)
    >>> found.radial_power, found.degree
    (array([0., 1., 2., 2.]), array([0, 1, 0, 2]))
    >>> found.weights.round(4)
    array([1.    , 2.    , 0.3333, 0.6667])
    """
    d, radius = check_dim(dim), check_positive("radius", radius)
    if max_degree is not None:
        max_degree = check_integer("max_degree", max_degree, 0, MAX_DEGREES)
    if isinstance(kernel, DotProductKernel):
        return _of_dot_product(kernel, d, max_degree, radius)
    if isinstance(kernel, SpherePower):
        return _of_sphere_power(kernel, d, max_degree, radius)
    if isinstance(kernel, Zonal):
        degree = _DEFAULT_DEGREE_OF_ZONAL if max_degree is None else max_degree
        return _of_zonal(kernel, d, degree, radius)
    raise TypeError(
        f"kernel must be a DotProductKernel, a SpherePower or a Zonal kernel, got {kernel!r} "
        f"({type(kernel).__name__}); resolve_dot_product turns a name into a kernel."
    )


def check_dim(dim: int) -> int:
    """Return `dim` as a number of dimensions in which spheres have harmonics of all degrees."""
    d = check_integer("dim", dim, 1)
    if d < 2:
        raise ValueError(
            "dim must be at least 2, got 1; on a line there are no harmonics beyond degree 1: give "
            "the points a second coordinate 0."
        )
    return d


def _of_dot_product(
    kernel: DotProductKernel, dim: int, max_degree: int | None, radius: float
) -> SphericalExpansion:
    highest = kernel.degree if kernel.degree is not None else None
    if max_degree is None or (highest is not None and highest < max_degree):
        max_degree = highest if highest is not None else kernel.terms(radius * radius).size - 1
    per_power = kernel.coefficients(max_degree + 1)[:, np.newaxis]
    weights = per_power * power_in_legendre_polynomials(dim, max_degree)
    kept = kernel.coefficients(max_degree + 1, scale=radius * radius).sum()
    whole = float(kernel.value(radius * radius))
    return _collect(dim, weights, 0.0 if highest == max_degree else whole - kept)


def _of_sphere_power(
    kernel: SpherePower, dim: int, max_degree: int | None, radius: float
) -> SphericalExpansion:
    per_power = kernel.coefficients if max_degree is None else kernel.coefficients[: max_degree + 1]
    walk = power_in_legendre_polynomials(dim, per_power.size - 1)
    weights = np.zeros_like(walk)
    for p, coefficient in enumerate(per_power):
        weights[p] = coefficient * (mean_power_coefficients(p, dim) @ walk[: p + 1])
    kept = float(weights.sum(axis=1) @ (radius * radius) ** np.arange(per_power.size))
    complete = per_power.size == kernel.coefficients.size
    whole = float(kernel.value(1.0, radius * radius, dim))
    return _collect(dim, weights, 0.0 if complete else whole - kept)


def _collect(dim: int, weights: NDArray[np.float64], remainder: float) -> SphericalExpansion:
    """Return the expansion with weights[k, n] at power k and degree n."""
    powers, degrees = np.nonzero(weights)
    return SphericalExpansion(
        dim=dim,
        weights=weights[powers, degrees],
        radial_power=powers.astype(np.float64),
        degree=degrees.astype(np.int64),
        remainder=float(remainder),
    )


def _of_zonal(kernel: Zonal, dim: int, max_degree: int, radius: float) -> SphericalExpansion:
    with np.errstate(over="ignore", invalid="ignore"):
        found, errors = _by_quadrature(kernel, dim, max_degree)
    if not (np.isfinite(found).all() and np.isfinite(errors).all()):
        raise ValueError(
            f"The expansion of {kernel!r} in {dim} dimensions must be finite up to degree "
            f"{max_degree}, but it overflows; use a lower max_degree or a smaller profile."
        )
    at_one = float(kernel.value(1.0))
    if kernel.maclaurin is not None:
        summed, left_out = _by_series(kernel, dim, max_degree)
        found = np.where(left_out < errors, summed, found)
        errors = np.minimum(left_out, errors)
    wrong = np.flatnonzero(found < -errors)
    if wrong.size:
        n = int(wrong[0])
        raise ValueError(
            f"{kernel!r} must be positive definite, but in {dim} dimensions its coefficient of "
            f"degree {n} is {found[n]:.3g}; choose another profile."
        )
    degrees = np.flatnonzero(found > errors)
    return SphericalExpansion(
        dim=dim,
        weights=found[degrees],
        radial_power=np.full(degrees.size, kernel.power),
        degree=degrees.astype(np.int64),
        remainder=float((at_one - found[degrees].sum()) * radius ** (2 * kernel.power)),
    )


def _by_quadrature(
    kernel: Zonal, dim: int, max_degree: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the coefficients :math:`N(d, n) E[\kappa(t) L_n(t)]`, and bounds of their errors.

    t is a coordinate of a uniform point of the sphere. Gauss-Legendre quadrature is over the angle:
    its integrand is smooth even for profiles such as the arc-cosine, which are not smooth functions
    of t at -1 and 1. In many dimensions only angles near a right angle matter.
    """
    reach = math.asin(math.sqrt(min(1.0, (4 * max_degree + 200) / dim)))
    nodes, node_weights = _gauss_legendre(2 * max_degree + 256)
    t = np.sin(reach * nodes)
    # The power d - 2 of the sine of the angle; log1p keeps digits where the sine is close to 1.
    logs = np.where(t * t < 0.5, 0.5 * np.log1p(-np.minimum(t * t, 0.5)), 0.0)
    logs = np.where(t * t < 0.5, logs, np.log(np.cos(reach * nodes)))
    weights = node_weights * np.exp((dim - 2) * logs)
    weights /= weights.sum()
    values = kernel.value(t)
    if not np.isfinite(values).all():
        raise ValueError(
            f"{kernel!r} must be finite on [-1, 1], got {values[~np.isfinite(values)][0]}; choose "
            "another profile."
        )
    # Orthonormal polynomials, L_n times the root of N(d, n): the root alone could overflow.
    n = np.arange(1, max_degree + 1)
    off = np.sqrt(n * (n + dim - 3.0) / np.maximum(1.0, (2 * n + dim - 2.0) * (2 * n + dim - 4)))
    off[:1] = 1 / math.sqrt(dim)
    before, now = np.zeros_like(t), np.ones_like(t)
    integrals, sizes = np.empty(max_degree + 1), np.empty(max_degree + 1)
    for degree in range(max_degree + 1):
        integrals[degree] = weights @ (values * now)
        sizes[degree] = weights @ np.abs(values * now)
        if degree < max_degree:
            step = t * now - (off[degree - 1] * before if degree else 0.0)
            before, now = now, step / off[degree]
    with np.errstate(over="ignore"):
        roots = np.exp(0.5 * log_number_of_harmonics(dim, np.arange(max_degree + 1)))
    roots = np.minimum(roots, 1e300)
    roundings = _ROUNDINGS + np.arange(max_degree + 1.0) ** 2  # their growth near -1 and 1
    return integrals * roots, roundings * _EPS * sizes * roots


def _gauss_legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [-1, 1], by intervals of 64 nodes: accurate for any count."""
    n_intervals = -(-count // 64)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    middles = (2 * np.arange(n_intervals) + 1) / n_intervals - 1
    spread = middles[:, np.newaxis] + nodes / n_intervals
    return spread.ravel(), np.tile(weights / n_intervals, n_intervals)


def _by_series(
    kernel: Zonal, dim: int, max_degree: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients and bounds of their errors, from the Maclaurin coefficients.

    They are sums of positive numbers over the random walk of powers. The omitted part of a slowly
    converging sum is estimated by the change in its last doubling. In many dimensions the walk does
    not return to low degrees, and sums are short.
    """
    assert kernel.maclaurin is not None
    count = 2 * (max_degree + 16)
    found = change = np.zeros(max_degree + 1)
    while count <= max(_LONGEST_SERIES, 4 * (max_degree + 16)):
        before = found
        series = np.asarray(kernel.maclaurin(count), np.float64)
        if series.shape != (count,) or not (series >= 0).all():
            raise ValueError(
                f"maclaurin(count) of {kernel!r} must return {count} numbers that are not "
                f"negative, got {series!r}."
            )
        found = np.zeros(max_degree + 1)
        for coefficient, place in zip(series, _walk(dim, count), strict=True):
            found += coefficient * place[: max_degree + 1]
        change = found - before
        if (change <= 4 * _EPS * found).all():
            break
        count *= 2
    return found, 8 * change + (_ROUNDINGS + max_degree) * _EPS * found
