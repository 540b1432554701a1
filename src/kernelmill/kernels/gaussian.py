"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_start
from kernelmill.kernels.base import RadialKernel
from kernelmill.kernels.points import real_distances
from kernelmill.random import Stream


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

    gaussian_mixture: ClassVar[bool] = True

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, the same for every `dim`."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-0.5 * np.square(real_distances(distance))))

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Independent standard normal vectors; see `Kernel.frequencies`."""
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        return stream.normals((n, dim), start=check_start(start) * dim)

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        return stream.chis(n, dim, start=start)
