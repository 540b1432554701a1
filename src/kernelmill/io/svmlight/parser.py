"""Svmlight text as arrays, by the native parser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.errors import Remedy
from kernelmill.io.errors import TableError

__all__ = [
    "LARGEST_INDEX",
    "Buffers",
    "RowCollector",
    "SvmlightRows",
    "SvmlightText",
    "make_csr",
    "parse_rows",
]

LARGEST_INDEX = 2**31 - 1

_BLANKS = b" \t\r\n#"
_SHOWN = 32

# The problem and remedies for each name that the native parser reports.
_PROBLEMS: dict[str, tuple[str, ...]] = {
    "label": (
        "a line must start with a label that is a finite number, got {token}",
        "write classes as numbers, such as 1 and 2",
    ),
    "several_labels": (
        "a row must have one label, got {token}",
        "write a separate file for each label",
    ),
    "no_label": (
        "a line must start with a label, got {token}",
        "put a number before it, such as 0",
    ),
    "index": (
        "an index must be a non-negative integer, got {token}",
        "write pairs such as 3:0.5",
    ),
    "negative_index": ("an index must be 0 or more, got {token}",),
    "order": (
        "the indices of a row must increase, got {token} after {before}",
        "sort the pairs of each row, and keep one pair for each index",
    ),
    "colon": ("an index must be followed by a colon and a value, as in 3:0.5, got {token}",),
    "value": (
        "a value must be a finite number, got {token}",
        "replace it",
        "leave the pair out to mean 0",
    ),
    "large_value": ("a value must be in the range of {dtype}, got {token}", "scale the feature"),
    "separator": ("a space or the end of the line must follow a number, got {token}",),
}


@dataclass(frozen=True)
class SvmlightText:
    r"""Complete lines of a file, and where they are in it.

    Attributes
    ----------
    text : bytes-like
        The lines; the last byte is \n.
    path : Path
        The file, for error messages.
    first_line : int
        The number of the first line, from 1.
    n_features : int or None
        The width given by the user, for error messages.
    largest_index : int
        Larger indices are errors.
    """

    text: bytes | bytearray | memoryview
    path: Path
    first_line: int = 1
    n_features: int | None = None
    largest_index: int = LARGEST_INDEX


@dataclass(frozen=True)
class SvmlightRows:
    """Rows in compressed form, with the indices of the file."""

    labels: NDArray[np.float64]
    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    n_lines: int
    smallest: int
    largest: int

    def matrix(self, n_features: int, zero_based: bool) -> Any:
        """Convert to a `scipy.sparse.csr_array`, which uses the same memory."""
        if not zero_based:
            np.subtract(self.indices, 1, out=self.indices)
        return make_csr(self.data, self.indices, self.indptr, n_features)


def make_csr(data: Any, indices: Any, indptr: Any, n_features: int) -> Any:
    """Make a `scipy.sparse.csr_array` of rows whose indices increase."""
    shape = (len(indptr) - 1, n_features)
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.has_canonical_format = True  # saves a pass over the indices later
    return matrix


class Buffers:
    """Arrays to parse into, as large as the largest text so far requires."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype
        self._rows = self._entries = -1

    def arrays(self, rows: int, entries: int) -> tuple[Any, Any, Any, Any]:
        """Labels, starts of the rows, indices and values."""
        if rows > self._rows:
            self._labels = np.empty(rows)
            self._starts = np.empty(rows + 1, np.int32)
            self._rows = rows
        if entries > self._entries:
            self._indices = np.empty(entries, np.int32)
            self._values = np.empty(entries, self._dtype)
            self._entries = entries
        return self._labels, self._starts, self._indices, self._values


def parse_rows(source: SvmlightText, dtype: Any, buffers: Buffers | None = None) -> SvmlightRows:
    r"""Parse complete lines.

    Parameters
    ----------
    source : SvmlightText
        The lines.
    dtype : float32 or float64
        The type of the values; each is rounded to it once.
    buffers : Buffers, optional
        Arrays to reuse, if the rows are needed only until the next text is parsed.

    Raises
    ------
    TableError
        A line is malformed; the message names the file, the line and the column, from 1.

    Examples
    --------
    >>> from pathlib import Path

    >>> rows = parse_rows(SvmlightText(b"+1 2:0.5 7:1 # first\n-1\n", Path("rows.svm")), "float64")
    >>> rows.labels, rows.indices
    (array([ 1., -1.]), array([2, 7], dtype=int32))
    """
    bounds = _native.svmlight_bounds(source.text)
    labels, starts, indices, values = (buffers or Buffers(dtype)).arrays(*bounds)
    rows, entries, lines, smallest, largest, problem, position, column = _native.svmlight_parse(
        source.text, source.largest_index, labels, starts, indices, values
    )
    if problem != "none":
        place = f"{source.path}, line {source.first_line + lines}, column {column + 1}"
        raise explain(source, place, problem, position, np.dtype(dtype))
    return SvmlightRows(
        labels=_shorten(labels, rows),
        data=_shorten(values, entries),
        indices=_shorten(indices, entries),
        indptr=_shorten(starts, rows + 1),
        n_lines=lines,
        smallest=smallest,
        largest=largest,
    )


