"""The results of the workflows as plain values: for terminals, pages, model files and JSON.

Each class declares its fields once. The `json` module can write what `to_record` returns, in which
NaN and infinities are None, and `from_record` restores the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from kernelmill.errors import Message
from kernelmill.files.fields import ADDED, Stored
from kernelmill.formatting import plain
from kernelmill.io.sources import describe_data, is_data
from kernelmill.workflows.verdict import judge

__all__ = [
    "TABLE_MODEL",
    "Calibration",
    "ColumnRelevance",
    "ComparedModel",
    "Comparison",
    "Coverage",
    "CrossValidation",
    "Evaluation",
    "FitSummary",
    "InputColumn",
    "KernelCheck",
    "LearningPoint",
    "PartialDependence",
    "Ranking",
    "RowDivision",
    "TuningPoint",
    "describe_source",
]

TABLE_MODEL = "table-model"  # the kind of a file that has a `FitSummary`

_SHOWN = 6  # elements of lists
_LISTED = 40  # rows of tables in notebooks


class Result(Stored):
    """A dataclass whose fields are stored in model files and written as JSON."""

    def __repr__(self) -> str:
        """Return the fields, with long lists abbreviated."""
        parts = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            long = isinstance(value, list) and len(value) > _SHOWN
            parts.append(f"{each.name}={f'<list of {len(value)}>' if long else repr(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the single values, and a table of the metrics or models, for notebooks."""
        single, tables = [], []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            name = each.name.replace("_", " ")
            if isinstance(value, (bool, int, str)) and value != "":
                single.append((name, str(value)))
            elif isinstance(value, float):
                single.append((name, plain.number(value)))
            elif isinstance(value, dict) and value:
                rows = [(key, _show(each)) for key, each in value.items()]
                tables.append(_make_table(name, ("", ""), rows))
            elif isinstance(value, list) and value and isinstance(value[0], Stored):
                names = [field.name for field in fields(value[0])]  # type: ignore[arg-type]
                shown = [[_show(getattr(row, key)) for key in names] for row in value[:_LISTED]]
                more = f", {_LISTED} of {len(value)}" if len(value) > _LISTED else ""
                tables.append(_make_table(name + more, names, shown))
            elif isinstance(value, Result):
                tables.append(
                    f"<details><summary>{escape(name)}</summary>{value._repr_html_()}</details>"
                )
        title = f"<b>{type(self).__name__}</b>"
        return title + _make_table("", ("", ""), single) + "".join(tables)


def _show(value: Any) -> str:
    if isinstance(value, float):
        return plain.number(value)
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"{len(value)} values"
    return "" if value is None else str(value)


