"""Labels as class numbers 0, 1, ..., targets of regression, and row weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_array

from kernelmill.arguments import as_labels
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.learners.blocks import Block, count_rows, fold_blocks
from kernelmill.learners.statistics import check_weights

__all__ = [
    "TargetShape",
    "check_classes",
    "check_labels",
    "check_optional_weights",
    "check_targets",
    "collect_classes",
    "compute_class_factors",
    "compute_row_weights",
    "encode_labels",
    "encode_rows",
    "unite_labels",
]


def check_labels(y: Any, X: Any, name: str) -> NDArray[Any]:
    """Return labels of classes, one for each row of X."""
    if y is None:
        raise ArgumentError(f"{name} requires y to be passed, but the target y is None")
    if isinstance(y, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost",
            "leave out the masked rows",
            parameter="y",
        )
    y = _check_y(as_labels("y", y), multi_output=False, estimator=name)
    check_classification_targets(y)
    if len(y) != count_rows(X):
        raise ArgumentError(
            f"X and y must have the same number of rows, got {count_rows(X)} and {len(y)}"
        )
    labels: NDArray[Any] = y
    return labels


def check_classes(classes: Any) -> NDArray[Any]:
    """Return two or more different labels, sorted."""
    classes = list(classes) if isinstance(classes, (set, frozenset)) else classes
    listed = np.asarray(as_labels("classes", classes))
    if listed.ndim != 1:
        raise ArgumentError(
            f"must be a list of labels, got an array of shape {listed.shape}", parameter="classes"
        )
    try:
        found: NDArray[Any] = np.unique(listed)
    except TypeError as error:
        raise ArgumentTypeError(
            f"labels must be all numbers or all strings, so that they can be sorted: {error}",
            "replace or drop missing labels",
        ) from error
    if len(found) < 2:
        raise ArgumentError(f"there must be at least two classes, got one class: {found.tolist()}")
    return found


def encode_labels(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each label among the sorted classes."""
    codes = np.searchsorted(classes, y).astype(np.intp)
    np.minimum(codes, len(classes) - 1, out=codes)
    unknown = classes[codes] != y
    if np.any(unknown):
        (label,) = y[unknown][:1].tolist()
        raise ArgumentError(
            f"has the label {label!r}, which is not among the classes {classes.tolist()}",
            "pass all labels as `classes` in the first call",
            parameter="y",
        )
    return codes


