"""Tables in memory: data frames, Arrow tables, dictionaries of arrays, NumPy arrays.

Columns are accessed through the Arrow C data interface, without a copy if the data frame stores
them as Arrow or NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.arguments import SURROGATE
from kernelmill.errors import Message, Remedy
from kernelmill.io.columnar.arrow_values import detect_kind, is_text, to_plain
from kernelmill.io.columnar.columnar_files import INSPECTED_ROWS, ColumnarFile
from kernelmill.io.errors import TableError
from kernelmill.io.matrix.matrix_file import MEANINGLESS, check_exact, check_matrix
from kernelmill.io.sources import describe_data, is_data, package_of
from kernelmill.io.table_file import TableFile, TableOptions

LABEL_COLUMN = "labels"
_LARGE_INTEGERS = pa.decimal256(76, 0)
_UNREADABLE = (pa.ArrowException, ValueError, TypeError, OverflowError)
_VALID_UNICODE = "correct the encoding with which it was read"

__all__ = [
    "LABEL_COLUMN",
    "ColumnsInMemory",
    "MatrixInMemory",
    "NamedLabels",
    "join_arrays",
    "make_like",
    "name_labels",
    "open_data",
]


def open_data(source: Any, options: TableOptions) -> TableFile:
    """Open data in memory, for which `kernelmill.io.sources.is_data` holds, as a table."""
    label = Path(describe_data(source))
    if isinstance(source, tuple):
        _check_pair(label, *source)
    if _is_column(source):
        raise TableError(
            f"must be a table, got a {label}, which is one column",
            "pass a data frame or a dictionary of columns",
            parameter="source",
        )
    if _is_matrix(source) and options.names is None:
        return MatrixInMemory(source, options)
    labels, label_column = None, LABEL_COLUMN
    if isinstance(source, tuple):
        source, labels = source
        name = getattr(labels, "name", None)
        label_column = name if isinstance(name, str) and name else LABEL_COLUMN
        labels = labels.values if isinstance(labels, NamedLabels) else labels
    if options.names is not None:
        source = _name_columns(source, options.names)
    unreadable: dict[str, Message] = {}
    try:
        table = _view_columns(source, unreadable)
        if labels is not None:
            table = _add_labels(label, table, labels, label_column)
    except (pa.ArrowException, ValueError, TypeError) as error:
        if isinstance(error, TableError):
            raise
        if isinstance(error, UnicodeEncodeError):
            raise TableError(
                f"{label}: the name {error.object!a:.80} of a column is not valid Unicode",
                _VALID_UNICODE,
            ) from None
        # pyarrow names the column among the arguments of its errors.
        reason = ", ".join(str(each).rstrip(".") for each in error.args)
        raise TableError(
            f"{label} cannot be read: {reason}",
            "use values of one type in each column: numbers, strings, booleans or dates",
        ) from None
    return ColumnsInMemory(
        label,
        table,
        options,
        integer_names=_has_integer_names(source),
        unreadable=unreadable,
        label_column=None if labels is None else label_column,
    )


@dataclass(frozen=True)
class NamedLabels:
    """The labels of a pair (X, y), with the name that their column gets."""

    values: Any
    name: str


def name_labels(source: Any, name: str) -> Any:
    """The source; if it is a pair of named columns and labels, these get the name of a target."""
    is_pair = isinstance(source, tuple) and is_data(source) and not _is_matrix(source)
    return (source[0], NamedLabels(source[1], name)) if is_pair and name else source


def _check_pair(label: Path, X: Any, y: Any) -> None:
    """Raise an error if X and y are swapped."""
    if (_is_column(X) or np.ndim(X) == 1) and np.ndim(y) == 2:
        raise TableError(
            f"must be a pair (X, y) of a table and the labels of its rows, got a {label}, whose "
            "first element is one column",
            "swap the two",
            parameter="source",
        )


def _is_column(source: Any) -> bool:
    return type(source).__name__ == "Series" or isinstance(source, (pa.Array, pa.ChunkedArray))


def _add_labels(label: Path, table: Any, labels: Any, name: str) -> Any:
    """Return the table with a further column, which has the labels of its rows."""
    if name in table.column_names:
        raise TableError(f"{label}: y and a column of X have the same name, {name!r}", "rename it")
    column = _view_labels(label, labels)
    if len(column) != table.num_rows:
        raise TableError(f"{label}: y has {len(column)} labels for {table.num_rows} rows of X")
    return table.append_column(name, column)


def _view_labels(label: Path, labels: Any) -> Any:
    """The labels of a pair as an Arrow array."""
    try:
        return _view_values("y", labels)
    except _UNREADABLE as error:
        if isinstance(error, TableError):
            raise
        message = _explain_values("y", labels)
        raise TableError(f"{label}: {message.problem}", *message.remedies) from None


def _has_integer_names(source: Any) -> bool:
    """Return whether columns have integers as names, as those of pandas and of dictionaries may."""
    names: Any = source if isinstance(source, Mapping) else ()
    if package_of(source) == "pandas":
        names = source.columns
    return any(isinstance(name, (int, np.integer)) for name in names)


def _is_matrix(source: Any) -> bool:
    if isinstance(source, tuple):
        return _is_matrix(source[0])
    if scipy.sparse.issparse(source):
        return True
    return isinstance(source, np.ndarray) and source.dtype.names is None


def _name_columns(source: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of a matrix by their names."""
    if not isinstance(source, np.ndarray) or source.dtype.names is not None:
        raise TableError(
            f"is for NumPy arrays of two dimensions, got a {describe_data(source)}",
            "leave it out",
            parameter="names",
        )
    if source.ndim != 2 or source.shape[1] != len(names):
        raise TableError(
            f"must have one name for each column, got {len(names)} for an array of shape "
            f"{source.shape}",
            parameter="names",
        )
    strings = [str(name) for name in names]
    if len(set(strings)) < len(strings):
        twice = next(name for name in strings if strings.count(name) > 1)
        raise TableError(f"must be unique, got {twice!r} twice", parameter="names")
    return {str(name): source[:, place] for place, name in enumerate(names)}


