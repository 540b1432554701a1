"""Files with typed columns: Parquet and Arrow IPC (Feather 2)."""

from __future__ import annotations

import shlex
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from kernelmill.io.columnar.arrow_values import (
    as_categories,
    as_numbers,
    inexact_integer,
    kind_of_type,
)
from kernelmill.io.compression import copying_errors, first_bytes
from kernelmill.io.errors import NotANumberError, TableError
from kernelmill.io.table_file import (
    Column,
    TableFile,
    TableOptions,
    given_kinds,
    overridden_kinds,
    unique_names,
)
from kernelmill.io.text.records import MISSING_MARKERS, is_number

__all__ = ["ArrowFile", "ColumnarFile", "ParquetFile", "arrow_errors"]


class ColumnarFile(TableFile):
    """A file whose columns have names and types; a format tells its schema by `schema`."""

    def __init__(self, path: Path, options: TableOptions, first: ColumnarFile | None) -> None:
        super().__init__(path, options, first)
        for name in ("delimiter", "header", "skip_rows", "decimal"):
            if getattr(options, name) not in (None, 0):
                raise TableError(f"{name} is for text files, but {path} has columns with types.")
        with arrow_errors(path):  # names may not be UTF-8
            schema = self.schema()
            names = schema.names
        self._names, notes = unique_names(names)
        self.notes += notes
        if not self._names:
            raise TableError(f"{path} has no columns; give a file with some.")
        types = dict(zip(self._names, schema.types, strict=True))
        kinds = {name: kind_of_type(type_) for name, type_ in types.items()}
        given = given_kinds(self._names, options.categorical, options.numeric, str(path))
        columns = overridden_kinds(kinds, given)
        for column in columns:
            if column.kind != kinds[column.name]:
                self._check_override(column, kinds[column.name], types[column.name])
        if first is not None and first.columns is not None:
            order = {column.name: place for place, column in enumerate(first.columns)}
            columns = tuple(sorted(columns, key=lambda each: order.get(each.name, len(order))))
        self.columns = columns
        row = sum(8 if column.kind == "numeric" else 16 for column in columns)
        self._block_rows = max(1, options.block_bytes // row)

    @abstractmethod
    def schema(self) -> Any:
        """The pyarrow schema of the file."""

    def _check_override(self, column: Column, kind: str, type_: Any) -> None:
        possible = {("numeric", "category"), ("date", "category"), ("category", "numeric")}
        if (kind, column.kind) not in possible:
            option = "categorical" if column.kind == "category" else "numeric"
            if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
                raise TableError(
                    f"{self.path}: column {column.name!r} holds bytes (type {type_}), which cannot "
                    f"be read as {option}; write it as a column of strings."
                )
            raise TableError(
                f"{self.path}: column {column.name!r} of type {type_} cannot be read as "
                f"{option}; leave it out of {option}."
            )

    def finished(self, batch: Any, first_row: int) -> Any:
        """A batch with the kinds of columns that blocks have; rows count from 0 in the file."""
        assert self.columns is not None
        with arrow_errors(self.path):
            # Offsets in a damaged file may point anywhere.
            batch.validate(full=True)
        places = {name: place for place, name in enumerate(self._names)}
        arrays = []
        for column in self.columns:
            array = batch.column(places[column.name])
            if column.kind == "numeric":
                arrays.append(self._numbers(column, array, first_row))
            elif column.kind == "category":
                arrays.append(as_categories(array))
            else:
                arrays.append(array)
        return pa.record_batch(arrays, names=[column.name for column in self.columns])

    def _numbers(self, column: Column, array: Any, first_row: int) -> Any:
        large = inexact_integer(array)
        if large is not None:
            raise TableError(
                f"{self.path}: column {column.name!r} has whole numbers beyond 2**53, such as "
                f"{large}, of which float64 would make one of several different ones; read it as "
                f"categories: categorical=[{column.name!r}] "
                f"(--categorical {shlex.quote(column.name)}), or write it as smaller numbers."
            )
        try:
            return as_numbers(array)
        except pa.ArrowInvalid:
            for place, value in enumerate(array.to_pylist()):
                word = str(value).strip()
                if value is not None and word not in MISSING_MARKERS and not is_number(word):
                    raise NotANumberError(
                        f"{self.path}, row {first_row + place}, column {column.name!r}: {word!r} "
                        "is not a number",
                        "correct it, or leave the column out of numeric",
                    ) from None
            raise


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Errors of pyarrow as ones that name the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = str(error).strip().split("\n")[0].rstrip(".")
        raise TableError(f"{path} is damaged or of another format: {first_line}.") from None


def as_plain(batch: Any) -> Any:
    """A batch without dictionaries, which can be written to a file beside others."""
    arrays = [
        pc.cast(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for array in batch.columns
    ]
    return pa.record_batch(arrays, names=batch.schema.names)


_BUFFER = 1 << 16  # read at once of each column, rather than all of it


class ParquetFile(ColumnarFile):
    """A Parquet file; blocks do not extend over row groups.

    Rows inside of a group can be reached from its beginning only: a file with groups larger than a
    block is copied to an uncompressed temporary file when a shuffled order is first wanted.
    """

    def __init__(self, path: Path, options: TableOptions, first: ParquetFile | None) -> None:
        super().__init__(path, options, first)
        self._copy: Any = None
        self._places: list[tuple[int, int]] = []  # the group and the first row of each block
        with self._opened() as file:
            metadata = file.metadata
            self.n_rows = metadata.num_rows
            groups = range(metadata.num_row_groups)
            self._group_rows = [metadata.row_group(group).num_rows for group in groups]

    def _opened(self) -> Any:
        with arrow_errors(self.path):
            return pa.parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)

    def schema(self) -> Any:
        """The schema as pyarrow reads it."""
        with self._opened() as file, arrow_errors(self.path):
            return file.schema_arrow

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Record batches in order."""
        if self._copy is not None:
            for number in range(self._copy.num_record_batches):
                yield self.block(number)
            return
        places = []
        first_row = 0
        with self._opened() as file:
            for group in range(len(self._group_rows)):
                for batch in self._batches(file, group):
                    places.append((group, first_row))
                    yield self.finished(batch, first_row), None
                    first_row += batch.num_rows
        self._places = places

    def _batches(self, file: Any, group: int) -> Iterator[Any]:
        with arrow_errors(self.path):
            batches = file.iter_batches(self._block_rows, row_groups=[group], use_threads=False)
            yield from (batch for batch in batches if batch.num_rows)

    def prepare_random_access(self) -> None:
        """Copy the blocks to a temporary file if there are several in a row group."""
        if self._copy is not None or max(self._group_rows, default=0) <= self._block_rows:
            return
        copy = tempfile.TemporaryFile()  # noqa: SIM115  (kept as long as this object)
        weakref.finalize(self, copy.close)
        writer = None
        for batch, _ in self.blocks():
            plain = as_plain(batch)
            with copying_errors(self.path):
                if writer is None:
                    writer = pa.ipc.new_file(pa.PythonFile(copy, "w"), plain.schema)
                writer.write_batch(plain)
        assert writer is not None
        with copying_errors(self.path):
            writer.close()
            copy.flush()
        copy.seek(0)
        self._copy = pa.ipc.open_file(pa.PythonFile(copy, "r"))
        self._names = tuple(column.name for column in self.columns or ())

    def block(self, number: int) -> tuple[Any, None]:
        """A block by its number."""
        if self._copy is not None:
            return self.finished(self._copy.get_batch(number), 0), None
        group, first_row = self._places[number]
        with self._opened() as file:
            (batch,) = self._batches(file, group)
        return self.finished(batch, first_row), None


class ArrowFile(ColumnarFile):
    """An Arrow IPC file, mapped into memory; its batches are cut into blocks."""

    def __init__(self, path: Path, options: TableOptions, first: ArrowFile | None) -> None:
        start = first_bytes(path, 6)
        if start.startswith(b"FEA1"):
            raise TableError(
                f"{path} is a Feather file of version 1; write it again as version 2 (the default "
                "of pyarrow.feather.write_feather)."
            )
        if start != b"ARROW1":
            raise TableError(
                f"{path} is not an Arrow IPC file (or it is a stream, which cannot be read at any "
                "place); write it by pyarrow.ipc.new_file or pyarrow.feather.write_feather."
            )
        super().__init__(path, options, first)
        self._places: list[tuple[int, int, int, int]] = []  # batch, rows before it, start, rows
        with self._opened() as file, arrow_errors(path):
            self.n_rows = _count_rows(file)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with arrow_errors(self.path):
            source = pa.memory_map(str(self.path))
        with source:
            with arrow_errors(self.path):
                file = pa.ipc.open_file(source)
            yield file

    def schema(self) -> Any:
        """The schema of the file."""
        with self._opened() as file:
            return file.schema

    def _batch(self, file: Any, number: int) -> Any:
        with arrow_errors(self.path):
            return file.get_batch(number)

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Record batches in order."""
        places = []
        before = 0
        with self._opened() as file:
            for number in range(file.num_record_batches):
                batch = self._batch(file, number)
                for start in range(0, batch.num_rows, self._block_rows):
                    part = batch.slice(start, self._block_rows)
                    places.append((number, before, start, part.num_rows))
                    yield self.finished(part, before + start), None
                before += batch.num_rows
        self._places = places

    def block(self, number: int) -> tuple[Any, None]:
        """A block by its number."""
        batch_number, before, start, count = self._places[number]
        with self._opened() as file:
            batch = self._batch(file, batch_number)
            return self.finished(batch.slice(start, count), before + start), None


def _count_rows(file: Any) -> int:
    with_rows = getattr(file, "count_rows", None)
    if with_rows is not None:
        return int(with_rows())
    return sum(int(file.get_batch(number).num_rows) for number in range(file.num_record_batches))
