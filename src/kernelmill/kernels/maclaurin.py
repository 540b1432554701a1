"""Custom dot-product kernels, given by their Maclaurin coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.formatting import name_of
from kernelmill.kernels.dot_product import DotProductKernel
from kernelmill.runtime.arrays import as_real

# Coefficients below it have lost digits, or are about to become 0.
_SMALLEST = 1e-290


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Maclaurin(DotProductKernel):
    r"""A custom dot-product kernel: :math:`k(x, y) = \sum_n a_n \langle x, y \rangle^n`.

    Parameters
    ----------
    coefficients : array_like or callable
        An array holds :math:`a_0, a_1, \dots`, and the series ends with it. A callable
        ``coefficients(n)`` returns :math:`a_n` for every integer n >= 0. They are finite and not
        negative.
    value : callable, optional
        :math:`\kappa` as a function of an array of inner products, for coefficients that are a
        function. Without it the series is summed
        until its terms no longer matter, which takes a series that converges within some thousand
        terms at the largest inner product. If 32 terms in a row, and at least as many as before
        them, add up to nothing, it is taken to be at its end.

    Examples
    --------
    >>> from kernelmill.kernels import Maclaurin
    >>> Maclaurin([1.0, 0.0, 0.5])([[2.0]], [[1.0], [2.0]])
    array([[3., 9.]])
    >>> geometric = Maclaurin(lambda n: 0.5**n)
    >>> geometric([[1.0]], [[1.0], [-1.0]]).round(4)
    array([[2.    , 0.6667]])
    """

    law: NDArray[np.float64] | Callable[[int], float]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        coefficients: ArrayLike | Callable[[int], float],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        if value is not None and not callable(value):
            raise TypeError(f"value must be a function of inner products or None, got {value!r}.")
        if value is not None and not callable(coefficients):
            raise ValueError(
                f"value must be None if the coefficients are an array, got {name_of(value)}; "
                "omit it, or pass the coefficients as a function of n."
            )
        law = coefficients if callable(coefficients) else check_coefficients(coefficients)
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "profile", value)

    @property
    def degree(self) -> int | None:
        """The highest degree with a positive coefficient; None if they are a function."""
        return None if callable(self.law) else self.law.size - 1

    def value(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of points whose inner products are t, elementwise."""
        t = np.asarray(t, np.float64)
        if self.profile is not None:
            result = as_real(
                np.asarray(self.profile(t.copy())), "The result of value", "return reals"
            )
            if result.shape != t.shape:
                raise ValueError(
                    f"value must return one number for each inner product, shape {t.shape}, got "
                    f"shape {result.shape}; write it with numpy functions of its argument."
                )
            return result.astype(np.float64, copy=False)
        finite = np.isfinite(t)
        if not finite.all():
            result = np.full(t.shape, np.nan)
            result[finite] = self.value(t[finite])
            return result
        largest = float(np.abs(t).max(initial=0.0))
        if not callable(self.law):
            terms, ratios = self.law, t
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
        if callable(self.law):
            found = np.array([self._coefficient(n) for n in range(count)])
        else:
            found = np.zeros(count)
            found[: min(count, self.law.size)] = self.law[:count]
        if scale == 1:
            return found
        # Mantissas and exponents apart: no power overflows or underflows where the product fits.
        mantissas, exponents = np.frexp(found)
        logs = np.arange(count) * math.log2(scale)
        whole = np.floor(logs).astype(np.int64)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(
                np.ldexp(mantissas * np.exp2(logs - whole), np.clip(exponents + whole, -5000, 5000))
            )

    def _coefficient(self, n: int) -> float:
        assert callable(self.law)
        given: Any = self.law(n)
        try:
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not (number >= 0 and math.isfinite(number)):
            raise ValueError(
                "coefficients(n) must return finite numbers that are not negative, got "
                f"{given!r} for n = {n} from {name_of(self.law)}; negative coefficients do not "
                "define a kernel in every dimension."
            )
        if float(self.law(n)) != number:
            raise ValueError(
                f"coefficients(n) must always return the same number, but {name_of(self.law)} "
                f"does not for n = {n}; make it depend on n alone."
            )
        return number

    def _vanishes_early(self, terms: NDArray[np.float64]) -> bool:
        coefficients = self.coefficients(terms.size)
        last = int(np.flatnonzero(coefficients)[-1])
        # Underflow makes zeros of coefficients whose terms, at large t, would still matter.
        matters = terms[last] > np.finfo(np.float64).eps * terms.sum()
        return bool(coefficients[last] < _SMALLEST and matters)

    def __repr__(self) -> str:
        if callable(self.law):
            law = name_of(self.law)
        elif self.law.size <= 8:
            law = str(self.law.tolist())
        else:
            law = f"<{self.law.size} coefficients>"
        return f"Maclaurin({law}, value={name_of(self.profile)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Maclaurin):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return (self.law if callable(self.law) else self.law.tobytes(), self.profile)


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
