"""The formats that tables are written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelmill.io.errors import TableError

__all__ = ["WRITTEN_FORMATS", "NpyWritten", "WrittenFormat"]

Columns = Mapping[str, np.dtype[Any] | str]


class WrittenFormat(ABC):
    """Puts blocks of columns into a stream; `finish` completes it, but does not close it."""

    @classmethod
    def check(cls, path: Path, columns: Columns) -> None:
        """Refuse columns that the format cannot hold."""
        for name, kind in columns.items():
            if not isinstance(kind, str) and (kind.kind not in "biuf" or kind.itemsize > 8):
                raise TableError(
                    f"column {name!r} of {path} must hold real numbers or strings, got {kind}."
                )

    @abstractmethod
    def __init__(self, stream: IO[bytes], columns: Columns) -> None: ...

    @abstractmethod
    def write(self, arrays: Mapping[str, Any]) -> None:
        """Append rows; the arrays are in the order of the columns."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still missing."""

    def abandon(self) -> None:  # noqa: B027  (nothing to do for most)
        """Let go of the stream, whose content is of no interest any more."""


class _ArrowWritten(WrittenFormat):
    """What pyarrow writes."""

    def __init__(self, stream: IO[bytes], columns: Columns) -> None:
        import pyarrow as pa  # noqa: PLC0415  (heavy)

        self._pa = pa
        types = [
            pa.string() if isinstance(kind, str) else pa.from_numpy_dtype(kind)
            for kind in columns.values()
        ]
        self._schema = pa.schema(list(zip(columns, types, strict=True)))
        self._writer = self._opened(pa.PythonFile(stream, "w"))

    @abstractmethod
    def _opened(self, sink: Any) -> Any:
        """The writer of pyarrow."""

    def _batch(self, arrays: Mapping[str, Any]) -> Any:
        made = [
            self._array(array, field.type)
            for array, field in zip(arrays.values(), self._schema, strict=True)
        ]
        return self._pa.record_batch(made, schema=self._schema)

    def abandon(self) -> None:
        """Close the writer, which would otherwise write to a closed file when it is collected."""
        with suppress(Exception):
            self._writer.close()

    def _array(self, array: Any, kind: Any) -> Any:
        if isinstance(array, self._pa.Array):
            if self._pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            return array.cast(kind)
        return self._pa.array(_strings(array) if array.dtype == object else array, kind)

    def write(self, arrays: Mapping[str, Any]) -> None:
        self._writer.write(self._batch(arrays))

    def finish(self) -> None:
        self._writer.close()


def _strings(values: NDArray[Any]) -> list[str | None]:
    """Labels may be numbers: they are written as text where strings were announced."""
    return [None if value is None else str(value) for value in values]


class CsvWritten(_ArrowWritten):
    """Comma-separated, with a header; values in quotes where that is needed."""

    delimiter: ClassVar[str] = ","

    def _opened(self, sink: Any) -> Any:
        header = self.delimiter.join(_quoted(name, self.delimiter) for name in self._schema.names)
        sink.write(header.encode() + b"\n")
        return sink

    def write(self, arrays: Mapping[str, Any]) -> None:
        import pyarrow.csv  # noqa: PLC0415

        batch = self._batch(arrays)
        # pyarrow puts quotes around all strings or refuses those that need them.
        options = pyarrow.csv.WriteOptions(
            include_header=False,
            delimiter=self.delimiter,
            quoting_style="needed" if self._needs_quotes(batch) else "none",
        )
        pyarrow.csv.write_csv(batch, self._writer, write_options=options)

    def _needs_quotes(self, batch: Any) -> bool:
        import pyarrow.compute as pc  # noqa: PLC0415

        special = f'[{self.delimiter}"\r\n]|^$'  # and an empty string, which is not a missing one
        return any(
            pc.any(pc.match_substring_regex(column, special)).as_py()
            for column in batch.columns
            if self._pa.types.is_string(column.type)
        )

    def finish(self) -> None:
        self._writer.flush()


class TsvWritten(CsvWritten):
    """The same with tabs."""

    delimiter = "\t"


def _quoted(name: str, delimiter: str) -> str:
    if any(character in name for character in f'{delimiter}"\r\n'):
        return '"' + name.replace('"', '""') + '"'
    return name


class ParquetWritten(_ArrowWritten):
    """Row groups of at least 65,536 rows, but for the last."""

    _group_rows = 1 << 16

    def _opened(self, sink: Any) -> Any:
        import pyarrow.parquet  # noqa: PLC0415

        self._waiting: list[Any] = []
        self._n_waiting = 0
        return pyarrow.parquet.ParquetWriter(sink, self._schema)

    def write(self, arrays: Mapping[str, Any]) -> None:
        self._waiting.append(self._batch(arrays))
        self._n_waiting += self._waiting[-1].num_rows
        if self._n_waiting >= self._group_rows:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if self._waiting:
            self._writer.write_table(self._pa.Table.from_batches(self._waiting))
        self._waiting, self._n_waiting = [], 0

    def finish(self) -> None:
        self._write_waiting()
        super().finish()


class ArrowWritten(_ArrowWritten):
    """An Arrow IPC file without compression, which can be mapped into memory."""

    def _opened(self, sink: Any) -> Any:
        return self._pa.ipc.new_file(sink, self._schema)


class NpyWritten(WrittenFormat):
    """The columns side by side; the header gets the number of rows at the end."""

    _header_bytes = 128

    @classmethod
    def check(cls, path: Path, columns: Columns) -> None:
        """Refuse text."""
        super().check(path, columns)
        texts = [name for name, kind in columns.items() if isinstance(kind, str)]
        if texts:
            raise TableError(
                f"{path} can hold numbers only, but column {texts[0]!r} is text; write a .csv or "
                ".parquet file."
            )

    def __init__(
        self, stream: IO[bytes], columns: Columns, dtype: np.dtype[Any] | None = None
    ) -> None:
        self._stream = stream
        self.width = len(columns)
        self._dtype = np.result_type(*columns.values()) if dtype is None else dtype
        self._n_rows = 0
        self._write_header()

    def _write_header(self) -> None:
        shape = (self._n_rows, self.width)
        text = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        size = self._header_bytes - 10
        header = text.ljust(size - 1).encode() + b"\n"
        self._stream.write(b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + header)

    def write(self, arrays: Mapping[str, Any]) -> None:
        """Append rows, side by side."""
        self.write_matrix(np.column_stack([_with_nan(each) for each in arrays.values()]))

    def write_matrix(self, rows: NDArray[Any]) -> None:
        """Append rows of a matrix, as the common dtype."""
        self._stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._n_rows += len(rows)

    def finish(self) -> None:
        """Write the header again, now with the number of rows."""
        self._stream.seek(0)
        self._write_header()


def _with_nan(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False) if hasattr(array, "null_count") else array


WRITTEN_FORMATS: dict[str, type[WrittenFormat]] = {
    ".csv": CsvWritten,
    ".tsv": TsvWritten,
    ".parquet": ParquetWritten,
    ".feather": ArrowWritten,
    ".arrow": ArrowWritten,
    ".npy": NpyWritten,
}
