"""Shift-invariant kernels: Gaussian, Matérn, rational quadratic and others.

Most are functions of the Euclidean distance whose spectra are scale mixtures of Gaussians.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_positive, check_start
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Float, Integer
from kernelmill.kernels.base import LONGEST_FREQUENCY, MAX_DEGREES, Kernel, RadialKernel
from kernelmill.kernels.bessel import normalized_bessel_j, normalized_bessel_k
from kernelmill.kernels.points import check_pair, manhattan_distances, real_distances
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Rows

__all__ = [
    "BallConvolution",
    "Cauchy",
    "Exponential",
    "Gaussian",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
]

_GAUSSIAN_NU = 1e16
"""From this smoothness on, a Matérn kernel equals the Gaussian one to rounding."""

_LONGEST_DISTANCE = 1e150
"""Longer distances are cut, so that their squares do not overflow."""


@dataclass(frozen=True)
class Gaussian(RadialKernel):
    r"""The Gaussian kernel :math:`\exp(-r^2 / 2)`, whose spectrum is standard normal.

    Examples
    --------
    >>> from kernelmill.kernels import Gaussian
    >>> Gaussian()([[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    _stored_fields = Fields()
    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-0.5 * np.square(real_distances(distance))))

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Return independent standard normal vectors; see `Kernel.frequencies`."""
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        return stream.normals((n, dim), start=check_start(start) * dim)

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return stream.chis(n, dim, start=start)


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
    The error of values is below 1e-12 for every nu. For nu below about 0.1, many frequencies would
    be longer than 1e12; they are cut to about that length, which changes the kernel at distances
    of about 1e-12 length scales and less.

    Examples
    --------
    >>> from kernelmill.kernels import Matern
    >>> Matern(nu=2.5)([[0.0, 0.0]], [[3.0, 4.0]], length_scale=5.0).round(4)
    array([[0.524]])
    """

    _stored_fields = Fields(nu=Float(other="names"))

    nu: float = 1.5
    gaussian_mixture: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (isinstance(self.nu, (float, np.floating)) and self.nu == math.inf):
            object.__setattr__(self, "nu", check_positive("nu", self.nu))

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = real_distances(distance)
        if self.nu >= _GAUSSIAN_NU:
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
        if self.nu >= _GAUSSIAN_NU:
            return normal
        mixing = stream.substream("mixing").chis(n, 2 * self.nu, start=start)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.asarray(normal * math.sqrt(2 * self.nu) / mixing)


@dataclass(frozen=True)
class Exponential(RadialKernel):
    r"""The exponential kernel :math:`\exp(-r)`, whose spectrum is multivariate Cauchy.

    The same as ``Matern(nu=0.5)``. `Laplacian` has the sum of absolute differences instead of the
    Euclidean distance.

    Examples
    --------
    >>> from kernelmill.kernels import Exponential
    >>> Exponential()([[0.0, 0.0]], [[3.0, 4.0]], length_scale=5.0).round(4)
    array([[0.3679]])
    """

    _stored_fields = Fields()
    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        return np.asarray(np.exp(-real_distances(distance)))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return Matern(0.5)._lengths(stream, n, dim, start)


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

    _stored_fields = Fields(alpha=Float(other="names"))

    alpha: float = 1.0
    gaussian_mixture: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_positive("alpha", self.alpha))

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = np.minimum(np.asarray(distance, np.float64), _LONGEST_DISTANCE)
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

    _stored_fields = Fields()
    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        r = np.minimum(np.asarray(distance, np.float64), _LONGEST_DISTANCE)
        return np.asarray(1 / (1 + np.square(r)))

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return math.sqrt(2) * RationalQuadratic(1.0)._lengths(stream, n, dim, start)


@dataclass(frozen=True)
class BallConvolution(RadialKernel):
    r"""The kernel whose spectrum is a t-fold convolution of the uniform distribution in the ball.

    .. math::

        k(r) = \left[ \Gamma(d/2 + 1) \, (2/r)^{d/2} J_{d/2}(r) \right]^t

    in d dimensions. The literature on Fastfood calls it a Matérn kernel; see `Matern` for the one
    that Gaussian processes use.

    Parameters
    ----------
    t : int, default=1
        The number of points in the ball whose sum is a frequency, at least 1.

    Notes
    -----
    The coordinates of a point of the ball have the variance 1 / (d + 2), so the kernel falls to
    exp(-1/2) at distances of about :math:`\sqrt{(d + 2) / t}` length scales.

    The first d coordinates of a uniform point on the sphere in d + 2 dimensions are uniform in the
    ball. Hence a sum of t points grows by a normal variable along and two chi variables across its
    direction: a radius costs 3 t draws, not t d.

    References
    ----------
    Q. Le, T. Sarlós, A. Smola, "Fastfood: approximate kernel expansions in loglinear time",
    Proc. ICML (2013).

    Examples
    --------
    >>> from kernelmill.kernels import BallConvolution
    >>> BallConvolution(t=2)([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [3.0, 4.0, 0.0]]).round(4)
    array([[0.8163, 0.0033]])
    """

    _stored_fields = Fields(t=Integer(0, MAX_DEGREES))

    t: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", check_integer("t", self.t, 1))

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, in `dim` dimensions."""
        return np.asarray(normalized_bessel_j(check_integer("dim", dim, 1) / 2, distance) ** self.t)

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        lengths = np.zeros(n)
        for step in range(self.t):
            source = stream.substream("point", step)
            along = source.normals(n, start=start)
            beyond = source.substream("beyond").chis(n, 2, start=start)
            across = (
                source.substream("across").chis(n, dim - 1, start=start) if dim > 1 else np.zeros(n)
            )
            norm = np.sqrt(along * along + across * across + beyond * beyond)
            along, across = lengths + along / norm, across / norm
            lengths = np.sqrt(along * along + across * across)
        return lengths


@dataclass(frozen=True)
class Laplacian(Kernel):
    r"""The Laplacian kernel :math:`\exp(-\lVert x - y \rVert_1)`.

    The coordinates of its frequencies are independent Cauchy variables. It is not radial: the
    exponential of the Euclidean distance is `Exponential`.

    Examples
    --------
    >>> from kernelmill.kernels import Laplacian
    >>> Laplacian()([[0.0, 0.0]], [[3.0, 4.0]], length_scale=7.0).round(4)
    array([[0.3679]])
    """

    _stored_fields = Fields()

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Return vectors of independent Cauchy variables; see `Kernel.frequencies`."""
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        draws = stream.cauchys((n, dim), start=check_start(start) * dim)
        return np.clip(draws, -LONGEST_FREQUENCY, LONGEST_FREQUENCY, out=draws)

    def length_scale_from_gamma(self, gamma: float) -> float:
        """Return 1 / gamma, as in scikit-learn's `laplacian_kernel`."""
        return 1 / check_positive("gamma", gamma)

    def length_scale_of_spread(self, dim: int, variance: float) -> float:
        """Return the length scale called "scale": dim * sqrt(variance / 2).

        Distances are sums of `dim` absolute differences. If `variance` is 0, gamma is 1.
        """
        spread = self._check_spread(dim, variance)
        return dim * math.sqrt(variance / 2) if spread > 0 else self.length_scale_from_gamma(1.0)

    def distances(self, X: object, Y: object = None) -> NDArray[np.float64]:
        """Return the distances that determine the kernel: sums of absolute differences."""
        return manhattan_distances(*check_pair(X, Y))

    def _values(self, X: Rows, Y: Rows | None, length_scale: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-manhattan_distances(X, Y) / length_scale))
