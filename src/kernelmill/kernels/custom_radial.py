"""Custom radial kernels, given by the distribution of the lengths of their frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer
from kernelmill.formatting import name_of
from kernelmill.kernels.base import LONGEST_FREQUENCY, RadialKernel
from kernelmill.kernels.bessel import normalized_bessel_j
from kernelmill.kernels.custom_spectrum import custom_draws
from kernelmill.random import Stream
from kernelmill.runtime.arrays import as_real

# Products of radii and distances at a time.
_BLOCK = 1 << 18


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Radial(RadialKernel):
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

    law: NDArray[np.float64] | Callable[[Stream, int, int], ArrayLike]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        radii: ArrayLike | Callable[[Stream, int, int], ArrayLike],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        if value is not None and not callable(value):
            raise TypeError(f"value must be a function of distances or None, got {value!r}.")
        object.__setattr__(self, "law", radii if callable(radii) else _check_sample(radii))
        object.__setattr__(self, "profile", value)

    def value(self, distance: ArrayLike, dim: int) -> NDArray[np.float64]:
        """Return the kernel at this distance in length scales, in `dim` dimensions."""
        r = np.asarray(distance, np.float64)
        order = check_integer("dim", dim, 1) / 2 - 1
        if self.profile is not None:
            result = as_real(np.asarray(self.profile(r)), "The result of value", "return reals")
            if result.shape != r.shape:
                raise ValueError(
                    f"value must return one number for each distance, shape {r.shape}, got shape "
                    f"{result.shape}; write it with numpy functions of its argument."
                )
            return result.astype(np.float64, copy=False)
        if callable(self.law):
            raise ValueError(
                "value must be given to evaluate a kernel whose radii are a function, got None; "
                "use Radial(radii, value=...) with k as a function of the distance."
            )
        flat = np.minimum(r.reshape(-1), 1e280)
        means = np.empty(flat.shape)
        step = max(1, _BLOCK // self.law.size)
        for first in range(0, flat.size, step):
            products = flat[first : first + step, np.newaxis] * self.law
            means[first : first + step] = normalized_bessel_j(order, products).mean(axis=1)
        return np.reshape(means, r.shape)

    def _lengths(self, stream: Stream, n: int, dim: int, start: int) -> NDArray[np.float64]:
        if not callable(self.law):
            return np.asarray(self.law[stream.integers(n, self.law.size, start=start)])
        drawn = custom_draws(self.law, "radii", stream, start + n, dim)
        if drawn.shape != (start + n,):
            raise ValueError(
                f"radii(stream, n, dim) must return an array of shape (n,), {(start + n,)}, got "
                f"shape {drawn.shape}; return one length for each frequency."
            )
        _check_lengths(drawn)
        return drawn[start:].astype(np.float64)

    def __repr__(self) -> str:
        law = name_of(self.law) if callable(self.law) else f"<{self.law.size} radii>"
        return f"Radial({law}, value={name_of(self.profile)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Radial):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return (self.law if callable(self.law) else self.law.tobytes(), self.profile)


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


def _check_lengths(radii: NDArray[Any]) -> None:
    if not (np.isfinite(radii).all() and (radii >= 0).all()):
        bad = radii[~(np.isfinite(radii) & (radii >= 0))][0]
        raise ValueError(f"radii must be finite and not negative, got {bad}; they are lengths.")
