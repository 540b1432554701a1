"""An evaluation in the terminal: metrics, confusion matrix, calibration, intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelmill.cli.figures import counted, duration, number, percent, significant, size
from kernelmill.cli.render.option_words import in_words_of_options

if TYPE_CHECKING:
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
    "baseline_lines",
    "column_tables",
    "comparison_tables",
    "evaluation_tables",
    "headline",
    "json_of",
    "notes_lines",
    "pairs_table",
    "summary_pairs",
    "summary_tables",
]

WIDTH = 80
FIRST, LAST = 16, 7  # characters of the class, and of "100.0 %", the share that is wrong
LARGEST_MATRIX = 12  # classes
WORST_PAIRS = 10
MOST_COLUMNS = 40
MOST_CLASSES = 10

_STAGES = "read tune train evaluate"

# Thousands of numbers that are there for plots: kernel values, targets and their predictions. The
# bins of a calibration are "predicted", too, but not beside "actual".
_POINTS = (("exact", "estimated"), ("actual", "predicted"))

_METRICS = {
    "balanced_error": "mean error of the classes",
    "log_loss": "log loss",
    "auc": "area under the ROC curve",
    "mae": "mean absolute error",
    "r2": "R²",
}
_SHARES = {"error", "balanced_error"}
_IN_HEADLINE = {"error", "error_low", "error_high", "baseline_error", "rmse", "target_std"}


def headline(evaluation: Evaluation) -> str:
    """The result in one line.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"error": 0.146, "baseline_error": 0.241}
    >>> headline(Evaluation("classification", "adult.test", 3256, metrics, 0.1))
    '14.6 % of 3,256 rows wrong; always the most frequent class: 24.1 %'
    """
    metrics, rows = evaluation.metrics, counted(evaluation.n_rows, "row")
    if evaluation.task == "classification":
        low, high = metrics.get("error_low"), metrics.get("error_high")
        interval = (
            ""
            if low is None or high is None
            else f" (95 % interval {percent(low)} to {percent(high)})"
        )
        baseline = metrics.get("baseline_error")
        other = "" if baseline is None else f"; always the most frequent class: {percent(baseline)}"
        return f"{percent(metrics.get('error'))} of {rows} wrong{interval}{other}"
    text = f"root mean squared error {significant(metrics.get('rmse'))} on {rows}"
    spread = metrics.get("target_std")
    if spread is not None:
        text += f" (the target's std: {significant(spread)})"
    return text


def baseline_lines(evaluation: Evaluation) -> list[str]:
    """A note if the model is not better than an answer that looks at nothing.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> metrics = {"error": 0.25, "baseline_error": 0.241}
    >>> baseline_lines(Evaluation("classification", "adult.test", 3256, metrics, 0.1))
    ['note: the model is not better than always answering the most frequent class']
    """
    metrics = evaluation.metrics
    for error, baseline, answer in (
        ("error", "baseline_error", "the most frequent class"),
        ("rmse", "target_std", "the mean"),
    ):
        ours, other = metrics.get(error), metrics.get(baseline)
        if ours is not None and other is not None and ours >= other:
            return [f"note: the model is not better than always answering {answer}"]
    return []


def evaluation_tables(
    evaluation: Evaluation, said: Collection[str] = ()
) -> Iterator[RenderableType]:
    """Everything about it that fits into 80 columns, without notes that were `said` before."""
    yield headline(evaluation)
    yield from baseline_lines(evaluation)
    yield from notes_lines(evaluation.notes, said)
    yield ""
    yield _metrics(evaluation)
    if evaluation.confusion is not None and evaluation.classes is not None:
        yield ""
        yield from _mistakes(evaluation.classes, evaluation.confusion)
    if evaluation.calibration is not None and evaluation.calibration.counts:
        yield ""
        yield Text("Calibration: how often the predicted class was right", "bold")
        yield _calibration(evaluation.calibration)
    if evaluation.coverage is not None and evaluation.coverage.nominal:
        yield ""
        yield Text("Intervals: how many targets lie within", "bold")
        yield _coverage(evaluation.coverage)


def notes_lines(notes: list[str], said: Collection[str] = ()) -> list[str]:
    """Notes as lines, in the words of the command line.

    Examples
    --------
    >>> notes_lines(["10 numbers; for regression say task='regression'.", "old"], said=["old"])
    ['note: 10 numbers; for regression say --task regression.']
    """
    return [f"note: {in_words_of_options(note)}" for note in notes if note not in said]


def plain_table() -> Table:
    """A table with a line under its heading and none elsewhere."""
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def _metrics(evaluation: Evaluation) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in evaluation.metrics.items():
        if name not in _IN_HEADLINE and value is not None:
            shown = percent(value) if name in _SHARES else significant(value)
            table.add_row(_METRICS.get(name, name.replace("_", " ")), shown)
    rate = evaluation.n_rows / max(evaluation.seconds, 1e-9)
    table.add_row("time", f"{duration(evaluation.seconds)}, {number(rate)} rows/s")
    return table


def _mistakes(classes: list[str], confusion: list[list[int]]) -> Iterator[RenderableType]:
    """The confusion matrix where it fits into 80 columns, otherwise its largest entries."""
    widest = max((len(str(count)) for row in confusion for count in row), default=1)
    first = min(FIRST, max(map(len, classes), default=0) + 3)
    room = (WIDTH - first - LAST - 1) // max(len(classes), 1) - 1
    if len(classes) <= LARGEST_MATRIX and widest <= room:
        yield Text("Confusion: rows are the true class, columns the predicted one", "bold")
        yield _confusion(classes, confusion, room)
    else:
        yield Text(f"Most frequent mistakes, of {len(classes)} classes", "bold")
        yield _worst_pairs(classes, confusion)


def _confusion(classes: list[str], confusion: list[list[int]], room: int) -> Table:
    # Names that would be cut are numbered instead: "cl…" beside "cl…" tells nothing.
    numbered = max(map(len, classes)) > room
    rows = [f"{i + 1} {name}" for i, name in enumerate(classes)] if numbered else classes
    columns = [str(i + 1) for i in range(len(classes))] if numbered else classes
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("true", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True, min_width=min(room, 5))
    table.add_column("wrong", justify="right", no_wrap=True, min_width=LAST)
    for i, (name, row) in enumerate(zip(rows, confusion, strict=True)):
        # Dots for zeros, so that the mistakes are what the eye finds.
        cells = [str(count) if count else "·" for count in row]
        total = sum(row)
        wrong = percent((total - row[i]) / total) if total else "-"
        table.add_row(_cut(name, FIRST), *cells, wrong)
    return table


def _worst_pairs(classes: list[str], confusion: list[list[int]]) -> Table:
    """The pairs of classes that are mistaken most often, for matrices too large to show."""
    pairs = [
        (count, i, j)
        for i, row in enumerate(confusion)
        for j, count in enumerate(row)
        if i != j and count
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    shown = pairs[:WORST_PAIRS]
    table = plain_table()
    table.add_column("true class", overflow="fold", max_width=28)
    table.add_column("taken for", overflow="fold", max_width=28)
    table.add_column("rows", justify="right")
    table.add_column("of its rows", justify="right")
    for count, i, j in shown:
        table.add_row(classes[i], classes[j], number(count), percent(count / sum(confusion[i])))
    return table


def _calibration(calibration: Calibration) -> Table:
    table = plain_table()
    for heading in ("said", "was", "rows"):
        table.add_column(heading, justify="right")
    for said, was, count in zip(
        calibration.predicted, calibration.observed, calibration.counts, strict=True
    ):
        table.add_row(percent(said), percent(was), number(count))
    return table


def _coverage(coverage: Coverage) -> Table:
    table = plain_table()
    table.add_column("should be", justify="right")
    table.add_column("are", justify="right")
    for nominal, observed in zip(coverage.nominal, coverage.observed, strict=True):
        table.add_row(percent(nominal), percent(observed))
    return table


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 1)] + "…"


def summary_tables(summary: FitSummary, said: Collection[str] = ()) -> Iterator[RenderableType]:
    """The model as `fit` shows it when it is done; without notes that were `said` before."""
    if summary.held_out is not None:
        yield f"Held out: {headline(summary.held_out)}"
        yield from baseline_lines(summary.held_out)
    yield from notes_lines(summary.notes, said)
    yield ""
    yield pairs_table(summary_pairs(summary))


def summary_pairs(summary: FitSummary) -> dict[str, str]:
    """What the model is and how it was made, as names and values."""
    pairs = {"task": summary.task, "target": summary.target}
    if summary.classes is not None:
        shown = ", ".join(summary.classes[:MOST_CLASSES])
        more = len(summary.classes) - MOST_CLASSES
        pairs["classes"] = f"{len(summary.classes)}: {shown}" + (", …" if more > 0 else "")
    pairs["data"] = summary.source
    held_out = f", {number(summary.n_held_out)} held out" if summary.n_held_out else ""
    pairs["rows"] = f"{number(summary.n_rows)} trained on{held_out}"
    # A file of a matrix has one record for all of its columns.
    n_columns = sum(c.n_columns if c.kind == "matrix" else 1 for c in summary.columns)
    pairs["inputs"] = f"{counted(n_columns, 'column')}, {number(summary.n_inputs)} when encoded"
    scale = (
        ""
        if summary.length_scale is None
        else f", length scale {significant(summary.length_scale)}"
    )
    pairs["map"] = (
        f"{summary.map_name}, {summary.kernel.removesuffix('()')} kernel, "
        f"{counted(summary.n_components, 'feature')}{scale}"
    )
    pairs["loss"] = f"{summary.loss}, alpha {significant(summary.alpha)}"
    pairs["seed"] = str(summary.seed)
    # Model files sort names.
    stages = sorted(summary.seconds, key=lambda name: (name not in _STAGES, _STAGES.find(name)))
    pairs["time"] = ", ".join(f"{name} {duration(summary.seconds[name])}" for name in stages)
    if summary.peak_memory is not None:
        pairs["peak memory"] = size(summary.peak_memory)
    if summary.created:
        pairs["made"] = summary.created
    if summary.version:
        pairs["by"] = f"kernelmill {summary.version}"
    return {name: value for name, value in pairs.items() if value}


def pairs_table(pairs: dict[str, str]) -> Table:
    """Names and values, side by side."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.items():
        table.add_row(name, value)
    return table


