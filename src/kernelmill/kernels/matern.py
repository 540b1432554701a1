"""Matérn kernels, whose spectra are multivariate t distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.kernels.base import RadialKernel
from kernelmill.kernels.bessel import normalized_bessel_k
from kernelmill.kernels.points import real_distances
from kernelmill.random import Stream

# Beyond, the difference to the Gaussian kernel is below the rounding of doubles.
_LIKE_GAUSSIAN = 1e16


@dataclass(frozen=True)
class Matern(RadialKernel):
    r"""The Matérn kernel of smoothness nu.

    .. math::

        k(r) = \frac{2^{1 - \nu}}{\Gamma(\nu)} \left(\sqrt{2 \nu} \, r\right)^\nu
               K_\nu \left(\sqrt{2 \nu} \, r\right)

    Its spectrum is the multivariate t distribution with 2 nu degrees of freedom. A Gaussian process
    with it has derivatives of every order below nu.

    Parameters
    ----------
    nu : float, default=1.5
        Positive; 0.5 is `Exponential`, infinity is `Gaussian`.

    Notes
    -----
    The error of values is below 1e-12 for every nu. For nu below about 0.1 a good part of the
    frequencies would be longer than 1e12; they are cut to about that length, which changes the
    kernel at distances of some 1e-12 length scales and less.

    Examples
    --------
    >>> from kernelmill.kernels import Matern
    >>> Matern(nu=2.5)([[0.0, 0.0]], [[3.0, 4.0]], length_scale=5.0).round(4)
    array([[0.524]])
    """

    nu: float = 1.5
    gaussian_mixture: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (isinstance(self.nu, (float, np.floating)) and self.nu == math.inf):
            object.__setattr__(self, "nu", check_positive("nu", self.nu))

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = real_distances(distance)
        if self.nu >= _LIKE_GAUSSIAN:
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(-0.5 * np.square(r)))
        with np.errstate(over="ignore"):
            x = math.sqrt(2 * self.nu) * r
        if self.nu not in (0.5, 1.5, 2.5):
            return normalized_bessel_k(self.nu, x)
        x = np.minimum(x, 1e4)  # the exponential is 0 there, and no power overflows
        if self.nu == 0.5:
            return np.asarray(np.exp(-x))
        polynomial = 1 + x if self.nu == 1.5 else 1 + x * (1 + x / 3)
        return np.asarray(polynomial * np.exp(-x))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        normal = stream.substream("normal").chis(n, dim, start=start)
        if self.nu >= _LIKE_GAUSSIAN:
            return normal
        mixing = stream.substream("mixing").chis(n, 2 * self.nu, start=start)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.asarray(normal * math.sqrt(2 * self.nu) / mixing)


@dataclass(frozen=True)
class Exponential(RadialKernel):
    r"""The exponential kernel :math:`\exp(-r)`, whose spectrum is multivariate Cauchy.

    The same as ``Matern(nu=0.5)``. With the sum of absolute differences instead of the Euclidean
    distance it is `Laplacian`.

    Examples
    --------
    >>> from kernelmill.kernels import Exponential
    >>> Exponential()([[0.0, 0.0]], [[3.0, 4.0]], length_scale=5.0).round(4)
    array([[0.3679]])
    """

    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        return np.asarray(np.exp(-real_distances(distance)))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return Matern(0.5)._lengths(stream, n, dim, start)
