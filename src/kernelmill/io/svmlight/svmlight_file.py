"""Svmlight / LIBSVM files: sparse rows with a label each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill.arguments import check_dtype
from kernelmill.errors import Remedy
from kernelmill.io.compression import (
    TemporaryCopy,
    decompress,
    detect_compression,
    open_stream,
    read_fully,
)
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, align_part, cut_evenly
from kernelmill.io.limits import MOST_SPARSE_FEATURES
from kernelmill.io.svmlight.parser import Buffers, RowCollector, SvmlightRows
from kernelmill.io.svmlight.reader import (
    IndexRange,
    Numbering,
    SvmlightPass,
    TextSpan,
)
from kernelmill.io.table_file import TableFile, TableOptions

__all__ = ["SvmlightFile", "read_svmlight"]

_PIECE_BYTES = 256 << 10  # text and rows of a piece stay in the cache
_LARGEST_PIECE = 1 << 30  # the C++ core counts the entries of a piece in 31 bits


class SvmlightFile(TableFile):
    r"""A file whose lines are ``label [qid:n] index:value ... # comment``.

    The constructor reads the file once, for the number of features and to detect whether the
    indices count from 0 or from 1: from 0 if the index 0 occurs in this or another file of the
    table. Blocks are CSR arrays of float64 of about `block_bytes` of text. Groups (``qid:n``) are
    ignored.

    Attributes
    ----------
    zero_based : bool
        Whether the indices count from 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
    ...     table = open_table(path)
    ...     (block,) = table.blocks()
    >>> block.data.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> block.labels
    array([ 1., -1.])
    """

    widens: ClassVar[bool] = True
    not_copied: ClassVar[tuple[str, ...]] = ("_copy", "_table")

    def __init__(
        self,
        path: Path,
        options: TableOptions,
        first: Self | None,
    ) -> None:
        super().__init__(path, options, first)
        self.carries_labels = True
        self._numbering = Numbering(options.n_features, options.zero_based, MOST_SPARSE_FEATURES)
        self._seen = IndexRange()
        self._copy: TemporaryCopy | None = None
        self._scan()
        self._table: list[SvmlightFile] = [] if first is None else first._table
        self._table.append(self)
        self._agree_on_numbering()
        self.configure(first)

    def configure(self, first: Self | None) -> None:
        """Forget the positions of blocks; the numbering of the indices does not depend on them."""
        self._places: list[TextSpan] = []  # of the pieces of text that have rows

    def _pass(self, zero_based: bool) -> SvmlightPass:
        size = min(self.options.block_bytes, _LARGEST_PIECE)
        return SvmlightPass(self.path, self._numbering, zero_based, size, np.float64)

    def _scan(self) -> None:
        """Read the file for the number of its rows and the range of its indices."""
        n_rows = 0
        for _, rows in self._pass(bool(self._numbering.zero_based)).pieces(Buffers(np.float64)):
            n_rows += len(rows.labels)
            self._seen.include(rows.smallest, rows.largest)
        self.n_rows = n_rows

    def _agree_on_numbering(self) -> None:
        """Set the numbering and the width of all files of the table that are open so far."""
        seen = IndexRange()
        for file in self._table:
            seen.include(file._seen.smallest, file._seen.largest)
        zero_based = self._numbering.zero_based_in(seen)
        for file in self._table:
            _check_numbering(file._pass(zero_based), file._seen)
            file.zero_based = zero_based
            file.n_features = self._numbering.width_of(seen)
            if self._numbering.zero_based is None:
                why = "occurs" if zero_based else "does not occur"
                file.notes = [f"Indices count from {1 - zero_based}, since the index 0 {why}."]

    def blocks(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield CSR arrays of float64 with their labels, in order, and store their positions."""
        places = []
        for place, rows in self._pass(bool(self.zero_based)).pieces():
            if len(rows.labels):
                places.append(place)
                yield self._make_block(rows)
        self._places = places

    def cut(self, n_bytes: int) -> list[Part]:
        """Cut the file into ranges of bytes, or into one if it is compressed; `measure` follows."""
        if detect_compression(self.path) is not None:
            return super().cut(n_bytes)
        return cut_evenly(0, self.n_bytes, n_bytes)

    def measure(self, part: Part) -> Part:
        """Move the ends of a part to ends of lines, and count its rows and lines."""
        part = align_part(self.path, part, self.n_bytes)
        found = self._pass(bool(self.zero_based)).pieces(Buffers(np.float64), part)
        n_rows = n_lines = 0
        for _, rows in found:
            n_rows += len(rows.labels)
            n_lines += rows.n_lines
        return replace(part, n_rows=n_rows, n_lines=n_lines)

    def read_part(self, part: Part) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Yield the CSR arrays and labels of a part that was measured."""
        for _, rows in self._pass(bool(self.zero_based)).pieces(part=part):
            if len(rows.labels):
                yield self._make_block(rows)

    def _make_block(self, rows: SvmlightRows) -> tuple[Any, NDArray[Any]]:
        assert self.n_features is not None
        first = 0 if self.zero_based else 1
        if rows.smallest < first or rows.largest >= first + self.n_features:
            raise self.changed_error()
        return rows.matrix(self.n_features, bool(self.zero_based)), rows.labels

    def prepare_random_access(self) -> None:
        """Decompress the file to a temporary file, once."""
        if self._copy is None and detect_compression(self.path) is not None:
            self._copy = decompress(self.path)

    def block(self, number: int) -> tuple[Any, NDArray[Any]]:
        """Read a block at its stored position."""
        place = self._places[number]
        if self._copy is not None:
            text = _read_at(self._copy.stream, place)
        else:
            with open_stream(self.path) as stream:
                text = _read_at(stream, place)
        if len(text) != place.length:
            raise self.changed_error()
        if not text.endswith(b"\n"):
            text += b"\n"
        return self._make_block(self._pass(bool(self.zero_based)).parse(text, place))


def read_svmlight(
    path: str | os.PathLike[str],
    n_features: int | None = None,
    dtype: DTypeLike = np.float32,
    *,
    zero_based: bool | None = None,
) -> tuple[Any, NDArray[np.float64]]:
    r"""Read all rows of a svmlight / LIBSVM file, which may be compressed (.gz, .bz2, .zst).

    Parameters
    ----------
    path : path
        The file. Its lines are ``label [qid:n] index:value ... # comment``, with increasing
        indices; groups (``qid:n``) are ignored.
    n_features : int, optional
        The number of columns; by default it follows from the largest index.
    dtype : {float32, float64}
        The type of the values, to which each is rounded once.
    zero_based : bool, optional
        Whether indices count from 0 or from 1. By default from 0 if the index 0 occurs.

    Returns
    -------
    X : scipy.sparse.csr_array of shape (n_rows, n_features)
        The rows.
    labels : ndarray of float64
        Their labels.

    Raises
    ------
    TableError
        The file cannot be read, or a line is malformed; the message names the line and the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
    ...     X, labels = read_svmlight(path)
    >>> X.toarray(), labels
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]], dtype=float32), array([ 1., -1.]))
    """
    real = check_dtype(dtype, ("float32", "float64"))
    numbering = Numbering(n_features, zero_based)
    # Until it is known where the indices start, both numberings are accepted.
    reading = SvmlightPass(Path(path), numbering, bool(zero_based), _PIECE_BYTES, real)
    seen = IndexRange()
    collector = RowCollector(real)
    for _, rows in reading.pieces(Buffers(real)):
        collector.add(rows)
        seen.include(rows.smallest, rows.largest)
    found = numbering.zero_based_in(seen)
    _check_numbering(replace(reading, zero_based=found), seen)
    return collector.finish(numbering.width_of(seen), found)


def _check_numbering(reading: SvmlightPass, seen: IndexRange) -> None:
    """Raise an error for indices that do not agree with the numbering, known after a pass."""
    if seen.smallest == 0 and not reading.zero_based:
        raise TableError(
            f"{reading.path} has the index 0, but its indices must count from 1",
            Remedy("detect the numbering automatically", zero_based=None),
        )
    if seen.largest > reading.numbering.limit(reading.zero_based):
        for _ in reading.pieces(Buffers(reading.dtype)):  # the error names the line
            pass


def _read_at(stream: IO[bytes], place: TextSpan) -> bytes:
    stream.seek(place.start)
    return read_fully(stream, place.length)
