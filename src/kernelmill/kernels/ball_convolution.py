"""The kernel whose spectrum is a sum of uniform points in the unit ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer
from kernelmill.kernels.base import RadialKernel
from kernelmill.kernels.bessel import normalized_bessel_j
from kernelmill.random import Stream


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
        How many points of the ball a frequency is the sum of, at least 1.

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
