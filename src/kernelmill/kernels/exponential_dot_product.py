"""The exponential of the inner product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.kernels.dot_product import DotProductKernel


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
        found[np.isnan(found)] = np.inf  # infinity times 0: it had overflowed before
        return np.asarray(found, np.float64)
