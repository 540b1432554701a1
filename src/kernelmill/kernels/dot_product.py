"""Dot-product kernels: functions of the inner product, by their Maclaurin coefficients."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy  # scipy.special is loaded on first use
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_not_negative, check_positive
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Array, Float, Integer
from kernelmill.formatting import name_of
from kernelmill.kernels.base import (
    MAX_DEGREES,
    TENSOR,
    GivenKernel,
    RotationInvariantKernel,
    call_profile,
    check_function,
)
from kernelmill.kernels.points import inner_products
from kernelmill.runtime.arrays import Rows, as_real

__all__ = [
    "MAX_TERMS",
    "DotProductKernel",
    "ExponentialDotProduct",
    "Maclaurin",
    "Polynomial",
    "check_coefficients",
]

MAX_TERMS = 1 << 13
"""A series is rejected if the second half of this many terms still matters."""

_FIRST_TERMS = 1 << 6
_NEGLIGIBLE = 1e-17

_MAX_BINOMIAL_FACTORS = 1000
"""Up to this degree, binomial coefficients and powers of numbers in [1/2, 1) are finite floats."""

_SMALLEST_COEFFICIENT = 1e-290
"""Smaller coefficients have lost digits, or are about to become 0."""


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
        """Return the first `count` of a_n scale^n; inf for overflow, without a warning."""

    def coefficients(self, count: int, *, scale: float = 1.0) -> NDArray[np.float64]:
        r"""Return the first Maclaurin coefficients of :math:`\kappa(s t)` as a function of t.

        Parameters
        ----------
        count : int
            How many: degrees 0, ..., count - 1.
        scale : float, default=1.0
            s, positive: the coefficients are :math:`a_n s^n`. One overflows or underflows only if
            the product does.

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
        r"""Return the terms :math:`a_n t^n` for one t > 0 that matter.

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
        while count <= MAX_TERMS:
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

    def _values(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        return self.value(inner_products(X, Y))


@dataclass(frozen=True)
class Polynomial(DotProductKernel):
    r"""The polynomial kernel :math:`(\gamma \langle x, y \rangle + c)^p`.

    Parameters
    ----------
    degree : int, default=2
        p, at least 1.
    gamma : float, default=1.0
        Positive. Note that scikit-learn's default is 1 / n_features.
    coef0 : float, default=0.0
        c, not negative. With 0 the kernel is homogeneous.

    Examples
    --------
    >>> from kernelmill.kernels import Polynomial
    >>> kernel = Polynomial(3, coef0=1.0)
    >>> kernel([[1.0, 2.0]], [[0.5, 0.25]])
    array([[8.]])
    >>> kernel.coefficients(5)
    array([1., 3., 3., 1., 0.])
    """

    _stored_fields = Fields(
        degree=Integer(0, MAX_DEGREES), gamma=Float(other="names"), coef0=Float(other="names")
    )

    degree: int = 2
    _: KW_ONLY
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree, 1))
        object.__setattr__(self, "gamma", check_positive("gamma", self.gamma))
        object.__setattr__(self, "coef0", check_not_negative("coef0", self.coef0))

    def value(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of points whose inner products are t, elementwise."""
        with np.errstate(over="ignore"):
            base = self.gamma * np.asarray(t, np.float64) + self.coef0
            return np.asarray(base**self.degree)

    def _coefficients(self, count: int, scale: float) -> NDArray[np.float64]:
        out = np.zeros(count)
        p = self.degree
        n = np.arange(0 if self.coef0 > 0 else p, min(count, p + 1))
        if n.size == 0:
            return out
        # With separate mantissas and exponents, only the product can overflow or underflow.
        linear, exponent_linear = math.frexp(self.gamma)
        by_scale, exponent_scale = math.frexp(scale)
        linear, shift = math.frexp(linear * by_scale)
        exponent_linear += exponent_scale + shift
        constant, exponent_constant = math.frexp(self.coef0) if self.coef0 > 0 else (1.0, 0)
        exponents = n * exponent_linear + (p - n) * exponent_constant
        if p <= _MAX_BINOMIAL_FACTORS:
            binomials = np.array([float(math.comb(p, int(k))) for k in n])
            mantissas = binomials * (linear**n * constant ** (p - n))
        else:
            gammaln = scipy.special.gammaln
            logs = gammaln(p + 1) - gammaln(n + 1) - gammaln(p - n + 1)
            logs = (logs + n * math.log(linear) + (p - n) * math.log(constant)) / math.log(2)
            whole = np.floor(logs).astype(np.int64)
            mantissas, exponents = np.exp2(logs - whole), exponents + whole
        with np.errstate(over="ignore", under="ignore"):
            out[n] = np.ldexp(mantissas, np.clip(exponents, -5000, 5000))
        return out


