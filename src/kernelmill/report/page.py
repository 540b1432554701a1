"""One self-contained HTML page about a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from kernelmill.errors import ArgumentError, escape_controls
from kernelmill.files.atomic_file import atomic_write
from kernelmill.files.outputs import Output, check_outputs
from kernelmill.formatting import clean_text, html
from kernelmill.report.findings import (
    Tile,
    columns_finding,
    comparison_finding,
    comparison_tiles,
    evaluation_finding,
    evaluation_tiles,
    file_name,
    fit_finding,
    fit_tiles,
    kernel_name,
    metric_rows,
)
from kernelmill.report.plots.columns import column_panels
from kernelmill.report.plots.comparison import comparison_panels, comparison_table
from kernelmill.report.plots.drawing import css_variables
from kernelmill.report.plots.evaluation import class_table, evaluation_panels
from kernelmill.report.plots.fit import fit_panels
from kernelmill.report.plots.panel import PageTable, Panel
from kernelmill.report.usage import explain_fit, fit_lines, usage_lines
from kernelmill.workflows.records import Comparison, Evaluation, FitSummary

__all__ = [
    "Section",
    "render",
    "render_sections",
    "write_report",
]


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    title: str
    finding: str = ""  # for the summary at the top of the page
    panels: Sequence[Panel] = ()
    cards: Sequence[PageTable] = ()  # narrow tables, in one grid with the plots
    tables: Sequence[PageTable] = ()
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    code: Sequence[tuple[str, str]] = field(default=())
    paragraphs: Sequence[str] = ()  # below the title


def render(
    *,
    fit: FitSummary | None = None,
    evaluation: Evaluation | None = None,
    comparison: Comparison | None = None,
    title: str | None = None,
    model: str = "model.kmill",
) -> str:
    """Return the page as text; the parameters are those of `write_report`.

    Examples
    --------
    >>> from kernelmill.report import render
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation("classification", "new.csv", 50, {"error": 0.1}, 0.2)
    >>> "of 50 rows of new.csv." in render(evaluation=evaluation)
    True
    """
    if fit is None and evaluation is None and comparison is None:
        raise ArgumentError(
            "a report needs a fit, an evaluation or a comparison, got none",
            "pass at least one of them",
        )
    task = next(each.task for each in (fit, evaluation, comparison) if each is not None)
    has_model = fit is not None or evaluation is not None
    sections: list[Section] = []
    tiles: list[Tile] = []
    if evaluation:
        sections.append(_evaluation_section("evaluation", evaluation))
        tiles += evaluation_tiles(evaluation)
    if fit and fit.held_out:
        sections.append(_evaluation_section("held-out", fit.held_out, held_out=True))
        tiles += [] if evaluation else evaluation_tiles(fit.held_out)
    if comparison:
        sections.append(_comparison_section(comparison))
        tiles += [] if tiles else comparison_tiles(comparison)
    if fit:
        sections += [_fit_section(fit), _inputs_section(fit), _settings_section(fit)]
        tiles += fit_tiles(fit)
    shell, python = (
        usage_lines(fit, task, model)
        if has_model or not comparison
        else fit_lines(comparison, model)
    )
    using = "Using the model" if has_model else "Fitting a model"
    code = [(name, text) for name, text in (("Command line", shell), ("Python", python)) if text]
    reason = explain_fit(comparison) if comparison and not has_model else ""
    sections.append(Section(using, code=code, paragraphs=[reason] if reason else []))
    findings = [section.finding for section in sections if section.finding]
    return render_sections(
        title or _title(fit, evaluation, comparison),
        _subtitle(fit, evaluation, comparison),
        sections,
        findings=findings,
        tiles=tiles,
        version=fit.version if fit else "",
        created=f"model created {_date(fit.created)}" if fit and _date(fit.created) else "",
    )


def render_sections(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    *,
    findings: Sequence[str] = (),
    tiles: Sequence[Tile] = (),
    version: str = "",
    created: str = "",
) -> str:
    """Return the text of a page with these sections below a summary."""
    text = _template().render(
        title=clean_text(title),
        subtitle=subtitle,
        findings=findings,
        tiles=tiles,
        sections=sections,
        version=clean_text(version),
        created=created,
        light=css_variables(dark=False),
        dark=css_variables(dark=True),
    )
    # Whatever path it took from a file to the page, plots included: tabs are the page's own.
    return "\t".join(map(escape_controls, text.split("\t")))


def write_report(
    path: str | os.PathLike[str],
    *,
    fit: FitSummary | None = None,
    evaluation: Evaluation | None = None,
    comparison: Comparison | None = None,
    title: str | None = None,
    model: str = "model.kmill",
) -> Path:
    """Write a self-contained HTML file, without network access and scripts.

    Parameters
    ----------
    path : str or path-like
        The file, which is written atomically.
    fit : FitSummary, optional
        How the model was fitted.
    evaluation : Evaluation, optional
        The scores of its predictions.
    comparison : Comparison, optional
        The comparison with other models. At least one of the three is required.
    title : str, optional
        The heading; by default it names the target.
    model : str
        The path of the model file, for the code examples.

    Returns
    -------
    pathlib.Path
        The path of the file. Equal records produce identical files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelmill.report import write_report
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation("classification", "new.csv", 50, {"error": 0.1}, 0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(Path(folder) / "report.html", evaluation=evaluation)
    ...     written.name
    'report.html'
    """
    path = Path(path)
    check_outputs([Output(path, "path", "the report")], [model])
    text = render(fit=fit, evaluation=evaluation, comparison=comparison, title=title, model=model)
    atomic_write(path, [text.encode()])
    return path


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("kernelmill.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


def _title(
    fit: FitSummary | None, evaluation: Evaluation | None, comparison: Comparison | None
) -> str:
    if fit:
        return f"Model of {html.quote_column(fit.target)}" if fit.target else "Model"
    if evaluation:
        return f"Model evaluated on {file_name(evaluation.source)}"
    if comparison and comparison.target:
        return f"Comparison of models of {html.quote_column(comparison.target)}"
    return "Comparison of models"


def _subtitle(
    fit: FitSummary | None, evaluation: Evaluation | None, comparison: Comparison | None
) -> str:
    if fit:
        n_columns = len(fit.columns)
        columns = f"{html.count(n_columns)} columns of " if n_columns > 1 else ""
        return f"{fit.task.capitalize()} from {columns}{file_name(fit.source)}"
    about = evaluation or comparison
    return f"{about.task.capitalize()}, {file_name(about.source)}" if about else ""


def _evaluation_section(key: str, evaluation: Evaluation, *, held_out: bool = False) -> Section:
    source = file_name(evaluation.source)
    rows = "held-out rows" if held_out else f"rows of {source}"
    classes = class_table(evaluation)
    metrics = PageTable(
        ["metric", "value"],
        [*metric_rows(evaluation), ("prediction time", html.duration(evaluation.seconds))],
        "All metrics",
    )
    return Section(
        "Held-out rows" if held_out else f"Evaluation on {source}",
        evaluation_finding(evaluation, rows),
        evaluation_panels(key, evaluation),
        [metrics, classes] if classes else [metrics],
        notes=[clean_text(note) for note in evaluation.notes],
    )


def _comparison_section(comparison: Comparison) -> Section:
    return Section(
        "Comparison with other models",
        comparison_finding(comparison),
        comparison_panels(comparison),
        tables=[comparison_table(comparison)],
        notes=[clean_text(note) for note in comparison.notes],
    )


def _fit_section(fit: FitSummary) -> Section:
    return Section(
        "Training",
        fit_finding(fit),
        fit_panels(fit),
        notes=[clean_text(note) for note in fit.notes],
    )


def _inputs_section(fit: FitSummary) -> Section:
    table = PageTable(
        ["column", "kind", "encoding", "missing", "inputs"],
        [
            [
                clean_text(column.name),
                clean_text(column.kind),
                clean_text(column.detail),
                html.count(column.missing),
                html.count(column.n_columns),
            ]
            for column in fit.columns
        ],
        f"The columns, encoded as {html.count(fit.n_inputs, 'map input')}",
        3,
        prose=(2,),
    )
    shared = not fit.column_relevance and fit.length_scale is not None
    return Section(
        "Inputs",
        columns_finding(fit),
        column_panels(fit),
        tables=[table] if fit.columns else [],
        notes=["All columns have the same length scale, so their relevance is not ranked."]
        if shared and fit.columns
        else [],
    )


def _settings_section(fit: FitSummary) -> Section:
    facts = [
        ("data", fit.source),
        ("target", fit.target),
        ("task", fit.task),
        ("held-out rows", fit.division.text if fit.division and fit.n_held_out else ""),
        ("map", fit.map_name),
        ("construction", fit.construction),
        ("kernel", kernel_name(fit)),
        ("features", html.count(fit.n_components)),
        (
            "length scale (mean)" if fit.column_relevance else "length scale",
            html.number(fit.length_scale),
        ),
        ("penalty", html.number(fit.alpha)),
        ("loss", fit.loss.replace("_", " ")),
        ("solver", fit.solver),
        ("seed", str(fit.seed)),
        ("kernelmill", fit.version),
        ("created", _date(fit.created)),
    ]
    if fit.classes:
        shown = ", ".join(fit.classes[:12])
        more = f" and {html.count(len(fit.classes) - 12)} more" if len(fit.classes) > 12 else ""
        facts.insert(3, (html.count(len(fit.classes), "class", "classes"), f"{shown}{more}"))
    return Section("Settings", facts=[(name, clean_text(text)) for name, text in facts if text])


def _date(created: str) -> str:
    """Return an ISO 8601 date in a readable form; other strings stay as they are."""
    created = clean_text(created)
    if len(created) >= 16 and created[10] == "T":
        utc = " UTC" if created.endswith(("Z", "+00:00")) else ""
        return f"{created[:10]} {created[11:16]}{utc}"
    return created
