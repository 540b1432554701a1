"""Files with a matrix of numbers and optional labels, read in blocks of rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.files.remote_path import RemotePath
from kernelmill.io.compression import (
    GET_AGAIN,
    TemporaryCopy,
    copy_errors,
    open_stream,
    read_at,
    read_fully,
    read_to_end,
)
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, cut_evenly
from kernelmill.io.limits import check_n_features
from kernelmill.io.table_file import (
    LARGEST_EXACT,
    TableFile,
    TableOptions,
)

__all__ = ["MatrixFile", "RawArray", "RawRows", "check_exact", "check_matrix"]

_PIECE = 1 << 20  # bytes copied at once

# Options that have no meaning for a matrix.
MEANINGLESS = (
    *("delimiter", "header", "categorical", "numeric", "skip_rows", "decimal"),
    *("encoding", "missing_codes", "not_missing", "dates"),
)


class MatrixFile(TableFile):
    """A file with rows of numbers; a format implements `find_arrays`."""

    def __init__(self, path: Path, options: TableOptions, first: MatrixFile | None) -> None:
        super().__init__(path, options, first)
        matrix, labels = self.find_arrays()
        self.n_rows = matrix.shape[0]
        self.n_features = math.prod(matrix.shape[1:])
        check_n_features(path, self.n_features)
        self.carries_labels = labels is not None
        if labels is not None and labels.shape != (self.n_rows,):
            raise TableError(
                f"{path} has {self.n_rows} rows, but {labels.path} has labels of shape "
                f"{labels.shape}",
                "provide one label for each row",
            )
        self._matrix = RawRows(matrix)
        self._labels = None if labels is None else RawRows(labels)
        self.configure(first)

    def configure(self, first: MatrixFile | None) -> None:
        """Set the rows per block; reject options that have no meaning for a matrix."""
        for name in MEANINGLESS:
            if getattr(self.options, name) not in (None, (), 0):
                raise TableError(
                    f"is for tables with named columns, but {self.path} holds a matrix",
                    "leave it out",
                    parameter=name,
                )
        # Strings of labels may be longer than rows.
        row = max(each.array.row_bytes for each in (self._matrix, self._labels) if each)
        self._block_rows = max(1, self.options.block_bytes // max(1, row))

    @abstractmethod
    def find_arrays(self) -> tuple[RawArray, RawArray | None]:
        """Find the matrix and the labels, checked against the size of the file."""

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield matrices with labels, in order."""
        rows = map(self._check_exact, self._matrix.blocks(self._block_rows))
        if self._labels is None:
            yield from ((block, None) for block in rows)
        else:
            yield from zip(rows, self._labels.blocks(self._block_rows), strict=True)

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into ranges of rows; one if it is compressed."""
        arrays = [self._matrix.array] + ([] if self._labels is None else [self._labels.array])
        if any(array.file_offset is None for array in arrays):
            return super().cut(n_bytes)
        self.prepare_random_access()  # nobody who reads a part sees a checksum
        assert self.n_rows is not None
        size = n_bytes // max(1, arrays[0].row_bytes)
        parts = cut_evenly(0, self.n_rows, size)
        return [replace(p, n_rows=(p.end or 0) - p.begin, row=p.begin) for p in parts]

    def read_part(self, part: Part) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield the blocks of some rows."""
        if part.end is None:
            yield from self.blocks()
            return
        for first in range(part.begin, part.end, self._block_rows):
            count = min(self._block_rows, part.end - first)
            labels = None if self._labels is None else self._labels.rows(first, count)
            yield self._check_exact(self._matrix.rows(first, count)), labels

    def prepare_random_access(self) -> None:
        """Decompress the arrays to temporary files, once."""
        self._matrix.prepare_random_access()
        if self._labels is not None:
            self._labels.prepare_random_access()

    def block(self, number: int) -> tuple[Any, NDArray[Any] | None]:
        """Read a block again."""
        assert self.n_rows is not None
        first = number * self._block_rows
        count = min(self._block_rows, self.n_rows - first)
        labels = None if self._labels is None else self._labels.rows(first, count)
        return self._check_exact(self._matrix.rows(first, count)), labels

    def _check_exact(self, rows: NDArray[Any]) -> NDArray[Any]:
        return check_exact(self.path, rows, self.options.unused)


def check_exact(path: Path, rows: NDArray[Any], unused: Sequence[str | int]) -> NDArray[Any]:
    """Return the rows; raise an error for integers that float64 may not represent."""
    if rows.dtype.kind in "iu" and rows.dtype.itemsize == 8:
        large = (rows > LARGEST_EXACT) | (rows < -LARGEST_EXACT)
        large[:, [int(column) for column in unused]] = False
        if large.any():
            row, column = np.argwhere(large)[0]
            raise TableError(
                f"{path}: column {column} has integers beyond 2**53, such as "
                f"{rows[row, column]}, which float64 does not represent exactly",
                "save smaller numbers",
                "save a table with columns (Parquet), and read the column as categories",
            )
    return rows


