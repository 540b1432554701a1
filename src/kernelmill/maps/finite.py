"""The error for features and scores that are not finite, wherever they leave the C++ core."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.formatting import plain

__all__ = [
    "SMALLER_ROWS",
    "NotFinite",
    "NotFiniteError",
    "find_not_finite",
    "require_finite",
]

SMALLER_ROWS = ("scale the columns, for example with StandardScaler", "look for outliers")
"""Remedies for features, scores and sums of them that are too large."""

_ORDINARY = 1e6  # numbers up to which the rows are not to blame


class NotFinite(NamedTuple):
    """Rows whose features or scores are NaN or infinite.

    Attributes
    ----------
    what : str
        "features", "scores" or "standard deviations".
    dtype : str
        Their type.
    row, n_rows : int
        The first of these rows, and how many there are.
    largest : float
        The largest number of that row of X in size. NaN if that is not known.
    column : int
        Where it is.
    """

    what: str
    dtype: str
    row: int
    n_rows: int
    largest: float
    column: int

    def describe(self, row: str) -> tuple[str, tuple[Remedy | str, ...]]:
        """Return the problem, with a name of the row, and remedies."""
        problem = f"the {self.what} of {row} are not finite in {self.dtype}"
        is_ordinary = abs(self.largest) <= _ORDINARY  # not if it is NaN
        if not np.isnan(self.largest):
            problem += ", although its" if is_ordinary else ": its"
            problem += f" largest number is {self.largest:.3g}, in column {self.column}"
        if self.n_rows > 1:
            problem += f" ({plain.count(self.n_rows - 1, 'more row')} like it)"
        if is_ordinary:
            smaller = "use a map or a model with smaller coefficients"
            return problem, (smaller, Remedy("use a larger length scale", length_scale=...))
        exact = ["pass the data in float64"] if self.dtype == "float32" else []
        return problem, (*SMALLER_ROWS, *exact)

    def error(self, first_row: int | None = None) -> NotFiniteError:
        """Return the error, which names the row if the number of the first row of X is known."""
        row = "a row" if first_row is None else f"row {first_row + self.row}"
        problem, remedies = self.describe(row)
        error = NotFiniteError(problem, *remedies)
        error.found = self
        return error


class NotFiniteError(ArgumentError):
    """Features or scores of some rows are NaN or infinite.

    Attributes
    ----------
    found : NotFinite
    """

    found: NotFinite


def find_not_finite(values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows that have NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.maps.finite import find_not_finite
    >>> find_not_finite(np.array([[1.0, 2.0], [3.0, np.inf]])).tolist()
    [1]
    """
    zeros = np.zeros((1, values.shape[1]), values.dtype)
    sums = np.empty((len(values), 1), values.dtype)  # of products with zeros: 0 or NaN
    _native.score_rows(values, zeros, sums, 0)
    return np.flatnonzero(np.isnan(sums))


def require_finite(values: NDArray[Any], X: Any, what: str, first_row: int | None = None) -> None:
    """Raise a `NotFiniteError` if features or scores of the rows of X are not finite.

    The error names the row if the number of the first row of X is given.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.maps.finite import require_finite
    >>> require_finite(np.array([[0.0], [np.inf]]), np.array([[1.0, 2.0], [1e200, 3.0]]), "scores")
    Traceback (most recent call last):
    kernelmill.maps.finite.NotFiniteError: the scores of a row are not finite in float64: \
its largest number is 1e+200, in column 0; scale the columns, for example with \
StandardScaler, or look for outliers.
    """
    rows = find_not_finite(values)
    if rows.size:
        row = int(rows[0])
        largest, column = _largest_number(X, row)
        raise NotFinite(what, values.dtype.name, row, rows.size, largest, column).error(first_row)


def _largest_number(X: Any, row: int) -> tuple[float, int]:
    """Return the largest number of a row in size, and its column; NaN for what is no matrix."""
    if isinstance(X, np.ndarray):
        numbers, columns = X[row], None
    elif hasattr(X, "indptr"):
        part = slice(X.indptr[row], X.indptr[row + 1])
        numbers, columns = X.data[part], X.indices[part]
    else:
        return np.nan, 0
    if numbers.dtype.kind not in "fiub" or not numbers.size:
        return np.nan, 0
    place = int(np.abs(numbers.astype(np.float64)).argmax())
    return float(numbers[place]), place if columns is None else int(columns[place])
