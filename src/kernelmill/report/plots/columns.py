"""Plots of the columns of a table: relevance and partial dependence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number, join_words, shorten
from kernelmill.report.plots.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    legend_below,
    light,
    log_axis,
    log_ticks,
    new_figure,
    series_colour,
    thin_ticks,
    tick_percent,
)
from kernelmill.report.plots.panel import PageTable, Panel
from kernelmill.workflows.records import ColumnRelevance, FitSummary, PartialDependence

__all__ = ["column_panels", "partial_dependence_plot", "relevance_plot"]

MAX_COLUMNS = 20
MAX_CATEGORIES = 8
_NAME_LENGTH = 22
_FEW = 8  # values that get large markers
_SKEWED = 100  # the ratio of the largest to the smallest value of a logarithmic axis


def sort_relevance(columns: Sequence[ColumnRelevance]) -> list[ColumnRelevance]:
    """Return the columns whose relevance is a number, the most relevant first."""
    known = [column for column in columns if is_number(column.relevance)]
    return sorted(known, key=lambda column: -column.relevance)


@drawing_style()
def relevance_plot(columns: Sequence[ColumnRelevance]) -> Figure:
    """Plot the relevance of the 20 most relevant columns as bars, with their intervals as lines.

    Parameters
    ----------
    columns : sequence of ColumnRelevance
        Such as `column_relevance_` of a model.

    Examples
    --------
    >>> from kernelmill.report import relevance_plot
    >>> from kernelmill.workflows.records import ColumnRelevance
    >>> columns = [ColumnRelevance("age", 1.0, 0.9, 1.0), ColumnRelevance("town", 0.1, 0.0, 0.2)]
    >>> len(relevance_plot(columns).axes[0].patches)
    2
    """
    shown = sort_relevance(columns)[:MAX_COLUMNS]
    if not shown:
        raise ArgumentError(
            "must hold at least one finite relevance, got none", parameter="columns"
        )
    figure = new_figure(height=58 + 17 * len(shown))
    axes = figure.subplots()
    places = range(len(shown))
    axes.barh(
        places, [each.relevance for each in shown], height=0.62, color=light("blue"), alpha=0.7
    )
    for place, each in enumerate(shown):
        if is_number(each.low) and is_number(each.high):
            axes.plot(
                [each.low, each.high],
                [place, place],
                color=light("ink"),
                linewidth=1.2,
                marker="|",
                markersize=6,
                markeredgewidth=1.2,
            )
    axes.set_yticks(places, [_shorten_name(each.name, _NAME_LENGTH) for each in shown])
    axes.set(xlim=(0, 1.02), ylim=(len(shown) - 0.4, -0.6), xlabel="relevance")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    format_axis(axes.xaxis, html.number)
    return figure


@drawing_style()
def partial_dependence_plot(dependences: Sequence[PartialDependence]) -> Figure:
    """Plot mean predictions against the values of each column, on one scale.

    Parameters
    ----------
    dependences : sequence of PartialDependence
        The results for one model. At most eight categories of a column are drawn.

    Examples
    --------
    >>> from kernelmill.report import partial_dependence_plot
    >>> from kernelmill.workflows.records import PartialDependence
    >>> age = PartialDependence("age", "numeric", [20.0, 60.0], "prediction", ["y"], [[1, 3]], 500)
    >>> partial_dependence_plot([age]).axes[0].get_title(loc="left")
    'age'
    """
    drawn = drawable(dependences)
    if not drawn:
        raise ArgumentError(
            "must hold at least one column with finite means, got none", parameter="dependences"
        )
    n_columns = min(2, len(drawn))
    n_rows = -(-len(drawn) // n_columns)
    several = len(drawn[0].outputs) > 1
    figure = new_figure(height=(175 if n_columns == 2 else 230) * n_rows + 26 * several)
    engine: Any = figure.get_layout_engine()
    engine.set(hspace=0.08)
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in grid[len(drawn) :]:
        axes.set_visible(False)
    limits = _common_limits(drawn)
    for axes, each in zip(grid, drawn, strict=False):
        if each.kind == "category":
            _draw_categories(axes, each, limits)
        else:
            _draw_numbers(axes, each, limits)
        name = _shorten_name(each.name, 18)
        axes.set_title(name, fontsize=10, color=light("ink"), loc="left")
    if several:
        legend_below(figure, grid[0])
    return figure


def _shorten_name(name: str, length: int) -> str:
    return shorten(f"column {name}" if name.isdecimal() else name, length, keep_end=4)


def drawable(dependences: Sequence[PartialDependence]) -> list[PartialDependence]:
    """Return the columns with a finite mean for each value."""
    return [
        each
        for each in dependences
        if each.values
        and each.means
        and all(len(curve) == len(each.values) for curve in each.means)
        and all(is_number(mean) for curve in each.means for mean in curve)
        and (each.kind == "category" or all(map(_is_finite, each.values)))
    ]


def _is_finite(value: float | str) -> bool:
    return not isinstance(value, str) and is_number(value)


def _common_limits(drawn: list[PartialDependence]) -> tuple[float, float]:
    means = [mean for each in drawn for curve in each.means for mean in curve]
    margin = 0.06 * (max(means) - min(means)) or 0.05 * abs(means[0]) or 0.5
    return min(means) - margin, max(means) + margin


def _axis_label(each: PartialDependence) -> str:
    return each.quantity if each.quantity == "prediction" else f"{each.quantity}, %"


def _form(each: PartialDependence) -> Any:
    return html.compact if each.quantity == "prediction" else tick_percent


def _draw_numbers(axes: Axes, each: PartialDependence, limits: tuple[float, float]) -> None:
    numbers = [float(value) for value in each.values]
    few = len(numbers) <= _FEW
    for index, (name, curve) in enumerate(zip(each.outputs, each.means, strict=False)):
        axes.plot(
            numbers,
            curve,
            color=series_colour(index),
            marker=MARKERS[index % len(MARKERS)],
            markersize=5 if few else 3,
            linewidth=1.6,
            label=clean_text(name),
        )
    axes.set(ylim=limits, ylabel=_axis_label(each))
    axes.locator_params(nbins=4)
    low, high = min(numbers), max(numbers)
    if low > 0 and high > _SKEWED * low:
        log_axis(axes, numbers, html.compact, thin_ticks(log_ticks(low, high), 0.3))
    else:
        format_axis(axes.xaxis, html.compact)
    format_axis(axes.yaxis, _form(each))


def _draw_categories(axes: Axes, each: PartialDependence, limits: tuple[float, float]) -> None:
    shown = [str(value) for value in each.values[:MAX_CATEGORIES]]
    for index, (name, curve) in enumerate(zip(each.outputs, each.means, strict=False)):
        axes.plot(
            curve[: len(shown)],
            range(len(shown)),
            color=series_colour(index),
            marker=MARKERS[index % len(MARKERS)],
            linestyle="",
            label=clean_text(name),
        )
    axes.set_yticks(
        range(len(shown)), [shorten(name, 14, keep_end=3) for name in shown], fontsize=9
    )
    axes.set(xlim=limits, ylim=(len(shown) - 0.5, -0.5), xlabel=_axis_label(each))
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4)
    format_axis(axes.xaxis, _form(each))


def column_panels(fit: FitSummary) -> list[Panel]:
    """Return the plots that the record has numbers for."""
    panels = [_relevance(fit), _partial_dependence(fit)]
    return [panel for panel in panels if panel]


def _relevance(fit: FitSummary) -> Panel | None:
    columns = sort_relevance(fit.column_relevance)
    if not columns:
        return None
    shown, rest = columns[:MAX_COLUMNS], columns[MAX_COLUMNS:]
    others = (
        f" The relevance of the other {html.count(len(rest), 'column')} is at most "
        f"{html.number(rest[0].relevance, 2)}."
        if rest
        else ""
    )
    has_intervals = any(is_number(each.low) for each in shown)
    lines = (
        " Lines show the range over four searches for the length scales, with different rows "
        "and different frequencies: if the lines of two columns overlap, their order is "
        "uncertain."
        if has_intervals
        else ""
    )
    meaning = (
        "How much predictions change if the values of a column are permuted"
        if fit.ranks_by_predictions and not has_intervals
        else "The spread of a column in units of its length scale: how much the column "
        "contributes to the distances of the kernel"
    )
    top = [
        f"{html.quote_column(each.name)} ({html.number(each.relevance, 2)})" for each in shown[:5]
    ]
    return Panel(
        "columns-relevance",
        "Column relevance",
        relevance_plot(columns),
        f"Bar chart of the relevance of {html.count(len(shown), 'column')}; the most relevant "
        f"are {join_words(top)}.",
        f"{meaning}; the largest is 1.{lines}{others}",
        PageTable(
            ["column", "relevance", "low", "high"],
            [
                [
                    clean_text(each.name),
                    html.number(each.relevance, 3),
                    html.number(each.low, 3),
                    html.number(each.high, 3),
                ]
                for each in columns
            ],
            "All columns, most relevant first",
        ),
    )


def _partial_dependence(fit: FitSummary) -> Panel | None:
    drawn = drawable(fit.partial_dependence)
    if not drawn:
        return None
    first = drawn[0]
    form = html.number if first.quantity == "prediction" else html.percent
    what = _describe_quantity(first, len(fit.classes or []))
    spans = []
    for each in drawn:
        means = [mean for curve in each.means for mean in curve]
        spans.append(
            f"{html.quote_column(each.name)} from {form(min(means))} to {form(max(means))}"
        )
    cut = [each for each in drawn if each.kind == "category" and len(each.values) > MAX_CATEGORIES]
    frequent = f" Only the {MAX_CATEGORIES} most frequent categories are drawn." if cut else ""
    return Panel(
        "columns-dependence",
        "Partial dependence",
        partial_dependence_plot(drawn),
        f"Small plots of the mean {what} against {html.count(len(drawn), 'column')}: "
        f"{join_words(spans)}.",
        f"Partial dependence: the mean {what} over {html.count(first.n_rows, 'training row')} if "
        "one column is set to each of its values (to quantiles, for numbers) and the other "
        "columns are unchanged. All plots have the same scale; a flat line means that the "
        f"column alone has no effect.{frequent}",
        PageTable(
            ["column", "value", *(clean_text(name) for name in first.outputs)],
            [
                [
                    clean_text(each.name),
                    clean_text(value) if isinstance(value, str) else html.number(value),
                    *(form(curve[place]) for curve in each.means),
                ]
                for each in drawn
                for place, value in enumerate(each.values)
            ],
            f"Mean {first.quantity}",
            2,
        ),
    )


def _describe_quantity(each: PartialDependence, n_classes: int) -> str:
    """Return a phrase such as "probability of ‘yes’"."""
    if each.quantity == "prediction":
        return "prediction"
    name = "probability" if each.quantity == "probability" else "share of predictions"
    n_shown = len(each.outputs)
    if n_shown == 1:
        return f"{name} of {html.quote(each.outputs[0])}"
    return f"{name} of " + (
        "each class" if n_shown == n_classes else f"the {n_shown} most frequent classes"
    )
