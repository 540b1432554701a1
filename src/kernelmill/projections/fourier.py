"""Fastfood with a Fourier or a cosine transform instead of the Walsh-Hadamard transform."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy  # scipy.fft is loaded on first use
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale
from kernelmill.kernels import RadialKernel
from kernelmill.projections.base import FeatureLayout, Projection, Scoring, score_features
from kernelmill.projections.fastfood import (
    STRATA,
    block_lengths,
    draw_normals,
    draw_permutations,
)
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    divide_by_length_scale,
    round_coefficients,
    split_length_scale,
)

__all__ = ["FourierProjection"]

_SMALLEST_BLOCK = 32
_BLOCK_ELEMENTS = 1 << 17
"""Elements of rows that are transformed at a time."""


def real_fourier(x: Floats) -> Floats:
    """Return the real Fourier transform along the rows, as an orthogonal matrix.

    Cosines are followed by sines.
    """
    n = x.shape[1]
    spectrum = scipy.fft.rfft(x, axis=1, norm="ortho")
    out = np.empty_like(x)
    n_cosines = n // 2 + 1
    out[:, :n_cosines] = spectrum.real
    out[:, n_cosines:] = spectrum.imag[:, 1 : n - n_cosines + 1]
    twice = slice(1, n if n % 2 else n // 2)  # all but the constant and the alternating row
    out[:, twice] *= np.sqrt(x.dtype.type(2))
    if n % 2 == 0:
        out[:, n_cosines:] *= np.sqrt(x.dtype.type(2))
    return out


def cosine(x: Floats) -> Floats:
    """Return the discrete cosine transform along the rows, as an orthogonal matrix."""
    return np.asarray(scipy.fft.dct(x, axis=1, norm="ortho"))


@dataclass(frozen=True, eq=False)
class _Factors:
    signs: Floats  # (n_groups, p)
    permutation: NDArray[np.int32]  # (n_groups, p)
    inner: Floats | None  # (n_blocks, p); None for "fft"
    outer: Floats  # (n_blocks, p)
    blocks_per_group: int


@dataclass(eq=False)
class FourierProjection(Projection):
    r"""Frequencies of a radial kernel by fast transforms of any length.

    "dct" replaces both Walsh-Hadamard transforms of Fastfood by cosine transforms T,
    :math:`V = S T G \Pi T B` (Le, Sarlós & Smola, footnote 2). "fft" is
    :math:`V = S \Pi F B`: rows of the real Fourier matrix F in random order, with random signs on
    the columns. Their heuristic (section 6) is :math:`\Pi F B`, rows of one length; S gives them
    the lengths of frequencies of the kernel.

    Parameters are those of :class:`~kernelmill.projections.HadamardProjection`. The transforms run
    on one thread: the threads of scipy.fft do not survive a fork.
    """

    kernel: RadialKernel
    length_scale: LengthScale
    dim: int
    n_frequencies: int
    stream: Stream
    structure: str
    stratified: bool
    _factors: PerDtype[_Factors] = field(default_factory=PerDtype, init=False, repr=False)

    @property
    def block_size(self) -> int:
        """The padded length of an input, and the number of frequencies in a block."""
        # For scale mixtures of Gaussians, d of p coordinates are a frequency in d dimensions.
        return max(_SMALLEST_BLOCK if self.kernel.gaussian_mixture else 1, self.dim)

    def _draw(self, dtype: np.dtype[np.floating]) -> _Factors:
        size = self.block_size
        n_blocks = -(-self.n_frequencies // size)
        per_group = STRATA if self.stratified and self.structure == "dct" else 1
        n_groups = -(-n_blocks // per_group)
        inner = None
        lengths = np.ones(n_blocks)
        if self.structure == "dct":
            inner = draw_normals(self.stream, n_blocks, size, self.stratified)
            lengths = block_lengths(inner) / np.sqrt(size)
        signs = self.stream.substream("signs").signs((n_groups, size))
        scale, weights = split_length_scale(self.length_scale)
        if weights is not None:
            signs[:, : self.dim] *= weights
        radii = self.kernel.radii(self.stream.substream("radii"), n_blocks * size, size)
        outer = radii.reshape(n_blocks, size) / lengths[:, np.newaxis]
        return _Factors(
            signs=round_coefficients(signs, dtype),
            permutation=draw_permutations(self.stream.substream("permutations"), n_groups, size),
            inner=None if inner is None else round_coefficients(inner, dtype),
            outer=round_coefficients(divide_by_length_scale(outer, scale), dtype),
            blocks_per_group=per_group,
        )

    def factors(self, dtype: DTypeLike = np.float64) -> _Factors:
        """Return the coefficients in float64 or float32."""
        return self._factors.of(dtype, self._draw)

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
        """Write the features of the rows of X; see `Projection.features`."""
        factors, is_finite = self.factors(out.dtype), True
        most_rows = max(1, _BLOCK_ELEMENTS // self.block_size)
        for rows, part in blocks_of_rows(X, out, max_rows=most_rows):
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
            padded = np.zeros((dense.shape[0], self.block_size), out.dtype)
            padded[:, : self.dim] = dense
            for block in range(factors.outer.shape[0]):
                group, within = divmod(block, factors.blocks_per_group)
                if within == 0:
                    mixed = self._mix(padded, factors, group)
                z = mixed
                if factors.inner is not None:
                    z = cosine(mixed * factors.inner[block])
                is_finite &= _native.features(
                    z,
                    factors.outer[block],
                    block * self.block_size,
                    part,
                    layout.native_kind,
                    layout.scale,
                    phases,
                    n_threads,
                )
        score_features(out, scoring, n_threads)
        return is_finite

    def _mix(self, padded: Floats, factors: _Factors, group: int) -> Floats:
        signed = padded * factors.signs[group]
        forward = real_fourier if self.structure == "fft" else cosine
        return np.ascontiguousarray(forward(signed)[:, factors.permutation[group]])
