"""k-wise independent hash functions: random polynomials over the field of the prime 2**61 - 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import check_dtype, check_integer
from kernelmill.runtime.threads import resolve_threads

__all__ = ["PRIME", "HashFunction", "SignHash"]

PRIME = _native.hash_prime  # 2**61 - 1


def _check_coefficients(coefficients: Iterable[int]) -> tuple[int, ...]:
    try:
        given = tuple(coefficients)
    except TypeError:
        raise TypeError(
            f"coefficients must be a sequence of integers, got {coefficients!r}"
        ) from None
    if len(given) == 0:
        raise ValueError("coefficients must not be empty; pass k of them for k-wise independence")
    return tuple(check_integer(f"coefficients[{i}]", c, 0, PRIME - 1) for i, c in enumerate(given))


def _check_indices(indices: ArrayLike) -> NDArray[np.integer]:
    """Return the indices as contiguous int64 or uint64."""
    x = np.asarray(indices)
    if x.size == 0 and not isinstance(indices, np.ndarray):
        x = x.astype(np.int64)  # NumPy makes [] float64.
    if x.dtype.kind not in "iu":
        raise TypeError(
            f"indices must be integers, got dtype {x.dtype}; convert them with .astype(np.int64)"
        )
    wide = np.uint64 if x.dtype.kind == "u" else np.int64
    return np.require(x, wide, ["C", "A"]).reshape(x.shape)


def _check_range(indices: NDArray[np.integer], outside: int) -> None:
    """Raise an error if native code found an index outside of the range, at this position."""
    if outside >= 0:
        raise ValueError(
            f"indices must lie in [0, 2**61 - 1); got {int(indices.reshape(-1)[outside])}"
        )


@dataclass(frozen=True)
class HashFunction:
    """A hash function from the integers [0, 2**61 - 1) to the buckets 0, ..., n_buckets - 1.

    h(x) = floor(n_buckets v(x) / 2**61) with the polynomial v(x) = c[0] + c[1] x + ... modulo
    p = 2**61 - 1 (Carter & Wegman, 1979; Wegman & Carter, 1981). If the k coefficients are uniform
    in [0, p), then the values v of any k distinct indices are exactly independent and uniform in
    [0, p), and their buckets are independent. The probability of a bucket differs from 1/n_buckets
    by less than 2/p, and the distribution from the uniform one by at most n_buckets/p in total
    variation. `Stream.hash_function` draws one.

    Parameters
    ----------
    coefficients : sequence of int
        c[0], ..., c[k-1], each in [0, 2**61 - 1).
    n_buckets : int
        Between 1 and 2**61 - 1.

    Examples
    --------
    >>> from kernelmill.random import HashFunction
    >>> h = HashFunction(coefficients=(5, 2**60), n_buckets=10)
    >>> h([0, 1, 2, 3])
    array([0, 5, 0, 5])
    >>> h.independence
    2
    """

    coefficients: tuple[int, ...]
    n_buckets: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", _check_coefficients(self.coefficients))
        n_buckets = check_integer("n_buckets", self.n_buckets, 1, PRIME)
        object.__setattr__(self, "n_buckets", n_buckets)

    @property
    def independence(self) -> int:
        """k: the buckets of any k distinct indices are independent."""
        return len(self.coefficients)

    def __call__(self, indices: ArrayLike, *, n_threads: int | None = None) -> NDArray[np.int64]:
        """Return the bucket of each index, as int64 in the shape of `indices`."""
        x = _check_indices(indices)
        out = np.empty(x.shape, np.int64)
        outside = _native.hash_buckets(
            self.coefficients, self.n_buckets, x, out, resolve_threads(n_threads)
        )
        _check_range(x, outside)
        return out


@dataclass(frozen=True)
class SignHash:
    """A hash function from the integers [0, 2**61 - 1) to the signs +1 and -1.

    s(x) = +1 where the polynomial v(x) = c[0] + c[1] x + ... modulo p = 2**61 - 1 is below 2**60,
    else -1. If the k coefficients are uniform in [0, p), then the signs of any k distinct indices
    are independent, each with expectation 1/p. `Stream.sign_hash` draws one.

    Parameters
    ----------
    coefficients : sequence of int
        c[0], ..., c[k-1], each in [0, 2**61 - 1).

    Examples
    --------
    >>> from kernelmill.random import SignHash
    >>> s = SignHash(coefficients=(5, 2**60))
    >>> s([0, 1, 2, 3])
    array([ 1, -1,  1, -1])
    """

    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", _check_coefficients(self.coefficients))

    @property
    def independence(self) -> int:
        """k: the signs of any k distinct indices are independent."""
        return len(self.coefficients)

    def __call__(
        self, indices: ArrayLike, *, dtype: DTypeLike = np.int64, n_threads: int | None = None
    ) -> NDArray[np.number]:
        """Return the sign of each index, in the shape of `indices`.

        `dtype` is int64, int8, float64 or float32.
        """
        x = _check_indices(indices)
        out = np.empty(x.shape, check_dtype(dtype, ("int64", "int8", "float64", "float32")))
        outside = _native.hash_signs(self.coefficients, x, out, resolve_threads(n_threads))
        _check_range(x, outside)
        return out
