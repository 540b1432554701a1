"""Arrow IPC files (Feather 2), mapped into memory, and the size of their decompressed messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kernelmill.files.remote_path import RemotePath
from kernelmill.io.columnar.columnar_files import INSPECTED_ROWS, ColumnarFile, arrow_errors
from kernelmill.io.compression import read_head
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, cut_evenly
from kernelmill.io.limits import MOST_BLOCK_BYTES, check_n_columns
from kernelmill.io.table_file import TableOptions

__all__ = ["ArrowFile", "decompressed_bytes"]

_HEADER_OF_MESSAGE, _DATA_OF_DICTIONARY = 2, 1
_BUFFERS_OF_BATCH, _COMPRESSION_OF_BATCH = 2, 3


class ArrowFile(ColumnarFile):
    """An Arrow IPC file (Feather 2), mapped into memory; its batches are cut into blocks."""

    def __init__(self, path: Path, options: TableOptions, first: ArrowFile | None) -> None:
        start = read_head(path, 6)
        if start.startswith(b"FEA1"):
            raise TableError(
                f"{path} is a Feather file of version 1",
                "write it again as version 2, the default of pyarrow.feather.write_feather",
            )
        if start != b"ARROW1":
            raise TableError(
                f"{path} is not an Arrow IPC file, or it is in the stream format, which has "
                "no random access",
                "write it with pyarrow.ipc.new_file or pyarrow.feather.write_feather",
            )
        super().__init__(path, options, first)

    def read_schema(self) -> Any:
        """Read the schema, and the number of rows."""
        with self._map() as source, arrow_errors(self.path):
            file = pa.ipc.open_file(source)
            self.n_rows = _count_rows(file)
            found = self._count_batches(source, file.num_record_batches)
            if found != file.num_record_batches:
                raise self.damage_error(f"{found} record batches", file.num_record_batches)
            check_n_columns(self.path, len(file.schema))
            return file.schema

    def _count_batches(self, source: Any, listed: int) -> int:
        """Return the number of record batches of a file; at most one more than its footer lists.

        If the footer of a damaged file lists fewer, the others would be lost silently. A batch is
        decompressed as a whole, so that its size must be bounded.
        """
        source.seek(8)  # after the magic bytes
        messages = pa.ipc.MessageReader.open_stream(source)
        found = 0
        while found <= listed:
            try:
                message = messages.read_next_message()
            except StopIteration:
                break
            except (pa.ArrowException, OSError):
                if found < listed:
                    raise
                break  # some writers put no mark between the batches and the footer
            size = decompressed_bytes(message)
            if size > MOST_BLOCK_BYTES:
                raise self.expansion_error("a compressed batch", size)
            found += message.type == "record batch"
        return found

    def read_first_rows(self, names: list[str]) -> Any:
        """Read the beginning of the first batch that has rows."""
        with self._open() as file:
            for number in range(file.num_record_batches):
                batch = self._read_batch(file, number)
                if batch.num_rows:
                    self.check_batch(batch)
                    return batch.select(names).slice(0, INSPECTED_ROWS)
        return None

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the kinds and the rows per block, and forget the positions of blocks."""
        super().configure(first)
        self._places: list[tuple[int, int, int, int]] = []  # batch, rows before it, start, rows

    def _map(self) -> Any:
        with arrow_errors(self.path):
            if isinstance(self.path, RemotePath):
                return pa.PythonFile(self.path.open("rb"), mode="r")
            return pa.memory_map(str(self.path))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with self._map() as source:
            with arrow_errors(self.path):
                file = pa.ipc.open_file(source)
            yield file

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into parts of one batch each, or of several small ones."""
        with self._open() as file:
            n_batches = file.num_record_batches
        n_parts = max(1, min(n_batches, self.n_bytes // n_bytes))
        return cut_evenly(0, n_batches, -(-n_batches // n_parts))

    def measure(self, part: Part) -> Part:
        """Count the rows of some batches."""
        with self._open() as file:
            numbers = range(part.begin, part.end or 0)
            return replace(part, n_rows=sum(self._read_batch(file, n).num_rows for n in numbers))

    def read_part(self, part: Part) -> Iterator[tuple[Any, None]]:
        """Yield the blocks of some batches."""
        before = part.row
        with self._open() as file:
            for number in range(part.begin, part.end or 0):
                batch = self._read_batch(file, number)
                for start, rows in self._cut_batch(batch, before):
                    yield self.convert(rows, before + start, checked=True), None
                before += batch.num_rows

    def _cut_batch(self, batch: Any, before: int) -> Iterator[tuple[int, Any]]:
        """Check a batch; yield the rows of each block, with the number of rows before them."""
        self.check_batch(batch)  # before it is cut: slices have no count of nulls
        for start in range(0, batch.num_rows, self._block_rows):
            for more, rows in self.split(batch.slice(start, self._block_rows), before + start):
                yield start + more, rows

    def _read_batch(self, file: Any, number: int) -> Any:
        with arrow_errors(self.path):
            return file.get_batch(number)

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Yield record batches in order, and store their positions."""
        places = []
        before = 0
        with self._open() as file:
            for number in range(file.num_record_batches):
                batch = self._read_batch(file, number)
                for start, part in self._cut_batch(batch, before):
                    places.append((number, before, start, part.num_rows))
                    yield self.convert(part, before + start, checked=True), None
                before += batch.num_rows
        self._places = places

    def block(self, number: int) -> tuple[Any, None]:
        """Read a block again."""
        batch_number, before, start, count = self._places[number]
        with self._open() as file:
            batch = self._read_batch(file, batch_number).slice(start, count)
            self.check_batch(batch)
            [(_, rows)] = self.split(batch, before + start)
            return self.convert(rows, before + start, checked=True), None


