"""Plots of evaluations: confusion matrix, calibration, residuals, coverage of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number, shorten
from kernelmill.report.plots.drawing import (
    draw_against,
    draw_points,
    drawing_style,
    finite_pairs,
    format_axis,
    light,
    new_figure,
    tick_percent,
)
from kernelmill.report.plots.panel import PageTable, Panel, group_pairs
from kernelmill.report.plots.ranking import ranking_panels
from kernelmill.workflows.records import Calibration, Coverage, Evaluation

__all__ = [
    "calibration_plot",
    "class_table",
    "confusion_plot",
    "coverage_plot",
    "evaluation_panels",
    "is_confusion_matrix",
    "predicted_plot",
    "residuals_plot",
]

MAX_CLASSES = 60  # of one heat map: above it, a class would be thinner than a line
MAX_NUMBERED = 10
N_LEVELS = 16  # of darkness; cells of one level are one shape, which keeps the page small
MAX_OPACITY = 0.5  # text over a cell keeps its contrast


def is_confusion_matrix(classes: list[str] | None, confusion: list[list[int]] | None) -> bool:
    """Return whether there is a square matrix of these classes that counts any rows."""
    return bool(
        classes
        and confusion
        and len(confusion) == len(classes)
        and all(len(row) == len(classes) for row in confusion)
        and any(map(any, confusion))
    )


def most_confused(confusion: list[list[int]], n_classes: int = MAX_CLASSES) -> list[int]:
    """Return the `n_classes` classes with the most errors, in their order."""
    wrong = [
        sum(row) + sum(other[k] for other in confusion) - 2 * row[k]
        for k, row in enumerate(confusion)
    ]
    ranked = sorted(range(len(confusion)), key=lambda k: -wrong[k])
    return sorted(ranked[:n_classes])


@drawing_style()
def confusion_plot(classes: list[str], confusion: list[list[int]]) -> Figure:
    """Plot a confusion matrix as a heat map: correct predictions in blue, errors in orange.

    Parameters
    ----------
    classes : list of str
        The names of the classes.
    confusion : list of list of int
        Numbers of rows by true class (row) and predicted class (column).

    Returns
    -------
    matplotlib.figure.Figure
        A cell is darker the larger its fraction of the true class. Of more than 60 classes, the 60
        with the most errors are drawn.

    Examples
    --------
    >>> from kernelmill.report import confusion_plot
    >>> figure = confusion_plot(["no", "yes"], [[40, 2], [5, 20]])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['40', '2', '5', '20']
    """
    if not is_confusion_matrix(classes, confusion):
        raise ArgumentError(
            "must be a square matrix of counts, not all zero, with a row and a column for each of "
            f"{len(classes)} classes, got {len(confusion)} rows",
            parameter="confusion",
        )
    shown = most_confused(confusion)
    n = len(shown)
    figure = new_figure(height=330)
    axes = figure.subplots()
    cells: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for i, true in enumerate(shown):
        total = sum(confusion[true]) or 1
        for j, guess in enumerate(shown):
            value = confusion[true][guess]
            if value:
                # The square root, so that rare errors are visible.
                level = math.ceil(N_LEVELS * (value / total) ** 0.5)
                cells.setdefault(("blue" if i == j else "orange", level), []).append((j, i))
            if n <= MAX_NUMBERED and (value or n <= 6):
                text = html.count(value) if n <= 4 else html.compact(value)
                small = 10.5 if n <= 6 else 8.5
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=small)
    for (colour, level), places in cells.items():
        opacity = 0.04 + (MAX_OPACITY - 0.04) * level / N_LEVELS
        axes.add_patch(
            PathPatch(
                _squares(places),
                facecolor=light(colour),
                edgecolor="none",
                alpha=opacity,
                in_layout=False,
            )
        )
    step = -(-n // 20)
    ticks = [k + 0.5 for k in range(0, n, step)]
    names = [shorten(classes[shown[k]], 12, keep_end=4) for k in range(0, n, step)]
    fontsize = 9.5 if n <= 12 else 8.0
    upright = n > 4 and max(map(len, names)) * n > 30
    axes.set_xticks(ticks, names, rotation=90 if upright else 0, fontsize=fontsize)
    axes.set_yticks(ticks, names, fontsize=fontsize)
    axes.set(xlim=(0, n), ylim=(n, 0), xlabel="predicted", ylabel="true")
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[["right", "top"]].set_visible(True)
    return figure


def _squares(places: list[tuple[int, int]]) -> Path:
    """One path of unit squares with these upper left corners."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path([(x + dx, y + dy) for x, y in places for dx, dy in corners], codes * len(places))


