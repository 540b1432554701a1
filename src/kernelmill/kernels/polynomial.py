"""Polynomial kernels."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy  # scipy.special is loaded when it is first used
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_not_negative, check_positive
from kernelmill.kernels.dot_product import DotProductKernel

# Binomial coefficients and powers of numbers in [1/2, 1) are floats up to this degree.
_MOST_BY_FACTORS = 1000


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
        # Mantissas and exponents apart: no factor overflows or underflows where the product fits.
        linear, exponent_linear = math.frexp(self.gamma)
        by_scale, exponent_scale = math.frexp(scale)
        linear, shift = math.frexp(linear * by_scale)
        exponent_linear += exponent_scale + shift
        constant, exponent_constant = math.frexp(self.coef0) if self.coef0 > 0 else (1.0, 0)
        exponents = n * exponent_linear + (p - n) * exponent_constant
        if p <= _MOST_BY_FACTORS:
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
