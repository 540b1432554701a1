"""Keys of rows: rows with equal keys are either all held out or all training rows.

A key is a 64-bit integer. By default it is a hash of the inputs of a row as they were read, so that
copies of a row have the same key in every file format. It can also be a hash of the value of one
column, the group of the row, or a time, by which keys are ordered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.columns import category_values
from kernelmill.encoding.dates import date_values, find_seconds, format_seconds
from kernelmill.encoding.inputs import Inputs, check_name
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.formatting import plain
from kernelmill.io import Table, TableBlock, TableError
from kernelmill.io.columnar.arrow_values import detect_kind, to_plain
from kernelmill.random.row_hashes import Keys, hash_numbers, hash_rows, mix, multipliers

__all__ = [
    "NO_GROUP",
    "NO_TIME",
    "Division",
    "GroupKeys",
    "InputKeys",
    "RowKeys",
    "TimeKeys",
    "find_division",
    "read_column",
    "select_column",
]

_NO_VALUE = hash_numbers(np.array([np.nan]), np.uint64(1))[0]
_ONE = np.uint64(1)
_SIGN = np.uint64(1 << 63)

NO_GROUP = int(mix(np.array([_NO_VALUE]))[0])
"""The key of rows without a group: they are one."""
NO_TIME = 0
"""The key of rows without a time: they are the earliest."""


class RowKeys(ABC):
    """What the keys of rows are, for every pass over a table."""

    @abstractmethod
    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the keys of the rows of a block.

        `positions` are those of the rows in the table, if they are not consecutive.
        """


@dataclass(frozen=True)
class InputKeys(RowKeys):
    """Hashes of the inputs: of numbers by value, of categories and dates by what they stand for.

    Zeros are equal whatever their sign, and so are all missing values of a column. Names of columns
    do not matter, but their order does.
    """

    inputs: Inputs

    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the hashes of the inputs."""
        data = self.inputs.data(block.data)
        columns = self.inputs.columns
        if columns is None:
            return hash_rows(data)
        found = np.zeros(data.num_rows, np.uint64)
        factors = multipliers(np.arange(len(columns)))
        for (name, kind), factor in zip(columns, factors, strict=True):
            found += hash_column(data.column(name), kind, factor)
        return mix(found)


@dataclass(frozen=True, eq=False)
class GroupKeys(RowKeys):
    """Hashes of the groups of rows, from a column or from an array of all rows."""

    column: str | int | None
    kind: str = "numeric"
    values: Keys | None = None

    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the hashes of the groups."""
        if self.values is not None:
            first = block.first_row
            rows = slice(first, first + block.n_rows) if positions is None else positions
            return self.values[rows]
        assert self.column is not None
        return mix(hash_column(read_column(block, self.column), self.kind, _ONE))


