"""The decompressed sizes of the pages of Parquet files.

pyarrow decompresses a page as a whole, whatever size its header declares, and holds a page and a
dictionary of every column at once. Therefore the headers are read here first. pyarrow's own
metadata reader cannot be used: some damaged metadata crash the process.

Metadata and headers are structs of Thrift's compact protocol: fields with ascending numbers, each
with a type, until a zero byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

__all__ = ["GroupPages", "read_footer", "scan_groups"]

_MAGIC = b"PAR1"
_HEADER_BYTES = 512  # read at first; longer headers have long statistics
_LONGEST_HEADER = 16 << 20  # pyarrow's limit

# Types of fields
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}

_DICTIONARY_PAGE = 2
_BYTE_ARRAY = 6
_DEEPEST = 32


@dataclass(frozen=True)
class GroupPages:
    """The bytes of a row group that are in memory at once while it is read.

    Attributes
    ----------
    held : int
        The largest page of each column, decompressed, and its dictionary.
    stored : int
        The compressed bytes of all pages.
    text : int
        As `held`, of the columns of strings and bytes alone.
    row : int
        An upper bound of the mean bytes of strings in some consecutive rows: for each column, the
        page with the most bytes for each of its values.
    """

    held: int
    stored: int
    text: int
    row: int


@dataclass(frozen=True)
class _Chunk:
    """A column of a row group."""

    begin: int
    n_bytes: int
    n_values: int
    is_text: bool


def read_footer(file: IO[bytes]) -> bytes:
    """Read the metadata at the end of a file; pyarrow has checked that they are there."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length > size - 8:
        raise pa.ArrowInvalid("it has no metadata at its end")
    file.seek(size - 8 - length)
    return file.read(length)


def scan_groups(footer: bytes, file: IO[bytes]) -> Iterator[GroupPages]:
    """Yield the sizes of the pages of each row group, in order, as their headers declare them.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> import pyarrow.parquet
    >>> from kernelmill.io.columnar.parquet_pages import read_footer, scan_groups
    >>> file = io.BytesIO()
    >>> table = pa.table({"a": [0.0] * 1000})
    >>> pa.parquet.write_table(table, file, use_dictionary=False, compression="zstd")
    >>> [pages] = scan_groups(read_footer(file), file)
    >>> pages.held, pages.stored < 100
    (8007, True)
    """
    reader = _Reader(footer)
    for field, kind in reader.fields():
        if field != 4 or kind != _LIST:  # the row groups
            reader.skip(kind)
            continue
        for _ in range(reader.list_of(_STRUCT)):
            held = stored = text = row = 0
            for chunk in _read_chunks(reader):
                pages = _scan_pages(file, chunk)
                held, stored = held + pages.held, stored + pages.stored
                text, row = text + pages.text, row + pages.row
            yield GroupPages(held, stored, text, row)


def _read_chunks(reader: _Reader) -> list[_Chunk]:
    """Return the columns of the row group at which the reader is."""
    chunks: list[_Chunk] = []
    for field, kind in reader.fields():
        if field != 1 or kind != _LIST:
            reader.skip(kind)
            continue
        for _ in range(reader.list_of(_STRUCT)):
            for inner, inner_kind in reader.fields():
                if inner == 3 and inner_kind == _STRUCT:
                    chunks.append(_read_chunk(reader))
                else:
                    reader.skip(inner_kind)
    return chunks


def _read_chunk(reader: _Reader) -> _Chunk:
    """Return the metadata of a column: where its pages are, which begin with its dictionary."""
    found = reader.integers()
    begin, dictionary = found.get(9, 0), found.get(11, 0)
    if 0 < dictionary < begin:
        begin = dictionary
    is_text = found.get(1, 0) == _BYTE_ARRAY
    return _Chunk(begin, found.get(7, 0), found.get(5, 0), is_text)


