"""A table in files, read in blocks of rows: what all formats share."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelmill.io.errors import TableError
from kernelmill.io.table_file import Column, TableFile
from kernelmill.random import Stream

__all__ = ["Table", "TableBlock"]


@dataclass(frozen=True)
class TableBlock:
    """Some consecutive rows of one file.

    Attributes
    ----------
    data : pyarrow.RecordBatch, ndarray or scipy.sparse.csr_array
        A record batch where the table has columns: numeric ones are float64, categories
        dictionaries of trimmed strings, and what is missing is null (never NaN). Otherwise the
        rows as a matrix.
    labels : ndarray or None
        One label per row, where the format carries them.
    file : Path
        The file.
    first_row : int
        The number of the first row, counted from 0 over all files.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.npy"
    ...     np.save(path, np.arange(6.0).reshape(3, 2))
    ...     [block.data.shape for block in open_table(path, block_bytes=32).blocks()]
    [(2, 2), (1, 2)]
    """

    data: Any
    labels: NDArray[Any] | None
    file: Path
    first_row: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return n_rows_of(self.data)


class Table:
    r"""Files of one format and one set of columns, as rows in blocks; `open_table` makes it.

    Memory is bounded: a pass holds one block and some bytes for each block seen.

    Attributes
    ----------
    format : str
        "text", "parquet", "arrow", "npy", "npz", "idx" or "svmlight".
    files : tuple of Path
        The files, in the order of their rows.
    columns : tuple of Column or None
        Names and kinds; None for matrices.
    n_features : int or None
        The number of columns of a matrix; None for tables with columns.
    carries_labels : bool
        Blocks have labels.
    zero_based : bool or None
        Of svmlight files: whether their indices count from 0.
    notes : list of str
        What was found out, in sentences for the user.
    n_bytes : int
        The sizes of the files, added.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "people.csv"
    >>> _ = path.write_text("age,town\n31, Rome\n?,Oslo\n")
    >>> table = open_table(path)
    >>> table.columns
    (Column(name='age', kind='numeric'), Column(name='town', kind='category'))
    >>> [block.data["town"].to_pylist() for block in table.blocks()]
    [['Rome', 'Oslo']]
    >>> table.n_rows
    2
    >>> folder.cleanup()
    """

    def __init__(self, format: str, files: Sequence[TableFile], notes: Sequence[str] = ()) -> None:  # noqa: A002
        self.format = format
        self._files = tuple(files)
        first = self._files[0]
        self.files = tuple(file.path for file in files)
        self.columns: tuple[Column, ...] | None = first.columns
        self._column_places = (
            None if first.columns is None else places_of([each.name for each in first.columns])
        )
        self.n_features: int | None = first.n_features
        self.carries_labels: bool = first.carries_labels
        self.zero_based: bool | None = first.zero_based
        self.n_bytes: int = sum(file.n_bytes for file in files)
        self.notes: list[str] = list(dict.fromkeys([*notes, *(n for f in files for n in f.notes)]))
        # The numbers of rows of the blocks of each file, after its first complete pass.
        self._block_rows: list[list[int] | None] = [None] * len(self._files)

    def __repr__(self) -> str:
        width = self.n_features if self.columns is None else len(self.columns)
        rows = "" if self.n_rows is None else f", {self.n_rows} rows"
        return f"<Table of {len(self.files)} {self.format} file(s), {width} columns{rows}>"

    @property
    def n_rows(self) -> int | None:
        """The number of rows: known at once in some formats, else after one complete pass."""
        counts = [self._rows_of_file(i) for i in range(len(self._files))]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _rows_of_file(self, number: int) -> int | None:
        rows = self._block_rows[number]
        return self._files[number].n_rows if rows is None else sum(rows)

    def column_index(self, column: str | int) -> int:
        r"""The zero-based place of a column, given its name or this place.

        A whole number, or a string of digits that is no column's name, is a place.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from kernelmill.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "people.csv"
        ...     _ = path.write_text("age,town\n31,Rome\n")
        ...     table = open_table(path)
        >>> table.column_index("town"), table.column_index("1"), table.column_index(1)
        (1, 1, 1)
        """
        return index_of_column(column, self._column_places, self.n_features, str(self.files[0]))

    def check_unchanged(self) -> None:
        """Raise a `TableError` if a file is not the one that was opened."""
        for file in self._files:
            file.check_unchanged()

    def blocks(self, seed: int | None = None) -> Iterator[TableBlock]:
        """All blocks, in order or, with a seed, in an order drawn from it.

        Every pass gives the same blocks. The first shuffled order needs the places of the blocks:
        if no complete pass was made before, one is made now. Compressed text and matrices, and
        Parquet files with row groups larger than a block, are then copied once, decompressed, to a
        temporary file without a name (in the folder that TMPDIR names).

        Parameters
        ----------
        seed : int, optional
            The seed of the order, of a `kernelmill.random.Stream`.

        Raises
        ------
        TableError
            A file is malformed, or it is not the same as before.
        """
        return self._in_order() if seed is None else self._shuffled(seed)

    def _in_order(self) -> Iterator[TableBlock]:
        first_row = 0
        for number, file in enumerate(self._files):
            rows: list[int] = []
            file.check_unchanged()
            for data, labels in file.blocks():
                yield TableBlock(data, labels, file.path, first_row)
                rows.append(n_rows_of(data))
                first_row += rows[-1]
            file.check_unchanged()
            self._block_rows[number] = rows

    def _shuffled(self, seed: int) -> Iterator[TableBlock]:
        for file in self._files:
            file.prepare_random_access()
        if any(rows is None for rows in self._block_rows):
            for _ in self._in_order():
                pass
        places: list[tuple[TableFile, int, int]] = []
        first_row = 0
        for file, rows in zip(self._files, self._block_rows, strict=True):
            for number, count in enumerate(rows or ()):
                places.append((file, number, first_row))
                first_row += count
        for place in Stream.from_seed(seed).substream("blocks").permutation(len(places)):
            file, number, first_row = places[place]
            file.check_unchanged()
            data, labels = file.block(number)
            yield TableBlock(data, labels, file.path, first_row)


def n_rows_of(data: Any) -> int:
    """The rows of a record batch or a matrix."""
    return int(data.shape[0]) if hasattr(data, "shape") else int(data.num_rows)


def places_of(names: Sequence[str]) -> dict[str, int]:
    """The place of each name."""
    return {name: place for place, name in enumerate(names)}


def index_of_column(
    column: str | int, places: Mapping[str, int] | None, n_features: int | None, source: str
) -> int:
    """The place of a column, or an error that lists what there is."""
    width = n_features if places is None else len(places)
    if isinstance(column, str) and places is not None and column in places:
        return places[column]
    is_number = isinstance(column, int) and not isinstance(column, bool)
    if is_number or (isinstance(column, str) and column.isascii() and column.isdigit()):
        place = int(column)
        if width is None or 0 <= place < width:
            return place
        raise TableError(
            f"column {column} must be between 0 and {width - 1}: {source} has {width} columns."
        )
    if not isinstance(column, str):
        raise TableError(f"a column must be a name or a zero-based number, got {column!r}.")
    if places is None:
        raise TableError(
            f"{source} is a matrix, its columns have no names; give a zero-based number, "
            f"got {column!r}."
        )
    names = list(places)
    near = difflib.get_close_matches(column, names, n=3, cutoff=0.5)
    lower = [name for name in names if name.lower() == column.lower()]
    shown = list(dict.fromkeys(lower + near)) or list(names[:10])
    dots = ", ..." if not (lower or near) and len(names) > 10 else ""
    listed = ", ".join(repr(name) for name in shown) + dots
    kind = "near names are" if lower or near else "its columns are"
    raise TableError(f"{source} has no column {column!r}; {kind} {listed}.")
