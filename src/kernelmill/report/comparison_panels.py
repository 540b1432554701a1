"""The plots of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.comparison_figures import (
    error_by_features_figure,
    error_by_time_figure,
    feature_models,
    full_name,
    memory_figure,
    timed_models,
)
from kernelmill.report.fit_panels import kernel_check_panel
from kernelmill.report.panel import Panel, Table
from kernelmill.workflows.records import Comparison

__all__ = ["comparison_panels", "comparison_table"]


def comparison_panels(comparison: Comparison) -> list[Panel]:
    """The plots that the record has the numbers for."""
    panels = [
        _by_features(comparison),
        _by_time(comparison),
        kernel_check_panel("comparison-kernel", comparison.kernel_check),
        _memory(comparison),
    ]
    return [panel for panel in panels if panel]


def comparison_table(comparison: Comparison) -> Table:
    """All contenders with all their numbers."""
    form = html.percent if comparison.error_name == "error" else html.number
    has_detail = any(model.detail for model in comparison.models)
    headings = ["model", "features", "trained on", comparison.error_name]
    headings += ["fit", "predict", "memory"]
    rows = []
    for model in comparison.models:
        row = [
            clean_text(model.name),
            html.count(model.n_components),
            html.count(model.n_train),
            form(model.error),
            html.duration(model.fit_seconds),
            html.duration(model.predict_seconds),
            html.size(model.peak_memory),
        ]
        rows.append([*row, clean_text(model.detail)] if has_detail else row)
    return Table(
        [*headings, "detail"] if has_detail else headings,
        rows,
        f"The contenders, on the same {html.count(comparison.n_test, 'row')}; the least values are "
        "bold",
        prose=(7,),
        marked=_least(comparison),
    )


def _least(comparison: Comparison) -> frozenset[tuple[int, int]]:
    """The cells (row, column) of the table with the least error, times and memory."""
    columns: dict[int, Sequence[float | None]] = {
        3: [model.error for model in comparison.models],
        4: [model.fit_seconds for model in comparison.models],
        5: [model.predict_seconds for model in comparison.models],
        6: [model.peak_memory for model in comparison.models],
    }
    marked = set()
    for column, values in columns.items():
        known = [value for value in values if value is not None and is_number(value)]
        least = min(known, default=None)
        marked |= {(row, column) for row, value in enumerate(values) if known and value == least}
    return frozenset(marked)


def _by_features(comparison: Comparison) -> Panel | None:
    families = feature_models(comparison)
    if not families:
        return None
    form = html.percent if comparison.error_name == "error" else html.number
    others = [m for m in comparison.models if m.family != "features" and is_number(m.error)]
    models = [model for models in families.values() for model in models]
    ends = [
        f"{name} gets {form(models[-1].error)} with {html.count(models[-1].n_components)}"
        for name, models in families.items()
    ]
    ends += [f"{model.name} gets {form(model.error)}" for model in others]
    return Panel(
        "comparison-features",
        "Error against features",
        error_by_features_figure(comparison),
        f"Line plot of the error against the number of features: {'; '.join(ends)}.",
        "More features come closer to the exact kernel. Where a line is level, more of them "
        "would not pay." + (" Models without features are horizontal lines." if others else ""),
        Table(
            ["model", "features", comparison.error_name],
            [
                [clean_text(m.name), html.count(m.n_components), form(m.error)]
                for m in [*models, *others]
            ],
            "Errors",
        ),
    )


def _by_time(comparison: Comparison) -> Panel | None:
    models = [model for models in timed_models(comparison).values() for model in models]
    if not models:
        return None
    form = html.percent if comparison.error_name == "error" else html.number
    fast = min(models, key=lambda model: model.fit_seconds)
    good = min(models, key=lambda model: model.error)
    ends = (
        f"the fastest is {full_name(fast)} in {html.duration(fast.fit_seconds)} with "
        f"{form(fast.error)}, "
        f"the best {full_name(good)} in {html.duration(good.fit_seconds)} with {form(good.error)}"
    )
    fewer = [m for m in models if m.n_train < comparison.n_train]
    note = ""
    if fewer:
        name, rows = html.quote(fewer[0].name), html.count(fewer[0].n_train)
        note = f" {name} was fitted to {rows} of the {html.count(comparison.n_train)} rows."
    return Panel(
        "comparison-time",
        "Error against time",
        error_by_time_figure(comparison),
        f"Line plot of the error against the time of the fit: {clean_text(ends)}.",
        f"The lower left is best: little error in little time.{note}",
        Table(
            ["model", "fit", comparison.error_name],
            [
                [clean_text(full_name(m)), html.duration(m.fit_seconds), form(m.error)]
                for m in models
            ],
            "Times and errors",
        ),
    )


def _memory(comparison: Comparison) -> Panel | None:
    models = [model for model in comparison.models if model.peak_memory is not None]
    if not models:
        return None
    rows = [[clean_text(full_name(model)), html.size(model.peak_memory)] for model in models]
    return Panel(
        "comparison-memory",
        "Peak memory",
        memory_figure(comparison),
        "Bars of the peak memory beyond the data: "
        + ", ".join(" ".join(row) for row in rows)
        + ".",
        "What each fit needed at most, beyond the rows themselves.",
        Table(["model", "peak memory"], rows, "Peak memory"),
    )