def _make_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of escaped text."""
    head = "".join(f"<th>{escape(each.replace('_', ' '))}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if any(headings) else ""
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


Setting = bool | int | float | str | list[str | int] | dict[str, bool | int | float | str]

STAGES = ("read", "tune", "train", "evaluate")


@dataclass(frozen=True, repr=False)
class InputColumn(Result):
    """A column of the table and its encoding."""

    name: str
    kind: str  # "numeric", "category", "ordinal", "date" or "matrix" (columns of a matrix file)
    n_columns: int  # the number of columns in the encoded rows
    missing: int = 0
    detail: str = ""  # such as "16 categories, 2 rare pooled"


@dataclass(frozen=True, repr=False)
class ColumnRelevance(Result):
    """How much a column contributes to the distances of the kernel, or to predictions."""

    name: str
    # Its spread in units of its length scale, or the change of predictions if its values are
    # permuted, divided by the largest of all columns.
    relevance: float
    low: float | None = None  # the range over several searches; None for given length scales
    high: float | None = None


@dataclass(frozen=True, repr=False)
class PartialDependence(Result):
    """Mean predictions with one column set to each of several values."""

    name: str
    kind: str  # "numeric" or "category"
    values: list[float | str]  # ascending numbers, or categories, most frequent first
    quantity: (
        str  # "prediction", "probability", or "share" of the rows that a class is predicted for
    )
    outputs: list[str]  # the target, the second of two classes, or several classes
    means: list[list[float]]  # one list for each output
    n_rows: int


@dataclass(frozen=True, repr=False)
class TuningPoint(Result):
    """Settings that were tried in tuning, and their error on validation rows."""

    length_scale: float
    alpha: float
    error: float
    criterion: str = "squared error"  # or "log loss", "error"
    kernel: str = field(default="", metadata=ADDED)
    per_column: bool = field(default=False, metadata=ADDED)  # if so, length_scale is the mean
    n_components: int = field(default=0, metadata=ADDED)  # 0 if not known
    # Other settings: "64 principal components", "steps, weight 10", "linear kernel, weight 1",
    # "L-BFGS".
    variant: str = field(default="", metadata=ADDED)
    chosen: bool = field(default=False, metadata=ADDED)  # at most one for each criterion


@dataclass(frozen=True, repr=False)
class LearningPoint(Result):
    """The state of training after a number of rows (counted again in each epoch)."""

    rows: int
    loss: float | None = None  # the mean loss of the rows seen since the last point
    error: float | None = None  # measured on at most 1000 held-out rows
    held_out_loss: float | None = field(default=None, metadata=ADDED)  # measured on the same rows


@dataclass(frozen=True, repr=False)
class KernelCheck(Result):
    """Estimated and exact kernel values of pairs of rows, as in Sivertsen (2014), Figure 4.1."""

    exact: list[float]
    estimated: list[float]
    rms_error: float
    n_components: int


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """Probabilities of the predicted class in bins, and the fraction of correct predictions."""

    predicted: list[float]  # the mean probability in each non-empty bin
    observed: list[float]  # the fraction of correct predictions in each bin
    counts: list[int]


@dataclass(frozen=True, repr=False)
class Ranking(Result):
    """The number of rows of the second class among the rows where it is most probable."""

    positive: str  # the second class
    base_rate: float  # the share of this class among all rows
    share: list[float]  # shares of the rows, most probable first; at most 200 numbers
    recall: list[float]  # the share of the class among these rows


@dataclass(frozen=True, repr=False)
class Coverage(Result):
    """The fraction of targets within mean ± z std, for intervals of a nominal coverage."""

    nominal: list[float]
    observed: list[float]


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """The scores of the predictions for rows whose targets are known."""

    task: str  # "classification" or "regression"
    source: str  # the files, as given
    n_rows: int
    # classification: error, error_low, error_high (95 %, Wilson), baseline_error (always predicting
    # the most frequent class), balanced_error, log_loss and baseline_log_loss (of the shares of the
    # classes) if there are probabilities, auc, auc_low, auc_high (95 %, Newcombe) and
    # average_precision for two classes; regression: rmse, mae, r2, target_std
    metrics: dict[str, float | None]
    seconds: float
    classes: list[str] | None = None
    confusion: list[list[int]] | None = None  # rows: true classes, columns: predicted classes
    calibration: Calibration | None = None
    coverage: Coverage | None = None
    actual: list[float] | None = None  # targets of at most 2000 rows, for plots
    predicted: list[float] | None = None
    notes: list[str] = field(default_factory=list)
    ranking: Ranking | None = field(default=None, metadata=ADDED)  # for two classes
    # The confusion matrix with sums of weights instead of counts; None without weights.
    weighted_confusion: list[list[float]] | None = field(default=None, metadata=ADDED)

    @property
    def verdict(self) -> Message | None:
        """What speaks against the predictions, compared with a constant; None if nothing does."""
        return judge(self)


@dataclass(frozen=True, repr=False)
class CrossValidation(Result):
    """Errors of models with the same settings, each fitted to all folds but one."""

    n_folds: int
    metric: str  # "error" or "rmse"
    errors: list[float]  # one for each fold
    mean: float
    # The 95 % interval of the mean: by Wilson (1927) for errors, by Student's t for root mean
    # squared errors, both with the variance of Nadeau and Bengio (2003).
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class RowDivision(Result):
    """How rows were divided into training rows, validation rows and held-out rows."""

    by: str  # "inputs" (copies stay together), "groups" or "time"
    column: str = ""  # of groups or times
    n_groups: int | None = None
    n_held_out_groups: int | None = None
    n_repeated: int | None = None  # rows that repeat the inputs of another row
    is_estimate: bool = False  # whether the numbers are estimates
    since: str = ""  # the first of the times that are held out

    @property
    def text(self) -> str:
        """Which rows are held out, in a few words; "" if they are random and have no copies."""
        if self.by == "time":
            return f"the latest, {self.column} from {self.since} on" if self.since else ""
        if self.by == "groups":
            about = "about " if self.is_estimate else ""
            of_column = f" of column {self.column}" if self.column else ""
            return f"{about}{self.n_held_out_groups:,} of {self.n_groups:,} groups{of_column}"
        return "random, copies stay together" if self.n_repeated else ""


@dataclass(frozen=True, repr=False)
class FitSummary(Result):
    """How a model was fitted."""

    task: str
    source: str
    target: str
    n_rows: int  # training rows
    n_held_out: int
    columns: list[InputColumn]
    n_inputs: int  # the number of columns in the encoded rows
    map_name: str  # "fastfood", ...
    kernel: str  # "gaussian", ...
    n_components: int
    length_scale: float | None  # the geometric mean over columns
    alpha: float
    loss: str  # "log_loss", ..., "squared"
    seed: int
    seconds: dict[str, float]  # by stage, in the order of `STAGES`
    peak_memory: int | None  # bytes, for the whole process
    classes: list[str] | None = None
    tuning: list[TuningPoint] = field(default_factory=list)
    learning_curve: list[LearningPoint] = field(default_factory=list)
    kernel_check: KernelCheck | None = None
    held_out: Evaluation | None = None
    notes: list[str] = field(default_factory=list)
    version: str = ""  # the version of kernelmill
    created: str = ""  # ISO 8601, UTC
    solver: str = field(default="", metadata=ADDED)  # "sgd", "exact", ...
    construction: str = field(default="", metadata=ADDED)  # "SORF (...)", ...
    # Most relevant first; empty if columns have no length scales of their own.
    column_relevance: list[ColumnRelevance] = field(default_factory=list, metadata=ADDED)
    partial_dependence: list[PartialDependence] = field(default_factory=list, metadata=ADDED)
    weights: str = field(default="", metadata=ADDED)  # the column of row weights
    class_weight: str = field(default="", metadata=ADDED)  # "balanced", or labels with weights
    cross_validation: CrossValidation | None = field(default=None, metadata=ADDED)
    refitted: bool = field(default=False, metadata=ADDED)  # whether it was refitted to all rows
    division: RowDivision | None = field(default=None, metadata=ADDED)  # None in older files

    @property
    def ranks_by_predictions(self) -> bool:
        """Whether the relevance of columns is measured by predictions, not by the kernel."""
        return self.map_name in ("additive_fourier", "principal_fourier")

    def __post_init__(self) -> None:
        # Files sort the names; here they are in the order of the stages.
        in_order = {name: self.seconds[name] for name in STAGES if name in self.seconds}
        object.__setattr__(self, "seconds", {**in_order, **self.seconds})


DEFAULT_FIT = "fit (defaults)"
"""The name of the compared model that `fit_table` fits by default."""


@dataclass(frozen=True, repr=False)
class ComparedModel(Result):
    """One model of a comparison."""

    name: str  # "linear", "fastfood", "exact kernel", ...
    family: str  # "linear", "features", "nystroem", "trees" or "exact"
    n_components: int | None
    n_train: int
    error: float  # fraction of wrong predictions, or root mean squared error
    fit_seconds: float
    predict_seconds: float
    peak_memory: int | None  # bytes, in addition to the data
    detail: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Models trained and tested on the same rows."""

    task: str
    source: str
    target: str
    n_train: int
    n_test: int
    error_name: str  # "error" or "rmse"
    models: list[ComparedModel]
    kernel_check: KernelCheck | None = None
    notes: list[str] = field(default_factory=list)
    # Keyword arguments other than the defaults, for a fit to the same table.
    settings: dict[str, Setting] = field(default_factory=dict)
    in_memory: bool = field(default=False, metadata=ADDED)  # whether the table was in memory
    division: RowDivision | None = field(default=None, metadata=ADDED)


def describe_source(source: Any) -> str:
    """Return the files of a table as given, or a description of data in memory, as a string."""
    if is_data(source):
        return describe_data(source)
    if source == "-" or hasattr(source, "read"):
        return "standard input" if source == "-" else "stream"
    if isinstance(source, (list, tuple)):
        return ", ".join(str(each) for each in source)
    return str(source)
