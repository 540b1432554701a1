"""`kernelmill inspect`: what is in a model file."""

# ruff: noqa: PLC0415 # storage and workflows wait until the command runs
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelmill.cli.figures import size
from kernelmill.cli.program.files import explain_wrong_file, load_table_model
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.results import (
    baseline_lines,
    column_tables,
    headline,
    json_of,
    notes_lines,
    pairs_table,
    summary_pairs,
)

if TYPE_CHECKING:
    from kernelmill.workflows.records import FitSummary

__all__ = ["command"]


@click.command(
    "inspect",
    cls=Command,
    short_help="Show what is in a model file.",
    examples=[
        ("kernelmill inspect adult.kmill", "task, columns, map, training, held-out error"),
        ("kernelmill inspect adult.kmill --json | jq .summary.held_out.metrics", "for programs"),
    ],
)
@click.argument("model")
@general_options
@click.pass_context
def command(context: click.Context, model: str) -> None:
    """Show what is in the file MODEL: task, target, columns, map, training and held-out results."""
    from kernelmill.storage import read_model_file

    terminal = get_terminal(context)
    with explain_wrong_file(model):
        content = read_model_file(model)
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in content.tensors.items()
    }
    about = {
        "file": model,
        "bytes": Path(model).stat().st_size,
        "kind": content.kind,
        "format_version": content.format_version,
    }
    pairs = {
        "file": f"{model} ({size(Path(model).stat().st_size)})",
        "kind": f"{content.kind}, format {content.format_version}",
    }
    summary = _summary(content.kind, model)
    if summary is None:
        settings = _settings(content.record)
        record = {**about, "summary": None, "settings": settings, "arrays": arrays}
        terminal.give(record, pairs_table(pairs | settings), "", _arrays(arrays))
        return
    parts: list[Any] = [pairs_table(pairs | summary_pairs(summary)), ""]
    if summary.held_out is not None:
        held_out = summary.held_out
        parts += [f"Held out: {headline(held_out)}", *baseline_lines(held_out), ""]
    parts += [*notes_lines(summary.notes), *column_tables(summary.columns)]
    terminal.give({**about, "summary": json_of(summary), "settings": {}, "arrays": arrays}, *parts)


def _summary(kind: str, path: str) -> FitSummary | None:
    """How a model of a table was made; models that were saved in Python have no such record."""
    from kernelmill.workflows.model import TABLE_MODEL

    return load_table_model(path).summary if kind == TABLE_MODEL else None


def _settings(record: dict[str, Any]) -> dict[str, str]:
    """Those entries of a record that are single values."""
    return {
        name: str(value)
        for name, value in record.items()
        if isinstance(value, str | int | float | bool)
    }


def _arrays(arrays: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"{name}: {about['dtype']} {' x '.join(map(str, about['shape']))}"
        for name, about in arrays.items()
    )
