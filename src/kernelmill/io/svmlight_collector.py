"""Rows of many pieces of text as one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.io.svmlight_numbering import LARGEST_INDEX
from kernelmill.io.svmlight_rows import SvmlightRows, csr_of_increasing

__all__ = ["RowCollector"]


class RowCollector:
    r"""Copies rows behind each other into arrays that grow: all is in memory once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kernelmill.io.svmlight_collector import RowCollector
    >>> from kernelmill.io.svmlight_rows import SvmlightText, parse_rows
    >>> collector = RowCollector("float64")
    >>> for text in (b"1 1:5\n", b"-1 2:6\n"):
    ...     collector.add(parse_rows(SvmlightText(text, Path("rows.svm")), "float64"))
    >>> X, labels = collector.finish(n_features=2, zero_based=False)
    >>> X.toarray()
    array([[5., 0.],
           [0., 6.]])
    """

    def __init__(self, dtype: Any) -> None:
        self._labels = _GrowingArray(np.float64)
        self._ends = _GrowingArray(np.int64)
        self._indices = _GrowingArray(np.int32)
        self._values = _GrowingArray(dtype)

    def add(self, rows: SvmlightRows) -> None:
        """Take in rows; their arrays may be used again."""
        self._ends.extend(rows.indptr[1:], plus=self._values.used)
        self._labels.extend(rows.labels)
        self._indices.extend(rows.indices)
        self._values.extend(rows.data)

    def finish(self, n_features: int, zero_based: bool) -> tuple[Any, NDArray[np.float64]]:
        """A CSR array and the labels; nothing can be added after that."""
        ends, indices, values = self._ends.finish(), self._indices.finish(), self._values.finish()
        indptr = np.zeros(len(ends) + 1, np.int32 if len(values) <= LARGEST_INDEX else np.int64)
        indptr[1:] = ends
        if not zero_based:
            indices -= 1
        return csr_of_increasing(values, indices, indptr, n_features), self._labels.finish()


class _GrowingArray:
    def __init__(self, dtype: Any) -> None:
        self.used = 0
        self._array: NDArray[Any] = np.empty(0, dtype)

    def extend(self, values: NDArray[Any], plus: int = 0) -> None:
        end = self.used + len(values)
        if end > len(self._array):
            # The C library moves the pages of large arrays rather than their bytes.
            self._array.resize(max(end, len(self._array) * 5 // 4), refcheck=False)
        self._array[self.used : end] = values
        if plus:
            self._array[self.used : end] += plus
        self.used = end

    def finish(self) -> NDArray[Any]:
        self._array.resize(self.used, refcheck=False)
        return self._array