def _view_columns(source: Any, unreadable: dict[str, Message] | None = None) -> Any:
    """Return the columns of a data frame, a dictionary or a structured array as an Arrow table.

    `unreadable` gets the columns that Arrow does not know, which are null; without it they raise.
    """
    if isinstance(source, np.ndarray):
        assert source.dtype.names is not None
        source = {name: source[name] for name in source.dtype.names}
    if isinstance(source, Mapping):
        columns = {
            str(name): _view_or_explain(str(name), each, unreadable)
            for name, each in source.items()
        }
        if len(columns) < len(source):
            raise TableError(
                "two columns have the same name, one as a string and one as a number",
                "give each column a unique name",
            )
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:5])
            raise TableError(f"the arrays of a dictionary must have the same length, got {shown}")
        return pa.table(columns)
    if type(source).__name__ == "LazyFrame":
        source = source.collect()
    if package_of(source) == "pandas":
        frame = _convert_types(source)
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except _UNREADABLE:
            names = [str(name) for name in frame.columns]
            arrays = [
                _view_or_explain(name, frame.iloc[:, place], unreadable)
                for place, name in enumerate(names)
            ]
            return pa.Table.from_arrays(arrays, names)
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    return pa.table(source)  # by __arrow_c_stream__ or __arrow_c_array__


def _convert_types(frame: Any) -> Any:
    """A pandas frame whose columns Arrow knows: of intervals, periods and sparse values, too."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise TableError(
            f"two columns of the data frame have the name {twice!r}",
            "give each column a unique name",
        )
    changed = {}
    for place, dtype in enumerate(frame.dtypes):
        kind = type(dtype).__name__
        column = frame.iloc[:, place]
        if kind == "CategoricalDtype" and type(dtype.categories.dtype).__name__ in (
            *("IntervalDtype", "PeriodDtype"),
        ):
            changed[place] = column.cat.rename_categories(dtype.categories.astype(str))
        elif kind == "IntervalDtype":  # "(0.5, 1.0]", and so on
            changed[place] = column.astype(str).where(column.notna(), None)
        elif kind == "PeriodDtype":
            changed[place] = column.dt.to_timestamp()
        elif kind == "SparseDtype":
            changed[place] = column.sparse.to_dense()
    if not changed:
        return frame
    frame = frame.copy(deep=False)
    for place, column in changed.items():
        frame.isetitem(place, column)
    return frame


def _view_or_explain(name: str, values: Any, unreadable: dict[str, Message] | None) -> Any:
    try:
        return _view_values(name, values)
    except _UNREADABLE as error:
        if unreadable is None or isinstance(error, TableError):
            raise
        unreadable[name] = _explain_values(f"column {name!r}", values)
        return pa.nulls(len(values), pa.binary())  # of the kind "other"


def _explain_values(what: str, values: Any) -> Message:
    """Why values are not those of one type, and what to do about it."""
    numbered = [
        (row, value)
        for row, value in enumerate(values, 1)
        if value is not None and value == value  # noqa: PLR0124  (NaN)
    ]
    for row, value in numbered:
        if isinstance(value, str) and SURROGATE.search(value):
            problem = f"the string {value!a:.80} in row {row}, which is not valid Unicode"
            return Message(f"{what} has {problem}", _VALID_UNICODE)
    if all(isinstance(value, Real) for _, value in numbered):
        for row, value in numbered:
            if isinstance(value, int) and value.bit_length() > 64:
                return Message(
                    f"{what} has an integer of {value.bit_length()} bits in row {row}",
                    "convert all values to floats, or to strings if they are categories",
                )
    kinds: dict[str, int] = {}
    for row, value in numbered:
        kinds.setdefault(type(value).__name__, row)
    if len(kinds) > 1:
        (first, row), (other, later), *_ = kinds.items()
        problem = f"different types: {first} in row {row}, {other} in row {later}"
    else:
        problem = f"type {next(iter(kinds), 'unknown')}, which tables cannot contain"
    return Message(f"{what} has values of {problem}", "convert them to numbers or to strings")


def _view_values(name: str, values: Any) -> Any:
    """One column of a dictionary as an Arrow array; NaN among objects is missing."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "__arrow_c_stream__") and package_of(values) != "pandas":
        return pa.chunked_array(values)
    if not isinstance(values, (list, tuple)) and not hasattr(values, "__array__"):
        raise TableError(f"column {name!r} must be an array or a list, got {type(values).__name__}")
    array = values if package_of(values) == "pandas" else np.asanyarray(values)
    if array.ndim != 1:
        raise TableError(f"column {name!r} must have one dimension, got shape {array.shape}")
    if isinstance(values, (list, tuple)):
        array = values
    try:
        return pa.array(array, from_pandas=True)
    except OverflowError:  # integers beyond 64 bits
        return pa.array(array, _LARGE_INTEGERS, from_pandas=True)


