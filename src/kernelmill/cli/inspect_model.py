"""`kernelmill inspect`: what is in a model file."""

# ruff: noqa: PLC0415 # storage and workflows wait until the command runs
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelmill.cli.evaluation_tables import baseline_lines, headline, notes_lines
from kernelmill.cli.figures import size
from kernelmill.cli.help_pages import Command
from kernelmill.cli.json_records import json_of
from kernelmill.cli.model_tables import column_tables, pairs_table, summary_pairs
from kernelmill.cli.opened_model import opened_model, telling_data_from_models
from kernelmill.cli.options import general_options
from kernelmill.cli.terminal import terminal_of

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

    terminal = terminal_of(context)
    with telling_data_from_models(model):
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

    return opened_model(path).summary if kind == TABLE_MODEL else None


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
