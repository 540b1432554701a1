"""Findings in sentences, and the key numbers at the top of the page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from kernelmill.formatting import clean_text, html, is_number, join_words
from kernelmill.report.plots.evaluation import is_confusion_matrix
from kernelmill.workflows.records import (
    DEFAULT_FIT,
    ComparedModel,
    Comparison,
    Evaluation,
    FitSummary,
)

__all__ = [
    "Tile",
    "columns_finding",
    "comparison_finding",
    "comparison_tiles",
    "evaluation_finding",
    "evaluation_tiles",
    "file_name",
    "fit_finding",
    "fit_tiles",
    "kernel_name",
    "metric_rows",
]


def file_name(source: str) -> str:
    """Return the last part of a path, for a sentence; a list of files stays as it is."""
    source = clean_text(source)
    return source if "," in source else PurePath(source).name or source


def majority_error(evaluation: Evaluation) -> tuple[str, float] | None:
    """Return the most frequent class, and the error of always predicting it.

    The confusion matrix counts rows. If the error is one of weighted rows, the class is not known.
    """
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not is_confusion_matrix(classes, confusion):
        return None
    totals = [sum(row) for row in confusion]
    most = max(range(len(totals)), key=lambda k: totals[k])
    name, error = html.quote(classes[most]), 1 - totals[most] / sum(totals)
    weighted = evaluation.metrics.get("baseline_error")
    if is_number(weighted) and not math.isclose(weighted, error, abs_tol=1e-9):
        return "the most frequent class", weighted
    return name, error


def mean_rmse(evaluation: Evaluation) -> float | None:
    """Return the root mean squared error of always predicting the mean of these targets."""
    spread = evaluation.metrics.get("target_std")
    if is_number(spread):
        return spread
    rmse, r2 = evaluation.metrics.get("rmse"), evaluation.metrics.get("r2")
    if not is_number(rmse) or not is_number(r2) or r2 >= 1:
        return None
    return rmse / math.sqrt(1 - r2)


def evaluation_finding(evaluation: Evaluation, rows: str = "rows") -> str:
    """Return the error on these rows, that of a constant prediction, and the verdict.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation of a classifier or a regressor.
    rows : str
        A name for the rows, such as "held-out rows".
    """
    metrics = evaluation.metrics
    some = f"{html.count(evaluation.n_rows)} {rows}"
    if evaluation.n_rows == 1:
        some = some.replace("rows", "row", 1)
    if evaluation.task == "classification":
        error = metrics.get("error")
        if not is_number(error):
            return f"The error of the model on {some} is not known."
        sure = html.percent_range(metrics.get("error_low"), metrics.get("error_high"))
        sure = f" ({sure})" if sure else ""
        text = f"The model misclassifies {html.percent(error)} of {some}{sure}"
        baseline = majority_error(evaluation)
        if baseline:
            name, other = baseline
            text += f"; always predicting {name} would misclassify {html.percent(other)}"
        return f"{text}.{_verdict(evaluation)}"
    rmse = metrics.get("rmse")
    if not is_number(rmse):
        return f"The error of the model on {some} is not known."
    text = f"The root mean squared error on {some} is {html.number(rmse, 3)}"
    other_rmse = mean_rmse(evaluation)
    if other_rmse is not None:
        text += f"; always predicting the mean would give {html.number(other_rmse, 3)}"
    return f"{text}.{_verdict(evaluation)}"


def _verdict(evaluation: Evaluation) -> str:
    """Return the verdict as a sentence with its remedies, but without their settings."""
    verdict = evaluation.verdict
    if verdict is None:
        return ""
    remedies = ", or ".join(remedy.action for remedy in verdict.remedies)
    return f" {verdict.problem}; {remedies}." if remedies else f" {verdict.problem}."


def fit_finding(fit: FitSummary) -> str:
    """Return a sentence about the model and its training time."""
    times = [time for time in fit.seconds.values() if is_number(time)]
    took = f" in {html.duration(sum(times))}" if times else ""
    return (
        f"The model is a kernel machine (kernel: {kernel_name(fit)}) on "
        f"{html.count(fit.n_components)} {clean_text(fit.map_name)} features, trained on "
        f"{html.count(fit.n_rows, 'row')}{took}."
    )


def columns_finding(fit: FitSummary) -> str:
    """Return a sentence about the most relevant columns; "" if all have the same length scale."""
    known = [each for each in fit.column_relevance if is_number(each.relevance)]
    first = [each for each in known[:3] if each.relevance > 0]
    if not first:
        return ""
    names = [html.quote_column(each.name) for each in first]
    counts = "counts" if len(names) == 1 else "count"
    of_all = len(known) > 3
    where = "predictions" if fit.ranks_by_predictions else "kernel distances"
    if of_all:
        return f"Of {html.count(len(known))} columns, {join_words(names)} {counts} most in {where}."
    return f"{_capitalize(join_words(names))} {counts} most in {where}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def kernel_name(fit: FitSummary) -> str:
    """Return the kernel without empty parentheses: "Gaussian", "Matern(nu=2.5)"."""
    return clean_text(fit.kernel).removesuffix("()")


def comparison_finding(comparison: Comparison) -> str:
    """Return the errors of the best models of each family in a sentence."""
    known = [model for model in comparison.models if is_number(model.error)]
    if not known:
        return "No model in the comparison has a known error."

    form = html.percent if comparison.error_name == "error" else partial(html.number, digits=3)

    def best(family: str) -> ComparedModel | None:
        members = [m for m in known if m.family == family and m.name != DEFAULT_FIT]
        return min(members, key=lambda model: model.error) if members else None

    def subset(model: ComparedModel) -> str:
        if model.n_train >= comparison.n_train:
            return ""
        return f" (trained on {html.count(model.n_train)} of {html.count(comparison.n_train)} rows)"

    features, linear, exact = best("features"), best("linear"), best("exact")
    trees = best("trees")
    clauses = [
        f"{form(model.error)} for fit with its default settings"
        for model in known
        if model.name == DEFAULT_FIT
    ]
    if features:
        name = (
            f"{clean_text(features.name)} with {html.count(features.n_components or 0, 'feature')}"
        )
        clauses.append(f"{form(features.error)} for {name}")
    if linear:
        clauses.append(f"{form(linear.error)} for the linear model")
    if trees:
        clauses.append(f"{form(trees.error)} for the {clean_text(trees.name)}{subset(trees)}")
    if exact:
        clauses.append(f"{form(exact.error)} for the exact kernel{subset(exact)}")
    if not clauses:
        least = min(known, key=lambda model: model.error)
        clauses.append(f"{form(least.error)} for {clean_text(least.name)}")
    name = "error" if comparison.error_name == "error" else "root mean squared error"
    return f"The {name} on {html.count(comparison.n_test, 'row')} is {join_words(clauses)}."


_NAMES = {
    "error": "error",
    "error_low": "error, lower limit (95 %)",
    "error_high": "error, upper limit (95 %)",
    "baseline_error": "error of always predicting the most frequent class",
    "balanced_error": "balanced error",
    "log_loss": "log loss",
    "baseline_log_loss": "log loss of always predicting the shares of the classes",
    "auc": "area under the ROC curve",
    "auc_low": "area under the ROC curve, lower limit (95 %)",
    "auc_high": "area under the ROC curve, upper limit (95 %)",
    "average_precision": "average precision",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
    "target_std": "standard deviation of the targets",
}


@dataclass(frozen=True)
class Tile:
    """A number, its name, and a note to compare it with."""

    name: str
    value: str
    note: str = ""


def metric_rows(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return the names and values of all metrics."""
    return [
        (
            _NAMES.get(name, clean_text(name).replace("_", " ")),
            (html.percent if "error" in name else html.number)(value),
        )
        for name, value in evaluation.metrics.items()
    ]


