"""The interfaces of shift-invariant, radial and rotation-invariant kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_length_scale, check_positive, check_start
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Array
from kernelmill.kernels.points import check_pair, euclidean_distances
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Rows, as_real, split_length_scale, weigh_columns

__all__ = [
    "LONGEST_FREQUENCY",
    "MAX_DEGREES",
    "TENSOR",
    "GivenKernel",
    "Kernel",
    "RadialKernel",
    "RotationInvariantKernel",
    "call_profile",
    "check_function",
]

MAX_DEGREES = 4096
"""The highest degree of kernels in model files, and of spherical expansions."""

TENSOR = "kernel"
"""The name of the tensor of a kernel that is given by an array."""

LONGEST_FREQUENCY = 1e12
"""Longer frequencies are cut, so distances below 1e-12 length scales count as 0."""


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
    _stored_fields: ClassVar[Fields | None] = None  # None: cannot be stored

    def __call__(
        self, X: object, Y: object = None, *, length_scale: float | ArrayLike = 1.0
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
    def _values(self, X: Rows, Y: Rows | None, length_scale: float) -> NDArray[np.float64]:
        """Return the kernel between checked points; Y is None where it is X."""

    @abstractmethod
    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Return independent draws from the spectral measure at length scale 1.

        Parameters
        ----------
        stream : Stream
            The source of randomness.
        n, dim : int
            The number of frequencies, and of their dimensions.
        start : int, default=0
            The position of the first one: row i depends only on the stream and ``start + i``.

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

    def distances(self, X: object, Y: object = None) -> NDArray[np.float64]:
        """Return the distances that determine the kernel: Euclidean unless stated otherwise."""
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
        """Return radii before they are cut; NaN stands for infinity divided by infinity."""

    def radii(self, stream: Stream, n: int, dim: int, *, start: int = 0) -> NDArray[np.float64]:
        """Return the lengths of n independent frequencies in `dim` dimensions, at most 1e12.

        Element i depends only on the stream and ``start + i``. Lengths beyond 1e12, from heavy
        tails, are replaced by uniform values between half of that and 1e12. If they were constant,
        the kernel would not decay to 0 in one dimension.
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
        """Return independent draws from the spectral measure: radii times uniform directions.

        See `Kernel.frequencies`.
        """
        radii = self.radii(stream.substream("radii"), n, dim, start=start)
        directions = stream.substream("directions").sphere(n, dim, start=start)
        directions *= radii[:, np.newaxis]
        return directions

    def _values(self, X: Rows, Y: Rows | None, length_scale: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            distances = euclidean_distances(X, Y) / length_scale
        return self.value(distances, X.shape[1])


class RotationInvariantKernel(ABC):
    """A kernel of norms and inner products, invariant under rotations of all points.

    Unlike a shift-invariant `Kernel` it has no length scale: points are not divided by one.
    """

    _stored_fields: ClassVar[Fields | None] = None  # None: cannot be stored

    def __call__(self, X: object, Y: object = None) -> NDArray[np.float64]:
        """Return the exact kernel between the rows of X and those of Y.

        Parameters
        ----------
        X, Y : array_like or scipy sparse, of shapes (n_X, dim) and (n_Y, dim)
            Points, real and finite. By default Y is X.

        Returns
        -------
        ndarray of shape (n_X, n_Y)
            float64 for points of any dtype; infinite where that overflows.
        """
        return self._values(*check_pair(X, Y))

    @abstractmethod
    def _values(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        """Return the kernel between checked points; Y is None where it is X."""


class GivenKernel:
    """What kernels share that are given by an array or a function, and perhaps by their values.

    Attributes
    ----------
    given : ndarray or callable
        What the kernel is made from: its coefficients, frequencies, or lengths of frequencies.
    profile : callable or None
        The values of the kernel.
    """

    _stored_fields: ClassVar[Fields | None] = Fields(
        given=Array(("float64",), (None,), tensor=TENSOR)
    )

    given: NDArray[np.float64] | Callable[..., ArrayLike]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def _identity(self) -> tuple[object, ...]:
        given = self.given
        of_given = given if callable(given) else (given.shape, given.tobytes())
        return (type(self), of_given, self.profile)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GivenKernel):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def check_function(value: object, of: str, name: str = "value") -> None:
    """Raise an error if `value`, a function of what `of` says, is neither callable nor None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of {of} or None, got {value!r}.")


def call_profile(
    profile: Callable[[NDArray[np.float64]], ArrayLike],
    argument: NDArray[np.float64],
    of: str,
    *,
    name: str = "value",
    shape: tuple[int, ...] | None = None,
    remedy: str = "write it with numpy functions of its argument",
) -> NDArray[np.float64]:
    """Return what a user's function makes of an array, after checking that it is real.

    Its shape has to be `shape`, by default that of the argument, with one number for each `of`.
    """
    shape = argument.shape if shape is None else shape
    result = as_real(np.asarray(profile(argument)), f"The result of {name}", "return reals")
    if result.shape != shape:
        raise ValueError(
            f"{name} must return one number for each {of}, shape {shape}, got shape "
            f"{result.shape}; {remedy}."
        )
    return result.astype(np.float64, copy=False)
