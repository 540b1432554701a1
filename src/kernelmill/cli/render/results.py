"""Results of commands: evaluations, models and comparisons as tables and as JSON records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelmill.cli.render.messages import render_note
from kernelmill.formatting import is_number, plain, shorten

if TYPE_CHECKING:
    from kernelmill.workflows.diagnosis import Diagnosis
    from kernelmill.workflows.records import (
        Calibration,
        ComparedModel,
        Comparison,
        Coverage,
        Evaluation,
        FitSummary,
        InputColumn,
    )

__all__ = [
    "build_json",
    "describe_model",
    "make_pairs_table",
    "name_held_out",
    "render_columns",
    "render_comparison",
    "render_evaluation",
    "render_folds",
    "render_headline",
    "render_notes",
    "render_ranking",
    "render_relevance",
    "render_summary",
    "render_verdict",
]

WIDTH = 80
FIRST, LAST = 16, 7  # characters of the name of a class, and of "100.0 %", its recall
LARGEST_MATRIX = 12  # classes
MOST_PAIRS = 10  # of confused classes
MOST_COLUMNS = 40
MOST_CLASSES = 10
MOST_RELEVANT = 10


# Thousands of numbers for plots: kernel values, targets and their predictions. The bins of a
# calibration are called "predicted", too, but not next to "actual".
_POINTS = (("exact", "estimated"), ("actual", "predicted"))

_METRICS = {
    "balanced_error": "balanced error",
    "log_loss": "log loss",
    "auc": "ROC AUC",
    "average_precision": "average precision",
    "mae": "mean absolute error",
    "r2": "R²",
}
_SHARES = {"error", "balanced_error"}
_IN_HEADLINE = {"error", "error_low", "error_high", "baseline_error", "rmse", "target_std"}
_IN_OTHERS = {"auc_low", "auc_high", "baseline_log_loss"}


def render_headline(evaluation: Evaluation) -> str:
    """Return the result in one line.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"error": 0.146, "baseline_error": 0.241}
    >>> render_headline(Evaluation("classification", "adult.test", 3256, metrics, 0.1))
    'error 14.6 % on 3,256 rows; always predicting the most frequent class: 24.1 %'
    """
    metrics, rows = evaluation.metrics, plain.count(evaluation.n_rows, "row")
    if evaluation.task == "classification":
        low, high = metrics.get("error_low"), metrics.get("error_high")
        interval = (
            ""
            if low is None or high is None
            else f" (95 % interval {plain.percent(low)} to {plain.percent(high)})"
        )
        baseline = metrics.get("baseline_error")
        other = (
            ""
            if baseline is None
            else f"; always predicting the most frequent class: {plain.percent(baseline)}"
        )
        return f"error {plain.percent(metrics.get('error'))} on {rows}{interval}{other}"
    text = f"root mean squared error {plain.number(metrics.get('rmse'))} on {rows}"
    spread = metrics.get("target_std")
    if spread is not None:
        text += f" (std of the target: {plain.number(spread)})"
    return text


def render_ranking(evaluation: Evaluation) -> list[str]:
    """Return the AUC of two classes as a line, if it is known.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"auc": 0.912, "auc_low": 0.899, "auc_high": 0.9242}
    >>> render_ranking(Evaluation("classification", "adult.test", 3256, metrics, 0.1))
    ['ROC AUC 0.912 (95 % interval 0.899 to 0.924)']
    """
    shown = _auc(evaluation)
    return [f"{_METRICS['auc']} {shown}"] if shown else []


def _auc(evaluation: Evaluation) -> str:
    area, low, high = (evaluation.metrics.get(name) for name in ("auc", "auc_low", "auc_high"))
    if not is_number(area):
        return ""
    if not is_number(low) or not is_number(high):
        return plain.number(area)
    return (
        f"{plain.number(area, 3)} (95 % interval {plain.number(low, 3)} to {plain.number(high, 3)})"
    )


def render_verdict(evaluation: Evaluation, command: click.Command | None = None) -> list[str]:
    """Return a note if the model is no better than a constant prediction.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"error": 0.25, "baseline_error": 0.241}
    >>> render_verdict(Evaluation("classification", "adult.test", 3256, metrics, 0.1))
    ['note: The model is no better than always predicting the most frequent class.']
    """
    verdict = evaluation.verdict
    return [] if verdict is None else [f"note: {render_note(verdict, command)}"]


def render_evaluation(
    evaluation: Evaluation,
    shown_notes: Collection[str] = (),
    command: click.Command | None = None,
) -> Iterator[RenderableType]:
    """Yield metrics, confusion matrix, calibration and intervals, in 80 columns.

    `shown_notes` are not repeated, and settings are named as options of `command`; this also holds
    for the other functions here.
    """
    yield render_headline(evaluation)
    yield from render_verdict(evaluation, command)
    yield from render_notes(evaluation.notes, shown_notes)
    yield ""
    yield _metrics(evaluation)
    if evaluation.confusion is not None and evaluation.classes is not None:
        yield ""
        yield from _confusions(
            evaluation.classes, evaluation.confusion, evaluation.weighted_confusion
        )
    if evaluation.calibration is not None and evaluation.calibration.counts:
        yield ""
        yield Text(
            "Calibration: probability of the predicted class, share of correct predictions", "bold"
        )
        yield _calibration(evaluation.calibration)
    if evaluation.coverage is not None and evaluation.coverage.nominal:
        yield ""
        yield Text("Prediction intervals: share of targets inside", "bold")
        yield _coverage(evaluation.coverage)


def render_notes(notes: list[str], shown_notes: Collection[str] = ()) -> list[str]:
    """Return the notes that have not been shown, as lines.

    Examples
    --------
    >>> render_notes(["column 3 has no name", "no header"], shown_notes=["no header"])
    ['note: column 3 has no name']
    """
    return [f"note: {note}" for note in notes if note not in shown_notes]


def make_table() -> Table:
    """Return an empty table with a line under its heading and no others."""
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def _metrics(evaluation: Evaluation) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in evaluation.metrics.items():
        if name in _IN_HEADLINE | _IN_OTHERS or not is_number(value):
            continue
        shown = plain.percent(value) if name in _SHARES else plain.number(value)
        if name == "auc":
            shown = _auc(evaluation)
        of_shares = evaluation.metrics.get("baseline_log_loss")
        if name == "log_loss" and is_number(of_shares):
            shown += f"; always predicting the shares of the classes: {plain.number(of_shares)}"
        table.add_row(_METRICS.get(name, name.replace("_", " ")), shown)
    rate = evaluation.n_rows / max(evaluation.seconds, 1e-9)
    table.add_row("time", f"{plain.duration(evaluation.seconds)}, {plain.count(rate)} rows/s")
    return table


def _confusions(
    classes: list[str], confusion: list[list[int]], weighted: list[list[float]] | None
) -> Iterator[RenderableType]:
    """Yield the confusion matrix if it fits into 80 columns, otherwise its largest entries."""
    widest = max((len(str(count)) for row in confusion for count in row), default=1)
    first = min(FIRST, max(map(len, classes), default=0) + 3)
    room = (WIDTH - first - LAST - 1) // max(len(classes), 1) - 1
    if len(classes) <= LARGEST_MATRIX and widest <= room:
        yield Text("Confusion matrix: rows are true classes, columns are predicted classes", "bold")
        if weighted is not None:
            yield "Counts are numbers of rows; recall is weighted"
        yield _confusion(classes, confusion, room, weighted or confusion)
    else:
        unit = "" if weighted is None else ", in unweighted numbers of rows"
        yield Text(f"Most frequent errors among {len(classes)} classes{unit}", "bold")
        yield _confused_pairs(classes, confusion)


def _confusion(
    classes: list[str],
    confusion: list[list[int]],
    room: int,
    weighted: Sequence[Sequence[float]],
) -> Table:
    # Names that would be truncated are numbered instead: "cl…" next to "cl…" would be useless.
    numbered = max(map(len, classes)) > room
    rows = [f"{i + 1} {name}" for i, name in enumerate(classes)] if numbered else classes
    columns = [str(i + 1) for i in range(len(classes))] if numbered else classes
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("true", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True, min_width=min(room, 5))
    table.add_column("recall", justify="right", no_wrap=True, min_width=LAST)
    for i, (name, row) in enumerate(zip(rows, confusion, strict=True)):
        # Dots for zeros make the errors stand out.
        cells = [str(count) if count else "·" for count in row]
        total = sum(weighted[i])
        recall = plain.percent(weighted[i][i] / total if total else None)
        table.add_row(shorten(name, FIRST), *cells, recall)
    return table


def _confused_pairs(classes: list[str], confusion: list[list[int]]) -> Table:
    """Return the classes that are confused most often, for matrices that are too large to show."""
    pairs = [
        (count, i, j)
        for i, row in enumerate(confusion)
        for j, count in enumerate(row)
        if i != j and count
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    shown = pairs[:MOST_PAIRS]
    table = make_table()
    table.add_column("true class", overflow="fold", max_width=28)
    table.add_column("predicted class", overflow="fold", max_width=28)
    table.add_column("rows", justify="right")
    table.add_column("of the class", justify="right")
    for count, i, j in shown:
        table.add_row(
            classes[i], classes[j], plain.count(count), plain.percent(count / sum(confusion[i]))
        )
    return table


def _calibration(calibration: Calibration) -> Table:
    table = make_table()
    for heading in ("predicted", "observed", "rows"):
        table.add_column(heading, justify="right")
    for predicted, observed, count in zip(
        calibration.predicted, calibration.observed, calibration.counts, strict=True
    ):
        table.add_row(plain.percent(predicted), plain.percent(observed), plain.count(count))
    return table


def _coverage(coverage: Coverage) -> Table:
    table = make_table()
    table.add_column("nominal", justify="right")
    table.add_column("observed", justify="right")
    for nominal, observed in zip(coverage.nominal, coverage.observed, strict=True):
        table.add_row(plain.percent(nominal), plain.percent(observed))
    return table


def name_held_out(evaluation: Evaluation) -> str:
    """Return a name for the rows of the evaluation: held-out rows or another table."""
    return "Held out" if evaluation.source.endswith(": held-out rows") else "Validation table"


def render_summary(
    summary: FitSummary,
    shown_notes: Collection[str] = (),
    command: click.Command | None = None,
) -> Iterator[RenderableType]:
    """Yield the model as `fit` shows it at the end: held-out error, columns, notes, settings."""
    if summary.held_out is not None:
        yield f"{name_held_out(summary.held_out)}: {render_headline(summary.held_out)}"
        yield from render_ranking(summary.held_out)
        yield from render_verdict(summary.held_out, command)
    yield from render_folds(summary)
    if summary.column_relevance:
        most = ", ".join(
            f"{shorten(each.name, 14, keep_end=3)} ({plain.number(each.relevance, 2)})"
            for each in summary.column_relevance[:3]
        )
        yield f"Most relevant: {most}"
    yield from render_notes(summary.notes, shown_notes)
    yield ""
    yield make_pairs_table(describe_model(summary))


def render_folds(summary: FitSummary) -> list[str]:
    """Return the cross-validated error as a line, if there is one."""
    found = summary.cross_validation
    if found is None:
        return []
    form = plain.percent if found.metric == "error" else plain.number
    name = "error" if found.metric == "error" else "root mean squared error"
    return [
        f"Cross-validated ({found.n_folds} folds): {name} {form(found.mean)} "
        f"(95 % interval {form(found.low)} to {form(found.high)})"
    ]


def describe_model(summary: FitSummary) -> dict[str, str]:
    """Return what the model is and how it was trained, as names and values."""
    pairs = {"task": summary.task, "target": summary.target}
    if summary.classes is not None:
        shown = ", ".join(summary.classes[:MOST_CLASSES])
        more = len(summary.classes) - MOST_CLASSES
        pairs["classes"] = f"{len(summary.classes)}: {shown}" + (", …" if more > 0 else "")
    pairs["data"] = summary.source
    held_out = f", {plain.count(summary.n_held_out)} held out" if summary.n_held_out else ""
    if summary.held_out is not None and name_held_out(summary.held_out) != "Held out":
        held_out = f", {plain.count(summary.n_held_out)} in another table for validation"
    elif summary.refitted:
        held_out = f", all in the refit; error measured before on {summary.n_held_out:,}"
    pairs["rows"] = f"{plain.count(summary.n_rows)} for training{held_out}"
    is_divided = summary.n_held_out and summary.division and not held_out.endswith("validation")
    pairs["held out"] = summary.division.text if is_divided and summary.division else ""
    pairs["weights"] = summary.weights and f"column {summary.weights}"
    pairs["class weights"] = summary.class_weight
    # Matrix files have one record for all of their columns.
    n_columns = sum(c.n_columns if c.kind == "matrix" else 1 for c in summary.columns)
    pairs["inputs"] = (
        f"{plain.count(n_columns, 'column')}, {plain.count(summary.n_inputs)} when encoded"
    )
    scale = ""
    if summary.length_scale is not None:
        scale = f", length scale {plain.number(summary.length_scale)}"
        has_several = summary.column_relevance and summary.map_name != "principal_fourier"
        scale += " (mean over columns)" if has_several else ""
    pairs["map"] = (
        f"{summary.map_name}, {summary.kernel.removesuffix('()')} kernel, "
        f"{plain.count(summary.n_components, 'feature')}{scale}"
    )
    pairs["construction"] = summary.construction
    pairs["loss"] = f"{summary.loss}, alpha {plain.number(summary.alpha)}"
    pairs["solver"] = summary.solver
    pairs["seed"] = str(summary.seed)
    stages = summary.seconds.items()
    pairs["time"] = ", ".join(f"{name} {plain.duration(seconds)}" for name, seconds in stages)
    if summary.peak_memory is not None:
        pairs["peak memory"] = plain.size(summary.peak_memory)
    if summary.created:
        pairs["created"] = summary.created
    if summary.version:
        pairs["version"] = f"kernelmill {summary.version}"
    return {name: value for name, value in pairs.items() if value}


def make_pairs_table(pairs: dict[str, str]) -> Table:
    """Return a table of names and values."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value)
    return table


