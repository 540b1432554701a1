"""What kernels offer that do not change when both points are rotated together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.kernels.points import check_pair


class RotationInvariantKernel(ABC):
    """A kernel of norms and inner products, invariant under rotations of all points.

    Unlike a shift-invariant `Kernel` it has no length scale: its points are taken as they are.
    """

    def __call__(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """The exact kernel between the rows of X and those of Y.

        Parameters
        ----------
        X, Y : array_like or scipy sparse, of shapes (n_X, dim) and (n_Y, dim)
            Points, real and finite. Without Y, those of X again.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
            float64 for points of any dtype; infinite where that overflows.
        """
        return self._values(*check_pair(X, Y))

    @abstractmethod
    def _values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """The kernel between checked points; Y is None where it is X."""