def check_matrix(path: Path, what: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error for what is not an array of rows of real numbers; images are flattened."""
    if dtype.hasobject:
        raise TableError(
            f"{path}: {what} holds Python objects, which are not read because reading them "
            "can run code",
            "save numbers, for example with array.astype(float)",
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TableError(
            f"{path}: {what} must hold real numbers, got dtype {dtype}",
            "save it as float64 or as integers",
        )
    if len(shape) < 2:
        raise TableError(
            f"{path}: {what} must have two dimensions, rows and columns, got shape {shape}",
            "reshape the array; one column is array.reshape(-1, 1)",
        )
    if math.prod(shape[1:]) == 0:
        raise TableError(f"{path}: {what} must have at least one column, got shape {shape}")


@dataclass(frozen=True)
class RawArray:
    """The position of an array in a file, whose shape was checked against the size of the file."""

    path: Path
    open: Callable[[], AbstractContextManager[IO[bytes]]]  # a checksum is verified at the end
    offset: int  # of the first row in that stream
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool = False
    file_offset: int | None = None  # of the first row in the file; None if it is compressed
    has_checksum: bool = False

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
        if array.fortran_order and isinstance(array.path, RemotePath):
            array = replace(array, file_offset=None)  # only files of this machine are mapped
        self.array = array
        self._copy: TemporaryCopy | None = None
        self._verified = False  # by `prepare_random_access`

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, which has no temporary file."""
        return {"array": self.array, "_copy": None, "_verified": False}

    def blocks(self, n_rows: int) -> Iterator[NDArray[Any]]:
        """Yield all rows, `n_rows` at a time."""
        array = self.array
        total = array.shape[0]
        places = [(first, min(n_rows, total - first)) for first in range(0, total, n_rows)]
        if array.fortran_order:
            self.prepare_random_access()
        if array.fortran_order or self._copy is not None:
            for first, count in places:
                yield self.rows(first, count)
            return
        with array.open() as stream:
            read_fully(stream, array.offset)
            for _, count in places:
                yield self._convert(read_fully(stream, count * array.row_bytes), count)
            read_to_end(stream, array.path)

    def prepare_random_access(self) -> None:
        """Copy the bytes to a temporary file if they are compressed; verify their checksum."""
        array = self.array
        copy = TemporaryCopy() if array.file_offset is None else None
        if self._verified or (copy is None and not array.has_checksum):
            return
        with array.open() as stream:
            read_fully(stream, array.offset)
            left = array.n_bytes
            while left and (piece := read_fully(stream, min(_PIECE, left))):
                if copy is not None:
                    with copy_errors(array.path):
                        copy.stream.write(piece)
                left -= len(piece)
            if left:
                raise self._truncation_error()
            read_to_end(stream, array.path)
        if copy is not None:
            with copy_errors(array.path):
                copy.stream.flush()
        self._copy, self._verified = copy, True

    def rows(self, first: int, count: int) -> NDArray[Any]:
        """Read some rows; `prepare_random_access` has been called."""
        array = self.array
        if self._copy is not None:
            return self._read(self._copy.stream, 0, first, count)
        assert array.file_offset is not None
        with open_stream(array.path) as stream:
            return self._read(stream, array.file_offset, first, count)

    def _read(self, stream: IO[bytes], offset: int, first: int, count: int) -> NDArray[Any]:
        array = self.array
        if array.fortran_order:
            mapped = np.memmap(stream, array.dtype, "r", offset, array.shape, order="F")
            rows = np.ascontiguousarray(mapped[first : first + count])
            rows = rows.astype(array.dtype.newbyteorder("="), copy=False)
            return rows if rows.ndim < 3 else rows.reshape(count, -1)
        data = read_at(stream, offset + first * array.row_bytes, count * array.row_bytes)
        return self._convert(data, count)

    def _convert(self, data: bytes, count: int) -> NDArray[Any]:
        array = self.array
        if len(data) != count * array.row_bytes:
            raise self._truncation_error()
        rows = np.frombuffer(data, array.dtype).reshape((count, *array.shape[1:]))
        rows = rows.astype(array.dtype.newbyteorder("="), copy=False)
        return rows if rows.ndim < 3 else rows.reshape(count, -1)

    def _truncation_error(self) -> TableError:
        return TableError(
            f"{self.array.path} is truncated: it has fewer than the {self.array.shape[0]} rows "
            "that its header declares",
            GET_AGAIN,
        )
