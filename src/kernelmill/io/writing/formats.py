"""The formats that tables are written in."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelmill.io.errors import TableError

__all__ = ["SPREADSHEET_FORMATS", "TABLE_FORMATS", "NpyFormat", "TableFormat"]

_FORMULA = r"^([=+\-@\t\r])"  # how the formulas of spreadsheets begin

Columns = Mapping[str, Any]  # a dtype, "string" or a type of pyarrow


class TableFormat(ABC):
    """Writes blocks of columns to a stream; `finish` completes the data, but leaves it open."""

    @classmethod
    def check(cls, path: Path, columns: Columns) -> None:
        """Raise an error for columns that the format does not support."""
        for name, kind in columns.items():
            is_dtype = isinstance(kind, np.dtype)
            if is_dtype and (kind.kind not in "biuf" or kind.itemsize > 8):
                raise TableError(
                    f"column {name!r} of {path} must hold real numbers or strings, got {kind}"
                )

    @abstractmethod
    def __init__(self, stream: IO[bytes], columns: Columns) -> None: ...

    @abstractmethod
    def write(self, arrays: Mapping[str, Any]) -> None:
        """Append rows; the arrays are in the order of the columns."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still pending."""

    def abandon(self) -> None:  # noqa: B027  (nothing to do for most)
        """Release the stream, whose content is discarded."""


class _PyarrowFormat(TableFormat):
    """A format that pyarrow writes."""

    def __init__(self, stream: IO[bytes], columns: Columns) -> None:
        import pyarrow as pa  # noqa: PLC0415  (heavy)

        self._pa = pa
        self._schema = pa.schema([(name, self._find_type(kind)) for name, kind in columns.items()])
        self._writer = self._open(pa.PythonFile(stream, "w"))

    def _find_type(self, kind: Any) -> Any:
        if isinstance(kind, np.dtype):
            return self._pa.from_numpy_dtype(kind)
        return self._pa.string() if isinstance(kind, str) else kind

    @abstractmethod
    def _open(self, sink: Any) -> Any:
        """Open the writer of pyarrow."""

    def _make_batch(self, arrays: Mapping[str, Any]) -> Any:
        made = [
            self._convert(array, field.type)
            for array, field in zip(arrays.values(), self._schema, strict=True)
        ]
        return self._pa.record_batch(made, schema=self._schema)

    def abandon(self) -> None:
        """Close the writer, which would otherwise write to a closed file when garbage-collected."""
        with suppress(Exception):
            self._writer.close()

    def _convert(self, array: Any, kind: Any) -> Any:
        if isinstance(array, self._pa.Array):
            if self._pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            return array.cast(kind)
        return self._pa.array(_to_strings(array) if array.dtype == object else array, kind)

    def write(self, arrays: Mapping[str, Any]) -> None:
        self._writer.write(self._make_batch(arrays))

    def finish(self) -> None:
        self._writer.close()


def _to_strings(values: NDArray[Any]) -> list[str | None]:
    """Convert labels, which may be numbers, for a column of strings."""
    return [None if value is None else str(value) for value in values]


class CsvFormat(_PyarrowFormat):
    """Comma-separated values with a header, quoted where necessary."""

    delimiter: ClassVar[str] = ","
    escapes_formulas: ClassVar[bool] = False

    def _open(self, sink: Any) -> Any:
        names = self._schema.names
        if self.escapes_formulas:
            names = [re.sub(_FORMULA, r"'\1", name) for name in names]
        header = self.delimiter.join(_quote(name, self.delimiter) for name in names)
        self._header = header.encode() + b"\n"
        return sink

    def _write_header(self) -> None:
        """Write it once, with the first rows: nothing is printed before an error in these."""
        self._writer.write(self._header)
        self._header = b""

    def write(self, arrays: Mapping[str, Any]) -> None:
        import pyarrow.csv  # noqa: PLC0415

        batch = self._make_batch(arrays)
        self._write_header()
        if self.escapes_formulas:
            batch = self._escape_formulas(batch)
        # pyarrow quotes all strings, or rejects those that need quotes.
        options = pyarrow.csv.WriteOptions(
            include_header=False,
            delimiter=self.delimiter,
            quoting_style="needed" if self._needs_quotes(batch) else "none",
        )
        pyarrow.csv.write_csv(batch, self._writer, write_options=options)

    def _is_text(self, column: Any) -> bool:
        types = self._pa.types
        return bool(types.is_string(column.type) or types.is_large_string(column.type))

    def _escape_formulas(self, batch: Any) -> Any:
        import pyarrow.compute as pc  # noqa: PLC0415

        columns = [
            pc.replace_substring_regex(column, _FORMULA, r"'\1")
            if self._is_text(column)
            else column
            for column in batch.columns
        ]
        return self._pa.record_batch(columns, schema=batch.schema)

    def _needs_quotes(self, batch: Any) -> bool:
        import pyarrow.compute as pc  # noqa: PLC0415

        special = f'[{self.delimiter}"\r\n]|^$'  # also the empty string, which is not missing
        return any(
            pc.any(pc.match_substring_regex(column, special)).as_py()
            for column in batch.columns
            if self._is_text(column)
        )

    def finish(self) -> None:
        self._write_header()
        self._writer.flush()


