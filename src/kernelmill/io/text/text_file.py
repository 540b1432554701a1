"""Files of delimited text, read in blocks of complete records."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa

from kernelmill.errors import Remedy
from kernelmill.io.compression import (
    TemporaryCopy,
    decompress,
    detect_compression,
    open_stream,
    read_at,
    read_fully,
    read_head,
    transcode,
)
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, cut_evenly, line_start
from kernelmill.io.limits import LONGEST_VALUE
from kernelmill.io.table_file import (
    SAME_COLUMNS,
    Original,
    TableColumn,
    TableFile,
    TableOptions,
    compare_columns,
    make_unique,
    name_originals,
    resolve_kinds,
    set_kinds,
)
from kernelmill.io.text.evidence import ColumnEvidence, TextSample, inspect_columns
from kernelmill.io.text.parser import TextParser, decode
from kernelmill.io.text.records import (
    MISSING_MARKERS,
    count_lines,
    find_long_record,
    find_open_quote,
    last_record_end,
    split_records,
)
from kernelmill.io.text.sniffing import (
    Dialect,
    detect_dialect,
    first_records,
    squeeze_spaces,
)

__all__ = ["TextFile"]

_DIALECT_BYTES = 64 << 10  # inspected for the delimiter and the header
_KINDS_BYTES = 4 << 20  # inspected for the column kinds
_FEWEST_LINES = 10  # inspected for the delimiter and the header, if the file has as many

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHECK_FORMAT = "check that this is a text file whose lines are rows"


class TextFile(TableFile):
    """A CSV file, TSV file or similar; see `open_table`.

    The constructor reads the beginning of the file once. Blocks are cut at fixed positions, so that
    the bytes of each can be read again separately. Parts are ranges of bytes.
    """

    not_copied: ClassVar[tuple[str, ...]] = ("_copy", "_sample", "_parser", "_text_parser")

    def __init__(self, path: Path, options: TableOptions, first: TextFile | None) -> None:
        super().__init__(path, options, first)
        self._copy: TemporaryCopy | None = None
        if options.encoding is not None:
            self._copy = transcode(path, options.encoding)
            start = read_at(self._copy.stream, 0, _KINDS_BYTES)
        else:
            start = read_head(path, _KINDS_BYTES)
        complete = len(start) < _KINDS_BYTES
        self._has_line_feeds = b"\n" in start
        offset = self._find_first_line(start)
        head = start[offset:]
        self._first_line = 1 + options.skip_rows
        if first is None:
            self._dialect = self._detect_dialect(head, complete)
        else:
            self._dialect = self._adopt_dialect(head, complete, first)
        if self._dialect.header:
            size, lines = self._measure_header(head, complete)
            offset, head = offset + size, head[size:]
            self._first_line += lines
        self._offset = offset
        self._sample: TextSample | None = self._inspect(head, complete) if first is None else None
        self.configure(first)

    def configure(self, first: TextFile | None) -> None:
        """Decide the column kinds and the bytes of text per block, from the sniffed sample."""
        self._places: list[tuple[int, int, int]] = []  # offset, bytes and first line of blocks
        self._doubtful: ColumnEvidence | None = None
        if first is None:
            self.columns, self._piece_bytes = self._decide_columns()
            assert self._sample is not None
            given = resolve_kinds(self._dialect.names, self.options, str(self.path))
            declared = [name for name, kind in given.items() if kind == "numeric"]
            self._styles = self._sample.find_styles(self._dialect.decimal, declared)
            self.signs = self._sample.find_signs(self._styles)
            self.marks = self._sample.find_marks(self._dialect.decimal)
            has_points = any(column.pointed for column in self._sample.columns)
            decimal = self._dialect.decimal
            self.decimal = decimal if decimal == "," or has_points else ""
            self._types = {}
            if self._sample.is_whole and self._dialect.decimal == ".":
                self._types = {column.name: column.type for column in self._sample.columns}
        else:
            self._dialect = replace(self._dialect, decimal=first._dialect.decimal)
            self.columns, self._piece_bytes = first.columns, first._piece_bytes
            self._styles, self.signs, self._types = first._styles, first.signs, first._types
            self.marks, self.decimal, self._doubtful = first.marks, first.decimal, first._doubtful
        self._make_parsers()

    def _make_parsers(self) -> None:
        self._parser = self._make_parser()
        self._text_parser: TextParser | None = None
        self.originals = {}
        if self.options.originals is None:
            return
        as_text = self.options.originals == "text"
        columns = self.columns or ()
        types = self._types if self.options.originals == "types" else {}
        kept = [
            column.name
            for column in columns
            if column.kind == "other"
            or (as_text and (column.kind != "numeric" or self._dialect.decimal == "."))
            or (column.kind == "numeric" and types.get(column.name) == "int64")
        ]
        self._text_names = name_originals(kept, self._dialect.names)
        read = {each.name: "float64" if each.kind == "numeric" else "string" for each in columns}
        read |= {name: types.get(name, "string") for name in kept}
        self.originals = {
            name: Original(self._text_names.get(name, name), kind) for name, kind in read.items()
        }
        if kept:
            self._text_parser = TextParser(
                self.path,
                self._dialect,
                [TableColumn(name, "text") for name in kept],
                self._first_line,
                () if as_text else self.options.missing_codes,
                markers=("",) if as_text else MISSING_MARKERS,
            )

    def _parse(self, data: bytes, line: int) -> Any:
        """A record batch of complete records; with the text of values, if that is to be kept."""
        if self._doubtful is not None:
            raise self._doubtful_error(self._doubtful)
        batch = self._parser.parse(data, line)
        if self._text_parser is None:
            return batch
        text = self._text_parser.parse(data, line)
        names = [self._text_names[name] for name in text.schema.names]
        types = [self.originals[name].type for name in text.schema.names]
        kept = [array.cast(kind) for array, kind in zip(text.columns, types, strict=True)]
        return pa.record_batch([*batch.columns, *kept], [*batch.schema.names, *names])

    def _make_parser(self) -> TextParser:
        assert self.columns is not None
        given = resolve_kinds(self._dialect.names, self.options, str(self.path))
        return TextParser(
            self.path,
            self._dialect,
            self.columns,
            self._first_line,
            self.options.missing_codes,
            styles=self._styles,
            declared=[name for name, kind in given.items() if kind == "numeric"],
            words=self.options.not_missing,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_parsers()

    def _find_first_line(self, start: bytes) -> int:
        """The offset of the first line to read: after the byte order mark and skipped lines."""
        if not start:
            raise TableError(f"{self.path} is empty", "use a file with rows")
        if start.startswith(_UTF16):
            raise TableError(
                f"{self.path} is encoded as UTF-16",
                Remedy("set its encoding", encoding="utf-16"),
            )
        if b"\0" in start[:_DIALECT_BYTES]:
            raise TableError(
                f"{self.path} is not a text file: it contains zero bytes",
                Remedy("set its format", format=...),
            )
        offset = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
        for _ in range(self.options.skip_rows):
            offset = _next_line(start, offset)
        if not start[offset : offset + _DIALECT_BYTES].strip() and not start[offset:].strip():
            if self.options.skip_rows == 0:
                raise TableError(f"{self.path} contains only empty lines", "use a file with rows")
            raise TableError(
                f"{self.path} has no lines after the {self.options.skip_rows} skipped ones",
                Remedy("skip fewer lines", skip_rows=...),
            )
        return offset

    def _detect_dialect(self, head: bytes, complete: bool) -> Dialect:
        options = self.options
        header = options.default_header if options.header is None else options.header
        lines = self._find_first_lines(head, complete)
        text = decode(lines, self.path, self._first_line)
        is_whole = complete and len(lines) == len(head)
        return detect_dialect(
            text,
            self.path,
            self._first_line,
            options.delimiter,
            header,
            options.decimal,
            is_whole=is_whole,
        )

    def _find_first_lines(self, head: bytes, complete: bool) -> bytes:
        """A range of complete lines; the last one may end inside a quoted value."""
        size = _DIALECT_BYTES
        while size < len(head):
            cut = last_record_end(head[:size], b",", quotes=False)
            if count_lines(head[:cut]) >= _FEWEST_LINES:
                return head[:cut]
            size *= 2
        if not complete:
            head = head[: last_record_end(head, b",", quotes=False)]
            if not head:
                raise TableError(
                    f"{self.path}, line {self._first_line}: the line is longer than "
                    f"{_KINDS_BYTES >> 20} MiB",
                    _CHECK_FORMAT,
                )
        return head

    def _adopt_dialect(self, head: bytes, complete: bool, first: TextFile) -> Dialect:
        """Return the dialect of a file after the first, which must have the same columns."""
        lines = self._find_first_lines(head, complete)
        text = decode(lines, self.path, self._first_line)
        found = first_records(text, first._dialect.delimiter, self._first_line)
        names = first._dialect.names
        if not first._dialect.header:
            if found and len(found[0][1]) != len(names):
                raise TableError(
                    f"{self.path} has {len(found[0][1])} columns, but {first.path} has "
                    f"{len(names)}",
                    SAME_COLUMNS,
                )
            return first._dialect
        own, _ = make_unique(found[0][1])
        compare_columns(self.path, dict.fromkeys(own, ""), first.path, dict.fromkeys(names, ""))
        return replace(first._dialect, names=own)

    def _measure_header(self, head: bytes, complete: bool) -> tuple[int, int]:
        """Return the bytes and the lines of the header, including empty lines before it."""
        separator = self._dialect.separator if self._dialect.quotes else "\0"
        text = head.decode(errors="replace")
        found = split_records(text, separator, self._first_line, quotes=self._dialect.quotes)
        next(values for _, values in found if any(value.strip() for value in values))
        following = next(found, None)
        if following is None:
            if not complete:
                raise TableError(
                    f"{self.path}, line {self._first_line}: the header is longer than "
                    f"{_KINDS_BYTES >> 20} MiB",
                    _CHECK_FORMAT,
                )
            return len(head), count_lines(head)
        lines = following[0] - self._first_line
        offset = 0
        for _ in range(lines):
            offset = _next_line(head, offset)
        return offset, lines

    def _inspect(self, head: bytes, complete: bool) -> TextSample:
        """Parse the first records as categories, and summarize what they show of the columns."""
        dialect = self._dialect
        if not complete:
            end = last_record_end(head, dialect.separator.encode(), quotes=dialect.quotes)
            head = head[:end]
        as_strings = [TableColumn(name, "category") for name in dialect.names]
        codes = self.options.missing_codes
        parser = TextParser(
            self.path, dialect, as_strings, self._first_line, codes, words=self.options.not_missing
        )
        rows = parser.parse(head, self._first_line)
        detected = self.options.decimal is None and dialect.delimiter != ","
        found = inspect_columns(rows, len(head), None if detected else dialect.decimal)
        return replace(found, is_whole=complete)

    def _decide_columns(self) -> tuple[tuple[TableColumn, ...], int]:
        """Return the columns, and the bytes of text that fill a block."""
        dialect, sample = self._dialect, self._sample
        assert sample is not None
        self.notes = list(dialect.notes)
        given = resolve_kinds(dialect.names, self.options, str(self.path))
        if self.options.decimal is None and dialect.delimiter != ",":
            categories = {name for name, kind in given.items() if kind in ("category", "other")}
            found = sample.detect_decimal(categories, self.options.trained_marks)
            self._dialect = replace(dialect, decimal=found)
            if self._dialect.decimal == ",":
                self.notes.append("Numbers have decimal commas.")
        self._doubtful = self._find_doubtful(sample, given)
        kinds, notes = sample.detect_kinds(self._dialect.decimal, given)
        self.notes += notes
        columns = set_kinds(kinds, given)
        if (spare := self._find_spare_column(sample)) is not None and spare not in given:
            columns = tuple(column for column in columns if column.name != spare)
            self.notes = [note for note in self.notes if repr(spare) not in str(note)]
            self.notes.append("Lines end with a delimiter: the empty last column is left out.")
        row = sum(8 if column.kind == "numeric" else 4 for column in columns)
        ratio = sample.n_bytes / max(1, row * sample.n_rows)  # bytes of text per byte of a block
        piece = int(self.options.block_bytes * min(1.0, max(ratio, 1 / 8)))
        return columns, max(1, piece)

    def _find_doubtful(self, sample: TextSample, given: Mapping[str, str]) -> ColumnEvidence | None:
        """Return a column whose decimal points separated digit groups in training."""
        known = {} if self.options.decimal else self.options.trained_marks or {}
        for column in sample.columns:
            separator = known.get(column.name, ("", ""))[1]
            is_used = given.get(column.name) != "other"
            if is_used and column.grouped == separator == self._dialect.decimal:
                return column
        return None

    def _doubtful_error(self, column: ColumnEvidence) -> TableError:
        decimal = self._dialect.decimal
        noun, other = ("commas", ".") if decimal == "," else ("points", ",")
        return TableError(
            f"{self.path}: column {column.name!r} had {noun} between digit groups in training, "
            f"but numbers of this file have decimal {noun}: {column.marked!r} is ambiguous",
            Remedy("if it is a decimal number, set the decimal separator", decimal=decimal),
            Remedy(
                "if not, write all numbers as in training and set the decimal separator",
                decimal=other,
            ),
        )

    def _find_spare_column(self, sample: TextSample) -> str | None:
        """Return the last column if it has neither a name nor values: lines end in a delimiter."""
        last = sample.columns[-1] if sample.columns else None
        if not self._dialect.header or len(sample.columns) < 2 or last is None:
            return None
        return last.name if last.all_missing and self._dialect.unnamed_last else None

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self._copy is None and self.options.encoding is not None:  # in another process
            self._copy = transcode(self.path, self.options.encoding)
        if self._copy is not None:
            yield self._copy.stream
        else:
            with open_stream(self.path) as stream:
                yield stream

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Yield record batches in order, and store their positions."""
        places: list[tuple[int, int, int]] = []
        with self._open() as stream:
            for offset, data, line in self._pieces(stream, Part(self._offset, None)):
                batch = self._parse(data, line)
                if batch.num_rows:
                    places.append((offset, len(data), line))
                    yield batch, None
        self._places = places

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into ranges of bytes, or one if only CR ends lines; `measure` follows."""
        is_stored = self.options.encoding is None and detect_compression(self.path) is None
        if not is_stored or not self._has_line_feeds:
            return super().cut(n_bytes)
        return cut_evenly(self._offset, self.n_bytes, n_bytes)

    def measure(self, part: Part) -> Part:
        """Move the ends of a part to ends of lines, and count its rows and lines.

        Whether a line begins with a record is not known if earlier parts have quotes: `is_open` and
        `fails` hold if the part does.
        """
        if part.end is None:
            return super().measure(part)
        n_rows = n_lines = 0
        with self._open() as stream:
            last = line_start(stream, part.end, self.n_bytes)
            begin = end = part.begin
            if begin != self._offset:
                begin = end = line_start(stream, begin, self.n_bytes)
            part = replace(part, begin=begin, end=last)
            try:
                for offset, data, line in self._pieces(stream, part):
                    n_rows += self._parser.count(data, line)
                    n_lines += count_lines(data)
                    end = offset + len(data)
            except TableError:
                return replace(part, fails=True)
        return replace(part, n_rows=n_rows, n_lines=n_lines, is_open=end < last)

    def read_part(self, part: Part) -> Iterator[tuple[Any, None]]:
        """Yield the record batches of a part that was measured."""
        if part.end is None:
            yield from self.blocks()
            return
        with self._open() as stream:
            for _, data, line in self._pieces(stream, part):
                batch = self._parse(data, line)
                if batch.num_rows:
                    yield batch, None

    def _pieces(self, stream: IO[bytes], part: Part) -> Iterator[tuple[int, bytes, int]]:
        """Yield the offset, the bytes and the first line of pieces of complete records."""
        separator, quotes = self._dialect.separator.encode(), self._dialect.quotes
        position, stop = part.begin, part.end
        anywhere = self._copy is not None or detect_compression(self.path) is None
        if not anywhere:
            read_fully(stream, position)
        line, rest, wanted, at_end = self._first_line + part.line, b"", self._piece_bytes, False
        while not at_end:
            missing = wanted - len(rest)
            if anywhere:  # another pass may be reading the same file
                start = position + len(rest)
                left = missing if stop is None else min(missing, stop - start)
                more = read_at(stream, start, left)
            else:
                more = read_fully(stream, missing)
            at_end = len(more) < missing
            data = rest + more
            if at_end and (stop is None or stop == self.n_bytes):
                cut = len(data)
                self._check_closed(data, line)
            else:
                cut = last_record_end(data, separator, quotes=quotes)
            self._check_lengths(data[:cut] if cut else data, line)
            if cut == 0:
                rest, wanted = data, 2 * wanted
                continue
            piece = data[:cut]
            if piece:
                yield position, piece, line
            position += cut
            line += count_lines(piece)
            rest, wanted = data[cut:], max(self._piece_bytes, len(data) - cut + 1)

    def _check_lengths(self, data: bytes, line: int) -> None:
        """Raise an error for a record that would exhaust the memory."""
        separator, quotes = self._dialect.separator, self._dialect.quotes
        begin = find_long_record(data, separator.encode(), LONGEST_VALUE, quotes=quotes)
        if begin is None:
            return
        line += count_lines(data[:begin])
        record, most = data[begin : begin + LONGEST_VALUE], f"{LONGEST_VALUE >> 20} MiB"
        self._check_closed(record, line, f" in {most}")
        text = (record if quotes else squeeze_spaces(record)).decode(errors="replace")
        _, values = next(split_records(text, separator, line, quotes=quotes))
        longest = max(range(len(values)), key=lambda place: len(values[place]))
        raise TableError(
            f"{self.path}, line {line}: the line is longer than {most}, and its longest value is "
            f"in {self._parser.describe_column(longest)}",
            _CHECK_FORMAT,
            "shorten the value",
        )

    def _check_closed(self, data: bytes, line: int, where: str = "") -> None:
        if not self._dialect.quotes or b'"' not in data:
            return
        quote = find_open_quote(data, self._dialect.separator.encode())
        if quote is not None:
            line += count_lines(data[:quote])
            raise TableError(
                f"{self.path}, line {line}: a value begins with a quote that is not closed{where}",
                "close the quote",
                "write two quotes for one inside a quoted value",
            )

    def prepare_random_access(self) -> None:
        """Decompress the file to a temporary file, once."""
        if self._copy is None and detect_compression(self.path) is not None:
            self._copy = decompress(self.path)

    def block(self, number: int) -> tuple[Any, None]:
        """Read a block at its stored position."""
        offset, size, line = self._places[number]
        with self._open() as stream:
            data = read_at(stream, offset, size)
        return self._parse(data, line), None


def _next_line(data: bytes, offset: int) -> int:
    """Return the offset after the line that begins at `offset`."""
    newline, carriage = data.find(b"\n", offset), data.find(b"\r", offset)
    if carriage >= 0 and (newline < 0 or carriage < newline - 1):
        return carriage + 1
    return newline + 1 if newline >= 0 else len(data)
