"""Custom shift-invariant kernels, given by their frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_integer, check_start
from kernelmill.formatting import name_of
from kernelmill.kernels.base import Kernel
from kernelmill.kernels.points import dense_blocks
from kernelmill.random import Stream
from kernelmill.runtime.arrays import as_real
from kernelmill.transforms import sincos

# Frequencies, and elements of difference vectors, at a time.
_FREQUENCIES = 1 << 10
_BLOCK = 1 << 20
_REPEATED = 8  # draws


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Spectrum(Kernel):
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

    law: NDArray[np.float64] | Callable[[Stream, int, int], ArrayLike]
    profile: Callable[[NDArray[np.float64]], ArrayLike] | None

    def __init__(
        self,
        frequencies: ArrayLike | Callable[[Stream, int, int], ArrayLike],
        *,
        value: Callable[[NDArray[np.float64]], ArrayLike] | None = None,
    ) -> None:
        if value is not None and not callable(value):
            raise TypeError(f"value must be a function of differences or None, got {value!r}.")
        law = frequencies if callable(frequencies) else _check_frequencies(frequencies)
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "profile", value)

    def frequencies(
        self, stream: Stream, n: int, dim: int, *, start: int = 0
    ) -> NDArray[np.float64]:
        """Return the rows of the array from `start` on, or draws of the callable.

        See `Kernel.frequencies`.
        """
        n, dim = check_integer("n", n, 0), check_integer("dim", dim, 1)
        end = check_start(start) + n
        if not callable(self.law):
            self._check_dim(dim)
            if end > len(self.law):
                raise ValueError(
                    f"This Spectrum has {len(self.law)} frequencies, but {end} are needed; use a "
                    "smaller n_components, or pass a longer array."
                )
            return self.law[start:end].copy()
        drawn = custom_draws(self.law, "frequencies", stream, end, dim)
        if drawn.shape != (end, dim):
            raise ValueError(
                f"frequencies(stream, n, dim) must return an array of shape (n, dim), {(end, dim)},"
                f" got shape {drawn.shape}; return one row for each frequency."
            )
        _check_finite(drawn)
        return drawn[start:].astype(np.float64)

    def _values(self, X: Any, Y: Any, length_scale: float) -> NDArray[np.float64]:
        if not callable(self.law):
            self._check_dim(X.shape[1])
        if self.profile is not None:
            return self._values_of_differences(X, X if Y is None else Y, length_scale)
        if callable(self.law):
            raise ValueError(
                "value must be given to evaluate a kernel whose frequencies are a function, got "
                "None; use Spectrum(frequencies, value=...) with k as a function of differences."
            )
        total = np.zeros((X.shape[0], (X if Y is None else Y).shape[0]))
        for first in range(0, len(self.law), _FREQUENCIES):
            scaled = self.law[first : first + _FREQUENCIES].T / length_scale
            sines = sincos(X @ scaled)
            others = sines if Y is None else sincos(Y @ scaled)
            for mine, theirs in zip(sines, others, strict=True):
                total += mine @ theirs.T
        total /= len(self.law)
        return total

    def _values_of_differences(self, X: Any, Y: Any, length_scale: float) -> NDArray[np.float64]:
        assert self.profile is not None
        result = np.empty((X.shape[0], Y.shape[0]))
        for columns, others in dense_blocks(Y):
            step = max(1, _BLOCK // others.size)
            for rows, block in dense_blocks(X):
                for first in range(0, len(block), step):
                    differences = block[first : first + step, np.newaxis] - others
                    differences /= length_scale
                    values = as_real(
                        np.asarray(self.profile(differences)), "The result of value", "return reals"
                    )
                    if values.shape != differences.shape[:-1]:
                        raise ValueError(
                            "value must return one number for each difference vector, shape "
                            f"{differences.shape[:-1]}, got shape {values.shape}; reduce over the "
                            "last axis."
                        )
                    begin = rows.start + first
                    result[begin : begin + len(values), columns] = values
        return result

    def _check_dim(self, dim: int) -> None:
        if not callable(self.law) and self.law.shape[1] != dim:
            raise ValueError(
                f"The points must have {self.law.shape[1]} columns, as the frequencies of this "
                f"Spectrum have, got {dim}; make the dimensions of the points and the "
                "frequencies equal."
            )

    def __repr__(self) -> str:
        if callable(self.law):
            law = name_of(self.law)
        else:
            law = "<{} frequencies in {} dimensions>".format(*self.law.shape)
        return f"Spectrum({law}, value={name_of(self.profile)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spectrum):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        law = self.law if callable(self.law) else (self.law.shape, self.law.tobytes())
        return (law, self.profile)


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


def _check_finite(frequencies: NDArray[Any]) -> None:
    if not np.isfinite(frequencies).all():
        bad = frequencies[~np.isfinite(frequencies)][0]
        raise ValueError(f"frequencies must be finite, got {bad}; drop such rows.")


def custom_draws(
    law: Callable[[Stream, int, int], ArrayLike], what: str, stream: Stream, n: int, dim: int
) -> NDArray[Any]:
    """``law(stream, n, dim)``, checked to be real and to be a function of its arguments.

    The first few are asked for again: a map draws its coefficients whenever it needs them, after
    loading from a file for example, and they must be the same.
    """
    drawn = as_real(np.asarray(law(stream, n, dim)), f"The {what}", "return reals")
    few = min(n, _REPEATED)
    again = np.asarray(law(stream, few, dim))
    if drawn.shape[:1] == (n,) and not np.array_equal(again, drawn[:few], equal_nan=True):
        raise ValueError(
            f"{what}(stream, n, dim) must be a function of the stream whose first elements do not "
            f"depend on n, but {name_of(law)} returned others when called again; draw with the "
            "methods of the stream, such as stream.normals((n, dim)), not with numpy.random."
        )
    return drawn
