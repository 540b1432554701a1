"""Encoders: from blocks of a table to numeric rows.

An encoder is fitted in one pass over the table that a model is trained on, and then applied to the
blocks of this and other tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Any, Self

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding import MISSING
from kernelmill.encoding.column_statistics import CategoryCounts, NumericMoments
from kernelmill.encoding.columns import (
    CategoryEncoding,
    ColumnEncoding,
    NumericEncoding,
    OrdinalEncoding,
    category_values,
    numeric_values,
)
from kernelmill.encoding.dates import DateEncoding, DateFormats, check_zones, date_values
from kernelmill.encoding.monotone import most_knots
from kernelmill.encoding.units import common_scale, may_share_unit
from kernelmill.errors import Message, Remedy
from kernelmill.files.fields import ADDED, Stored, Tagged
from kernelmill.files.kinds import Choice, Float, ListOf
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError

__all__ = ["ColumnEncoder", "ColumnLearner", "EncodedColumn", "Encoder", "RowScaling"]

# How a column is stored in a model file.
_COLUMN_ENCODINGS = Tagged(
    "kind",
    {
        "numeric": NumericEncoding,
        "category": CategoryEncoding,
        "ordinal": OrdinalEncoding,
        "date": DateEncoding,
    },
)

_IN_TRAINING = Remedy(
    "impute missing values: missing numbers become the mean and get an indicator column; a "
    "missing category becomes a category of its own",
    missing="impute",
)
_IN_PREDICTION = Remedy("train the model again with imputation of missing values", missing="impute")
_LONGEST_ROW = 3.0  # of scaled rows (docs/decisions/017)
_FEWEST_OF_ONE_FLAG = 5  # columns in one unit, for each of 0 and 1 that may be one of them
_MOST_DENSE_COLUMNS = 1024  # the number of encoded columns above which rows are sparse


@dataclass(frozen=True)
class EncodedColumn:
    """A column of the table and its encoding, for the user."""

    name: str
    kind: str
    n_columns: int
    missing: int
    detail: str


@dataclass(frozen=True)
class RowScaling(Stored):
    r"""Divides a row x by :math:`\sqrt{r^2 + |x|^2 / 9}`: no row becomes longer than 3.

    Values of a polynomial kernel grow with a power of the row norms. Standardized columns with a
    few large values make some rows ten times as long as others, and predictions for these rows
    would be wrong by orders of magnitude.

    Parameters
    ----------
    radius : float
        r, the norm of a typical row. Rows of this norm are scaled to norm 0.95.
    """

    radius: Annotated[float, Float(above=0)]

    @classmethod
    def of_rows(cls, X: Any) -> Self:
        """Return the scaling whose radius is the root mean square norm of these rows."""
        return cls(float(np.sqrt(_squared_norms(X).mean())) or 1.0)

    def apply(self, X: Any) -> Any:
        """Return the scaled rows, in the format and dtype of X.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill.encoding.encoder import RowScaling
        >>> RowScaling(2.0).apply(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2e9]])).round(3)
        array([[0.   , 0.   ],
               [0.949, 0.   ],
               [0.   , 3.   ]])
        """
        factors = 1 / np.sqrt(self.radius**2 + _squared_norms(X) / _LONGEST_ROW**2)
        if not scipy.sparse.issparse(X):
            return X * factors.astype(X.dtype)[:, np.newaxis]
        values = X.data * np.repeat(factors, np.diff(X.indptr)).astype(X.dtype)
        return scipy.sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)


def _squared_norms(X: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(X):
        return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return squares


class Encoder(Stored, ABC):
    """Converts the data of a block to rows of float32 numbers."""

    missing: str
    rows: RowScaling | None

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """The number of encoded columns."""

    @abstractmethod
    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """Return the encoded rows, an ndarray or a CSR array of float32.

        Errors name the file, and the row counted from `first_row`.
        """

    def count_unseen(self, data: Any) -> dict[str, Counter[str]]:
        """Return the counts of categories that did not occur in training, by column."""
        return {}

    @property
    def unused(self) -> frozenset[str]:
        """Columns of the table without encoded columns: they were constant in training."""
        return frozenset()

    @abstractmethod
    def input_names(self) -> list[str]:
        """Return the names of the encoded columns."""

    @abstractmethod
    def groups(self) -> NDArray[np.intp]:
        """Return the group of each encoded column, numbered from 0 in order; no group is empty.

        The columns of a group belong together and can share a length scale. The one-hot columns of
        a categorical column are a group. A numeric column is a group, and so is the indicator of
        its missing values.
        """

    @abstractmethod
    def group_names(self) -> list[str]:
        """Return the name of each group."""


@dataclass(frozen=True)
class ColumnEncoder(Encoder):
    """Encodes record batches: numbers are standardized, categories become columns of 0 and 1.

    Skewed and heavy-tailed numbers may have a monotone transform. Ordered categories may be encoded
    as numbers.

    Parameters
    ----------
    columns : sequence of ColumnEncoding
        The encoding of each column, in order.
    missing : {"error", "impute"}
        What to do about missing values.
    rows : RowScaling, optional
        Applied to the encoded rows.
    """

    columns: Annotated[Sequence[ColumnEncoding], ListOf(_COLUMN_ENCODINGS)]
    missing: Annotated[str, Choice(*MISSING)]
    rows: RowScaling | None = field(default=None, metadata=ADDED)

    @property
    def n_inputs(self) -> int:
        """The number of encoded columns."""
        return sum(each.n_columns for each in self.columns)

    @property
    def unused(self) -> frozenset[str]:
        """Columns of the table without encoded columns: they were constant in training."""
        return frozenset(each.name for each in self.columns if not each.n_columns)

    def input_names(self) -> list[str]:
        """Names such as "age" and "sex = Female"."""
        return [name for each in self.columns for name in each.names()]

    def groups(self) -> NDArray[np.intp]:
        """One group for a number, one for the mark of its missing values, one for a category."""
        sizes = [size for each in self.columns for _, size in each.groups()]
        return np.repeat(np.arange(len(sizes)), sizes)

    def group_names(self) -> list[str]:
        """Names such as "age", "age is missing" and "sex"."""
        return [name for each in self.columns for name, _ in each.groups()]

    def encode(self, data: Any, *, file: Any = "the table", first_row: int = 0) -> Any:
        """Encode the columns, which are found by their names; `unused` ones may be absent."""
        used = [each for each in self.columns if each.n_columns]
        values = [self._values(each, data, file, first_row) for each in used]
        pairs = list(zip(used, values, strict=True))
        width = self.n_inputs
        if width > _MOST_DENSE_COLUMNS:
            sparse = self._encode_sparse(pairs, data.num_rows)
            check_overflow(sparse, self.input_names, file, first_row)
            return scale_rows(sparse, self.rows)
        out = np.zeros((data.num_rows, width), np.float32)
        _write_columns(pairs, out)
        check_overflow(out, self.input_names, file, first_row)
        return scale_rows(out, self.rows)

    def count_unseen(self, data: Any) -> dict[str, Counter[str]]:
        """Return the counts of categories that did not occur in training, by column."""
        found = {
            each.name: each.count_unseen(category_values(data.column(each.name)))
            for each in self.columns
            if isinstance(each, CategoryEncoding | OrdinalEncoding)
            and (each.n_columns or each.name in data.schema.names)
        }
        return {name: counts for name, counts in found.items() if counts}

    def _values(self, encoding: ColumnEncoding, data: Any, file: Any, first_row: int) -> Any:
        column = data.column(encoding.name)
        if self.missing == "error":
            check_present(column, encoding.name, file, first_row, _IN_PREDICTION)
        if isinstance(encoding, DateEncoding):
            check_zones(column, encoding.name, encoding.zoned, file, first_row)
            return date_values(column, encoding.name, encoding.format, file, first_row)
        if isinstance(encoding, NumericEncoding):
            return numeric_values(column, encoding.name, first_row, file)
        return category_values(column)

    def _encode_sparse(self, pairs: list[Any], n_rows: int) -> Any:
        parts = []
        for begin in range(0, len(pairs), _MOST_DENSE_COLUMNS):
            some = pairs[begin : begin + _MOST_DENSE_COLUMNS]
            for is_category, group in groupby(
                some, key=lambda pair: isinstance(pair[0], CategoryEncoding)
            ):
                encode = _encode_categories if is_category else _encode_numbers
                parts.append(encode(list(group), n_rows))
        return scipy.sparse.hstack(parts, format="csr", dtype=np.float32)


def _encode_categories(pairs: list[Any], n_rows: int) -> Any:
    """Return a sparse matrix of columns of categories, given with their values."""
    rows, columns, begin = [], [], 0
    for encoding, values in pairs:
        positions = encoding.positions(values)
        rows.append(np.flatnonzero(positions >= 0))
        columns.append(positions[rows[-1]] + begin)
        begin += encoding.n_columns
    places = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(len(places[0]), np.float32)
    return scipy.sparse.csr_array((ones, places), shape=(n_rows, begin))


def _encode_numbers(pairs: list[Any], n_rows: int) -> Any:
    """Return a sparse matrix of other columns, for those that are 0 in most rows."""
    dense = np.zeros((n_rows, sum(encoding.n_columns for encoding, _ in pairs)), np.float32)
    _write_columns(pairs, dense)
    return scipy.sparse.csr_array(dense)


def _write_columns(pairs: list[Any], out: NDArray[Any]) -> None:
    """Encode columns, given with their values, side by side."""
    begin = 0
    for encoding, values in pairs:
        with np.errstate(over="ignore"):
            encoding.write(values, out[:, begin : begin + encoding.n_columns])
        begin += encoding.n_columns


class ColumnLearner:
    """Fits a `ColumnEncoder` to record batches, one after the other.

    Parameters
    ----------
    columns : sequence of (name, kind)
        The inputs; kinds are "numeric" and "category".
    missing : {"error", "impute"}
    transform : {"auto", "none", "rank"}, default="auto"
        Which numeric columns are transformed from ranks to normal scores. If it is not "none",
        categories that have an order become one number.
    ordered : collection of str, optional
        Categories whose dictionaries are sorted by level.
    day_first : bool, optional
        Whether the day or the month comes first in ambiguous dates.
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, str]],
        missing: str,
        transform: str = "auto",
        ordered: Collection[str] = (),
        day_first: bool | None = None,
    ) -> None:
        self.missing = missing
        self.transform = transform
        self.day_first = day_first
        self._learners = [
            NumericMoments(name)
            if kind == "numeric"
            else DateFormats(name)
            if kind == "date"
            else CategoryCounts(name, ordered=name in ordered)
            for name, kind in columns
        ]

    def update(self, data: Any, *, file: Any, first_row: int) -> None:
        """Add the data of a block."""
        for learner in self._learners:
            column = data.column(learner.name)
            if self.missing == "error":
                check_present(column, learner.name, file, first_row, _IN_TRAINING)
            if isinstance(learner, DateFormats):
                learner.update(column, file=file, first_row=first_row)
            elif isinstance(learner, NumericMoments):
                learner.update(numeric_values(column, learner.name, first_row, file))
            else:
                learner.update(category_values(column))

    def merge(self, later: ColumnLearner) -> None:
        """Add the statistics of the rows that follow; `later` is changed."""
        for mine, other in zip(self._learners, later._learners, strict=True):
            mine.merge(other)  # type: ignore[arg-type] # of the same kind

    def finish(
        self, sample: Any = None, target: NDArray[np.float64] | None = None
    ) -> tuple[ColumnEncoder, list[EncodedColumn], list[Message | str]]:
        """Return the encoder, a summary of each column, and notes on doubtful ones.

        Transforms are chosen from `sample`, a record batch of rows in any order, and the numbers to
        predict for these rows, which are NaN for rows that must not be used.
        """
        marks = self.missing == "impute"
        encodings: list[ColumnEncoding] = []
        summary = []
        for learner in self._learners:
            if isinstance(learner, NumericMoments):
                numeric = learner.encoding(
                    marks=marks,
                    sample=None
                    if sample is None
                    else numeric_values(sample.column(learner.name), learner.name, 0, "the sample"),
                    transform=self.transform,
                    n_knots=most_knots(len(self._learners)),
                    target=target,
                )
                encodings.append(numeric)
                kind, detail = "numeric", learner.detail(numeric)
            elif isinstance(learner, DateFormats):
                date = learner.encoding(
                    sample.column(learner.name), marks=marks, day_first=self.day_first
                )
                encodings.append(date)
                kind, detail = "date", learner.detail(date)
            else:
                category = learner.encoding(marks=marks, ordinal=self.transform != "none")
                encodings.append(category)
                is_ordinal = isinstance(category, OrdinalEncoding)
                kind, detail = "ordinal" if is_ordinal else "category", learner.detail(category)
            n_columns = encodings[-1].n_columns
            summary.append(EncodedColumn(learner.name, kind, n_columns, learner.missing, detail))
        encoder = ColumnEncoder(encodings, self.missing)
        if encoder.n_inputs == 0:
            raise TableError("all input columns are constant", "add columns that vary")
        return encoder, summary, self._notes(encodings)

    def in_one_unit(
        self, encoder: ColumnEncoder, columns: Sequence[EncodedColumn]
    ) -> tuple[ColumnEncoder, list[EncodedColumn]] | None:
        """Return an encoder that divides columns of numbers by one number, and a summary of all.

        Categories and dates are encoded as by the given encoder, which `finish` returned with the
        summary, and so are columns of 0 and 1 if there are many: a few are pixels that hardly vary.
        None unless the columns of numbers may share a unit.
        """
        varying = [
            each
            for each in self._learners
            if isinstance(each, NumericMoments) and each.least < each.most
        ]
        scaled = [each for each in varying if not each.only_zero_one]
        if self.transform != "auto" or not may_share_unit(
            [each.least for each in scaled], [each.most for each in scaled]
        ):
            return None
        if _FEWEST_OF_ONE_FLAG * (len(varying) - len(scaled)) <= len(scaled):
            scaled = varying
        scale = common_scale([each.deviation for each in scaled])
        names = {each.name for each in scaled}
        encodings: list[ColumnEncoding] = []
        summary = []
        for given, column in zip(encoder.columns, columns, strict=True):
            if not isinstance(given, NumericEncoding) or given.name not in names:
                encodings.append(given)
                summary.append(column)
                continue
            encoding = replace(given, scale=scale, transform=None, both=False)
            detail = f"mean {plain.number(encoding.mean)}, divided by {plain.number(scale)}"
            encodings.append(encoding)
            summary.append(replace(column, n_columns=encoding.n_columns, detail=detail))
        return ColumnEncoder(encodings, self.missing), summary

    def _notes(self, encodings: list[ColumnEncoding]) -> list[Message | str]:
        notes: list[Message | str] = [
            note
            for learner, encoding in zip(self._learners, encodings, strict=True)
            if (note := learner.note(encoding)) is not None
        ]
        constant = [each.name for each in encodings if each.n_columns == 0]
        if constant:
            shown = ", ".join(map(repr, constant[:5])) + (", ..." if len(constant) > 5 else "")
            are = "is" if len(constant) == 1 else "are"
            what = plain.count(len(constant), "constant column")
            notes.append(f"{what} {are} left out: {shown}.")
        return notes


def scale_rows(X: Any, scaling: RowScaling | None) -> Any:
    """Return the scaled rows, or X itself without a scaling."""
    return X if scaling is None else scaling.apply(X)


def check_present(column: Any, name: str, file: Any, first_row: int, remedy: Remedy) -> None:
    """Raise an error if a column has a missing value or NaN."""
    absent = column.is_null(nan_is_null=True)
    if absent.true_count:
        row = int(np.argmax(absent.to_numpy(zero_copy_only=False)))
        raise TableError(
            f"{file}: column {name!r} has no value in row {first_row + row + 1}",
            "fill it in",
            remedy,
        )


def check_overflow(rows: Any, names: Any, file: Any, first_row: int) -> None:
    """Raise an error if encoded rows have a value beyond the range of float32."""
    is_dense = isinstance(rows, np.ndarray)
    if not np.isfinite(rows if is_dense else rows.data).all():
        dense = rows if is_dense else rows.toarray()
        row, column = (int(position[0]) for position in np.nonzero(~np.isfinite(dense)))
        raise TableError(
            f"{file}: {names()[column]!r} in row {first_row + row + 1} is too far from the "
            "training values to be encoded",
            "correct it",
        )