def evaluation_tiles(evaluation: Evaluation) -> list[Tile]:
    """Return the error, that of a constant prediction, and other metrics."""
    metrics = evaluation.metrics
    tiles = []
    if evaluation.task == "classification":
        sure = html.percent_range(metrics.get("error_low"), metrics.get("error_high"))
        sure = f"{sure} (95\N{NO-BREAK SPACE}%)" if sure else ""
        tiles.append(Tile("Error", html.percent(metrics.get("error")), sure))
        baseline = majority_error(evaluation)
        if baseline:
            tiles.append(Tile("Without a model", html.percent(baseline[1]), "most frequent class"))
        tiles += [
            Tile(name, form(metrics[key]), note)
            for key, name, form, note in (
                ("balanced_error", "Balanced error", html.percent, "mean over the classes"),
                ("auc", "AUC", html.number, "0.5 is chance, 1 is perfect"),
                ("log_loss", "Log loss", html.number, "of the probabilities"),
            )
            if is_number(metrics.get(key))
        ]
        return tiles
    tiles.append(Tile("RMSE", html.number(metrics.get("rmse"), 3), "root mean squared error"))
    other = mean_rmse(evaluation)
    if other is not None:
        tiles.append(Tile("Without a model", html.number(other, 3), "always predicting the mean"))
    tiles += [
        Tile(name, html.number(metrics[key], 3), note)
        for key, name, note in (
            ("mae", "Mean absolute error", ""),
            ("r2", "R²", "fraction of explained variance"),
        )
        if is_number(metrics.get(key))
    ]
    return tiles


def fit_tiles(fit: FitSummary) -> list[Tile]:
    """Return the size, time and memory of the fit."""
    times = [time for time in fit.seconds.values() if is_number(time)]
    rows = "row" if fit.n_rows == 1 else "rows"
    held_out = f"{html.count(fit.n_held_out)} held out" if fit.n_held_out else "none held out"
    tiles = [
        Tile("Training set", html.count(fit.n_rows), f"{rows}, {held_out}"),
        Tile(
            "Features",
            html.count(fit.n_components),
            f"of {html.count(fit.n_inputs, 'input')}",
        ),
    ]
    if times:
        tiles.append(
            Tile("Training time", html.duration(sum(times)), "includes reading and tuning")
        )
    if fit.peak_memory is not None:
        tiles.append(
            Tile("Training memory", html.size(fit.peak_memory), "peak memory of the process")
        )
    return tiles


def comparison_tiles(comparison: Comparison) -> list[Tile]:
    """Return the best of each family."""
    form = html.percent if comparison.error_name == "error" else html.number
    tiles = []
    for family, name in (
        (DEFAULT_FIT, "Fit with its default settings"),
        ("features", "Features"),
        ("linear", "Linear model"),
        ("trees", "Trees"),
        ("exact", "Exact kernel"),
    ):
        members = [
            model
            for model in comparison.models
            if (model.name if model.name == DEFAULT_FIT else model.family) == family
            and is_number(model.error)
        ]
        if members:
            best = min(members, key=lambda model: model.error)
            with_features = f"{html.count(best.n_components)}, " if best.n_components else ""
            note = f"{with_features}fitted in {html.duration(best.fit_seconds)}"
            tiles.append(Tile(f"{name}: {comparison.error_name}", form(best.error), note))
    return tiles
