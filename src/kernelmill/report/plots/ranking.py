"""Plots of how well a model ranks the rows of two classes: ROC, precision and recall, lift."""

from __future__ import annotations

from matplotlib.figure import Figure

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.plots.drawing import (
    drawing_style,
    format_axis,
    light,
    new_figure,
    tick_percent,
)
from kernelmill.report.plots.panel import PageTable, Panel
from kernelmill.workflows.records import Evaluation, Ranking

__all__ = ["lift_plot", "precision_recall_plot", "ranking_panels", "roc_plot"]

_SHOWN_SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)


def compute_points(ranking: Ranking) -> list[tuple[float, float, float, float]]:
    """Points (share of the rows, recall, false positive rate, precision), by share."""
    base = ranking.base_rate
    points = []
    for share, recall in zip(ranking.share, ranking.recall, strict=False):
        if is_number(share) and is_number(recall) and 0 < share <= 1 and 0 < base < 1:
            false_positive = (share - base * recall) / (1 - base)
            points.append(
                (share, recall, min(1.0, max(0.0, false_positive)), min(1.0, base * recall / share))
            )
    return points


def _check(ranking: Ranking) -> list[tuple[float, float, float, float]]:
    points = compute_points(ranking)
    if not points:
        raise ArgumentError("must hold at least one point, got none", parameter="ranking")
    return points


@drawing_style()
def roc_plot(ranking: Ranking) -> Figure:
    """Plot the recall against the false positive rate, for all thresholds.

    Examples
    --------
    >>> from kernelmill.report import roc_plot
    >>> from kernelmill.workflows.records import Ranking
    >>> figure = roc_plot(Ranking("yes", 0.3, [0.2, 0.5, 1.0], [0.5, 0.9, 1.0]))
    >>> figure.axes[0].get_xlabel()
    'false positive rate, %'
    """
    points = _check(ranking)
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.plot((0, 1), (0, 1), color=light("muted"), linewidth=1, dashes=(4, 3))
    axes.plot(
        [0.0, *(point[2] for point in points)],
        [0.0, *(point[1] for point in points)],
        color=light("blue"),
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="false positive rate, %", ylabel="recall, %")
    axes.set_aspect("equal")
    format_axis(axes.xaxis, tick_percent)
    format_axis(axes.yaxis, tick_percent)
    return figure


@drawing_style()
def precision_recall_plot(ranking: Ranking) -> Figure:
    """Plot the precision against the recall, for all thresholds.

    Examples
    --------
    >>> from kernelmill.report import precision_recall_plot
    >>> from kernelmill.workflows.records import Ranking
    >>> figure = precision_recall_plot(Ranking("yes", 0.3, [0.2, 0.5, 1.0], [0.5, 0.9, 1.0]))
    >>> figure.axes[0].get_ylabel()
    'precision, %'
    """
    points = _check(ranking)
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.axhline(ranking.base_rate, color=light("muted"), linewidth=1, dashes=(4, 3))
    axes.plot([point[1] for point in points], [point[3] for point in points], color=light("blue"))
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall, %", ylabel="precision, %")
    format_axis(axes.xaxis, tick_percent)
    format_axis(axes.yaxis, tick_percent)
    return figure


@drawing_style()
def lift_plot(ranking: Ranking) -> Figure:
    """Plot the lift against the share of the rows that are predicted positive.

    The lift is the precision divided by the share of the class among all rows.

    Examples
    --------
    >>> from kernelmill.report import lift_plot
    >>> from kernelmill.workflows.records import Ranking
    >>> figure = lift_plot(Ranking("yes", 0.3, [0.2, 0.5, 1.0], [0.5, 0.9, 1.0]))
    >>> figure.axes[0].get_ylabel()
    'lift'
    """
    points = _check(ranking)
    figure = new_figure(height=270)
    axes = figure.subplots()
    axes.axhline(1.0, color=light("muted"), linewidth=1, dashes=(4, 3))
    axes.plot(
        [point[0] for point in points],
        [point[1] / point[0] for point in points],
        color=light("blue"),
    )
    axes.set(xlim=(0, 1), xlabel="rows, most probable first, %", ylabel="lift")
    axes.set_ylim(bottom=0)
    format_axis(axes.xaxis, tick_percent)
    format_axis(axes.yaxis, html.number)
    return figure


def ranking_panels(key: str, evaluation: Evaluation) -> list[Panel]:
    """Return the three plots, if the evaluation has a ranking."""
    ranking = evaluation.ranking
    points = compute_points(ranking) if ranking else []
    if not ranking or not points:
        return []
    name = html.quote(clean_text(ranking.positive))
    rows = []
    for wanted in _SHOWN_SHARES:
        share, recall, false_positive, precision = min(points, key=lambda p: abs(p[0] - wanted))
        cells = [html.percent(each) for each in (share, recall, false_positive, precision)]
        rows.append([*cells, html.number(recall / share, 3)])
    headings = ["rows", "recall", "false positives", "precision", "lift"]
    table = PageTable(headings, list(dict.fromkeys(map(tuple, rows))), "Some thresholds", 0)
    area, average = (evaluation.metrics.get(each) for each in ("auc", "average_precision"))
    tenth = min(points, key=lambda point: abs(point[0] - 0.1))
    return [
        Panel(
            f"{key}-roc",
            "ROC curve",
            roc_plot(ranking),
            f"Line plot of the recall of {name} against the false positive rate; the area is "
            f"{html.number(area, 3)}.",
            f"The recall of {name} (true positive rate) against the false positive rate, for "
            f"every threshold on the probability of {name}. The dashed line is chance; the area "
            f"under the curve is {html.number(area, 3)}.",
            table,
        ),
        Panel(
            f"{key}-precision-recall",
            "Precision and recall",
            precision_recall_plot(ranking),
            f"Line plot of the precision of {name} against its recall; the average precision is "
            f"{html.number(average, 3)}.",
            f"Lowering the threshold increases the recall of {name} and usually decreases the "
            f"precision. The dashed line is the fraction of {name} among all rows, "
            f"{html.percent(ranking.base_rate)}.",
            table,
        ),
        Panel(
            f"{key}-lift",
            "Lift",
            lift_plot(ranking),
            f"Line plot of the lift; it is {html.number(tenth[1] / tenth[0], 3)} at "
            f"{html.percent(tenth[0])} of the rows.",
            f"Among the {html.percent(tenth[0])} of the rows with the highest probability of "
            f"{name}, the class is {html.number(tenth[1] / tenth[0], 3)} times as frequent as "
            "among all rows.",
            table,
        ),
    ]