class TsvFormat(CsvFormat):
    """Tab-separated values with a header."""

    delimiter = "\t"


class SpreadsheetCsvFormat(CsvFormat):
    """CSV in which strings that spreadsheets would run as formulas begin with an apostrophe."""

    escapes_formulas = True


class SpreadsheetTsvFormat(TsvFormat):
    """TSV without formulas."""

    escapes_formulas = True


def _quote(name: str, delimiter: str) -> str:
    if any(character in name for character in f'{delimiter}"\r\n'):
        return '"' + name.replace('"', '""') + '"'
    return name


class ParquetFormat(_PyarrowFormat):
    """Row groups of at least 65,536 rows, except the last."""

    _group_rows = 1 << 16

    def _open(self, sink: Any) -> Any:
        import pyarrow.parquet  # noqa: PLC0415

        self._waiting: list[Any] = []
        self._n_waiting = 0
        return pyarrow.parquet.ParquetWriter(sink, self._schema)

    def write(self, arrays: Mapping[str, Any]) -> None:
        self._waiting.append(self._make_batch(arrays))
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


class ArrowFormat(_PyarrowFormat):
    """An Arrow IPC file without compression, which can be mapped into memory."""

    def _open(self, sink: Any) -> Any:
        return self._pa.ipc.new_file(sink, self._schema)


class JsonLinesFormat(_PyarrowFormat):
    """One JSON object per line; missing values and NaN are null."""

    def _open(self, sink: Any) -> Any:
        return sink

    def write(self, arrays: Mapping[str, Any]) -> None:
        batch = self._make_batch(arrays)
        columns = [_without_nanoseconds(column) for column in batch.columns]
        for row in self._pa.record_batch(columns, batch.schema.names).to_pylist():
            # NaN and infinities have no form in JSON.
            finite = {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            line = json.dumps(finite, ensure_ascii=False, default=_to_json)
            self._writer.write(line.encode() + b"\n")

    def finish(self) -> None:
        self._writer.flush()


def _without_nanoseconds(array: Any) -> Any:
    """Times that Python can represent, in microseconds; others as strings with all digits."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    kind = array.type
    if not pa.types.is_temporal(kind) or getattr(kind, "unit", "") != "ns":
        return array
    if pa.types.is_timestamp(kind):
        wanted = pa.timestamp("us", kind.tz)
    else:
        wanted = pa.time64("us") if pa.types.is_time64(kind) else pa.duration("us")
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:
        return pc.replace_substring(array.cast(pa.string()), " ", "T")


def _to_json(value: Any) -> str | float:
    """Decimals as numbers if float64 has all of their digits, dates as 2024-05-31T12:00:00."""
    if isinstance(value, Decimal):
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    text: str = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text


class NpyFormat(TableFormat):
    """The columns side by side in a matrix; the header is completed at the end."""

    _header_bytes = 128

    @classmethod
    def check(cls, path: Path, columns: Columns) -> None:
        """Raise an error also for strings."""
        super().check(path, columns)
        for name, kind in columns.items():
            if _find_dtype(kind) is None:
                found = "strings" if str(kind) == "string" else f"values of type {kind}"
                raise TableError(
                    f"{path} can contain only numbers, but column {name!r} has {found}",
                    "write a .csv or .parquet file instead",
                )

    def __init__(
        self, stream: IO[bytes], columns: Columns, dtype: np.dtype[Any] | None = None
    ) -> None:
        self._stream = stream
        self.width = len(columns)
        self._dtype = dtype or np.result_type(*(_find_dtype(kind) for kind in columns.values()))
        self._n_rows = 0
        self._write_header()

    def _write_header(self) -> None:
        shape = (self._n_rows, self.width)
        text = f"{{'descr': {self._dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}"
        size = self._header_bytes - 10
        header = text.ljust(size - 1).encode() + b"\n"
        self._stream.write(b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + header)

    def write(self, arrays: Mapping[str, Any]) -> None:
        """Append rows, with the columns side by side."""
        self.write_matrix(np.column_stack([_fill_nan(each) for each in arrays.values()]))

    def write_matrix(self, rows: NDArray[Any]) -> None:
        """Append the rows of a matrix in the common dtype."""
        self._stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._n_rows += len(rows)

    def finish(self) -> None:
        """Write the header again, with the number of rows."""
        self._stream.seek(0)
        self._write_header()


def _find_dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the dtype of numbers; None for anything else."""
    if isinstance(kind, np.dtype):
        return kind
    found = None if isinstance(kind, str) else np.dtype(kind.to_pandas_dtype())
    return found if found is not None and found.kind in "biuf" else None


def _fill_nan(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False) if hasattr(array, "null_count") else array


TABLE_FORMATS: dict[str, type[TableFormat]] = {
    ".csv": CsvFormat,
    ".tsv": TsvFormat,
    ".parquet": ParquetFormat,
    ".feather": ArrowFormat,
    ".arrow": ArrowFormat,
    ".jsonl": JsonLinesFormat,
    ".npy": NpyFormat,
}

# The same, for those that may be opened by a spreadsheet.
SPREADSHEET_FORMATS: dict[str, type[TableFormat]] = {
    **TABLE_FORMATS,
    ".csv": SpreadsheetCsvFormat,
    ".tsv": SpreadsheetTsvFormat,
}
