"""Keys of rows: rows with equal keys are either all held out or all training rows.

A key is a 64-bit integer. By default it is a hash of the inputs of a row as they were read, so that
copies of a row have the same key in every file format. It can also be a hash of the value of one
column, the group of the row, or a time, by which keys are ordered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kernelmill.encoding.columns import category_values
from kernelmill.encoding.dates import find_seconds
from kernelmill.encoding.inputs import Inputs
from kernelmill.random.row_hashes import Keys, hash_numbers, hash_rows, mix, multipliers

__all__ = ["InputKeys", "RowKeys"]

_NO_VALUE = hash_numbers(np.array([np.nan]), np.uint64(1))[0]
_ONE = np.uint64(1)


class RowKeys(ABC):
    """What the keys of rows are, for every pass over a table."""

    @abstractmethod
    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the keys of the rows of a block.

        `positions` are those of the rows in the table, if they are not consecutive.
        """


@dataclass(frozen=True)
class InputKeys(RowKeys):
    """Hashes of the inputs: of numbers by value, of categories and dates by what they stand for.

    Zeros are equal whatever their sign, and so are all missing values of a column. Names of columns
    do not matter, but their order does.
    """

    inputs: Inputs

    def of(self, block: Any, positions: NDArray[np.int64] | None = None) -> Keys:
        """Return the hashes of the inputs."""
        data = self.inputs.data(block.data)
        columns = self.inputs.columns
        if columns is None:
            return hash_rows(data)
        found = np.zeros(data.num_rows, np.uint64)
        factors = multipliers(np.arange(len(columns)))
        for (name, kind), factor in zip(columns, factors, strict=True):
            found += hash_column(data.column(name), kind, factor)
        return mix(found)


def hash_column(column: Any, kind: str, factor: np.uint64) -> Keys:
    """Return the summands of a column of a block in the hashes of its rows."""
    if kind == "numeric":
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return hash_numbers(numbers, factor)
    if kind == "date" and pa.types.is_temporal(column.type):
        return mix(_hash_seconds(find_seconds(column, "year first")[0]) * factor)
    values = category_values(column)
    words = values.dictionary
    hashes = np.array([_hash_string(each) for each in words.to_pylist()], np.uint64)
    if (
        kind == "date"
    ):  # by value, as other formats have them, if the order of day and month is clear
        for form in ("year first", "time"):
            seconds, wrong = find_seconds(words, form)
            hashes = np.where(wrong, hashes, _hash_seconds(seconds))
    indices = values.indices.fill_null(len(hashes)).to_numpy(zero_copy_only=False)
    found: Keys = mix(np.append(hashes, _NO_VALUE) * factor)[indices]
    return found


def _hash_seconds(seconds: NDArray[np.float64]) -> Keys:
    return hash_numbers(np.rint(seconds * 1e6), _ONE)


def _hash_string(string: str | None) -> int:
    if string is None:
        return int(_NO_VALUE)
    if string in _BOOLEANS:  # true in Parquet, True in text
        string = string.lower()
    return int.from_bytes(blake2b(string.encode(), digest_size=8).digest(), "little")


_BOOLEANS = ("True", "TRUE", "False", "FALSE")
