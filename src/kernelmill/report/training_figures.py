"""How a model was made: learning, tuning, time."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    legend_below,
    log_axis,
    new_figure,
    series_colour,
    tick_percent,
)
from kernelmill.report.palette import light
from kernelmill.workflows.records import FitSummary, LearningPoint, TuningPoint

__all__ = [
    "best_penalties",
    "finite_tuning",
    "learning_curve_figure",
    "ringed_point",
    "time_figure",
    "timed_stages",
    "tuning_figure",
]

MAX_PENALTIES = 6


def error_label(task: str) -> str:
    """What the error of a task is called on an axis."""
    return "error, %" if task == "classification" else "RMSE"


def finite_tuning(points: list[TuningPoint]) -> list[TuningPoint]:
    """The settings whose error and length scale can be drawn on a logarithmic axis."""
    return [
        point
        for point in points
        if is_number(point.error) and is_number(point.length_scale) and point.length_scale > 0
    ]


def ringed_point(
    points: list[TuningPoint], chosen: tuple[float | None, float] | None
) -> tuple[TuningPoint, bool]:
    """The chosen setting and True; where it is not one of these, the least error and False."""
    if chosen is not None and chosen[0] is not None:
        for point in points:
            if math.isclose(point.length_scale, chosen[0], rel_tol=1e-6) and math.isclose(
                point.alpha, chosen[1], rel_tol=1e-6
            ):
                return point, True
    return min(points, key=lambda point: point.error), False


def best_penalties(points: list[TuningPoint], ringed: TuningPoint) -> list[float]:
    """That of the ringed setting and those with the least errors, at most six, ascending."""
    least: dict[float, float] = {}
    for point in points:
        least[point.alpha] = min(point.error, least.get(point.alpha, point.error))
    in_order = sorted(least, key=lambda alpha: (alpha != ringed.alpha, least[alpha]))
    return sorted(in_order[:MAX_PENALTIES])


@drawing_style()
def tuning_figure(
    points: list[TuningPoint], chosen: tuple[float | None, float] | None = None
) -> Figure:
    """Draw the error against the length scale, a line for each of the six best penalties.

    Parameters
    ----------
    points : list of TuningPoint
        The settings that were tried, judged by one criterion.
    chosen : (length scale, penalty), optional
        The setting to ring; the least error where it is not one of the points.

    Examples
    --------
    >>> from kernelmill.report import tuning_figure
    >>> from kernelmill.workflows.records import TuningPoint
    >>> figure = tuning_figure([TuningPoint(2.0, 1e-4, 0.21), TuningPoint(4.0, 1e-4, 0.18)])
    >>> figure.axes[0].get_ylabel()
    'squared error'
    """
    points = finite_tuning(points)
    if not points:
        raise ValueError("points must hold at least one finite error, got none.")
    criterion = points[0].criterion
    if any(point.criterion != criterion for point in points):
        raise ValueError(
            f"points must hold one criterion, got {criterion!r} and others; draw a figure for each."
        )
    ringed, is_chosen = ringed_point(points, chosen)
    figure = new_figure(height=270)
    axes = figure.subplots()
    for index, alpha in enumerate(best_penalties(points, ringed)):
        line = sorted((p.length_scale, p.error) for p in points if p.alpha == alpha)
        axes.plot(
            *zip(*line, strict=True),
            color=series_colour(index),
            marker=MARKERS[index],
            label=f"penalty {html.number(alpha, 2)}",
        )
    axes.plot(
        [ringed.length_scale],
        [ringed.error],
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=light("ink"),
        markeredgewidth=1.2,
        linestyle="",
        label="chosen" if is_chosen else "least",
    )
    log_axis(axes, [point.length_scale for point in points])
    is_share = criterion == "error"
    axes.set(xlabel="length scale", ylabel="error, %" if is_share else clean_text(criterion))
    format_axis(axes.yaxis, tick_percent if is_share else html.number)
    legend_below(figure, axes)
    return figure


@drawing_style()
def learning_curve_figure(points: list[LearningPoint], task: str = "classification") -> Figure:
    """Draw the loss of training rows and the error of held-out rows against the rows seen.

    Parameters
    ----------
    points : list of LearningPoint
        With a loss or an error in at least one of them.
    task : {"classification", "regression"}
        Whether errors are shares or root mean squared errors.

    Examples
    --------
    >>> from kernelmill.report import learning_curve_figure
    >>> from kernelmill.workflows.records import LearningPoint
    >>> figure = learning_curve_figure([LearningPoint(1000, 0.6), LearningPoint(2000, 0.4, 0.1)])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['loss in training', 'held-out error, %']
    """
    losses = [(p.rows, p.loss) for p in points if p.loss is not None and is_number(p.loss)]
    errors = [(p.rows, p.error) for p in points if p.error is not None and is_number(p.error)]
    lines = [
        ("loss in training", losses, "blue", html.number),
        (
            f"held-out {error_label(task)}",
            errors,
            "orange",
            tick_percent if task == "classification" else html.number,
        ),
    ]
    lines = [line for line in lines if line[1]]
    if not lines:
        raise ValueError("points must hold at least one loss or error, got none.")
    figure = new_figure(height=330 if len(lines) == 2 else 250)
    panels = figure.subplots(len(lines), sharex=True, squeeze=False)[:, 0]
    for axes, (label, values, colour, form) in zip(panels, lines, strict=True):
        few = len(values) <= 40
        axes.plot(*zip(*values, strict=True), color=light(colour), marker="o" if few else "")
        axes.set_ylabel(label)
        axes.locator_params(axis="y", nbins=5)
        format_axis(axes.yaxis, form)
    panels[-1].set_xlabel("rows seen")
    panels[-1].locator_params(axis="x", nbins=5)
    format_axis(panels[-1].xaxis, html.compact)
    figure.align_ylabels(panels)
    return figure


def timed_stages(fit: FitSummary) -> list[tuple[str, float]]:
    """The stages that took any time."""
    return [(stage, time) for stage, time in fit.seconds.items() if is_number(time) and time > 0]


@drawing_style()
def time_figure(fit: FitSummary) -> Figure:
    """Draw where the time of a fit went: one bar, a part for each stage.

    Examples
    --------
    >>> from kernelmill.report import time_figure
    >>> from kernelmill.workflows.records import FitSummary
    >>> fit = FitSummary(
    ...     task="regression", source="a.csv", target="y", n_rows=9, n_held_out=0, columns=[],
    ...     n_inputs=1, map_name="fastfood", kernel="gaussian", n_components=8, length_scale=1.0,
    ...     alpha=0.1, loss="squared", seed=0, seconds={"read": 1.0, "train": 3.0},
    ...     peak_memory=None)
    >>> time_figure(fit).axes[0].get_xlabel()
    'seconds'
    """
    stages = timed_stages(fit)
    if not stages:
        raise ValueError("fit.seconds must hold at least one positive time, got none.")
    figure = new_figure(height=150)
    axes = figure.subplots()
    start = 0.0
    for index, (stage, time) in enumerate(stages):
        axes.barh(
            [0],
            [time],
            left=start,
            height=0.6,
            color=series_colour(index),
            edgecolor=light("card"),
            linewidth=1.5,
            label=f"{stage} {html.duration(time)}",
        )
        start += time
    axes.set(xlim=(0, start), ylim=(-0.5, 0.5), yticks=[], xlabel="seconds")
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=6)
    format_axis(axes.xaxis, html.number)
    legend_below(figure, axes)
    return figure
