"""The key figures at the top of the page."""

from __future__ import annotations

from dataclasses import dataclass

from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.findings import majority_error, mean_rmse
from kernelmill.workflows.records import Comparison, Evaluation, FitSummary

__all__ = ["Tile", "comparison_tiles", "evaluation_tiles", "fit_tiles", "metric_rows"]

_NAMES = {
    "error": "error",
    "error_low": "error, lower end (95 %)",
    "error_high": "error, upper end (95 %)",
    "baseline_error": "error of always the most frequent class",
    "balanced_error": "balanced error",
    "log_loss": "log loss",
    "auc": "area under the ROC curve",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
    "target_std": "standard deviation of the targets",
}


@dataclass(frozen=True)
class Tile:
    """A figure, its name, and what to hold it against."""

    name: str
    value: str
    note: str = ""


def metric_rows(evaluation: Evaluation) -> list[tuple[str, str]]:
    """All metrics, in words."""
    return [
        (
            _NAMES.get(name, clean_text(name).replace("_", " ")),
            (html.percent if "error" in name else html.number)(value),
        )
        for name, value in evaluation.metrics.items()
    ]


def evaluation_tiles(evaluation: Evaluation) -> list[Tile]:
    """The error and its companions."""
    metrics = evaluation.metrics
    tiles = []
    if evaluation.task == "classification":
        sure = html.percent_range(metrics.get("error_low"), metrics.get("error_high"))
        sure = f"{sure} (95\N{NO-BREAK SPACE}%)" if sure else ""
        tiles.append(Tile("Error", html.percent(metrics.get("error")), sure))
        baseline = majority_error(evaluation)
        if baseline:
            tiles.append(
                Tile("Without a model", html.percent(baseline[1]), "always the same answer")
            )
        tiles += [
            Tile(name, form(metrics[key]), note)
            for key, name, form, note in (
                ("balanced_error", "Balanced error", html.percent, "mean over the classes"),
                ("auc", "AUC", html.number, "0.5 is chance, 1 perfect"),
                ("log_loss", "Log loss", html.number, "of the probabilities"),
            )
            if is_number(metrics.get(key))
        ]
        return tiles
    tiles.append(Tile("Typical error", html.number(metrics.get("rmse"), 3), "root mean square"))
    other = mean_rmse(evaluation)
    if other is not None:
        tiles.append(Tile("Without a model", html.number(other, 3), "always the mean"))
    tiles += [
        Tile(name, html.number(metrics[key], 3), note)
        for key, name, note in (
            ("mae", "Mean absolute error", ""),
            ("r2", "R²", "share of the variance explained"),
        )
        if is_number(metrics.get(key))
    ]
    return tiles


def fit_tiles(fit: FitSummary) -> list[Tile]:
    """What the model cost."""
    times = [time for time in fit.seconds.values() if is_number(time)]
    rows = "row" if fit.n_rows == 1 else "rows"
    held_out = f"{html.count(fit.n_held_out)} held out" if fit.n_held_out else "none held out"
    tiles = [
        Tile("Trained on", html.count(fit.n_rows), f"{rows}, {held_out}"),
        Tile(
            "Features",
            html.count(fit.n_components),
            f"of {html.count(fit.n_inputs, 'input')}",
        ),
    ]
    if times:
        tiles.append(Tile("Training time", html.duration(sum(times)), "with reading and tuning"))
    if fit.peak_memory is not None:
        tiles.append(Tile("Training memory", html.size(fit.peak_memory), "peak of the process"))
    return tiles


def comparison_tiles(comparison: Comparison) -> list[Tile]:
    """The best of each family."""
    form = html.percent if comparison.error_name == "error" else html.number
    tiles = []
    for family, name in (
        ("features", "Features"),
        ("linear", "Linear model"),
        ("exact", "Exact kernel"),
    ):
        members = [m for m in comparison.models if m.family == family and is_number(m.error)]
        if members:
            best = min(members, key=lambda model: model.error)
            with_features = f"{html.count(best.n_components)}, " if family == "features" else ""
            note = f"{with_features}fitted in {html.duration(best.fit_seconds)}"
            tiles.append(Tile(f"{name}: {comparison.error_name}", form(best.error), note))
    return tiles
