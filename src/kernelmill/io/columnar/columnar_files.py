"""Files with typed columns: Parquet and Arrow IPC (Feather 2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.errors import Remedy
from kernelmill.formatting import plain
from kernelmill.io.columnar.arrow_messages import decompressed_bytes
from kernelmill.io.columnar.arrow_values import (
    decoded_bytes,
    detect_kind,
    drop_codes,
    find_inexact_integer,
    is_text,
    plain_type,
    to_categories,
    to_numbers,
    to_plain,
)
from kernelmill.io.columnar.parquet_pages import read_footer, scan_groups
from kernelmill.io.columnar.string_columns import (
    StringColumn,
    inspect_strings,
    to_styled_numbers,
)
from kernelmill.io.compression import GET_AGAIN, TemporaryCopy, copy_errors, read_head
from kernelmill.io.errors import NotANumberError, TableError
from kernelmill.io.parts import Part, cut_evenly
from kernelmill.io.table_file import (
    Original,
    TableColumn,
    TableFile,
    TableOptions,
    enumerate_names,
    large_integer_error,
    make_unique,
    name_originals,
    resolve_kinds,
    set_kinds,
)
from kernelmill.io.text.amounts import NumberStyle, find_signs
from kernelmill.io.text.records import MISSING_MARKERS, is_number
from kernelmill.storage.remote_path import RemotePath

__all__ = ["ArrowFile", "ColumnarFile", "ParquetFile", "arrow_errors"]


INSPECTED_ROWS = 10_000  # for strings that are dates or numbers


class ColumnarFile(TableFile):
    """A file whose columns have names and types; a format implements `read_schema`."""

    def __init__(self, path: Path, options: TableOptions, first: ColumnarFile | None) -> None:
        super().__init__(path, options, first)
        for name in ("delimiter", "header", "skip_rows", "decimal", "encoding"):
            if getattr(options, name) not in (None, 0):
                raise TableError(
                    f"is for text files, but {path} has columns with types",
                    "leave it out",
                    parameter=name,
                )
        with arrow_errors(path):  # names may not be UTF-8
            schema = self.read_schema()
            names = schema.names
        self._names, self._name_notes = make_unique(names)
        if not self._names:
            raise TableError(f"{path} has no columns", "give a file with columns")
        self._types = dict(zip(self._names, schema.types, strict=True))
        self._strings: dict[str, StringColumn] = (
            self._inspect_strings() if first is None else first._strings
        )
        self.configure(first)

    def _inspect_strings(self) -> dict[str, StringColumn]:
        """What the first strings show; nothing if names do not tell the columns."""
        names = [name for name, type_ in self._types.items() if is_text(type_)]
        if not names or self._name_notes:
            return {}
        rows = self.read_first_rows(names)
        return {} if rows is None else inspect_strings(rows, self.options.missing_codes)

    @abstractmethod
    def read_first_rows(self, names: list[str]) -> Any:
        """Read some columns of the first rows, about 10,000; None if there are no rows."""

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the kinds of columns and the rows per block, from the types of the columns."""
        self.notes = list(self._name_notes)
        kinds = {name: self.kind_of(type_) for name, type_ in self._types.items()}
        given = resolve_kinds(self._names, self.options, str(self.path))
        for name, kind in given.items():
            if kind not in (kinds[name], "other"):
                self._check_kind(TableColumn(name, kind), kinds[name])
        texts = {name for name, type_ in self._types.items() if is_text(type_)}
        shown = {name: found for name, found in self._strings.items() if name in texts}
        columns = set_kinds(kinds | {name: each.kind for name, each in shown.items()}, given)
        self.notes += [
            each.note for name, each in shown.items() if each.note is not None and name not in given
        ]
        self._rounded = {name for name, kind in given.items() if kind == "numeric"}
        self._unused = {name for name, kind in given.items() if kind == "other"}
        if first is not None and first.columns is not None:
            order = {column.name: place for place, column in enumerate(first.columns)}
            columns = tuple(sorted(columns, key=lambda each: order.get(each.name, len(order))))
        self.columns = columns
        self.ordered = frozenset(
            name
            for name, type_ in self._types.items()
            if pa.types.is_dictionary(type_) and type_.ordered and kinds[name] == "category"
        ).difference(given)
        self.booleans = frozenset(
            name for name, type_ in self._types.items() if pa.types.is_boolean(type_)
        ).difference(given)
        row = sum(8 if column.kind == "numeric" else 16 for column in columns)
        self._block_rows = max(1, self.options.block_bytes // row)
        self.originals = {} if self.options.originals is None else self._find_originals()

    def _find_originals(self) -> dict[str, Original]:
        """Where blocks have the values of columns as they are, without dictionaries."""
        for name, type_ in self._types.items():
            if detect_kind(type_) == "other":
                raise TableError(
                    f"{self.path}: column {name!r} of type {type_} cannot be copied to the result",
                    "use a file without it",
                    Remedy("do not keep the columns", keep_columns=False),
                )
        assert self.columns is not None
        names = name_originals([column.name for column in self.columns], self._types)
        return {name: Original(names[name], plain_type(self._types[name])) for name in names}

    @abstractmethod
    def read_schema(self) -> Any:
        """Read the Arrow schema of the file."""

    def kind_of(self, type_: Any) -> str:
        """The kind of a column of an Arrow type."""
        return detect_kind(type_)

    def check_batch(self, batch: Any) -> None:
        """Raise an error for offsets of a damaged file, which may point anywhere."""
        with arrow_errors(self.path):
            batch.validate(full=True)

    def _check_kind(self, column: TableColumn, kind: str) -> None:
        possible = {
            *(("numeric", "category"), ("date", "category")),
            *(("category", "numeric"), ("category", "date")),
        }
        if (kind, column.kind) in possible:
            return
        if column.name in self.unreadable:
            raise self.type_error(column.name)
        type_ = self._types[column.name]
        parameter, noun = {
            "category": ("categorical", "categories"),
            "numeric": ("numeric", "numbers"),
            "date": ("dates", "dates"),
        }[column.kind]
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            raise TableError(
                f"{self.path}: column {column.name!r} holds bytes (type {type_}), which cannot be "
                f"read as {noun}",
                "write it as a column of strings",
            )
        raise TableError(
            f"{self.path}: column {column.name!r} of type {type_} cannot be read as {noun}",
            Remedy(f"do not name it in {parameter}", **{parameter: ...}),
        )

    def type_error(self, name: str) -> TableError:
        """The error for a column in `unreadable`."""
        return TableError(
            f"{self.path}: {self.unreadable[name]}", "convert them to numbers or to strings"
        )

    def convert(self, batch: Any, first_row: int, *, copied: bool = False) -> Any:
        """Convert the columns of a batch to those of a block; `first_row` counts in the file.

        A batch that was converted before, and `copied`, has the columns in the order of the table.
        """
        assert self.columns is not None
        self.check_batch(batch)
        names = [each.name for each in self.columns] if copied else self._names
        positions = enumerate_names(names)
        arrays = []
        for column in self.columns:
            array = batch.column(positions[column.name])
            if column.kind == "other":
                arrays.append(pa.nulls(len(array)))
                continue
            # Categories stay a dictionary.
            if column.kind != "category" or not pa.types.is_dictionary(array.type):
                self.check_expansion(column.name, array)
            if pa.types.is_run_end_encoded(array.type):
                array = pc.run_end_decode(array)
            if self.options.missing_codes:
                array = drop_codes(array, self.options.missing_codes)
            if column.kind == "numeric":
                arrays.append(self._numbers(column, array, first_row))
            elif column.kind == "category":
                arrays.append(to_categories(array))
            elif column.kind == "date" and not pa.types.is_temporal(array.type):
                arrays.append(to_categories(array).cast(pa.string()))  # markers become null
            else:
                arrays.append(array)
        names = [column.name for column in self.columns]
        for name, original in self.originals.items():
            array = batch.column(positions[name])
            self.check_expansion(name, array)
            arrays.append(to_plain(array))
            names.append(original.name)
        return pa.record_batch(arrays, names=names)

    def check_expansion(self, name: str, array: Any) -> None:
        """Raise an error for strings of a dictionary that would fill the memory one by one."""
        size = decoded_bytes(array)
        if size > MOST_BLOCK_BYTES:
            raise self.expansion_error(f"column {name!r} of {len(array)} rows", size)

    def expansion_error(self, what: str, size: int) -> TableError:
        """The error for a file of few bytes that would take much memory."""
        return TableError(
            f"{self.path}: {what} would take {plain.size(size)} in memory, more than the "
            f"{plain.size(MOST_BLOCK_BYTES)} that a block may take",
            "do not use the file if you do not trust its source",
            "write it again in smaller row groups or batches",
        )

    def _numbers(self, column: TableColumn, array: Any, first_row: int) -> Any:
        large = None if column.name in self._rounded else find_inexact_integer(array)
        if large is not None:
            raise large_integer_error(str(self.path), column.name, large)
        style = self._strings[column.name].style if column.name in self._strings else None
        try:
            if style is not None and not pa.types.is_floating(array.type):  # as of a copy
                return to_styled_numbers(array, style)
            return to_numbers(array)
        except pa.ArrowInvalid:
            if column.name in self._rounded:  # by somebody who says that it is numeric
                style = NumberStyle(decimal="." if style is None else style.decimal, loose=True)
                with suppress(pa.ArrowInvalid):
                    return to_styled_numbers(array, style)
            raise self._number_error(column.name, array, first_row, style) from None

    def _number_error(
        self, name: str, array: Any, first_row: int, style: NumberStyle | None
    ) -> NotANumberError:
        """The error for the first value that is not a number of the style."""
        is_right = is_number if style is None else style.is_number
        why = "" if style is None else style.describe()
        sign = ""
        row, word = first_row, ""
        for row, value in enumerate(array.to_pylist(), first_row + 1):  # noqa: B007
            word = str(value).strip()
            if value is None or word in MISSING_MARKERS:
                continue
            own = "".join(find_signs(pa.array([word]))) if style and style.loose else ""
            if own and sign and own != sign:
                why = f", since others of the column have the sign {sign}"
            elif is_right(word):
                sign = sign or own
                continue
            break
        return NotANumberError(
            f"{self.path}, row {row}, column {name!r}: {word!r} is not a number{why}",
            "correct it",
            Remedy("read the column as categories", categorical=[name]),
        )


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Convert errors of pyarrow to a `TableError` that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = str(error).strip().split("\n")[0].rstrip(".")
        raise TableError(
            f"{path} is damaged or of another format: {first_line}", GET_AGAIN
        ) from None


def _decode_dictionaries(batch: Any) -> Any:
    """A batch without dictionaries, so that it can be written to a file together with others."""
    arrays = [
        pc.cast(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for array in batch.columns
    ]
    return pa.record_batch(arrays, names=batch.schema.names)


MOST_BLOCK_BYTES = 1 << 29  # what the rows of a block may expand to
_MOST_EXPANSION = 20  # of the pages of a row group, beyond MOST_BLOCK_BYTES
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
        self._stored_types = tuple(zip(schema.names, schema.types, strict=True))
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
                if pages.held > max(MOST_BLOCK_BYTES, _MOST_EXPANSION * pages.stored):
                    raise self.expansion_error(f"row group {number}", pages.held)
        self._has_checked_pages = True

    def read_first_rows(self, names: list[str]) -> Any:
        """Read the first rows of the first row group that has some."""
        self._check_pages()
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
        self._places: list[tuple[int, int]] = []  # the group and the first row of each block

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
                for batch in self._read_group(file, group):
                    places.append((group, first_row))
                    yield self.convert(batch, first_row), None
                    first_row += batch.num_rows
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
                for batch in self._read_group(file, group):
                    yield self.convert(batch, first_row), None
                    first_row += batch.num_rows

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
        """The columns to read, None for all: lists and bytes may expand to any size."""
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
                f"{self.path}: column {others[0]!r} of type {self._types[others[0]]} cannot be "
                "told from others, since names repeat",
                "write the file again with different names",
            )
        return [name for name in self._names if name in used]

    def _expands(self, name: str) -> bool:
        return self.kind_of(self._types[name]) == "other"

    def _add_unread(self, batch: Any) -> Any:
        """A batch with the columns that are not read, which are null."""
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
        group, first_row = self._places[number]
        with self._open() as file:
            batches = list(self._read_group(file, group))
        if len(batches) != 1:
            raise self.changed_error()
        return self.convert(batches[0], first_row), None


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
                f"{path} is not an Arrow IPC file, or it is a stream, which has no random access",
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
            return file.schema

    def _count_batches(self, source: Any, listed: int) -> int:
        """The number of record batches of a file; at most one more than its footer lists.

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
                for start in range(0, batch.num_rows, self._block_rows):
                    rows = batch.slice(start, self._block_rows)
                    yield self.convert(rows, before + start), None
                before += batch.num_rows

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
                if batch.num_rows > self._block_rows:
                    self.check_batch(batch)  # slices have no count of nulls that could be wrong
                for start in range(0, batch.num_rows, self._block_rows):
                    part = batch.slice(start, self._block_rows)
                    places.append((number, before, start, part.num_rows))
                    yield self.convert(part, before + start), None
                before += batch.num_rows
        self._places = places

    def block(self, number: int) -> tuple[Any, None]:
        """Read a block again."""
        batch_number, before, start, count = self._places[number]
        with self._open() as file:
            batch = self._read_batch(file, batch_number)
            return self.convert(batch.slice(start, count), before + start), None


def _count_rows(file: Any) -> int:
    with_rows = getattr(file, "count_rows", None)
    if with_rows is not None:
        return int(with_rows())
    return sum(int(file.get_batch(number).num_rows) for number in range(file.num_record_batches))