def column_tables(columns: list[InputColumn]) -> Iterator[RenderableType]:
    """The columns of the table and what becomes of them; the first ones where there are many."""
    more = len(columns) - MOST_COLUMNS
    title = "Columns" if more <= 0 else f"Columns: the first {MOST_COLUMNS} of {len(columns)}"
    yield Text(title, "bold")
    table = plain_table()
    table.add_column("name", overflow="fold", max_width=24)
    table.add_column("kind", no_wrap=True)
    table.add_column("inputs", justify="right")
    table.add_column("missing", justify="right")
    table.add_column("detail", overflow="fold")
    for each in columns[:MOST_COLUMNS]:
        missing = number(each.missing) if each.missing else ""
        table.add_row(each.name, each.kind, number(each.n_columns), missing, each.detail)
    yield table


def comparison_tables(
    comparison: Comparison, said: Collection[str] = ()
) -> Iterator[RenderableType]:
    """The contenders, an asterisk beside the best of each column; notes that were not `said`."""
    classification = comparison.task == "classification"

    def error(value: float) -> str:
        return percent(value) if classification else significant(value)

    columns: list[tuple[str, Callable[[ComparedModel], float | None], Callable[..., str]]] = [
        ("wrong" if classification else comparison.error_name, lambda m: m.error, error),
        ("fit", lambda m: m.fit_seconds, duration),
        ("predict", lambda m: m.predict_seconds, duration),
        ("memory", lambda m: m.peak_memory, size),
    ]
    best = {
        name: _least([value(model) for model in comparison.models]) for name, value, _ in columns
    }
    yield (
        f"{counted(comparison.n_train, 'row')} to train, {number(comparison.n_test)} to test; "
        "* is the best"
    )
    yield ""
    table = plain_table()
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
        features = "" if model.n_components is None else number(model.n_components)
        table.add_row(model.name, features, number(model.n_train), *cells)
    yield table
    details = [model for model in comparison.models if model.detail]
    yield from (f"{_label(model)}: {model.detail}" for model in details)
    yield from notes_lines(comparison.notes, said)


def _label(model: ComparedModel) -> str:
    features = "" if model.n_components is None else f" {number(model.n_components)}"
    return f"{model.name}{features}"


def _least(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None and value == value]  # noqa: PLR0124 # NaN
    return min(there, default=None)


def json_of(record: FitSummary | Evaluation | Comparison) -> dict[str, Any]:
    """The record as JSON, with null in place of the points of plots.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> points = {"actual": [1.0], "predicted": [2.0]}
    >>> values = json_of(Evaluation("regression", "a.csv", 2, {"rmse": 0.5}, 0.1, **points))
    >>> values["metrics"], values["actual"], values["predicted"]
    ({'rmse': 0.5}, None, None)
    """
    values: dict[str, Any] = _without_points(record.as_json())
    return values


def _without_points(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_points(each) for each in value]
    if not isinstance(value, dict):
        return value
    left_out = {name for names in _POINTS if value.keys() >= set(names) for name in names}
    return {
        name: None if name in left_out else _without_points(each) for name, each in value.items()
    }
