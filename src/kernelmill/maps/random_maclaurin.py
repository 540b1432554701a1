"""Random Maclaurin features: products of projections to vectors of random signs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.kinds import Choice, Flag, Integer
from kernelmill.kernels import DotProductKernel, resolve_dot_product
from kernelmill.kernels.dot_product import MAX_TERMS
from kernelmill.kernels.names import DotProductArgument, KernelKind
from kernelmill.maps.base import FeatureMap, fitted, parameter, with_parameters
from kernelmill.maps.finite import find_not_finite
from kernelmill.maps.scales import POSITIVE, RADIUS, resolve_radius
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    native_rows,
    round_coefficients,
)

__all__ = ["MaclaurinSketch", "RandomMaclaurin", "degree_terms", "spread_degrees"]

_DISTRIBUTIONS = ("proportional", "geometric")

_GEOMETRIC_DEPTH = 64
"""The number of degrees drawn with powers of two: the others have a probability below 1e-19."""

_BLOCK_ELEMENTS = 1 << 19
"""Elements of a matrix of signs that are drawn at a time."""

_OUTPUT_BYTES = 1 << 22
"""The output of as many rows is multiplied by all factors before the next rows."""


def degree_terms(
    kernel: DotProductKernel, distribution: str, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the terms :math:`a_n s^n` of a series that may be drawn, and their probabilities.

    Parameters
    ----------
    kernel : DotProductKernel
    distribution : {"proportional", "geometric"}
        The probability of degree n is proportional to the term itself, or to :math:`2^{-n}` where
        it is positive.
    scale : float
        s.

    Returns
    -------
    terms, shares : ndarray of one size
        Shares are proportional to probabilities, and 0 where terms are.

    Examples
    --------
    >>> from kernelmill.kernels import Polynomial
    >>> from kernelmill.maps.random_maclaurin import degree_terms
    >>> degree_terms(Polynomial(2, coef0=1.0), "geometric", 3.0)
    (array([1., 6., 9.]), array([1.  , 0.5 , 0.25]))
    """
    if distribution == "proportional":
        terms = kernel.terms(scale)
        shares = terms
    else:
        terms = _terms_from_the_first(kernel, scale)
        first = int(np.flatnonzero(terms)[0]) if terms.any() else 0
        powers = np.ldexp(1.0, np.minimum(0, first - np.arange(terms.size)))
        shares = np.where(terms > 0, powers, 0.0)
    if not terms.any():
        raise ValueError(
            f"The terms of {kernel!r} vanish at inner products of {scale:.3g}; scale the data, or "
            "use a larger radius."
        )
    return terms, shares


def _terms_from_the_first(kernel: DotProductKernel, scale: float) -> NDArray[np.float64]:
    """Return all terms, or those up to 64 degrees after the first that is positive."""
    if kernel.degree is not None:
        return kernel.coefficients(kernel.degree + 1, scale=scale)
    count = 2 * _GEOMETRIC_DEPTH
    while True:
        terms = kernel.coefficients(count, scale=scale)
        positive = np.flatnonzero(terms)
        if positive.size and positive[0] + _GEOMETRIC_DEPTH <= count:
            return terms[: positive[0] + _GEOMETRIC_DEPTH]
        if count >= MAX_TERMS:
            return terms
        count *= 2


