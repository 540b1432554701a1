"""Plots of how a model was fitted: learning curve, tuning, time."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.figure import Figure

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.plots.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    legend_below,
    light,
    log_axis,
    new_figure,
    series_colour,
    tick_percent,
)
from kernelmill.report.plots.kernels import kernel_check_panel
from kernelmill.report.plots.panel import PageTable, Panel
from kernelmill.workflows.records import FitSummary, LearningPoint, TuningPoint

__all__ = [
    "fit_panels",
    "learning_curve_plot",
    "time_plot",
    "tuning_plot",
]

MAX_LINES = 6


def error_label(task: str) -> str:
    """Return the label of an axis with the error of a task."""
    return "error, %" if task == "classification" else "RMSE"


def finite_tuning(points: list[TuningPoint]) -> list[TuningPoint]:
    """Return the settings that can be drawn: finite errors, positive length scales and penalties.

    Each is there once, as it was last measured.
    """
    found = {}
    for point in points:
        if (
            is_number(point.error)
            and is_number(point.length_scale)
            and point.length_scale > 0
            and point.alpha > 0
        ):
            numbers = f"{point.length_scale:.6g} {point.alpha:.6g}"
            found[point.criterion, point.n_components, *_map_of(point), numbers] = point
    return list(found.values())


def choose_ringed_point(
    points: list[TuningPoint], chosen: tuple[float | None, float] | None
) -> tuple[TuningPoint, bool]:
    """Return the chosen setting and True; if it is not known, the smallest error and False.

    That is the smallest of the settings with the most features: errors depend on their number.
    """
    marked = [point for point in points if point.chosen][-1:]
    if chosen is not None and chosen[0] is not None:
        same = [
            point
            for point in points
            if math.isclose(point.length_scale, chosen[0], rel_tol=1e-6)
            and math.isclose(point.alpha, chosen[1], rel_tol=1e-6)
        ]
        on_line = [p for p in same if marked and _line_of(p) == _line_of(marked[0])]
        if on_line or (same and not marked):
            return (on_line or same)[-1], True  # the last one has the most features
    if marked:
        return marked[0], True
    most = max(point.n_components for point in points)
    return min((p for p in points if p.n_components == most), key=lambda p: p.error), False


def _map_of(point: TuningPoint) -> tuple[str, bool, str]:
    """Return the kernel, and what else of the map differs."""
    return (point.kernel, point.per_column, point.variant)


def _line_of(point: TuningPoint) -> tuple[str, bool, str, float, int]:
    """Return the settings that the points of a line share: all except the penalty."""
    return (*_map_of(point), point.length_scale, point.n_components)


def best_lines(
    points: list[TuningPoint], ringed: TuningPoint
) -> dict[str, list[tuple[float, float]]]:
    """Penalties and errors by line: that of the ringed setting and the best others, at most six."""
    lines: dict[tuple[str, bool, str, float, int], dict[float, float]] = {}
    for point in points:
        lines.setdefault(_line_of(point), {})[point.alpha] = point.error

    def rank(line: tuple[str, bool, str, float, int]) -> tuple[bool, bool, float]:
        is_other_size = line[-1] != ringed.n_components
        return line != _line_of(ringed), is_other_size, min(lines[line].values())

    in_order = sorted(lines, key=rank)[:MAX_LINES]
    sizes = {line[-1] for line in in_order}
    found: dict[str, list[tuple[float, float]]] = {}
    for line in in_order:
        kernel, per_column, variant, length_scale, size = line
        parts = [clean_text(kernel), "columns" if per_column else "", clean_text(variant)]
        parts.append(f"length scale {html.number(length_scale, 3)}")
        parts.append(f"{size} features" if len(sizes) > 1 and size else "")
        label = ", ".join(filter(None, parts))
        if label in found:  # length scales that are equal in three digits
            label += f" ({length_scale:.6g})"
        found[label] = sorted(lines[line].items())
    return found


@drawing_style()
def tuning_plot(
    points: list[TuningPoint], chosen: tuple[float | None, float] | None = None
) -> Figure:
    """Plot the error against the penalty, with a line for each of the six best other settings.

    The other settings are kernel, variant, length scale and number of features. The length scale of
    a kernel with one for each column is their geometric mean.

    Parameters
    ----------
    points : list of TuningPoint
        The settings that were tried, all with the same criterion.
    chosen : (length scale, penalty), optional
        The setting to ring. If it is not one of the points, the one that is marked as chosen is
        ringed, or else the smallest error of those with the most features.

    Examples
    --------
    >>> from kernelmill.report import tuning_plot
    >>> from kernelmill.workflows.records import TuningPoint
    >>> figure = tuning_plot([TuningPoint(2.0, 1e-4, 0.21), TuningPoint(4.0, 1e-4, 0.18)])
    >>> figure.axes[0].get_ylabel()
    'squared error'
    """
    points = finite_tuning(points)
    if not points:
        raise ArgumentError("must hold at least one finite error, got none", parameter="points")
    criterion = points[0].criterion
    if any(point.criterion != criterion for point in points):
        raise ArgumentError(
            f"must hold one criterion, got {criterion!r} and others",
            "draw a plot for each criterion",
            parameter="points",
        )
    ringed, is_chosen = choose_ringed_point(points, chosen)
    figure = new_figure(height=270)
    axes = figure.subplots()
    for index, (label, line) in enumerate(best_lines(points, ringed).items()):
        axes.plot(
            *zip(*line, strict=True),
            color=series_colour(index),
            marker=MARKERS[index],
            label=label,
        )
    axes.plot(
        [ringed.alpha],
        [ringed.error],
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=light("ink"),
        markeredgewidth=1.2,
        linestyle="",
        label="chosen" if is_chosen else "smallest",
    )
    log_axis(axes, [point.alpha for point in points])
    is_share = criterion == "error"
    axes.set(xlabel="penalty", ylabel="error, %" if is_share else clean_text(criterion))
    format_axis(axes.yaxis, tick_percent if is_share else html.number)
    legend_below(figure, axes)
    return figure


@drawing_style()
def learning_curve_plot(points: list[LearningPoint], task: str = "classification") -> Figure:
    """Plot the losses of training and held-out rows, and the error, against the rows seen.

    Parameters
    ----------
    points : list of LearningPoint
        At least one with a loss or an error.
    task : {"classification", "regression"}
        Whether errors are fractions or root mean squared errors.

    Examples
    --------
    >>> from kernelmill.report import learning_curve_plot
    >>> from kernelmill.workflows.records import LearningPoint
    >>> figure = learning_curve_plot([LearningPoint(1000, 0.6), LearningPoint(2000, 0.4, 0.1)])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['training loss', 'held-out error, %']
    """
    losses = [(p.rows, p.loss) for p in points if is_number(p.loss)]
    held_out = [(p.rows, p.held_out_loss) for p in points if is_number(p.held_out_loss)]
    errors = [(p.rows, p.error) for p in points if is_number(p.error)]
    lines = [
        ("loss" if held_out else "training loss", losses, "blue", html.number),
        (
            f"held-out {error_label(task)}",
            errors,
            "orange",
            tick_percent if task == "classification" else html.number,
        ),
    ]
    lines = [line for line in lines if line[1]]
    if not lines:
        raise ArgumentError("must hold at least one loss or error, got none", parameter="points")
    figure = new_figure(height=330 if len(lines) == 2 else 250)
    panels = figure.subplots(len(lines), sharex=True, squeeze=False)[:, 0]
    for axes, (label, values, colour, form) in zip(panels, lines, strict=True):
        few = len(values) <= 40
        marker = "o" if few else ""
        axes.plot(
            *zip(*values, strict=True), color=light(colour), marker=marker, label="training rows"
        )
        if label == "loss":
            pairs = zip(*held_out, strict=True)
            axes.plot(*pairs, color=light("orange"), marker=marker, label="held-out rows")
            axes.legend(frameon=False)
        axes.set_ylabel(label)
        axes.locator_params(axis="y", nbins=5)
        format_axis(axes.yaxis, form)
    panels[-1].set_xlabel("rows seen")
    panels[-1].locator_params(axis="x", nbins=5)
    format_axis(panels[-1].xaxis, html.compact)
    figure.align_ylabels(panels)
    return figure


def select_timed_stages(fit: FitSummary) -> list[tuple[str, float]]:
    """Return the stages with a positive duration."""
    return [(stage, time) for stage, time in fit.seconds.items() if is_number(time) and time > 0]


@drawing_style()
def time_plot(fit: FitSummary) -> Figure:
    """Plot the duration of each stage of a fit as a part of one bar.

    Examples
    --------
    >>> from kernelmill.report import time_plot
    >>> from kernelmill.workflows.records import FitSummary
    >>> fit = FitSummary(
    ...     task="regression", source="a.csv", target="y", n_rows=9, n_held_out=0, columns=[],
    ...     n_inputs=1, map_name="fastfood", kernel="gaussian", n_components=8, length_scale=1.0,
    ...     alpha=0.1, loss="squared", seed=0, seconds={"read": 1.0, "train": 3.0},
    ...     peak_memory=None)
    >>> time_plot(fit).axes[0].get_xlabel()
    'seconds'
    """
    stages = select_timed_stages(fit)
    if not stages:
        raise ArgumentError("must hold at least one positive duration, got none", parameter="fit")
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


def fit_panels(fit: FitSummary) -> list[Panel]:
    """Return the plots that the record has numbers for."""
    panels = [
        _learning_curve(fit),
        *_tuning(fit),
        kernel_check_panel("fit-kernel", fit.kernel_check),
        _time(fit),
    ]
    return [panel for panel in panels if panel]


def judge_learning(points: list[LearningPoint]) -> str:
    """Return advice on the number of epochs from the losses of held-out rows; "" without them.

    They are those of the same rows, so that a change of two percent is more than chance.
    """
    losses = [(p.rows, p.held_out_loss) for p in points if is_number(p.held_out_loss)]
    if len(losses) < 4:
        return ""
    rows, best = min(losses, key=lambda pair: pair[1])
    last, before = losses[-1][1], losses[-1 - len(losses) // 4][1]
    if last > 1.02 * best:
        return (
            f" The held-out loss was smallest after {html.count(rows, 'row')} and has increased "
            "since: use fewer epochs or a larger penalty."
        )
    if last < 0.98 * before:
        return (
            f" The held-out loss fell by {html.percent(1 - last / before)} in the last quarter "
            "of training: more epochs would help."
        )
    return (
        " The held-out loss hardly changed in the last quarter of training: more epochs "
        "would not help."
    )


def _learning_curve(fit: FitSummary) -> Panel | None:
    points = [p for p in fit.learning_curve if is_number(p.loss) or is_number(p.error)]
    if not points:
        return None
    form = html.percent if fit.task == "classification" else html.number
    last = points[-1]
    ends = [f"loss {html.number(last.loss, 3)}"] if is_number(last.loss) else []
    ends += [f"held-out error {form(last.error)}"] if is_number(last.error) else []
    reading = (
        "Loss and error against the number of rows processed; rows count once per "
        f"epoch.{judge_learning(points)}"
    )
    step = -(-len(points) // 60)
    # Backwards, so that the last point is in the table for any step.
    kept = points[::-1][::step][::-1]
    rows = [
        [html.count(p.rows), html.number(p.loss), html.number(p.held_out_loss), form(p.error)]
        for p in kept
    ]
    shown = "" if step == 1 else f", one of {step} points"
    return Panel(
        "fit-learning",
        "Learning curve",
        learning_curve_plot(points, fit.task),
        f"Line plot of training over {html.count(last.rows, 'row')}, ending at "
        f"{' and '.join(ends)}.",
        reading,
        PageTable(
            ["rows seen", "loss", "held-out loss", "held-out error"], rows, f"Training{shown}", 0
        ),
    )


def _tuning(fit: FitSummary) -> list[Panel]:
    """Return a plot for each criterion, in the order in which they were used."""
    points = finite_tuning(fit.tuning)
    criteria = dict.fromkeys(point.criterion for point in points)
    return [
        _tuning_by(
            criterion,
            [p for p in points if p.criterion == criterion],
            (fit.length_scale, fit.alpha),
            stage=index + 1,
            n_stages=len(criteria),
        )
        for index, criterion in enumerate(criteria)
    ]


_STAGES = (
    " This is the first of two stages: ridge regression finds a region; the second stage "
    "searches it with the model's own loss.",
    " This is the second of two stages: it searches the region found by ridge regression with "
    "the model's own loss.",
)


def _tuning_by(
    criterion: str,
    points: list[TuningPoint],
    chosen: tuple[float | None, float],
    *,
    stage: int,
    n_stages: int,
) -> Panel:
    form = html.percent if criterion == "error" else html.number
    name = clean_text(criterion)
    # The penalties of ridge regressions have another scale than those of other losses.
    decides = stage == n_stages
    ringed, is_chosen = choose_ringed_point(points, chosen if decides else None)
    n_lines = len({_line_of(point) for point in points})
    n_drawn = len(best_lines(points, ringed))
    lines = "One line for each kernel and length scale" if n_lines > 1 else "One kernel"
    lines += "" if n_drawn == n_lines else f" ({n_drawn} of {n_lines})"
    of_what = " of a ridge regression" if criterion == "squared error" else ""
    found = (
        f"length scale {html.number(ringed.length_scale, 3)} and penalty "
        f"{html.number(ringed.alpha, 2)}: {form(ringed.error)}"
    )
    line = [point for point in points if _line_of(point) == _line_of(ringed)]
    penalties = [point.alpha for point in line]
    at_edge = decides and len(penalties) > 2 and ringed.alpha in (min(penalties), max(penalties))
    of_two = _STAGES[stage - 1] if n_stages == 2 else ""
    beyond = "smaller" if ringed.alpha == min(penalties) else "larger"
    wider = (
        f" This is at the edge of the searched range: a {beyond} penalty (--alpha, or alpha in "
        "Python) may be better."
    )
    which = "chosen setting" if is_chosen else "smallest"
    comparable = ""
    if len({point.n_components for point in points}) > 1:
        which += f" with {html.count(ringed.n_components, 'feature')}"
        solver = " and solver" if any("L-BFGS" in point.variant for point in points) else ""
        comparable = f" Only settings with the same number of features{solver} are comparable."
    words = (
        f"{_explain_penalty(ringed, line, chosen[1], name, form) if decides else ''}{comparable}"
    )
    varies = len({point.variant for point in points}) > 1
    return Panel(
        f"fit-tuning-{stage}",
        f"Tuning by {name}",
        tuning_plot(points, chosen if decides else None),
        f"Line plot of the {name} against the penalty for "
        f"{html.count(n_drawn, 'setting')} of kernel and length scale; the {which} is at {found}. "
        f"There are {html.count(len(points), 'setting')}.",
        f"{lines}: the {name}{of_what} on validation rows. The {which}, ringed, is at "
        f"{found}.{words}{wider if at_edge else ''}{of_two}",
        PageTable(
            [
                "kernel",
                *(["variant"] if varies else []),
                "length scale",
                "features",
                "penalty",
                name,
            ],
            [
                [
                    ", ".join(filter(None, [p.kernel, "columns" if p.per_column else ""])),
                    *([p.variant] if varies else []),
                    html.number(p.length_scale),
                    str(p.n_components or "-"),
                    html.number(p.alpha, 3),
                    form(p.error),
                ]
                for p in sorted(points, key=lambda p: p.error)
            ],
            "All settings, smallest error first",
            0,
        ),
    )


def _explain_penalty(
    ringed: TuningPoint,
    line: list[TuningPoint],
    alpha: float,
    name: str,
    form: Callable[[float], str],
) -> str:
    """Return why the penalty of the model is not that of the smallest error on its line."""
    if not math.isclose(alpha, ringed.alpha, rel_tol=1e-6):
        return f" The model has the penalty {html.number(alpha, 2)}."
    least = min(line, key=lambda point: point.error)
    if least.error >= ringed.error:
        return ""
    smallest = f" The smallest value of its line is {form(least.error)}"
    if ringed.criterion == "squared error":
        return f"{smallest}; the penalty was chosen with all rows."
    return (
        f"{smallest}: a weaker penalty is chosen only if it lowers the {name} by at least "
        "half a percent."
    )


def _time(fit: FitSummary) -> Panel | None:
    stages = select_timed_stages(fit)
    if not stages:
        return None
    total = sum(time for _, time in stages)
    longest, most = max(stages, key=lambda stage: stage[1])
    return Panel(
        "fit-time",
        "Time by stage",
        time_plot(fit),
        f"Stacked bar of {html.duration(total)}: "
        + ", ".join(f"{stage} {html.duration(time)}" for stage, time in stages)
        + ".",
        f"The longest stage is {html.quote(longest)}: {html.percent(most / total)} of "
        f"{html.duration(total)}.",
        PageTable(
            ["stage", "time", "share"],
            [[stage, html.duration(time), html.percent(time / total)] for stage, time in stages],
            "Stages in order",
        ),
    )
