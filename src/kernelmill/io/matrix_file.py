"""Files that hold a matrix of numbers, and maybe a label for each row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.io.errors import TableError
from kernelmill.io.raw_rows import RawArray, RawRows
from kernelmill.io.table_file import TableFile, TableOptions

__all__ = ["MatrixFile", "check_matrix", "check_options_of_matrices"]


_LARGEST_EXACT = 2**53


class MatrixFile(TableFile):
    """A file of rows of numbers; formats tell where they are by `arrays`."""

    def __init__(self, path: Path, options: TableOptions, first: MatrixFile | None) -> None:
        super().__init__(path, options, first)
        check_options_of_matrices(path, options)
        matrix, labels = self.arrays()
        self.n_rows = matrix.shape[0]
        self.n_features = int(np.prod(matrix.shape[1:]))
        self.carries_labels = labels is not None
        if labels is not None and labels.shape != (self.n_rows,):
            raise TableError(
                f"{path} has {self.n_rows} rows, but {labels.path} has labels of shape "
                f"{labels.shape}; give one label for each row."
            )
        self._matrix = RawRows(matrix)
        self._labels = None if labels is None else RawRows(labels)
        self._block_rows = max(1, options.block_bytes // max(1, matrix.row_bytes))

    @abstractmethod
    def arrays(self) -> tuple[RawArray, RawArray | None]:
        """Where the matrix and the labels are, checked against the size of the file."""

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Matrices with labels, in order."""
        rows = map(self._checked, self._matrix.blocks(self._block_rows))
        if self._labels is None:
            yield from ((block, None) for block in rows)
        else:
            yield from zip(rows, self._labels.blocks(self._block_rows), strict=True)

    def prepare_random_access(self) -> None:
        """Decompress, once."""
        self._matrix.prepare_random_access()
        if self._labels is not None:
            self._labels.prepare_random_access()

    def block(self, number: int) -> tuple[Any, NDArray[Any] | None]:
        """A block by its number."""
        assert self.n_rows is not None
        first = number * self._block_rows
        count = min(self._block_rows, self.n_rows - first)
        labels = None if self._labels is None else self._labels.rows(first, count)
        return self._checked(self._matrix.rows(first, count)), labels

    def _checked(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The same rows, if float64 can tell all their numbers apart."""
        if rows.dtype.kind in "iu" and rows.dtype.itemsize == 8:
            large = (rows > _LARGEST_EXACT) | (rows < -_LARGEST_EXACT)
            if large.any():
                row, column = np.argwhere(large)[0]
                raise TableError(
                    f"{self.path}: column {column} has whole numbers beyond 2**53, such as "
                    f"{rows[row, column]}, of which float64 would make one of several different "
                    "ones; save smaller numbers, or a table with columns (Parquet) and give "
                    "the column as categorical."
                )
        return rows


def check_options_of_matrices(path: Path, options: TableOptions) -> None:
    """Refuse options that mean nothing for a matrix, rather than ignore them."""
    for name in ("delimiter", "header", "categorical", "numeric", "skip_rows", "decimal"):
        if getattr(options, name) not in (None, (), 0):
            raise TableError(f"{name} is for tables with columns, but {path} holds a matrix.")


def check_matrix(path: Path, what: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is not a two-dimensional array of real numbers."""
    if dtype.hasobject:
        raise TableError(
            f"{path}: {what} holds Python objects, which are not read, as that may run code; save "
            "numbers, such as by array.astype(float)."
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TableError(f"{path}: {what} must hold real numbers, got dtype {dtype}.")
    if len(shape) != 2:
        raise TableError(
            f"{path}: {what} must have two dimensions, rows and columns, got shape {shape}."
        )
    if shape[1] == 0:
        raise TableError(f"{path}: {what} must have at least one column, got shape {shape}.")
