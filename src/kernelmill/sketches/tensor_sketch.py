"""The sketch of a tensor power of a vector: a convolution of count sketches of the vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.random import Stream
from kernelmill.runtime.arrays import blocks_of_rows, native_rows, round_coefficients
from kernelmill.runtime.threads import resolve_threads
from kernelmill.sketches.hashing import draw_hashes

__all__ = ["PolynomialSketch"]


class Tables(NamedTuple):
    """The parameters of the native kernels, in one dtype."""

    buckets: NDArray[np.int32]  # of the columns, for each factor
    weights: NDArray[Any]  # of the columns: signs times the scale
    offsets: NDArray[Any] | None  # what the sketch of a row of zeros holds
    constants: NDArray[Any] | None  # the same of a row from which the shift is subtracted already
    ring_roots: NDArray[Any] | None  # constants of transforms, for lengths with odd factors


@dataclass(eq=False)
class PolynomialSketch:
    r"""Sketches of :math:`u \otimes \dots \otimes u`, where u is scale (x - shift) and a constant.

    Their inner products estimate :math:`(scale^2 \langle x - shift, y - shift \rangle +
    constant^2)^{degree}` without bias.

    Parameters
    ----------
    degree, dim, length : int
        The number of factors, of columns of x, and of columns of the sketch.
    stream : Stream
        Buckets and signs are functions of it.
    hashing : {"collision_free", "independent"}
    scale, constant : float
    shift : ndarray of shape (dim,), optional
        Subtracted from every row: from its sketches, so that sparse rows stay sparse.
    """

    degree: int
    dim: int
    length: int
    stream: Stream
    hashing: str
    scale: float = 1.0
    constant: float = 0.0
    shift: NDArray[np.float64] | None = None
    _tables: dict[str, Tables] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": {}}

    def tables(self, dtype: Any) -> Tables:
        """Return the parameters of sketches for rows of this dtype."""
        kind = np.dtype(dtype)
        if kind.char not in self._tables:
            self._tables[kind.char] = self._draw(kind)
        return self._tables[kind.char]

    def _draw(self, dtype: np.dtype[Any]) -> Tables:
        has_constant = self.constant > 0  # one more coordinate, the same in every row
        buckets, signs = draw_hashes(
            self.stream, self.hashing, self.degree, self.dim + has_constant, self.length
        )
        columns = np.ascontiguousarray(buckets[:, : self.dim])
        columns.flags.writeable = False
        weights = round_coefficients(signs[:, : self.dim] * self.scale, dtype)
        constants = None
        if has_constant:
            constants = np.zeros((self.degree, self.length))
            constants[np.arange(self.degree), buckets[:, -1]] = signs[:, -1] * self.constant
        offsets = constants
        if self.shift is not None:
            offsets = np.zeros((self.degree, self.length))
            if constants is not None:
                offsets += constants
            for k in range(self.degree):
                np.subtract.at(offsets[k], columns[k], weights[k] * self.shift)
        return Tables(
            columns,
            weights,
            None if offsets is None else round_coefficients(offsets, dtype),
            None if constants is None else round_coefficients(constants, dtype),
            self._ring_roots(dtype),
        )

    def _ring_roots(self, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        size = _native.ring_roots_size(self.length) if self.degree > 1 else 0
        if size == 0:
            return None
        roots = np.empty(size, dtype)
        _native.ring_roots(roots, self.length)
        return roots

    def write(
        self,
        X: Any,
        out: NDArray[Any],
        *,
        row_scales: NDArray[Any] | None = None,
        shifted: bool = False,
        n_threads: int | None = None,
    ) -> None:
        """Write the sketches of the rows of X, times `row_scales`; all have the dtype of `out`.

        With `shifted`, the shift has been subtracted from the rows.
        """
        tables = self.tables(out.dtype)
        threads = resolve_threads(n_threads)
        begin = 0
        for rows, part in blocks_of_rows(X, out):
            end = begin + part.shape[0]
            scales = None if row_scales is None else row_scales[begin:end]
            _native.tensor_sketch(
                native_rows(rows),
                tables.buckets,
                tables.weights,
                tables.constants if shifted else tables.offsets,
                scales,
                tables.ring_roots,
                part,
                threads,
            )
            begin = end
