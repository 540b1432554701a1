"""Fastfood projections: z = V x in O(log d) operations per frequency, V never stored."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels import RadialKernel
from kernelmill.projections.base import FeatureLayout, Projection, Scoring
from kernelmill.random import Stream, normal_quantile
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    divide_by_length_scale,
    native_rows,
    round_coefficients,
    row_products,
    split_length_scale,
)
from kernelmill.transforms import fwht

__all__ = [
    "STRATA",
    "FastfoodFactors",
    "GivenFactors",
    "GivenProjection",
    "HadamardProjection",
    "block_lengths",
    "draw_normals",
    "draw_permutations",
    "padded_size",
]

STRATA = 4
"""The number of blocks that share signs and a permutation."""

_SMALLEST_BLOCK = 64
"""In smaller blocks, the rows are too similar: docs/decisions/008."""

_FEW_DIMENSIONS = 64
_SMALLEST_SORF_DIMENSION = 16


def padded_size(dim: int) -> int:
    """Return the length that inputs are padded to with zeros: a power of two, and not too small."""
    return max(_SMALLEST_BLOCK, 1 << (dim - 1).bit_length())


@dataclass(frozen=True, eq=False)
class FastfoodFactors:
    r"""The factors of :math:`V = S H G \Pi H B`, in blocks of p rows.

    Blocks come in groups of `blocks_per_group` that share the signs and the permutation. The
    blocks of the first group take turns in the order of the frequencies, of `first_turn` rows each,
    so that even a few frequencies come from all of them; other blocks follow one another.

    Attributes
    ----------
    signs : ndarray of shape (n_groups, n_stages, p)
        B. With two stages, :math:`H B` is applied twice, with different signs each time. The first
        signs are multiplied by the weights of the columns, if each has its own length scale.
    permutation : ndarray of int32 of shape (n_groups, p), or None
        Element i of :math:`\Pi w` is ``w[permutation[i]]``.
    inner : ndarray of shape (n_blocks, p)
        G.
    outer : ndarray of shape (n_blocks, p)
        S with all normalization and the length scale.
    blocks_per_group : int
    first_turn : int
        p if the blocks of the first group follow one another, too.
    """

    signs: Floats
    permutation: NDArray[np.int32] | None
    inner: Floats
    outer: Floats
    blocks_per_group: int
    first_turn: int

    def astype(self, dtype: np.dtype[np.floating]) -> FastfoodFactors:
        """Return the same factors rounded to another dtype, read-only."""
        arrays = [round_coefficients(a, dtype) for a in (self.signs, self.inner, self.outer)]
        if self.permutation is not None:  # native code relies on it
            self.permutation.flags.writeable = False
        signs, inner, outer = arrays
        return replace(self, signs=signs, inner=inner, outer=outer)

    def rows_in_order(self) -> NDArray[np.int64]:
        """Return the row ``block * p + row`` of V for each frequency, in order."""
        n_blocks, size = self.inner.shape
        rows = np.arange(n_blocks * size)
        if self.first_turn < size:
            first = rows[: self.blocks_per_group * size]
            turns = first.reshape(self.blocks_per_group, -1, self.first_turn).swapaxes(0, 1)
            rows[: first.size] = turns.ravel()
        return rows

    @property
    def nbytes(self) -> int:
        """The size of the factors in bytes."""
        arrays = (self.signs, self.permutation, self.inner, self.outer)
        return sum(a.nbytes for a in arrays if a is not None)


def _draw_hadamard(
    stream: Stream, n_blocks: int, size: int, stratified: bool
) -> tuple[FastfoodFactors, NDArray[np.float64]]:
    """Return random factors, and the length of the rows of H G P H B in each block."""
    per_group = STRATA if stratified else 1
    n_groups = -(-n_blocks // per_group)
    inner = draw_normals(stream, n_blocks, size, stratified)
    factors = FastfoodFactors(
        signs=stream.substream("signs").signs((n_groups, 1, size)),
        permutation=draw_permutations(stream.substream("permutations"), n_groups, size),
        inner=inner,
        outer=np.ones_like(inner),
        blocks_per_group=per_group,
        first_turn=max(16, size // 8) if stratified else size,
    )
    return factors, block_lengths(inner) * np.sqrt(size)


def _draw_sorf(
    stream: Stream, n_blocks: int, size: int
) -> tuple[FastfoodFactors, NDArray[np.float64]]:
    """Return three diagonals of signs as factors, and the length of the rows of (H D)^3."""
    signs = [stream.substream("sorf signs", stage).signs((n_blocks, size)) for stage in range(3)]
    factors = FastfoodFactors(
        signs=np.stack(signs[:2], axis=1),
        permutation=None,
        inner=signs[2],
        outer=np.ones_like(signs[2]),
        blocks_per_group=1,
        first_turn=size,
    )
    return factors, np.full(n_blocks, size * np.sqrt(size))


def _lengths_of_leading_part(
    factors: FastfoodFactors, dim: int, n_frequencies: int
) -> NDArray[np.float64]:
    """Return the length of the first `dim` coordinates of the rows of H G P H B, block by block.

    Rows that are not used as frequencies have arbitrary lengths. A few coordinates can be small
    compared with the others, so the lengths are computed by the operations that project data: the
    rounding errors are the same.
    """
    few = dim <= _FEW_DIMENSIONS
    return _lengths_by_units(factors, dim) if few else _lengths_by_rows(factors, dim, n_frequencies)


def _lengths_by_units(factors: FastfoodFactors, dim: int) -> NDArray[np.float64]:
    """Return the lengths from projections of the unit vectors, whose squares are added in order."""
    n_blocks, size = factors.inner.shape
    squares = np.zeros((n_blocks, size))
    units = np.eye(dim, size)
    for block in range(n_blocks):
        group = block // factors.blocks_per_group
        rows: Floats = units
        for stage_signs in factors.signs[group]:
            rows = fwht(rows * stage_signs)
        if factors.permutation is not None:
            rows = rows[:, factors.permutation[group]]
        for row in fwht(rows * factors.inner[block]):
            squares[block] += row * row
    return np.sqrt(squares)


def _lengths_by_rows(factors: FastfoodFactors, dim: int, n_frequencies: int) -> NDArray[np.float64]:
    """Return the lengths of the rows that are frequencies, from transposed products."""
    n_blocks, size = factors.inner.shape
    squares = np.ones((n_blocks, size))
    needed = np.sort(factors.rows_in_order()[:n_frequencies])
    step = max(1, (1 << 18) // size)
    for block in range(n_blocks):
        group = block // factors.blocks_per_group
        places = needed[(needed >= block * size) & (needed < (block + 1) * size)] - block * size
        for begin in range(0, places.size, step):
            part = places[begin : begin + step]
            units = np.zeros((part.size, size))
            units[np.arange(part.size), part] = 1
            rows = fwht(units) * factors.inner[block]
            if factors.permutation is not None:
                permuted = np.empty_like(rows)
                permuted[:, factors.permutation[group]] = rows
                rows = permuted
            for stage_signs in factors.signs[group][::-1]:
                rows = fwht(rows) * stage_signs
            squares[block, part] = row_products(rows[:, :dim])
    return np.sqrt(squares)


@dataclass(eq=False)
class _FactoredProjection(Projection):
    """A projection by factors, which are drawn once for each dtype."""

    length_scale: LengthScale
    dim: int
    n_frequencies: int
    _factors: PerDtype[FastfoodFactors] = field(default_factory=PerDtype, init=False, repr=False)

    @abstractmethod
    def _draw(self) -> FastfoodFactors:
        """Return the factors in float64."""

    def factors(self, dtype: DTypeLike = np.float64) -> FastfoodFactors:
        """Return the coefficients in float64 or float32."""
        return self._factors.of(dtype, lambda kind: self._draw().astype(kind))

    def prepare(self, dtype: DTypeLike) -> None:
        """Draw the coefficients for data of this dtype."""
        self.factors(dtype)

    def features(
        self,
        X: Rows,
        layout: FeatureLayout,
        phases: Floats | None,
        out: Floats,
        n_threads: int = 0,
        scoring: Scoring | None = None,
    ) -> bool:
        """Write the features of the rows of X; see `Projection.features`.

        Scores are computed while the features are in the cache.
        """
        factors = self.factors(out.dtype)
        weights, scores = (None, None) if scoring is None else scoring
        begin, is_finite = 0, True
        for rows, part in blocks_of_rows(X, out):
            end = begin + len(part)
            is_finite &= _native.fastfood(
                native_rows(rows),
                part,
                factors.signs,
                factors.permutation,
                factors.inner,
                factors.outer,
                factors.blocks_per_group,
                factors.first_turn,
                layout.native_kind,
                layout.scale,
                phases,
                weights,
                None if scores is None else scores[begin:end],
                n_threads,
            )
            begin = end
        return is_finite


@dataclass(eq=False)
class HadamardProjection(_FactoredProjection):
    r"""Frequencies of a radial kernel as rows of :math:`S H G \Pi H B` or of :math:`S (H D)^3`.

    Parameters
    ----------
    kernel : RadialKernel
        Its radii are the lengths of the rows.
    length_scale : float or ndarray of shape (dim,)
        Divides the frequencies, or their coordinates.
    dim : int
        The number of columns of the input.
    n_frequencies : int
    stream : Stream
        All coefficients are functions of it and of their position.
    structure : {"hadamard", "sorf"}
    stratified : bool
        Whether blocks share signs and permutation in fours, with stratified normals.

    Notes
    -----
    Coefficients are drawn when they are first needed, once for each dtype, and are not pickled.
    """

    kernel: RadialKernel
    stream: Stream
    structure: str
    stratified: bool

    def __post_init__(self) -> None:
        # A few coordinates of rows of signs have few values, and may all be 0.
        mixture, few = self.kernel.gaussian_mixture, self.dim < _SMALLEST_SORF_DIMENSION
        if self.structure == "sorf" and few and not mixture:
            raise ArgumentError(
                f"structure='sorf' needs at least {_SMALLEST_SORF_DIMENSION} columns for "
                f"{type(self.kernel).__name__}, got {self.dim}",
                Remedy("use Walsh-Hadamard matrices", structure="hadamard"),
            )

    @property
    def block_size(self) -> int:
        """The padded length of an input, and the number of frequencies in a block."""
        return padded_size(self.dim)

    @property
    def _n_blocks(self) -> int:
        n_blocks = -(-self.n_frequencies // self.block_size)
        return (
            max(STRATA, n_blocks) if self.stratified and self.structure == "hadamard" else n_blocks
        )

    def _radii(self) -> NDArray[np.float64]:
        # If the spectrum is a scale mixture of Gaussians, the first d of p coordinates have the
        # distribution of a frequency in d dimensions. Otherwise their length is drawn directly.
        dim = self.block_size if self.kernel.gaussian_mixture else self.dim
        stream, shape = self.stream.substream("radii"), (self._n_blocks, self.block_size)
        return self.kernel.radii(stream, shape[0] * shape[1], dim).reshape(shape)

    def _draw(self) -> FastfoodFactors:
        n_blocks, size = self._n_blocks, self.block_size
        if self.structure == "sorf":
            factors, lengths = _draw_sorf(self.stream, n_blocks, size)
        else:
            factors, lengths = _draw_hadamard(self.stream, n_blocks, size, self.stratified)
        row_lengths = lengths[:, np.newaxis]
        if not self.kernel.gaussian_mixture and self.dim < size:
            row_lengths = _lengths_of_leading_part(factors, self.dim, self.n_frequencies)
        scale, weights = split_length_scale(self.length_scale)
        factors.outer[:] = divide_by_length_scale(self._radii() / row_lengths, scale)
        if weights is not None:
            factors.signs[:, 0, : self.dim] *= weights
        return factors

    def lengths(self) -> NDArray[np.float64]:
        """Return the lengths of the frequencies in order, as they were drawn.

        Length scales of single columns are not included. For scale mixtures of Gaussians, only
        lengths after padding are drawn, so there must be no padding.
        """
        if self.kernel.gaussian_mixture and self.dim < self.block_size:
            raise ArgumentError(
                f"the frequency lengths of {type(self.kernel).__name__} are not known for "
                f"{self.dim} of {self.block_size} dimensions",
                "use a Radial kernel",
            )
        order = self.factors(np.float64).rows_in_order()[: self.n_frequencies]
        scale, _ = split_length_scale(self.length_scale)
        return divide_by_length_scale(self._radii().ravel()[order], scale)


@dataclass(frozen=True, eq=False)
class GivenFactors:
    """B, the permutation, G and S of some blocks, each of shape (n_blocks, p)."""

    B: NDArray[np.float64]
    permutation: NDArray[np.int32]
    G: NDArray[np.float64]
    S: NDArray[np.float64]

    @property
    def block_size(self) -> int:
        """The longest input, p."""
        return int(self.G.shape[1])

    @property
    def n_frequencies(self) -> int:
        """The number of frequencies of all blocks."""
        return self.G.size

    @classmethod
    def from_arrays(
        cls, B: ArrayLike, permutation: ArrayLike, G: ArrayLike, S: ArrayLike
    ) -> GivenFactors:
        """Check the arrays and return them as factors."""
        arrays = {name: _diagonal(name, value) for name, value in (("B", B), ("G", G), ("S", S))}
        shape = arrays["G"].shape
        for name, array in arrays.items():
            if array.shape != shape:
                raise ArgumentError(
                    f"B, permutation, G and S must have the same shape, (n_blocks, p), but G has "
                    f"{shape} and {name} has {array.shape}"
                )
        if shape[1] & (shape[1] - 1):
            raise ArgumentError(
                f"the number of columns of a block must be a power of two, got {shape[1]}",
                "pad the factors to the next power of two",
            )
        places = np.atleast_2d(np.asarray(permutation))
        if places.dtype.kind not in "iu" or places.shape != shape:
            raise ArgumentError(
                f"must be an array of integers with the shape of G, {shape}, got dtype "
                f"{places.dtype} and shape {places.shape}",
                parameter="permutation",
            )
        wrong = (np.sort(places, axis=1) != np.arange(shape[1])).any(axis=1)
        if wrong.any():
            raise ArgumentError(
                f"must contain every integer from 0 to {shape[1] - 1} once in each row, but row "
                f"{int(wrong.argmax())} does not",
                parameter="permutation",
            )
        return cls(arrays["B"], places.astype(np.int32), arrays["G"], arrays["S"])

    def __repr__(self) -> str:
        return f"<{self.G.shape[0]} blocks of {self.G.shape[1]}>"


def _diagonal(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.size == 0:
        raise ArgumentError(
            f"must be real and of shape (n_blocks, p) or (p,), got dtype {array.dtype} and "
            f"shape {array.shape}",
            parameter=name,
        )
    with np.errstate(over="ignore"):
        diagonal = np.atleast_2d(array).astype(np.float64)
    if not np.isfinite(diagonal).all():
        raise ArgumentError(
            "must be finite in float64, got NaN, infinity or a larger number", parameter=name
        )
    return diagonal


@dataclass(eq=False)
class GivenProjection(_FactoredProjection):
    r"""The projection :math:`S H G \Pi H B / (\ell \sqrt{p})` of given factors."""

    given: GivenFactors

    def __post_init__(self) -> None:
        if self.dim > self.given.block_size:
            raise ArgumentError(
                f"the factors support at most {self.given.block_size} columns, got {self.dim}",
                "pass factors for a larger power of two",
            )
        if self.n_frequencies > self.given.n_frequencies:
            raise ArgumentError(
                f"the factors have {self.given.n_frequencies} frequencies, but "
                f"{self.n_frequencies} are needed",
                Remedy("use fewer components", n_components=...),
                "pass more blocks",
            )

    def _draw(self) -> FastfoodFactors:
        given = self.given
        scale, weights = split_length_scale(self.length_scale)
        signs = given.B.copy()
        if weights is not None:
            signs[:, : self.dim] *= weights
        return FastfoodFactors(
            signs=signs[:, np.newaxis],
            permutation=given.permutation,
            inner=given.G,
            outer=divide_by_length_scale(given.S / np.sqrt(given.block_size), scale),
            blocks_per_group=1,
            first_turn=given.block_size,
        )


def draw_permutations(stream: Stream, n_rows: int, size: int) -> NDArray[np.int32]:
    """Return rows of random permutations of 0, ..., size - 1."""
    out = np.empty((n_rows, size), np.int32)
    for row in range(n_rows):
        out[row] = stream.permutation(size, index=row, dtype=np.int32)
    return out


def draw_normals(stream: Stream, n_blocks: int, size: int, stratified: bool) -> NDArray[np.float64]:
    """Return rows of standard normals, independent or stratified over every four rows."""
    if stratified:
        return _stratified_normals(stream.substream("stratified normals"), n_blocks, size)
    return stream.substream("normals").normals((n_blocks, size))


def _stratified_normals(stream: Stream, n_blocks: int, size: int) -> NDArray[np.float64]:
    r"""Return rows of standard normals, stratified over every four rows.

    Each row is a vector of independent standard normals. In rows :math:`4g, ..., 4g + 3`, the
    absolute values in one column fall into four different quarters of the distribution of
    :math:`|g|`, in a random order: a scrambled van der Corput sequence of four points, whose first
    two also fall into different halves.
    """
    n_groups = -(-n_blocks // STRATA)
    flips = stream.substream("strata").integers((n_groups, size), 8)
    uniforms = stream.substream("within").uniforms((n_blocks, size))
    for block in range(n_blocks):
        flip = flips[block // STRATA]
        first, second = block & 1, block >> 1 & 1
        top = first ^ (flip & 1)
        bottom = second ^ (flip >> (1 + first) & 1)
        uniforms[block] = (2 * top + bottom + uniforms[block]) / (2 * STRATA)  # in (0, 1/2)
    normals = normal_quantile(uniforms)
    normals *= stream.substream("signs").signs((n_blocks, size))
    return normals


def block_lengths(inner: Floats) -> NDArray[np.float64]:
    """Return the length of each row, rounded from the exact sum: the same on every machine."""
    return np.sqrt([math.fsum(row) for row in np.square(inner, dtype=np.float64)])
