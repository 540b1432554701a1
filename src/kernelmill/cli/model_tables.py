"""A model in the terminal: what it was made of and how, what became of the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelmill.cli.evaluation_tables import baseline_lines, headline, notes_lines, plain_table
from kernelmill.cli.figures import counted, duration, number, significant, size

if TYPE_CHECKING:
    from kernelmill.workflows.records import FitSummary, InputColumn

__all__ = ["column_tables", "pairs_table", "summary_pairs", "summary_tables"]

MOST_COLUMNS = 40
MOST_CLASSES = 10
_STAGES = "read tune train evaluate"


def summary_tables(summary: FitSummary, said: Collection[str] = ()) -> Iterator[RenderableType]:
    """The model as `fit` shows it when it is done; without notes that were `said` before."""
    if summary.held_out is not None:
        yield f"Held out: {headline(summary.held_out)}"
        yield from baseline_lines(summary.held_out)
    yield from notes_lines(summary.notes, said)
    yield ""
    yield pairs_table(summary_pairs(summary))


def summary_pairs(summary: FitSummary) -> dict[str, str]:
    """What the model is and how it was made, as names and values."""
    pairs = {"task": summary.task, "target": summary.target}
    if summary.classes is not None:
        shown = ", ".join(summary.classes[:MOST_CLASSES])
        more = len(summary.classes) - MOST_CLASSES
        pairs["classes"] = f"{len(summary.classes)}: {shown}" + (", …" if more > 0 else "")
    pairs["data"] = summary.source
    held_out = f", {number(summary.n_held_out)} held out" if summary.n_held_out else ""
    pairs["rows"] = f"{number(summary.n_rows)} trained on{held_out}"
    # A file of a matrix has one record for all of its columns.
    n_columns = sum(c.n_columns if c.kind == "matrix" else 1 for c in summary.columns)
    pairs["inputs"] = f"{counted(n_columns, 'column')}, {number(summary.n_inputs)} when encoded"
    scale = (
        ""
        if summary.length_scale is None
        else f", length scale {significant(summary.length_scale)}"
    )
    pairs["map"] = (
        f"{summary.map_name}, {summary.kernel.removesuffix('()')} kernel, "
        f"{counted(summary.n_components, 'feature')}{scale}"
    )
    pairs["loss"] = f"{summary.loss}, alpha {significant(summary.alpha)}"
    pairs["seed"] = str(summary.seed)
    # Model files sort names.
    stages = sorted(summary.seconds, key=lambda name: (name not in _STAGES, _STAGES.find(name)))
    pairs["time"] = ", ".join(f"{name} {duration(summary.seconds[name])}" for name in stages)
    if summary.peak_memory is not None:
        pairs["peak memory"] = size(summary.peak_memory)
    if summary.created:
        pairs["made"] = summary.created
    if summary.version:
        pairs["by"] = f"kernelmill {summary.version}"
    return {name: value for name, value in pairs.items() if value}


def pairs_table(pairs: dict[str, str]) -> Table:
    """Names and values, side by side."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value)
    return table


def column_tables(columns: list[InputColumn]) -> Iterator[RenderableType]:
    """The columns of the table and what becomes of them; the first ones where there are many."""
    more = len(columns) - MOST_COLUMNS
    title = "Columns" if more <= 0 else f"Columns: the first {MOST_COLUMNS} of {len(columns)}"
    yield Text(title, "bold")
    table = plain_table()
    table.add_column("name", overflow="fold", max_width=24)
    table.add_column("kind", no_wrap=True)
    table.add_column("inputs", justify="right")
    table.add_column("missing", justify="right")
    table.add_column("detail", overflow="fold")
    for each in columns[:MOST_COLUMNS]:
        missing = number(each.missing) if each.missing else ""
        table.add_row(each.name, each.kind, number(each.n_columns), missing, each.detail)
    yield table
