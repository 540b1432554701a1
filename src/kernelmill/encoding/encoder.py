"""Encoders: from blocks of a table to rows of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.columns import (
    CategoryCounts,
    CategoryEncoding,
    ColumnEncoding,
    NumericEncoding,
    NumericMoments,
    category_values,
    numeric_values,
)
from kernelmill.io.errors import TableError

__all__ = ["MISSING", "ColumnEncoder", "ColumnLearner", "EncodedColumn", "Encoder"]

MISSING = ("error", "impute")
_IN_TRAINING = (
    "say missing='impute' (--missing impute): numbers become the mean and are marked, categories "
    "get one more"
)
_IN_PREDICTION = "fit the model again with missing='impute' (--missing impute)"
_MOST_DENSE_COLUMNS = 1024  # of encoded rows; wider ones are sparse matrices


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table and what became of it, for people."""

    name: str
    kind: str
    n_columns: int
    missing: int
    detail: str


class Encoder(ABC):
    """Makes rows of float32 numbers of a block's data."""

    n_inputs: int
    missing: str

    @abstractmethod
    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """The encoded rows, an ndarray or a CSR array of float32; errors name file and row."""

    @abstractmethod
    def input_names(self) -> list[str]:
        """The names of the encoded columns."""

    @abstractmethod
    def to_record(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The encoder as JSON and arrays, for a model file."""


class ColumnEncoder(Encoder):
    """Encodes record batches: numbers are standardized, categories become columns of 0 and 1.

    Parameters
    ----------
    encodings : sequence of ColumnEncoding
        Of each column, in order.
    missing : {"error", "impute"}
        What a missing value means.
    """

    def __init__(self, encodings: Sequence[ColumnEncoding], missing: str) -> None:
        self.encodings = tuple(encodings)
        self.missing = missing
        self.n_inputs = sum(each.n_columns for each in self.encodings)

    def input_names(self) -> list[str]:
        """Such as "age" and "sex = Female"."""
        return [name for each in self.encodings for name in each.names()]

    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """Encode the columns, found by their names."""
        values = [self._values(each, data, file, first_row) for each in self.encodings]
        if self.n_inputs > _MOST_DENSE_COLUMNS:
            return self._sparse(values, data.num_rows)
        out = np.zeros((data.num_rows, self.n_inputs), np.float32)
        begin = 0
        for encoding, column in zip(self.encodings, values, strict=True):
            with np.errstate(over="ignore"):
                encoding.write(column, out[:, begin : begin + encoding.n_columns])
            begin += encoding.n_columns
        refuse_overflow(out, self.input_names, file, first_row)
        return out

    def _values(self, encoding: ColumnEncoding, data: Any, file: Any, first_row: int) -> Any:
        column = data.column(encoding.name)
        if self.missing == "error":
            refuse_missing(column, encoding.name, file, first_row, _IN_PREDICTION)
        if isinstance(encoding, NumericEncoding):
            return numeric_values(column, encoding.name, first_row, file)
        return category_values(column)

    def _sparse(self, values: list[Any], n_rows: int) -> Any:
        parts = []
        for encoding, column in zip(self.encodings, values, strict=True):
            if isinstance(encoding, CategoryEncoding):
                positions = encoding.positions(column)
                rows = np.flatnonzero(positions >= 0)
                ones = np.ones(len(rows), np.float32)
                shape = (n_rows, encoding.n_columns)
                parts.append(scipy.sparse.csr_array((ones, (rows, positions[rows])), shape=shape))
            else:
                dense = np.zeros((n_rows, encoding.n_columns), np.float32)
                encoding.write(column, dense)
                parts.append(scipy.sparse.csr_array(dense))
        return scipy.sparse.hstack(parts, format="csr", dtype=np.float32)

    def to_record(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON alone: categories and moments."""
        columns = [each.to_json() for each in self.encodings]
        return {"kind": "columns", "missing": self.missing, "columns": columns}, {}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The encoder that `to_record` described; wrong values raise ValueError."""
        missing = record["missing"]
        if missing not in MISSING or not isinstance(record["columns"], list):
            raise ValueError("the encoding of columns is not as it should be")
        return cls([_encoding_from_json(each) for each in record["columns"]], missing)


class ColumnLearner:
    """Learns a `ColumnEncoder` from record batches, one after the other.

    Parameters
    ----------
    columns : sequence of (name, kind)
        The inputs; a kind is "numeric" or "category".
    missing : {"error", "impute"}
    """

    def __init__(self, columns: Sequence[tuple[str, str]], missing: str) -> None:
        self.missing = missing
        self._learners = [
            NumericMoments(name) if kind == "numeric" else CategoryCounts(name)
            for name, kind in columns
        ]

    def update(self, data: Any, *, file: Any, first_row: int) -> None:
        """Take in a block."""
        for learner in self._learners:
            column = data.column(learner.name)
            if self.missing == "error":
                refuse_missing(column, learner.name, file, first_row, _IN_TRAINING)
            if isinstance(learner, NumericMoments):
                learner.update(numeric_values(column, learner.name, first_row, file))
            else:
                learner.update(category_values(column))

    def finish(self) -> tuple[ColumnEncoder, list[EncodedColumn], list[str]]:
        """The encoder, what became of each column, and notes on doubtful ones."""
        marks = self.missing == "impute"
        encodings: list[ColumnEncoding] = []
        summary = []
        for learner in self._learners:
            if isinstance(learner, NumericMoments):
                numeric = learner.encoding(marks=marks)
                encodings.append(numeric)
                kind, detail = "numeric", learner.detail(numeric)
            else:
                category = learner.encoding(marks=marks)
                encodings.append(category)
                kind, detail = "category", learner.detail(category)
            n_columns = encodings[-1].n_columns
            summary.append(EncodedColumn(learner.name, kind, n_columns, learner.missing, detail))
        encoder = ColumnEncoder(encodings, self.missing)
        if encoder.n_inputs == 0:
            raise TableError(
                "nothing can be learnt from columns that are all constant; give other columns."
            )
        return encoder, summary, self._notes(encodings)

    def _notes(self, encodings: list[ColumnEncoding]) -> list[str]:
        notes = [
            note
            for learner, encoding in zip(self._learners, encodings, strict=True)
            if (note := learner.note(encoding)) is not None
        ]
        constant = [each.name for each in encodings if each.n_columns == 0]
        if constant:
            shown = ", ".join(map(repr, constant[:5])) + (", ..." if len(constant) > 5 else "")
            notes.append(f"{len(constant)} constant columns are left out: {shown}.")
        return notes


def refuse_missing(column: Any, name: str, file: Any, first_row: int, move: str) -> None:
    """Refuse a column with a missing value, a NaN included; `move` says what to do."""
    absent = column.is_null(nan_is_null=True)
    if absent.true_count:
        row = int(np.argmax(absent.to_numpy(zero_copy_only=False)))
        raise TableError(
            f"{file}: column {name!r} has no value in row {first_row + row + 1}; fill it in, or "
            f"{move}."
        )


def refuse_overflow(rows: NDArray[Any], names: Any, file: Any, first_row: int) -> None:
    """Refuse encoded rows with a value beyond float32."""
    if not np.isfinite(rows).all():
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(rows)))
        raise TableError(
            f"{file}: {names()[column]!r} in row {first_row + row + 1} is too far from the values "
            "of training to be encoded; correct it."
        )


def _encoding_from_json(values: Mapping[str, Any]) -> ColumnEncoding:
    name = values["name"]
    if type(name) is not str or type(values["marks"]) is not bool:
        raise ValueError("the encoding of a column is not as it should be")
    if values["kind"] == "numeric":
        mean, scale = float(values["mean"]), float(values["scale"])
        if not (np.isfinite(mean) and np.isfinite(scale) and scale >= 0):
            raise ValueError(f"column {name!r} has no finite mean and scale")
        return NumericEncoding(name, mean, scale, values["marks"])
    categories = values["categories"]
    if (
        values["kind"] != "category"
        or not isinstance(categories, list)
        or not all(type(each) is str for each in categories)
        or len(set(categories)) != len(categories)
        or type(values["others"]) is not bool
    ):
        raise ValueError(f"column {name!r} is not encoded as it should be")
    return CategoryEncoding(name, tuple(categories), values["others"], values["marks"])