def calibration_bins(calibration: Calibration) -> list[tuple[float, float, int]]:
    """(predicted, observed, count) of the bins whose values are numbers."""
    bins = zip(calibration.predicted, calibration.observed, calibration.counts, strict=False)
    return sorted(each for each in bins if is_number(each[0]) and is_number(each[1]))


@drawing_style()
def calibration_plot(calibration: Calibration) -> Figure:
    """Plot the fraction of correct predictions against their probability, with the counts.

    Examples
    --------
    >>> from kernelmill.report import calibration_plot
    >>> from kernelmill.workflows.records import Calibration
    >>> figure = calibration_plot(Calibration([0.6, 0.9], [0.55, 0.93], [40, 160]))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['correct, %', 'rows']
    """
    bins = calibration_bins(calibration)
    if not bins:
        raise ArgumentError("must hold at least one bin, got none", parameter="calibration")
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
    above.set(xlim=ends, ylim=ends, ylabel="correct, %")
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
def predicted_plot(evaluation: Evaluation) -> Figure:
    """Plot predicted against actual targets of a regression.

    Examples
    --------
    >>> from kernelmill.report import predicted_plot
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation(
    ...     "regression", "wine.csv", 2, {"rmse": 0.1}, 0.01, actual=[5, 6], predicted=[5.1, 5.9])
    >>> predicted_plot(evaluation).axes[0].get_ylabel()
    'predicted'
    """
    pairs = finite_pairs(evaluation.actual or [], evaluation.predicted or [])
    return draw_against(pairs, "actual", "predicted")


@drawing_style()
def residuals_plot(evaluation: Evaluation) -> Figure:
    """Plot the residuals of a regression against the predictions.

    Examples
    --------
    >>> from kernelmill.report import residuals_plot
    >>> from kernelmill.workflows.records import Evaluation
    >>> evaluation = Evaluation(
    ...     "regression", "wine.csv", 2, {"rmse": 0.1}, 0.01, actual=[5, 6], predicted=[5.1, 5.9])
    >>> residuals_plot(evaluation).axes[0].get_ylabel()
    'actual \N{MINUS SIGN} predicted'
    """
    pairs = finite_pairs(evaluation.predicted or [], evaluation.actual or [])
    if not pairs:
        problem = "must hold actual and predicted targets, got none"
        raise ArgumentError(problem, parameter="evaluation")
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.axhline(0, color=light("ink"), linewidth=1, dashes=(4, 3), zorder=3)
    draw_points(axes, [(predicted, actual - predicted) for predicted, actual in pairs])
    axes.set(xlabel="predicted", ylabel="actual \N{MINUS SIGN} predicted")
    return figure


@drawing_style()
def coverage_plot(coverage: Coverage) -> Figure:
    """Plot the observed against the nominal coverage of intervals.

    Examples
    --------
    >>> from kernelmill.report import coverage_plot
    >>> from kernelmill.workflows.records import Coverage
    >>> coverage_plot(Coverage([0.5, 0.9], [0.56, 0.88])).axes[0].get_xlabel()
    'nominal coverage, %'
    """
    pairs = sorted(finite_pairs(coverage.nominal, coverage.observed))
    if not pairs:
        raise ArgumentError(
            "must hold at least one pair of fractions, got none", parameter="coverage"
        )
    figure = new_figure(height=310)
    axes = figure.subplots()
    axes.plot((0, 1), (0, 1), color=light("muted"), linewidth=1, dashes=(4, 3))
    axes.plot(*zip(*pairs, strict=True), color=light("blue"), marker="o")
    axes.set(
        xlim=(0, 1.02), ylim=(0, 1.02), xlabel="nominal coverage, %", ylabel="observed coverage, %"
    )
    axes.set_aspect("equal")
    format_axis(axes.xaxis, tick_percent)
    format_axis(axes.yaxis, tick_percent)
    return figure


