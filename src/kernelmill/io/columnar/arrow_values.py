"""Conversion of columns of any Arrow type to the kinds of columns in a block."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kernelmill.io.table_file import LARGEST_EXACT
from kernelmill.io.text.records import MISSING_MARKERS, is_number

__all__ = [
    "CATEGORY_TYPE",
    "are_categories",
    "decoded_bytes",
    "detect_kind",
    "drop_codes",
    "exceeds_exact",
    "find_inexact_integer",
    "is_text",
    "nan_to_null",
    "plain_type",
    "row_bytes",
    "text_bytes",
    "to_categories",
    "to_numbers",
    "to_plain",
]

CATEGORY_TYPE = pa.dictionary(pa.int32(), pa.string())
_MARKERS = pa.array(MISSING_MARKERS, pa.string())
_NO_WORDS = pa.array([], pa.string())


def detect_kind(kind: Any) -> str:
    """Return the kind of a column of an Arrow type."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return detect_kind(kind.value_type)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        return "numeric"
    if is_text(kind) or pa.types.is_boolean(kind):  # "false" and "true", as in text files
        return "category"
    is_date = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return "date" if is_date else "other"


def is_text(kind: Any) -> bool:
    """Return whether a type is one of strings."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def decoded_bytes(array: Any) -> int:
    """Return the bytes of strings of which many rows share one, if each row had its own; else 0.

    That is so for dictionaries, runs and views.
    """
    if pa.types.is_dictionary(array.type):
        lengths = _string_bytes(array.dictionary)
        used = array.indices.drop_null().to_numpy(zero_copy_only=False)
        counts = np.bincount(used, minlength=len(lengths))
    elif pa.types.is_run_end_encoded(array.type):
        lengths = _string_bytes(array.values)
        ends = array.run_ends.to_numpy() - array.offset
        counts = np.diff(np.clip(ends, 0, len(array)), prepend=0)
    elif pa.types.is_string_view(array.type):
        return int(_string_bytes(array).sum())
    else:
        return 0
    return int((counts * lengths).sum())


def text_bytes(array: Any) -> int:
    """Return the bytes of the strings that an array holds: each once, if rows share them."""
    strings = _shared_values(array)
    if not (pa.types.is_string(strings.type) or pa.types.is_large_string(strings.type)):
        return int(_string_bytes(strings).sum())
    width = np.int32 if pa.types.is_string(strings.type) else np.int64
    if len(strings) == 0:
        return 0
    offsets = np.frombuffer(strings.buffers()[1], width)[strings.offset :]
    return int(offsets[len(strings)] - offsets[0])


def row_bytes(array: Any) -> NDArray[np.int64]:
    """Return the bytes of the string of each row."""
    lengths = np.append(_string_bytes(_shared_values(array)), 0)  # null is -1
    return np.asarray(lengths[_row_values(array)], np.int64)


def _shared_values(array: Any) -> Any:
    """Return the values that rows share, or those of the rows."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary
    return array.values if pa.types.is_run_end_encoded(array.type) else array


def _row_values(array: Any) -> Any:
    """Return for each row where its value is in the shared ones; -1 if it is null."""
    if pa.types.is_dictionary(array.type):
        return array.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    if pa.types.is_run_end_encoded(array.type):
        rows = np.arange(array.offset, array.offset + len(array))
        return np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
    return np.arange(len(array))


def _string_bytes(strings: Any) -> Any:
    """Return the bytes of each string; 0 if the values are none."""
    if pa.types.is_string_view(strings.type):  # 16 bytes each, of which the first 4 are the length
        views = np.frombuffer(strings.buffers()[1], np.int32)
        lengths = views[4 * strings.offset :: 4][: len(strings)]
        return np.where(strings.is_valid().to_numpy(zero_copy_only=False), lengths, 0).astype(int)
    if not is_text(strings.type):
        return np.zeros(len(strings), np.int64)
    lengths = pc.binary_length(strings.cast(pa.large_string())).fill_null(0)
    return lengths.to_numpy(zero_copy_only=False)


