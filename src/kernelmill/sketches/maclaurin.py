"""Random Maclaurin features: products of projections to vectors of random signs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.random import Stream
from kernelmill.runtime.arrays import blocks_of_rows, native_rows, round_coefficients
from kernelmill.runtime.threads import resolve_threads
from kernelmill.sketches.degrees import feature_weights, spread_degrees

__all__ = ["MaclaurinSketch"]

_BLOCK_ELEMENTS = 1 << 19  # of a matrix, drawn at a time
_OUTPUT_BYTES = 1 << 22  # of the output, multiplied by all factors before the next rows


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
        of their degrees; see :func:`~kernelmill.sketches.degrees.degree_terms`. If all shares are
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
    _packed: dict[str, list[NDArray[Any]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Draw the degrees :math:`n_j`, in descending order, and the weights :math:`w_j`."""
        if self.shares.any():
            stream = self.stream.substream("degrees")
            self.degrees = spread_degrees(stream, self.shares, self.length)
            self.weights = feature_weights(self.terms, self.shares, self.degrees)
        else:
            self.degrees, self.weights = np.zeros(self.length, np.int64), np.zeros(self.length)

    def __getstate__(self) -> dict[str, Any]:
        drawn = ("degrees", "weights")
        return {**{k: v for k, v in vars(self).items() if k not in drawn}, "_packed": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def factors(self, level: int, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Vectors number `level` of features start, ..., stop - 1, divided by r.

        Those of level 0 are multiplied by the weights.
        """
        stop = self._columns_of(level) if stop is None else stop
        signs = self.stream.substream("factor", level).signs(
            (stop - start, self.dim), start=start * self.dim
        )
        scales = self.weights[start:stop] / self.radius if level == 0 else 1 / self.radius
        return np.asarray(signs * np.reshape(scales, (-1, 1)), np.float64)

    def _columns_of(self, level: int) -> int:
        """Return the number of features with more than `level` factors; they come first."""
        return int(np.count_nonzero(self.degrees > level))

    def _parts(self) -> Iterator[tuple[int, int, int]]:
        """Level, first and last column of what is drawn and multiplied at a time."""
        # Whole panels of native code, and whole tiles if that does not take too much memory.
        rows = max(1, _BLOCK_ELEMENTS // self.dim)
        tile = _native.tile_columns
        unit = tile if rows >= tile else _native.panel_columns
        step = -(-rows // unit) * unit
        for level in range(int(self.degrees.max(initial=0))):
            columns = self._columns_of(level)
            for start in range(0, columns, step):
                yield level, start, min(start + step, columns)

    def _pack(self, part: tuple[int, int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
        _, start, stop = part
        size = _native.dense_packed_size(stop - start, self.dim, dtype.itemsize)
        packed = np.empty(size, dtype)
        _native.dense_pack(round_coefficients(self.factors(*part), dtype), packed)
        packed.flags.writeable = False
        return packed

    def prepare(self, dtype: Any) -> None:
        """Draw the vectors, if they are kept, for data of this dtype."""
        kind = np.dtype(dtype)
        if self.stored and kind.char not in self._packed:
            self._packed[kind.char] = [self._pack(part, kind) for part in self._parts()]

    def features(self, X: Any, out: NDArray[Any], n_threads: int | None = None) -> None:
        """Write the features of the rows of X, which has the dtype of `out`."""
        constant = self._columns_of(0)
        out[:, constant:] = self.weights[constant:]
        if not self.stored:
            for part in self._parts():
                packed = self._pack(part, out.dtype)
                for rows, to in blocks_of_rows(X, out):
                    self._multiply(part, packed, rows, to, n_threads)
            return
        self.prepare(out.dtype)
        most_rows = max(_native.tile_rows, _OUTPUT_BYTES // max(1, out.shape[1] * out.itemsize))
        for rows, to in blocks_of_rows(X, out, most_rows=most_rows):
            for part, packed in zip(self._parts(), self._packed[out.dtype.char], strict=True):
                self._multiply(part, packed, rows, to, n_threads)

    def _multiply(
        self,
        part: tuple[int, int, int],
        packed: NDArray[Any],
        rows: Any,
        out: NDArray[Any],
        n_threads: int | None,
    ) -> None:
        level, start, stop = part
        kind = _native.feature_kinds["times" if level else "projection"]
        threads = resolve_threads(n_threads)
        _native.dense(native_rows(rows), packed, stop - start, start, out, kind, 1.0, None, threads)
