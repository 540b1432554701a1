"""The rational quadratic kernels: Gaussian kernels whose precision is a gamma variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.kernels.base import RadialKernel
from kernelmill.random import Stream

# Squares of larger distances would overflow.
_FARTHEST = 1e150


@dataclass(frozen=True)
class RationalQuadratic(RadialKernel):
    r"""The rational quadratic kernel :math:`(1 + r^2 / (2 \alpha))^{-\alpha}`.

    A mixture of Gaussian kernels :math:`\exp(-\tau r^2 / 2)` where :math:`\tau` is a gamma variable
    of shape alpha and mean 1; so a frequency is a normal vector times :math:`\sqrt\tau`.

    Parameters
    ----------
    alpha : float, default=1.0
        Positive; the larger, the closer to `Gaussian`.

    Examples
    --------
    >>> from kernelmill.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.7071, 0.4472]])
    """

    alpha: float = 1.0
    gaussian_mixture: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_positive("alpha", self.alpha))

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = np.minimum(np.asarray(distance, np.float64), _FARTHEST)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-self.alpha * np.log1p(np.square(r) / 2 / self.alpha)))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        normal = stream.substream("normal").chis(n, dim, start=start)
        mixing = stream.substream("mixing").gammas(n, self.alpha, start=start)
        return np.asarray(normal * np.sqrt(mixing / self.alpha))


@dataclass(frozen=True)
class Cauchy(RadialKernel):
    r"""The Cauchy kernel :math:`1 / (1 + r^2)`.

    ``RationalQuadratic(alpha=1.0)`` at a length scale that is smaller by :math:`\sqrt 2`.

    Examples
    --------
    >>> from kernelmill.kernels import Cauchy
    >>> Cauchy()([[0.0]], [[1.0], [2.0]])
    array([[0.5, 0.2]])
    """

    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = np.minimum(np.asarray(distance, np.float64), _FARTHEST)
        return np.asarray(1 / (1 + np.square(r)))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return math.sqrt(2) * RationalQuadratic(1.0)._lengths(stream, n, dim, start)