def nan_to_null(numbers: Any) -> Any:
    """Replace NaN in a float64 array by null."""
    if numbers.null_count == 0:
        values = numbers.to_numpy(zero_copy_only=True)
    else:
        values = np.frombuffer(numbers.buffers()[1], np.float64)[numbers.offset :][: len(numbers)]
    # A quick check: the sum is NaN if a value is, or if there are infinities of both signs.
    with np.errstate(all="ignore"):
        if not np.isnan(values.sum()):
            return numbers
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def to_numbers(array: Any) -> Any:
    """Convert a numeric array of any type, or one of strings of numbers, to float64."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif detect_kind(array.type) == "category":
        trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
        missing = pc.is_in(trimmed, value_set=_MARKERS)
        array = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
    elif pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    return nan_to_null(pc.cast(array, pa.float64(), safe=False))


def exceeds_exact(numbers: Any) -> bool:
    """Return whether a number is larger than all integers up to it that float64 represents."""
    extremes = pc.min_max(numbers)
    return any(abs(extremes[name].as_py() or 0) > LARGEST_EXACT for name in ("min", "max"))


def find_inexact_integer(array: Any) -> int | None:
    """Return an integer of the array that float64 may not represent, if any."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    kind = array.type
    is_integer = pa.types.is_decimal(kind) and kind.scale <= 0 and kind.precision > 15
    if not is_integer and kind not in (pa.int64(), pa.uint64()):
        return None
    extremes = pc.min_max(array)
    found = (int(extremes["min"].as_py() or 0), int(extremes["max"].as_py() or 0))
    return next((value for value in found if abs(value) > LARGEST_EXACT), None)


def drop_codes(array: Any, codes: Sequence[str]) -> Any:
    """Replace the codes for missing values, among strings or numbers, by null."""
    if pa.types.is_dictionary(array.type):  # each string once
        found = _are_codes(array.dictionary, codes)
        if not pc.any(found).as_py():
            return array
        indices = pc.if_else(
            found.take(array.indices), pa.scalar(None, array.indices.type), array.indices
        )
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=array.type.ordered)
    found = _are_codes(array, codes)
    return pc.if_else(found, pa.scalar(None, array.type), array) if pc.any(found).as_py() else array


def _are_codes(values: Any, codes: Sequence[str]) -> Any:
    """Return whether each value is one of the codes."""
    kind = values.type
    if detect_kind(kind) == "numeric" and not pa.types.is_null(kind):
        numbers = [float(code) for code in codes if is_number(code)]
        return pc.is_in(values.cast(pa.float64(), safe=False), pa.array(numbers, pa.float64()))
    if detect_kind(kind) == "category" and not pa.types.is_boolean(kind):
        words = pc.utf8_trim_whitespace(values.cast(pa.string()))
        return pc.is_in(words, pa.array(list(codes), pa.string()))
    return pa.array(np.zeros(len(values), bool))


def plain_type(kind: Any) -> Any:
    """Return the type of values, without dictionaries, runs and views."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_null(kind) else kind


def to_plain(array: Any) -> Any:
    """Return an array of the same values, of its `plain_type`."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        words = to_plain(array.dictionary)  # strings as views cannot be taken
        array = pa.DictionaryArray.from_arrays(array.indices, words)
    return array.cast(plain_type(array.type))


def to_categories(array: Any, words: Collection[str] = ()) -> Any:
    """Convert an array to a dictionary array of trimmed strings.

    Markers of missing values become null, except those in `words`. Every string is in the
    dictionary once.
    """
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.string()).dictionary_encode()
    if array.type.value_type != pa.string():
        strings = array.dictionary.cast(pa.string())
    else:
        strings = array.dictionary
    trimmed = pc.utf8_trim_whitespace(strings)
    markers = [each for each in MISSING_MARKERS if each not in words]
    missing = pc.is_in(trimmed, value_set=pa.array(markers, pa.string()))
    indices = array.indices.cast(pa.int32())
    if not (trimmed.equals(strings) and not pc.any(missing).as_py() and strings.null_count == 0):
        trimmed = pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)
        strings = trimmed.drop_null().unique()
        places = pc.index_in(trimmed, value_set=strings, skip_nulls=True)
        indices = places.take(indices)
    return pa.DictionaryArray.from_arrays(indices, strings)


def are_categories(arrays: Sequence[Any]) -> list[bool]:
    """Whether each of many arrays is what `to_categories` makes of it, in few calls for all."""
    words = [array.dictionary if array.type == CATEGORY_TYPE else _NO_WORDS for array in arrays]
    if not words:
        return []
    strings = pa.concat_arrays(words)
    trimmed = pc.utf8_trim_whitespace(strings)
    changed = pc.or_(pc.not_equal(trimmed, strings), pc.is_in(trimmed, value_set=_MARKERS))
    places = pc.indices_nonzero(pc.fill_null(changed, True)).to_numpy()
    ends = np.cumsum([len(each) for each in words])
    n_changed = np.diff(np.searchsorted(places, ends), prepend=0)
    found = zip(arrays, n_changed.tolist(), strict=True)
    return [array.type == CATEGORY_TYPE and count == 0 for array, count in found]