def render_columns(columns: list[InputColumn]) -> Iterator[RenderableType]:
    """Yield the columns of the table and their encoding; only the first ones if there are many."""
    more = len(columns) - MOST_COLUMNS
    title = "Columns" if more <= 0 else f"Columns: the first {MOST_COLUMNS} of {len(columns)}"
    yield Text(title, "bold")
    table = make_table()
    table.add_column("name", overflow="fold", max_width=24)
    table.add_column("kind", no_wrap=True)
    table.add_column("inputs", justify="right")
    table.add_column("missing", justify="right")
    table.add_column("detail", overflow="fold")
    for each in columns[:MOST_COLUMNS]:
        missing = plain.count(each.missing) if each.missing else ""
        table.add_row(each.name, each.kind, plain.count(each.n_columns), missing, each.detail)
    yield table
    if more > 0:
        yield f"{plain.count(more, 'more column')}: --json lists all of them"


def render_relevance(summary: FitSummary) -> Iterator[RenderableType]:
    """Yield the most relevant columns with their intervals.

    Nothing is yielded for a map without a length scale.
    """
    columns = summary.column_relevance
    if not columns:
        if summary.length_scale is not None:
            yield "Column relevance: not available, since all columns have the same length scale"
            yield ""
        return
    more = len(columns) - MOST_RELEVANT
    title = "Column relevance"
    yield Text(title if more <= 0 else f"{title}: the first {MOST_RELEVANT}", "bold")
    table = make_table()
    table.add_column("name", overflow="fold", max_width=40)
    table.add_column("relevance", justify="right")
    has_ranges = any(each.low is not None for each in columns)
    table.add_column("range over searches" if has_ranges else "", justify="right")
    for each in columns[:MOST_RELEVANT]:
        known = each.low is not None and each.high is not None
        ends = f"{plain.number(each.low, 2)} to {plain.number(each.high, 2)}" if known else ""
        table.add_row(shorten(each.name, 80), plain.number(each.relevance, 2), ends)
    yield table
    if more > 0:
        most = plain.number(columns[MOST_RELEVANT].relevance, 2)
        yield f"{plain.count(more, 'other column')}: at most {most}"
    yield ""