MAX_MATRIX = 40  # classes of a matrix that is written out
MAX_MISTAKES = 30


def evaluation_panels(key: str, evaluation: Evaluation) -> list[Panel]:
    """The plots that the record has numbers for; `key` distinguishes the evaluations of a page."""
    panels = [
        _confusion(key, evaluation),
        _calibration(key, evaluation),
        *ranking_panels(key, evaluation),
        *_scatters(key, evaluation),
        _coverage(key, evaluation),
    ]
    return [panel for panel in panels if panel]


def class_table(evaluation: Evaluation) -> PageTable | None:
    """Return the number of rows, the recall and the precision of each class."""
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not is_confusion_matrix(classes, confusion):
        return None
    rows = []
    weights: Sequence[Sequence[float]] = evaluation.weighted_confusion or confusion
    for k, name in enumerate(classes):
        true, predicted = sum(weights[k]), sum(row[k] for row in weights)
        correct = weights[k][k]
        rows.append(
            [
                clean_text(name),
                html.count(sum(confusion[k])),
                html.percent(correct / true if true else None),
                html.percent(correct / predicted if predicted else None),
            ]
        )
    unit = "" if evaluation.weighted_confusion is None else "; recall and precision are weighted"
    return PageTable(["class", "rows", "recall", "precision"], rows, f"By class{unit}")


def _confusion(key: str, evaluation: Evaluation) -> Panel | None:
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not is_confusion_matrix(classes, confusion):
        return None
    n = len(classes)
    names = [clean_text(name) for name in classes]
    total = sum(map(sum, confusion))
    correct = sum(confusion[k][k] for k in range(n))
    mistakes = sorted(
        (
            (confusion[i][j], i, j)
            for i in range(n)
            for j in range(n)
            if i != j and confusion[i][j] > 0
        ),
        key=lambda mistake: (-mistake[0], mistake[1:]),
    )
    worst = ""
    if mistakes:
        times, i, j = mistakes[0]
        pair = f"{html.quote(names[i])} predicted as {html.quote(names[j])}"
        often = "once" if times == 1 else f"{html.count(times)} times"
        worst = f" Most frequent error: {pair}, {often}."
    if n <= MAX_MATRIX:
        short = [shorten(name, 24, keep_end=8) for name in names]  # in full in the table of classes
        table = PageTable(
            ["true \\ predicted", *short],
            [[short[i], *map(html.count, confusion[i])] for i in range(n)],
            "Numbers of rows",
        )
    else:
        table = PageTable(
            ["true", "predicted", "rows"],
            [[names[i], names[j], html.count(times)] for times, i, j in mistakes[:MAX_MISTAKES]],
            "The most frequent errors",
            2,
        )
    drawn = ""
    if n > MAX_CLASSES:
        drawn = f" Only the {len(most_confused(confusion))} classes with the most errors are shown."
    if evaluation.weighted_confusion is not None:
        drawn += " Counts are unweighted numbers of rows."
    return Panel(
        f"{key}-confusion",
        "Confusion matrix",
        confusion_plot(names, confusion),
        f"Heat map of {html.count(n, 'class', 'classes')}: {html.count(correct)} of "
        f"{html.count(total, 'row')} on the diagonal.{worst}",
        "One row per true class, one column per predicted class. Correct predictions are blue, "
        "errors orange; the darker a cell, the larger its fraction of the true class."
        f"{drawn}{worst}",
        table,
    )


def judge_calibration(bins: list[tuple[float, float, int]]) -> str:
    """Return a sentence about bins (probability, share of correct predictions, number of rows).

    A bin is miscalibrated if it differs by two percentage points and by more than chance: 2.6
    standard errors, which a calibrated bin exceeds with probability 1 %.
    """
    off: dict[str, list[float]] = {"overconfident": [], "underconfident": []}
    for sure, correct, rows in bins:
        chance = 2.6 * math.sqrt(max(sure * (1 - sure), 0.0) / max(rows, 1))
        if abs(sure - correct) > max(0.02, chance):
            off["overconfident" if sure > correct else "underconfident"].append(sure)
    clauses = []
    for word, places in off.items():
        if places:
            ends = html.percent_range(min(places), max(places)) if len(places) > 1 else ""
            clauses.append(f"{word} at probabilities of {ends or html.percent(places[0])}")
    if not clauses:
        return "no bin deviates more than chance would explain"
    return f"the model is {' and '.join(clauses)}"


