"""Kernels of the angle between points, and of the mean powers of their projections."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_positive
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Array, Integer
from kernelmill.formatting import name_of
from kernelmill.kernels.base import (
    MAX_DEGREES,
    TENSOR,
    RotationInvariantKernel,
    call_profile,
    check_function,
)
from kernelmill.kernels.dot_product import check_coefficients
from kernelmill.kernels.points import cosines_and_norms
from kernelmill.runtime.arrays import Rows

__all__ = ["ArcCosine", "SpherePower", "Zonal", "mean_power_coefficients"]

_MAX_COEFFICIENTS = 256
"""The limit for `SpherePower`, whose integers have as many digits: time grows with the cube."""


@dataclass(frozen=True, init=False, repr=False)
class Zonal(RotationInvariantKernel):
    r"""A kernel of the angle :math:`\theta` between two points, times a power of their norms.

    .. math:: k(x, y) = \lVert x \rVert^q \lVert y \rVert^q \, \kappa(\cos \theta)

    Parameters
    ----------
    profile : callable
        :math:`\kappa`, a function of an array of cosines in [-1, 1]. It must be positive definite
        on the sphere of the dimension where the kernel is used, which is checked where the kernel
        is expanded: see :func:`kernelmill.kernels.spherical_expansion`.
    power : float, default=0.0
        q, finite and not negative.
    maclaurin : callable, optional
        ``maclaurin(count)`` returns the first Maclaurin coefficients of :math:`\kappa` if they are
        known and none of them is negative. In many dimensions, high degrees of an
        expansion can only be computed from them, not from the values of :math:`\kappa`.

    Notes
    -----
    A zero vector has no direction: its kernel with every point, including itself, is 0 for any
    power. Cosines have an error of about 1e-16, so angles near 0 have an error of 1e-8, except for
    those of a row with itself in ``kernel(X)``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels import Zonal
    >>> kernel = Zonal(lambda cosine: np.exp(2 * (cosine - 1)), power=1)
    >>> kernel([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]]).round(4)
    array([[6.    , 0.2707]])
    """

    profile: Callable[[NDArray[np.float64]], ArrayLike]
    power: float
    maclaurin: Callable[[int], ArrayLike] | None

    def __init__(
        self,
        profile: Callable[[NDArray[np.float64]], ArrayLike],
        *,
        power: float = 0.0,
        maclaurin: Callable[[int], ArrayLike] | None = None,
    ) -> None:
        if not callable(profile):
            raise TypeError(f"profile must be a function of cosines, got {profile!r}.")
        check_function(maclaurin, "a count", "maclaurin")
        is_zero = isinstance(power, (int, float, np.number)) and power == 0
        object.__setattr__(self, "profile", profile)
        object.__setattr__(self, "power", 0.0 if is_zero else check_positive("power", power))
        object.__setattr__(self, "maclaurin", maclaurin)

    def value(self, cosine: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of unit vectors whose angles have these cosines, elementwise."""
        cosine = np.asarray(cosine, np.float64)
        return call_profile(self.profile, cosine.copy(), "cosine", name="profile")

    def _values(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        cosines, own, others = cosines_and_norms(X, Y)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            left, right = (np.where(r > 0, r**self.power, 0.0) for r in (own, others))
            return np.asarray(left[:, np.newaxis] * self.value(cosines) * right)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({name_of(self.profile)}, power={self.power})"


class ArcCosine(Zonal):
    r"""The arc-cosine kernels of Cho & Saul (2009).

    .. math::

        k_n(x, y) = \frac1\pi \lVert x \rVert^n \lVert y \rVert^n J_n(\theta), \quad
        J_0 = \pi - \theta, \quad
        J_1 = \sin\theta + (\pi - \theta) \cos\theta, \quad
        J_2 = 3 \sin\theta \cos\theta + (\pi - \theta) (1 + 2 \cos^2\theta)

    where :math:`\theta` is the angle between x and y. For a standard normal w it is
    :math:`2 E[\langle w, x \rangle_+^n \langle w, y \rangle_+^n]`, with 1 and 0 as powers 0 of
    positive and other numbers.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        n: 0 for steps, 1 for ramps (ReLU), 2 for squared ramps.

    Examples
    --------
    >>> from kernelmill.kernels import ArcCosine
    >>> ArcCosine(order=1)([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]]).round(4)
    array([[6.    , 0.6366]])
    """

    _stored_fields = Fields(order=Integer(0, MAX_DEGREES))

    order: int

    def __init__(self, order: int = 1) -> None:
        order = check_integer("order", order, 0, 2)
        super().__init__(_PROFILES[order], power=order, maclaurin=_SERIES[order])
        object.__setattr__(self, "order", order)

    def __repr__(self) -> str:
        return f"ArcCosine(order={self.order})"


def _step(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 - np.arccos(cosine) / np.pi)


def _ramp(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    angle = np.arccos(cosine)
    return np.asarray((np.sin(angle) + (np.pi - angle) * cosine) / np.pi)


def _squared_ramp(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    angle = np.arccos(cosine)
    product = 3 * np.sin(angle) * cosine
    return np.asarray((product + (np.pi - angle) * (1 + 2 * cosine * cosine)) / np.pi)


def _step_series(count: int) -> NDArray[np.float64]:
    """Return the coefficients of 1/2 + arcsin(t) / pi.

    The odd ones are C(2m, m) / 4^m / (2m + 1) / pi.
    """
    out = np.zeros(count)
    out[:1] = 0.5
    m = np.arange(count // 2)
    central = np.cumprod(np.concatenate([[1.0], (2 * m[1:] - 1) / (2.0 * m[1:])]))[: m.size]
    out[1::2] = central / (2 * m + 1) / math.pi
    return out


def _ramp_series(count: int) -> NDArray[np.float64]:
    """Integrate the kernel of the steps, which is the derivative of that of the ramps."""
    return _integral(_step_series(count), 1 / math.pi)


def _squared_ramp_series(count: int) -> NDArray[np.float64]:
    """Integrate 4 times the kernel of the ramps, the derivative of that of the squared ramps."""
    return _integral(4 * _ramp_series(count), 0.5)


def _integral(series: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    out = np.empty_like(series)
    out[:1] = constant
    out[1:] = series[:-1] / np.arange(1, series.size)
    return out


_PROFILES = (_step, _ramp, _squared_ramp)
_SERIES = (_step_series, _ramp_series, _squared_ramp_series)


__all__ = ["SpherePower", "mean_power_coefficients"]


@dataclass(frozen=True, init=False, repr=False, eq=False)
class SpherePower(RotationInvariantKernel):
    r"""Mean products of powers of projections to a random direction.

    .. math::

        k(x, y) = \sum_p c_p \, E_v \left[ \langle x, v \rangle^p \langle y, v \rangle^p \right]

    where v is uniform on the unit sphere in as many dimensions as the points have: the kernel of
    features :math:`\langle x, v \rangle^p` (Le, Sarlós & Smola, 2013, eq. 28).

    Parameters
    ----------
    coefficients : array_like
        :math:`c_0, c_1, \dots`, finite and not negative.

    Notes
    -----
    A standard normal vector is v times an independent length, so that the mean over v is one over
    normal variables divided by a moment of that length. Isserlis' theorem then gives

    .. math::

        E_v \left[ \langle x, v \rangle^p \langle y, v \rangle^p \right] =
        \frac{\sum_j j! \binom{p}{j}^2 ((p - j - 1)!!)^2
              \langle x, y \rangle^j (\lVert x \rVert \lVert y \rVert)^{p - j}}
             {d (d + 2) \cdots (d + 2 p - 2)}

    over the j <= p of the parity of p: there are no cancellations.

    Examples
    --------
    >>> from kernelmill.kernels import SpherePower
    >>> SpherePower([0.0, 0.0, 1.0])([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    array([[0.375, 0.125]])
    """

    _stored_fields = Fields(
        coefficients=Array(("float64",), (None,), tensor=TENSOR, longest=MAX_DEGREES + 1)
    )

    coefficients: NDArray[np.float64]

    def __init__(self, coefficients: ArrayLike) -> None:
        if callable(coefficients):
            raise TypeError(
                "coefficients must be an array, since the sum is finite, got a function; pass "
                "its first values."
            )
        checked = check_coefficients(coefficients)
        if checked.size > _MAX_COEFFICIENTS:
            raise ValueError(
                f"coefficients must be at most {_MAX_COEFFICIENTS}, got {checked.size}; leave out "
                "the higher powers."
            )
        object.__setattr__(self, "coefficients", checked)

    def value(
        self, cosine: ArrayLike, product_of_norms: ArrayLike, dim: int
    ) -> NDArray[np.float64]:
        """Return the kernel as a function of the angle and of the norms, in `dim` dimensions."""
        cosine, product = np.broadcast_arrays(
            np.asarray(cosine, np.float64), np.asarray(product_of_norms, np.float64)
        )
        total = np.zeros(cosine.shape)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for p in range(self.coefficients.size - 1, -1, -1):
                total = total * product
                if self.coefficients[p] > 0:
                    total += self.coefficients[p] * _mean_power(cosine, p, dim)
        return total

    def _values(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        cosines, own, others = cosines_and_norms(X, Y)
        with np.errstate(over="ignore", under="ignore"):
            return self.value(cosines, np.multiply.outer(own, others), X.shape[1])

    def __repr__(self) -> str:
        return f"SpherePower({self.coefficients.tolist()})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpherePower):
            return NotImplemented
        return self.coefficients.tobytes() == other.coefficients.tobytes()

    def __hash__(self) -> int:
        return hash(self.coefficients.tobytes())


def mean_power_coefficients(power: int, dim: int) -> NDArray[np.float64]:
    """Return the coefficients of cos**0, ..., cos**power in the mean power of unit vectors."""
    p, d = check_integer("power", power, 0), check_integer("dim", dim, 1)
    denominator = math.prod(range(d, d + 2 * p, 2))
    out = np.zeros(p + 1)
    for j in range(p % 2, p + 1, 2):
        pairings = math.prod(range(1, p - j, 2))  # (p - j - 1)!!
        out[j] = math.factorial(j) * math.comb(p, j) ** 2 * pairings**2 / denominator
    return out


def _mean_power(cosine: NDArray[np.float64], p: int, dim: int) -> NDArray[np.float64]:
    square = cosine * cosine
    total = np.zeros_like(cosine)
    for coefficient in mean_power_coefficients(p, dim)[p % 2 :: 2][::-1]:
        total = total * square + coefficient
    return total * cosine if p % 2 else total
