"""Tables written atomically, in blocks of rows."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kernelmill.errors import KernelmillError
from kernelmill.files.atomic_file import atomic_file, check_target
from kernelmill.files.outputs import Output, check_outputs
from kernelmill.files.remote_path import STDOUT, parse_path
from kernelmill.io.errors import TableError
from kernelmill.io.writing.formats import SPREADSHEET_FORMATS, TABLE_FORMATS, NpyFormat, TableFormat

__all__ = ["TableWriter", "is_text_file", "open_writer"]


def is_text_file(path: Any) -> bool:
    """Return whether `open_writer` writes delimited text to this path."""
    return path is not None and (
        str(path) == STDOUT or Path(str(path)).suffix.lower() in (".csv", ".tsv")
    )


def open_writer(
    path: str | os.PathLike[str],
    columns: Mapping[str, DTypeLike | str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    parameter: str = "path",
    escape_formulas: bool = False,
) -> TableWriter:
    """Open a file to write columns in blocks of rows; the extension determines the format.

    The file is written atomically: it appears at `path` when the ``with`` block ends. After an
    error or Ctrl-C nothing is left, and an existing file is unchanged.

    Parameters
    ----------
    path : path
        With the extension .csv, .tsv, .jsonl, .parquet, .feather, .arrow or .npy (numbers only: the
        columns side by side, in a common dtype). "-" is the standard output, as CSV.
    columns : dict of str to dtype
        The column names, in order, and what they hold: a NumPy dtype, "string", or a type
        of pyarrow.
    inputs : iterable of path
        Files that are being read, which must not be replaced.
    parameter : str, default="path"
        The name of the argument in errors about `path`.
    escape_formulas : bool, default=False
        Of CSV and TSV: put an apostrophe before strings that begin with =, +, -, @, a tab or a
        carriage return. Spreadsheets would run them as formulas.

    Returns
    -------
    TableWriter

    Raises
    ------
    TableError
        The format cannot be written, or the file cannot.
    MissingFolderError, PathIsFolderError, ArgumentError
        No file can be written at `path`; see `kernelmill.files.atomic_file`. Or it is an input.

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
    return TableWriter(path, columns, inputs, parameter, escape_formulas)


class TableWriter:
    """A context manager that writes blocks of rows to a file; see `open_writer`.

    Attributes
    ----------
    path : Path
        The file.
    n_rows : int
        The number of rows written so far.

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
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, DTypeLike | str],
        inputs: Iterable[str | os.PathLike[str]] = (),
        parameter: str = "path",
        escape_formulas: bool = False,
    ) -> None:
        self.path = parse_path(path)
        self.n_rows = 0
        self._parameter = parameter
        self._is_stdout = os.fspath(path) == STDOUT
        extension = ".csv" if self._is_stdout else self.path.suffix.lower()
        if extension not in TABLE_FORMATS:
            raise TableError(
                f"must have one of the extensions {', '.join(TABLE_FORMATS)}, got {str(path)!r}",
                parameter=parameter,
            )
        if not self._is_stdout:
            check_target(path, parameter=parameter)
            check_outputs([Output(path, parameter, "the table")], inputs)
        if not columns:
            raise TableError("must name at least one column, got none", parameter="columns")
        self._columns: dict[str, Any] = {
            name: kind
            if (isinstance(kind, str) and kind == "string") or hasattr(kind, "to_pandas_dtype")
            else np.dtype(kind)
            for name, kind in columns.items()
        }
        self._format_class = (SPREADSHEET_FORMATS if escape_formulas else TABLE_FORMATS)[extension]
        self._format_class.check(self.path, self._columns)
        self._format: TableFormat | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack, self._system_errors():
            stream: IO[bytes]
            if self._is_stdout:
                sys.stdout.flush()
                # A copy, since the format closes its stream.
                stream = stack.enter_context(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
            else:
                stream = stack.enter_context(atomic_file(self.path, parameter=self._parameter))
            self._format = self._format_class(stream, self._columns)
            self._exits = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        table_format, self._format = self._format, None
        assert table_format is not None
        if kind is not None:
            table_format.abandon()
            with self._system_errors():  # closing the file may fail too
                self._exits.__exit__(kind, error, traceback)
            return
        with self._system_errors(), self._exits:
            table_format.finish()

    def write(self, values: Mapping[str, Any]) -> None:
        """Append rows, given as the values of each column; the order of the names is arbitrary.

        Values are NumPy arrays, lists, or columns of a block, whose missing values stay missing
        (and are NaN in an NPY file).
        """
        if set(values) != set(self._columns):
            raise TableError(
                f"must have the columns {', '.join(self._columns)}, got {', '.join(values)}",
                parameter="values",
            )
        arrays = {name: self._convert(name, values[name]) for name in self._columns}
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise TableError(
                f"must have the same length, got {sorted(lengths)}", parameter="values"
            )
        writer, n_rows = self._check_open(), lengths.pop()
        if n_rows:
            with self._system_errors():
                writer.write(arrays)
            self.n_rows += n_rows

    def write_matrix(self, matrix: ArrayLike) -> None:
        """Append the rows of a matrix, whose columns are those of the file in order."""
        rows = np.asarray(matrix)
        if rows.ndim != 2 or rows.shape[1] != len(self._columns):
            raise TableError(
                f"must have {len(self._columns)} columns, got shape {rows.shape}",
                parameter="matrix",
            )
        writer = self._check_open()
        if isinstance(writer, NpyFormat):
            with self._system_errors():
                writer.write_matrix(rows)
            self.n_rows += len(rows)
        else:
            self.write(dict(zip(self._columns, rows.T, strict=True)))

    def _convert(self, name: str, values: Any) -> Any:
        if hasattr(values, "null_count"):  # a pyarrow array, which has its missing values
            return values
        kind = self._columns[name]
        array = np.asarray(values, dtype=kind if isinstance(kind, np.dtype) else object)
        if array.ndim != 1:
            raise TableError(f"values of {name!r} must have one dimension, got {array.ndim}")
        return array

    def _check_open(self) -> TableFormat:
        if self._format is None:
            raise TableError(f"{self.path} is not open", "use the writer in a with statement")
        return self._format

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """Convert errors of the system to a `TableError` that names the file."""
        try:
            yield
        except OSError as error:
            if isinstance(error, KernelmillError):
                raise
            if isinstance(error, BrokenPipeError):
                raise
            reason = error.strerror or str(error)
            name = "the standard output" if self._is_stdout else self.path
            raise TableError(
                f"{name} cannot be written: {reason[:1].lower()}{reason[1:]}",
                "free some disk space" if error.errno == errno.ENOSPC else "check the path",
                "write to another disk",
            ) from None
