"""The results of the workflows as plain values: for terminals, pages, model files and JSON.

A record consists of numbers, strings, lists, dicts and other records. The `json` module can write
what `as_json` returns, and `from_json` of the record's class restores it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

__all__ = [
    "Calibration",
    "ComparedModel",
    "Comparison",
    "Coverage",
    "Evaluation",
    "FitSummary",
    "InputColumn",
    "KernelCheck",
    "LearningPoint",
    "TuningPoint",
    "describe_source",
]


_SHOWN = 6  # elements of lists


class Record:
    """A dataclass with a JSON form, in which NaN and infinities become None."""

    def __repr__(self) -> str:
        """The fields, with long lists abbreviated."""
        parts = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            long = isinstance(value, list) and len(value) > _SHOWN
            parts.append(f"{each.name}={f'<list of {len(value)}>' if long else repr(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def as_json(self) -> dict[str, Any]:
        """The record as dicts, lists, numbers and strings."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The record of which `as_json` returned these values; unknown names raise ValueError."""
        hints = get_type_hints(cls)
        unknown = sorted(set(values) - set(hints))
        if unknown:
            raise ValueError(f"{cls.__name__} has no {unknown[0]!r}.")
        return cls(**{name: _restore(hints[name], value) for name, value in values.items()})


STAGES = ("read", "tune", "train", "evaluate")


@dataclass(frozen=True, repr=False)
class InputColumn(Record):
    """A column of the table and its encoding."""

    name: str
    kind: str  # "numeric", "category" or "matrix" (many numeric columns of a matrix file)
    n_columns: int  # of the encoded rows
    missing: int = 0
    detail: str = ""  # such as "mean 38.6, std 13.6" or "16 categories, 2 of them pooled"


@dataclass(frozen=True, repr=False)
class TuningPoint(Record):
    """Settings that were tried, and their error on validation rows."""

    length_scale: float
    alpha: float
    error: float
    criterion: str = "squared error"  # of a ridge regression; or "log loss", "error" of the model


@dataclass(frozen=True, repr=False)
class LearningPoint(Record):
    """The state of training after a number of rows (counted again in each epoch)."""

    rows: int
    loss: float | None = None  # the mean loss of the rows seen since the last point
    error: float | None = None  # on held-out rows


@dataclass(frozen=True, repr=False)
class KernelCheck(Record):
    """Estimated and exact kernel values of pairs of rows, as in Sivertsen (2014), Figure 4.1."""

    exact: list[float]
    estimated: list[float]
    rms_error: float
    n_components: int


@dataclass(frozen=True, repr=False)
class Calibration(Record):
    """Probabilities of the predicted class, in bins, and how often it was correct."""

    predicted: list[float]  # the mean probability in each non-empty bin
    observed: list[float]  # the fraction of correct predictions in it
    counts: list[int]


@dataclass(frozen=True, repr=False)
class Coverage(Record):
    """The fraction of targets within mean ± z std, for intervals of a nominal coverage."""

    nominal: list[float]
    observed: list[float]


@dataclass(frozen=True, repr=False)
class Evaluation(Record):
    """The scores of the predictions for rows whose targets are known."""

    task: str  # "classification" or "regression"
    source: str  # the files, as they were given
    n_rows: int
    # classification: error, error_low, error_high (95 %, Wilson), baseline_error (always predicting
    # the most frequent class), balanced_error, log_loss (if there are probabilities), auc (two
    # classes); regression: rmse, mae, r2, target_std
    metrics: dict[str, float | None]
    seconds: float
    classes: list[str] | None = None
    confusion: list[list[int]] | None = None  # rows: the true class, columns: the predicted one
    calibration: Calibration | None = None
    coverage: Coverage | None = None
    actual: list[float] | None = None  # of at most 2000 rows, for a plot
    predicted: list[float] | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class FitSummary(Record):
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
    length_scale: float | None
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

    def __post_init__(self) -> None:
        # Files sort the names; people expect the order of the work.
        in_order = {name: self.seconds[name] for name in STAGES if name in self.seconds}
        object.__setattr__(self, "seconds", {**in_order, **self.seconds})


@dataclass(frozen=True, repr=False)
class ComparedModel(Record):
    """One model of a comparison."""

    name: str  # "linear", "fastfood", "exact kernel", ...
    family: str  # "linear", "features" or "exact"
    n_components: int | None
    n_train: int
    error: float  # fraction of wrong predictions, or root mean squared error
    fit_seconds: float
    predict_seconds: float
    peak_memory: int | None  # bytes beyond the data
    detail: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Record):
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
    settings: dict[str, list[str]] = field(default_factory=dict)  # given ones


def describe_source(source: Any) -> str:
    """The files of a table as they were given, as one string."""
    if isinstance(source, (list, tuple)):
        return ", ".join(str(each) for each in source)
    return str(source)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and isinstance(value, Record):
        return value.as_json()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _restore(hint: Any, value: Any) -> Any:
    """`value` as the annotated type, with records restored; other types raise ValueError."""
    if get_origin(hint) in (Union, UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is list and isinstance(value, list):
        return [_restore(get_args(hint)[0], each) for each in value]
    if get_origin(hint) is dict and isinstance(value, dict):
        return {str(name): _restore(get_args(hint)[1], each) for name, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record) and isinstance(value, dict):
        return hint.from_json(value)
    if hint is float and (value is None or (type(value) in (int, float))):
        return float("nan") if value is None else float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise ValueError(f"a record should hold {hint}, got {value!r}.")