@dataclass(frozen=True)
class ExponentialDotProduct(DotProductKernel):
    r"""The kernel :math:`\exp(\langle x, y \rangle / \ell^2)`.

    Parameters
    ----------
    length_scale : float, default=1.0
        Positive.

    Examples
    --------
    >>> from kernelmill.kernels import ExponentialDotProduct
    >>> ExponentialDotProduct(length_scale=2.0)([[2.0, 0.0]], [[2.0, 5.0]]).round(4)
    array([[2.7183]])
    """

    _stored_fields = Fields(length_scale=Float(other="names"))

    length_scale: float = 1.0

    def __post_init__(self) -> None:
        scale = check_positive("length_scale", self.length_scale)
        object.__setattr__(self, "length_scale", scale)

    @property
    def degree(self) -> int | None:
        """None: the series is infinite."""
        return None

    def value(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of points whose inner products are t, elementwise."""
        with np.errstate(over="ignore"):
            return np.asarray(
                np.exp(np.asarray(t, np.float64) / self.length_scale / self.length_scale)
            )

    def _coefficients(self, count: int, scale: float) -> NDArray[np.float64]:
        ratios = np.ones(count)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rate = np.float64(scale) / self.length_scale / self.length_scale
            ratios[1:] = rate / np.arange(1, count)
            found = np.cumprod(ratios)
        found[np.isnan(found)] = np.inf  # infinity times 0, after an overflow
        return np.asarray(found, np.float64)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Maclaurin(GivenKernel, DotProductKernel):
    r"""A custom dot-product kernel: :math:`k(x, y) = \sum_n a_n \langle x, y \rangle^n`.

    Parameters
    ----------
    coefficients : array_like or callable
        An array holds :math:`a_0, a_1, \dots`, and the series ends with it. A callable
        ``coefficients(n)`` returns :math:`a_n` for every integer n >= 0. They are finite and not
        negative.
    value : callable, optional
        :math:`\kappa` as a function of an array of inner products, for coefficients that are a
        function. Without it, terms are summed until they no longer matter; the series must converge
        within a few thousand terms at the largest inner product. It ends where at least half of the
        terms so far, and at least 32 in a row, add up to nothing.

    Examples
    --------
    >>> from kernelmill.kernels import Maclaurin
    >>> Maclaurin([1.0, 0.0, 0.5])([[2.0]], [[1.0], [2.0]])
    array([[3., 9.]])
    >>> geometric = Maclaurin(lambda n: 0.5**n)
    >>> geometric([[1.0]], [[1.0], [-1.0]]).round(4)
    array([[2.    , 0.6667]])
    """

    _stored_fields = Fields(
        given=Array(("float64",), (None,), tensor=TENSOR, longest=MAX_DEGREES + 1)
    )

    given: NDArray[np.float64] | Callable[[int], float]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        coefficients: ArrayLike | Callable[[int], float],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        check_function(value, "inner products")
        if value is not None and not callable(coefficients):
            raise ValueError(
                f"value must be None if the coefficients are an array, got {name_of(value)}; "
                "omit it, or pass the coefficients as a function of n."
            )
        given = coefficients if callable(coefficients) else check_coefficients(coefficients)
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "profile", value)

    @property
    def degree(self) -> int | None:
        """The highest degree with a positive coefficient; None if they are a function."""
        return None if callable(self.given) else self.given.size - 1

    def value(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of points whose inner products are t, elementwise."""
        t = np.asarray(t, np.float64)
        if self.profile is not None:
            return call_profile(self.profile, t.copy(), "inner product")
        finite = np.isfinite(t)
        if not finite.all():
            result = np.full(t.shape, np.nan)
            result[finite] = self.value(t[finite])
            return result
        largest = float(np.abs(t).max(initial=0.0))
        if not callable(self.given):
            terms, ratios = self.given, t
        elif largest == 0:
            terms, ratios = self.coefficients(1), t
        else:
            # In units of the largest |t|, where the terms fall and nothing overflows.
            terms, ratios = self.terms(largest), t / largest
        total = np.zeros_like(t)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for term in terms[::-1]:
                total = total * ratios + term
        return total

    def _coefficients(self, count: int, scale: float) -> NDArray[np.float64]:
        if callable(self.given):
            found = np.array([self._coefficient(n) for n in range(count)])
        else:
            found = np.zeros(count)
            found[: min(count, self.given.size)] = self.given[:count]
        if scale == 1:
            return found
        # With separate mantissas and exponents, only the product can overflow or underflow.
        mantissas, exponents = np.frexp(found)
        logs = np.arange(count) * math.log2(scale)
        whole = np.floor(logs).astype(np.int64)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(
                np.ldexp(mantissas * np.exp2(logs - whole), np.clip(exponents + whole, -5000, 5000))
            )

    def _coefficient(self, n: int) -> float:
        assert callable(self.given)
        value: object = self.given(n)
        try:
            number = float(value)  # type: ignore[arg-type] # checked by trying
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not (number >= 0 and math.isfinite(number)):
            raise ValueError(
                "coefficients(n) must return finite numbers that are not negative, got "
                f"{value!r} for n = {n} from {name_of(self.given)}; negative coefficients do not "
                "define a kernel in every dimension."
            )
        if float(self.given(n)) != number:
            raise ValueError(
                f"coefficients(n) must always return the same number, but {name_of(self.given)} "
                f"does not for n = {n}; make it depend on n alone."
            )
        return number

    def _vanishes_early(self, terms: NDArray[np.float64]) -> bool:
        coefficients = self.coefficients(terms.size)
        last = int(np.flatnonzero(coefficients)[-1])
        # Coefficients may underflow to 0 although their terms would matter for a large t.
        matters = terms[last] > np.finfo(np.float64).eps * terms.sum()
        return bool(coefficients[last] < _SMALLEST_COEFFICIENT and matters)

    def __repr__(self) -> str:
        if callable(self.given):
            given = name_of(self.given)
        elif self.given.size <= 8:
            given = str(self.given.tolist())
        else:
            given = f"<{self.given.size} coefficients>"
        return f"Maclaurin({given}, value={name_of(self.profile)})"


def check_coefficients(coefficients: ArrayLike) -> NDArray[np.float64]:
    """Return a read-only array of finite coefficients >= 0, up to the last positive one."""
    array = as_real(coefficients, "coefficients", "they are real").astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            "coefficients must be a function or a one-dimensional array of at least one number, "
            f"got shape {array.shape}; reshape(-1) makes it one-dimensional."
        )
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        raise ValueError(
            f"coefficients must be finite and not negative, got {float(array[wrong[0]])} at "
            f"degree {wrong[0]}; negative coefficients do not define a kernel in every dimension."
        )
    if not array.any():
        raise ValueError("coefficients must not all be 0; at least one must be positive.")
    array = array[: int(np.flatnonzero(array)[-1]) + 1] + 0.0  # a copy, without negative zeros
    array.flags.writeable = False
    return array
