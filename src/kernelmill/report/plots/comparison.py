"""Plots of comparisons: error against features and time, memory."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number, shorten
from kernelmill.report.plots.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    label_ends,
    legend_below,
    light,
    log_axis,
    new_figure,
    series_colour,
    thin_ticks,
    tick_percent,
)
from kernelmill.report.plots.kernels import kernel_check_panel
from kernelmill.report.plots.panel import PageTable, Panel
from kernelmill.workflows.records import ComparedModel, Comparison

__all__ = [
    "comparison_panels",
    "comparison_table",
    "error_by_features_plot",
    "error_by_time_plot",
    "memory_plot",
]


_ON_FEATURES = ("features", "nystroem")  # families whose models have a number of features
_DASHES = {"linear": (1.5, 2), "trees": (4, 1.5, 1, 1.5)}


def full_name(model: ComparedModel, length: int = 1000) -> str:
    """Return the name of a model, shortened to a length, with its number of features."""
    name = shorten(model.name, length)
    if model.n_components is None or model.family not in _ON_FEATURES:
        return name
    return f"{name} {html.count(model.n_components)}"


def feature_models(comparison: Comparison) -> dict[str, list[ComparedModel]]:
    """Return the models on features with a finite error, by name, ordered by number of features."""
    families: dict[str, list[ComparedModel]] = {}
    for model in comparison.models:
        if model.family in _ON_FEATURES and model.n_components and is_number(model.error):
            families.setdefault(model.name, []).append(model)
    for models in families.values():
        models.sort(key=lambda model: model.n_components or 0)
    return families


def select_timed_models(comparison: Comparison) -> dict[str, list[ComparedModel]]:
    """Return the models with a finite error and time, by name, ordered by number of features."""
    families: dict[str, list[ComparedModel]] = {}
    for model in comparison.models:
        if is_number(model.error) and is_number(model.fit_seconds) and model.fit_seconds > 0:
            families.setdefault(model.name, []).append(model)
    for models in families.values():
        models.sort(key=lambda model: (model.n_components or 0, model.fit_seconds))
    return families


def _error_axis(figure: Figure, comparison: Comparison) -> None:
    axes = figure.axes[0]
    is_share = comparison.error_name == "error"
    axes.set_ylabel("error, %" if is_share else comparison.error_name.upper())
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0) if low < 0 else low, high)
    format_axis(axes.yaxis, tick_percent if is_share else html.number)


def _colours(comparison: Comparison) -> dict[str, str]:
    """Return a colour for each name, the same in every plot of the comparison."""
    plain = {"linear": light("muted"), "exact": light("ink")}
    names = dict.fromkeys(m.name for m in comparison.models if m.family not in plain)
    return {name: series_colour(k) for k, name in enumerate(names)} | {
        m.name: plain[m.family] for m in comparison.models if m.family in plain
    }


@drawing_style()
def error_by_features_plot(comparison: Comparison) -> Figure:
    """Plot the error against the number of features, with other models as horizontal lines.

    Examples
    --------
    >>> from kernelmill.report import error_by_features_plot
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, None)] + [
    ...     ComparedModel("fastfood", "features", n, 900, 1 / n, 0.1, 0.01, None)
    ...     for n in (16, 64)]
    >>> figure = error_by_features_plot(
    ...     Comparison("classification", "a.csv", "y", 900, 100, "error", models))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['fastfood', 'linear']
    """
    families = feature_models(comparison)
    if not families:
        problem = "must hold a model on features with a finite error, got none"
        raise ArgumentError(problem, parameter="comparison")
    colours = _colours(comparison)
    figure = new_figure(height=270)
    axes = figure.subplots()
    labels: list[tuple[float, str, str]] = []
    sizes: set[float] = set()
    for index, (name, models) in enumerate(families.items()):
        x = [model.n_components or 1 for model in models]
        y = [model.error for model in models]
        axes.plot(x, y, color=colours[name], marker=MARKERS[index % len(MARKERS)])
        labels.append((y[-1], name, colours[name]))
        sizes.update(x)
    for model in comparison.models:
        if model.family not in _ON_FEATURES and is_number(model.error):
            dashes = _DASHES.get(model.family, (6, 3))
            colour = colours[model.name]
            axes.axhline(model.error, color=colour, linewidth=1.3, dashes=dashes)
            labels.append((model.error, model.name, colour))
    ordered = sorted(sizes)
    log_axis(axes, ordered, html.compact, thin_ticks(ordered))
    axes.set_xlabel("features")
    _error_axis(figure, comparison)
    label_ends(axes, labels)
    return figure


@drawing_style()
def error_by_time_plot(comparison: Comparison) -> Figure:
    """Plot the error against the time of the fit, with a line for each map.

    Examples
    --------
    >>> from kernelmill.report import error_by_time_plot
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, None)]
    >>> comparison = Comparison("classification", "a.csv", "y", 900, 100, "error", models)
    >>> error_by_time_plot(comparison).axes[0].get_xlabel()
    'seconds to fit'
    """
    families = select_timed_models(comparison)
    if not families:
        problem = "must hold a model with an error and a time, got none"
        raise ArgumentError(problem, parameter="comparison")
    colours = _colours(comparison)
    figure = new_figure(height=270)
    axes = figure.subplots()
    for index, (name, models) in enumerate(families.items()):
        axes.plot(
            [model.fit_seconds for model in models],
            [model.error for model in models],
            color=colours[name],
            marker=MARKERS[index % len(MARKERS)],
            markersize=6,
            label=name,
        )
    log_axis(axes, [model.fit_seconds for models in families.values() for model in models])
    axes.set_xlabel("seconds to fit")
    _error_axis(figure, comparison)
    legend_below(figure, axes)
    return figure


@drawing_style()
def memory_plot(comparison: Comparison) -> Figure:
    """Plot the peak memory of each model as a bar.

    Examples
    --------
    >>> from kernelmill.report import memory_plot
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, 2**20)]
    >>> comparison = Comparison("classification", "a.csv", "y", 900, 100, "error", models)
    >>> memory_plot(comparison).axes[0].get_xlabel()
    'MB in addition to the data'
    """
    models = [(model, model.peak_memory) for model in comparison.models]
    bars = [(model, memory / 1e6) for model, memory in models if memory is not None]
    if not bars:
        problem = "must hold a model with its peak memory, got none"
        raise ArgumentError(problem, parameter="comparison")
    colours = _colours(comparison)
    figure = new_figure(height=70 + 24 * len(bars))
    axes = figure.subplots()
    top = max(memory for _, memory in bars) or 1.0
    for place, (model, memory) in enumerate(bars):
        axes.barh([place], [memory], height=0.62, color=colours[model.name])
        axes.text(
            memory + 0.015 * top,
            place,
            html.size(round(memory * 1e6)),
            va="center",
            fontsize=9.5,
        )
    axes.set_yticks(range(len(bars)), [full_name(model, 14) for model, _ in bars])
    axes.set(
        xlim=(0, 1.25 * top), ylim=(len(bars) - 0.5, -0.5), xlabel="MB in addition to the data"
    )
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)
    format_axis(axes.xaxis, html.compact)
    return figure


def comparison_panels(comparison: Comparison) -> list[Panel]:
    """Return the plots that the record has numbers for."""
    panels = [
        _by_features(comparison),
        _by_time(comparison),
        kernel_check_panel("comparison-kernel", comparison.kernel_check),
        _memory(comparison),
    ]
    return [panel for panel in panels if panel]


def comparison_table(comparison: Comparison) -> PageTable:
    """All models with all their numbers."""
    form = html.percent if comparison.error_name == "error" else html.number
    has_detail = any(model.detail for model in comparison.models)
    headings = ["model", "features", "training rows", comparison.error_name]
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
    return PageTable(
        [*headings, "detail"] if has_detail else headings,
        rows,
        f"The models, tested on the same {html.count(comparison.n_test, 'row')}; smallest values "
        "in bold",
        prose=(7,),
        marked=_smallest(comparison),
    )


def _smallest(comparison: Comparison) -> frozenset[tuple[int, int]]:
    """Return the cells (row, column) of the table with the smallest error, times and memory."""
    columns: dict[int, Sequence[float | None]] = {
        3: [model.error for model in comparison.models],
        4: [model.fit_seconds for model in comparison.models],
        5: [model.predict_seconds for model in comparison.models],
        6: [model.peak_memory for model in comparison.models],
    }
    marked = set()
    for column, values in columns.items():
        known = [value for value in values if is_number(value)]
        smallest = min(known, default=None)
        marked |= {(row, column) for row, value in enumerate(values) if known and value == smallest}
    return frozenset(marked)


def _by_features(comparison: Comparison) -> Panel | None:
    families = feature_models(comparison)
    if not families:
        return None
    form = html.percent if comparison.error_name == "error" else html.number
    others = [m for m in comparison.models if m.family not in _ON_FEATURES and is_number(m.error)]
    models = [model for models in families.values() for model in models]
    ends = [
        f"{name} {form(models[-1].error)} with {html.count(models[-1].n_components)}"
        for name, models in families.items()
    ]
    ends += [f"{model.name} {form(model.error)}" for model in others]
    return Panel(
        "comparison-features",
        "Error against features",
        error_by_features_plot(comparison),
        f"Line plot of the error against the number of features: {'; '.join(ends)}.",
        "More features approximate the kernel better. Where a line is level, more features do "
        "not reduce the error."
        + (" Horizontal lines are models without random features." if others else ""),
        PageTable(
            ["model", "features", comparison.error_name],
            [
                [clean_text(m.name), html.count(m.n_components), form(m.error)]
                for m in [*models, *others]
            ],
            "Errors",
        ),
    )


def _by_time(comparison: Comparison) -> Panel | None:
    models = [model for models in select_timed_models(comparison).values() for model in models]
    if not models:
        return None
    form = html.percent if comparison.error_name == "error" else html.number
    fast = min(models, key=lambda model: model.fit_seconds)
    good = min(models, key=lambda model: model.error)
    ends = (
        f"the fastest is {full_name(fast)} in {html.duration(fast.fit_seconds)} with "
        f"{form(fast.error)}, the best is {full_name(good)} in {html.duration(good.fit_seconds)} "
        f"with {form(good.error)}"
    )
    note = "".join(
        f" {html.quote(m.name)} was trained on {html.count(m.n_train)} of "
        f"{html.count(comparison.n_train)} rows."
        for m in models
        if m.n_train < comparison.n_train
    )
    return Panel(
        "comparison-time",
        "Error against training time",
        error_by_time_plot(comparison),
        f"Line plot of the error against the training time: {clean_text(ends)}.",
        f"Models at the lower left are best: small error, short training time.{note}",
        PageTable(
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
        memory_plot(comparison),
        "Bar chart of the peak memory in addition to the data: "
        + ", ".join(" ".join(row) for row in rows)
        + ".",
        "The peak memory of each training run, in addition to the data.",
        PageTable(["model", "peak memory"], rows, "Peak memory"),
    )