def _count_rows(file: Any) -> int:
    with_rows = getattr(file, "count_rows", None)
    if with_rows is not None:
        return int(with_rows())
    return sum(int(file.get_batch(number).num_rows) for number in range(file.num_record_batches))


def decompressed_bytes(message: Any) -> int:
    """The bytes that the buffers of a message declare to decompress to; 0 if none is compressed.

    pyarrow decompresses a record batch as a whole, whatever size its buffers declare, so the sizes
    are read first. The metadata of a message is a FlatBuffer: a table begins with the offset back
    to its list of fields, in which each field has an offset from the table, or 0 if it is absent.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kernelmill.io.columnar.arrow_file import decompressed_bytes
    >>> batch = pa.record_batch({"a": [0.0] * 1000})
    >>> options = pa.ipc.IpcWriteOptions(compression="zstd")
    >>> stream = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(stream, batch.schema, options=options) as writer:
    ...     writer.write_batch(batch)
    >>> [decompressed_bytes(message) for message in pa.ipc.MessageReader.open_stream(
    ...     stream.getvalue())]
    [0, 8000]
    """
    if message.type not in ("record batch", "dictionary batch"):
        return 0
    data = memoryview(message.metadata)
    try:
        header = _follow(data, _follow(data, 0), _HEADER_OF_MESSAGE)
        if message.type == "dictionary batch":
            header = _follow(data, header, _DATA_OF_DICTIONARY)
        if _find(data, header, _COMPRESSION_OF_BATCH) is None:
            return 0
        vector = _follow(data, header, _BUFFERS_OF_BATCH)
        (count,) = struct.unpack_from("<I", data, vector)
        body, total = memoryview(message.body), 0
        for place in range(count):
            offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * place)
            if length > 8:  # each begins with its size, or -1 if it is not compressed
                (size,) = struct.unpack_from("<q", body, offset)
                total += length if size < 0 else size
    except (struct.error, TypeError, ValueError):
        raise pa.ArrowInvalid("the metadata of a record batch is invalid") from None
    return total


def _find(data: memoryview, table: int, field: int) -> int | None:
    """Return the position of a field of a table; None if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    fields = table - back
    (size,) = struct.unpack_from("<H", data, fields)
    if 6 + 2 * field > size:
        return None
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * field)
    return table + offset if offset else None


def _follow(data: memoryview, table: int, field: int | None = None) -> int:
    """Return the position that a field refers to, or the root table at the beginning."""
    place = table if field is None else _find(data, table, field)
    if place is None:
        raise ValueError("a field is absent")
    (offset,) = struct.unpack_from("<I", data, place)
    return int(place + offset)
