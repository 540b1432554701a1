"""The Laplacian kernel, a product over coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer, check_positive, check_start
from kernelmill.kernels.base import LONGEST_FREQUENCY, Kernel
from kernelmill.kernels.points import check_pair, manhattan_distances
from kernelmill.random import Stream


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

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Vectors of independent Cauchy variables; see `Kernel.frequencies`."""
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        draws = stream.cauchys((n, dim), start=check_start(start) * dim)
        return np.clip(draws, -LONGEST_FREQUENCY, LONGEST_FREQUENCY, out=draws)

    def length_scale_from_gamma(self, gamma: float) -> float:
        """1 / gamma, as in scikit-learn's `laplacian_kernel`."""
        return 1 / check_positive("gamma", gamma)

    def length_scale_of_spread(self, dim: int, variance: float) -> float:
        """Return the length scale called "scale": dim * sqrt(variance / 2).

        Distances are sums of `dim` absolute differences. If `variance` is 0, gamma is 1.
        """
        spread = self._check_spread(dim, variance)
        return dim * math.sqrt(variance / 2) if spread > 0 else self.length_scale_from_gamma(1.0)

    def distances(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """Return the distances that the kernel is a function of: sums of absolute differences."""
        return manhattan_distances(*check_pair(X, Y))

    def _values(self, X: Any, Y: Any, length_scale: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-manhattan_distances(X, Y) / length_scale))
