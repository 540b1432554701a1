"""The input columns of a model: chosen in training, found again in prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy  # scipy.sparse is loaded when it is first used

from kernelmill.encoding.targets import LABELS
from kernelmill.io.errors import TableError
from kernelmill.io.table import Table, open_table

__all__ = ["Inputs", "chosen_inputs", "opened_like_training", "plain_column", "target_of"]


@dataclass(frozen=True)
class Inputs:
    """The inputs of a model.

    Attributes
    ----------
    columns : tuple of (name, kind), or None
        Of a table with columns; None for a matrix.
    numbered : bool
        The names are the places of columns without names.
    target : str or int
        The target's name, its place in a matrix, or "labels".
    n_columns : int
        Of the whole table, target and dropped columns included; 0 where it is not fixed.
    dropped : tuple of int
        Places in a matrix that were dropped.
    zero_based : bool or None
        Of svmlight files: whether their indices count from 0.
    """

    columns: tuple[tuple[str, str], ...] | None
    numbered: bool
    target: str | int
    n_columns: int
    dropped: tuple[int, ...] = ()
    zero_based: bool | None = None

    def data(self, data: Any, names: Mapping[str, str] | None = None) -> Any:
        """The inputs among a block's columns; `names` says what the file calls them."""
        if self.columns is not None:
            wanted = [name for name, _ in self.columns]
            found = data.select([names[name] for name in wanted] if names else wanted)
            return found.rename_columns(wanted) if names else found
        left_out = list(self.dropped) + ([self.target] if isinstance(self.target, int) else [])
        if not left_out:
            return data
        if scipy.sparse.issparse(data):
            raise TableError("columns of svmlight files cannot be dropped.")
        if data.shape[1] < self.n_columns:  # without its target; nothing was dropped
            left_out = []
        return np.delete(data, left_out, axis=1) if left_out else data

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        columns = None if self.columns is None else [list(each) for each in self.columns]
        return {
            "columns": columns,
            "numbered": self.numbered,
            "target": self.target,
            "n_columns": self.n_columns,
            "dropped": list(self.dropped),
            "zero_based": self.zero_based,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The inputs that `to_json` described; wrong values raise ValueError."""
        columns, dropped = values["columns"], values["dropped"]
        good = (
            (columns is None or (isinstance(columns, list) and all(map(_is_column, columns))))
            and type(values["numbered"]) is bool
            and type(values["target"]) in (str, int)
            and type(values["n_columns"]) is int
            and isinstance(dropped, list)
            and all(type(place) is int for place in dropped)
            and type(values["zero_based"]) in (bool, type(None))
        )
        if not good:
            raise ValueError("the inputs are not as they should be")
        return cls(
            None if columns is None else tuple((name, kind) for name, kind in columns),
            values["numbered"],
            values["target"],
            values["n_columns"],
            tuple(dropped),
            values["zero_based"],
        )


def _is_column(column: Any) -> bool:
    return (
        isinstance(column, list)
        and len(column) == 2
        and type(column[0]) is str
        and column[1] in ("numeric", "category")
    )


def target_of(table: Table, target: str | int | None) -> str | int:
    """The target as the table knows it: a column's name, a place in a matrix, or "labels"."""
    if table.columns is not None:
        if target is None:
            names = [column.name for column in table.columns]
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise TableError(
                f"{table.files[0]}: which column is to be predicted? Give target (--target), one "
                f"of: {shown}."
            )
        column = table.columns[table.column_index(target)]
        if column.kind not in ("numeric", "category"):
            raise TableError(
                f"{table.files[0]}: the target {column.name!r} must hold numbers or texts, got a "
                f"column of kind {column.kind!r}; give another one."
            )
        return column.name
    if target is None or target == LABELS:
        if table.carries_labels:
            return LABELS
        raise TableError(
            f"{table.files[0]} carries no labels: which column is to be predicted? Give target "
            f"(--target), a number from 0 to {(table.n_features or 1) - 1}."
        )
    if table.carries_labels:
        raise TableError(
            f"{table.files[0]} carries its own labels; leave out the target (--target), got "
            f"{target!r}."
        )
    return table.column_index(target)


def chosen_inputs(table: Table, target: str | int, drop: Sequence[str | int]) -> Inputs:
    """All columns but the target and the dropped ones; kinds that mean nothing are refused."""
    drop = (drop,) if isinstance(drop, (str, int)) else drop
    places = {table.column_index(each) for each in drop}
    if (target if isinstance(target, int) else _place_of(table, target)) in places:
        raise TableError(f"the target {target!r} is among the dropped columns; leave it out there.")
    if table.columns is None:
        if table.carries_labels and places and table.format == "svmlight":
            raise TableError("columns of svmlight files cannot be dropped; leave out drop.")
        width = 0 if table.format == "svmlight" else (table.n_features or 0)
        return Inputs(None, True, target, width, tuple(sorted(places)), table.zero_based)
    left = [
        column
        for place, column in enumerate(table.columns)
        if column.name != target and place not in places
    ]
    for column in left:
        _refuse_kind(table, column.name, column.kind)
    if not left:
        raise TableError(
            f"{table.files[0]} has no columns beside the target {target!r}; give more columns."
        )
    names = [column.name for column in table.columns]
    numbered = names == [str(place) for place in range(len(names))]
    kinds = tuple((column.name, column.kind) for column in left)
    return Inputs(kinds, numbered, target, len(names))


def _place_of(table: Table, name: str) -> int:
    return -1 if table.columns is None else table.column_index(name)


def _refuse_kind(table: Table, name: str, kind: str) -> None:
    if kind == "date":
        raise TableError(
            f"{table.files[0]}: column {name!r} holds dates or times, which mean nothing as plain "
            "numbers; make numbers of them that do (the year, the day of the week, seconds since "
            f"an event), or leave the column out, drop=[{name!r}] (--drop {name}), or read it as "
            f"categories, categorical=[{name!r}] (--categorical {name})."
        )
    if kind not in ("numeric", "category"):
        raise TableError(
            f"{table.files[0]}: column {name!r} is of a kind that cannot be learnt from ({kind}); "
            f"leave it out: drop=[{name!r}] (--drop {name})."
        )


def opened_like_training(
    source: Any,
    inputs: Inputs,
    options: Mapping[str, Any],
    n_features: int,
    *,
    others_as_texts: bool = False,
) -> tuple[Table, dict[str, str] | None, bool]:
    """The table of a model's inputs, the file's names of them, and whether the target is there.

    Kinds of columns are those of training, whatever the values look like. Other columns may be
    read as texts, which changes nothing in them but spaces around.
    """
    for name in ("categorical", "numeric"):
        if options.get(name):
            raise TableError(
                f"{name} cannot be given for a model, which knows the kinds of its columns; leave "
                "it out."
            )
    if inputs.columns is None:
        return _opened_matrix(source, inputs, options, n_features)
    table = open_table(source, **options)
    if table.format == "text" and inputs.numbered and options.get("header") is None:
        # The first row may look like a header if all of its values are texts.
        options = {**options, "header": False}
        table = open_table(source, **options)
    if table.columns is None:
        raise TableError(
            f"{table.files[0]} is a matrix, but the model was made from a table with columns such "
            f"as {inputs.columns[0][0]!r}; give a table with these."
        )
    here = [column.name for column in table.columns]
    names = {name: name for name, _ in inputs.columns}
    has_target = inputs.target in here
    if inputs.numbered and len(here) == inputs.n_columns - 1:
        if len(inputs.columns) + 1 < inputs.n_columns:
            raise TableError(
                f"{table.files[0]} has {len(here)} columns without names and the model's table had "
                f"{inputs.n_columns}, some of them dropped: which one is absent? Give all of them, "
                "or names."
            )
        # Without a header and without its target: columns after that have moved by one.
        places = [place for place in range(inputs.n_columns) if str(place) != inputs.target]
        names = {str(place): here[i] for i, place in enumerate(places) if str(place) in names}
        has_target = False
    elif inputs.numbered and len(here) == inputs.n_columns:
        names = {name: here[int(name)] for name in names}
        has_target = True
    present = set(here)
    lacking = [name for name in names.values() if name not in present]
    if lacking or (inputs.numbered and len(names) != len(inputs.columns)):
        raise TableError(
            f"{table.files[0]} lacks columns that the model needs: "
            f"{', '.join(map(repr, lacking[:5])) or 'their number differs'}; it has "
            f"{', '.join(map(repr, here[:8]))}. "
            + (
                f"The model was made from a file without a header and {inputs.n_columns} columns."
                if inputs.numbered
                else "Is there a header?"
            )
        )
    kinds = {kind: [names[n] for n, k in inputs.columns if k == kind] for kind in _KINDS}
    if others_as_texts:
        target = here[int(inputs.target)] if inputs.numbered and has_target else inputs.target
        known = {*names.values(), target}
        kinds["category"] += [name for name in here if name not in known]
    overridden = {**options, **{_KINDS[kind]: kinds[kind] for kind in _KINDS}}
    return open_table(source, **overridden), names, has_target


_KINDS = {"numeric": "numeric", "category": "categorical"}


def _opened_matrix(
    source: Any, inputs: Inputs, options: Mapping[str, Any], n_features: int
) -> tuple[Table, None, bool]:
    if inputs.n_columns == 0:
        options = {"n_features": n_features, "zero_based": inputs.zero_based, **options}
    table = open_table(source, **options)
    if table.columns is not None:
        raise TableError(
            f"{table.files[0]} is a table with columns, but the model was made from a matrix "
            "(NPY, NPZ, idx or svmlight); give one of these."
        )
    width = table.n_features
    if isinstance(inputs.target, int) and inputs.dropped and width == inputs.n_columns - 1:
        raise TableError(
            f"{table.files[0]} has {width} columns and the model's table had {inputs.n_columns}, "
            "some of them dropped: which one is absent? Give all of them."
        )
    has_target = table.carries_labels or (
        isinstance(inputs.target, int) and width == inputs.n_columns
    )
    return table, None, has_target


def plain_column(data: Any, name: str) -> Any:
    """A column of a record batch as an array of numbers or of texts."""
    column = data.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.string())
    return column.to_numpy(zero_copy_only=False)
