"""Tables in files, read in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelmill.io.errors import TableError
from kernelmill.io.sources import detect_format, file_class, source_files
from kernelmill.io.table_file import Column, TableFile, TableOptions, index_of_column, places_of
from kernelmill.random import Stream

__all__ = ["Table", "TableBlock", "open_table"]

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def open_table(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    header: bool | None = None,
    categorical: Sequence[str | int] = (),
    numeric: Sequence[str | int] = (),
    skip_rows: int = 0,
    block_bytes: int = 8 << 20,
    n_features: int | None = None,
    zero_based: bool | None = None,
    decimal: str | None = None,
) -> Table:
    r"""Open files of one format as a table that is read in blocks.

    Text: values may be in double quotes, and hold delimiters, newlines and doubled quotes then.
    Spaces around values do not count. Empty values, NA, N/A, NaN, nan, null, NULL, None and ? are
    missing. Files are UTF-8, with or without a byte order mark; lines end in LF, CR LF or CR;
    empty lines are skipped. The kinds of columns come from the first 4 MiB of the first file:
    "numeric" if all values are numbers or missing (or at least 95 % of 20 or more different ones
    are numbers: the others are then errors), "date" if all are dates or times such as
    2024-05-31, 2024-05-31T12:00:00Z, 12:00 or 31/5/2024, else "category". What is found out is in
    `Table.notes`.

    Parameters
    ----------
    source : path, list of paths, or glob pattern
        The files that a pattern matches are taken in sorted order. All files have the same columns,
        by name, or the same number of columns where there are no names. The labels of MNIST-like
        idx files are found by their names, beside the images.
    format : str, optional
        "csv", "tsv" or "text", "parquet", "arrow" (IPC files, Feather 2), "npy", "npz" (members X
        or data, and y or target), "idx" or "svmlight". By default from the extension (also before
        .gz, .bz2 and .zst), else from the content.
    delimiter : str, optional
        Of text: one character, or "whitespace" (also " ") for runs of spaces and tabs, which knows
        no quotes. By default the one of tab, semicolon, bar and comma that gives the same number of
        values in most of the first lines (200, at most 64 KiB), or whitespace if none of them does.
    header : bool, optional
        Whether the first line of text has names. By default it has, if none of its values is a
        number or missing (but the first may be empty: row numbers) and either there are numbers or
        dates in the lines below (most values of a column, among those lines), or, all columns
        being text, the values of the first line do not occur again in their columns while others
        do, or there is no other line. Without a header the names are "0", "1", ...
    categorical, numeric : sequence of str or int
        Columns, by name or zero-based place, whose kind is given here.
    skip_rows : int, default=0
        So many lines at the top of each text file are not read.
    block_bytes : int, default=8 MiB
        The approximate size of a block in memory.
    n_features : int, optional
        The number of features of svmlight files; by default the largest index found.
    zero_based : bool, optional
        Whether the indices of svmlight files count from 0; by default if there is an index 0.
    decimal : {".", ","}, optional
        The decimal point of numbers in text. By default a comma if it is not the delimiter and
        there are columns of numbers such as 1,5 or 1.234,5, but none of numbers such as 1.5.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        A file does not exist, cannot be understood, or has other columns than the first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.txt"
    ...     _ = path.write_text("1.5;red\n2.5;blue\n")
    ...     table = open_table(path)
    ...     [block.data.to_pydict() for block in table.blocks()]
    [{'0': [1.5, 2.5], '1': ['red', 'blue']}]
    >>> table.notes
    ['The delimiter is a semicolon.', 'No header was found: columns are numbered from 0.']
    """
    if isinstance(block_bytes, bool) or not isinstance(block_bytes, int) or block_bytes < 1:
        raise TableError(f"block_bytes must be a positive number of bytes, got {block_bytes!r}.")
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise TableError(f"skip_rows must be a number of lines, at least 0, got {skip_rows!r}.")
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r}.")
    options = TableOptions(
        delimiter=delimiter,
        header=header,
        categorical=_names("categorical", categorical),
        numeric=_names("numeric", numeric),
        skip_rows=skip_rows,
        block_bytes=block_bytes,
        n_features=n_features,
        zero_based=zero_based,
        decimal=decimal,
    )
    paths = source_files(source)
    found = detect_format(paths[0], format)
    make = file_class(found)
    files: list[TableFile] = []
    for path in paths:
        if path != paths[0] and format is None and (other := detect_format(path, None)) != found:
            raise TableError(
                f"{paths[0]} is a file of format {found}, but {path} one of format {other}; "
                "all files of a table have one format."
            )
        files.append(make(path, options, files[0] if files else None))
    if make.widens:
        width = max(file.n_features or 0 for file in files)
        if width == 0 and n_features is None:
            raise TableError(
                f"{paths[0]} has no pair index:value; give a file whose lines have some, such as "
                "'1 3:0.5'."
            )
        for file in files:
            file.n_features = width
    _check_agreement(files)
    return Table(found, files)


def _names(option: str, given: Sequence[str | int]) -> tuple[str | int, ...]:
    if isinstance(given, (str, int)):  # one name is meant, not its letters
        return (given,)
    for each in given:
        if isinstance(each, bool) or not isinstance(each, (str, int)):
            raise TableError(f"{option} must hold names or numbers of columns, got {each!r}.")
    return tuple(given)


def _check_agreement(files: Sequence[TableFile]) -> None:
    first = files[0]
    for file in files[1:]:
        if file.n_features != first.n_features:
            raise TableError(
                f"{first.path} has {first.n_features} columns, but {file.path} has "
                f"{file.n_features}; all files of a table have the same columns."
            )
        if file.carries_labels != first.carries_labels:
            with_labels, without = (first, file) if first.carries_labels else (file, first)
            raise TableError(
                f"{with_labels.path} has labels, but {without.path} has none; all files of a table "
                "have labels or none has."
            )
        if file.columns != first.columns:
            raise TableError(column_difference(first, file))


def column_difference(first: TableFile, other: TableFile) -> str:
    """How the columns of two files differ, in words."""
    ours = {each.name: each.kind for each in first.columns or ()}
    theirs = {each.name: each.kind for each in other.columns or ()}
    lacks = [name for name in ours if name not in theirs]
    extra = [name for name in theirs if name not in ours]
    differences = [
        *(f"it lacks {name!r}" for name in lacks[:3]),
        *(f"it has {name!r} besides" for name in extra[:3]),
    ]
    for name, kind in ours.items():
        if theirs.get(name, kind) != kind:
            differences.append(f"{name!r} is {theirs[name]} there and {kind} in the first")
    return (
        f"{other.path} has other columns than {first.path}: {', '.join(differences[:6])}; all "
        "files of a table have the same columns."
    )


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
