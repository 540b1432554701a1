"""The base class of files with typed columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelmill.errors import Message, Remedy
from kernelmill.formatting import plain
from kernelmill.io.columnar.arrow_values import (
    decoded_bytes,
    detect_kind,
    drop_codes,
    find_inexact_integer,
    is_text,
    plain_type,
    row_bytes,
    text_bytes,
    to_categories,
    to_numbers,
    to_plain,
)
from kernelmill.io.compression import GET_AGAIN
from kernelmill.io.errors import NotANumberError, TableError, suggest_codes
from kernelmill.io.limits import LONGEST_VALUE, MOST_BLOCK_BYTES, MOST_TEXT_BYTES
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
from kernelmill.io.text.amounts import NumberStyle, are_loose_numbers, detect_style, find_signs
from kernelmill.io.text.evidence import (
    describe_amounts,
    find_doubt,
    find_leading_zeros,
    find_separators,
)
from kernelmill.io.text.records import DATE_PATTERN, MISSING_MARKERS, NUMBER_PATTERN, is_number
from kernelmill.io.text.words import Words

__all__ = ["INSPECTED_ROWS", "ColumnarFile", "arrow_errors"]


INSPECTED_ROWS = 10_000  # for strings that are dates or numbers
_LONGEST_INSPECTED = 1 << 16  # bytes of a string


@dataclass(frozen=True)
class _StringColumn:
    """The properties of the first strings of a column.

    Attributes
    ----------
    kind : str
        "category", "date", or "numeric" for amounts, percentages and digit groups.
    style : NumberStyle or None
        How such numbers are written; of categories, how they are if they are declared numeric.
    separator : str
        The comma or point between digit groups, or "".
    note : Message or None
    """

    kind: str = "category"
    style: NumberStyle | None = None
    separator: str = ""
    note: Message | None = None


@dataclass(frozen=True)
class _Text:
    """A column of strings, and the bytes of those that are in memory at once."""

    array: Any
    bytes: int


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
            raise TableError(f"{path} has no columns", "use a file with columns")
        self._types = dict(zip(self._names, schema.types, strict=True))
        self._strings: dict[str, _StringColumn] = (
            self._inspect_strings() if first is None else first._strings
        )
        self.configure(first)

    def _inspect_strings(self) -> dict[str, _StringColumn]:
        """Return the properties of the first strings; nothing if column names are not unique."""
        names = [name for name, type_ in self._types.items() if is_text(type_)]
        if not names or self._name_notes:
            return {}
        rows = self.read_first_rows(names)
        if rows is None:
            return {}
        return {
            name: _inspect_strings(name, column, self.options.missing_codes)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
            if not _is_long(column)
        }

    @abstractmethod
    def read_first_rows(self, names: list[str]) -> Any:
        """Read some columns of the first rows, about 10,000; None if there are no rows."""

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the column kinds and the rows per block, from the types of the columns."""
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
        self.signs = {
            name: (each.style.sign, "")
            for name, each in shown.items()
            if each.style is not None and each.style.sign
        }
        marks = {
            name: (each.style.decimal, each.separator)
            for name, each in shown.items()
            if each.style is not None
        }
        self.marks = {name: each for name, each in marks.items() if each != (".", "")}
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
        self._most_text = max(MOST_TEXT_BYTES, 8 * self.options.block_bytes)
        self.originals = {} if self.options.originals is None else self._find_originals()

    def _find_originals(self) -> dict[str, Original]:
        """The columns of blocks with unconverted values, without dictionaries."""
        for name, type_ in self._types.items():
            if detect_kind(type_) == "other":
                raise TableError(
                    f"{self.path}: column {name!r} of type {type_} cannot be copied to the result",
                    "remove the column from the file",
                    Remedy("do not keep the columns", keep_columns=False),
                )
        assert self.columns is not None
        names = name_originals([column.name for column in self.columns], self._types)
        return {name: Original(names[name], plain_type(self._types[name])) for name in names}

    @abstractmethod
    def read_schema(self) -> Any:
        """Read the Arrow schema of the file."""

    def kind_of(self, type_: Any) -> str:
        """Return the kind of a column of an Arrow type."""
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
                f"{self.path}: column {column.name!r} holds bytes (type {type_}), which cannot "
                f"be read as {noun}",
                "write it as a string column",
            )
        raise TableError(
            f"{self.path}: column {column.name!r} of type {type_} cannot be read as {noun}",
            Remedy(f"do not name it in {parameter}", **{parameter: ...}),
        )

    def type_error(self, name: str) -> TableError:
        """Return the error for a column in `unreadable`."""
        message = self.unreadable[name]
        return TableError(f"{self.path}: {message.problem}", *message.remedies)

    def convert(
        self, batch: Any, first_row: int, *, copied: bool = False, checked: bool = False
    ) -> Any:
        """Convert the columns of a batch to those of a block; `first_row` counts in the file.

        A batch that was converted before, and `copied`, has the columns in the order of the table.
        One that was not `checked` is.
        """
        assert self.columns is not None
        if not checked:
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
                arrays.append(to_categories(array, self.options.not_missing))
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

    def split(self, batch: Any, first_row: int) -> Iterator[tuple[int, Any]]:
        """Yield parts of a batch whose strings fit into memory, with the rows before each.

        There is one part, unless strings are very long; those that are too long raise an error. The
        batch has been checked.
        """
        texts = self._find_strings(batch)
        for name, text in texts.items():
            if text.bytes > LONGEST_VALUE:
                self._check_lengths(row_bytes(text.array), first_row, name)
        held = sum(text.bytes for text in texts.values())
        if held <= self._most_text:
            yield 0, batch
            return
        if ordered := self.ordered.intersection(texts):  # their order is that of the dictionary
            what = f"the categories of column {min(ordered)!r}"
            raise self.expansion_error(what, held, self._most_text)
        lengths = np.sum([row_bytes(text.array) for text in texts.values()], axis=0)
        self._check_lengths(lengths, first_row)
        ends, start = np.cumsum(lengths), 0
        while start < batch.num_rows:
            before = ends[start - 1] if start else 0
            stop = int(np.searchsorted(ends, before + self._most_text, side="right"))
            rows = batch.slice(start, stop - start)
            arrays = [
                to_plain(array) if name in texts else array
                for name, array in zip(self._names, rows.columns, strict=True)
            ]
            yield start, pa.record_batch(arrays, names=batch.schema.names)
            start = stop

    def _check_lengths(
        self, lengths: NDArray[np.int64], first_row: int, column: str | None = None
    ) -> None:
        """Raise an error for the first row with too many bytes of strings, maybe of one column."""
        most = self._most_text if column is None else LONGEST_VALUE
        place = int(np.argmax(lengths > most))
        if lengths[place] <= most:
            return
        what = f"{self.path}, row {first_row + place + 1}"
        if column is None:
            raise TableError(
                f"{what}: its strings have {lengths[place]} bytes, more than the {most} that those "
                "of a row may have",
                "shorten them",
                Remedy("leave some of their columns out", drop=...),
            )
        raise TableError(
            f"{what}, column {column!r}: a string of {lengths[place]} bytes is longer than the "
            f"{most} that a value may have",
            "shorten it",
            Remedy("leave the column out", drop=[column]),
        )

    def _find_strings(self, batch: Any) -> dict[str, _Text]:
        """Return the columns of strings that are converted, and how much of them."""
        found = {}
        kinds = {each.name: each.kind for each in self.columns or ()}
        for name, array in zip(self._names, batch.columns, strict=True):
            if not self.originals and kinds[name] == "other":
                continue
            size = text_bytes(array)
            if (
                self.originals
                or kinds[name] != "category"
                or not pa.types.is_dictionary(array.type)
            ):
                self.check_expansion(name, array)
                size = max(size, decoded_bytes(array))
            if size:
                found[name] = _Text(array, size)
        return found

    def check_expansion(self, name: str, array: Any) -> None:
        """Raise an error for strings of a dictionary that would fill the memory one by one."""
        size = decoded_bytes(array)
        if size > MOST_BLOCK_BYTES:
            raise self.expansion_error(f"column {name!r} of {len(array)} rows", size)

    def expansion_error(self, what: str, size: int, most: int = MOST_BLOCK_BYTES) -> TableError:
        """Return the error for a file of few bytes that would take much memory."""
        return TableError(
            f"{self.path}: {what} would take {plain.size(size)} in memory, more than the limit of "
            f"{plain.size(most)}",
            "do not use the file unless you trust its source",
            "write it again in smaller row groups or batches",
        )

    def _numbers(self, column: TableColumn, array: Any, first_row: int) -> Any:
        large = None if column.name in self._rounded else find_inexact_integer(array)
        if large is not None:
            raise large_integer_error(str(self.path), column.name, large)
        style = self._strings[column.name].style if column.name in self._strings else None
        trained, is_given = self.options.trained_marks, column.name in self._rounded
        if trained is not None and is_given and is_text(self._types[column.name]):
            style = NumberStyle(decimal=trained.get(column.name, (".", ""))[0], loose=True)
        try:
            if style is not None and not pa.types.is_floating(array.type):  # as of a copy
                return _to_styled_numbers(array, style)
            return to_numbers(array)
        except pa.ArrowInvalid:
            if trained is None and is_given:  # the user declared the column numeric
                style = NumberStyle(decimal="." if style is None else style.decimal, loose=True)
                with suppress(pa.ArrowInvalid):
                    return _to_styled_numbers(array, style)
            raise self._number_error(column.name, array, first_row, style) from None

    def _number_error(
        self, name: str, array: Any, first_row: int, style: NumberStyle | None
    ) -> NotANumberError:
        """Return the error for the first value that is not a number of the style."""
        is_right = is_number if style is None else style.is_number
        why = sign = ""
        row, word = first_row, ""
        for row, value in enumerate(array.to_pylist(), first_row + 1):  # noqa: B007
            word = str(value).strip()
            if value is None or word in MISSING_MARKERS:
                continue
            own = "".join(find_signs(pa.array([word]))) if style and style.loose else ""
            if own and sign and own != sign:
                why = f", since other values of the column have the symbol {sign}"
            elif is_right(word):
                sign = sign or own
                continue
            break
        why = why or (NumberStyle() if style is None else style).describe(word)
        return NotANumberError(
            f"{self.path}, row {row}, column {name!r}: {word!r} is not a number{why}",
            "correct it",
            *suggest_codes(word),
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
            f"{path} is damaged or of another format: {first_line}",
            GET_AGAIN,
            Remedy("if the format was given, leave it out: it is detected", format=None),
        ) from None