def _scan_pages(file: IO[bytes], chunk: _Chunk) -> GroupPages:
    """Return the sizes of the pages of a column.

    Pages are read until all values of the chunk are seen, as pyarrow does.
    """
    place, end = chunk.begin, chunk.begin + chunk.n_bytes
    if place < 0 or chunk.n_bytes < 0:
        raise pa.ArrowInvalid("a column of a row group has a negative offset or size")
    seen = dictionary = largest = stored = row = 0
    while seen < chunk.n_values and place < end:
        header, length = _read_header(file, place, end)
        if header.full < 0 or header.stored < 0 or header.n_values < 0:
            raise pa.ArrowInvalid("a page has a negative size")
        if header.kind == _DICTIONARY_PAGE:
            dictionary += header.full
        else:
            largest = max(largest, header.full)
            row = max(row, header.full // max(1, header.n_values))
            seen += header.n_values
        stored += header.stored
        place += length + header.stored
    held = dictionary + largest
    return GroupPages(held, stored, held, row) if chunk.is_text else GroupPages(held, stored, 0, 0)


@dataclass(frozen=True)
class _PageHeader:
    kind: int
    full: int
    stored: int
    n_values: int


def _read_header(file: IO[bytes], place: int, end: int) -> tuple[_PageHeader, int]:
    """Return the header of a page, and its length."""
    wanted = _HEADER_BYTES
    while True:
        file.seek(place)
        data = file.read(min(wanted, end - place))
        try:
            reader = _Reader(data)
            return _parse_header(reader), reader.place
        except pa.ArrowInvalid:
            if len(data) < wanted or wanted > _LONGEST_HEADER:
                raise
            wanted *= 8


def _parse_header(reader: _Reader) -> _PageHeader:
    found, n_values = dict[int, int](), 0
    for field, kind in reader.fields():
        if kind in _INTEGERS:
            found[field] = reader.integer()
        elif kind == _STRUCT and field in (5, 8):  # of data pages of versions 1 and 2
            n_values = reader.integers().get(1, 0)
        else:
            reader.skip(kind)
    return _PageHeader(found.get(1, 0), found.get(2, 0), found.get(3, 0), n_values)


class _Reader:
    """Reader of Thrift's compact protocol; invalid data raises an `ArrowInvalid`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def _byte(self) -> int:
        if self.place >= len(self._data):
            raise pa.ArrowInvalid("its metadata is truncated")
        self.place += 1
        return self._data[self.place - 1]

    def _number(self) -> int:
        """Return an integer of 7 bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise pa.ArrowInvalid("its metadata has an integer of too many bytes")

    def integer(self) -> int:
        """Return an integer with a sign."""
        value = self._number()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """The numbers and types of the fields of a struct; none twice. Read or skip each."""
        field, seen = 0, set[int]()
        while (byte := self._byte()) != 0:
            field = field + (byte >> 4) if byte >> 4 else self.integer()
            if field in seen:  # readers disagree on which one counts
                raise pa.ArrowInvalid("its metadata has a duplicate field")
            seen.add(field)
            yield field, byte & 0x0F

    def integers(self) -> dict[int, int]:
        """Return the integers of a struct, by the numbers of their fields."""
        found = {}
        for field, kind in self.fields():
            if kind in _INTEGERS:
                found[field] = self.integer()
            else:
                self.skip(kind)
        return found

    def list_of(self, kind: int) -> int:
        """Return the length of a list, whose elements must be of this type."""
        length, found = self._list()
        if length and found != kind:
            raise pa.ArrowInvalid("its metadata has a list of an unexpected type")
        return length

    def _list(self) -> tuple[int, int]:
        byte = self._byte()
        length = byte >> 4
        return (self._number() if length == 15 else length), byte & 0x0F

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value of a type."""
        if depth > _DEEPEST:
            raise pa.ArrowInvalid("its metadata is nested too deeply")
        if kind in _INTEGERS:
            self._number()
        elif kind == _BINARY:
            length = self._number()
            if length > len(self._data) - self.place:
                raise pa.ArrowInvalid("its metadata is truncated")
            self.place += length
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            length, inner = self._list()
            for _ in range(length):
                self._skip_element(inner, depth + 1)
        elif kind in _SIZES:
            self.place += _SIZES[kind]
        else:  # Parquet has no maps
            raise pa.ArrowInvalid("its metadata has a field of an unknown type")

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (_TRUE, _FALSE):  # in a list they take a byte
            self._byte()
        else:
            self.skip(kind, depth)
