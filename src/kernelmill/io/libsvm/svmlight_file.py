"""Svmlight / LIBSVM files: sparse rows with a label each."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelmill.io.compression import compression_of, decompressed_copy, open_stream, read_fully
from kernelmill.io.errors import TableError
from kernelmill.io.libsvm.parser import RowCollector, Space, SvmlightRows
from kernelmill.io.libsvm.reader import LARGEST_WIDTH, IndexRange, Numbering, Place, SvmlightPass
from kernelmill.io.table_file import TableFile, TableOptions

__all__ = ["SvmlightFile", "read_svmlight"]

_PIECE_BYTES = 256 << 10  # text and rows of a piece stay in the cache
_LARGEST_PIECE = 1 << 30  # the core counts the entries of a piece in 31 bits


class SvmlightFile(TableFile):
    r"""A file whose lines are ``label [qid:n] index:value ... # comment``.

    Opening reads the file once, to know the number of features and whether the indices count from 0
    or from 1: from 0 if the index 0 occurs, in this or another file of the table. Blocks are CSR
    arrays of float64 and come from about `block_bytes` of text. Groups (``qid:n``) are passed over.

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

    def __init__(
        self,
        path: Path,
        options: TableOptions,
        first: Self | None,
    ) -> None:
        super().__init__(path, options, first)
        self.carries_labels = True
        self._numbering = Numbering(options.n_features, options.zero_based, LARGEST_WIDTH)
        self._seen = IndexRange()
        self._places: list[Place] = []  # of the pieces of text that have rows
        self._copy: IO[bytes] | None = None
        self._scan()
        self._table: list[SvmlightFile] = [] if first is None else first._table
        self._table.append(self)
        self._agree()

    def _pass(self, zero_based: bool) -> SvmlightPass:
        size = min(self.options.block_bytes, _LARGEST_PIECE)
        return SvmlightPass(self.path, self._numbering, zero_based, size, np.float64)

    def _scan(self) -> None:
        n_rows = 0
        for place, rows in self._pass(bool(self._numbering.zero_based)).pieces(Space(np.float64)):
            if len(rows.labels):
                self._places.append(place)
            n_rows += len(rows.labels)
            self._seen.include(rows.smallest, rows.largest)
        self.n_rows = n_rows

    def _agree(self) -> None:
        """Numbering and width, for all files of the table that are open so far."""
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
        """All blocks in order: a CSR array of float64, and its labels."""
        for _, rows in self._pass(bool(self.zero_based)).pieces():
            if len(rows.labels):
                yield self._block(rows)

    def _block(self, rows: SvmlightRows) -> tuple[Any, NDArray[Any]]:
        assert self.n_features is not None
        first = 0 if self.zero_based else 1
        if rows.smallest < first or rows.largest >= first + self.n_features:
            raise self._changed()
        return rows.matrix(self.n_features, bool(self.zero_based)), rows.labels

    def _changed(self) -> TableError:
        return TableError(
            f"{self.path} changed while it was being read; start again when it is complete."
        )

    def prepare_random_access(self) -> None:
        """Decompress a compressed file into a temporary file without a name."""
        if self._copy is None and compression_of(self.path) is not None:
            self._copy = decompressed_copy(self.path)
            weakref.finalize(self, self._copy.close)

    def block(self, number: int) -> tuple[Any, NDArray[Any]]:
        """One block again."""
        place = self._places[number]
        if self._copy is not None:
            text = _read_at(self._copy, place)
        else:
            with open_stream(self.path) as stream:
                text = _read_at(stream, place)
        if len(text) != place.length:
            raise self._changed()
        if not text.endswith(b"\n"):
            text += b"\n"
        return self._block(self._pass(bool(self.zero_based)).parse(text, place))


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
        indices; groups (``qid:n``) are passed over.
    n_features : int, optional
        The number of columns; by default as many as the largest index needs.
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
        The file cannot be read, or a line is malformed: names the line and the column.

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
    real = np.dtype(dtype)
    if real not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TableError(f"dtype must be float32 or float64, got {dtype!r}.")
    numbering = Numbering(n_features, zero_based)
    # While it is not known where the indices start, both are allowed for.
    reading = SvmlightPass(Path(path), numbering, bool(zero_based), _PIECE_BYTES, real)
    seen = IndexRange()
    collector = RowCollector(real)
    for _, rows in reading.pieces(Space(real)):
        collector.add(rows)
        seen.include(rows.smallest, rows.largest)
    found = numbering.zero_based_in(seen)
    _check_numbering(replace(reading, zero_based=found), seen)
    return collector.finish(numbering.width_of(seen), found)


def _check_numbering(reading: SvmlightPass, seen: IndexRange) -> None:
    """Refuse indices that do not fit to where they start, which was known only after a pass."""
    if seen.smallest == 0 and not reading.zero_based:
        raise TableError(
            f"{reading.path} has the index 0, but zero_based=False says that indices count from 1; "
            "leave zero_based out."
        )
    if seen.largest > reading.numbering.limit(reading.zero_based):
        for _ in reading.pieces(Space(reading.dtype)):  # the error names the line
            pass


def _read_at(stream: IO[bytes], place: Place) -> bytes:
    stream.seek(place.start)
    return read_fully(stream, place.length)