def compute_class_factors(
    class_weight: Any, classes: NDArray[Any], totals: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the factors of the row weights by class, or None.

    `totals` holds the sum of the weights of each class, or None if it is not known.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ArgumentError(
                f"must be a dict, 'balanced' or None, got {class_weight!r}",
                parameter="class_weight",
            )
        if totals is None:
            raise ArgumentError(
                "is 'balanced', which needs the number of rows of each class in advance",
                "pass the weights as a dict from labels to numbers",
                parameter="class_weight",
            )
        present = totals > 0
        factors = np.ones(len(classes))
        factors[present] = totals.sum() / (present.sum() * totals[present])
        return factors
    if not isinstance(class_weight, Mapping):
        raise ArgumentTypeError(
            f"must be a dict, 'balanced' or None, got {class_weight!r}", parameter="class_weight"
        )
    known = {label: position for position, label in enumerate(classes.tolist())}
    factors = np.ones(len(classes))
    given = {
        label.item() if isinstance(label, np.generic) else label: weight
        for label, weight in class_weight.items()
    }
    unknown = [label for label in given if label not in known]
    if unknown and not known.keys() <= given.keys():
        # As in scikit-learn, classes that do not occur may have a weight if all others have one.
        raise ArgumentError(
            f"has a weight for {unknown[0]!r}, which is not one of the classes {classes.tolist()}",
            "correct the label",
            "also set the weights of all other classes",
            parameter="class_weight",
        )
    for label, weight in given.items():
        if label in unknown:
            continue
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ArgumentError(
                f"must have finite weights that are not negative, got {weight!r} for {label!r}",
                parameter="class_weight",
            )
        factors[known[label]] = weight
    return factors


def compute_row_weights(
    sample_weight: Any, codes: NDArray[np.intp], factors: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the weight of each row, or None if all are 1."""
    weights = check_optional_weights(sample_weight, len(codes))
    if factors is not None:
        weights = factors[codes] if weights is None else weights * factors[codes]
    return check_optional_weights(weights, len(codes))  # products may be infinite


def encode_rows(
    X: Any, y: Any, sample_weight: Any, class_weight: Any, name: str
) -> tuple[NDArray[Any], Block]:
    """Return the classes of all rows, and the rows with numbers of classes and weights."""
    labels = check_labels(y, X, name)
    classes = check_classes(labels)
    codes = encode_labels(labels, classes)
    plain = compute_row_weights(sample_weight, codes, None)
    totals = np.bincount(codes, plain, len(classes)).astype(np.float64)
    factors = compute_class_factors(class_weight, classes, totals)
    return classes, Block(X, codes, compute_row_weights(sample_weight, codes, factors))


def collect_classes(
    blocks: Iterable[Block], classes: Any, name: str
) -> tuple[NDArray[Any], NDArray[np.float64], int]:
    """Return all labels of unchecked blocks, the weight of each, and the number of rows.

    `classes` are the labels if they are known, else None.
    """
    known: NDArray[Any] | None = None if classes is None else check_classes(classes)
    found = fold_blocks(blocks, partial(_count_labels, known, name), _add_counts)
    if found.labels is None:  # pieces leave out rows of weight zero
        raise ArgumentError(
            "must be positive for at least one row, got only zeros", parameter="sample_weight"
        )
    return found.labels, found.totals, found.n_rows


class _LabelCounts(NamedTuple):
    """Labels, the weight of each, and the number of rows."""

    labels: NDArray[Any] | None
    totals: NDArray[np.float64]
    n_rows: int


def _count_labels(
    known: NDArray[Any] | None,
    name: str,
    before: _LabelCounts | None,
    blocks: Iterable[Block],
    _: int,
) -> _LabelCounts:
    counts = before
    if counts is None:
        counts = _LabelCounts(known, np.zeros(0 if known is None else len(known)), 0)
    for X, y, weight in blocks:
        labels = check_labels(y, X, name)
        found = np.unique(labels) if known is None else known
        codes = encode_labels(labels, found)
        totals = np.bincount(codes, compute_row_weights(weight, codes, None), len(found))
        counts = _add_counts(counts, _LabelCounts(found, totals.astype(np.float64), len(labels)))
    return counts


def _add_counts(a: _LabelCounts, b: _LabelCounts) -> _LabelCounts:
    if a.labels is None or b.labels is None:
        return b if a.labels is None else a
    labels = unite_labels(a.labels, b.labels)
    totals = np.zeros(len(labels))
    totals[encode_labels(a.labels, labels)] += a.totals
    totals[encode_labels(b.labels, labels)] += b.totals
    return _LabelCounts(labels, totals, a.n_rows + b.n_rows)


def unite_labels(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels of both, in a dtype that tells them apart."""
    kinds = [each.dtype.kind in "OU" for each in (first, second)]
    if kinds[0] == kinds[1]:
        labels = np.union1d(first, second)
        if len(labels) == len({*first.tolist(), *second.tolist()}):
            return labels
    raise ArgumentTypeError(
        f"must have labels of one type in all blocks, got {first.dtype} and {second.dtype}",
        "convert all of them to strings",
        parameter="y",
    )


def check_targets(y: Any, n_rows: int, name: str) -> NDArray[np.float64]:
    """Return the targets of a regression in float64, of one or two dimensions as given."""
    if y is None:
        raise ArgumentError(f"{name} requires y to be passed, but the target y is None")
    if isinstance(y, np.ma.MaskedArray):
        raise ArgumentTypeError(
            "is a masked array, whose mask would be lost",
            "leave out the masked rows",
            parameter="y",
        )
    if (dtype := getattr(y, "dtype", None)) is not None and not hasattr(dtype, "kind"):
        dtype = np.asarray(y[:0]).dtype  # those of polars have no kind
    if getattr(dtype, "kind", "") in ("m", "M"):
        raise ArgumentTypeError(
            f"must be numbers, got dtype {y.dtype}",
            "convert times to floats in a unit",
            parameter="y",
        )
    try:
        Y = check_array(
            y,
            dtype=np.float64,
            ensure_2d=False,
            ensure_min_samples=0,
            input_name="y",
            estimator=name,
        )
    except OverflowError:
        raise ArgumentError(
            "must hold numbers that float64 can represent, got an integer beyond 1.8e308",
            parameter="y",
        ) from None
    if Y.ndim not in (1, 2) or 0 in Y.shape[1:]:
        raise ArgumentError(
            f"must have shape (n_samples,) or (n_samples, n_outputs), got {Y.shape}",
            parameter="y",
        )
    if len(Y) != n_rows:
        raise ArgumentError(
            "X and y have inconsistent numbers of samples: y must have one entry for each row of "
            f"X, got {n_rows} rows and {len(Y)} entries"
        )
    return np.asarray(Y)


@dataclass(frozen=True)
class TargetShape:
    """The number of dimensions of the targets of a regression, and of outputs."""

    ndim: int
    n_outputs: int

    @classmethod
    def of_targets(cls, Y: NDArray[Any]) -> TargetShape:
        """Return the shape of checked targets."""
        return cls(Y.ndim, Y[:1].size)

    def require(self, Y: NDArray[Any]) -> None:
        """Raise if further targets have another shape."""
        if TargetShape.of_targets(Y) != self:
            shapes = [
                "(n_samples,)" if shape.ndim == 1 else f"(n_samples, {shape.n_outputs})"
                for shape in (self, TargetShape.of_targets(Y))
            ]
            raise ArgumentError(
                f"must have shape {shapes[0]} as in the first call, got {shapes[1]}",
                "call fit to start again with other outputs",
                parameter="y",
            )

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of shape (n_samples, n_outputs) with the dimensions of the targets."""
        return values if self.ndim == 2 else values[:, 0]


def check_optional_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return the row weights, or None for weights of one; one number stands for all."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    return check_weights(np.full(n_rows, weights) if weights.ndim == 0 else weights, n_rows)
