"""Contenders on the same rows: error against features and time, memory."""

from __future__ import annotations

from matplotlib.figure import Figure

from kernelmill.formatting import html, is_number, shorten
from kernelmill.report.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    label_ends,
    legend_below,
    log_axis,
    new_figure,
    series_colour,
    thinned,
    tick_percent,
)
from kernelmill.report.palette import light
from kernelmill.workflows.records import ComparedModel, Comparison

__all__ = [
    "error_by_features_figure",
    "error_by_time_figure",
    "feature_models",
    "full_name",
    "memory_figure",
    "timed_models",
]


def full_name(model: ComparedModel, length: int = 1000) -> str:
    """A contender's name, shortened to a length, and its number of features."""
    name = shorten(model.name, length)
    if model.n_components is None or model.family != "features":
        return name
    return f"{name} {html.count(model.n_components)}"


def feature_models(comparison: Comparison) -> dict[str, list[ComparedModel]]:
    """The contenders on features that have an error, by name, in order of their features."""
    families: dict[str, list[ComparedModel]] = {}
    for model in comparison.models:
        if model.family == "features" and model.n_components and is_number(model.error):
            families.setdefault(model.name, []).append(model)
    for models in families.values():
        models.sort(key=lambda model: model.n_components or 0)
    return families


def timed_models(comparison: Comparison) -> dict[str, list[ComparedModel]]:
    """The contenders that have an error and a time, by name, in order of the time."""
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
    """A colour for each name, the same in every plot of the comparison."""
    names = dict.fromkeys(m.name for m in comparison.models if m.family == "features")
    return {name: series_colour(k) for k, name in enumerate(names)} | {
        m.name: light("muted" if m.family == "linear" else "ink")
        for m in comparison.models
        if m.family != "features"
    }


@drawing_style()
def error_by_features_figure(comparison: Comparison) -> Figure:
    """Draw the error against the number of features, other contenders as horizontal lines.

    Examples
    --------
    >>> from kernelmill.report import error_by_features_figure
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, None)] + [
    ...     ComparedModel("fastfood", "features", n, 900, 1 / n, 0.1, 0.01, None)
    ...     for n in (16, 64)]
    >>> figure = error_by_features_figure(
    ...     Comparison("classification", "a.csv", "y", 900, 100, "error", models))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['fastfood', 'linear']
    """
    families = feature_models(comparison)
    if not families:
        raise ValueError("comparison must hold a model on features with a finite error, got none.")
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
        if model.family != "features" and is_number(model.error):
            dashes = (1.5, 2) if model.family == "linear" else (6, 3)
            colour = colours[model.name]
            axes.axhline(model.error, color=colour, linewidth=1.3, dashes=dashes)
            labels.append((model.error, model.name, colour))
    ordered = sorted(sizes)
    log_axis(axes, ordered, html.compact, thinned(ordered))
    axes.set_xlabel("features")
    _error_axis(figure, comparison)
    label_ends(axes, labels)
    return figure


@drawing_style()
def error_by_time_figure(comparison: Comparison) -> Figure:
    """Draw the error against the time of the fit, a line for each map.

    Examples
    --------
    >>> from kernelmill.report import error_by_time_figure
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, None)]
    >>> comparison = Comparison("classification", "a.csv", "y", 900, 100, "error", models)
    >>> error_by_time_figure(comparison).axes[0].get_xlabel()
    'seconds to fit'
    """
    families = timed_models(comparison)
    if not families:
        raise ValueError("comparison must hold a model with an error and a time, got none.")
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
def memory_figure(comparison: Comparison) -> Figure:
    """Draw the peak memory of each contender as a bar.

    Examples
    --------
    >>> from kernelmill.report import memory_figure
    >>> from kernelmill.workflows.records import ComparedModel, Comparison
    >>> models = [ComparedModel("linear", "linear", None, 900, 0.09, 0.1, 0.01, 2**20)]
    >>> comparison = Comparison("classification", "a.csv", "y", 900, 100, "error", models)
    >>> memory_figure(comparison).axes[0].get_xlabel()
    'MB beyond the data'
    """
    models = [(model, model.peak_memory) for model in comparison.models]
    bars = [(model, memory / 1e6) for model, memory in models if memory is not None]
    if not bars:
        raise ValueError("comparison must hold a model with its peak memory, got none.")
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
    axes.set(xlim=(0, 1.25 * top), ylim=(len(bars) - 0.5, -0.5), xlabel="MB beyond the data")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)
    format_axis(axes.xaxis, html.compact)
    return figure
