"""The table to learn from, opened."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

from kernelmill.encoding.inputs import target_of
from kernelmill.io import Table, open_table

__all__ = ["opened_source"]

_TABLE_OPTIONS = [name for name in signature(open_table).parameters if name != "source"]


def opened_source(
    source: Any, target: str | int | None, task: str, options: Mapping[str, Any]
) -> tuple[Table, str | int]:
    """The table, and the target as it knows it; for regression, that is read as numbers."""
    for name in options:
        if name not in _TABLE_OPTIONS:
            near = get_close_matches(name, _TABLE_OPTIONS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise TypeError(f"there is no argument {name!r}{hint}")
    table = open_table(source, **options)
    target = target_of(table, target)
    kinds = {column.name: column.kind for column in table.columns or ()}
    given = options.get("categorical", ())
    if task == "regression" and kinds.get(str(target)) == "category" and not given:
        # So that a value that is no number is named with its line.
        numeric = [*options.get("numeric", ()), target]
        table = open_table(source, **{**options, "numeric": numeric})
    return table, target
