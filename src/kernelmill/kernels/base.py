"""The interfaces of shift-invariant, radial and rotation-invariant kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_length_scale, check_positive, check_start
from kernelmill.kernels.points import check_pair, euclidean_distances
from kernelmill.random import Stream
from kernelmill.runtime.arrays import split_length_scale, weigh_columns

# Heavy tails are cut here: distances below 1e-12 length scales are not distinguished from 0.
LONGEST_FREQUENCY = 1e12


class Kernel(ABC):
    r"""A shift-invariant kernel with k(x, x) = 1, given at length scale 1.

    By Bochner's theorem it is the characteristic function of its spectral measure,

    .. math:: k(x, y) = E \cos \langle \omega, x - y \rangle,

    from which `frequencies` draws. At length scale s, k is evaluated at (x - y) / s and frequencies
    are divided by s.

    Attributes
    ----------
    radial : bool
        Whether k is a function of the Euclidean distance only.
    """

    radial: ClassVar[bool] = False

    def __call__(
        self, X: Any, Y: Any = None, *, length_scale: float | ArrayLike = 1.0
    ) -> NDArray[np.float64]:
        """Return the exact kernel between the rows of X and those of Y.

        Parameters
        ----------
        X, Y : array_like or scipy sparse, of shapes (n_X, dim) and (n_Y, dim)
            Points, real and finite. By default Y is X.
        length_scale : float or array_like of shape (dim,), default=1.0
            Positive. Differences are divided by it: all by one number, or each coordinate by its
            own. An infinite one means that the coordinate is ignored.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
            float64 for points of any dtype.
        """
        first, second = check_pair(X, Y)
        scales = check_length_scale("length_scale", length_scale, first.shape[1])
        scale, weights = split_length_scale(scales)
        first = weigh_columns(first, weights)
        return self._values(
            first, None if second is None else weigh_columns(second, weights), scale
        )

    @abstractmethod
    def _values(self, X: Any, Y: Any, length_scale: float) -> NDArray[np.float64]:
        """Return the kernel between checked points; Y is None where it is X."""

    @abstractmethod
    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Independent draws from the spectral measure at length scale 1.

        Parameters
        ----------
        stream : Stream
            Where the randomness comes from.
        n, dim : int
            The number of frequencies and of their dimensions.
        start : int, default=0
            The position of the first: row i depends only on the stream and ``start + i``.

        Returns
        -------
        ndarray of shape (n, dim)
            Lengths (for `Laplacian`, entries) are at most 1e12: larger ones of heavy-tailed spectra
            are replaced by values between half of that and 1e12.
        """

    def length_scale_from_gamma(self, gamma: float) -> float:
        """Return the length scale that scikit-learn's `gamma` stands for: 1 / sqrt(2 gamma).

        The kernel is then a function of gamma times the squared distance.
        """
        return math.sqrt(0.5 / check_positive("gamma", gamma))

    def length_scale_of_spread(self, dim: int, variance: float) -> float:
        """Return the length scale called "scale": that of gamma = 1 / (dim * variance).

        Parameters
        ----------
        dim : int
            The number of columns of the data.
        variance : float
            The variance of all their entries. If it is 0, gamma is 1, as in scikit-learn.
        """
        spread = self._check_spread(dim, variance)
        return math.sqrt(spread / 2) if spread > 0 else self.length_scale_from_gamma(1.0)

    @staticmethod
    def _check_spread(dim: int, variance: float) -> float:
        number = 0.0 if variance == 0 else check_positive("variance", variance)
        return check_integer("dim", dim, 1) * number

    def distances(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """The distances that the kernel is a function of: Euclidean unless stated otherwise."""
        return euclidean_distances(*check_pair(X, Y))


class RadialKernel(Kernel):
    """A kernel that is a function of the Euclidean distance.

    Its frequencies are uniform directions times random lengths, the `radii`.

    Attributes
    ----------
    gaussian_mixture : bool
        Whether the spectrum is a scale mixture of Gaussians. Then k, as a function of the distance,
        is the same in every dimension, and any d of the p coordinates of a frequency in p
        dimensions form a frequency in d dimensions.
    """

    radial: ClassVar[bool] = True
    gaussian_mixture: ClassVar[bool] = False

    @abstractmethod
    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, in `dim` dimensions."""

    @abstractmethod
    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        """Radii before the cut; NaN stands for infinity divided by infinity."""

    def radii(self, stream: Stream, n: int, dim: int, *, start: int = 0) -> NDArray[np.float64]:
        """Lengths of n independent frequencies in `dim` dimensions, at most 1e12.

        Element i depends only on the stream and ``start + i``. Where a heavy tail would give more
        than 1e12, it is uniform between half of that and 1e12. If it were constant, the kernel
        would not decay to 0 in one dimension.
        """
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        lengths = self._lengths(stream, n, dim, check_start(start))
        too_long = ~(lengths <= LONGEST_FREQUENCY)
        if too_long.any():
            shares = (1 + stream.substream("cut").uniforms(n, start=start)) / 2
            lengths[too_long] = LONGEST_FREQUENCY * shares[too_long]
        return lengths

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Independent draws from the spectral measure: radii times uniform directions.

        See `Kernel.frequencies`.
        """
        radii = self.radii(stream.substream("radii"), n, dim, start=start)
        directions = stream.substream("directions").sphere(n, dim, start=start)
        directions *= radii[:, np.newaxis]
        return directions

    def _values(self, X: Any, Y: Any, length_scale: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            distances = euclidean_distances(X, Y) / length_scale
        return self.value(distances, X.shape[1])


class RotationInvariantKernel(ABC):
    """A kernel of norms and inner products, invariant under rotations of all points.

    Unlike a shift-invariant `Kernel` it has no length scale: points are not divided by one.
    """

    def __call__(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """Return the exact kernel between the rows of X and those of Y.

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
        """Return the kernel between checked points; Y is None where it is X."""
