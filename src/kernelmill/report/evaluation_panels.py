"""The plots of how good predictions are."""

from __future__ import annotations

import math

from kernelmill.formatting import clean_text, html, shorten
from kernelmill.report.confusion_figure import (
    MAX_CLASSES,
    confusion_figure,
    most_confused,
    usable_confusion,
)
from kernelmill.report.evaluation_figures import (
    calibration_bins,
    calibration_figure,
    coverage_figure,
    predicted_figure,
    residuals_figure,
)
from kernelmill.report.kernel_check_figure import finite_pairs
from kernelmill.report.panel import Panel, Table, grouped_pairs
from kernelmill.workflows.records import Evaluation

__all__ = ["class_table", "evaluation_panels"]

MAX_MATRIX = 40  # classes whose whole matrix is written out
MAX_MISTAKES = 30


def evaluation_panels(key: str, evaluation: Evaluation) -> list[Panel]:
    """The plots that the record has the numbers for; `key` tells evaluations of a page apart."""
    panels = [
        _confusion(key, evaluation),
        _calibration(key, evaluation),
        *_scatters(key, evaluation),
        _coverage(key, evaluation),
    ]
    return [panel for panel in panels if panel]


def class_table(evaluation: Evaluation) -> Table | None:
    """The rows of each class, the share of them that is found, and how often its name is right."""
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not usable_confusion(classes, confusion):
        return None
    rows = []
    for k, name in enumerate(classes):
        true, named = sum(confusion[k]), sum(row[k] for row in confusion)
        right = confusion[k][k]
        rows.append(
            [
                clean_text(name),
                html.count(true),
                html.percent(right / true if true else None),
                html.percent(right / named if named else None),
            ]
        )
    return Table(["class", "rows", "found", "right when named"], rows, "Class by class")


def _confusion(key: str, evaluation: Evaluation) -> Panel | None:
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not usable_confusion(classes, confusion):
        return None
    n = len(classes)
    names = [clean_text(name) for name in classes]
    total = sum(map(sum, confusion))
    right = sum(confusion[k][k] for k in range(n))
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
        pair = f"{html.quote(names[i])} taken for {html.quote(names[j])}"
        often = "once" if times == 1 else f"{html.count(times)} times"
        worst = f" The most frequent mistake: {pair}, {often}."
    if n <= MAX_MATRIX:
        short = [shorten(name, 24, keep_end=8) for name in names]  # in full: class by class
        table = Table(
            ["true \\ predicted", *short],
            [[short[i], *map(html.count, confusion[i])] for i in range(n)],
            "Numbers of rows",
        )
    else:
        table = Table(
            ["true", "predicted", "rows"],
            [[names[i], names[j], html.count(times)] for times, i, j in mistakes[:MAX_MISTAKES]],
            "The most frequent mistakes",
            2,
        )
    drawn = ""
    if n > MAX_CLASSES:
        drawn = f" The {len(most_confused(confusion))} classes with the most mistakes are drawn."
    return Panel(
        f"{key}-confusion",
        "Confusion matrix",
        confusion_figure(names, confusion),
        f"Heat map of {html.count(n, 'class', 'classes')}: {html.count(right)} of "
        f"{html.count(total, 'row')} on the diagonal.{worst}",
        "A row for each true class, a column for each predicted one: right answers are blue, wrong "
        f"ones orange, stronger where they are a larger share of the row.{drawn}{worst}",
        table,
    )


def _calibration(key: str, evaluation: Evaluation) -> Panel | None:
    bins = calibration_bins(evaluation.calibration) if evaluation.calibration else []
    if not evaluation.calibration or not bins:
        return None
    total = sum(rows for _, _, rows in bins) or 1
    gap = sum(rows * abs(sure - right) for sure, right, rows in bins) / total
    leaning = sum(rows * (sure - right) for sure, right, rows in bins) / total
    if gap < 0.02:
        verdict = "the probabilities can be taken at their word"
    elif abs(leaning) < 0.5 * gap:
        verdict = "it is too sure in some bins and not sure enough in others"
    else:
        verdict = "it is too sure" if leaning > 0 else "it is not sure enough"
    return Panel(
        f"{key}-calibration",
        "Calibration",
        calibration_figure(evaluation.calibration),
        f"Line plot of how often predictions are right against their probability, in "
        f"{html.count(len(bins), 'bin')}; the mean distance from the diagonal is "
        f"{html.percent(gap)}.",
        "On the dashed line, predictions are right as often as the model says; below it, it is too "
        f"sure. On average it is {html.percent(gap)} off: {verdict}.",
        Table(
            ["mean probability", "right", "rows"],
            [
                [html.percent(sure), html.percent(right), html.count(rows)]
                for sure, right, rows in bins
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
    for group in grouped_pairs(pairs):
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
    table = Table(
        ["predicted", "rows", "mean actual", "mean residual", "RMS residual"],
        rows,
        "The points, in groups of the prediction",
    )
    some = html.count(len(pairs), "row")
    if len(pairs) < evaluation.n_rows:
        some = f"{html.count(len(pairs))} of {html.count(evaluation.n_rows)} rows"
    return [
        Panel(
            f"{key}-predicted",
            "Predicted against actual",
            predicted_figure(evaluation),
            f"Scatter plot of predicted against actual targets of {some}.",
            f"Each point is one of {some}. On the dashed line the prediction is the target.",
            table,
        ),
        Panel(
            f"{key}-residuals",
            "Residuals",
            residuals_figure(evaluation),
            f"Scatter plot of what predictions are off by against the predictions, of {some}.",
            "A good model leaves a level band around the dashed line; a bend is a pattern it "
            "missed, a funnel says that some predictions are less certain than others.",
            table,
        ),
    ]


def _coverage(key: str, evaluation: Evaluation) -> Panel | None:
    coverage = evaluation.coverage
    pairs = sorted(finite_pairs(coverage.nominal, coverage.observed)) if coverage else []
    if not coverage or not pairs:
        return None
    nominal, observed = min(pairs, key=lambda pair: abs(pair[0] - 0.9))
    found = (
        f"{html.percent(observed)} of the targets lie inside the {html.percent(nominal)} intervals"
    )
    return Panel(
        f"{key}-coverage",
        "Coverage of intervals",
        coverage_figure(coverage),
        f"Line plot of the share of targets inside intervals against the nominal share; {found}.",
        f"Below the dashed line, intervals are too narrow; above it, too wide. Here {found}.",
        Table(
            ["should be inside", "are inside"],
            [[html.percent(nominal), html.percent(observed)] for nominal, observed in pairs],
            "Intervals of mean ± a multiple of the standard deviation",
            0,
        ),
    )
