"""Dense projections: frequencies drawn one by one, orthogonally, or by quasi-Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.arguments import LengthScale
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.kernels import Gaussian, Kernel, Laplacian, RadialKernel
from kernelmill.projections.layout import FeatureLayout
from kernelmill.random import Stream, normal_quantile
from kernelmill.runtime.arrays import (
    blocks_of_rows,
    divide_by_length_scale,
    native_rows,
    round_coefficients,
)
from kernelmill.runtime.threads import resolve_threads

__all__ = ["SAMPLINGS", "DenseProjection"]

SAMPLINGS = ("iid", "orthogonal", "qmc")

_LARGEST_ORTHOGONAL = 8192
_MOST_SOBOL_DIMENSIONS = 21201  # scipy's table of direction numbers (Joe & Kuo) ends here
_SOBOL_BITS = 32
_BLOCK_ELEMENTS = 1 << 19  # of the matrix, drawn at a time


@dataclass(eq=False)
class DenseProjection:
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
    _packed: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        name = type(self.kernel).__name__
        if self.sampling == "orthogonal" and not self.kernel.radial:
            raise ArgumentError(
                f"sampling='orthogonal' needs a radial kernel, got {name}",
                Remedy("draw independent frequencies", sampling="iid"),
            )
        if self.sampling == "orthogonal" and self.dim > _LARGEST_ORTHOGONAL:
            raise ArgumentError(
                f"sampling='orthogonal' takes at most {_LARGEST_ORTHOGONAL} columns, since it "
                f"draws square matrices of that size, got {self.dim}",
                "use Fastfood(structure='sorf')",
            )
        if self.sampling == "qmc":
            if not (self.kernel.radial or isinstance(self.kernel, Laplacian)):
                raise ArgumentError(
                    f"sampling='qmc' needs a radial kernel or Laplacian, got {name}",
                    Remedy("draw independent frequencies", sampling="iid"),
                )
            if self.dim > _MOST_SOBOL_DIMENSIONS:
                raise ArgumentError(
                    f"sampling='qmc' takes at most {_MOST_SOBOL_DIMENSIONS} columns, the largest "
                    f"dimension of the Sobol points, got {self.dim}",
                    Remedy("draw orthogonal frequencies", sampling="orthogonal"),
                    "use Fastfood",
                )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": {}}

    def frequencies(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Rows start, ..., stop - 1 of W."""
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
        """Rows of independent random orthogonal matrices, with random lengths."""
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
        """Scrambled Sobol points through the quantile functions of the coordinates."""
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
        for column in normals.T:  # added in one order everywhere
            squares += column * column
        normals *= (self._radii(start, stop) / np.sqrt(squares))[:, np.newaxis]
        return normals

    @property
    def _rows_at_once(self) -> int:
        least = self.dim if self.sampling == "orthogonal" else 1  # one matrix is drawn as a whole
        rows = max(least, _BLOCK_ELEMENTS // self.dim, 1)
        return -(-rows // _native.tile_columns) * _native.tile_columns

    def _pack(self, start: int, stop: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        size = _native.dense_packed_size(stop - start, self.dim, dtype.itemsize)
        packed = np.empty(size, dtype)
        _native.dense_pack(round_coefficients(self.frequencies(start, stop), dtype), packed)
        return packed

    def pack_matrix(self, dtype: Any) -> NDArray[Any]:
        """Return the matrix in the memory layout of the native code."""
        kind = np.dtype(dtype)
        if kind.char not in self._packed:
            size = _native.dense_packed_size(self.n_frequencies, self.dim, kind.itemsize)
            whole = np.empty(size, kind)
            for start in range(0, self.n_frequencies, self._rows_at_once):
                stop = min(start + self._rows_at_once, self.n_frequencies)
                part = self._pack(start, stop, kind)
                whole[start * self.dim : start * self.dim + part.size] = part
            whole.flags.writeable = False
            self._packed[kind.char] = whole
        return self._packed[kind.char]

    def prepare(self, dtype: Any) -> None:
        """Draw the matrix, if it is stored, for data of this dtype."""
        if self.stored:
            self.pack_matrix(dtype)
        elif self.sampling == "iid":  # a custom kernel should fail now rather than later
            self.frequencies(self.n_frequencies - 1, self.n_frequencies)

    def features(
        self,
        X: Any,
        layout: FeatureLayout,
        phases: NDArray[Any] | None,
        out: NDArray[Any],
        n_threads: int | None = None,
    ) -> None:
        """Write the features of the rows of X, which has the real dtype of `out`."""
        step = self.n_frequencies if self.stored else self._rows_at_once
        for start in range(0, self.n_frequencies, step):
            stop = min(start + step, self.n_frequencies)
            kept = self.stored
            packed = self.pack_matrix(out.dtype) if kept else self._pack(start, stop, out.dtype)
            for rows, part in blocks_of_rows(X, out):
                _native.dense(
                    native_rows(rows),
                    packed,
                    stop - start,
                    start,
                    part,
                    layout.native_kind,
                    layout.scale,
                    phases,
                    resolve_threads(n_threads),
                )


def _draw_sobol_points(stream: Stream, n: int, dim: int, *, start: int = 0) -> NDArray[np.float64]:
    """Points number start, ..., start + n - 1 of a randomly scrambled Sobol sequence in (0, 1)^dim.

    Every point is uniform. The sequence comes from scipy; the scrambling, by random lower
    triangular matrices of bits and a random digital shift (Matoušek, 1998), from the stream. So
    points are bit-identical on every machine and in every release of scipy.
    """
    sequence = scipy.stats.qmc.Sobol(dim, scramble=False, bits=_SOBOL_BITS)
    if start > 0:
        sequence.fast_forward(start)
    # Drawing 2^k points keeps scipy from warning; points do not depend on how many are drawn.
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
