"""Custom shift-invariant kernels, given by their frequencies or the lengths of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_start
from kernelmill.files.fields import Fields
from kernelmill.files.kinds import Array
from kernelmill.formatting import name_of
from kernelmill.kernels.base import (
    LONGEST_FREQUENCY,
    TENSOR,
    GivenKernel,
    Kernel,
    RadialKernel,
    call_profile,
    check_function,
)
from kernelmill.kernels.bessel import normalized_bessel_j
from kernelmill.kernels.points import dense_blocks
from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats, Rows, as_real
from kernelmill.transforms import sincos

__all__ = ["Radial", "Spectrum"]

_BLOCK_PRODUCTS = 1 << 18
"""Products of radii and distances that are computed at a time."""

_BLOCK_FREQUENCIES = 1 << 10
"""Frequencies whose cosines are computed at a time."""

_BLOCK_DIFFERENCES = 1 << 20
"""Elements of difference vectors that are computed at a time."""

_REPEATED = 8
"""Draws that are requested twice, to check that they are functions of the stream."""


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Radial(GivenKernel, RadialKernel):
    r"""A custom radial kernel, given by the lengths of its frequencies.

    Parameters
    ----------
    radii : array_like or callable
        An array of lengths stands for the uniform distribution on its elements.
        A callable ``radii(stream, n, dim)`` returns n lengths, shape (n,), drawn from the `Stream`;
        the first ones must not depend on n. Lengths are finite and not negative; those above 1e12
        are cut to about that.
    value : callable, optional
        The kernel as a function of an array of distances, in length scales. Without it, the kernel
        of an array of radii is the mean over the radii w of

        .. math:: \Gamma(d/2) \, (2/s)^{d/2 - 1} J_{d/2 - 1}(s), \quad s = w r,

        and that of a callable cannot be evaluated, only drawn from.

    Examples
    --------
    >>> from kernelmill.kernels import Radial
    >>> from kernelmill.random import Stream
    >>> kernel = Radial([1.0, 2.0, 3.0])
    >>> kernel.radii(Stream.from_seed(0), 5, dim=3)
    array([2., 2., 1., 1., 1.])
    >>> kernel([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]).round(4)
    array([[0.4477]])

    The Gaussian kernel as a custom kernel:

    >>> Radial(lambda stream, n, dim: stream.chis(n, dim)).radii(Stream.from_seed(0), 2, dim=784)
    array([27.13518823, 27.81932247])
    """

    given: NDArray[np.float64] | Callable[[Stream, int, int], ArrayLike]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        radii: ArrayLike | Callable[[Stream, int, int], ArrayLike],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        check_function(value, "distances")
        object.__setattr__(self, "given", radii if callable(radii) else _check_sample(radii))
        object.__setattr__(self, "profile", value)

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, in `dim` dimensions."""
        r = np.asarray(distance, np.float64)
        order = check_integer("dim", dim, 1) / 2 - 1
        if self.profile is not None:
            return call_profile(self.profile, r, "distance")
        if callable(self.given):
            raise ValueError(
                "value must be given to evaluate a kernel whose radii are a function, got None; "
                "use Radial(radii, value=...) with k as a function of the distance."
            )
        flat = np.minimum(r.reshape(-1), 1e280)
        means = np.empty(flat.shape)
        step = max(1, _BLOCK_PRODUCTS // self.given.size)
        for first in range(0, flat.size, step):
            products = flat[first : first + step, np.newaxis] * self.given
            means[first : first + step] = normalized_bessel_j(order, products).mean(axis=1)
        return np.reshape(means, r.shape)

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        if not callable(self.given):
            return np.asarray(self.given[stream.integers(n, self.given.size, start=start)])
        drawn = _draw(self.given, "radii", stream, start + n, dim)
        if drawn.shape != (start + n,):
            raise ValueError(
                f"radii(stream, n, dim) must return an array of shape (n,), {(start + n,)}, got "
                f"shape {drawn.shape}; return one length for each frequency."
            )
        _check_lengths(drawn)
        return drawn[start:].astype(np.float64)

    def __repr__(self) -> str:
        given = name_of(self.given) if callable(self.given) else f"<{self.given.size} radii>"
        return f"Radial({given}, value={name_of(self.profile)})"


def _check_sample(radii: ArrayLike) -> NDArray[np.float64]:
    sample = as_real(radii, "radii", "lengths are real").astype(np.float64)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(
            f"radii must be a function or a one-dimensional array of at least one length, got "
            f"shape {sample.shape}; reshape(-1) makes it one-dimensional."
        )
    _check_lengths(sample)
    sample = np.minimum(sample, LONGEST_FREQUENCY) + 0.0  # a zero is not a negative zero
    sample.flags.writeable = False
    return sample


def _check_lengths(radii: Floats) -> None:
    if not (np.isfinite(radii).all() and (radii >= 0).all()):
        bad = radii[~(np.isfinite(radii) & (radii >= 0))][0]
        raise ValueError(f"radii must be finite and not negative, got {bad}; they are lengths.")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Spectrum(GivenKernel, Kernel):
    r"""A custom shift-invariant kernel, given by its frequencies, for dense maps.

    Parameters
    ----------
    frequencies : array_like of shape (m, dim) or callable
        An array is used row by row, for example learned frequencies or quadrature points. A
        callable ``frequencies(stream, n, dim)`` returns n of them, shape (n, dim), drawn from the
        `Stream`; the first ones must not depend on n.
    value : callable, optional
        The kernel as a function of an array of difference vectors in length scales, shape
        (..., dim), with a result of shape (...). Without it, the kernel of an array is

        .. math:: k(x, y) = \frac1m \sum_j \cos \langle \omega_j, x - y \rangle,

        and that of a callable cannot be evaluated, only drawn from.

    Examples
    --------
    >>> from kernelmill.kernels import Spectrum
    >>> kernel = Spectrum([[1.0, 0.0], [0.0, 2.0]])
    >>> kernel([[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).round(4)
    array([[0.7702, 0.2919]])
    """

    _stored_fields = Fields(given=Array(("float64",), (None, None), tensor=TENSOR))

    given: NDArray[np.float64] | Callable[[Stream, int, int], ArrayLike]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        frequencies: ArrayLike | Callable[[Stream, int, int], ArrayLike],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        check_function(value, "differences")
        given = frequencies if callable(frequencies) else _check_frequencies(frequencies)
        object.__setattr__(self, "given", given)
        object.__setattr__(self, "profile", value)

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Return the rows of the array from `start` on, or draws of the callable.

        See `Kernel.frequencies`.
        """
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        end = check_start(start) + n
        if not callable(self.given):
            self._check_dim(dim)
            if end > len(self.given):
                raise ValueError(
                    f"This Spectrum has {len(self.given)} frequencies, but {end} are needed; use a "
                    "smaller n_components, or pass a longer array."
                )
            return self.given[start:end].copy()
        drawn = _draw(self.given, "frequencies", stream, end, dim)
        if drawn.shape != (end, dim):
            raise ValueError(
                f"frequencies(stream, n, dim) must return an array of shape (n, dim), {(end, dim)},"
                f" got shape {drawn.shape}; return one row for each frequency."
            )
        _check_finite(drawn)
        return drawn[start:].astype(np.float64)

    def _values(self, X: Rows, Y: Rows | None, length_scale: float) -> NDArray[np.float64]:
        if not callable(self.given):
            self._check_dim(X.shape[1])
        if self.profile is not None:
            return self._values_of_differences(X, X if Y is None else Y, length_scale)
        if callable(self.given):
            raise ValueError(
                "value must be given to evaluate a kernel whose frequencies are a function, got "
                "None; use Spectrum(frequencies, value=...) with k as a function of differences."
            )
        total = np.zeros((X.shape[0], (X if Y is None else Y).shape[0]))
        for first in range(0, len(self.given), _BLOCK_FREQUENCIES):
            scaled = self.given[first : first + _BLOCK_FREQUENCIES].T / length_scale
            sines = sincos(X @ scaled)
            others = sines if Y is None else sincos(Y @ scaled)
            for mine, theirs in zip(sines, others, strict=True):
                total += mine @ theirs.T
        total /= len(self.given)
        return total

    def _values_of_differences(self, X: Rows, Y: Rows, length_scale: float) -> NDArray[np.float64]:
        assert self.profile is not None
        result = np.empty((X.shape[0], Y.shape[0]))
        for columns, others in dense_blocks(Y):
            step = max(1, _BLOCK_DIFFERENCES // others.size)
            for rows, block in dense_blocks(X):
                for first in range(0, len(block), step):
                    differences = block[first : first + step, np.newaxis] - others
                    differences /= length_scale
                    values = call_profile(
                        self.profile,
                        differences,
                        "difference vector",
                        shape=differences.shape[:-1],
                        remedy="reduce over the last axis",
                    )
                    begin = rows.start + first
                    result[begin : begin + len(values), columns] = values
        return result

    def _check_dim(self, dim: int) -> None:
        if not callable(self.given) and self.given.shape[1] != dim:
            raise ValueError(
                f"The points must have {self.given.shape[1]} columns, as the frequencies of this "
                f"Spectrum have, got {dim}; make the dimensions of the points and the "
                "frequencies equal."
            )

    def __repr__(self) -> str:
        if callable(self.given):
            given = name_of(self.given)
        else:
            given = "<{} frequencies in {} dimensions>".format(*self.given.shape)
        return f"Spectrum({given}, value={name_of(self.profile)})"


def _check_frequencies(frequencies: ArrayLike) -> NDArray[np.float64]:
    array = as_real(frequencies, "frequencies", "they are real vectors").astype(np.float64)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            "frequencies must be a function or an array of shape (m, dim) with at least one row, "
            f"got shape {array.shape}; a single frequency is frequencies.reshape(1, -1)."
        )
    _check_finite(array)
    array = array + 0.0  # a zero is not a negative zero
    array.flags.writeable = False
    return array


def _check_finite(frequencies: Floats) -> None:
    if not np.isfinite(frequencies).all():
        bad = frequencies[~np.isfinite(frequencies)][0]
        raise ValueError(f"frequencies must be finite, got {bad}; drop such rows.")


def _draw(
    function: Callable[[Stream, int, int], ArrayLike], what: str, stream: Stream, n: int, dim: int
) -> Floats:
    """Return ``function(stream, n, dim)``, after checking that it is real and reproducible.

    A map draws its coefficients whenever it needs them, for example after it is loaded from a file,
    and they must be the same each time. So the first few are drawn twice.
    """
    drawn = as_real(np.asarray(function(stream, n, dim)), f"The {what}", "return reals")
    few = min(n, _REPEATED)
    again = np.asarray(function(stream, few, dim))
    if drawn.shape[:1] == (n,) and not np.array_equal(again, drawn[:few], equal_nan=True):
        raise ValueError(
            f"{what}(stream, n, dim) must be a function of the stream whose first elements do not "
            f"depend on n, but {name_of(function)} returned others when called again; draw with "
            "the methods of the stream, such as stream.normals((n, dim)), not with numpy.random."
        )
    return drawn