def spread_degrees(stream: Stream, shares: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return degrees of `count` features, the highest first, by systematic sampling.

    For a uniform variable U, the points (j + U) / count fall into intervals as long as the
    probabilities. So each degree gets the expected number of features, rounded up or down.
    Probabilities are added from the highest degree down, so that rare high degrees keep their
    digits, down to 1e-16 of a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.random import Stream
    >>> from kernelmill.maps.random_maclaurin import spread_degrees
    >>> spread_degrees(Stream.from_seed(0), np.array([0.0, 2.0, 1.0, 1.0]), 8)
    array([3, 3, 2, 2, 1, 1, 1, 1])
    """
    above = np.cumsum(shares[::-1])  # above[i]: the sum over the i + 1 highest degrees
    places = (np.arange(count) + stream.uniforms(1)[0]) / count * above[-1]
    found = np.minimum(np.searchsorted(above, places, side="right"), shares.size - 1)
    degrees = shares.size - 1 - found
    # Rounding may place a feature after the lowest degree with a positive share.
    return np.asarray(np.maximum(degrees, int(np.flatnonzero(shares)[0])), np.int64)


def feature_weights(
    terms: NDArray[np.float64], shares: NDArray[np.float64], degrees: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the root of term / (number of features * probability), for each feature."""
    total = math.fsum(shares)
    return np.asarray(np.sqrt(terms[degrees] / shares[degrees] * (total / degrees.size)))


@dataclass(eq=False)
class MaclaurinSketch:
    r"""Features :math:`w_j \prod_{l \le n_j} \langle \omega_{jl}, x \rangle / r`.

    All entries of the vectors :math:`\omega_{jl}` are independent random signs.

    Parameters
    ----------
    dim : int
        The number of columns of the data.
    length : int
        The number of features.
    terms, shares : ndarray of one size
        The terms of the series at the square of the radius and, up to a factor, the probabilities
        of their degrees; see :func:`degree_terms`. If all shares are
        0, so are the features.
    radius : float
        r.
    stream : Stream
        A vector is a function of it, of j and of l.
    stored : bool
        Whether the vectors are stored. Otherwise they are drawn whenever they are needed, some at a
        time.
    """

    dim: int
    length: int
    terms: NDArray[np.float64]
    shares: NDArray[np.float64]
    radius: float
    stream: Stream
    stored: bool
    degrees: NDArray[np.int64] = field(init=False, repr=False)
    weights: NDArray[np.float64] = field(init=False, repr=False)
    _packed: PerDtype[list[Floats]] = field(default_factory=PerDtype, init=False, repr=False)

    def __post_init__(self) -> None:
        """Draw the degrees :math:`n_j`, in descending order, and the weights :math:`w_j`."""
        if self.shares.any():
            stream = self.stream.substream("degrees")
            self.degrees = spread_degrees(stream, self.shares, self.length)
            self.weights = feature_weights(self.terms, self.shares, self.degrees)
        else:
            self.degrees, self.weights = np.zeros(self.length, np.int64), np.zeros(self.length)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("degrees", "weights")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def factors(self, level: int, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Return factor number `level` of features start, ..., stop - 1, divided by r.

        Factors of level 0 are multiplied by the weights.
        """
        stop = self._columns_of(level) if stop is None else stop
        signs = self.stream.substream("factor", level).signs(
            (stop - start, self.dim), start=start * self.dim
        )
        scales = self.weights[start:stop] / self.radius if level == 0 else 1 / self.radius
        return np.asarray(signs * np.reshape(scales, (-1, 1)), np.float64)

    def _columns_of(self, level: int) -> int:
        """Return the number of features with more than `level` factors, which come first."""
        return int(np.count_nonzero(self.degrees > level))

    def _parts(self) -> Iterator[tuple[int, int, int]]:
        """Yield level, first and last column of what is drawn and multiplied at a time."""
        # Whole panels of native code, and whole tiles if memory suffices.
        rows = max(1, _BLOCK_ELEMENTS // self.dim)
        tile = _native.tile_columns
        unit = tile if rows >= tile else _native.panel_columns
        step = -(-rows // unit) * unit
        for level in range(int(self.degrees.max(initial=0))):
            columns = self._columns_of(level)
            for start in range(0, columns, step):
                yield level, start, min(start + step, columns)

    def _pack(self, part: tuple[int, int, int], dtype: np.dtype[np.floating]) -> Floats:
        _, start, stop = part
        size = _native.dense_packed_size(stop - start, self.dim, dtype.itemsize)
        packed = np.empty(size, dtype)
        _native.dense_pack(round_coefficients(self.factors(*part), dtype), packed)
        packed.flags.writeable = False
        return packed

    def _pack_all(self, dtype: np.dtype[np.floating]) -> list[Floats]:
        return [self._pack(part, dtype) for part in self._parts()]

    def prepare(self, dtype: DTypeLike) -> None:
        """Draw the vectors, if they are stored, for data of this dtype."""
        if self.stored:
            self._packed.of(dtype, self._pack_all)

    def features(self, X: Rows, out: Floats, n_threads: int = 0) -> bool:
        """Write the features of the rows of X, which has the dtype of `out`.

        Return whether they are finite.
        """
        constant = self._columns_of(0)
        out[:, constant:] = self.weights[constant:]
        is_finite = bool(np.isfinite(out[:1, constant:]).all())
        if not self.stored:
            for part in self._parts():
                packed = self._pack(part, out.dtype)
                for rows, to in blocks_of_rows(X, out):
                    is_finite &= self._multiply(part, packed, rows, to, n_threads)
            return is_finite
        every = self._packed.of(out.dtype, self._pack_all)
        most_rows = max(_native.tile_rows, _OUTPUT_BYTES // max(1, out.shape[1] * out.itemsize))
        for rows, to in blocks_of_rows(X, out, max_rows=most_rows):
            for part, packed in zip(self._parts(), every, strict=True):
                is_finite &= self._multiply(part, packed, rows, to, n_threads)
        return is_finite

    def _multiply(
        self, part: tuple[int, int, int], packed: Floats, rows: Rows, out: Floats, n_threads: int
    ) -> bool:
        level, start, stop = part
        kind = _native.feature_kinds["times" if level else "projection"]
        return _native.dense(
            native_rows(rows), packed, stop - start, start, out, kind, 1.0, None, n_threads
        )


@with_parameters
class RandomMaclaurin(FeatureMap):
    r"""Random features of any dot-product kernel :math:`\sum_n a_n \langle x, y \rangle^n`.

    A feature of degree n is a product of n projections to vectors of independent random signs,

    .. math:: \sqrt{\frac{a_n}{D \pi_n}} \prod_{l=1}^n \langle \omega_l, x \rangle,

    where :math:`\pi_n` is the probability of the degree (Kar & Karnick, 2012). Inner products of
    the features estimate the kernel without bias for any probabilities.

    Parameters
    ----------
    kernel : str, DotProductKernel, array_like or callable, default="polynomial"
        "polynomial" (or "poly": degree 2, homogeneous), "exponential", an object of
        :mod:`kernelmill.kernels` such as ``Polynomial(3, coef0=1.0)``, or a custom kernel: an array
        of the coefficients :math:`a_n`, none negative, or a function of the degree n (not the
        kernel function).
    n_components : int, default=100
        D, the number of output columns, exactly.
    h01 : bool, default=False
        Whether the constant and the linear term are exact: the first columns are then
        :math:`\sqrt{a_0}` and :math:`\sqrt{a_1} x`, those of them that are not 0, and the others
        have degrees from 2 on ("H0/1" of Kar & Karnick).
    degrees : {"proportional", "geometric"}, default="proportional"
        :math:`\pi_n` is proportional to :math:`a_n R^{2n}`, which for points of norm R makes the
        features of all degrees equally large, or to :math:`2^{-n}` where :math:`a_n > 0`. (Kar
        & Karnick draw from all degrees, which gives columns of zeros where :math:`a_n = 0`.)
    radius : float or "scale", default="scale"
        R; "scale" is the root mean square norm of the rows given to `fit`, to three digits.
        "geometric" does not need it.
    store_matrix : bool, default=True
        With False, the random signs are drawn again in every call of `transform`, some at a time,
        instead of taking ``n_features`` numbers of memory for each factor of each column. The
        results are the same.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed. An integer gives the same coefficients on every machine and in every release.
    n_threads : int, default=None
        By default :func:`kernelmill.get_num_threads`. Results do not depend on it.

    Attributes
    ----------
    kernel_ : DotProductKernel
    radius_ : float
        R; 1 for "geometric".
    degrees_ : ndarray of int64 of shape (n_components,)
        The degree of each column; -1 for columns of zeros, which are left over where all terms of
        the kernel are exact.
    sketch_ : MaclaurinSketch
        Of the random columns, which are the last ones.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    TensorSketch : Polynomial kernels, faster; for homogeneous ones also with less error.

    Notes
    -----
    Degrees are spread over the columns by systematic sampling: degree n has :math:`D \pi_n` columns
    up to rounding, not a random number of them. If that is at least 1 for degree 0, the constant
    term is exact in a single column and the others are for degrees from 1 on: more columns of a
    constant would add nothing. Degrees whose expected number of columns is below 1e-16 never occur:
    of an infinite series, "proportional" omits terms below 1e-16 of the sum at norms up to R, and
    "geometric" omits the terms more than about 60 degrees after the first, which matter for series
    that converge slowly.

    The product for degree n has the second moment

    .. math::

        \left( \lVert x \rVert^2 \lVert y \rVert^2 + 2 \langle x, y \rangle^2
        - 2 \sum_i x_i^2 y_i^2 \right)^n,

    which grows up to :math:`3^n` times faster than the kernel: high degrees need many columns.

    References
    ----------
    P. Kar, H. Karnick, "Random feature maps for dot product kernels", Proc. AISTATS (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import RandomMaclaurin
    >>> from kernelmill.kernels import Polynomial
    >>> X = np.random.default_rng(0).uniform(size=(100, 5))
    >>> features = RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape
    (100, 5000)
    >>> bool(np.allclose(Z @ Z.T, features.exact_kernel(X), rtol=0.2))
    True
    """

    name = "random_maclaurin"
    _is_dense = True  # for each degree
    _construction = "products of random signs"

    kernel: DotProductArgument = parameter(KernelKind(), default="polynomial")
    _: KW_ONLY
    n_components: int = parameter(Integer(1, 1 << 24), default=100)  # degrees are drawn at once
    h01: bool = parameter(Flag(), default=False)
    degrees: str = parameter(Choice(*_DISTRIBUTIONS), default="proportional")
    radius: float | str = parameter(RADIUS, default="scale")
    store_matrix: bool = parameter(Flag(), default=True)

    radius_: float = fitted(POSITIVE)
    kernel_: DotProductKernel = fitted()
    sketch_: MaclaurinSketch = fitted()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        resolve_dot_product(self.kernel)

    def _learn(self, X: Rows) -> None:
        radius = resolve_radius(self.radius, X)
        self.radius_ = radius if self.degrees == "proportional" else 1.0

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = resolve_dot_product(self.kernel)
        terms, shares = self._terms()
        shares = self._set_exact_columns(terms, shares, dim, n_components)
        self.sketch_ = MaclaurinSketch(
            dim=dim,
            length=n_components - self._n_exact,
            terms=terms,
            shares=shares,
            radius=self.radius_,
            stream=self.stream_.substream("random maclaurin"),
            stored=bool(self.store_matrix),
        )
        self._n_features_out = n_components

    def _prepare(self, X: Rows) -> None:
        self.sketch_.prepare(X.dtype)

    @property
    def degrees_(self) -> NDArray[np.int64]:
        """The degree of each column; -1 for columns of zeros."""
        sketch = self.sketch_
        exact = np.ones(self._n_exact, np.int64)
        exact[: self._n_constant] = 0
        return np.concatenate(
            [exact, sketch.degrees if sketch.shares.any() else sketch.degrees - 1]
        )

    def _terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Terms at the square of the radius, at least those of degrees 0 and 1, and shares."""
        square = self.radius_ * self.radius_
        if not (square > 0 and np.isfinite(square)):
            raise ArgumentError(
                f"must have a square that is finite in float64, got {self.radius_:.3g}",
                "scale the data",
                Remedy("set another radius", radius=...),
                parameter="radius",
            )
        terms, shares = degree_terms(self.kernel_, self.degrees, square)
        missing = (0, max(0, 2 - terms.size))
        return np.pad(terms, missing), np.pad(shares, missing)

    def _set_exact_columns(
        self,
        terms: NDArray[np.float64],
        shares: NDArray[np.float64],
        dim: int,
        n_components: int,
    ) -> NDArray[np.float64]:
        """Decide which terms are exact; the shares of the others."""
        exact = np.zeros(terms.size, bool)
        exact[:2] = self.h01
        exact[0] |= n_components * shares[0] >= shares.sum()
        exact &= terms > 0
        self._n_constant = int(exact[0])
        self._n_exact = self._n_constant + dim * int(exact[1])
        self._root_constant = float(np.sqrt(terms[0]))
        self._root_linear = float(np.sqrt(terms[1])) / self.radius_
        rest = np.where(exact, 0.0, shares)
        needed = self._n_exact + int(rest.any())
        if n_components < needed:
            raise ArgumentError(
                f"must be at least {needed} with h01=True, for the exact terms of {dim} columns of "
                f"data and one random feature, got {n_components}",
                Remedy("use more components", n_components=needed),
                Remedy("estimate all terms at random", h01=False),
                parameter="n_components",
            )
        return rest

    def _write_features(self, X: Rows, out: Floats) -> bool:
        is_finite = True
        out[:, : self._n_constant] = self._root_constant
        if self._n_exact > self._n_constant:
            linear = out[:, self._n_constant : self._n_exact]
            root = X.dtype.type(self._root_linear)
            if isinstance(X, np.ndarray):
                np.multiply(X, root, out=linear)
            else:
                rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
                linear[:] = 0
                linear[rows, X.indices] = X.data * root
            is_finite = not find_not_finite(linear).size
        return self.sketch_.features(X, out[:, self._n_exact :], self._threads) and is_finite

    def _exact_kernel(self, X: Rows, Y: Rows | None) -> NDArray[np.float64]:
        return self.kernel_(X, Y)
