"""What was found, in a sentence that needs no other."""

from __future__ import annotations

import math
from pathlib import PurePath

from kernelmill.formatting import clean_text, html, is_number, join_words
from kernelmill.report.confusion_figure import usable_confusion
from kernelmill.workflows.records import ComparedModel, Comparison, Evaluation, FitSummary

__all__ = [
    "comparison_finding",
    "evaluation_finding",
    "file_name",
    "fit_finding",
    "kernel_name",
    "majority_error",
    "mean_rmse",
]


def file_name(source: str) -> str:
    """The last part of a path, as a name in a sentence; several files keep their list."""
    source = clean_text(source)
    return source if "," in source else PurePath(source).name or source


def majority_error(evaluation: Evaluation) -> tuple[str, float] | None:
    """The most frequent class of the rows, and the error of answering nothing else."""
    classes, confusion = evaluation.classes, evaluation.confusion
    if not classes or not confusion or not usable_confusion(classes, confusion):
        return None
    totals = [sum(row) for row in confusion]
    most = max(range(len(totals)), key=lambda k: totals[k])
    return classes[most], 1 - totals[most] / sum(totals)


def mean_rmse(evaluation: Evaluation) -> float | None:
    """The root mean squared error of always answering the mean of these targets."""
    spread = evaluation.metrics.get("target_std")
    if is_number(spread):
        return spread
    rmse, r2 = evaluation.metrics.get("rmse"), evaluation.metrics.get("r2")
    if rmse is None or r2 is None or not is_number(rmse) or not is_number(r2) or r2 >= 1:
        return None
    return rmse / math.sqrt(1 - r2)


def evaluation_finding(evaluation: Evaluation, rows: str = "rows") -> str:
    """The error on these rows, and that of an answer that looks at nothing.

    Parameters
    ----------
    evaluation : Evaluation
        Of a classification or a regression.
    rows : str
        What they are, such as "held-out rows".
    """
    metrics = evaluation.metrics
    some = f"{html.count(evaluation.n_rows)} {rows}"
    if evaluation.n_rows == 1:
        some = some.replace("rows", "row", 1)
    if evaluation.task == "classification":
        error = metrics.get("error")
        if not is_number(error):
            return f"The model was tried on {some}; its error is not known."
        sure = html.percent_range(metrics.get("error_low"), metrics.get("error_high"))
        sure = f" ({sure})" if sure else ""
        text = f"The model gets {html.percent(error)} of {some} wrong{sure}"
        baseline = majority_error(evaluation)
        if baseline:
            name, other = baseline
            text += f"; always answering {html.quote(name)} would get {html.percent(other)} wrong"
        return text + "."
    rmse = metrics.get("rmse")
    if not is_number(rmse):
        return f"The model was tried on {some}; its error is not known."
    text = f"Predictions for {some} are off by {html.number(rmse, 3)} (root mean square)"
    other_rmse = mean_rmse(evaluation)
    if other_rmse is not None:
        text += f"; always answering the mean would be off by {html.number(other_rmse, 3)}"
    return text + "."


def fit_finding(fit: FitSummary) -> str:
    """What was fitted, and how long it took."""
    times = [time for time in fit.seconds.values() if is_number(time)]
    took = f" in {html.duration(sum(times))}" if times else ""
    return (
        f"The model is a kernel machine (kernel: {kernel_name(fit)}) on "
        f"{html.count(fit.n_components)} {clean_text(fit.map_name)} features, fitted to "
        f"{html.count(fit.n_rows, 'row')}{took}."
    )


def kernel_name(fit: FitSummary) -> str:
    """The kernel without the empty brackets of its constructor: "Gaussian", "Matern(nu=2.5)"."""
    return clean_text(fit.kernel).removesuffix("()")


def comparison_finding(comparison: Comparison) -> str:
    """The best model on features beside the linear and the exact one."""
    known = [model for model in comparison.models if is_number(model.error)]
    if not known:
        return "No contender of the comparison has an error that is known."

    def told(model: ComparedModel, verb: str) -> str:
        if comparison.error_name == "error":
            return f"{verb} {html.percent(model.error)} wrong"
        verb = verb.replace("gets", "is").replace("get", "be")
        return f"{verb} off by {html.number(model.error, 3)}"

    def best(family: str) -> ComparedModel | None:
        members = [model for model in known if model.family == family]
        return min(members, key=lambda model: model.error) if members else None

    features, linear, exact = best("features"), best("linear"), best("exact")
    clauses = []
    if features:
        name = (
            f"{clean_text(features.name)} with {html.count(features.n_components or 0, 'feature')}"
        )
        clauses.append(f"{name} {told(features, 'gets')}")
    if linear:
        clauses.append(f"the linear model {told(linear, 'gets')}")
    if exact:
        subset = ""
        if exact.n_train < comparison.n_train:
            subset = (
                f" (fitted to {html.count(exact.n_train)} of {html.count(comparison.n_train)} rows)"
            )
        clauses.append(f"the exact kernel{subset} {told(exact, 'gets')}")
    if not clauses:
        least = min(known, key=lambda model: model.error)
        clauses.append(f"{clean_text(least.name)} {told(least, 'gets')}")
    return f"On {html.count(comparison.n_test, 'row')}, {join_words(clauses)}."
