"""`kernelmill inspect`: show the content of a model file."""

# ruff: noqa: PLC0415 # files and workflows are imported when the command runs
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernelmill.cli.program.files import explain_wrong_file
from kernelmill.cli.program.options import Command, general_options, model_argument
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.messages import translate_note
from kernelmill.cli.render.results import (
    build_json,
    describe_model,
    make_pairs_table,
    name_held_out,
    render_columns,
    render_folds,
    render_headline,
    render_notes,
    render_ranking,
    render_relevance,
    render_verdict,
)
from kernelmill.formatting import plain

if TYPE_CHECKING:
    from kernelmill.files.model_file import ModelFile
    from kernelmill.workflows.records import FitSummary

__all__ = ["command"]


@click.command(
    "inspect",
    cls=Command,
    short_help="Show the content of a model file.",
    examples=[
        ("kernelmill inspect adult.kmill", "task, columns, map, training, held-out error"),
        (
            "kernelmill inspect adult.kmill --json | jq .summary.held_out.metrics",
            "JSON for programs",
        ),
    ],
)
@model_argument
@general_options
@click.pass_context
def command(context: click.Context, model: str) -> None:
    """Show the content of the file MODEL: task, target, columns, map, training, held-out error."""
    from kernelmill.files import read_model_file
    from kernelmill.files.remote_path import parse_path

    terminal = get_terminal(context)
    with explain_wrong_file(model):
        content = read_model_file(model)
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in content.tensors.items()
    }
    about: dict[str, Any] = {
        "file": model,
        "bytes": parse_path(model).stat().st_size,
        "kind": content.kind,
        "format_version": content.format_version,
    }
    pairs = {
        "file": f"{model} ({plain.size(about['bytes'])})",
        "kind": f"{content.kind}, format {content.format_version}",
    }
    summary, construction = _read_summary(content, model)
    if summary is None:
        settings = _list_settings(content.record) | construction
        record = {**about, "summary": None, "settings": settings, "arrays": arrays}
        terminal.give(record, make_pairs_table(pairs | settings), "", _render_arrays(arrays))
        return
    parts: list[Any] = [make_pairs_table(pairs | describe_model(summary)), ""]
    if summary.held_out is not None:
        held_out = summary.held_out
        headline = f"{name_held_out(held_out)}: {render_headline(held_out)}"
        parts += [headline, *render_ranking(held_out)]
        parts += render_verdict(held_out, terminal.command)
        parts += [*render_folds(summary), ""]
    from kernelmill.cli.commands.fit import command as fit

    notes = [translate_note(note, fit) for note in summary.notes]
    parts += [*render_notes(notes), *render_relevance(summary)]
    parts += render_columns(summary.columns)
    terminal.give(
        {**about, "summary": build_json(summary), "settings": {}, "arrays": arrays}, *parts
    )


def _read_summary(content: ModelFile, path: str) -> tuple[FitSummary | None, dict[str, str]]:
    """Return the record of the fit (models saved in Python have none) and the construction.

    The construction is that of the map: older files do not record it.
    """
    from dataclasses import replace

    from kernelmill.files import ModelFileError, errors_of_file, without_prefix
    from kernelmill.files.fields import Fields, Nested
    from kernelmill.learners.prediction import read_learner
    from kernelmill.maps.registry import describe_construction
    from kernelmill.workflows.records import TABLE_MODEL, FitSummary

    record, tensors = content.record, content.tensors
    with errors_of_file(path, "save the model again, or upgrade kernelmill"):
        if content.kind != TABLE_MODEL:
            found = describe_construction(read_learner(record, tensors)[2].feature_map)
            return None, {"construction": found}
        for part in ("learner", "summary"):
            if part not in record:
                raise ModelFileError(f"it has no {part}")
        learner = read_learner(record["learner"], without_prefix("learner", tensors))
        found = describe_construction(learner[2].feature_map)
        parts = Fields(summary=Nested(FitSummary)).read({"summary": record["summary"]})
    return replace(parts["summary"], construction=found), {"construction": found}


def _list_settings(record: dict[str, Any]) -> dict[str, str]:
    """Return the entries of a record that are single values."""
    return {
        name: str(value)
        for name, value in record.items()
        if isinstance(value, str | int | float | bool)
    }


def _render_arrays(arrays: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"{name}: {about['dtype']} {' x '.join(map(str, about['shape']))}"
        for name, about in arrays.items()
    )
