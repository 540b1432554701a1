"""Columns of any Arrow type as the kinds of values that a block holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kernelmill.io.text.records import MISSING_MARKERS

__all__ = [
    "CATEGORY_TYPE",
    "as_categories",
    "as_numbers",
    "inexact_integer",
    "kind_of_type",
    "nan_as_null",
]

CATEGORY_TYPE = pa.dictionary(pa.int32(), pa.string())
LARGEST_EXACT = 2**53
_MARKERS = pa.array(MISSING_MARKERS, pa.string())


def kind_of_type(kind: Any) -> str:
    """The kind of a column of a pyarrow type."""
    if pa.types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        return "numeric"
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_boolean(kind)  # "false" and "true", as in text
    ):
        return "category"
    return "date" if pa.types.is_temporal(kind) else "other"


def nan_as_null(numbers: Any) -> Any:
    """A float64 array in which what is not a number is null."""
    if numbers.null_count == 0:
        values = numbers.to_numpy(zero_copy_only=True)
    else:
        values = np.frombuffer(numbers.buffers()[1], np.float64)[numbers.offset :][: len(numbers)]
    # The sum is the quick look: it is NaN if a value is, or if infinities of both signs are added.
    with np.errstate(all="ignore"):
        if not np.isnan(values.sum()):
            return numbers
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def as_numbers(array: Any) -> Any:
    """A numeric array of any type, or one of strings of numbers, as float64."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif kind_of_type(array.type) == "category":
        trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
        missing = pc.is_in(trimmed, value_set=_MARKERS)
        array = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
    elif pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    return nan_as_null(pc.cast(array, pa.float64(), safe=False))


def inexact_integer(array: Any) -> int | None:
    """A whole number of the array beyond 2**53, where float64 merges different ones, if any."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    if array.type not in (pa.int64(), pa.uint64()):
        return None
    extremes = pc.min_max(array)
    found = (extremes["min"].as_py() or 0, extremes["max"].as_py() or 0)
    return next((value for value in found if abs(value) > LARGEST_EXACT), None)


def as_categories(array: Any) -> Any:
    """Strings, or values that can be written as such, as a dictionary of trimmed strings.

    Missing markers become null; every string is in the dictionary once.
    """
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    if array.type.value_type != pa.string():
        words = array.dictionary.cast(pa.string())
    else:
        words = array.dictionary
    trimmed = pc.utf8_trim_whitespace(words)
    missing = pc.is_in(trimmed, value_set=_MARKERS)  # also true where null is, if markers had it
    indices = array.indices.cast(pa.int32())
    if not (trimmed.equals(words) and not pc.any(missing).as_py() and words.null_count == 0):
        trimmed = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
        words = trimmed.drop_null().unique()
        places = pc.index_in(trimmed, value_set=words, skip_nulls=True)
        indices = places.take(indices)
    return pa.DictionaryArray.from_arrays(indices, words)
