"""The results of the workflows as plain values: for terminals, pages, model files and JSON.

Each class declares its fields once. The `json` module can write what `to_record` returns, in which
NaN and infinities are None, and `from_record` restores the object.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from kernelmill.diagnostics.records import FeatureRequirement
from kernelmill.formatting import plain
from kernelmill.io.sources import describe_data, is_data
from kernelmill.storage.fields import ADDED, Stored

if TYPE_CHECKING:
    from kernelmill.diagnostics import Measured

__all__ = [
    "TABLE_MODEL",
    "Calibration",
    "ColumnRelevance",
    "ComparedModel",
    "Comparison",
    "Coverage",
    "CrossValidation",
    "Diagnosis",
    "ErrorRange",
    "Evaluation",
    "FitSummary",
    "GramCheck",
    "InputColumn",
    "Interval",
    "KernelCheck",
    "LearningPoint",
    "PartialDependence",
    "Ranking",
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
            elif isinstance(value, list) and value and isinstance(value[0], Result):
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
    n_columns: int  # of the encoded rows
    missing: int = 0
    detail: str = ""  # such as "mean 38.6, deviation 13.6" or "16 categories, 2 rare pooled"


@dataclass(frozen=True, repr=False)
class ColumnRelevance(Result):
    """How much a column contributes to the distances of the kernel, or to predictions."""

    name: str
    # Its spread in units of its length scale, or the change of predictions if its values are
    # exchanged; 1 for the largest of all columns.
    relevance: float
    low: float | None = None  # the range of several searches; None for given length scales
    high: float | None = None


@dataclass(frozen=True, repr=False)
class PartialDependence(Result):
    """Mean predictions with one column set to each of several values."""

    name: str
    kind: str  # "numeric" or "category"
    values: list[float | str]  # ascending numbers, or categories, the most frequent ones first
    quantity: (
        str  # "prediction", "probability", or "share" of the rows that a class is predicted for
    )
    outputs: list[str]  # the target, the second of two classes, or some classes
    means: list[list[float]]  # one list for each output
    n_rows: int


@dataclass(frozen=True, repr=False)
class TuningPoint(Result):
    """Settings that were tried in tuning, and their error on validation rows."""

    length_scale: float
    alpha: float
    error: float
    criterion: str = "squared error"  # of a ridge regression; or "log loss", "error" of the model
    kernel: str = field(default="", metadata=ADDED)
    per_column: bool = field(default=False, metadata=ADDED)  # length_scale is then a mean
    n_components: int = field(default=0, metadata=ADDED)  # of the map that was tried; 0: not known
    # What else differs: "64 principal components", "steps, weight 10", "linear kernel, weight 1",
    # "L-BFGS".
    variant: str = field(default="", metadata=ADDED)
    chosen: bool = field(default=False, metadata=ADDED)  # at most one for each criterion


@dataclass(frozen=True, repr=False)
class LearningPoint(Result):
    """The state of training after a number of rows (counted again in each epoch)."""

    rows: int
    loss: float | None = None  # the mean loss of the rows seen since the last point
    error: float | None = None  # on held-out rows, at most 1000
    held_out_loss: float | None = field(default=None, metadata=ADDED)  # of the same rows


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
    observed: list[float]  # the fraction of correct predictions in it
    counts: list[int]


@dataclass(frozen=True, repr=False)
class Ranking(Result):
    """The number of rows of the second class among the rows where it is most probable."""

    positive: str  # the second class
    base_rate: float  # its share of all rows
    share: list[float]  # of the rows, the most probable first: at most 200, ascending to 1
    recall: list[float]  # the share of the class that is among them


@dataclass(frozen=True, repr=False)
class Coverage(Result):
    """The fraction of targets within mean ± z std, for intervals of a nominal coverage."""

    nominal: list[float]
    observed: list[float]


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """The scores of the predictions for rows whose targets are known."""

    task: str  # "classification" or "regression"
    source: str  # the files, as they were given
    n_rows: int
    # classification: error, error_low, error_high (95 %, Wilson), baseline_error (always predicting
    # the most frequent class), balanced_error, log_loss (if there are probabilities), auc and
    # average_precision (two classes); regression: rmse, mae, r2, target_std
    metrics: dict[str, float | None]
    seconds: float
    classes: list[str] | None = None
    confusion: list[list[int]] | None = None  # rows: the true class, columns: the predicted one
    calibration: Calibration | None = None
    coverage: Coverage | None = None
    actual: list[float] | None = None  # of at most 2000 rows, for a plot
    predicted: list[float] | None = None
    notes: list[str] = field(default_factory=list)
    ranking: Ranking | None = field(default=None, metadata=ADDED)  # of two classes
    # Sums of weights, as `confusion` has numbers of rows; None if rows have no weights.
    weighted_confusion: list[list[float]] | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, repr=False)
class CrossValidation(Result):
    """Errors of models with the same settings, each fitted to all folds but one."""

    n_folds: int
    metric: str  # "error" or "rmse"
    errors: list[float]  # on each fold
    mean: float
    # The 95 % interval of the mean: of errors that of Wilson (1927), of root mean squared errors
    # that of Student's t, both with the variance of Nadeau and Bengio (2003).
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class FitSummary(Result):
    """How a model was fitted."""

    task: str
    source: str
    target: str
    n_rows: int  # trained on
    n_held_out: int
    columns: list[InputColumn]
    n_inputs: int  # columns of the encoded rows
    map_name: str  # "fastfood", ...
    kernel: str  # "gaussian", ...
    n_components: int
    length_scale: float | None  # the geometric mean if there is one for each column
    alpha: float
    loss: str  # "log_loss", ..., "squared"
    seed: int
    seconds: dict[str, float]  # by stage, in the order of `STAGES`
    peak_memory: int | None  # bytes, of the whole process
    classes: list[str] | None = None
    tuning: list[TuningPoint] = field(default_factory=list)
    learning_curve: list[LearningPoint] = field(default_factory=list)
    kernel_check: KernelCheck | None = None
    held_out: Evaluation | None = None
    notes: list[str] = field(default_factory=list)
    version: str = ""  # of kernelmill
    created: str = ""  # ISO 8601, UTC
    solver: str = field(default="", metadata=ADDED)  # "sgd", "exact", ...
    construction: str = field(default="", metadata=ADDED)  # of the map: "SORF (...)", ...
    # By relevance; empty if one length scale serves all columns, or the map has none.
    column_relevance: list[ColumnRelevance] = field(default_factory=list, metadata=ADDED)
    partial_dependence: list[PartialDependence] = field(default_factory=list, metadata=ADDED)
    weights: str = field(default="", metadata=ADDED)  # the column with the weights of rows
    class_weight: str = field(default="", metadata=ADDED)  # "balanced", or labels with weights
    cross_validation: CrossValidation | None = field(default=None, metadata=ADDED)
    refitted: bool = field(default=False, metadata=ADDED)  # to all rows, after the held-out error

    @property
    def ranks_by_predictions(self) -> bool:
        """Whether the relevance of columns is measured by predictions, not by the kernel."""
        return self.map_name in ("additive_fourier", "principal_fourier")

    def __post_init__(self) -> None:
        # Files sort the names; people expect the order of the work.
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
    peak_memory: int | None  # bytes beyond the data
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
    in_memory: bool = field(default=False, metadata=ADDED)  # the table is no file


@dataclass(frozen=True, repr=False)
class Interval(Result):
    """A mean over seeds with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, measured: Measured) -> Interval:
        """Return the record of a measured mean."""
        return cls(*(float(each) if math.isfinite(each) else None for each in measured))


