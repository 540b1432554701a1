"""Columns to files, complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kernelmill.io.errors import TableError
from kernelmill.io.written_formats import WRITTEN_FORMATS, WrittenFormat

__all__ = ["TableWriter", "open_writer"]


def open_writer(
    path: str | os.PathLike[str], columns: Mapping[str, DTypeLike | str]
) -> TableWriter:
    """A file of columns to be written in blocks of rows; its extension tells the format.

    The rows go to a temporary file in the same folder, which gets the name `path` when the block of
    `with` ends. If it ends by an error or by Ctrl-C, nothing is left, and a file that was there
    before stays as it was.

    Parameters
    ----------
    path : path
        With the extension .csv, .tsv, .parquet, .feather, .arrow or .npy (numbers only: the columns
        side by side, in a common dtype).
    columns : dict of str to dtype
        The names of the columns, in order, and what they hold: a numpy dtype or "string".

    Returns
    -------
    TableWriter

    Raises
    ------
    TableError
        The extension is unknown, the folder does not exist or cannot be written to.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_writer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "predictions.csv"
    ...     with open_writer(path, {"label": "string", "probability": "float32"}) as writer:
    ...         writer.write({"label": ["yes", "no"], "probability": [0.9, 0.6]})
    ...     print(path.read_text(), end="")
    label,probability
    yes,0.9
    no,0.6
    """
    return TableWriter(path, columns)


class TableWriter:
    """What `open_writer` returns: a context manager that takes blocks of rows.

    Attributes
    ----------
    path : Path
        Where the file will be.
    n_rows : int
        The rows written so far.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from kernelmill.io import open_writer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "features.npy"
    ...     with open_writer(path, {"a": "float32", "b": "float32"}) as writer:
    ...         writer.write_matrix(np.ones((2, 2)))
    ...     np.load(path)
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """

    def __init__(
        self, path: str | os.PathLike[str], columns: Mapping[str, DTypeLike | str]
    ) -> None:
        self.path = Path(path)
        self.n_rows = 0
        known = ", ".join(WRITTEN_FORMATS)
        extension = self.path.suffix.lower()
        if extension not in WRITTEN_FORMATS:
            raise TableError(
                f"the extension of {self.path} must be one of {known}, got {extension or 'none'!r}."
            )
        if not columns:
            raise TableError(f"columns must name at least one column of {self.path}, got none.")
        self._target = self.path.resolve()  # the file behind a link, not the link
        if not self._target.parent.is_dir():
            raise TableError(f"the folder {self.path.parent} does not exist; make it first.")
        if self._target.exists() and not self._target.is_file():
            raise TableError(f"{self.path} must be a file, got something else of that name.")
        self._columns: dict[str, np.dtype[Any] | str] = {
            name: "string" if kind == "string" else np.dtype(kind) for name, kind in columns.items()
        }
        self._make = WRITTEN_FORMATS[extension]
        self._make.check(self.path, self._columns)
        self._temporary = self._target.with_name(
            f".{self._target.name}.{secrets.token_hex(4)}.partial"
        )
        self._format: WrittenFormat | None = None

    def __enter__(self) -> Self:
        try:
            self._stream = self._temporary.open("xb")
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror}.") from None
        try:
            self._format = self._make(self._stream, self._columns)
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None or self._format is None:
            self._discard()
            return
        try:
            self._format.finish()
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._temporary.replace(self._target)
        except BaseException as fault:
            self._discard()
            if isinstance(fault, OSError):
                raise TableError(f"{self.path} cannot be written: {fault.strerror}.") from None
            raise
        finally:
            self._format = None

    def _discard(self) -> None:
        self._format = None
        with suppress(OSError):  # what cannot be flushed to a full disk need not be
            self._stream.close()
        self._temporary.unlink(missing_ok=True)

    def write(self, values: Mapping[str, ArrayLike]) -> None:
        """Append rows: for each column, in any order of names, as many values."""
        if set(values) != set(self._columns):
            raise TableError(
                f"values must have the columns {', '.join(self._columns)}, got {', '.join(values)}."
            )
        arrays = {name: self._array(name, values[name]) for name in self._columns}
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise TableError(f"values must have one length, got {sorted(lengths)}.")
        self._append(arrays, lengths.pop())

    def write_matrix(self, matrix: ArrayLike) -> None:
        """Append rows of a matrix, whose columns are the columns of the file in order."""
        rows = np.asarray(matrix)
        if rows.ndim != 2 or rows.shape[1] != len(self._columns):
            raise TableError(
                f"matrix must have {len(self._columns)} columns, got shape {rows.shape}."
            )
        writer = self._opened()
        if writer.takes_matrices:
            self._guarded(lambda: writer.write_matrix(rows))
            self.n_rows += len(rows)
        else:
            self.write(dict(zip(self._columns, rows.T, strict=True)))

    def _array(self, name: str, values: ArrayLike) -> NDArray[Any]:
        kind = self._columns[name]
        array = np.asarray(values, dtype=object if isinstance(kind, str) else kind)
        if array.ndim != 1:
            raise TableError(f"values of {name!r} must have one dimension, got {array.ndim}.")
        return array

    def _append(self, arrays: dict[str, NDArray[Any]], n_rows: int) -> None:
        writer = self._opened()
        if n_rows:
            self._guarded(lambda: writer.write(arrays))
            self.n_rows += n_rows

    def _opened(self) -> WrittenFormat:
        if self._format is None:
            raise TableError(f"{self.path} is not open; write inside of a with statement.")
        return self._format

    def _guarded(self, action: Any) -> None:
        try:
            action()
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}.") from None
