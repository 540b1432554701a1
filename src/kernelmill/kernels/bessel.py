"""Bessel functions divided by their behaviour at zero, where all of them are 1.

SciPy's functions overflow or underflow where their products with powers are moderate (its hyp0f1 is
infinite for order 200); here the large factors are canceled analytically.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import scipy  # scipy.special is loaded on first use
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray

# From these orders on, Debye's expansions have an error below 1e-14 (measured with mpmath).
_LARGE_ORDER_J = 60
_LARGE_ORDER_K = 30

_DEBYE_TERMS = 12
_SERIES_TERMS = 20

_DEBYE_REACH = 0.6
"""The expansion of J is used up to this multiple of the order, away from its turning point at 1."""

_LARGEST_J_ARGUMENT = 1e9
"""SciPy's J loses its digits for larger arguments, where the functions are below 1e-13."""


def normalized_bessel_j(order: float, x: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`\Gamma(\nu + 1) (2 / x)^\nu J_\nu(x)` for x >= 0, with an error below 1e-13.

    With :math:`\nu = d/2 - 1` it is the characteristic function of a uniform direction in d
    dimensions, with :math:`\nu = d/2` that of a uniform point in the unit ball. The order is -1/2,
    0, 1/2 or at least 1.

    Examples
    --------
    >>> from kernelmill.kernels.bessel import normalized_bessel_j
    >>> normalized_bessel_j(200, [0.0, 20.0, 60.0]).round(8)
    array([1.        , 0.60766768, 0.01079404])
    """
    x = np.asarray(np.minimum(np.asarray(x, np.float64), 1e300))
    if order == -0.5:
        return np.asarray(np.cos(x))
    result = np.empty_like(x)
    near = x <= 2 * math.sqrt(order + 1)
    result[near] = _power_series(order, x[near])
    far = ~near
    if order >= _LARGE_ORDER_J:
        middle = far & (x <= _DEBYE_REACH * order)
        result[middle] = np.exp(_log_debye(order, -((x[middle] / order) ** 2)))
        far &= ~middle
    result[far] = _oscillations(order, x[far])
    return result


def _power_series(order: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The series of 0F1(order + 1; -x**2 / 4), whose terms fall where x**2 / 4 <= order + 1."""
    w = (x / 2) ** 2
    total = np.ones_like(x)
    for k in range(_SERIES_TERMS, 0, -1):
        total = 1 - w / (k * (order + k)) * total
    return total


def _oscillations(order: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    if order == 0:
        return np.asarray(scipy.special.j0(x))
    if order == 0.5:
        return np.asarray(np.sin(x) / x)
    bessel = scipy.special.jv(order, np.minimum(x, _LARGEST_J_ARGUMENT))
    with np.errstate(divide="ignore"):
        logarithm = np.log(np.abs(bessel))
    logarithm += scipy.special.gammaln(order + 1) + order * np.log(2 / x)
    return np.where(x < _LARGEST_J_ARGUMENT, np.sign(bessel) * np.exp(logarithm), 0.0)


def normalized_bessel_k(order: float, x: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`2^{1 - \nu} / \Gamma(\nu) \; x^\nu K_\nu(x)` for x >= 0, error below 1e-12.

    Any order from 1e-300 to 1e16.

    Examples
    --------
    >>> from kernelmill.kernels.bessel import normalized_bessel_k
    >>> normalized_bessel_k(200, [0.0, 1e-300, 20.0]).round(8)
    array([1.        , 1.        , 0.60539324])
    """
    x = np.asarray(x, np.float64)
    if order >= _LARGE_ORDER_K:
        ratio = np.minimum(x / order, 1e6)
        return np.asarray(np.exp(_log_debye(-order, ratio**2)))
    near = x < 1e-8
    result = np.empty_like(x)
    result[near] = _start_of_k(order, x[near])
    far = np.minimum(x[~near], 1e4)
    with np.errstate(over="ignore"):
        bessel = scipy.special.kve(order, far)
    logarithm = (1 - order) * math.log(2) - scipy.special.gammaln(order)
    logarithm = logarithm + order * np.log(far) - far + np.log(bessel)
    # Where K overflows (order above 25, x below 1e-7) the result rounds to 1.
    result[~near] = np.exp(np.minimum(logarithm, 0))
    return result


def _start_of_k(order: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two leading terms, 1 and a power of x**(2 order) that matters for small orders."""
    if order > 0.95:
        return np.ones_like(x)
    gammaln = scipy.special.gammaln
    with np.errstate(divide="ignore"):
        power = 2 * order * (np.log(x) - math.log(2))
    return np.asarray(-np.expm1(power + (gammaln(1 - order) - gammaln(1 + order))))


def _log_debye(order: float, square: NDArray[np.float64]) -> NDArray[np.float64]:
    """Debye's expansion for large orders: of J at z = x / order, and of K for a negative order.

    `square` is -z**2 for J and z**2 for K. See DLMF 10.19.3 and 10.41.4. The large terms there
    cancel with those of the gamma function, whose Stirling series is that of the sum at z = 0.
    """
    root = np.sqrt(1 + square)
    less_one = square / (1 + root)
    p = 1 / root
    total, total_at_zero = np.zeros_like(root), np.zeros(())
    for k in range(_DEBYE_TERMS, -1, -1):
        coefficients = _debye_polynomials()[k]
        total = total / order + polyval(p, coefficients)
        total_at_zero = total_at_zero / order + polyval(1.0, coefficients)
    growth = order * (less_one - np.log1p(less_one / 2))
    return np.asarray(growth - np.log(root) / 2 + np.log(total / total_at_zero))


@functools.cache
def _debye_polynomials() -> list[list[float]]:
    """Return the coefficients of Debye's polynomials by their recurrence, DLMF 10.41.9."""
    polynomials = [[Fraction(1)]]
    for _ in range(_DEBYE_TERMS):
        following = [Fraction(0)] * (len(polynomials[-1]) + 3)
        for i, c in enumerate(polynomials[-1]):
            following[i + 1] += c * i / 2 + c / (8 * (i + 1))
            following[i + 3] -= c * i / 2 + 5 * c / (8 * (i + 3))
        polynomials.append(following)
    return [[float(c) for c in polynomial] for polynomial in polynomials]
