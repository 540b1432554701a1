"""Tables written atomically, in blocks of rows."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from kernelmill.io.errors import TableError
from kernelmill.io.writing.formats import WRITTEN_FORMATS, NpyWritten, WrittenFormat

__all__ = ["TableWriter", "WholeFile", "open_writer"]


def open_writer(
    path: str | os.PathLike[str],
    columns: Mapping[str, DTypeLike | str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
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
    inputs : iterable of path
        Files that are being read, which must not be replaced.

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
    return TableWriter(path, columns, inputs)


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
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, DTypeLike | str],
        inputs: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.n_rows = 0
        self._file = WholeFile(path, WRITTEN_FORMATS, inputs)
        self.path = self._file.path
        if not columns:
            raise TableError(f"columns must name at least one column of {self.path}, got none.")
        self._columns: dict[str, np.dtype[Any] | str] = {
            name: "string" if kind == "string" else np.dtype(kind) for name, kind in columns.items()
        }
        self._make = WRITTEN_FORMATS[self.path.suffix.lower()]
        self._make.check(self.path, self._columns)
        self._format: WrittenFormat | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stream = stack.enter_context(self._file)
            with self._system_errors():
                self._format = self._make(stream, self._columns)
            self._exits = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        written, self._format = self._format, None
        if kind is not None or written is None:
            if written is not None:
                written.abandon()
            self._exits.__exit__(kind, error, traceback)
            return
        with self._exits, self._system_errors():
            written.finish()

    def write(self, values: Mapping[str, Any]) -> None:
        """Append rows: for each column, in any order of names, as many values.

        Values are arrays of numpy, lists, or columns of a block; what is missing in these stays so
        (and is NaN in an NPY file).
        """
        if set(values) != set(self._columns):
            raise TableError(
                f"values must have the columns {', '.join(self._columns)}, got {', '.join(values)}."
            )
        arrays = {name: self._array(name, values[name]) for name in self._columns}
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise TableError(f"values must have one length, got {sorted(lengths)}.")
        writer, n_rows = self._opened(), lengths.pop()
        if n_rows:
            with self._system_errors():
                writer.write(arrays)
            self.n_rows += n_rows

    def write_matrix(self, matrix: ArrayLike) -> None:
        """Append rows of a matrix, whose columns are the columns of the file in order."""
        rows = np.asarray(matrix)
        if rows.ndim != 2 or rows.shape[1] != len(self._columns):
            raise TableError(
                f"matrix must have {len(self._columns)} columns, got shape {rows.shape}."
            )
        writer = self._opened()
        if isinstance(writer, NpyWritten):
            with self._system_errors():
                writer.write_matrix(rows)
            self.n_rows += len(rows)
        else:
            self.write(dict(zip(self._columns, rows.T, strict=True)))

    def _array(self, name: str, values: Any) -> Any:
        if hasattr(values, "null_count"):  # of pyarrow, with its missing values
            return values
        kind = self._columns[name]
        array = np.asarray(values, dtype=object if isinstance(kind, str) else kind)
        if array.ndim != 1:
            raise TableError(f"values of {name!r} must have one dimension, got {array.ndim}.")
        return array

    def _opened(self) -> WrittenFormat:
        if self._format is None:
            raise TableError(f"{self.path} is not open; write inside of a with statement.")
        return self._format

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._file.unwritable(error) from None


class WholeFile:
    """Gives a stream to a temporary file in the same folder, and renames it in the end.

    If the block of `with` ends by an error, or by Ctrl-C, the temporary file is removed, and a file
    that was there before stays as it was.

    Parameters
    ----------
    path : path
        Where the file will be.
    extensions : iterable of str
        What the name may end in.
    inputs : iterable of path
        Files that are being read, which must not be replaced.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        extensions: Iterable[str],
        inputs: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.path = Path(path)
        extension = self.path.suffix.lower()
        known = list(extensions)
        if extension not in known:
            allowed = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
            raise TableError(
                f"the extension of {self.path} must be {allowed}, got {extension or 'none'!r}."
            )
        self._target = self.path.resolve()  # the file behind a link, not the link
        if not self._target.parent.is_dir():
            raise TableError(f"the folder {self.path.parent} does not exist; make it first.")
        if self._target.exists():
            if not self._target.is_file():
                raise TableError(f"{self.path} must be a file, got something else of that name.")
            if any(Path(each).exists() and self._target.samefile(each) for each in inputs):
                raise TableError(f"{self.path} is being read; write to another file.")
        self._temporary = self._target.with_name(
            f".{self._target.name}.{secrets.token_hex(4)}.partial"
        )
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        try:
            self._stream = self._temporary.open("xb")
        except OSError as error:
            raise self.unwritable(error) from None
        return self._stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._stream is not None
        try:
            if kind is None:
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._stream.close()
                self._temporary.replace(self._target)
        except OSError as fault:
            raise self.unwritable(fault) from None
        finally:
            with suppress(OSError):  # what cannot be flushed to a full disk need not be
                self._stream.close()
            self._temporary.unlink(missing_ok=True)

    def unwritable(self, error: OSError) -> TableError:
        """The error of the system as one that names the file."""
        return TableError(f"{self.path} cannot be written: {error.strerror or error}.")