def _calibration(key: str, evaluation: Evaluation) -> Panel | None:
    bins = calibration_bins(evaluation.calibration) if evaluation.calibration else []
    if not evaluation.calibration or not bins:
        return None
    total = sum(rows for _, _, rows in bins) or 1
    gap = sum(rows * abs(sure - correct) for sure, correct, rows in bins) / total
    return Panel(
        f"{key}-calibration",
        "Calibration",
        calibration_plot(evaluation.calibration),
        "Line plot of the fraction of correct predictions against the predicted probability, in "
        f"{html.count(len(bins), 'bin')}; the mean distance from the diagonal is "
        f"{html.percent(gap)}.",
        "On the dashed line, predicted probabilities equal observed frequencies; below it, the "
        f"model is overconfident. The mean difference is {html.percent(gap)}: "
        f"{judge_calibration(bins)}.",
        PageTable(
            ["mean probability", "correct", "rows"],
            [
                [html.percent(sure), html.percent(correct), html.count(rows)]
                for sure, correct, rows in bins
            ],
            "The bins",
            0,
        ),
    )


def _scatters(key: str, evaluation: Evaluation) -> list[Panel]:
    pairs = finite_pairs(evaluation.predicted or [], evaluation.actual or [])
    if not pairs:
        return []
    rows = []
    for group in group_pairs(pairs):
        off = [actual - predicted for predicted, actual in group]
        mean = sum(off) / len(off)
        rms = math.sqrt(sum(each * each for each in off) / len(off))
        rows.append(
            [
                f"{html.number(group[0][0])} to {html.number(group[-1][0])}",
                html.count(len(group)),
                html.number(sum(actual for _, actual in group) / len(group)),
                html.number(mean, 3),
                html.number(rms, 3),
            ]
        )
    table = PageTable(
        ["predicted", "rows", "mean actual", "mean residual", "RMS residual"],
        rows,
        "The points, grouped by prediction",
    )
    some = html.count(len(pairs), "row")
    if len(pairs) < evaluation.n_rows:
        some = f"{html.count(len(pairs))} of {html.count(evaluation.n_rows)} rows"
    return [
        Panel(
            f"{key}-predicted",
            "Predicted against actual",
            predicted_plot(evaluation),
            f"Scatter plot of predicted against actual targets of {some}.",
            f"Each point is one of {some}. On the dashed line, predictions equal targets.",
            table,
        ),
        Panel(
            f"{key}-residuals",
            "Residuals",
            residuals_plot(evaluation),
            f"Scatter plot of residuals against predictions of {some}.",
            "The residuals of a good model form a level band around the dashed line. A bend "
            "shows a pattern that the model misses; a funnel shows that the noise varies.",
            table,
        ),
    ]


def _coverage(key: str, evaluation: Evaluation) -> Panel | None:
    coverage = evaluation.coverage
    pairs = sorted(finite_pairs(coverage.nominal, coverage.observed)) if coverage else []
    if not coverage or not pairs:
        return None
    nominal, observed = min(pairs, key=lambda pair: abs(pair[0] - 0.9))
    result = f"{html.percent(observed)} of the targets lie in the {html.percent(nominal)} intervals"
    return Panel(
        f"{key}-coverage",
        "Coverage of prediction intervals",
        coverage_plot(coverage),
        "Line plot of the observed against the nominal coverage of prediction intervals; "
        f"{result}.",
        "Below the dashed line, the intervals are too narrow; above it, they are too wide. "
        f"Here, {result}.",
        PageTable(
            ["nominal coverage", "observed coverage"],
            [[html.percent(nominal), html.percent(observed)] for nominal, observed in pairs],
            "Intervals: predicted mean ± a multiple of the standard deviation",
            0,
        ),
    )