def render_comparison(
    comparison: Comparison, shown_notes: Collection[str] = ()
) -> Iterator[RenderableType]:
    """Yield the compared models, with an asterisk after the best value of each column."""
    classification = comparison.task == "classification"

    def error(value: float) -> str:
        return plain.percent(value) if classification else plain.number(value)

    columns: list[tuple[str, Callable[[ComparedModel], float | None], Callable[..., str]]] = [
        ("error" if classification else comparison.error_name, lambda m: m.error, error),
        ("fit", lambda m: m.fit_seconds, plain.duration),
        ("predict", lambda m: m.predict_seconds, plain.duration),
        ("memory", lambda m: m.peak_memory, plain.size),
    ]
    best = {
        name: _least([value(model) for model in comparison.models]) for name, value, _ in columns
    }
    yield (
        f"{plain.count(comparison.n_train, 'row')} for training, "
        f"{plain.count(comparison.n_test)} for testing; * marks the best value"
    )
    yield ""
    table = make_table()
    table.add_column("model", overflow="fold")
    table.add_column("features", justify="right")
    table.add_column("rows", justify="right")
    for name, _, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for model in comparison.models:
        cells = []
        for name, value, shown in columns:
            mark = "*" if value(model) is not None and value(model) == best[name] else " "
            cells.append(shown(value(model)) + mark)
        features = "" if model.n_components is None else plain.count(model.n_components)
        table.add_row(model.name, features, plain.count(model.n_train), *cells)
    yield table
    details = [model for model in comparison.models if model.detail]
    yield from (f"{_label(model)}: {model.detail}" for model in details)
    yield from render_notes(comparison.notes, shown_notes)


def _label(model: ComparedModel) -> str:
    features = "" if model.n_components is None else f" {plain.count(model.n_components)}"
    return f"{model.name}{features}"


def _least(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None and value == value]  # noqa: PLR0124 # NaN
    return min(there, default=None)


def build_json(record: FitSummary | Evaluation | Comparison | Diagnosis) -> dict[str, Any]:
    """Return the record as JSON, with null in place of the points of plots.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> points = {"actual": [1.0], "predicted": [2.0]}
    >>> values = build_json(Evaluation("regression", "a.csv", 2, {"rmse": 0.5}, 0.1, **points))
    >>> values["metrics"], values["actual"], values["predicted"]
    ({'rmse': 0.5}, None, None)
    """
    values: dict[str, Any] = _remove_points(record.to_record())
    return values


def _remove_points(value: Any) -> Any:
    if isinstance(value, list):
        return [_remove_points(each) for each in value]
    if not isinstance(value, dict):
        return value
    left_out = {name for names in _POINTS if value.keys() >= set(names) for name in names}
    return {
        name: None if name in left_out else _remove_points(each) for name, each in value.items()
    }