def _shorten(array: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the beginning of an array; the rest is kept in memory only if it is short."""
    return array[:count] if 2 * count >= len(array) else array[:count].copy()


def explain(
    source: SvmlightText, place: str, problem: str, position: int, dtype: np.dtype[Any]
) -> TableError:
    """Return the error for a problem that the native parser reports at a position of the text."""
    token = _find_token(source.text, position)
    if problem == "large_index":
        limit = f"{place}: an index must be at most {source.largest_index}"
        if source.largest_index == LARGEST_INDEX:
            return TableError(f"{limit}, got {token}")
        if source.n_features is None:
            return TableError(
                f"{limit}, because a vector with more features would take more than 1 GiB, "
                f"got {token}",
                "correct it",
                "number the features without gaps",
            )
        return TableError(
            f"{limit} for {source.n_features} features, got {token}",
            Remedy("increase the number of features", n_features=...),
        )
    texts = _PROBLEMS[problem]
    if problem == "large_value" and dtype == np.float32:
        texts += ("read the values as float64",)
    before = _find_token(source.text, _find_end_before(source.text, position))
    text, *remedies = (each.format(token=token, before=before, dtype=dtype) for each in texts)
    return TableError(f"{place}: {text}", *remedies)


def _find_token(text: bytes | bytearray | memoryview, position: int) -> str:
    """Return the token at a position, from blank to blank, as a short string in quotes."""
    front = bytes(text[max(0, position - _SHOWN) : position])
    start = max((front.rfind(blank) for blank in _BLANKS), default=-1) + 1
    whole = front[start:]
    back = bytes(text[position : position + _SHOWN])
    ends = [found for blank in _BLANKS if (found := back.find(blank)) >= 0]
    whole += back[: min(ends)] if ends else back + b"..."
    if not whole:
        return "the end of the line" if back[:1] in (b"\r", b"\n") else repr(chr(back[0]))
    return repr(whole.decode("ascii", "backslashreplace")).replace("\\\\", "\\")


def _find_end_before(text: bytes | bytearray | memoryview, position: int) -> int:
    """Return the last byte of the token before the one that starts at `position`."""
    while position > 0 and bytes(text[position - 1 : position]) in (b" ", b"\t"):
        position -= 1
    return max(0, position - 1)


class RowCollector:
    r"""Concatenates rows in arrays that grow in place: the data are in memory once.

    Examples
    --------
    >>> from pathlib import Path


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
        """Append rows; their arrays may be reused afterwards."""
        self._ends.extend(rows.indptr[1:], plus=self._values.used)
        self._labels.extend(rows.labels)
        self._indices.extend(rows.indices)
        self._values.extend(rows.data)

    def finish(self, n_features: int, zero_based: bool) -> tuple[Any, NDArray[np.float64]]:
        """Return a CSR array and the labels; nothing can be added afterwards."""
        ends, indices, values = self._ends.finish(), self._indices.finish(), self._values.finish()
        indptr = np.zeros(len(ends) + 1, np.int32 if len(values) <= LARGEST_INDEX else np.int64)
        indptr[1:] = ends
        if not zero_based:
            indices -= 1
        return make_csr(values, indices, indptr, n_features), self._labels.finish()


class _GrowingArray:
    def __init__(self, dtype: Any) -> None:
        self.used = 0
        self._array: NDArray[Any] = np.empty(0, dtype)

    def extend(self, values: NDArray[Any], plus: int = 0) -> None:
        end = self.used + len(values)
        if end > len(self._array):
            # For large arrays the C library remaps pages instead of copying bytes.
            self._array.resize(max(end, len(self._array) * 5 // 4), refcheck=False)
        self._array[self.used : end] = values
        if plus:
            self._array[self.used : end] += plus
        self.used = end

    def finish(self) -> NDArray[Any]:
        self._array.resize(self.used, refcheck=False)
        return self._array
