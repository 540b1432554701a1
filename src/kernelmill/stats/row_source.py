"""The rows of a sample in blocks of any size: of a matrix, or of a stream that is read once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _get_feature_names

from kernelmill.learners.mapped_rows import n_rows_of, take_rows
from kernelmill.maps.base import check_data
from kernelmill.random import Stream

__all__ = ["MatrixRows", "RowSource", "StreamRows", "row_source", "stacked"]


class TwoSampleTest(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """Stands for the estimator that scikit-learn's checks ask for."""


class RowSource(ABC):
    """Rows of the sample called `name`, to be taken from the front."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_columns: int | None = None
        self.column_names: NDArray[Any] | None = None

    @abstractmethod
    def take(self, n_rows: int) -> Any:
        """The next rows: as many as asked for, fewer at the end, None after it."""

    @abstractmethod
    def put_back(self, rows: Any) -> None:
        """Make these, which were the last ones taken, the next rows."""

    def _checked(self, rows: Any) -> Any:
        """The rows as maps take them; all blocks of one sample have the same columns."""
        try:
            names = _get_feature_names(rows)
            rows = check_data(TwoSampleTest(), rows, reset=True, keep_integers=True)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.name} cannot be tested: {error}") from error
        if self.n_columns is None:
            self.n_columns, self.column_names = rows.shape[1], names
        elif rows.shape[1] != self.n_columns:
            raise ValueError(
                f"All blocks of {self.name} must have the same columns, got {self.n_columns} "
                f"columns first and {rows.shape[1]} later; give blocks of one table."
            )
        return rows


class MatrixRows(RowSource):
    """The rows of a matrix or frame, in the order of a random permutation if there is one."""

    def __init__(self, name: str, X: Any, order: Stream | None) -> None:
        super().__init__(name)
        self.X = self._checked(X)
        self.n_rows = n_rows_of(self.X)
        self._order = None if order is None else order.permutation(self.n_rows)
        self._taken = 0

    def take(self, n_rows: int) -> Any:
        """The next rows."""
        rows = slice(self._taken, min(self._taken + n_rows, self.n_rows))
        self._taken = rows.stop
        if rows.start == rows.stop:
            return None
        return take_rows(self.X, rows if self._order is None else self._order[rows])

    def put_back(self, rows: Any) -> None:
        """Make these, which were the last ones taken, the next rows."""
        self._taken -= rows.shape[0]


class StreamRows(RowSource):
    """The rows of an iterable of blocks, each of which is let go once its rows are taken."""

    def __init__(self, name: str, blocks: Any) -> None:
        super().__init__(name)
        self._blocks: Iterator[Any] = iter(blocks)
        self._ahead: list[Any] = []

    def take(self, n_rows: int) -> Any:
        """The next rows, whatever the blocks are that they come in."""
        taken: list[Any] = []
        missing = n_rows
        while missing and (block := self._next_block()) is not None:
            if block.shape[0] > missing:
                self._ahead.append(block[missing:])
                block = block[:missing]
            taken.append(block)
            missing -= block.shape[0]
        return stacked(taken) if taken else None

    def put_back(self, rows: Any) -> None:
        """Make these, which were the last ones taken, the next rows."""
        self._ahead.append(rows)

    def _next_block(self) -> Any:
        if self._ahead:
            return self._ahead.pop()
        for block in self._blocks:
            if not hasattr(block, "shape") and not isinstance(block, (list, tuple)):
                raise TypeError(
                    f"{self.name} must be a matrix or an iterable of matrices, got an iterable "
                    f"with {block!r:.50} in it; put rows together in blocks."
                )
            if n_rows_of(block):
                # A copy: whoever gives the blocks may fill the same array again.
                return self._checked(block).copy()
        return None


def row_source(name: str, X: Any, order: Stream | None) -> MatrixRows | StreamRows:
    """The rows of X, a matrix or an iterable of blocks."""
    if isinstance(X, (str, bytes, dict)):
        raise TypeError(
            f"{name} must be a matrix or an iterable of blocks of rows, got {type(X).__name__}."
        )
    return StreamRows(name, X) if _is_stream(X) else MatrixRows(name, X, order)


def _is_stream(X: Any) -> bool:
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    if isinstance(X, (list, tuple)):  # a list of matrices, or a matrix as a list of rows
        return bool(X) and len(getattr(X[0], "shape", ())) == 2
    return hasattr(X, "__iter__")


def stacked(parts: list[Any]) -> Any:
    """Checked rows one below the other; sparse if any of them is."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return scipy.sparse.vstack([scipy.sparse.csr_array(part) for part in parts], format="csr")
