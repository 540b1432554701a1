"""Kernels that are mean powers of projections to random directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer
from kernelmill.kernels.base import RotationInvariantKernel
from kernelmill.kernels.maclaurin import check_coefficients
from kernelmill.kernels.points import cosines_and_norms

__all__ = ["SpherePower", "mean_power_coefficients"]


# Their integers have as many digits, and the time grows with the third power.
_MOST_COEFFICIENTS = 256


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

    coefficients: NDArray[np.float64]

    def __init__(self, coefficients: ArrayLike) -> None:
        if callable(coefficients):
            raise TypeError(
                "coefficients must be an array, since the sum is finite, got a function; pass "
                "its first values."
            )
        checked = check_coefficients(coefficients)
        if checked.size > _MOST_COEFFICIENTS:
            raise ValueError(
                f"coefficients must be at most {_MOST_COEFFICIENTS}, got {checked.size}; leave out "
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

    def _values(self, X: NDArray[np.float64], Y: NDArray[np.float64] | None) -> NDArray[np.float64]:
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
