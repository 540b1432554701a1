"""Parquet files, read in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.files.remote_path import RemotePath
from kernelmill.io.columnar.arrow_values import is_text
from kernelmill.io.columnar.columnar_files import INSPECTED_ROWS, ColumnarFile, arrow_errors
from kernelmill.io.columnar.parquet_pages import read_footer, scan_groups
from kernelmill.io.compression import TemporaryCopy, copy_errors
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part
from kernelmill.io.limits import MOST_BLOCK_BYTES, MOST_TEXT_BYTES, check_n_columns

__all__ = ["ParquetFile"]

_MOST_EXPANSION = 20  # of the pages of a row group, beyond MOST_BLOCK_BYTES
_PAGES_OF_TEXT = 2 * MOST_TEXT_BYTES  # of a row group; a dictionary and a page of each column
_BLOCKS_OF_TEXT = 4  # a block with long strings may take this many times its usual size
_BUFFER = 1 << 16  # read at once of each column, rather than all of it


class ParquetFile(ColumnarFile):
    """A Parquet file; blocks do not extend over row groups.

    Rows inside a group can be read from its beginning only. For blocks in random order, a file with
    groups larger than a block is copied to an uncompressed temporary file.
    """

    not_copied: ClassVar[tuple[str, ...]] = ("_copy", "_batches_copy")

    _stored_types: tuple[tuple[str, Any], ...] = ()  # of the columns, by the names in the file
    _has_checked_pages = False

    def read_schema(self) -> Any:
        """Read the schema, and the sizes of the row groups."""
        with self._open() as file, arrow_errors(self.path):
            metadata = file.metadata
            self.n_rows = metadata.num_rows
            groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
            self._group_rows = [group.num_rows for group in groups]
            total = sum(self._group_rows)
            if total != self.n_rows or min(self._group_rows, default=0) < 0:
                raise self.damage_error(f"{total} rows in its row groups", self.n_rows)
            self._row_bytes = max(
                (g.total_byte_size // max(1, g.num_rows) for g in groups), default=0
            )
            schema = file.schema_arrow
            check_n_columns(self.path, len(schema))
        self._stored_types = tuple(zip(schema.names, schema.types, strict=True))
        if any(map(is_text, schema.types)):
            self._check_pages()  # which determine how many rows are read at once
        return schema

    def _check_pages(self) -> None:
        """Raise an error for row groups whose pages would fill the memory, before the first read.

        A small part of a large file may be long, as constant columns are, so that the limit grows
        with the compressed pages. Headers of remote files would take a request each.
        """
        if self._has_checked_pages or isinstance(self.path, RemotePath):
            return
        with self.path.open("rb") as file, arrow_errors(self.path):
            for number, pages in enumerate(scan_groups(read_footer(file), file)):
                compressed = _MOST_EXPANSION * pages.stored
                if pages.held > max(MOST_BLOCK_BYTES, compressed):
                    raise self.expansion_error(f"row group {number}", pages.held)
                if pages.text > max(_PAGES_OF_TEXT, compressed):  # pyarrow makes copies
                    what = f"the strings of row group {number}"
                    raise self.expansion_error(what, pages.text, _PAGES_OF_TEXT)
                self._row_bytes = max(self._row_bytes, pages.row)
        self._has_checked_pages = True

    def read_first_rows(self, names: list[str]) -> Any:
        """Read the first rows of the first row group that has some."""
        groups = [group for group, n_rows in enumerate(self._group_rows) if n_rows][:1]
        most = _BLOCKS_OF_TEXT * self.options.block_bytes // max(1, self._row_bytes)
        n_rows = max(1, min(INSPECTED_ROWS, most))
        with self._open() as file, arrow_errors(self.path):
            batches = file.iter_batches(n_rows, row_groups=groups, columns=names, use_threads=False)
            rows = next(batches, None)
        if rows is not None:
            self.check_batch(rows)
        return rows

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the kinds and the rows per block, and forget what depends on them."""
        super().configure(first)
        if self._row_bytes > 0:  # long strings
            most = max(1, _BLOCKS_OF_TEXT * self.options.block_bytes // self._row_bytes)
            self._block_rows = min(self._block_rows, most)
        self._batches_copy: Any = None  # blocks in an Arrow file, converted
        # The group of each block, the rows of the file before it, those of the group, and its own.
        self._places: list[tuple[int, int, int, int]] = []

    def _open(self) -> Any:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 # other files do without it

        with arrow_errors(self.path):
            return ParquetFile(
                self.path.open("rb") if isinstance(self.path, RemotePath) else self.path,
                buffer_size=_BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
                # A string that occurs in a million rows stays one string.
                read_dictionary=[name for name, type_ in self._stored_types if is_text(type_)],
            )

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Yield record batches in order, and store their positions."""
        if self._batches_copy is not None:
            for number in range(self._batches_copy.num_record_batches):
                yield self.block(number)
            return
        places = []
        first_row = 0
        with self._open() as file:
            for group in range(len(self._group_rows)):
                before = first_row
                for rows in self._read_blocks(file, group, before):
                    places.append((group, first_row, first_row - before, rows.num_rows))
                    yield self.convert(rows, first_row, checked=True), None
                    first_row += rows.num_rows
        self._places = places

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into parts of one row group each, or of several small ones."""
        with self._open() as file:
            sizes = [
                file.metadata.row_group(n).total_byte_size for n in range(len(self._group_rows))
            ]
        parts: list[Part] = []
        begin = row = held = 0
        for group, size in enumerate(sizes):
            held += size
            if held >= n_bytes or group == len(sizes) - 1:
                n_rows = sum(self._group_rows[begin : group + 1])
                parts.append(Part(begin, group + 1, n_rows, row=row))
                begin, row, held = group + 1, row + n_rows, 0
        return parts

    def read_part(self, part: Part) -> Iterator[tuple[Any, None]]:
        """Yield the blocks of some row groups."""
        first_row = part.row
        with self._open() as file:
            for group in range(part.begin, part.end or 0):
                for rows in self._read_blocks(file, group, first_row):
                    yield self.convert(rows, first_row, checked=True), None
                    first_row += rows.num_rows

    def _read_blocks(self, file: Any, group: int, before: int) -> Iterator[Any]:
        """The rows of each block of a row group; `before` counts the rows of the file before it."""
        for batch in self._read_group(file, group):
            self.check_batch(batch)
            for _, rows in self.split(batch, before):
                yield rows
            before += batch.num_rows

    def _read_group(self, file: Any, group: int) -> Iterator[Any]:
        """The batches of a row group, which have as many rows as its metadata declares."""
        self._check_pages()
        n_rows = 0
        names = self._read_names()
        with arrow_errors(self.path):
            for batch in file.iter_batches(
                self._block_rows, row_groups=[group], columns=names, use_threads=False
            ):
                n_rows += batch.num_rows
                if batch.num_rows:
                    yield batch if names is None else self._add_unread(batch)
        if n_rows != self._group_rows[group]:
            raise self.damage_error(f"{n_rows} rows in row group {group}", self._group_rows[group])

    def _read_names(self) -> list[str] | None:
        """Return the columns to read, None for all: lists and bytes may expand to any size."""
        assert self.columns is not None
        if self.originals:
            return None
        used = {column.name for column in self.columns if column.kind != "other"}
        if len(used) == len(self.columns):
            return None
        if self._name_notes:
            others = [n for n in self._names if n not in used and self._expands(n)]
            if not others:
                return None
            raise TableError(
                f"{self.path}: column {others[0]!r} of type {self._types[others[0]]} is "
                "ambiguous, since names repeat",
                "write the file again with unique column names",
            )
        return [name for name in self._names if name in used]

    def _expands(self, name: str) -> bool:
        return self.kind_of(self._types[name]) == "other"

    def _add_unread(self, batch: Any) -> Any:
        """Return a batch with the columns that are not read, which are null."""
        read = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = [read.get(name, pa.nulls(batch.num_rows)) for name in self._names]
        return pa.record_batch(arrays, names=self._names)

    def prepare_random_access(self) -> None:
        """Copy the blocks to a temporary file if a row group has several."""
        if self._batches_copy is not None or max(self._group_rows, default=0) <= self._block_rows:
            return
        self._copy = TemporaryCopy()
        writer = None
        for batch, _ in self.blocks():
            for name in batch.schema.names:
                self.check_expansion(name, batch.column(name))
            decoded = _decode_dictionaries(batch)
            with copy_errors(self.path):
                if writer is None:
                    writer = pa.ipc.new_file(pa.PythonFile(self._copy.stream, "w"), decoded.schema)
                writer.write_batch(decoded)
        if writer is None:
            raise self.damage_error("no rows", self.n_rows or 0)
        with copy_errors(self.path):
            writer.close()
            self._copy.stream.flush()
        self._copy.stream.seek(0)
        self._batches_copy = pa.ipc.open_file(pa.PythonFile(self._copy.stream, "r"))

    def block(self, number: int) -> tuple[Any, None]:
        """Read a block again."""
        if self._batches_copy is not None:
            return self.convert(self._batches_copy.get_batch(number), 0, copied=True), None
        group, first_row, start, count = self._places[number]
        with self._open() as file:
            batches = list(self._read_group(file, group))
        if len(batches) != 1:
            raise self.changed_error()
        self.check_batch(batches[0])
        [(_, rows)] = self.split(batches[0].slice(start, count), first_row)
        return self.convert(rows, first_row, checked=True), None


def _decode_dictionaries(batch: Any) -> Any:
    """A batch without dictionaries, so that it can be written to a file together with others."""
    arrays = [
        pc.cast(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for array in batch.columns
    ]
    return pa.record_batch(arrays, names=batch.schema.names)
