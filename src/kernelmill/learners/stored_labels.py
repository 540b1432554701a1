"""Labels of classes and lists of numbers as plain values of a model file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.storage import ModelFileError

__all__ = ["labels_from_values", "labels_to_values", "numbers_from_values", "numbers_to_values"]

_MOST_CHARACTERS = 1 << 26  # of all labels together, each as wide as the widest
_PLAIN = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_NAMES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def labels_to_values(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels and their dtype: numbers, booleans, or strings in an array of these or of objects.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.stored_labels import labels_from_values, labels_to_values
    >>> labels_to_values(np.array(["no", "yes"]))
    {'dtype': '<U3', 'labels': ['no', 'yes']}
    >>> labels_from_values({"dtype": "<i4", "labels": [3, 5]})
    array([3, 5], dtype=int32)
    """
    kind = labels.dtype.kind
    listed = labels.tolist()
    if kind == "O" and all(type(label) is str for label in listed):
        return {"dtype": "object", "labels": listed}
    if kind not in _PLAIN or (kind == "f" and labels.dtype.itemsize > 8):
        raise ModelFileError(
            f"Labels must be integers, floats, booleans or strings to be saved, got dtype "
            f"{labels.dtype} with {listed[0]!r:.80}; fit with labels of one of these kinds."
        )
    return {"dtype": labels.dtype.str, "labels": listed}


def labels_from_values(values: Any) -> NDArray[Any]:
    """The labels that `labels_to_values` described: two or more, all different."""
    if type(values) is not dict or set(values) != {"dtype", "labels"}:
        raise ModelFileError("its classes have other fields than dtype and labels")
    dtype, listed = values["dtype"], values["labels"]
    if type(listed) is not list or len(listed) < 2:
        raise ModelFileError("its classes are not a list of two or more")
    pattern = r"object|\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]U[0-9]{1,8}"
    if type(dtype) is not str or not re.fullmatch(pattern, dtype):
        raise ModelFileError(f"its classes have the dtype {str(dtype)[:80]!r}")
    kind = "U" if dtype == "object" else np.dtype(dtype).kind
    if not all(type(label) is _PLAIN[kind] for label in listed):
        raise ModelFileError(f"its classes are not all of the dtype {dtype}")
    if kind == "U" and dtype != "object":
        width = int(dtype[2:])
        if width < max(map(len, listed)) or width * len(listed) > _MOST_CHARACTERS:
            raise ModelFileError(f"its classes do not fit the dtype {dtype}")
    try:
        labels = np.array(listed, dtype=object if dtype == "object" else np.dtype(dtype))
    except OverflowError:
        raise ModelFileError(f"its classes do not fit the dtype {dtype}") from None
    if len(set(labels.tolist())) != len(listed):
        raise ModelFileError("its classes are not all different")
    return labels


def numbers_to_values(numbers: Iterable[Any]) -> list[Any]:
    """Floats as JSON can have them: those that are not finite by name.

    Examples
    --------
    >>> from kernelmill.learners.stored_labels import numbers_from_values, numbers_to_values
    >>> numbers_to_values([1.5, float("nan")])
    [1.5, 'nan']
    >>> numbers_from_values([1.5, "nan"])
    [1.5, nan]
    """
    floats = (float(number) for number in numbers)
    return [number if math.isfinite(number) else str(number) for number in floats]


def numbers_from_values(values: Any) -> list[float]:
    """The floats that `numbers_to_values` described."""
    if type(values) is not list:
        raise ModelFileError(f"{str(values)[:80]} is not a list of numbers")
    for value in values:
        if type(value) is not float and not (type(value) is str and value in _NAMES):
            raise ModelFileError(f"{str(value)[:80]} is not a number")
    return [_NAMES[value] if type(value) is str else value for value in values]
