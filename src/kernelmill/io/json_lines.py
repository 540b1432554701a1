"""JSON lines files: one object per line, whose members are the values of columns."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from kernelmill.errors import Message, Remedy
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
from kernelmill.io.file_parts import Part, align_part, cut_evenly, find_long_line
from kernelmill.io.limits import LONGEST_VALUE, MOST_COLUMNS, MOST_LEVELS
from kernelmill.io.table_file import LARGEST_EXACT, TableOptions, large_integer_error
from kernelmill.io.text.records import LONG_INTEGER

__all__ = ["JsonLinesFile"]

_WHOLE = Part(0, None)
_PIECE_BYTES = 4 << 20
# A line that does not end in }, or one that does not begin with {; pyarrow would join lines.
_BROKEN_LINE = re.compile(rb"[^}\s][ \t\r]*\n|\n[ \t\r]*[^{\s]")

_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][\da-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][\da-fA-F]{2})\\u[dD][c-fC-F][\da-fA-F]{2}"
)
_CHANGED_TYPE = re.compile(r"Column\(/(.+?)\) changed from (\w+) to (\w+)")


class _MixedTypesError(TableError):
    """A column has values of different types."""

    column = ""


class JsonLinesFile(ColumnarFile):
    """A file with one JSON object per line; the first 4 MiB determine the columns.

    Or fewer lines, which together have no more members and arrays than a table may have columns.
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
            data = _limit_columns(found[1])
            first = self._infer(data)
            fields = [(each.name, _widen(each.type)) for each in first.schema]
            self._schema = pa.schema([*fields, *((name, pa.null()) for name in self.unreadable)])
            self._first = self._parse(data, self._schema, self.unreadable)
        return self._schema

    def _infer(self, data: bytes) -> Any:
        """The rows of the first lines, without columns that have values of different types."""
        unreadable: dict[str, Message] = {}
        rows: Any = None
        while rows is None:
            try:
                rows = self._parse(data, None)
            except _MixedTypesError as error:
                if error.column in unreadable:
                    raise
                problem = error.message.problem.partition(": ")[2]
                remedy = "convert them to numbers or to strings"
                unreadable[error.column] = Message(problem, remedy)
                try:
                    data = _drop_members(data, unreadable)
                except (ValueError, AttributeError):  # pyarrow stopped before it
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
                if cut == 0 and len(data) <= LONGEST_VALUE:
                    size *= 2
                    continue
                cut = cut or len(data)
                if data[:cut].strip():
                    self._check_lines(stream, offset, data[:cut])
                    yield offset, data[:cut]
                offset += cut

    def _check_lines(self, stream: IO[bytes], offset: int, data: bytes) -> None:
        """Raise an error for a line that would exhaust the memory; `data` are at an offset."""
        found = _find_oversized_line(data)
        if found is not None:
            number, problem, remedy = found
            line = 1 + _count_lines(stream, offset) + number
            raise TableError(f"{self.path}, line {line}: {problem}", remedy)

    def _parse(self, data: bytes, schema: Any, ignored: Collection[str] = ()) -> Any:
        """Return the rows of some lines; columns in `ignored` are null."""
        broken = _find_broken_line(data)
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
            if "surrogate" in first and (half := _LONE_SURROGATE.search(data)) is not None:
                raise TableError(
                    f"{self.path} has a string with {half[0].decode()}, half of a surrogate pair, "
                    "which is not valid Unicode",
                    "write the character itself, or both halves",
                ) from None
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
        if LONG_INTEGER.search(data) is None:
            return
        assert self.columns is not None
        used = {each.name for each in self.columns if each.kind != "other" or self.originals}
        large = [
            name
            for name, column in zip(self._names, batch.columns, strict=True)
            if name in used.difference(self._rounded)
            and pa.types.is_floating(column.type)
            and exceeds_exact(column)
        ]
        if not large:
            return
        for line in data.split(b"\n"):
            # The digits may be in a string, or in a name.
            row = json.loads(line, parse_int=Decimal) if LONG_INTEGER.search(line) else {}
            for name in large:
                value = row.get(name)
                if isinstance(value, Decimal) and abs(value) > LARGEST_EXACT:
                    strings = "write the integers as strings if they are categories"
                    raise large_integer_error(str(self.path), name, str(value), strings)

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


def _find_broken_line(data: bytes) -> re.Match[bytes] | None:
    """Return where a line does not begin with { or does not end with }, if there is such a line."""
    n_ends = data.count(b"\n")
    if data.count(b"}\n") == n_ends == data.count(b"\n{") + data.endswith(b"\n"):
        return None
    return _BROKEN_LINE.search(data)


