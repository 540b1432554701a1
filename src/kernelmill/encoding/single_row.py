"""Encoding of single rows given as mappings, which is faster than encoding a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding, OrdinalEncoding
from kernelmill.encoding.encoder import ColumnEncoder, scale_rows

__all__ = ["RowEncoder"]

_Write = Callable[[Any, list[float], int], bool]


class RowEncoder:
    """Encodes rows of finite numbers and known categories as a `ColumnEncoder` does, bit for bit.

    Rows with missing values, dates, new categories or numbers as strings are not supported.

    Examples
    --------
    >>> from kernelmill.encoding.columns import CategoryEncoding, NumericEncoding
    >>> from kernelmill.encoding.encoder import ColumnEncoder
    >>> from kernelmill.encoding.single_row import RowEncoder
    >>> age, town = NumericEncoding("age", 40.0, 20.0), CategoryEncoding("town", ("Pisa", "Rome"))
    >>> encoder = RowEncoder(ColumnEncoder([age, town], "error"))
    >>> encoder.encode({"age": 50, "town": "Rome"})
    array([[0.5, 0. , 1. ]], dtype=float32)
    >>> encoder.encode({"age": 50, "town": "Bari"}) is None
    True
    """

    def __init__(self, encoder: ColumnEncoder) -> None:
        self._width = encoder.n_inputs
        self._scaling = encoder.rows
        self._steps: list[tuple[str, int, _Write]] = []
        begin = 0
        for column in encoder.columns:
            if column.n_columns:
                self._steps.append((column.name, begin, _make_writer(column)))
            begin += column.n_columns

    def encode(self, row: Mapping[str, Any]) -> NDArray[np.float32] | None:
        """Return the encoded row, of shape (1, n_inputs), or None if it has other values."""
        out = [0.0] * self._width
        for name, begin, write in self._steps:
            if name not in row or not write(row[name], out, begin):
                return None
        with np.errstate(over="ignore"):
            encoded = np.array([out], np.float32)
        if not np.isfinite(encoded).all():
            return None
        scaled: NDArray[np.float32] = scale_rows(encoded, self._scaling)
        return scaled


def _make_writer(column: Any) -> _Write:
    """Return a function that encodes a value, or returns False."""
    if isinstance(column, NumericEncoding):
        return _number_writer(column)
    if isinstance(column, CategoryEncoding):
        positions = {category: place for place, category in enumerate(column.categories)}
        return _lookup_writer({text: (place, 1.0) for text, place in positions.items()})
    if isinstance(column, OrdinalEncoding):
        ranks = (np.arange(len(column.levels), dtype=np.float64) - column.mean) / column.scale
        found = zip(column.levels, ranks.tolist(), strict=True)
        return _lookup_writer({level: (0, rank) for level, rank in found})
    return lambda value, out, begin: False


def _lookup_writer(known: Mapping[str, tuple[int, float]]) -> _Write:
    def write(value: Any, out: list[float], begin: int) -> bool:
        place = known.get(value) if type(value) is str else None
        if place is None:
            return False
        out[begin + place[0]] = place[1]
        return True

    return write


def _number_writer(column: NumericEncoding) -> _Write:
    half_mean, half_scale = column.mean / 2, column.scale / 2
    is_linear = bool(column.scale) and (column.transform is None or column.both)

    def write(value: Any, out: list[float], begin: int) -> bool:
        if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        if not math.isfinite(number):
            return False
        if column.transform is not None or column.both:
            one = np.zeros((1, column.n_columns))
            column.write(np.array([number]), one)
            out[begin : begin + column.n_columns] = one[0].tolist()
        elif is_linear:
            out[begin] = (number / 2 - half_mean) / half_scale
        return True

    return write