class ColumnsInMemory(ColumnarFile):
    """Named columns in memory.

    Parameters
    ----------
    label : Path
        The name of the data in messages.
    table : pyarrow.Table
    options : TableOptions
    integer_names : bool, default=False
        Whether integers are column names rather than their positions.
    unreadable, label_column
        See `Table`.
    """

    def __init__(
        self,
        label: Path,
        table: Any,
        options: TableOptions,
        *,
        integer_names: bool = False,
        unreadable: Mapping[str, Message] | None = None,
        label_column: str | None = None,
    ) -> None:
        self._table = table
        self.integer_names = integer_names
        self.unreadable = unreadable or {}
        self.label_column = label_column
        super().__init__(label, options, None)

    def read_state(self) -> tuple[int, int, int]:
        """Return the size; the data are not watched for changes."""
        return int(self._table.nbytes), 0, 0

    def read_schema(self) -> Any:
        """Return the schema of the table."""
        self.n_rows = self._table.num_rows
        return self._table.schema

    def kind_of(self, type_: Any) -> str:
        """Return the kind of a column, as in files, except that categories may be numbers."""
        kind = detect_kind(type_)
        return "category" if pa.types.is_dictionary(type_) and kind != "other" else kind

    def read_first_rows(self, names: list[str]) -> Any:
        """Return the first rows."""
        return self._table.select(names).slice(0, INSPECTED_ROWS)

    def check_batch(self, batch: Any) -> None:
        """Do nothing: offsets of the process's own data are not checked."""

    def configure(self, first: ColumnarFile | None) -> None:
        """Set the kinds and the rows per block."""
        super().configure(first)
        batches = self._table.to_batches(max_chunksize=self._block_rows)
        self._batches = [batch for batch in batches if batch.num_rows]
        self._first_rows = np.cumsum([0, *(batch.num_rows for batch in self._batches)]).tolist()

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Yield record batches in order."""
        for number in range(len(self._batches)):
            yield self.block(number)

    def block(self, number: int) -> tuple[Any, None]:
        """Return the block again."""
        for name in self.unreadable:
            if name not in self._unused:
                raise self.type_error(name)
        return self.convert(self._batches[number], self._first_rows[number]), None


class MatrixInMemory(TableFile):
    """A NumPy array or a SciPy sparse matrix, or a pair of one and its labels.

    Parameters
    ----------
    source : ndarray, sparse matrix, or tuple (X, y)
        Rows of more than one dimension, such as images, are flattened.
    options : TableOptions
    """

    def __init__(self, source: Any, options: TableOptions) -> None:
        path = Path(describe_data(source))
        matrix, labels = source if isinstance(source, tuple) else (source, None)
        if scipy.sparse.issparse(matrix):
            matrix = scipy.sparse.csr_array(matrix)
        else:
            if np.ma.is_masked(matrix):
                matrix = np.ma.filled(matrix.astype(np.float64), np.nan)
            matrix = np.asarray(matrix)
            if matrix.dtype == object:
                raise TableError(
                    f"{path} must hold real numbers, got dtype object",
                    "pass a data frame or a dictionary of columns, each with values of one type",
                )
            if matrix.ndim > 2:
                matrix = matrix.reshape(len(matrix), -1)
        check_matrix(path, "it" if labels is None else "X", matrix.shape, matrix.dtype)
        self._matrix = matrix
        self._labels = None if labels is None else _check_labels(path, labels, matrix.shape[0])
        super().__init__(path, options, None)
        self.n_rows, self.n_features = matrix.shape
        self.carries_labels = labels is not None
        if self._labels is not None and self._labels.dtype == bool:
            self.booleans = frozenset(["labels"])
        self.configure(None)

    def read_state(self) -> tuple[int, int, int]:
        """Return the size; the data are not watched for changes."""
        held = getattr(self._matrix, "nbytes", None)
        return int(self._matrix.data.nbytes if held is None else held), 0, 0

    def configure(self, first: TableFile | None) -> None:
        """Set the rows per block; reject options that have no meaning for a matrix."""
        for name in MEANINGLESS:
            if getattr(self.options, name) not in (None, (), 0):
                raise TableError(
                    f"is for tables with named columns, but {self.path} is a matrix",
                    Remedy("name its columns", names=...),
                    parameter=name,
                )
        row_bytes = max(1, self.n_bytes // max(1, self._matrix.shape[0]))
        self._block_rows = max(1, self.options.block_bytes // row_bytes)

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield views of the rows, in order."""
        for number in range(-(-self._matrix.shape[0] // self._block_rows)):
            yield self.block(number)

    def block(self, number: int) -> tuple[Any, NDArray[Any] | None]:
        """Return the block again."""
        rows = slice(number * self._block_rows, (number + 1) * self._block_rows)
        labels = None if self._labels is None else self._labels[rows]
        data = self._matrix[rows]
        if not scipy.sparse.issparse(data):
            data = check_exact(self.path, data, self.options.unused)
        return data, labels


def _check_labels(path: Path, labels: Any, n_rows: int) -> NDArray[Any]:
    """Labels as numbers, NaN where missing, or as strings, None where missing."""
    y = labels if isinstance(labels, (list, tuple)) else np.asarray(labels)
    if isinstance(y, list | tuple) or y.dtype == object:
        column = _view_labels(path, y)
        if pa.types.is_decimal(column.type):  # integers that float64 does not represent
            column = column.cast(pa.string())
        y = (
            np.array(column.to_pylist(), object)
            if is_text(column.type)
            else column.to_numpy(zero_copy_only=False)
        )
    if y.shape != (n_rows,):
        raise TableError(
            f"{path}: y must have one label for each of {n_rows} rows, got shape {y.shape}"
        )
    if y.dtype.kind not in "biufUO":
        raise TableError(f"{path}: y must hold numbers or strings, got dtype {y.dtype}")
    return y


def join_arrays(arrays: Sequence[Any]) -> Any:
    """One array of NumPy or pyarrow of several."""
    if isinstance(arrays[0], pa.Array):
        return pa.concat_arrays([to_plain(array) for array in arrays])
    return np.concatenate(arrays)


def make_like(source: Any, columns: Mapping[str, Any], *, keep: bool = False) -> Any:
    """Return columns as a frame of the kind of `source`.

    Parameters
    ----------
    source : object
        pandas and polars data frames, dictionaries and NumPy arrays have results of their kind
        (arrays a structured one, and pandas frames keep their index); for all others, files too,
        it is a `pyarrow.Table`.
    columns : dict of str to ndarray
    keep : bool, default=False
        Whether to put the unchanged columns of `source` before `columns`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.io.memory import make_like
    >>> make_like({"x": [1, 2]}, {"prediction": np.array([0.5, 1.5])}, keep=True)
    {'x': [1, 2], 'prediction': array([0.5, 1.5])}
    """
    if isinstance(source, tuple) and not _is_matrix(source):
        source = source[0]
    package = package_of(source)
    if isinstance(source, Mapping):
        return {**source, **columns} if keep else dict(columns)
    if isinstance(source, np.ndarray) and source.dtype.names is not None and keep:
        columns = {**{name: source[name] for name in source.dtype.names}, **columns}
    if isinstance(source, (np.ndarray, tuple)) or scipy.sparse.issparse(source):
        kinds = [(name, values.dtype) for name, values in columns.items()]
        out = np.empty(len(next(iter(columns.values()))), dtype=kinds)
        for name, values in columns.items():
            out[name] = values
        return out
    if package == "pandas":
        pandas = import_module("pandas")
        made = pandas.DataFrame(dict(columns), index=source.index)
        return pandas.concat([source, made], axis=1) if keep else made
    if package == "polars":
        polars = import_module("polars")
        made = polars.DataFrame(dict(columns))
        if type(source).__name__ == "LazyFrame":
            source = source.collect() if keep else source
        return source.hstack(made.get_columns()) if keep else made
    table = pa.table(dict(columns))
    if not keep:
        return table
    kept = _view_columns(source)
    return pa.table({**dict(zip(kept.column_names, kept.columns, strict=True)), **dict(columns)})
