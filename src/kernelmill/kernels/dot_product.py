"""The interface of dot-product kernels: values and Maclaurin coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_positive
from kernelmill.kernels.base import RotationInvariantKernel
from kernelmill.kernels.points import inner_products

# A series is not summed if the last half of this many terms still matters.
MOST_TERMS = 1 << 13
_FIRST_TERMS = 1 << 6
_NEGLIGIBLE = 1e-17


class DotProductKernel(RotationInvariantKernel):
    r"""A kernel of the inner product, by a power series without negative coefficients.

    .. math:: k(x, y) = \kappa(\langle x, y \rangle), \quad \kappa(t) = \sum_n a_n t^n

    By Schoenberg's theorem these are the functions of the inner product that are positive definite
    in every dimension.
    """

    @property
    @abstractmethod
    def degree(self) -> int | None:
        """The highest degree with a positive coefficient; None if the series is infinite."""

    @abstractmethod
    def value(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of points whose inner products are t, elementwise."""

    @abstractmethod
    def _coefficients(self, count: int, scale: float) -> NDArray[np.float64]:
        """The first `count` of a_n scale^n; infinity where it overflows, without a warning."""

    def coefficients(self, count: int, *, scale: float = 1.0) -> NDArray[np.float64]:
        r"""Return the first Maclaurin coefficients of :math:`\kappa(s t)` as a function of t.

        Parameters
        ----------
        count : int
            How many: degrees 0, ..., count - 1.
        scale : float, default=1.0
            s, positive: the coefficients are :math:`a_n s^n`, none of which overflows or underflows
            unless the product does.

        Returns
        -------
        ndarray of shape (count,)
            Finite and not negative.
        """
        count = check_integer("count", count, 0)
        found = self._coefficients(count, check_positive("scale", scale))
        if not np.isfinite(found).all():
            bad = int(np.flatnonzero(~np.isfinite(found))[0])
            raise ValueError(
                f"Coefficients of {self!r} are too large for float64 at degree {bad} (scale "
                f"{scale:g}); divide the data by a number."
            )
        return found

    def terms(self, t: float) -> NDArray[np.float64]:
        r"""Return the terms :math:`a_n t^n` for one t > 0, up to where the rest no longer matters.

        The omitted terms sum to less than 1e-17 of the total, for series whose terms eventually
        decay faster than any power of n.

        Examples
        --------
        >>> from kernelmill.kernels import ExponentialDotProduct, Polynomial
        >>> Polynomial(2, coef0=1.0).terms(3.0)
        array([1., 6., 9.])
        >>> len(ExponentialDotProduct().terms(1.0))
        19
        """
        t = check_positive("t", t)
        if self.degree is not None:
            return self.coefficients(self.degree + 1, scale=t)
        count = _FIRST_TERMS
        while count <= MOST_TERMS:
            terms = self._coefficients(count, t)
            with np.errstate(over="ignore"):
                tails = np.cumsum(terms[::-1])[::-1]
            if not np.isfinite(tails[0]):
                break
            negligible = tails[0] > 0 and tails[count // 2] <= _NEGLIGIBLE * tails[0]
            if negligible and not self._vanishes_early(terms):
                return terms[: int(np.count_nonzero(tails > _NEGLIGIBLE * tails[0]))]
            count *= 2
        raise ValueError(
            f"The series of {self!r} must converge within a few thousand terms, but at t = {t:g} "
            "it does not; divide the data by a number, or use a flatter kernel (with a larger "
            "length_scale, or with coefficients that decay faster or end)."
        )

    def _vanishes_early(self, terms: NDArray[np.float64]) -> bool:
        """Return whether the terms underflow to 0 while they would still matter."""
        return False

    def _values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        return self.value(inner_products(X, Y))
