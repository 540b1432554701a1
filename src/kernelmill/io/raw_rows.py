"""Rows of numbers that lie one after another in a file, compressed or not."""

from __future__ import annotations

import math
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.io.compression import copying_errors, read_at, read_fully
from kernelmill.io.errors import TableError

__all__ = ["RawArray", "RawRows"]

_PIECE = 1 << 20


@dataclass(frozen=True)
class RawArray:
    """Where the numbers of an array are; shape and size were checked against the file's size."""

    path: Path
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    seekable: bool  # bytes can be read at any place; else from the beginning only
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool = False

    @property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def n_bytes(self) -> int:
        """The bytes of all rows."""
        return self.shape[0] * self.row_bytes


class RawRows:
    """Reads rows of a `RawArray`, in the byte order of the machine and in C order.

    Parameters
    ----------
    array : RawArray
        The array; its rows are flattened.
    """

    def __init__(self, array: RawArray) -> None:
        self.array = array
        self._copy: IO[bytes] | None = None

    def blocks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """All rows, so many at a time."""
        array = self.array
        total = array.shape[0]
        if array.fortran_order:
            self.prepare_random_access()
            for first in range(0, total, n_rows):
                yield self.rows(first, min(n_rows, total - first))
            return
        if self._copy is not None or array.seekable:
            for first in range(0, total, n_rows):
                yield self.rows(first, min(n_rows, total - first))
            return
        with array.open() as stream:
            read_fully(stream, array.offset)
            for first in range(0, total, n_rows):
                count = min(n_rows, total - first)
                yield self._rows_of(read_fully(stream, count * array.row_bytes), count)

    def prepare_random_access(self) -> None:
        """Copy the bytes to a temporary file if they are compressed."""
        if self.array.seekable or self._copy is not None:
            return
        copy = tempfile.TemporaryFile()  # noqa: SIM115  (kept as long as this object)
        weakref.finalize(self, copy.close)
        with self.array.open() as stream:
            read_fully(stream, self.array.offset)
            left = self.array.n_bytes
            while left and (piece := read_fully(stream, min(_PIECE, left))):
                with copying_errors(self.array.path):
                    copy.write(piece)
                left -= len(piece)
        with copying_errors(self.array.path):
            copy.flush()
        if left:
            raise self._too_short()
        self._copy = copy

    def rows(self, first: int, count: int) -> NDArray[Any]:
        """Some rows; `prepare_random_access` was called."""
        array = self.array
        if self._copy is not None:
            return self._read(self._copy, 0, first, count)
        with array.open() as stream:
            return self._read(stream, array.offset, first, count)

    def _read(self, stream: IO[bytes], offset: int, first: int, count: int) -> NDArray[Any]:
        array = self.array
        if array.fortran_order:
            mapped = np.memmap(stream, array.dtype, "r", offset, array.shape, order="F")
            rows = np.ascontiguousarray(mapped[first : first + count])
            return rows.astype(array.dtype.newbyteorder("="), copy=False)
        data = read_at(stream, offset + first * array.row_bytes, count * array.row_bytes)
        return self._rows_of(data, count)

    def _rows_of(self, data: bytes, count: int) -> NDArray[Any]:
        array = self.array
        if len(data) != count * array.row_bytes:
            raise self._too_short()
        rows = np.frombuffer(data, array.dtype).reshape((count, *array.shape[1:]))
        rows = rows.astype(array.dtype.newbyteorder("="), copy=False)
        return rows if rows.ndim < 3 else rows.reshape(count, -1)

    def _too_short(self) -> TableError:
        return TableError(
            f"{self.array.path} is truncated: it has fewer than the {self.array.shape[0]} rows "
            "that its header tells; get the file again."
        )
