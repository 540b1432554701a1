"""Labels as codes 0, 1, ..., and the weights that classes give to rows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y

from kernelmill.learners.mapped_rows import n_rows_of

__all__ = ["check_classes", "check_labels", "class_factors", "codes_of", "row_weights"]


def check_labels(y: Any, X: Any, name: str) -> NDArray[Any]:
    """Labels of classes, one for each row of X."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError("y is a masked array, whose mask would be lost; leave those rows out.")
    y = _check_y(y, multi_output=False, estimator=name)
    check_classification_targets(y)
    if len(y) != n_rows_of(X):
        raise ValueError(
            f"X and y must have the same number of rows, got {n_rows_of(X)} and {len(y)}."
        )
    labels: NDArray[Any] = y
    return labels


def check_classes(classes: Any) -> NDArray[Any]:
    """Two or more different labels, sorted."""
    listed = np.asarray(list(classes) if isinstance(classes, (set, frozenset)) else classes)
    if listed.ndim != 1:
        raise ValueError(f"classes must be a list of labels, got an array of shape {listed.shape}.")
    try:
        found: NDArray[Any] = np.unique(listed)
    except TypeError as error:
        raise TypeError(
            f"Labels must be of one kind, all numbers or all strings, so that they can be sorted: "
            f"{error}; replace missing ones."
        ) from error
    if len(found) < 2:
        raise ValueError(
            f"There must be at least two classes to tell apart, got one class: {found.tolist()}."
        )
    return found


def codes_of(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """The position of each label among the sorted classes."""
    codes = np.searchsorted(classes, y).astype(np.intp)
    np.minimum(codes, len(classes) - 1, out=codes)
    unknown = classes[codes] != y
    if np.any(unknown):
        raise ValueError(
            f"y contains the label {y[unknown][0]!r}, which is not among the classes "
            f"{classes.tolist()}; name all labels in `classes` before the first rows."
        )
    return codes


def class_factors(
    class_weight: Any, classes: NDArray[Any], totals: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """What the weights of rows of each class are multiplied by, or None.

    `totals` holds the sum of the weights of each class, or None where it is not known.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}."
            )
        if totals is None:
            raise ValueError(
                "class_weight='balanced' needs to know how often each class occurs, which a part "
                "of the data does not tell; give the weights as a dict of labels and numbers."
            )
        present = totals > 0
        factors = np.ones(len(classes))
        factors[present] = totals.sum() / (present.sum() * totals[present])
        return factors
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}.")
    known = {label: position for position, label in enumerate(classes.tolist())}
    factors = np.ones(len(classes))
    given = {
        label.item() if isinstance(label, np.generic) else label: weight
        for label, weight in class_weight.items()
    }
    unknown = [label for label in given if label not in known]
    if unknown and not known.keys() <= given.keys():
        # As in scikit-learn, classes that do not occur may have a weight if all others have one.
        raise ValueError(
            f"class_weight has a weight for {unknown[0]!r}, which is none of the classes "
            f"{classes.tolist()}; correct the label, or name all classes."
        )
    for label, weight in given.items():
        if label in unknown:
            continue
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(
                f"Weights of classes must be finite and not negative, got {weight!r} for {label!r}."
            )
        factors[known[label]] = weight
    return factors


def row_weights(
    sample_weight: Any,
    X: Any,
    codes: NDArray[np.intp],
    factors: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """The weight of each row, or None where all are 1."""
    weights: NDArray[np.float64] | None = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if factors is not None:
        weights = factors[codes] if weights is None else weights * factors[codes]
    if weights is not None and not np.isfinite(weights.sum()):
        raise ValueError(
            "The sum of sample_weight must be finite, got infinity; divide all weights by the "
            "largest."
        )
    return weights
