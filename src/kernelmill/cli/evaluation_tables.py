"""An evaluation in the terminal: metrics, confusion matrix, calibration, intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelmill.cli.figures import counted, duration, number, percent, significant
from kernelmill.cli.option_words import in_words_of_options

if TYPE_CHECKING:
    from kernelmill.workflows.records import Calibration, Coverage, Evaluation

__all__ = ["baseline_lines", "evaluation_tables", "headline", "notes_lines", "plain_table"]

WIDTH = 80
FIRST, LAST = 16, 7  # characters of the class, and of "100.0 %", the share that is wrong
LARGEST_MATRIX = 12  # classes
WORST_PAIRS = 10

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
