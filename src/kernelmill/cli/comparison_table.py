"""A comparison in the terminal: one line for each contender, the best values marked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType

from kernelmill.cli.evaluation_tables import notes_lines, plain_table
from kernelmill.cli.figures import counted, duration, number, percent, significant, size

if TYPE_CHECKING:
    from kernelmill.workflows.records import ComparedModel, Comparison

__all__ = ["comparison_tables"]


def comparison_tables(
    comparison: Comparison, said: Collection[str] = ()
) -> Iterator[RenderableType]:
    """The contenders, an asterisk beside the best of each column; notes that were not `said`."""
    classification = comparison.task == "classification"

    def error(value: float) -> str:
        return percent(value) if classification else significant(value)

    columns: list[tuple[str, Callable[[ComparedModel], float | None], Callable[..., str]]] = [
        ("wrong" if classification else comparison.error_name, lambda m: m.error, error),
        ("fit", lambda m: m.fit_seconds, duration),
        ("predict", lambda m: m.predict_seconds, duration),
        ("memory", lambda m: m.peak_memory, size),
    ]
    best = {
        name: _least([value(model) for model in comparison.models]) for name, value, _ in columns
    }
    yield (
        f"{counted(comparison.n_train, 'row')} to train, {number(comparison.n_test)} to test; "
        "* is the best"
    )
    yield ""
    table = plain_table()
    table.add_column("model", overflow="fold")
    table.add_column("features", justify="right")
    table.add_column("rows", justify="right")
    for name, _, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for model in comparison.models:
        cells = []
        for name, value, shown in columns:
            mark = "*" if value(model) is not None and value(model) == best[name] else " "
            cells.append(shown(value(model)) + mark)
        features = "" if model.n_components is None else number(model.n_components)
        table.add_row(model.name, features, number(model.n_train), *cells)
    yield table
    details = [model for model in comparison.models if model.detail]
    yield from (f"{_label(model)}: {model.detail}" for model in details)
    yield from notes_lines(comparison.notes, said)


def _label(model: ComparedModel) -> str:
    features = "" if model.n_components is None else f" {number(model.n_components)}"
    return f"{model.name}{features}"


def _least(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None and value == value]  # noqa: PLR0124 # NaN
    return min(there, default=None)
