"""The input columns of a model: chosen in training, found again in prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.targets import LABELS
from kernelmill.errors import ArgumentTypeError, Doubt, Message, Remedy
from kernelmill.files.fields import ADDED, Stored
from kernelmill.files.kinds import SMALLEST_INTEGER, Integer, ListOf, Null, Text
from kernelmill.formatting import plain
from kernelmill.io.errors import TableError
from kernelmill.io.memory import name_labels
from kernelmill.io.sources import is_data
from kernelmill.io.table import Table, check_columns, open_table, open_without_header
from kernelmill.io.table_file import find_similar

__all__ = [
    "Inputs",
    "check_name",
    "choose_inputs",
    "count_inputs",
    "find_target",
    "find_weights",
    "name_markers",
    "note_missing_targets",
    "open_like_training",
    "read_weights",
]

_NO_DROP = "svmlight files have no columns that can be dropped"


@dataclass(frozen=True)
class Inputs(Stored):
    """The inputs of a model.

    Attributes
    ----------
    columns : tuple of (name, kind), or None
        The columns of a table; None for a matrix.
    numbered : bool
        Whether names are positions, for columns without names.
    target : str or int
        The name of the target, its position in a matrix, or "labels".
    n_columns : int
        The number of columns of the table, including the target and dropped columns; 0 if it can
        vary.
    dropped : tuple of int
        Positions in a matrix that were dropped.
    zero_based : bool or None
        For svmlight files: whether their indices count from 0.
    missing_codes : tuple of str
        Additional codes for missing values.
    signs : tuple of (name, sign), or None
        The symbols (%, $) of numeric columns; None if not known, as in older files.
    marks : tuple of (name, decimal point, separator), or None
        The formats of numeric columns, as in `Table.marks`; None if not known.
    """

    columns: Annotated[tuple[tuple[str, str], ...] | None, ListOf(ListOf(Text(), 2, 2)) | Null()]
    numbered: bool
    target: str | int
    n_columns: int
    dropped: Annotated[tuple[int, ...], ListOf(Integer(SMALLEST_INTEGER))] = ()
    zero_based: bool | None = None
    missing_codes: Annotated[tuple[str, ...], ListOf(Text())] = field(default=(), metadata=ADDED)
    signs: Annotated[tuple[tuple[str, str], ...] | None, ListOf(ListOf(Text(), 2, 2)) | Null()] = (
        field(default=None, metadata=ADDED)
    )
    marks: Annotated[
        tuple[tuple[str, str, str], ...] | None, ListOf(ListOf(Text(), 3, 3)) | Null()
    ] = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.columns is not None:
            columns = tuple((name, kind) for name, kind in self.columns)
            object.__setattr__(self, "columns", columns)
            for name, kind in columns:
                if kind not in _KINDS:
                    raise ValueError(
                        f"the kind of column {name!r} must be one of {', '.join(_KINDS)}, got "
                        f"{kind!r}"
                    )
        object.__setattr__(self, "dropped", tuple(self.dropped))
        object.__setattr__(self, "missing_codes", tuple(self.missing_codes))
        if self.signs is not None:
            signs = tuple((name, sign) for name, sign in self.signs)
            object.__setattr__(self, "signs", signs)
        if self.marks is not None:
            marks = tuple((name, decimal, separator) for name, decimal, separator in self.marks)
            object.__setattr__(self, "marks", marks)
            for name, decimal, separator in marks:
                if decimal not in (".", ",") or separator not in ("", ".", ","):
                    raise ValueError(
                        f"the decimal point of column {name!r} must be '.' or ',', and its "
                        f"separator, too, or '', got {decimal!r:.80} and {separator!r:.80}"
                    )
        if self.columns is None:
            self._check_matrix()
        else:
            self._check_columns([name for name, _ in self.columns])

    def _check_matrix(self) -> None:
        """Raise ValueError if target and dropped columns are not those of one matrix."""
        has_column = isinstance(self.target, int)
        left_out = [*self.dropped, *([self.target] if has_column else [])]
        if list(self.dropped) != sorted(set(self.dropped)) or len(set(left_out)) < len(left_out):
            raise ValueError(
                "dropped must be ascending positions without the target, got "
                f"{list(self.dropped)!s:.80} and the target {self.target!r:.80}"
            )
        if not all(0 <= int(place) < self.n_columns for place in left_out):
            raise ValueError(
                f"the target and dropped columns must be positions below {self.n_columns}, the "
                f"number of columns, got {left_out!s:.80}"
            )
        if not has_column and self.target not in ("", LABELS):
            raise ValueError(
                f"the target of a matrix must be a position or {LABELS!r}, got {self.target!r:.80}"
            )
        if not self.numbered or self.missing_codes:
            raise ValueError("the columns of a matrix have no names and no codes of missing values")

    def _check_columns(self, names: list[str]) -> None:
        """Raise ValueError if names, numbers and target are not those of one table."""
        if not names or len(set(names)) < len(names) or self.target in names:
            raise ValueError("columns must have different names, without that of the target")
        if isinstance(self.target, int) or self.dropped or self.zero_based is not None:
            raise ValueError(
                "columns with names have a target with a name, neither dropped nor zero_based"
            )
        known = names if self.target == "" else [*names, self.target]
        if len(known) > self.n_columns:
            raise ValueError(
                f"n_columns must count {len(known)} columns with the target, got {self.n_columns}"
            )
        positions = set(map(str, range(self.n_columns))) if self.numbered else set(known)
        if not positions.issuperset(known):
            raise ValueError(f"columns without names must be numbered below {self.n_columns}")

    def compare_signs(self, table: Table, names: Mapping[str, str] | None = None) -> list[Doubt]:
        """Notes on columns of which some numbers lack the symbol of training, or have another one.

        `names` are those of the inputs in the table, if they differ.
        """
        notes = []
        for name, _ in self.columns or ():
            if names is not None and name not in names:
                continue
            sign, bare = table.signs.get(name if names is None else names[name], ("", ""))
            had = sign if self.signs is None else dict(self.signs).get(name, "")
            if sign == had and not bare:
                continue
            if sign == had:
                problem = f"has numbers with and without {sign}: {bare!r} is read as {bare} {sign}"
            elif not sign:
                problem = (
                    f"had numbers with {had} in training: numbers without it are read as {had}"
                )
            else:
                before = f"with {had}" if had else f"without {sign}"
                read = f"and are read as {had}" if had else "which is ignored"
                problem = (
                    f"had numbers {before} in training, but this table has numbers with "
                    f"{sign}, {read}"
                )
            remedy = "write all numbers of the column in one unit"
            notes.append(Doubt(f"Column {name!r} {problem}", remedy, column=name))
        return notes

    def compare_decimals(self, table: Table) -> list[Message]:
        """A note if the numbers of a text file have another decimal point than those of training.

        Data in memory and other formats have typed numbers, and strings as in training.
        """
        if self.marks is None or not table.decimal:
            return []
        had = "," if any(decimal == "," for _, decimal, _ in self.marks) else "."
        if table.decimal == had:
            return []
        nouns = {",": "commas", ".": "points"}
        return [
            Message(
                f"Numbers have decimal {nouns[table.decimal]} in this table, but had decimal "
                f"{nouns[had]} in training",
                Remedy(
                    "if this is wrong, set the decimal separator",
                    decimal=had,
                ),
            )
        ]

    def note_absent(self, table: Table) -> list[str]:
        """Return a note on inputs that a table lacks, which were constant in training."""
        here = {column.name for column in table.columns or ()}
        absent = [name for name, _ in self.columns or () if name not in here]
        if not absent or self.numbered:
            return []
        shown = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        return [
            f"The table lacks {plain.count(len(absent), 'column')} that the model does not use, "
            f"since all values were equal or missing in training: {shown}."
        ]

    def select_notes(self, notes: Iterable[Message | str]) -> list[Message | str]:
        """Return the notes of a table, except those about columns that the model does not use."""
        used = {None, self.target, *(name for name, _ in self.columns or ())}
        return [note for note in notes if getattr(note, "column", None) in used]

    def ignore_others(
        self, table: Table, *used: str | int | None, names: Mapping[str, str] | None = None
    ) -> Table:
        """Return the table with all columns ignored except the inputs and those in `used`.

        `names` are those of the inputs in the file.
        """
        if table.columns is None:
            return table.with_unused([each for each in self.dropped if each not in used])
        inputs = [name for name, _ in self.columns or ()] if names is None else names.values()
        known = {*inputs, *used}
        return table.with_unused([c.name for c in table.columns if c.name not in known])

    def find_target(self, table: Table) -> str | int:
        """Return the target as a table that has it names it."""
        if table.columns is None or not self.numbered:
            return self.target
        return table.columns[int(self.target)].name

    def data(self, data: Any, names: Mapping[str, str] | None = None) -> Any:
        """Select the inputs among the columns of a block; `names` are those in the file."""
        if self.columns is not None:
            wanted = [name for name, _ in self.columns if names is None or name in names]
            found = data.select([names[name] for name in wanted] if names else wanted)
            return found.rename_columns(wanted) if names else found
        left_out = list(self.dropped) + ([self.target] if isinstance(self.target, int) else [])
        if not left_out:
            return data
        if scipy.sparse.issparse(data):
            raise TableError(_NO_DROP)
        if data.shape[1] < self.n_columns:  # without its target; nothing was dropped
            left_out = []
        return np.delete(data, left_out, axis=1) if left_out else data


def note_missing_targets(
    count: int, table: Table, target: str | int, *, in_training: bool = False
) -> Message:
    """Return the note on rows that are left out; in training, words can become classes."""
    words, remedies = name_markers(table, target)
    problem = f"Left out {plain.count(count, 'row')} without a target{words}"
    return Message(problem, *(remedies if in_training else []))


def name_markers(table: Table, target: str | int) -> tuple[str, list[Remedy]]:
    """Return which texts are read as missing targets, and what to do if they are classes."""
    words = _find_markers(table, target)
    if not words:
        return "", []
    shown = ", ".join(map(repr, words[:3]))
    found = f" ({shown} {'is' if len(words) == 1 else 'are'} read as missing)"
    kinds = {column.name: column.kind for column in table.columns or ()}
    if kinds.get(str(target)) != "category":
        return found, []
    what = "if it is a class, keep it" if len(words) == 1 else "if they are classes, keep them"
    return found, [Remedy(what, not_missing=words)]


def _find_markers(table: Table, target: str | int) -> list[str]:
    """Return the texts of the first block that are read as missing targets."""
    if table.columns is None:
        return []
    others = [column.name for column in table.columns if column.name != target]
    try:
        marked = table.with_unused(others).with_originals("text")
        data = next(marked.blocks()).data
    except TableError:  # lists and the like have no originals
        return []
    is_missing = data[str(target)].is_null(nan_is_null=True)
    written = data[marked.originals[str(target)].name].filter(is_missing)
    if not (pa.types.is_string(written.type) or pa.types.is_large_string(written.type)):
        return []
    return [word for word in written.unique().drop_null().to_pylist() if word.strip()]


def count_inputs(table: Table, inputs: Inputs) -> int:
    """Return the number of columns that `Inputs.data` selects."""
    if inputs.columns is not None:
        return len(inputs.columns)
    width = table.n_features or 0
    return width - len(inputs.dropped) - isinstance(inputs.target, int)


def find_target(table: Table, target: str | int | None) -> str | int:
    """Return the target as the table names it: a column, a position in a matrix, or "labels"."""
    check_name("target", target)
    if table.columns is not None:
        if table.label_column is not None and target not in (None, table.label_column):
            raise TableError(
                f"{table.files[0]} contains labels, which are the target, but the target is "
                f"set to {target!r}",
                Remedy("do not set the target", target=...),
            )
        if target is None and table.label_column is not None:
            return table.label_column
        if target is None:
            names = [column.name for column in table.columns]
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise TableError(
                f"must be given; the columns of {table.files[0]} are {shown}",
                "name the column to predict",
                parameter="target",
            )
        column = table.columns[table.column_index(target)]
        if column.name in table.unreadable:
            _check_kind(table, column.name, column.kind)
        if column.kind not in ("numeric", "category"):
            raise TableError(
                f"{table.files[0]}: the target {column.name!r} must contain numbers or strings, "
                f"got a column of kind {column.kind!r}",
                Remedy("choose another target", target=...),
            )
        return column.name
    if target is None or target == LABELS:
        if table.carries_labels:
            return LABELS
        raise TableError(
            f"must be given: {table.files[0]} has no labels",
            f"set it to the index of the column to predict, 0 to {(table.n_features or 1) - 1}",
            parameter="target",
        )
    if table.carries_labels:
        raise TableError(
            f"{table.files[0]} contains labels, which are the target, but the target is set "
            f"to {target!r}",
            Remedy("do not set the target", target=...),
        )
    return table.column_index(target)


def check_name(parameter: str, column: Any) -> None:
    """Raise an error if an argument is neither the name nor the number of a column, nor None."""
    if isinstance(column, bool) or not isinstance(column, (str, int, np.integer, type(None))):
        is_labels = parameter == "target" and hasattr(column, "__len__")
        remedies = ["pass rows and labels as a pair: (X, y)"] if is_labels else []
        raise ArgumentTypeError(
            "must be the name of a column or its zero-based number, got an object of type "
            f"{type(column).__name__}",
            *remedies,
            "add the values to the table as a column, and name it",
            parameter=parameter,
        )


def find_weights(table: Table, weights: str | int | None, target: str | int) -> str | int | None:
    """Return the column of row weights as the table names it: by name, or by position."""
    if weights is None:
        return None
    check_name("weights", weights)
    position = table.column_index(weights)
    found: str | int = position
    if table.columns is not None:
        column = table.columns[position]
        found = column.name
        if column.kind != "numeric":
            raise TableError(
                f"must be a column of numbers, got {found!r} of kind {column.kind!r}",
                parameter="weights",
            )
    if found == target:
        raise TableError(f"must be a column other than the target {target!r}", parameter="weights")
    return found


def read_weights(block: Any, weights: str | int) -> NDArray[np.float64]:
    """Read the weights of the rows of a block: finite numbers that are not negative."""
    if isinstance(block.data, pa.RecordBatch):
        column = block.data.column(weights).cast(pa.float64(), safe=False)
        values = column.to_numpy(zero_copy_only=False)
    else:
        column = block.data[:, [int(weights)]]
        values = np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    found: NDArray[np.float64] = np.asarray(values, np.float64)
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"{block.file}: the weight in column {weights!r} is {found[row]:g} in row "
            f"{block.row_in_file + row + 1}, but weights must be finite and not negative",
            "correct it",
        )
    return found


def choose_inputs(table: Table, target: str | int | None, drop: Sequence[str | int]) -> Inputs:
    """Return all columns except the target and the dropped ones.

    Columns of other kinds than numbers, categories and dates raise an error. Without a target, the
    target of the inputs is "".
    """
    positions = {table.column_index(each) for each in check_columns("drop", drop)}
    position = target
    if isinstance(target, str):
        position = -1 if table.columns is None else table.column_index(target)
    if position in positions:
        raise TableError(
            f"the target {target!r} is among the dropped columns", Remedy("keep it", drop=...)
        )
    if table.columns is None:
        if table.carries_labels and positions and table.format == "svmlight":
            raise TableError(_NO_DROP, Remedy("drop nothing", drop=[]))
        width = 0 if table.format == "svmlight" else (table.n_features or 0)
        dropped = tuple(sorted(positions))
        return Inputs(
            None, True, "" if target is None else target, width, dropped, table.zero_based
        )
    left = [
        column
        for position, column in enumerate(table.columns)
        if (target is None or column.name != target) and position not in positions
    ]
    for column in left:
        _check_kind(table, column.name, column.kind)
    if not left:
        others = "" if target is None else f" except the target {target!r}"
        raise TableError(
            f"{table.files[0]} has no columns left{others}", "add columns or drop fewer"
        )
    names = [column.name for column in table.columns]
    numbered = names == [str(position) for position in range(len(names))]
    kinds = tuple((column.name, column.kind) for column in left)
    return Inputs(
        kinds,
        numbered,
        "" if target is None else target,
        len(names),
        missing_codes=table.missing_codes,
        signs=tuple((name, table.signs[name][0]) for name, _ in kinds if name in table.signs),
        marks=tuple(
            (name, *table.marks[name])
            for name in (*(name for name, _ in kinds), target)
            if isinstance(name, str) and name in table.marks
        ),
    )


def _check_kind(table: Table, name: str, kind: str) -> None:
    if name in table.unreadable:
        message = table.unreadable[name]
        raise TableError(
            f"{table.files[0]}: {message.problem}",
            *message.remedies,
            Remedy("leave the column out", drop=[name]),
        )
    if kind not in _KINDS:
        raise TableError(
            f"{table.files[0]}: column {name!r} is of a kind that cannot be an input ({kind})",
            Remedy("leave the column out", drop=[name]),
        )


def open_like_training(
    source: Any,
    inputs: Inputs,
    options: Mapping[str, Any],
    n_features: int,
    words: Collection[str] = (),
    unused: Collection[str] = (),
) -> tuple[Table, dict[str, str] | None, bool]:
    """Open a table for a model.

    The column kinds are those of training, independent of the values.

    Parameters
    ----------
    source, options
        As in `open_table`, except the column kinds.
    inputs : Inputs
        The inputs of the model.
    n_features : int
        The width of svmlight files.
    words : collection of str
        Markers of missing values that are categories of the model, as in older files.
    unused : collection of str
        Inputs that are not read and may be absent, since they were constant in training.

    Returns
    -------
    table : Table
    names : dict or None
        The names of the inputs in the file, without unused ones; None for a matrix.
    has_target : bool
        Whether the table has the target.
    """
    for name in _KINDS.values():
        if options.get(name):
            raise TableError(
                "is not allowed here: the model determines the column kinds",
                "leave it out",
                parameter=name,
            )
    if inputs.columns is None:
        return _open_matrix(source, inputs, options, n_features)
    if inputs.missing_codes:
        options = {"missing_codes": inputs.missing_codes, **options}
    # Without a header the first row may look like one, if all of its values are strings.
    source = name_labels(source, str(inputs.target))
    table = (open_without_header if inputs.numbered else open_table)(source, **options)
    if table.columns is None:
        raise TableError(
            f"{table.files[0]} is a matrix, but the model was fitted to a table with columns such "
            f"as {inputs.columns[0][0]!r}",
            "use a table with these columns",
            *([Remedy("name the columns of the array", names=...)] if is_data(source) else []),
        )
    names, has_target = _find_inputs(table, inputs, unused)
    given = [(names[name], kind) for name, kind in inputs.columns if name in names]
    kinds = {kind: [name for name, k in given if k == kind] for kind in _KINDS}
    marks = None
    if inputs.marks is not None:
        in_file = dict(names)
        if has_target:
            in_file[str(inputs.target)] = str(inputs.find_target(table))
        known = {name: (point, mark) for name, point, mark in inputs.marks}
        marks = {here: known[name] for name, here in in_file.items() if name in known}
    table = table.with_kinds(
        **{_KINDS[kind]: kinds[kind] for kind in _KINDS}, words=words, trained_marks=marks
    )
    return table, names, has_target


# The kinds of inputs, and the options of tables that give them.
_KINDS = {"numeric": "numeric", "category": "categorical", "date": "dates"}


def _find_inputs(
    table: Table, inputs: Inputs, unused: Collection[str]
) -> tuple[dict[str, str], bool]:
    """Return the names of the inputs in a table, and whether it has the target."""
    assert table.columns is not None
    assert inputs.columns is not None
    here = [column.name for column in table.columns]
    names = {name: name for name, _ in inputs.columns}
    has_target = inputs.target in here
    if inputs.numbered and len(here) == inputs.n_columns - 1:
        if len(inputs.columns) + 1 < inputs.n_columns:
            raise TableError(
                f"{table.files[0]} has {len(here)} columns without names, but the model was "
                f"fitted to {inputs.n_columns} and some of them were dropped: which column is "
                "absent cannot be determined",
                "use a table with all columns",
                "fit a model to a table with column names",
            )
        # Without a header and the target: the columns after the target have moved by one.
        positions = [place for place in range(inputs.n_columns) if str(place) != inputs.target]
        names = {str(place): here[i] for i, place in enumerate(positions) if str(place) in names}
        has_target = False
    elif inputs.numbered and len(here) == inputs.n_columns:
        names = {name: here[int(name)] for name in names}
        has_target = True
    present = set(here)
    is_narrow = inputs.numbered and len(names) != len(inputs.columns)
    names = {name: here for name, here in names.items() if name not in unused}
    lacking = [name for name in names.values() if name not in present]
    if lacking or is_narrow:
        listed = ", ".join(map(repr, lacking[:5])) or "their number differs"
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        spare = [name for name in here if name not in set(names.values())]
        near = [(name, find_similar(name, spare)[:1]) for name in lacking[:5]]
        similar = [f"{found[0]!r} for {name!r}" for name, found in near if found]
        shown = ", ".join(map(repr, here[:8])) + (", ..." if len(here) > 8 else "")
        raise TableError(
            f"{table.files[0]} lacks columns that the model needs: {listed}{more}; it has {shown}",
            *([f"rename a column with a similar name: {', '.join(similar)}"] if similar else []),
            f"use a table with the {inputs.n_columns} columns that the model was fitted to, "
            "without a header"
            if inputs.numbered
            else "use a table with all columns of the training table; in a file, check the header",
        )
    return names, has_target


def _open_matrix(
    source: Any, inputs: Inputs, options: Mapping[str, Any], n_features: int
) -> tuple[Table, None, bool]:
    if inputs.n_columns == 0:
        options = {"n_features": n_features, "zero_based": inputs.zero_based, **options}
    table = open_table(source, **options)
    if table.columns is not None:
        raise TableError(
            f"{table.files[0]} is a table with columns, but the model was fitted to a matrix",
            "use an NPY, NPZ, idx or svmlight file",
        )
    width = table.n_features
    if isinstance(inputs.target, int) and inputs.dropped and width == inputs.n_columns - 1:
        raise TableError(
            f"{table.files[0]} has {width} columns, but the model was fitted to "
            f"{inputs.n_columns} and some of them were dropped: which column is absent cannot be "
            "determined",
            "use a table with all columns",
        )
    has_target = table.carries_labels or (
        isinstance(inputs.target, int) and width == inputs.n_columns
    )
    return table, None, has_target
