"""From what the user names to a table."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kernelmill.io.errors import TableError
from kernelmill.io.formats import detect_format, file_class
from kernelmill.io.sources import source_files
from kernelmill.io.table import Table
from kernelmill.io.table_file import TableFile, TableOptions

__all__ = ["open_table"]

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