@dataclass(frozen=True)
class TimeKeys(RowKeys):
    """Times in seconds, or numbers, as integers in the same order."""

    column: str | int
    form: str = ""  # of dates; "" for numbers

    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the times of the rows; `NO_TIME` if there is none."""
        column = read_column(block, self.column)
        if self.form:
            place = block.file, block.row_in_file
            numbers = date_values(column, str(self.column), self.form, *place)
        else:
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        bits = (numbers + 0.0).view(np.uint64)
        ordered = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        keys: Keys = np.where(np.isnan(numbers), np.uint64(NO_TIME), ordered)
        return keys

    def format(self, key: int) -> str:
        """Return the time of a key as text."""
        bits = np.array([key], np.uint64)
        number = float(np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float64)[0])
        return format_seconds(number, self.form) if self.form else plain.number(number, 12)


def select_column(block: TableBlock, column: str | int) -> TableBlock:
    """Return a block with one column."""
    is_table = isinstance(block.data, pa.RecordBatch)
    data = block.data.select([column]) if is_table else block.data[:, [int(column)]]
    return TableBlock(data, None, block.file, block.first_row, block.rows_before)


def read_column(block: Any, column: str | int) -> Any:
    """Return a column as an Arrow array."""
    if isinstance(block.data, pa.RecordBatch):
        return block.data.column(column)
    place = int(column) if block.data.shape[1] > 1 else 0  # `select_column` leaves one
    values = block.data[:, [place]]
    dense = values.toarray() if hasattr(values, "toarray") else values
    return pa.array(np.asarray(dense, np.float64).ravel())


@dataclass(frozen=True)
class Division:
    """What decides which rows are held out.

    Attributes
    ----------
    by : {"inputs", "groups", "time"}
    column : str, int or None
        The column of groups or times, as the table names it; None for groups in an array.
    kind : str
        The kind of the column.
    groups : GroupKeys or None
    """

    by: str = "inputs"
    column: str | int | None = None
    kind: str = "numeric"
    groups: GroupKeys | None = None

    @property
    def settings(self) -> dict[str, str | int]:
        """The argument of a fit that divides the same table alike; groups in an array have none."""
        name = {"groups": "groups", "time": "holdout_last"}.get(self.by)
        return {} if name is None or self.column is None else {name: self.column}


def find_division(
    table: Table, groups: Any, holdout_last: Any, target: str | int | None = None
) -> Division:
    """Return the division that a user asks for, with the column as the table names it."""
    if groups is not None and holdout_last is not None:
        raise ArgumentError(
            f"cannot be used with groups, got {holdout_last!r}",
            Remedy("leave it out", holdout_last=None),
            Remedy("leave out the groups", groups=None),
            parameter="holdout_last",
        )
    if groups is not None and not isinstance(groups, (str, bool, int, np.integer)):
        return Division("groups", None, groups=_hash_groups(table, groups))
    if groups is not None:
        column, kind = _find_column(table, "groups", groups, target)
        return Division("groups", column, kind, GroupKeys(column, kind))
    if holdout_last is not None:
        column, kind = _find_column(table, "holdout_last", holdout_last, target)
        if kind not in ("date", "numeric"):
            raise TableError(
                f"must be a column of dates or numbers, got {column!r} of kind {kind!r}",
                Remedy("read it as dates", dates=[column]),
                parameter="holdout_last",
            )
        return Division("time", column, kind)
    return Division()


def _find_column(
    table: Table, parameter: str, given: Any, target: str | int | None
) -> tuple[str | int, str]:
    check_name(parameter, given)
    if table.format == "svmlight":
        raise TableError(
            f"is for tables with columns, but {table.files[0]} is an svmlight file",
            Remedy("leave it out", **{parameter: None}),
            parameter=parameter,
        )
    position = table.column_index(given)
    found: str | int = position
    kind = "numeric"
    if table.columns is not None:
        found, kind = table.columns[position].name, table.columns[position].kind
    if found == target:
        raise TableError(f"must be a column other than the target {target!r}", parameter=parameter)
    if kind not in ("numeric", "category", "date"):
        raise TableError(
            f"must be a column of numbers, strings or dates, got {found!r} of kind {kind!r}",
            parameter=parameter,
        )
    return found, kind


def _hash_groups(table: Table, groups: Any) -> GroupKeys:
    """Return the keys of groups that are given as an array."""
    if table.format != "memory":
        raise ArgumentError(
            f"must be a column of {table.files[0]}, got an object of type {type(groups).__name__}",
            "add the groups to the table as a column, and name it",
            parameter="groups",
        )
    try:
        array = pa.array(groups, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, KeyError, OverflowError):
        raise ArgumentError(
            f"must be a column, or one string or 64-bit number for each row, got {groups!r:.80}",
            parameter="groups",
        ) from None
    array = to_plain(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    kind = detect_kind(array.type)
    if len(array) != table.n_rows or kind == "other":
        raise ArgumentError(
            f"must have one number or string for each of the {table.n_rows} rows, got "
            f"{len(array)} values of type {array.type}",
            parameter="groups",
        )
    return GroupKeys(None, kind, mix(hash_column(array, kind, _ONE)))


def hash_column(column: Any, kind: str, factor: np.uint64) -> Keys:
    """Return the summands of a column of a block in the hashes of its rows."""
    if kind == "numeric":
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return hash_numbers(numbers, factor)
    if kind == "date" and pa.types.is_temporal(column.type):
        seconds, _ = find_seconds(column, "year first")
        return _mix_hashes(_hash_seconds(seconds), np.isnan(seconds), factor)
    values = category_values(column)
    words = values.dictionary
    hashes = np.array([_hash_string(each) for each in words.to_pylist()], np.uint64)
    if kind == "date":  # by value, as in other formats, if the order of day and month is clear
        for form in ("year first", "time"):
            seconds, wrong = find_seconds(words, form)
            hashes = np.where(wrong, hashes, _hash_seconds(seconds))
    is_missing = values.is_null().to_numpy(zero_copy_only=False)
    indices = values.indices.fill_null(len(hashes)).to_numpy(zero_copy_only=False)
    return _mix_hashes(np.append(hashes, _NO_VALUE)[indices], is_missing, factor)


def _mix_hashes(hashes: Keys, is_missing: NDArray[np.bool_], factor: np.uint64) -> Keys:
    """Return the summands of values that have hashes; those of missing values as of numbers."""
    found: Keys = np.where(
        is_missing, hash_numbers(np.array([np.nan]), factor), mix(hashes * factor)
    )
    return found


def _hash_seconds(seconds: NDArray[np.float64]) -> Keys:
    return hash_numbers(np.rint(seconds * 1e6), _ONE)


def _hash_string(string: str | None) -> int:
    if string is None:
        return 0
    if string in _BOOLEANS:  # true in Parquet, True in text
        string = string.lower()
    return int.from_bytes(blake2b(string.encode(), digest_size=8).digest(), "little")


_BOOLEANS = ("True", "TRUE", "False", "FALSE")
