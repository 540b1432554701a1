"""Streams: draws from many distributions, at any position, as functions of a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import (
    Size,
    check_dtype,
    check_integer,
    check_positive,
    check_start,
    shape_from_size,
)
from kernelmill.random.docstrings import describes_parameters
from kernelmill.random.hashing import HashFunction, SignHash
from kernelmill.random.seeding import (
    KEY_BITS,
    RandomState,
    key_from_random_state,
    key_from_seed,
    key_of_substream,
)
from kernelmill.runtime.threads import resolve_threads

Draws: TypeAlias = NDArray[Any]
"""An array of the requested dtype."""

REALS = ("float64", "float32")
SIGNS = (*REALS, "int8")
INTEGERS = ("int64", "int32")
LAST_INDEX = 2**64 - 1
MAX_INDEPENDENCE = 1000


@dataclass(frozen=True, repr=False)
class Stream:
    """An immutable source of random numbers: a 128-bit key of the Philox4x64-10 generator.

    A draw is a pure function of the key, the distribution and the position. Therefore

    - drawing has no side effects: the same call returns the same numbers, and another position
      (`start`), another distribution or another substream gives independent numbers;
    - element i of ``stream.normals(n, start=s)`` is element s + i of ``stream.normals(s + n)``, for
      any n, any shape and any number of threads;
    - the bits are the same on every machine.

    Draws of one distribution with different parameters (``chis(n, 3)`` and ``chis(n, 4)``) from
    one stream at one position share their randomness. Use two substreams if they must be
    independent.

    Parameters
    ----------
    key : int
        In [0, 2**128). `from_seed` and `from_random_state` derive it from user input.

    Examples
    --------
    >>> from kernelmill.random import Stream
    >>> stream = Stream.from_seed(0)
    >>> blocks = [stream.substream("block", b) for b in range(2)]
    >>> blocks[1].signs(4)
    array([ 1.,  1., -1.,  1.])
    >>> bool((stream.normals(3, start=7) == stream.normals(10)[7:]).all())
    True

    References
    ----------
    J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2,
    3", Proc. Supercomputing (2011).
    """

    key: int

    def __post_init__(self) -> None:
        key = check_integer("key", self.key, 0, 2**KEY_BITS - 1)
        object.__setattr__(self, "key", key)

    def __repr__(self) -> str:
        return f"Stream(key={self.key:#034x})"

    @classmethod
    def from_seed(cls, seed: int) -> Stream:
        """Return the stream of a seed, a non-negative integer of any size.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0)
        Stream(key=0x18a38b629311f40cb659aa78faeb06fb)
        """
        return cls(key_from_seed(seed))

    @classmethod
    def from_random_state(cls, random_state: RandomState | Stream) -> Stream:
        """Return the stream of the `random_state` of a scikit-learn estimator.

        An integer is a seed; a RandomState or Generator supplies 128 bits and advances; None means
        NumPy's global RandomState, as in scikit-learn; a Stream is returned unchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.random import Stream
        >>> Stream.from_random_state(0) == Stream.from_seed(0)
        True
        >>> rng = np.random.RandomState(0)
        >>> Stream.from_random_state(rng) == Stream.from_random_state(rng)
        False
        """
        if isinstance(random_state, Stream):
            return random_state
        return cls(key_from_random_state(random_state))

    def substream(self, *path: str | int) -> Stream:
        """Return an independent stream; its name is a path of strings and non-negative integers.

        ``stream.substream(a, b)`` is ``stream.substream(a).substream(b)``. Different paths have
        different streams: ("ab", "c") is not ("a", "bc"), and 1 is not "1".

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> stream = Stream.from_seed(0)
        >>> stream.substream("signs", 7) == stream.substream("signs").substream(7)
        True
        >>> stream.substream(1) == stream.substream("1")
        False
        """
        if not path:
            raise TypeError("substream() needs a name: one or more strings or integers")
        key = self.key
        for name in path:
            key = key_of_substream(key, name)
        return Stream(key)

    def _native_key(self) -> tuple[int, int]:
        return self.key & (2**64 - 1), self.key >> 64

    def _draw(
        self,
        fill: Callable[..., None],
        size: Size,
        start: int,
        dtype: DTypeLike,
        n_threads: int | None,
        *parameters: float,
        dtypes: tuple[str, ...] = REALS,
    ) -> Draws:
        start, threads = check_start(start), resolve_threads(n_threads)
        out = np.empty(shape_from_size(size), check_dtype(dtype, dtypes))
        fill(self._native_key(), start, *parameters, out, threads)
        return out

    @describes_parameters(dtype="float64, float32 or int8.")
    def signs(
        self,
        size: Size,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw +1 and -1, each with probability 1/2; `dtype` may also be int8.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).signs((2, 3))
        array([[-1.,  1., -1.],
               [-1.,  1.,  1.]])
        """
        return self._draw(_native.random_signs, size, start, dtype, n_threads, dtypes=SIGNS)

    @describes_parameters(dtype="float64, or float32: the same values, rounded, but below 1.")
    def uniforms(
        self,
        size: Size,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw from the uniform distribution on the open interval (0, 1).

        A value is (k + 1/2) / 2**52 with k uniform in [0, 2**52). Neither end occurs, not even in
        float32: values that would round to 1 become 1 - 2**-24.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).uniforms(3)
        array([0.87329559, 0.38834347, 0.51697928])
        """
        return self._draw(_native.random_uniforms, size, start, dtype, n_threads)

    @describes_parameters()
    def normals(
        self,
        size: Size,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw from the standard normal distribution.

        Each value is the quantile (see `normal_quantile`) of one 64-bit word. Values reach 9.1
        standard deviations on both sides.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).normals(3)
        array([ 1.2715513 , -0.88577357, -1.68226258])
        """
        return self._draw(_native.random_normals, size, start, dtype, n_threads)

    @describes_parameters()
    def gammas(
        self,
        size: Size,
        shape: float,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw gamma variables of the given shape and scale 1, by Marsaglia & Tsang (2000).

        The cost of a draw does not depend on the shape. Values below the smallest double become
        0, almost half of them for a shape of 0.001.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).gammas(3, 2.5)
        array([2.93766252, 3.52957834, 1.77853911])
        """
        shape = check_positive("shape", shape)
        return self._draw(_native.random_gammas, size, start, dtype, n_threads, shape)

    @describes_parameters()
    def chis(
        self,
        size: Size,
        df: float,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw chi variables: lengths of normal vectors of `df` dimensions, for any real df > 0.

        The cost of a draw does not depend on `df`.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).chis(3, 784)
        array([27.13518823, 27.81932247, 28.16216569])
        """
        df = check_positive("df", df)
        return self._draw(_native.random_chis, size, start, dtype, n_threads, df)

    @describes_parameters()
    def cauchys(
        self,
        size: Size,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw standard Cauchy variables: tan(pi (u - 1/2)) for u uniform in (0, 1).

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).cauchys(3)
        array([ 0.10354598,  0.26669332, -4.54674724])
        """
        return self._draw(_native.random_cauchys, size, start, dtype, n_threads)

    @describes_parameters()
    def students(
        self,
        size: Size,
        df: float,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw from Student's t distribution with `df` degrees of freedom, any real df > 0.

        Values above the largest float are infinite, which hardly ever happens for df of at least
        0.06 in float64 and about 0.2 in float32.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).students(3, 5)
        array([-1.75364473,  0.78365513,  0.61899817])
        """
        df = check_positive("df", df)
        return self._draw(_native.random_students, size, start, dtype, n_threads, df)

    @describes_parameters(
        size="The number of points, or a shape of points; `dim` is appended to it.",
        start="The position of the first point, from 0 to 2**63.",
    )
    def sphere(
        self,
        size: Size,
        dim: int,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw vectors uniformly on the unit sphere of R**dim, as an array of shape (size, dim).

        `start` counts vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.random import Stream
        >>> points = Stream.from_seed(0).sphere(4, 3)
        >>> np.linalg.norm(points, axis=1).round(12)
        array([1., 1., 1., 1.])
        """
        dim = check_integer("dim", dim, 1)
        shape = (*shape_from_size(size), dim)
        return self._draw(_native.random_sphere, shape, start, dtype, n_threads, dim)

    @describes_parameters(
        size="The number of points, or a shape of points; `dim` is appended to it.",
        start="The position of the first point, from 0 to 2**63.",
    )
    def ball(
        self,
        size: Size,
        dim: int,
        *,
        start: int = 0,
        dtype: DTypeLike = np.float64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw vectors uniformly in the unit ball of R**dim, as an array of shape (size, dim).

        The radius is u**(1 / dim) for u uniform in (0, 1). `start` counts vectors.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.random import Stream
        >>> points = Stream.from_seed(0).ball((2, 2), 3)
        >>> points.shape
        (2, 2, 3)
        >>> bool((np.linalg.norm(points, axis=-1) < 1).all())
        True
        """
        dim = check_integer("dim", dim, 1)
        shape = (*shape_from_size(size), dim)
        return self._draw(_native.random_ball, shape, start, dtype, n_threads, dim)

    @describes_parameters(dtype="int64 or int32.")
    def integers(
        self,
        size: Size,
        high: int,
        *,
        start: int = 0,
        dtype: DTypeLike = np.int64,
        n_threads: int | None = None,
    ) -> Draws:
        """Draw integers uniformly from [0, high), without bias; `dtype` is int64 or int32.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).integers(5, 10)
        array([4, 3, 1, 3, 1])
        """
        kind = check_dtype(dtype, INTEGERS)
        high = check_integer("high", high, 1, 2 ** (8 * kind.itemsize - 1))
        fill = _native.random_integers
        return self._draw(fill, size, start, kind, n_threads, high, dtypes=INTEGERS)

    @describes_parameters(dtype="int64 or int32.")
    def permutation(self, n: int, *, index: int = 0, dtype: DTypeLike = np.int64) -> Draws:
        """Return a uniform permutation of 0, ..., n - 1; `dtype` is int64 or int32.

        Each `index` from 0 to 2**64 - 1 gives an independent one.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> Stream.from_seed(0).permutation(5)
        array([3, 4, 1, 0, 2])
        >>> Stream.from_seed(0).permutation(5, index=1)
        array([3, 0, 4, 2, 1])
        """
        kind = check_dtype(dtype, INTEGERS)
        n = check_integer("n", n, 0, 2 ** (8 * kind.itemsize - 1))
        index = check_integer("index", index, 0, LAST_INDEX)
        out = np.empty(n, kind)
        _native.random_permutation(self._native_key(), index, out)
        return out

    @describes_parameters()
    def orthogonal(
        self, dim: int, *, index: int = 0, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return a uniform (Haar-distributed) orthogonal matrix of shape (dim, dim), as float64.

        Each `index` from 0 to 2**64 - 1 gives an independent one. Unlike the QR decomposition of a
        normal matrix, whose bits depend on LAPACK, it is the same on every machine. It takes
        4/3 dim**3 operations (Stewart, 1980), and half the memory of the result temporarily.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.random import Stream
        >>> q = Stream.from_seed(0).orthogonal(3)
        >>> bool(np.allclose(q @ q.T, np.eye(3)))
        True
        """
        dim = check_integer("dim", dim, 1)
        index = check_integer("index", index, 0, LAST_INDEX)
        threads = resolve_threads(n_threads)
        out = np.empty((dim, dim))
        _native.random_orthogonal(self._native_key(), index, out, threads)
        return out

    @describes_parameters()
    def hash_function(
        self, n_buckets: int, *, independence: int = 2, index: int = 0
    ) -> HashFunction:
        """Return an `independence`-wise independent hash function to 0, ..., n_buckets - 1.

        Each `index` from 0 to 2**64 - 1 gives an independent one.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> h = Stream.from_seed(0).hash_function(100)
        >>> h([0, 1, 2, 3])
        array([70, 49, 28,  7])
        """
        return HashFunction(self._coefficients(0, independence, index), n_buckets)

    @describes_parameters()
    def sign_hash(self, *, independence: int = 2, index: int = 0) -> SignHash:
        """Return an `independence`-wise independent hash function to +1 and -1.

        Each `index` from 0 to 2**64 - 1 gives an independent one, independent also of
        `hash_function`.

        Examples
        --------
        >>> from kernelmill.random import Stream
        >>> s = Stream.from_seed(0).sign_hash(independence=4)
        >>> s([0, 1, 2, 3])
        array([1, 1, 1, 1])
        """
        return SignHash(self._coefficients(1, independence, index))

    def _coefficients(self, use: int, independence: int, index: int) -> tuple[int, ...]:
        count = check_integer("independence", independence, 2, MAX_INDEPENDENCE)
        index = check_integer("index", index, 0, LAST_INDEX)
        return tuple(_native.hash_coefficients(self._native_key(), use, index, count))
