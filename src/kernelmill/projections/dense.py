"""Dense projections: frequencies drawn one by one, orthogonally, or by quasi-Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy  # scipy.stats is loaded on first use
from numpy.typing import DTypeLike, NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels import Gaussian, Kernel, Laplacian, RadialKernel
from kernelmill.projections.base import FeatureLayout, Projection, Scoring, score_features
from kernelmill.random import Stream, normal_quantile
from kernelmill.runtime.arrays import (
    Floats,
    PerDtype,
    Rows,
    blocks_of_rows,
    divide_by_length_scale,
    native_rows,
    round_coefficients,
)

__all__ = ["SAMPLINGS", "DenseProjection"]

SAMPLINGS = ("iid", "orthogonal", "qmc")

_MAX_ORTHOGONAL = 8192
_MAX_SOBOL_DIMENSIONS = 21201
"""The limit of SciPy's table of direction numbers (Joe & Kuo)."""

_SOBOL_BITS = 32
_BLOCK_ELEMENTS = 1 << 19
"""Elements of the matrix that are drawn at a time, if it is not stored."""


@dataclass(eq=False)
class DenseProjection(Projection):
    """Frequencies as rows of a matrix W, and the features of W x.

    Parameters
    ----------
    kernel : Kernel
    length_scale : float or ndarray of shape (dim,)
        Divides the frequencies, or their coordinates.
    dim, n_frequencies : int
        The shape of W is (n_frequencies, dim).
    stream : Stream
        A frequency is a function of it and of its position.
    sampling : {"iid", "orthogonal", "qmc"}
    stored : bool
        Whether W is stored. Otherwise it is drawn again whenever it is needed, some rows at a time.
    """

    kernel: Kernel
    length_scale: LengthScale
    dim: int
    n_frequencies: int
    stream: Stream
    sampling: str
    stored: bool
    _packed: PerDtype[Floats] = field(default_factory=PerDtype, init=False, repr=False)

    def __post_init__(self) -> None:
        name = type(self.kernel).__name__
        if self.sampling == "orthogonal" and not self.kernel.radial:
            raise ArgumentError(
                f"sampling='orthogonal' needs a radial kernel, got {name}",
                Remedy("draw independent frequencies", sampling="iid"),
            )
        if self.sampling == "orthogonal" and self.dim > _MAX_ORTHOGONAL:
            raise ArgumentError(
                f"sampling='orthogonal' takes at most {_MAX_ORTHOGONAL} columns, since it "
                f"draws square matrices of that size, got {self.dim}",
                "use Fastfood(structure='sorf')",
            )
        if self.sampling == "qmc":
            if not (self.kernel.radial or isinstance(self.kernel, Laplacian)):
                raise ArgumentError(
                    f"sampling='qmc' needs a radial kernel or Laplacian, got {name}",
                    Remedy("draw independent frequencies", sampling="iid"),
                )
            if self.dim > _MAX_SOBOL_DIMENSIONS:
                raise ArgumentError(
                    f"sampling='qmc' takes at most {_MAX_SOBOL_DIMENSIONS} columns, the largest "
                    f"dimension of the Sobol points, got {self.dim}",
                    Remedy("draw orthogonal frequencies", sampling="orthogonal"),
                    "use Fastfood",
                )

    def frequencies(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Return rows start, ..., stop - 1 of W."""
        stop = self.n_frequencies if stop is None else stop
        draw = {"iid": self._iid, "orthogonal": self._orthogonal, "qmc": self._qmc}[self.sampling]
        return divide_by_length_scale(draw(start, stop), self.length_scale)

    def _iid(self, start: int, stop: int) -> NDArray[np.float64]:
        stream = self.stream.substream("frequencies")
        return self.kernel.frequencies(stream, stop - start, self.dim, start=start)

    def _radii(self, start: int, stop: int) -> NDArray[np.float64]:
        assert isinstance(self.kernel, RadialKernel)
        stream = self.stream.substream("radii")
        return self.kernel.radii(stream, stop - start, self.dim, start=start)

    def _orthogonal(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return rows of independent random orthogonal matrices, with random lengths."""
        out = np.empty((stop - start, self.dim))
        stream = self.stream.substream("orthogonal")
        for index in range(start // self.dim, -(-stop // self.dim)):
            first = index * self.dim
            low, high = max(start, first), min(stop, first + self.dim)
            matrix = stream.orthogonal(self.dim, index=index)
            out[low - start : high - start] = matrix[low - first : high - first]
        out *= self._radii(start, stop)[:, np.newaxis]
        return out

    def _qmc(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return scrambled Sobol points, transformed by the quantiles of the coordinates."""
        stream = self.stream.substream("sobol")
        points = _draw_sobol_points(stream, stop - start, self.dim, start=start)
        if not self.kernel.radial:
            points -= 0.5
            tangents = np.empty_like(points)
            _native.elementary("tan_pi", np.abs(points), tangents, 0)
            return np.copysign(tangents, points, out=tangents)
        normals = normal_quantile(points)
        if isinstance(self.kernel, Gaussian):
            return normals
        squares = np.zeros(len(normals))
        for column in normals.T:  # in the same order on every machine
            squares += column * column
        normals *= (self._radii(start, stop) / np.sqrt(squares))[:, np.newaxis]
        return normals

    @property
    def _rows_at_once(self) -> int:
        whole_matrix = self.dim if self.sampling == "orthogonal" else 1
        rows = max(whole_matrix, _BLOCK_ELEMENTS // self.dim, 1)
        return -(-rows // _native.tile_columns) * _native.tile_columns

    def _pack(self, start: int, stop: int, dtype: np.dtype[np.floating]) -> Floats:
        size = _native.dense_packed_size(stop - start, self.dim, dtype.itemsize)
        packed = np.empty(size, dtype)
        _native.dense_pack(round_coefficients(self.frequencies(start, stop), dtype), packed)
        return packed

    def _pack_matrix(self, dtype: np.dtype[np.floating]) -> Floats:
        """Return the matrix in the memory layout of the native code."""
        size = _native.dense_packed_size(self.n_frequencies, self.dim, dtype.itemsize)
        whole = np.empty(size, dtype)
        for start in range(0, self.n_frequencies, self._rows_at_once):
            stop = min(start + self._rows_at_once, self.n_frequencies)
            part = self._pack(start, stop, dtype)
            whole[start * self.dim : start * self.dim + part.size] = part
        whole.flags.writeable = False
        return whole

    def prepare(self, dtype: DTypeLike) -> None:
        """Draw the matrix, if it is stored, for data of this dtype."""
        if self.stored:
            self._packed.of(dtype, self._pack_matrix)
        elif self.sampling == "iid":  # a custom kernel should fail now rather than later
            self.frequencies(self.n_frequencies - 1, self.n_frequencies)

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
        is_finite = True
        step = self.n_frequencies if self.stored else self._rows_at_once
        for start in range(0, self.n_frequencies, step):
            stop = min(start + step, self.n_frequencies)
            if self.stored:
                packed = self._packed.of(out.dtype, self._pack_matrix)
            else:
                packed = self._pack(start, stop, out.dtype)
            for rows, part in blocks_of_rows(X, out):
                is_finite &= _native.dense(
                    native_rows(rows),
                    packed,
                    stop - start,
                    start,
                    part,
                    layout.native_kind,
                    layout.scale,
                    phases,
                    n_threads,
                )
        score_features(out, scoring, n_threads)
        return is_finite


def _draw_sobol_points(stream: Stream, n: int, dim: int, *, start: int = 0) -> NDArray[np.float64]:
    """Return points start, ..., start + n - 1 of a randomly scrambled Sobol sequence in (0, 1)^dim.

    Every point is uniform. The sequence comes from SciPy; the scrambling, by random lower
    triangular matrices of bits and a random digital shift (Matoušek, 1998), from the stream. So
    points are bit-identical on every machine and in every release of SciPy.
    """
    sequence = scipy.stats.qmc.Sobol(dim, scramble=False, bits=_SOBOL_BITS)
    if start > 0:
        sequence.fast_forward(start)
    # SciPy warns unless 2^k points are drawn; points do not depend on their number.
    raw = sequence.random(1 << max(0, n - 1).bit_length())[:n] if n else np.empty((0, dim))
    digits = (raw * 2.0**_SOBOL_BITS).astype(np.uint32)
    words = stream.integers((dim, _SOBOL_BITS + 1), 2**_SOBOL_BITS).astype(np.uint32)
    scrambled = np.zeros_like(digits)
    for bit in range(_SOBOL_BITS):  # from the most significant one
        place = np.uint32(_SOBOL_BITS - 1 - bit)
        above = np.uint32((0xFFFFFFFF << (_SOBOL_BITS - bit)) & 0xFFFFFFFF)
        row = (words[:, bit] & above) | np.uint32(1 << int(place))
        parity = np.bitwise_count(digits & row) & np.uint8(1)
        scrambled |= parity.astype(np.uint32) << place
    scrambled ^= words[:, _SOBOL_BITS]
    return np.asarray((scrambled.astype(np.float64) + 0.5) / 2.0**_SOBOL_BITS)
