"""Pieces of delimited text as record batches."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from kernelmill.errors import Remedy
from kernelmill.io.columnar.arrow_values import (
    CATEGORY_TYPE,
    are_categories,
    drop_codes,
    exceeds_exact,
    nan_to_null,
    to_categories,
)
from kernelmill.io.errors import NotANumberError, TableError, suggest_codes
from kernelmill.io.table_file import TableColumn, large_integer_error
from kernelmill.io.text.amounts import NumberStyle, detect_style, find_signs
from kernelmill.io.text.records import (
    COMMA_NUMBER_PATTERN,
    LONG_INTEGER,
    MISSING_MARKERS,
    count_lines,
    is_large_integer,
    is_number,
    last_record_end,
    parse_number,
    split_records,
)
from kernelmill.io.text.sniffing import Dialect, squeeze_spaces

__all__ = ["TextParser", "decode"]

_MARK = codecs.BOM_UTF8.decode()
_COLUMNS_AT_ONCE, _MOST_PARTS = 4096, 16
_SLOW_BYTES = 16 << 10  # at most this much is parsed by the slow parser at once
_LINES_OF_TITLES = 20
_FEW_BYTES = 1000  # of a column
_EMPTY_LINES = re.compile(rb"[\r\n]*\Z")


# pyarrow compares markers with untrimmed values: list them with up to two spaces around.
def _pad(markers: Sequence[str]) -> list[str]:
    return [
        " " * before + marker + " " * after
        for marker in markers
        for before in range(3)
        for after in range(3)
    ]


_USUAL = set(MISSING_MARKERS)


class TextParser:
    """Parses pieces of a file whose dialect is known.

    Parameters
    ----------
    path : Path
        The file, for error messages.
    dialect : Dialect
        The columns of this file, which may be in a different order than those of the table.
    columns : sequence of TableColumn
        The columns of the table.
    first_line : int
        The first line of the file's rows.
    missing_codes : sequence of str
        As in `open_table`.
    styles : mapping of str to NumberStyle, optional
        The styles of columns whose numbers have symbols or digit groups.
    declared : collection of str
        Columns that the user declared numeric: integers beyond 2**53 are rounded, and styles are
        loose.
    markers : collection of str
        How missing values are written, besides the codes.
    words : collection of str
        Markers that are not missing in this table.
    """

    def __init__(
        self,
        path: Path,
        dialect: Dialect,
        columns: Sequence[TableColumn],
        first_line: int = 1,
        missing_codes: Sequence[str] = (),
        *,
        styles: Mapping[str, NumberStyle] | None = None,
        declared: Collection[str] = (),
        markers: Collection[str] = MISSING_MARKERS,
        words: Collection[str] = (),
    ) -> None:
        self.path = path
        self.dialect = dialect
        self.columns = columns
        self._first_line = first_line
        self._missing = {*markers, *missing_codes}.difference(words)
        self._words = frozenset(words)
        self._codes = tuple(missing_codes)
        self._declared = frozenset(declared)
        self._loose = NumberStyle(decimal=dialect.decimal, loose=True)
        self._read_columns = [column for column in columns if column.kind != "other"]
        self._kinds = {column.name: column.kind for column in self._read_columns}
        self._styles = {
            name: self._loose if name in self._declared else style
            for name, style in (styles or {}).items()
            if self._kinds.get(name) == "numeric"
        }
        # A handler gets rows as strings, so that it needs text that is known to be UTF-8.
        self._strict_options, self._lenient_options = (
            pa.csv.ParseOptions(
                delimiter=dialect.separator,
                quote_char='"' if dialect.quotes else False,
                newlines_in_values=dialect.quotes,
                invalid_row_handler=handler,
            )
            for handler in (None, _handle_invalid_row)
        )
        self._padded = False  # whether missing values have spaces around them

    def _convert_options(self, *, padded: bool, grouped: bool) -> list[Any]:
        """Return the options of pyarrow's converters, for a few thousand columns each.

        A converter has its own copy of all spellings of missing values, so that few of them and
        few columns at once save memory. With `grouped`, numbers are read as strings: pyarrow does
        not support points between digit groups. Each part of the columns takes a look at the
        whole text, so that the number of parts is bounded.
        """
        markers = sorted(self._missing, key=[*MISSING_MARKERS, *self._missing].index)
        types = {"numeric": pa.float64(), "category": CATEGORY_TYPE}
        as_strings = set(self._kinds) if grouped else set(self._styles)
        names = [column.name for column in self._read_columns]
        at_once = max(_COLUMNS_AT_ONCE, len(names) // _MOST_PARTS)
        return [
            pa.csv.ConvertOptions(
                column_types={
                    name: pa.string()
                    if name in as_strings
                    else types.get(self._kinds[name], pa.string())
                    for name in some
                },
                include_columns=some,
                null_values=_pad(markers) if padded else markers,
                strings_can_be_null=True,
                decimal_point="." if grouped else self.dialect.decimal,
            )
            for some in (names[i : i + at_once] for i in range(0, len(names), at_once))
        ]

    def parse(self, data: bytes, first_line: int) -> Any:
        """Parse complete records, which begin at `first_line`, into a record batch."""
        if not self.dialect.quotes:
            data = squeeze_spaces(data)
        self._check_marks(data, first_line)
        batches = list(self._parse_parts(data, first_line))
        for batch in batches:
            self._check_integers(batch, data, first_line)
        if len(batches) == 1:
            return batches[0]
        joined = []
        for column in self._read_columns:
            arrays = [batch.column(column.name) for batch in batches]
            if column.kind == "category":
                arrays = [array.cast(pa.string()) for array in arrays]
            joined.append(pa.concat_arrays(arrays))
        return self._batch(joined)

    def _check_integers(self, batch: Any, data: bytes, first_line: int) -> None:
        """Raise an error for an integer that became another number."""
        # One search is faster than inspecting each of many columns of few rows.
        is_wide = len(data) < _FEW_BYTES * len(self._kinds)
        if is_wide and LONG_INTEGER.search(data) is None:
            return
        exact = [
            name
            for name, kind in self._kinds.items()
            if kind == "numeric" and name not in self._declared and name not in self._styles
        ]
        large = [name for name in exact if exceeds_exact(batch.column(name))]
        if not large or LONG_INTEGER.search(data) is None:
            return
        names, dialect = list(self.dialect.names), self.dialect
        text = decode(data, self.path, first_line)
        for line, values in split_records(
            text, dialect.separator, first_line, quotes=dialect.quotes
        ):
            for name in large if len(values) == len(names) else ():
                value = values[names.index(name)].strip()
                if is_large_integer(value):
                    raise large_integer_error(f"{self.path}, line {line}", name, value)

    def count(self, data: bytes, first_line: int) -> int:
        """Return the number of rows that `parse` gives, faster."""
        squeezed = data if self.dialect.quotes else squeeze_spaces(data)
        if _EMPTY_LINES.match(squeezed):
            return 0
        name = self.dialect.names[0]
        one_column = pa.csv.ConvertOptions(
            column_types={name: pa.binary()}, include_columns=[name], null_values=[]
        )
        try:
            return int(self._read(squeezed, one_column, self._strict_options).num_rows)
        except pa.ArrowInvalid:
            return int(self.parse(data, first_line).num_rows)

    def _check_marks(self, data: bytes, first_line: int) -> None:
        """Raise an error for a byte order mark at the beginning of a record.

        pyarrow drops one at the beginning of what it parses, so that values would depend on where
        blocks are cut. Marks inside quoted values are left alone.
        """
        at_start = data.startswith(codecs.BOM_UTF8)
        if not at_start and all(end + codecs.BOM_UTF8 not in data for end in (b"\n", b"\r")):
            return
        text = decode(data, self.path, first_line)
        separator, quotes = self.dialect.separator, self.dialect.quotes
        for line, values in split_records(text, separator, first_line, quotes=quotes):
            if values[0].startswith(_MARK):
                raise TableError(
                    f"{self.path}, line {line} begins with a byte order mark, which suggests "
                    "that two files were joined",
                    "remove it",
                    "pass the files as a list",
                )

    def _parse_parts(self, data: bytes, first_line: int) -> Iterator[Any]:
        """Yield batches of all records: one, or several if pyarrow rejects a value.

        Data that pyarrow rejects are halved until the slow parser takes a small part. It reports
        the place of the error, or accepts values that pyarrow does not. This takes little longer
        than parsing twice.
        """
        if _EMPTY_LINES.match(data):
            yield self._batch([pa.array([], pa.string()).cast(t) for t in self._types()])
            return
        try:
            try:
                yield self._parse_quickly(data, self._strict_options, padded=self._padded)
            except pa.ArrowInvalid:
                decode(data, self.path, first_line)
                yield self._parse_leniently(data)
                self._padded = True
        except pa.ArrowInvalid:
            separator, cut = self.dialect.separator.encode(), 0
            if len(data) > _SLOW_BYTES:
                half = data[: len(data) // 2]
                cut = last_record_end(half, separator, quotes=self.dialect.quotes)
            if cut == 0:
                yield self._parse_slowly(data, first_line)
                return
            yield from self._parse_parts(data[:cut], first_line)
            yield from self._parse_parts(data[cut:], first_line + count_lines(data[:cut]))

    def _parse_leniently(self, data: bytes) -> Any:
        """Parse text with lines of spaces, spaces around missing values, or digit groups."""
        try:
            return self._parse_quickly(data, self._lenient_options, padded=True)
        except pa.ArrowInvalid:
            if self.dialect.decimal == ".":
                raise
            return self._parse_quickly(data, self._lenient_options, padded=True, grouped=True)

    def _parse_quickly(
        self, data: bytes, parse_options: Any, *, padded: bool, grouped: bool = False
    ) -> Any:
        arrays: list[Any] = []
        for options in self._convert_options(padded=padded, grouped=grouped):
            table = self._read(data, options, parse_options)
            arrays += [column.combine_chunks() for column in table.itercolumns()]
        return self._batch(arrays)

    def _read(self, data: bytes, convert_options: Any, parse_options: Any) -> Any:
        return pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(
                use_threads=False,
                block_size=len(data) + 1,
                column_names=list(self.dialect.names),
            ),
            parse_options=parse_options,
            convert_options=convert_options,
        )

    def _types(self) -> list[Any]:
        return [
            pa.float64() if each.kind == "numeric" else pa.string() for each in self._read_columns
        ]

    def _batch(self, arrays: Sequence[Any]) -> Any:
        """Return a batch of arrays of the columns that are read; the others are null."""
        finished = []
        arrays = [_to_array(each) for each in arrays]
        clean = are_categories(arrays)
        for column, array, is_clean in zip(self._read_columns, arrays, clean, strict=True):
            if column.kind == "numeric":
                numbers = nan_to_null(self._to_numbers(column.name, array))
                # As strings, codes that are written in another way remain: -999.0 for -999.
                finished.append(drop_codes(numbers, self._codes) if self._codes else numbers)
            elif column.kind == "text":
                words = pc.utf8_trim_whitespace(array)
                finished.append(drop_codes(words, sorted(self._missing)))
            else:
                words = array if is_clean else to_categories(array, self._words)
                if self._missing != _USUAL:
                    words = drop_codes(words, sorted(self._missing))
                finished.append(words if column.kind == "category" else words.cast(pa.string()))
        if len(finished) < len(self.columns):
            unread = pa.nulls(len(finished[0]))
            read = iter(finished)
            finished = [next(read) if c.kind != "other" else unread for c in self.columns]
        return pa.record_batch(finished, names=[column.name for column in self.columns])

    def _to_numbers(self, name: str, array: Any) -> Any:
        if not pa.types.is_string(array.type):
            return array
        style = self._styles.get(name)
        return _parse_grouped(array) if style is None else style.to_numbers(array)

    def _parse_slowly(self, data: bytes, first_line: int) -> Any:
        """Parse the rows in Python; an error names the line and the column."""
        names = self.dialect.names
        text = decode(data, self.path, first_line)
        values: list[list[Any]] = [[] for _ in names]
        signs: dict[str, str] = {}  # of declared columns
        found = split_records(text, self.dialect.separator, first_line, quotes=self.dialect.quotes)
        for line, record in found:
            if len(record) != len(names):
                if len(record) == 1 and not record[0].strip():
                    continue
                first_complete = next((n for n, values in found if len(values) == len(names)), None)
                at_top = first_line == self._first_line and not any(values)
                top = (first_complete - 1 if first_complete else line) if at_top else 0
                raise self._width_error(line, len(record), top)
            for position, (name, value) in enumerate(zip(names, record, strict=True)):
                trimmed = value.strip()
                if trimmed in self._missing:
                    values[position].append(None)
                elif self._kinds.get(name) != "numeric":
                    values[position].append(trimmed)
                elif is_number(trimmed, self.dialect.decimal) and name not in self._styles:
                    values[position].append(parse_number(trimmed, self.dialect.decimal))
                else:
                    style = self._loose if name in self._declared else self._styles.get(name)
                    number = None if style is None else style.find_number(trimmed)
                    for sign in find_signs(pa.array([trimmed])) if name in self._declared else ():
                        number = number if signs.setdefault(name, sign) == sign else None
                    if number is None:
                        raise self._number_error(line, position, trimmed, signs.get(name, ""))
                    values[position].append(number)
        by_name = dict(zip(names, values, strict=True))
        types = self._types()
        return self._batch(
            [pa.array(by_name[c.name], t) for c, t in zip(self._read_columns, types, strict=True)]
        )

    def _width_error(self, line: int, got: int, top: int) -> TableError:
        """Return the error of a line; `top` lines before the first complete one may be a title."""
        expected = len(self.dialect.names)
        remedies = [Remedy("correct the line"), Remedy("set the delimiter", delimiter=...)]
        if self.dialect.header:
            # A title may have been mistaken for the header.
            top = line - 1 if top and got > expected else 0
        if line <= _LINES_OF_TITLES and top > 0:
            remedies.append(Remedy("skip the lines above the table", skip_rows=top))
        noun = "value" if expected == 1 else "values"
        return TableError(
            f"{self.path}, line {line}: expected {expected} {noun}, got {got}", *remedies
        )

    def describe_column(self, position: int) -> str:
        """Return the name of a column with its index, for messages."""
        names = self.dialect.names
        if position >= len(names) or names[position] == str(position):
            return f"column {position}"
        return f"column {names[position]!r} (index {position})"

    def _number_error(
        self, line: int, position: int, value: str, sign: str = ""
    ) -> NotANumberError:
        """Return the error for a value; others of the column may have the sign."""
        name = self.dialect.names[position]
        shown = value if len(value) <= 60 else value[:57] + "..."
        style = self._styles.get(name, NumberStyle(decimal=self.dialect.decimal))
        style = self._loose if name in self._declared else style
        why, remedy = style.describe(value), "correct it"
        own = detect_style(pa.array([value]), style.decimal)
        if style.loose and own is not None and own.sign != sign:
            why = f", since other values of the column have the symbol {sign}"
            remedy = "write all values of the column in one unit"
        elif not style.sign and own is not None and (own.sign or own.separator):
            # The value itself is valid: the values of the column are inconsistent.
            why = ": other values of the column do not have its symbol or its digit groups"
            remedy = "write all values of the column in the same format"
        return NotANumberError(
            f"{self.path}, line {line}, {self.describe_column(position)}: {shown!r} is not a "
            f"number{why}",
            remedy,
            *suggest_codes(shown),
            Remedy("read the column as categories", categorical=[name]),
        )


def _to_array(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _parse_grouped(words: Any) -> Any:
    """Convert strings such as 1.234,5 to numbers; others raise `pyarrow.ArrowInvalid`."""
    words = pc.utf8_trim_whitespace(words)
    if not pc.all(pc.match_substring_regex(words, COMMA_NUMBER_PATTERN)).as_py():
        raise pa.ArrowInvalid("not a number")
    points = pc.replace_substring(pc.replace_substring(words, ".", ""), ",", ".")
    return points.cast(pa.float64())


def _handle_invalid_row(row: Any) -> str:
    """Skip lines of spaces; other malformed ones are left to the slow parser."""
    return "error" if row.text.strip() else "skip"


def decode(data: bytes, path: Path, first_line: int) -> str:
    """Decode UTF-8; an error names the first byte that is not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first_line + count_lines(data[: error.start])
        begin = max(data.rfind(b"\n", 0, error.start), data.rfind(b"\r", 0, error.start)) + 1
        raise TableError(
            f"{path}, line {line}, byte {error.start - begin + 1} of the line: "
            f"0x{data[error.start]:02x} is not UTF-8",
            Remedy("set its encoding", encoding="latin-1"),
        ) from None