def _find_oversized_line(data: bytes) -> tuple[int, str, str] | None:
    """Return the number of a line that would exhaust the memory, the problem and a remedy.

    pyarrow overflows the stack for deep arrays, and keeps some kilobytes for each column.
    """
    place = find_long_line(data, LONGEST_VALUE)
    if place is not None:
        problem = f"the line is longer than {LONGEST_VALUE >> 20} MiB"
        return data.count(b"\n", 0, place), problem, "check that each line contains one object"
    if (sizes := _measure_lines(data)) is None:
        return None
    for number in np.flatnonzero((sizes.levels > MOST_LEVELS) | (sizes.parts > MOST_COLUMNS)):
        if sizes.levels[number] > MOST_LEVELS:
            problem = f"arrays and objects are nested {sizes.levels[number]} levels deep"
            return int(number), f"{problem}, more than {MOST_LEVELS}", "write inner ones as strings"
        problem = f"the line has {sizes.parts[number]} members and arrays"
        remedy = "write the numbers as a matrix (NPY), or as svmlight if most are 0"
        return int(number), f"{problem}, more than {MOST_COLUMNS}", remedy
    return None


class _LineSizes(NamedTuple):
    """The size of each line of JSON: nested levels; members of objects, arrays and objects."""

    levels: NDArray[np.int32]
    parts: NDArray[np.int32]


_QUOTE, _LINE_END, _COLON = b'"\n:'
_OPENING = b"[{"
_NOT_OPENING, _NOT_STRUCTURE = (
    bytes(set(range(256)).difference(kept)) for kept in (b"\n[{", b'\n[{]}":')
)
_ESCAPED = re.compile(rb"\\.")
_STEPS = np.zeros(256, np.int8)
_STEPS[[*_OPENING]], _STEPS[[*b"]}"]] = 1, -1


def _measure_lines(data: bytes) -> _LineSizes | None:
    """Return the sizes of lines; None if each has few brackets and is short, so that all are small.

    A line is measured correctly up to its first invalid character, where pyarrow stops.
    """
    if find_long_line(data, MOST_COLUMNS) is None:
        if data.count(b"{") + data.count(b"[") - data.count(b"\n{") <= MOST_LEVELS:
            return None  # at most one line has other brackets than its first one
        kept = np.frombuffer(data.translate(None, _NOT_OPENING) + b"\n", np.uint8)
        if np.diff(np.flatnonzero(kept == _LINE_END), prepend=-1).max() <= MOST_LEVELS:
            return None
    text = _ESCAPED.sub(b"", data) if b"\\" in data else data
    marks = np.frombuffer(text.translate(None, _NOT_STRUCTURE) + b"\n", np.uint8)
    ends = np.flatnonzero(marks == _LINE_END)
    begins, counts = np.append(0, ends[:-1] + 1), np.diff(ends, prepend=-1)
    # A mark is inside a string if an odd number of quotes is before it in its line.
    quotes = np.cumsum(marks == _QUOTE, dtype=np.uint8)
    before = np.append(np.uint8(0), quotes[ends[:-1]])
    outside = ((quotes - np.repeat(before, counts)) & 1) == 0
    depths = np.cumsum(_STEPS[marks] * outside, dtype=np.int32)
    levels = np.maximum.reduceat(depths, begins) - np.append(np.int32(0), depths[ends[:-1]])
    is_part = outside & ((_STEPS[marks] > 0) | (marks == _COLON))
    return _LineSizes(levels, np.add.reduceat(is_part, begins, dtype=np.int32))


def _count_lines(stream: IO[bytes], end: int) -> int:
    """Return the number of line ends before an offset."""
    pieces = (read_at(stream, at, min(1 << 20, end - at)) for at in range(0, end, 1 << 20))
    return sum(piece.count(b"\n") for piece in pieces)


def _limit_columns(data: bytes) -> bytes:
    """Return the first of some lines: together they have no more columns than a table may have."""
    data = data.lstrip()
    text = np.frombuffer(data, np.uint8)
    parts = np.flatnonzero((text == ord(":")) | (text == ord("[")))  # also in strings
    if len(parts) <= MOST_COLUMNS:
        return data
    most = int(parts[MOST_COLUMNS])
    end = data.rfind(b"\n", 0, most) + 1 or data.find(b"\n", most) + 1  # at least one line
    return data[:end] if end else data


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
