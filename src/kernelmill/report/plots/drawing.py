"""The style of plots: colours, sizes, fonts, ticks of logarithmic axes, labels of lines.

Plots are drawn in the light colours. Each colour has one purpose, so that the SVG text of a plot
can refer to the CSS variable of that purpose, whose value depends on the reader's colour scheme.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from kernelmill.errors import ArgumentError
from kernelmill.formatting import html, is_number, shorten

__all__ = [
    "COLOURS",
    "MARKERS",
    "SERIES",
    "Plot",
    "css_variables",
    "draw_against",
    "draw_points",
    "drawing_style",
    "finite_pairs",
    "format_axis",
    "label_ends",
    "legend_below",
    "light",
    "log_axis",
    "log_ticks",
    "new_figure",
    "series_colour",
    "thin_ticks",
    "tick_percent",
]

# purpose: (light, dark). Text has a contrast of at least 4.5 to the surfaces, lines at least 3.
COLOURS = {
    "page": ("#f5f6f8", "#101418"),
    "card": ("#ffffff", "#191f25"),
    "sunken": ("#eef1f4", "#222a32"),
    "ink": ("#1b232c", "#e7ebf0"),
    "muted": ("#55606c", "#a3afbb"),
    "line": ("#d9dee4", "#343e48"),
    "grid": ("#e3e7ec", "#2c353e"),
    "accent": ("#0f5c9e", "#7cc0f5"),
    "blue": ("#1a66a8", "#6cb4ee"),
    "orange": ("#b3470e", "#f0975e"),
    "green": ("#0b7459", "#52c69d"),
    "purple": ("#86478f", "#d19bdb"),
    "olive": ("#7a6200", "#d6b945"),
    "rose": ("#b02a5b", "#f28fb2"),
}

# The colours of lines, in order.
SERIES = ("blue", "orange", "green", "purple", "olive", "rose")


def light(purpose: str) -> str:
    """Return the colour for this purpose, in the light scheme."""
    return COLOURS[purpose][0]


def css_variables(*, dark: bool) -> str:
    """Return the CSS declarations of all colours, for one of the two schemes."""
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in COLOURS.items())


WIDTH = 380  # points; the page scales plots to the width of their column
MAX_POINTS = 2000  # of a scatter plot
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
    "svg.fonttype": "none",  # the font of the page, and text that can be selected
    "svg.hashsalt": "kernelmill",  # the same record gives the same bytes
    "text.color": light("ink"),
    "text.parse_math": False,  # column names and classes may hold dollar signs
    "xtick.color": light("muted"),
    "xtick.labelsize": 10,
    "xtick.major.size": 3,
    "ytick.color": light("muted"),
    "ytick.labelsize": 10,
    "ytick.major.size": 3,
}


@contextmanager
def drawing_style() -> Iterator[None]:
    """The matplotlib settings in which plots are drawn and written; also a decorator."""
    with matplotlib.style.context(["default", _STYLE]):
        yield


class Plot(Figure):
    """A figure that notebooks draw, whatever backend of matplotlib they have loaded."""

    def _repr_svg_(self) -> str:
        buffer = io.StringIO()
        self.savefig(buffer, format="svg")
        return buffer.getvalue()


def new_figure(height: float = 250, width: float = WIDTH) -> Figure:
    """Return an empty figure of this size, in points."""
    figure = Plot(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.03, h_pad=0.03)
    return figure


def series_colour(index: int) -> str:
    """Return the colour of the line with this index."""
    return light(SERIES[index % len(SERIES)])


def format_axis(axis: Any, form: Callable[[float], str]) -> None:
    """Format the ticks of an axis, such as `axes.xaxis`, by a function."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def tick_percent(share: float) -> str:
    """Return a fraction on an axis whose label has the percent sign."""
    text = html.percent(share, sign=False)
    return text[:-2] if text.endswith(".0") else text


def log_ticks(low: float, high: float) -> list[float]:
    """Two to six round values from `low` to `high`; if there are fewer, also these two."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) <= 6:
            break
    ticks = ticks[:: math.ceil(len(ticks) / 6)] if ticks else []
    return ticks if len(ticks) >= 2 else thin_ticks(sorted({low, *ticks, high}), 0.25)


def thin_ticks(values: Sequence[float], share: float = 0.13) -> list[float]:
    """Return the ascending `values` without those whose labels would overlap on a logarithmic axis.

    Neighbours are at least the fraction `share` of the axis apart; the last one is always kept.
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
    """Make the x-axis logarithmic, with limits a little beyond `values`."""
    low, high = min(values), max(values)
    margin = (high / low) ** 0.05 if high > low else 1.5
    axes.set_xscale("log")
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks or log_ticks(low, high))))
    axes.xaxis.set_minor_locator(NullLocator())
    format_axis(axes.xaxis, form)


def label_ends(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write labels (y, text, colour) beside the right ends of lines, without overlaps."""
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
    """Put a legend below the plot."""
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


def finite_pairs(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """Return the pairs in which both are finite numbers."""
    return [(a, b) for a, b in zip(x, y, strict=False) if is_number(a) and is_number(b)]


def draw_points(axes: Axes, pairs: Sequence[tuple[float, float]]) -> None:
    """Draw a point for each pair, or 2000 evenly chosen ones of more."""
    pairs = pairs[:: -(-len(pairs) // MAX_POINTS)]
    axes.plot(
        *zip(*pairs, strict=True),
        linestyle="",
        marker="o",
        markersize=3.4,
        color=light("blue"),
        alpha=0.75 if len(pairs) <= 100 else 0.4,
    )
    axes.locator_params(nbins=6)


def draw_against(pairs: Sequence[tuple[float, float]], x_label: str, y_label: str) -> Figure:
    """Scatter plot around the diagonal, with the same limits on both axes."""
    if not pairs:
        raise ArgumentError("the record must hold at least one pair of numbers to draw, got none")
    values = [value for pair in pairs[:: -(-len(pairs) // MAX_POINTS)] for value in pair]
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or 0.5
    ends = (low - margin, high + margin)
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.plot(ends, ends, color=light("ink"), linewidth=1, dashes=(4, 3), zorder=3)
    draw_points(axes, pairs)
    axes.set(xlim=ends, ylim=ends, xlabel=x_label, ylabel=y_label)
    axes.set_aspect("equal")
    return figure
