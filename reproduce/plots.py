"""Plots of the papers' experiments: curves, estimates against exact values, ratios to the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from kernelmill.formatting import html, is_number
from kernelmill.report.plots.drawing import (
    MARKERS,
    draw_against,
    drawing_style,
    format_axis,
    legend_below,
    light,
    log_axis,
    log_ticks,
    new_figure,
    series_colour,
)
from kernelmill.report.plots.panel import PageTable, Panel
from reproduce import CONFIDENCE, Cell, Column, Line, Outcome, Published

__all__ = ["INTERVAL", "outcome_panels", "save_plots", "show_value", "values_tables"]

_VERDICT_COLOURS = {"better": "green", "same": "blue", "worse": "orange"}
INTERVAL = f"{100 * CONFIDENCE:.0f}{html.space}% interval"
_LINE_HEIGHT = 17  # points for each value of a plot of ratios


def outcome_panels(outcome: Outcome) -> list[Panel]:
    """Return the plots of an experiment, with their numbers."""
    results = outcome.results
    panels = [_points_panel(outcome, index) for index in range(len(results.points))]
    if results.cells and all(not isinstance(cell.row, str) for cell in results.cells):
        names = dict.fromkeys(each.panel for each in outcome.experiment.columns)
        panels += [
            panel for index, name in enumerate(names) if (panel := _curves(outcome, name, index))
        ]
    else:
        lines = [each for each in outcome.lines if is_number(each.verdict.ratio)]
        panels += [_ratios(outcome, lines)] if lines else []
    return panels


def show_value(cell: Cell, unit: str = "") -> str:
    """Return a mean with the half-width of its interval: "0.721 ± 0.012"."""
    interval = cell.interval
    text = html.number(interval.mean, 3)
    if interval.known and interval.high > interval.mean:
        text += f" ± {html.number(interval.high - interval.mean, 2)}"
    return f"{text}{html.space}{unit}" if unit else text


def _key(outcome: Outcome, suffix: object) -> str:
    return f"{outcome.experiment.name}-{suffix}"


@drawing_style()
def _points_panel(outcome: Outcome, index: int) -> Panel:
    points = outcome.results.points[index]
    pairs = list(zip(points.x, points.y, strict=True))
    figure = draw_against(pairs, "exact kernel value", "estimate from features")
    rows = [[html.number(x, 3), html.number(y, 3)] for x, y in pairs[:: -(-len(pairs) // 50)]]
    return Panel(
        _key(outcome, f"points-{index + 1}"),
        points.panel,
        figure,
        f"Scatter plot of {html.count(len(pairs), 'pair')}: estimates against exact values.",
        "Each point is a pair of rows; estimates on the dashed line are exact.",
        PageTable(["exact", "estimate"], rows, "Some of the points", 0),
    )


@drawing_style()
def _curves(outcome: Outcome, panel: str, index: int) -> Panel | None:
    experiment, results = outcome.experiment, outcome.results
    columns = [each for each in experiment.columns if each.panel == panel]
    figure = new_figure(height=280)
    axes = figure.subplots()
    x_values: set[float] = set()
    drawn = []
    for number, column in enumerate(columns):
        cells = [cell for cell in results.cells if cell.column == column.name]
        if cells:
            drawn.append(column.label or column.name)
            x_values |= {float(cell.row) for cell in cells}
            _draw_curve(axes, column, cells, number)
            _draw_published(axes, outcome, column.name, number)
    if not drawn:
        return None
    positive = min(x_values) > 0
    if positive and max(x_values) > min(x_values):
        log_axis(axes, sorted(x_values), html.compact)
    if experiment.log_y:
        _log_y(axes)
    units = {column.unit for column in columns}
    unit = f" ({units.pop()})" if len(units) == 1 and units != {""} else ""
    value = experiment.value or panel.partition(",")[0]
    axes.set(xlabel=experiment.row, ylabel=f"{value}{unit}")
    legend_below(figure, axes)
    return Panel(
        _key(outcome, f"curves-{index + 1}"),
        f"{experiment.place}{f': {panel}' if panel else ''}",
        figure,
        f"Curves of {', '.join(drawn)}: {value} against {experiment.row}.",
        f"Bands are {INTERVAL}s over runs; dashed lines are peers, crosses the paper's values.",
        _values_table(outcome, columns),
    )


def _draw_curve(axes: Axes, column: Column, cells: Sequence[Cell], number: int) -> None:
    colour = series_colour(number)
    intervals = [cell.interval for cell in cells]
    x = [float(cell.row) for cell in cells]
    axes.plot(
        x,
        [each.mean for each in intervals],
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        linestyle="-" if column.ours else (0, (4, 2)),
        label=column.label or column.name,
    )
    if all(each.known for each in intervals):
        # On a logarithmic axis a band must not reach 0.
        low = [max(each.low, each.mean / 4) for each in intervals]
        axes.fill_between(x, low, [each.high for each in intervals], color=colour, alpha=0.15, lw=0)


def _draw_published(axes: Axes, outcome: Outcome, column: str, number: int) -> None:
    printed = [
        (float(row), value)
        for (row, name), text in outcome.experiment.published.items()
        if name == column and (value := Published(text).value) is not None
    ]
    if printed:
        x, y = zip(*printed, strict=True)
        colour = series_colour(number)
        axes.plot(x, y, linestyle="", marker="x", markeredgewidth=1.4, color=colour)


def _log_y(axes: Axes) -> None:
    low, high = axes.dataLim.intervaly
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axes.yaxis.set_minor_locator(NullLocator())
    format_axis(axes.yaxis, lambda value: html.number(value, 2))


@drawing_style()
def _ratios(outcome: Outcome, lines: Sequence[Line]) -> Panel:
    """Return measured values divided by published ones, with their intervals."""
    figure = new_figure(height=70 + _LINE_HEIGHT * len(lines))
    axes = figure.subplots()
    rows = []
    for height, line in enumerate(reversed(lines)):
        ratio, interval = line.verdict.ratio, line.cell.interval
        colour = light(_VERDICT_COLOURS.get(line.verdict.word, "muted"))
        if interval.known and interval.mean:
            half = (interval.high - interval.mean) / interval.mean * ratio
            ends = [max(ratio - half, ratio / 4), min(ratio + half, ratio * 4)]
            axes.plot(ends, [height] * 2, color=colour, linewidth=1.4)
        axes.plot([ratio], [height], marker="o", markersize=4.5, color=colour)
        rows.append(
            [f"{line.row}, {line.column}", line.published, show_value(line.cell, line.unit)]
        )
    labels = [_axis_label(line) for line in reversed(lines)]
    ratios = [line.verdict.ratio for line in lines]
    axes.axvline(1, color=light("ink"), linewidth=1, dashes=(4, 3))
    log_axis(axes, [min(*ratios, 0.9), max(*ratios, 1.1)], lambda value: html.number(value, 2))
    axes.set_yticks(range(len(lines)), labels, fontsize=8.5)
    axes.set_ylim(-0.7, len(lines) - 0.3)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("measured here / the paper's value")
    return Panel(
        _key(outcome, "ratios"),
        f"{outcome.experiment.place}: ratio to the paper",
        figure,
        f"Ratios of {html.count(len(lines), 'measured value')} to the paper's values.",
        "At the dashed line both agree. Green is better than the paper, blue the same within "
        f"chance, orange worse; grey values have other settings. Bars are {INTERVAL}s.",
        PageTable(["value", "paper", "here"], rows[::-1], "Measured and published values"),
    )


def _axis_label(line: Line) -> str:
    """Return the name of a value on an axis."""
    return f"{line.row} · {line.column}"


def _values_table(outcome: Outcome, columns: Sequence[Column]) -> PageTable:
    """Measured values with intervals, one row for each row of the experiment."""
    results = outcome.results
    rows: list[list[str]] = []
    for row in results.rows():
        cells: list[Any] = [results.get(row, column.name) for column in columns]
        if any(cell is not None for cell in cells):
            name = row if isinstance(row, str) else html.number(row)
            rows.append([name, *(show_value(cell) if cell else html.no_value for cell in cells)])
    names = [
        f"{column.label or column.name}{f' ({column.unit})' if column.unit else ''}"
        for column in columns
    ]
    caption = ": ".join(filter(None, (outcome.experiment.value, columns[0].panel)))
    return PageTable([outcome.experiment.row, *names], rows, caption)


def values_tables(outcome: Outcome) -> list[PageTable]:
    """Return the tables of all panels."""
    panels = dict.fromkeys(column.panel for column in outcome.experiment.columns)
    tables = [
        _values_table(outcome, [each for each in outcome.experiment.columns if each.panel == panel])
        for panel in panels
    ]
    return [table for table in tables if table.rows]


def save_plots(panels: Sequence[Panel], folder: Any, name: str) -> list[str]:
    """Write each plot as NAME.svg and NAME.png, numbered if there are several."""
    written = []
    for number, panel in enumerate(panels, 1):
        stem = name if len(panels) == 1 else f"{name}-{number}"
        for kind in ("svg", "png"):
            _save(panel.figure, folder / f"{stem}.{kind}", kind)
            written.append(f"{stem}.{kind}")
    return written


@drawing_style()
def _save(figure: Figure, path: Any, kind: str) -> None:
    settings: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 144}
    figure.savefig(path, format=kind, facecolor="white", **settings)