def _is_long(column: Any) -> bool:
    """Return whether the strings of an array, maybe a chunked one, are too long to be inspected."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    long = any(row_bytes(each).max(initial=0) > _LONGEST_INSPECTED for each in chunks)
    return long or sum(map(text_bytes, chunks)) > MOST_TEXT_BYTES


def _inspect_strings(name: str, column: Any, codes: Sequence[str]) -> _StringColumn:
    """Inspect the first strings of a column, as those of text files are.

    Strings of plain numbers stay categories, with a note: the type of a column is respected. So do
    dictionaries.
    """
    unique = pc.unique(column)  # an Array, of chunked ones too
    if pa.types.is_dictionary(unique.type):  # strings that occur often
        unique = unique.cast(unique.type.value_type)
    words = Words(to_categories(drop_codes(unique, codes)).dictionary)
    if len(words) == 0:
        return _StringColumn()
    if words.all(DATE_PATTERN):
        return _StringColumn("date")
    if words.all(NUMBER_PATTERN):
        if find_leading_zeros(words):
            return _StringColumn()
        note = Message(
            f"Column {name!r} is read as categories, since its values are strings, but all of "
            f"them are numbers, such as {words.array[0].as_py()!r}",
            Remedy("read the column as numbers", numeric=[name]),
            column=name,
        )
        return _StringColumn(note=note)
    separators = find_separators(words)
    decimals = (".", ",") if words.any(",") else (".",)
    for decimal in decimals:
        if (style := detect_style(words.array, decimal)) is not None:
            note = describe_amounts(name, words.array[0].as_py())
            return _StringColumn("numeric", style, separators.replace(decimal, ""), note)
    found = [decimal for decimal in decimals if are_loose_numbers(words.array, decimal)]
    style = NumberStyle(decimal=found[0], loose=True) if found else None
    separator = separators.replace(found[0], "") if found else ""
    return _StringColumn("category", style, separator, find_doubt(name, words))


def _to_styled_numbers(array: Any, style: NumberStyle) -> Any:
    """Convert strings of a style to float64; others raise `pyarrow.ArrowInvalid`."""
    words = to_categories(array)
    # Dictionaries of files may have words of other rows.
    used = pc.unique(words.indices.drop_null())
    numbers = style.to_numbers(words.dictionary.take(used))
    return numbers.take(pc.index_in(words.indices, value_set=used))
