"""Files with typed columns: what Parquet and Arrow files share."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.io.column_values import (
    as_categories,
    as_numbers,
    inexact_integer,
    kind_of_type,
)
from kernelmill.io.errors import NotANumberError, TableError
from kernelmill.io.table_file import Column, TableFile, TableOptions
from kernelmill.io.text_dialect import unique_names
from kernelmill.io.text_kinds import given_kinds, overridden_kinds
from kernelmill.io.text_values import MISSING_MARKERS, is_number

__all__ = ["ColumnarFile", "arrow_errors"]


class ColumnarFile(TableFile):
    """A file whose columns have names and types; a format tells its schema by `schema`."""

    def __init__(self, path: Path, options: TableOptions, first: ColumnarFile | None) -> None:
        super().__init__(path, options, first)
        for name in ("delimiter", "header", "skip_rows", "decimal"):
            if getattr(options, name) not in (None, 0):
                raise TableError(f"{name} is for text files, but {path} has columns with types.")
        with arrow_errors(path):  # names may not be UTF-8
            schema = self.schema()
            names = schema.names
        self._names, notes = unique_names(names)
        self.notes += notes
        if not self._names:
            raise TableError(f"{path} has no columns; give a file with some.")
        types = dict(zip(self._names, schema.types, strict=True))
        kinds = {name: kind_of_type(type_) for name, type_ in types.items()}
        given = given_kinds(self._names, options.categorical, options.numeric, str(path))
        columns = overridden_kinds(kinds, given)
        for column in columns:
            if column.kind != kinds[column.name]:
                self._check_override(column, kinds[column.name], types[column.name])
        if first is not None and first.columns is not None:
            order = {column.name: place for place, column in enumerate(first.columns)}
            columns = tuple(sorted(columns, key=lambda each: order.get(each.name, len(order))))
        self.columns = columns
        row = sum(8 if column.kind == "numeric" else 16 for column in columns)
        self._block_rows = max(1, options.block_bytes // row)

    @abstractmethod
    def schema(self) -> Any:
        """The pyarrow schema of the file."""

    def _check_override(self, column: Column, kind: str, type_: Any) -> None:
        possible = {("numeric", "category"), ("date", "category"), ("category", "numeric")}
        if (kind, column.kind) not in possible:
            option = "categorical" if column.kind == "category" else "numeric"
            if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
                raise TableError(
                    f"{self.path}: column {column.name!r} holds bytes (type {type_}), which cannot "
                    f"be read as {option}; write it as a column of strings."
                )
            raise TableError(
                f"{self.path}: column {column.name!r} of type {type_} cannot be read as "
                f"{option}; leave it out of {option}."
            )

    def finished(self, batch: Any, first_row: int) -> Any:
        """A batch with the kinds of columns that blocks have; rows count from 0 in the file."""
        assert self.columns is not None
        with arrow_errors(self.path):
            # Offsets in a damaged file may point anywhere.
            batch.validate(full=True)
        places = {name: place for place, name in enumerate(self._names)}
        arrays = []
        for column in self.columns:
            array = batch.column(places[column.name])
            if column.kind == "numeric":
                arrays.append(self._numbers(column, array, first_row))
            elif column.kind == "category":
                arrays.append(as_categories(array))
            else:
                arrays.append(array)
        return pa.record_batch(arrays, names=[column.name for column in self.columns])

    def _numbers(self, column: Column, array: Any, first_row: int) -> Any:
        large = inexact_integer(array)
        if large is not None:
            raise TableError(
                f"{self.path}: column {column.name!r} has whole numbers beyond 2**53, such as "
                f"{large}, of which float64 would make one of several different ones; read it as "
                f"categories: categorical=[{column.name!r}] "
                f"(--categorical {shlex.quote(column.name)}), or write it as smaller numbers."
            )
        try:
            return as_numbers(array)
        except pa.ArrowInvalid:
            for place, value in enumerate(array.to_pylist()):
                word = str(value).strip()
                if value is not None and word not in MISSING_MARKERS and not is_number(word):
                    raise NotANumberError(
                        f"{self.path}, row {first_row + place}, column {column.name!r}: {word!r} "
                        "is not a number",
                        "correct it, or leave the column out of numeric",
                    ) from None
            raise


@contextmanager
def arrow_errors(path: Path) -> Iterator[None]:
    """Errors of pyarrow as ones that name the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = str(error).strip().split("\n")[0].rstrip(".")
        raise TableError(f"{path} is damaged or of another format: {first_line}.") from None


def as_plain(batch: Any) -> Any:
    """A batch without dictionaries, which can be written to a file beside others."""
    arrays = [
        pc.cast(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for array in batch.columns
    ]
    return pa.record_batch(arrays, names=batch.schema.names)
