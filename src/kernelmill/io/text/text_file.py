"""Files of delimited text, read in blocks of complete records."""

from __future__ import annotations

import codecs
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from kernelmill.io.compression import (
    compression_of,
    decompressed_copy,
    first_bytes,
    open_stream,
    read_at,
    read_fully,
)
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import (
    Column,
    TableFile,
    TableOptions,
    given_kinds,
    overridden_kinds,
    unique_names,
)
from kernelmill.io.text.parser import TextParser, decoded
from kernelmill.io.text.records import count_lines, last_record_end, opened_quote, records
from kernelmill.io.text.sniffing import (
    Dialect,
    detect_decimal,
    detect_dialect,
    detect_kinds,
    records_of,
)

__all__ = ["TextFile"]

_DIALECT_BYTES = 64 << 10  # looked at for the delimiter and the header
_KINDS_BYTES = 4 << 20  # looked at for the kinds of columns
_LONGEST_RECORD = 256 << 20

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class TextFile(TableFile):
    """A CSV file, TSV file or the like; see `open_table`.

    Blocks are cut at fixed places, so that the bytes of each can be read again by themselves.
    """

    def __init__(self, path: Path, options: TableOptions, first: TextFile | None) -> None:
        super().__init__(path, options, first)
        self._copy: IO[bytes] | None = None
        self._places: list[tuple[int, int, int]] = []  # offset, bytes and first line of blocks
        start = first_bytes(path, _KINDS_BYTES)
        complete = len(start) < _KINDS_BYTES
        offset = self._offset_of_first_line(start)
        head = start[offset:]
        self._first_line = 1 + options.skip_rows
        if first is None:
            self._dialect = self._detected(head, complete)
        else:
            self._dialect = self._like_first(head, complete, first)
        if self._dialect.header:
            size, lines = self._extent_of_header(head, complete)
            offset, head = offset + size, head[size:]
            self._first_line += lines
        self._offset = offset
        if first is None:
            self.columns, self._piece_bytes = self._columns_of(head, complete)
        else:
            self.columns, self._piece_bytes = first.columns, first._piece_bytes
        assert self.columns is not None
        self._parser = TextParser(path, self._dialect, self.columns, self._first_line)

    def _offset_of_first_line(self, start: bytes) -> int:
        """Where the lines that are read begin: after the byte order mark and skipped lines."""
        if not start:
            raise TableError(f"{self.path} is empty; give a file with rows.")
        if start.startswith(_UTF16):
            raise TableError(
                f"{self.path} is UTF-16; convert it, such as by 'iconv -f utf-16 -t utf-8'."
            )
        if b"\0" in start[:_DIALECT_BYTES]:
            raise TableError(
                f"{self.path} is not a text file (it has zero bytes); name its format (--format)."
            )
        offset = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
        for _ in range(self.options.skip_rows):
            offset = _after_line(start, offset)
        if not start[offset : offset + _DIALECT_BYTES].strip() and not start[offset:].strip():
            what = "has only empty lines" if self.options.skip_rows == 0 else "has no more lines"
            raise TableError(f"{self.path} {what}; give a file with rows, or fewer skip_rows.")
        return offset

    def _detected(self, head: bytes, complete: bool) -> Dialect:
        options = self.options
        text = self._first_records(head, complete)
        dialect = detect_dialect(
            text, self._first_line, options.delimiter, options.header, options.decimal
        )
        self.notes += dialect.notes
        return dialect

    def _first_records(self, head: bytes, complete: bool) -> str:
        """Some complete lines; the last one may end inside of a quoted value."""
        size = _DIALECT_BYTES
        while size < len(head):
            cut = last_record_end(head[:size], b",", quotes=False)
            if cut:
                return decoded(head[:cut], self.path, self._first_line)
            size *= 2
        if not complete:
            head = head[: last_record_end(head, b",", quotes=False)]
            if not head:
                raise TableError(
                    f"{self.path}, line {self._first_line}: the line is longer than "
                    f"{_KINDS_BYTES >> 20} MiB; is this a text file with lines?"
                )
        return decoded(head, self.path, self._first_line)

    def _like_first(self, head: bytes, complete: bool, first: TextFile) -> Dialect:
        """The dialect of another file than the first, whose columns must be the same."""
        text = self._first_records(head, complete)
        found = records_of(text, first._dialect.delimiter, self._first_line)
        names = first._dialect.names
        if not first._dialect.header:
            if found and len(found[0][1]) != len(names):
                raise TableError(
                    f"{self.path} has {len(found[0][1])} columns, but {first.path} has "
                    f"{len(names)}; all files of a table have the same columns."
                )
            return first._dialect
        own, _ = unique_names(found[0][1])
        here, there = set(own), set(names)
        lacks = [name for name in names if name not in here]
        extra = [name for name in own if name not in there]
        if lacks or extra:
            differences = [
                *(f"it lacks {name!r}" for name in lacks[:3]),
                *(f"it has {name!r} besides" for name in extra[:3]),
            ]
            raise TableError(
                f"{self.path} has other columns than {first.path}: {', '.join(differences)}; all "
                "files of a table have the same columns."
            )
        return replace(first._dialect, names=own)

    def _extent_of_header(self, head: bytes, complete: bool) -> tuple[int, int]:
        """The bytes and the lines of the header, with empty lines before it."""
        separator = self._dialect.separator if self._dialect.quotes else "\0"
        text = head.decode(errors="replace")
        found = records(text, separator, self._first_line, quotes=self._dialect.quotes)
        next(values for _, values in found if any(value.strip() for value in values))
        following = next(found, None)
        if following is None:
            if not complete:
                raise TableError(
                    f"{self.path}, line {self._first_line}: the header is longer than "
                    f"{_KINDS_BYTES >> 20} MiB; is this a text file with lines?"
                )
            return len(head), count_lines(head)
        lines = following[0] - self._first_line
        offset = 0
        for _ in range(lines):
            offset = _after_line(head, offset)
        return offset, lines

    def _columns_of(self, head: bytes, complete: bool) -> tuple[tuple[Column, ...], int]:
        """The columns, and the bytes of text that fill a block."""
        dialect, options = self._dialect, self.options
        if not complete:
            end = last_record_end(head, dialect.separator.encode(), quotes=dialect.quotes)
            head = head[:end]
        as_text = [Column(name, "category") for name in dialect.names]
        sample = TextParser(self.path, dialect, as_text, self._first_line).parse(
            head, self._first_line
        )
        given = given_kinds(dialect.names, options.categorical, options.numeric, str(self.path))
        if options.decimal is None and dialect.delimiter != ",":
            categories = {name for name, kind in given.items() if kind == "category"}
            if detect_decimal(sample, categories) == ",":
                self._dialect = replace(dialect, decimal=",")
                self.notes.append("Numbers have decimal commas.")
        kinds, notes = detect_kinds(sample, self._dialect.decimal, given)
        self.notes += notes
        columns = overridden_kinds(kinds, given)
        row = sum(8 if column.kind == "numeric" else 4 for column in columns)
        ratio = len(head) / max(1, row * sample.num_rows)  # bytes of text per byte of a block
        piece = int(options.block_bytes * min(1.0, max(ratio, 1 / 8)))
        return columns, max(1, piece)

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        if self._copy is not None:
            yield self._copy
        else:
            with open_stream(self.path) as stream:
                yield stream

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Record batches in order; their places are remembered."""
        places: list[tuple[int, int, int]] = []
        with self._stream() as stream:
            for offset, data, line in self._pieces(stream):
                batch = self._parser.parse(data, line)
                if batch.num_rows:
                    places.append((offset, len(data), line))
                    yield batch, None
        self._places = places

    def _pieces(self, stream: IO[bytes]) -> Iterator[tuple[int, bytes, int]]:
        """The offset, the bytes and the first line of pieces of complete records."""
        separator, quotes = self._dialect.separator.encode(), self._dialect.quotes
        position = self._offset
        anywhere = self._copy is not None or compression_of(self.path) is None
        if not anywhere:
            read_fully(stream, position)
        line, rest, wanted, at_end = self._first_line, b"", self._piece_bytes, False
        while not at_end:
            missing = wanted - len(rest)
            if anywhere:  # another pass may read the same file now
                more = read_at(stream, position + len(rest), missing)
            else:
                more = read_fully(stream, missing)
            at_end = len(more) < missing
            data = rest + more
            if at_end:
                cut = len(data)
                self._check_closed(data, line)
            else:
                cut = last_record_end(data, separator, quotes=quotes)
            if cut == 0:
                if wanted > _LONGEST_RECORD:
                    self._check_closed(data, line)
                    raise TableError(
                        f"{self.path}, line {line}: the record is longer than "
                        f"{_LONGEST_RECORD >> 20} MiB; is this a text file with lines?"
                    )
                rest, wanted = data, 2 * wanted
                continue
            piece = data[:cut]
            if piece:
                yield position, piece, line
            position += cut
            line += count_lines(piece)
            rest, wanted = data[cut:], max(self._piece_bytes, len(data) - cut + 1)

    def _check_closed(self, data: bytes, line: int) -> None:
        if not self._dialect.quotes or b'"' not in data:
            return
        quote = opened_quote(data, self._dialect.separator.encode())
        if quote is not None:
            line += count_lines(data[:quote])
            raise TableError(
                f"{self.path}, line {line}: a value begins with a quote that is not closed; close "
                "it, or write two quotes for one inside of a quoted value."
            )

    def prepare_random_access(self) -> None:
        """Decompress into a temporary file, once."""
        if self._copy is None and compression_of(self.path) is not None:
            self._copy = decompressed_copy(self.path)
            weakref.finalize(self, self._copy.close)

    def block(self, number: int) -> tuple[Any, None]:
        """A block whose place is known from a complete pass."""
        offset, size, line = self._places[number]
        with self._stream() as stream:
            data = read_at(stream, offset, size)
        return self._parser.parse(data, line), None


def _after_line(data: bytes, offset: int) -> int:
    """The place after the line that begins at `offset`."""
    newline, carriage = data.find(b"\n", offset), data.find(b"\r", offset)
    if carriage >= 0 and (newline < 0 or carriage < newline - 1):
        return carriage + 1
    return newline + 1 if newline >= 0 else len(data)
