"""JSON lines files: one object per line, whose members are the values of columns."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.json

from kernelmill.errors import Remedy
from kernelmill.io.columnar.arrow_values import exceeds_exact
from kernelmill.io.columnar.columnar_files import ColumnarFile
from kernelmill.io.compression import (
    TemporaryCopy,
    decompress,
    detect_compression,
    open_stream,
    read_at,
)
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, align_part, cut_evenly
from kernelmill.io.table_file import TableOptions, large_integer_error
from kernelmill.io.text.records import LONG_INTEGER

__all__ = ["JsonLinesFile"]

_WHOLE = Part(0, None)
_PIECE_BYTES = 4 << 20
_LONGEST_LINE = 64 << 20
# A line that does not end in }, or one that does not begin with {; pyarrow would join lines.
_BROKEN_LINE = re.compile(rb"[^}\s][ \t\r]*\n|\n[ \t\r]*[^{\s]")


_CHANGED_TYPE = re.compile(r"Column\(/(.+?)\) changed from (\w+) to (\w+)")


class _MixedTypesError(TableError):
    """A column has values of different types."""

    column = ""


class JsonLinesFile(ColumnarFile):
    """A file with one JSON object per line; the first 4 MiB determine the columns.

    Members that a line lacks are missing. Blocks are cut at fixed positions between lines, so that
    each can be read again. Compressed files are decompressed to a temporary file.
    """

    not_copied: ClassVar[tuple[str, ...]] = ("_copy", "_first")

    def __init__(self, path: Path, options: TableOptions, first: JsonLinesFile | None) -> None:
        self._copy: TemporaryCopy | None = None
        self._schema: Any = None if first is None else first._schema
        self._first: Any = None if first is None else first._first  # the first rows
        if first is not None:
            self.unreadable = first.unreadable
        self.path = path
        if path.is_file() and detect_compression(path) is not None:
            self._copy = decompress(path)
        super().__init__(path, options, first)

    def read_schema(self) -> Any:
        """Infer the columns from the first lines."""
        if self._schema is None:
            found = next(self._pieces(_PIECE_BYTES), None)
            if found is None:
                raise TableError(f"{self.path} has no lines", "use a file with rows")
            first = self._infer(found[1])
            fields = [(each.name, _widen(each.type)) for each in first.schema]
            self._schema = pa.schema([*fields, *((name, pa.null()) for name in self.unreadable)])
            self._first = self._parse(found[1], self._schema, self.unreadable)
        return self._schema

    def _infer(self, data: bytes) -> Any:
        """The rows of the first lines, without columns that have values of different types."""
        unreadable: dict[str, str] = {}
        rows: Any = None
        while rows is None:
            try:
                rows = self._parse(data, None)
            except _MixedTypesError as error:
                if error.column in unreadable:
                    raise
                unreadable[error.column] = error.message.problem.partition(": ")[2]
                try:
                    data = _drop_members(data, unreadable)
                except (ValueError, AttributeError, RecursionError):  # pyarrow stopped before it
                    raise error from None
        self.unreadable = unreadable
        return rows

    def read_first_rows(self, names: list[str]) -> Any:
        """Return the rows that the columns were inferred from."""
        return self._first.select(names)

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the kinds and the rows per block, and forget the positions of blocks."""
        super().configure(first)
        self._places: list[tuple[int, int, int]] = []  # offset, bytes, rows before

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self._copy is None and detect_compression(self.path) is not None:  # in another process
            self._copy = decompress(self.path)
        if self._copy is not None:
            yield self._copy.stream
        else:
            with open_stream(self.path) as stream:
                yield stream

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into ranges of bytes, or into one if it is compressed; `measure` follows."""
        if detect_compression(self.path) is not None:
            return super().cut(n_bytes)
        return cut_evenly(0, self.n_bytes, n_bytes)

    def measure(self, part: Part) -> Part:
        """Move the ends of a part to ends of lines, and count its rows."""
        return super().measure(align_part(self.path, part, self.n_bytes))

    def read_part(self, part: Part) -> Iterator[tuple[Any, None]]:
        """Yield the blocks of a part that was measured."""
        before = part.row
        for _, data in self._pieces(self._size(), part):
            batch = self._read(data)
            if batch is not None:
                yield self.convert(batch, before), None
                before += batch.num_rows

    def _size(self) -> int:
        """Return the bytes of text of a block."""
        return max(1 << 10, self.options.block_bytes)

    def _pieces(self, size: int, part: Part = _WHOLE) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the bytes of pieces of complete lines."""
        offset, stop = part.begin, sys.maxsize if part.end is None else part.end
        with self._open() as stream:
            while data := read_at(stream, offset, min(size, stop - offset)):
                is_last = len(data) < size or offset + len(data) == stop
                cut = len(data) if is_last else data.rfind(b"\n") + 1
                if cut == 0:
                    size *= 2
                    if size > _LONGEST_LINE:
                        raise TableError(
                            f"{self.path}: a line is longer than {_LONGEST_LINE >> 20} MiB",
                            "check that each line contains one object",
                        )
                    continue
                if data[:cut].strip():
                    yield offset, data[:cut]
                offset += cut

    def _parse(self, data: bytes, schema: Any, ignored: Collection[str] = ()) -> Any:
        """Return the rows of some lines; columns in `ignored` are null."""
        broken = _BROKEN_LINE.search(data)
        if data.lstrip()[:1] != b"{" or broken is not None:
            found = data.lstrip() if broken is None else data[broken.start() :].lstrip()
            raise self._line_error(found[:20])
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.path} is not UTF-8: {data[error.start : error.start + 8]!r}",
                "convert it to UTF-8",
            ) from None
        parsed = schema
        for name in ignored:
            parsed = parsed.remove(parsed.get_field_index(name))
        others = "infer" if schema is None else "ignore" if ignored else "error"
        options = pa.json.ParseOptions(explicit_schema=parsed, unexpected_field_behavior=others)
        reading = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        try:
            rows = pa.json.read_json(pa.BufferReader(data), reading, options)
            if rows.num_rows != sum(1 for line in data.split(b"\n") if line.strip()):
                raise self._line_error(b"several in a line")
            for name in ignored:
                kind = schema.field(name)
                rows = rows.append_column(kind, pa.nulls(rows.num_rows, kind.type))
            return rows
        except pa.ArrowException as error:
            first = str(error).strip().split("\n")[0].rstrip(".")
            if (changed := _CHANGED_TYPE.search(first)) is not None:
                mixed = _MixedTypesError(
                    f"{self.path}: column {changed[1]!r} has a {changed[2]} in one line and a "
                    f"{changed[3]} in another",
                    "write all values of a column as one type",
                    Remedy("leave the column out", drop=[changed[1].split("/")[0]]),
                )
                mixed.column = changed[1].split("/")[0]
                raise mixed from None
            raise TableError(f"{self.path} cannot be read as JSON lines: {first}") from None

    def _line_error(self, found: bytes) -> TableError:
        return TableError(
            f"{self.path} must have one JSON object per line, got {found!r}",
            'write each row as an object such as {"age": 31, "town": "Rome"}',
        )

    def _read(self, data: bytes) -> Any:
        for name in self.unreadable:
            if name not in self._unused or self.originals:
                raise self.type_error(name)
        try:
            table = self._parse(data, self._schema, self.unreadable)
        except TableError:
            unused = dict.fromkeys([*self.unreadable, *(() if self.originals else self._unused)])
            wide = pa.schema([(each.name, _with_decimals(each.type)) for each in self._schema])
            if wide == self._schema and len(unused) == len(self.unreadable):
                raise
            table = self._parse(data, wide, unused)  # 1 may be followed by 1.5
        (batch,) = table.select(self._schema.names).combine_chunks().to_batches() or [None]
        if batch is not None:
            self._check_integers(batch, data)
        return batch

    def _check_integers(self, batch: Any, data: bytes) -> None:
        """Raise an error for an integer that became another number."""
        if (found := LONG_INTEGER.search(data)) is None:
            return
        assert self.columns is not None
        used = {each.name for each in self.columns if each.kind != "other" or self.originals}
        for name, column in zip(self._names, batch.columns, strict=True):
            is_checked = name in used and name not in self._rounded
            if is_checked and pa.types.is_floating(column.type) and exceeds_exact(column):
                raise large_integer_error(str(self.path), name, found[0].decode())

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Yield record batches in order, and store their positions."""
        places, before = [], 0
        for offset, data in self._pieces(self._size()):
            batch = self._read(data)
            if batch is not None:
                places.append((offset, len(data), before))
                yield self.convert(batch, before), None
                before += batch.num_rows
        self._places = places

    def block(self, number: int) -> tuple[Any, None]:
        """Read a block again."""
        offset, size, before = self._places[number]
        with self._open() as stream:
            data = read_at(stream, offset, size)
        return self.convert(self._read(data), before), None


def _drop_members(data: bytes, names: Collection[str]) -> bytes:
    """Lines of objects without some of their members."""
    lines = [json.loads(line) for line in data.split(b"\n") if line.strip()]
    left = [{name: each for name, each in row.items() if name not in names} for row in lines]
    if not any(left):
        raise ValueError("nothing is left")
    return "\n".join(map(json.dumps, left)).encode()


def _with_decimals(kind: Any) -> Any:
    return pa.float64() if pa.types.is_integer(kind) else kind


def _widen(kind: Any) -> Any:
    """Return a type that later lines fit, too: null may be followed by anything."""
    # Dates among strings are strings, as in other text.
    return pa.string() if pa.types.is_null(kind) or pa.types.is_temporal(kind) else kind
