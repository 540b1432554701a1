"""Results as JSON lines, their errors, and the summary of all."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

OURS, REFERENCE = "kernelmill", "hgb"


@dataclass(frozen=True)
class Result:
    """One model on one split of one table.

    The error is the root mean squared error, or the share of rows that are misclassified.
    `tuning_share` is the share of the time of a fit that tuning took, where the model says so.
    """

    table: str
    task: str
    split: int
    model: str
    error: float
    log_loss: float | None
    seconds: float
    cpu_seconds: float
    predict_seconds: float
    n_train: int
    n_test: int
    tuning_share: float | None = None


def read_results(paths: Iterable[Path]) -> list[Result]:
    """Read the results of files that exist; of several for one split the last counts."""
    names = {field.name for field in fields(Result)}
    found: dict[tuple[str, int, str], Result] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            record = json.loads(line)
            result = Result(**{key: record[key] for key in names & record.keys()})
            found[result.table, result.split, result.model] = result
    return list(found.values())


def append_result(path: Path, result: Result) -> None:
    """Add a result to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def regression_error(predictions: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((predictions - y) ** 2)))


def classification_error(predictions: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of rows that are misclassified."""
    return float(np.mean(predictions != y))


def log_loss(probabilities: NDArray[Any], classes: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the mean of −log p of the true class; p is at least the float64 epsilon.

    A class without training rows has no column, so that its p is that epsilon.
    """
    columns = {label: i for i, label in enumerate(classes.tolist())}
    chosen = np.array([columns.get(label, -1) for label in y.tolist()])
    p = np.where(chosen >= 0, probabilities[np.arange(len(y)), chosen], 0.0)
    return float(-np.mean(np.log(np.maximum(p, np.finfo(np.float64).eps))))


def error_ratio(results: Sequence[Result], table: str, model: str, other: str) -> float | None:
    """Return the mean error of a model over that of another, on the splits that both have.

    Shares of misclassified rows count as at least half a row of all the test rows, so that the
    ratio exists where a model is always right.
    """
    mine, others = _by_split(results, table, model), _by_split(results, table, other)
    common = sorted(mine.keys() & others.keys())
    if not common:
        return None
    floor = 0.0
    if mine[common[0]].task == "classification":
        floor = 0.5 / sum(mine[split].n_test for split in common)
    error, reference = (
        max(float(np.mean([found[split].error for split in common])), floor)
        for found in (mine, others)
    )
    return error / reference


def with_fewer_rows(results: Sequence[Result], model: str) -> list[Result]:
    """Return the results of the tables where a model was fitted to fewer rows than the others."""
    rows = {r.table: r.n_train for r in results if r.model == model}
    fewer = {r.table for r in results if r.table in rows and r.n_train > rows[r.table]}
    return [r for r in results if r.table in fewer]


def describe_ratios(results: Sequence[Result], model: str, other: str) -> str | None:
    """Compare a model with another in a sentence: mean ratio, best and worst, wins and losses."""
    ratios = _ratios(results, model, other)
    if not ratios:
        return None
    best, worst = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    wins, losses = (sum(r < 1 for r in ratios.values()), sum(r > 1 for r in ratios.values()))
    text = (
        f"{model} / {other}: geometric mean {geometric_mean(ratios.values()):.3f}, "
        f"median {median(ratios.values()):.3f} over {len(ratios)} tables, "
        f"best {ratios[best]:.2f} ({best}), worst {ratios[worst]:.2f} ({worst}), "
        f"{wins} wins, {losses} losses"
    )
    behind = sorted((name for name in ratios if ratios[name] > 1), key=lambda name: -ratios[name])
    if behind:
        text += ": " + ", ".join(f"{name} {ratios[name]:.2f}" for name in behind)
    return text


def _ratios(results: Sequence[Result], model: str, other: str) -> dict[str, float]:
    found = {name: error_ratio(results, name, model, other) for name in _tables(results)}
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def markdown_errors(results: Sequence[Result], models: Sequence[str]) -> str:
    """Return a table of mean errors, of classifiers in percent, and ratios to the reference."""
    compared = [model for model in models if model != REFERENCE]
    header = ["table", "rows", *models, *(f"{model} / {REFERENCE}" for model in compared)]
    rows = []
    for name in _tables(results):
        n_train = max(r.n_train for r in results if r.table == name)
        row = [name, f"{n_train:,}"]
        for model in models:
            found = list(_by_split(results, name, model).values())
            row.append(_describe_error(found))
        for model in compared:
            ratio = error_ratio(results, name, model, REFERENCE)
            row.append("-" if ratio is None else f"{ratio:.2f}")
        rows.append(row)
    for name, mean in (("geometric mean", geometric_mean), ("median", median)):
        ratios = [_ratios(results, model, REFERENCE).values() for model in compared]
        means = [f"{mean(each):.3f}" if each else "-" for each in ratios]
        rows.append([name, "", *("" for _ in models), *means])
    return _markdown(header, rows)


def markdown_times(results: Sequence[Result], models: Sequence[str]) -> str:
    """Return a table of the mean CPU seconds of a fit."""
    rows = []
    for name in _tables(results):
        row = [name]
        for model in models:
            found = _by_split(results, name, model).values()
            row.append(f"{np.mean([r.cpu_seconds for r in found]):.1f}" if found else "-")
        rows.append(row)
    return _markdown(["table", *models], rows)


def _describe_error(found: Sequence[Result]) -> str:
    if not found:
        return "-"
    mean = float(np.mean([r.error for r in found]))
    return f"{100 * mean:.2f} %" if found[0].task == "classification" else f"{mean:.4g}"


def _tables(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.table for result in results))


def _by_split(results: Sequence[Result], table: str, model: str) -> dict[int, Result]:
    return {r.split: r for r in results if r.table == table and r.model == model}


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
