"""How all figures are drawn: size, type, colours, ticks on logarithmic axes, labels of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kernelmill.formatting import html, shorten
from kernelmill.report.palette import SERIES, light

__all__ = [
    "MARKERS",
    "WIDTH",
    "drawing_style",
    "format_axis",
    "label_ends",
    "legend_below",
    "log_axis",
    "log_ticks",
    "new_figure",
    "series_colour",
    "thinned",
    "tick_percent",
]

WIDTH = 380  # points; the page scales figures to the width of their column
MARKERS = ("o", "s", "D", "^", "v", "P", "X")

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": light("muted"),
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": light("muted"),
    "axes.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "grid.color": light("grid"),
    "grid.linewidth": 0.8,
    "legend.edgecolor": "none",
    "legend.facecolor": "none",
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "lines.markeredgewidth": 0,
    "path.simplify": False,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",  # the page's own font, and text that can be selected
    "svg.hashsalt": "kernelmill",  # the same record gives the same bytes
    "text.color": light("ink"),
    "text.parse_math": False,  # names of columns and classes may hold dollar signs
    "xtick.color": light("muted"),
    "xtick.labelsize": 10,
    "xtick.major.size": 3,
    "ytick.color": light("muted"),
    "ytick.labelsize": 10,
    "ytick.major.size": 3,
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """The settings of matplotlib in which figures are made and written; also a decorator."""
    with matplotlib.style.context(["default", _STYLE]):
        yield


def new_figure(height: float = 250, width: float = WIDTH) -> Figure:
    """An empty figure of so many points."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.03, h_pad=0.03)
    return figure


def series_colour(index: int) -> str:
    """The colour of the so-many-th line."""
    return light(SERIES[index % len(SERIES)])


def format_axis(axis: Any, form: Callable[[float], str]) -> None:
    """Write the ticks of an axis, such as `axes.xaxis`, in this form."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def tick_percent(share: float) -> str:
    """A share on an axis whose label says that it is in percent."""
    text = html.percent(share, sign=False)
    return text[:-2] if text.endswith(".0") else text


def log_ticks(low: float, high: float) -> list[float]:
    """Two to six round values from `low` to `high`; those two themselves where there are fewer."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= 6:
            break
    ticks = ticks[:: math.ceil(len(ticks) / 6)] if ticks else []
    return ticks if len(ticks) >= 2 else thinned(sorted({low, *ticks, high}), 0.25)


def thinned(values: Sequence[float], share: float = 0.13) -> list[float]:
    """Those of the ascending `values` whose labels do not touch on a logarithmic axis.

    Neighbours that are kept are `share` of the whole length apart; the last one is always kept.
    """
    span = math.log(values[-1] / values[0]) or 1.0
    kept = [values[-1]]
    for value in reversed(values[:-1]):
        if math.log(kept[-1] / value) >= share * span:
            kept.append(value)
    return kept[::-1]


def log_axis(
    axes: Axes,
    values: Sequence[float],
    form: Callable[[float], str] = lambda value: html.number(value, 3),
    ticks: Sequence[float] | None = None,
) -> None:
    """Make x logarithmic, from the smallest to the largest of `values` and a little beyond."""
    low, high = min(values), max(values)
    margin = (high / low) ** 0.05 if high > low else 1.5
    axes.set_xscale("log")
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks or log_ticks(low, high))))
    axes.xaxis.set_minor_locator(NullLocator())
    format_axis(axes.xaxis, form)


def label_ends(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write (y, text, colour) beside the right end of the lines, moved apart where they touch."""
    low, high = axes.get_ylim()
    apart = 0.075
    heights: list[float] = []
    ordered = sorted(labels)
    for y, _, _ in ordered:
        height = (y - low) / (high - low)
        heights.append(max(height, heights[-1] + apart) if heights else max(height, 0.0))
    ceiling = 1.0
    for index in reversed(range(len(heights))):
        heights[index] = min(heights[index], ceiling)
        ceiling = heights[index] - apart
    for (_, text, colour), height in zip(ordered, heights, strict=True):
        axes.text(
            1.02,
            height,
            shorten(text, 20),
            color=colour,
            transform=axes.transAxes,
            va="center",
            fontsize=9.5,
        )


def legend_below(figure: Figure, axes: Axes) -> None:
    """A legend under the plot, which covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    labels = [shorten(label, 40) for label in labels]
    if not labels:
        return
    # As many columns as fit: a character takes some 6 points, a line and gaps some 40.
    columns = int((WIDTH - 20) // (6 * max(map(len, labels)) + 40))
    columns = max(1, min(columns, 3, len(labels)))
    if len(labels) == 4 and columns == 3:
        columns = 2
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=columns,
        handlelength=1.8,
        columnspacing=1.2,
        labelcolor=light("ink"),
    )