@dataclass(frozen=True, repr=False)
class ErrorRange(Result):
    """Errors of the pairs of rows whose exact kernel values are in an interval."""

    low: float
    high: float
    n_pairs: int
    absolute: Interval
    relative: Interval


@dataclass(frozen=True, repr=False)
class GramCheck(Result):
    """Errors of the Gram matrix of a sample, and their effect on ridge regression."""

    n_rows: int
    n_components: int
    kernel_spectral: float  # norms of the exact matrix
    kernel_frobenius: float
    spectral: Interval  # norms of the difference
    frobenius: Interval
    alpha: float  # for so many rows
    effective_dimension: Interval  # over sets of other rows; no ends if all are in the matrix
    distance: Interval
    fit_change: Interval | None = None  # None without a target


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """The number of features that each map needs on a table, and errors of the recommended map."""

    source: str
    target: str  # "" if none is given
    n_rows: int
    n_sample: int
    n_inputs: int
    kernel: str
    length_scale: float | None
    tolerance: float
    probability: float
    requirements: list[FeatureRequirement]
    recommended: int | None  # the index of a requirement
    recommendation: str
    errors: dict[str, Interval]  # of the recommended map: absolute, rms, capped_relative, ...
    n_components: int | None  # with so many features
    ranges: list[ErrorRange]
    kernel_check: KernelCheck | None
    gram: list[GramCheck]  # with fewer features, and last with so many
    seed: int
    seconds: float
    notes: list[str] = field(default_factory=list)
    # Keyword arguments for a fit of the recommended map to the same table.
    settings: dict[str, Setting] = field(default_factory=dict)
    in_memory: bool = False  # the table is no file


def describe_source(source: Any) -> str:
    """Return the files of a table as given, or a description of data in memory, as a string."""
    if is_data(source):
        return describe_data(source)
    if source == "-" or hasattr(source, "read"):
        return "standard input" if source == "-" else "stream"
    if isinstance(source, (list, tuple)):
        return ", ".join(str(each) for each in source)
    return str(source)
