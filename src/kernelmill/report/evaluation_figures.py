"""How good predictions are: calibration, residuals, coverage of intervals."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.figure import Figure

from kernelmill.formatting import html, is_number
from kernelmill.report.drawing import drawing_style, format_axis, new_figure, tick_percent
from kernelmill.report.kernel_check_figure import MAX_POINTS, draw_against, finite_pairs
from kernelmill.report.palette import light
from kernelmill.workflows.records import Calibration, Coverage, Evaluation

__all__ = [
    "calibration_bins",
    "calibration_figure",
    "coverage_figure",
    "predicted_figure",
    "residuals_figure",
]


def calibration_bins(calibration: Calibration) -> list[tuple[float, float, int]]:
    """(predicted, observed, count) of the bins that can be drawn."""
    bins = zip(calibration.predicted, calibration.observed, calibration.counts, strict=False)
    return sorted(each for each in bins if is_number(each[0]) and is_number(each[1]))


@drawing_style()
def calibration_figure(calibration: Calibration) -> Figure:
    """Draw how often predictions were right against how sure the model was, and the counts.

    Examples
    --------
    >>> from kernelmill.report import calibration_figure
    >>> from kernelmill.workflows.records import Calibration
    >>> figure = calibration_figure(Calibration([0.6, 0.9], [0.55, 0.93], [40, 160]))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['right, %', 'rows']
    """
    bins = calibration_bins(calibration)
    if not bins:
        raise ValueError("calibration must hold at least one bin, got none.")
    predicted, observed, counts = zip(*bins, strict=True)
    figure = new_figure(height=330)
    above, below = figure.subplots(2, sharex=True, height_ratios=[3, 1])
    low = min(*predicted, *observed, 1.0)
    high = max(*predicted, *observed)
    margin = max(0.03, 0.06 * (high - low))
    low = low - margin
    ends = (low, 1.0 + margin)
    above.plot(ends, ends, color=light("muted"), linewidth=1, dashes=(4, 3))
    above.plot(predicted, observed, color=light("blue"), marker="o")
    above.set(xlim=ends, ylim=ends, ylabel="right, %")
    gaps = [b - a for a, b in pairwise(predicted)]
    width = 0.8 * min([*gaps, 0.06])
    below.bar(predicted, counts, width=max(width, 0.008), color=light("muted"))
    below.set(xlabel="probability of the predicted class, %", ylabel="rows")
    below.locator_params(axis="y", nbins=3)
    format_axis(above.yaxis, tick_percent)
    format_axis(below.xaxis, tick_percent)
    format_axis(below.yaxis, html.compact)
    figure.align_ylabels([above, below])
    return figure


@drawing_style()
def predicted_figure(evaluation: Evaluation) -> Figure:
    """Draw predicted against actual targets of a regression.

    Examples
    --------
    >>> from kernelmill.report import predicted_figure
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation(
    ...     "regression", "wine.csv", 2, {"rmse": 0.1}, 0.01, actual=[5, 6], predicted=[5.1, 5.9])
    >>> predicted_figure(evaluation).axes[0].get_ylabel()
    'predicted'
    """
    pairs = finite_pairs(evaluation.actual or [], evaluation.predicted or [])
    return draw_against(pairs, "actual", "predicted")


@drawing_style()
def residuals_figure(evaluation: Evaluation) -> Figure:
    """Draw what predictions of a regression are off by, against the predictions.

    Examples
    --------
    >>> from kernelmill.report import residuals_figure
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation(
    ...     "regression", "wine.csv", 2, {"rmse": 0.1}, 0.01, actual=[5, 6], predicted=[5.1, 5.9])
    >>> residuals_figure(evaluation).axes[0].get_ylabel()
    'actual \N{MINUS SIGN} predicted'
    """
    pairs = finite_pairs(evaluation.predicted or [], evaluation.actual or [])
    if not pairs:
        raise ValueError("evaluation must hold actual and predicted targets to draw, got none.")
    pairs = pairs[:: -(-len(pairs) // MAX_POINTS)]
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.axhline(0, color=light("ink"), linewidth=1, dashes=(4, 3), zorder=3)
    axes.plot(
        [predicted for predicted, _ in pairs],
        [actual - predicted for predicted, actual in pairs],
        linestyle="",
        marker="o",
        markersize=3.4,
        color=light("blue"),
        alpha=0.75 if len(pairs) <= 100 else 0.4,
    )
    axes.set(xlabel="predicted", ylabel="actual \N{MINUS SIGN} predicted")
    axes.locator_params(nbins=6)
    return figure


@drawing_style()
def coverage_figure(coverage: Coverage) -> Figure:
    """Draw the share of targets inside the intervals against the share that should be.

    Examples
    --------
    >>> from kernelmill.report import coverage_figure
    >>> from kernelmill.workflows.records import Coverage
    >>> coverage_figure(Coverage([0.5, 0.9], [0.56, 0.88])).axes[0].get_xlabel()
    'should be inside, %'
    """
    pairs = sorted(finite_pairs(coverage.nominal, coverage.observed))
    if not pairs:
        raise ValueError("coverage must hold at least one pair of shares, got none.")
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.plot((0, 1), (0, 1), color=light("muted"), linewidth=1, dashes=(4, 3))
    axes.plot(*zip(*pairs, strict=True), color=light("blue"), marker="o")
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="should be inside, %", ylabel="are inside, %")
    axes.set_aspect("equal")
    format_axis(axes.xaxis, tick_percent)
    format_axis(axes.yaxis, tick_percent)
    return figure
