"""Tables in files and in memory, read in blocks of rows."""

from __future__ import annotations

import codecs
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kernelmill.arguments import check_choice, check_integer
from kernelmill.errors import ArgumentError, Message
from kernelmill.io.errors import TableError
from kernelmill.io.sources import detect_format, find_files, is_data, load_file_class
from kernelmill.io.table_file import (
    SAME_COLUMNS,
    Original,
    TableColumn,
    TableFile,
    TableOptions,
    compare_columns,
    count_rows,
    enumerate_names,
    find_column,
)
from kernelmill.random import Stream

__all__ = ["Table", "TableBlock", "check_columns", "open_table", "open_without_header"]

Source = Any  # a path, paths, or data in memory


def open_table(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    header: bool | None = None,
    categorical: Sequence[str | int] = (),
    numeric: Sequence[str | int] = (),
    dates: Sequence[str | int] = (),
    skip_rows: int = 0,
    block_bytes: int = 8 << 20,
    n_features: int | None = None,
    zero_based: bool | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing_codes: Sequence[str] = (),
    not_missing: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> Table:
    r"""Open files of one format as a table that is read in blocks.

    Text: values in double quotes may contain delimiters, newlines and doubled quotes. Spaces around
    values are ignored. Empty values, ? and the markers of `pandas.read_csv` (NA, N/A, n/a, #N/A,
    nan, null, None, ...) are missing. Files are UTF-8, with or without a byte order mark; lines end
    in LF, CR LF or CR; empty lines are skipped. The column kinds are detected from the first 4
    MiB of the first file: "numeric" if all values are numbers or missing (or if there are at least
    20 different values and 95 % of them are numbers; the other values then raise an error), "date"
    if all values are dates or times such as 2024-05-31, 2024-05-31T12:00:00Z, 31.05.2024,
    31/5/2024, 31 May 2024 or 12:00, else "category". Percentages, amounts such as $1.20 and numbers
    with digit groups (1,257.30) are read as numbers if all values of the column have the same
    style; in `numeric` columns, the symbol or the groups are optional. Percentages are not divided
    by 100: 5 % is read as 5. `Table.notes` reports what was detected.

    Lines of text and JSON, and strings, may have up to 16 MiB, and tables up to 131,072 columns
    with names. Lines of JSON may be nested 64 levels deep.

    Parameters
    ----------
    source : path, list of paths, glob pattern, or data in memory
        The path "-" is standard input; streams are copied to a temporary file. Data in memory can
        be pandas, polars or pyarrow tables (any object with the Arrow C interface), dictionaries of
        arrays, NumPy arrays (structured, or with two or more dimensions), SciPy sparse matrices, or
        pairs (X, y) of such data and the labels of its rows. If X has named columns, the labels
        become a column with the name of y, or "labels". Data are not copied if possible. Files that
        match a pattern are read in sorted order. All files must have the same columns, by name, or
        the same number of columns if they have no names. The label files of MNIST-like idx files
        are found by name in the folder of the image file.
    format : str, optional
        "csv", "tsv" or "text", "jsonl" (one JSON object per line), "parquet", "arrow" (IPC files,
        Feather 2), "npy", "npz" (members X or data, and y or target), "idx" or "svmlight". By
        default, it is detected from the extension (also before .gz, .bz2 and .zst) or else from the
        content.
    delimiter : str, optional
        The delimiter of text files: one character, or "whitespace" (also " ") for runs of spaces
        and tabs, where quotes have no meaning. By default, it is the one of tab, semicolon, bar and
        comma that gives the same number of values in most of the first lines (200 lines, at most 64
        KiB), or whitespace if none does.
    header : bool, optional
        Whether the first line of text files contains the column names. By default this is detected.
        The first line is a header if none of its values is a number or missing (the first value may
        be empty, as above row numbers) and one of these conditions holds: a column below has mostly
        numbers or dates; all columns are strings, and the values of the first line do not occur
        again in their columns while other values do; there is no other line. Without a header the
        names are "0", "1", ...
    categorical, numeric, dates : sequence of str or int
        Columns, by name or zero-based position (negative from the end), whose kind is set instead
        of detected. Strings are inspected for dates, amounts, percentages and digit groups in
        all formats. Integers beyond 2**53 are read as categories in text, and are an error in other
        formats, since float64 would round them; in `numeric` columns they are rounded.
    skip_rows : int, default=0
        The number of lines to skip at the top of each text file.
    block_bytes : int, default=8 MiB
        The approximate size of a block in memory.
    n_features : int, optional
        The number of features of svmlight files; by default the largest index in them.
    zero_based : bool, optional
        Whether the indices of svmlight files count from 0; by default they do if the index 0
        occurs.
    decimal : {".", ","}, optional
        The decimal separator of numbers in text files. By default, it is a comma if the comma is
        not the delimiter and there are columns with numbers such as 1,5 or 1.234,5 but no columns
        with numbers such as 1.5.
    encoding : str, optional
        The encoding of text files, as Python names it: "latin-1", "cp1252", "utf-16". Default:
        UTF-8.
    missing_codes : sequence of str or float
        Additional codes for missing values, such as "-" and -999. In numeric columns, they are
        compared as numbers, so -999 also matches -999.0. In all formats, strings that are one of
        the markers above are missing.
    not_missing : sequence of str
        Markers that are categories or classes of this table rather than missing values, such as
        "n/a" or "None".
    names : sequence of str, optional
        The column names of a NumPy array.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        A file does not exist, is malformed, or has different columns than the first file.

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
    ['The delimiter is a semicolon.', 'No header was detected: columns are numbered from 0.']
    """
    options = _make_options(
        delimiter=delimiter,
        header=header,
        categorical=categorical,
        numeric=numeric,
        dates=dates,
        skip_rows=skip_rows,
        block_bytes=block_bytes,
        n_features=n_features,
        zero_based=zero_based,
        decimal=decimal,
        encoding=encoding,
        missing_codes=missing_codes,
        not_missing=not_missing,
        names=names,
    )
    return _open_files(source, format, options)


def open_without_header(
    source: Source,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Table:
    """Open a table as `open_table` does, except that text files have no header by default."""
    return _open_files(source, format, replace(_make_options(**options), default_header=False))


def _make_options(
    *,
    categorical: Sequence[str | int] = (),
    numeric: Sequence[str | int] = (),
    dates: Sequence[str | int] = (),
    **others: Any,
) -> TableOptions:
    others["missing_codes"] = _check_codes("missing_codes", others.get("missing_codes", ()))
    others["not_missing"] = _check_codes("not_missing", others.get("not_missing", ()))
    options = TableOptions(
        categorical=check_columns("categorical", categorical),
        numeric=check_columns("numeric", numeric),
        dates=check_columns("dates", dates),
        **others,
    )
    check_integer("block_bytes", options.block_bytes, 1)
    check_integer("skip_rows", options.skip_rows, 0)
    if options.decimal is not None:
        check_choice("decimal", options.decimal, (".", ","))
    if options.encoding is not None:
        try:
            is_utf8 = codecs.lookup(options.encoding).name == "utf-8"
        except (LookupError, TypeError):
            raise ArgumentError(
                f"must be the name of an encoding such as latin-1, got {options.encoding!r}",
                parameter="encoding",
            ) from None
        options = replace(options, encoding=None) if is_utf8 else options
    return options


def _check_codes(parameter: str, given: Any) -> tuple[str, ...]:
    """Codes of missing values as strings; a single one need not be in a list."""
    if isinstance(given, (str, Real)):
        given = (given,)
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise ArgumentError(
            f"must contain strings or numbers, got {given!r}",
            "pass a list such as ['-', '-999']",
            parameter=parameter,
        )
    codes = []
    for each in given:
        if isinstance(each, bool) or not isinstance(each, (str, Real)):
            raise ArgumentError(
                f"must contain strings or numbers, got {each!r}", parameter=parameter
            )
        number = math.nan if isinstance(each, str) else float(each)
        codes.append(str(int(number)) if number.is_integer() else str(each))
    return tuple(codes)


def check_columns(parameter: str, given: Any) -> tuple[str | int, ...]:
    """Return the names or positions of columns; a single one need not be in a list."""
    if isinstance(given, str) or (isinstance(given, Integral) and not isinstance(given, bool)):
        given = (given,)  # one name, not a sequence of letters
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise ArgumentError(
            f"must be a list of column names or indices, got {given!r}", parameter=parameter
        )
    columns = []
    for each in given:
        if isinstance(each, bool) or not isinstance(each, (str, Integral)):
            raise ArgumentError(
                f"must contain column names or indices, got {each!r}", parameter=parameter
            )
        columns.append(each if isinstance(each, str) else int(each))
    return tuple(columns)


def _open_files(source: Source, given_format: str | None, options: TableOptions) -> Table:
    if is_data(source):
        from kernelmill.io.memory import open_data  # noqa: PLC0415  (heavy)

        if given_format is not None:
            raise ArgumentError(
                f"is for files, got {given_format!r} for data in memory", parameter="format"
            )
        return Table("memory", [open_data(source, options)])
    if options.names is not None:
        raise ArgumentError("is for NumPy arrays, got files", parameter="names")
    paths = find_files(source)
    found = detect_format(paths[0], given_format)
    file_class = load_file_class(found)
    files: list[TableFile] = []
    for path in paths:
        if path != paths[0] and given_format is None:
            other = detect_format(path, None)
            if other != found:
                raise TableError(
                    f"{paths[0]} has the format {found}, but {path} has the format {other}",
                    "use files of one format",
                )
        files.append(file_class(path, options, files[0] if files else None))
    if file_class.widens:
        width = max(file.n_features or 0 for file in files)
        if width == 0 and options.n_features is None:
            raise TableError(
                f"{paths[0]} has no pair index:value", "use a file with lines such as '1 3:0.5'"
            )
        for file in files:
            file.n_features = width
    _check_agreement(files)
    return Table(found, files)


def _check_agreement(files: Sequence[TableFile]) -> None:
    """Raise an error if the files of a table do not have the same columns."""
    first = files[0]
    for file in files[1:]:
        if file.n_features != first.n_features:
            raise TableError(
                f"{first.path} has {first.n_features} columns, but {file.path} has "
                f"{file.n_features}",
                SAME_COLUMNS,
            )
        if file.carries_labels != first.carries_labels:
            labeled, unlabeled = (first, file) if first.carries_labels else (file, first)
            raise TableError(
                f"{labeled.path} has labels, but {unlabeled.path} has none",
                "use files that all have labels, or files that all have none",
            )
        if file.columns != first.columns:
            kinds = {each.name: each.kind for each in file.columns or ()}
            first_kinds = {each.name: each.kind for each in first.columns or ()}
            compare_columns(file.path, kinds, first.path, first_kinds)


@dataclass(frozen=True)
class TableBlock:
    """Consecutive rows of one file.

    Attributes
    ----------
    data : pyarrow.RecordBatch, ndarray or scipy.sparse.csr_array
        A record batch if the table has columns: numeric ones are float64, categories are
        dictionaries of trimmed strings, and missing values are null (never NaN). Columns of kind
        "other" are null. Otherwise the rows as a matrix.
    labels : ndarray or None
        One label per row, if the file carries labels.
    file : Path
        The file.
    first_row : int
        The position of the first row, counted from 0 over all files.
    rows_before : int
        The number of rows of the files before. Messages count rows in the file, from 1.

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
    rows_before: int = 0

    @property
    def row_in_file(self) -> int:
        """The position of the first row, counted from 0 in its file."""
        return self.first_row - self.rows_before

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return count_rows(self.data)


class Table:
    r"""Files of one format with the same columns, read in blocks of rows; see `open_table`.

    Memory is bounded: a pass keeps one block and a few bytes for each block read so far.

    Attributes
    ----------
    format : str
        "text", "parquet", "arrow", "npy", "npz", "idx", "svmlight", "jsonl" or
        "memory".
    files : tuple of Path
        The files, in the order of their rows.
    columns : tuple of TableColumn or None
        Names and kinds; None for a matrix.
    ordered : frozenset of str
        Categories that have an order in the file: in the first pass, the dictionaries of blocks
        are in this order.
    booleans : frozenset of str
        Columns of booleans, which are read as the categories "false" and "true"; "labels" for
        those of a matrix.
    n_features : int or None
        The number of columns of a matrix; None for tables with columns.
    carries_labels : bool
        Whether blocks have labels.
    zero_based : bool or None
        For svmlight files: whether their indices count from 0.
    missing_codes : tuple of str
        Values that are missing, besides the usual ones.
    signs : mapping of str to (str, str)
        The symbol (%, $) of the numbers of some columns, and a number without it, or "".
    marks : mapping of str to (str, str)
        The decimal point of the numbers of some columns, and the comma or point between groups of
        digits, or "". Numbers of others have a decimal point and no such groups.
    decimal : str
        The decimal point of numbers in text; "" if there are only integers, and of other formats.
    unreadable : mapping of str to Message
        Columns without a single type, which are of the kind "other", and why.
    label_column : str or None
        The column with the labels of a pair (X, y), if X has columns.
    notes : list of Message or str
        What was detected and what looks doubtful, for the user.
    n_bytes : int
        The total size of the files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "people.csv"
    >>> _ = path.write_text("age,town\n31, Rome\n?,Oslo\n")
    >>> table = open_table(path)
    >>> table.columns
    (TableColumn(name='age', kind='numeric'), TableColumn(name='town', kind='category'))
    >>> [block.data["town"].to_pylist() for block in table.blocks()]
    [['Rome', 'Oslo']]
    >>> table.n_rows
    2
    >>> folder.cleanup()
    """

    def __init__(self, format: str, files: Sequence[TableFile]) -> None:  # noqa: A002
        self.format = format
        self._files = tuple(files)
        first = self._files[0]
        self.files = tuple(file.path for file in files)
        self.columns: tuple[TableColumn, ...] | None = first.columns
        self.ordered = frozenset.intersection(*(file.ordered for file in files))
        self.booleans = frozenset.intersection(*(file.booleans for file in files))
        self._positions = (
            None
            if first.columns is None
            else enumerate_names([each.name for each in first.columns])
        )
        self._integer_names: bool = getattr(first, "integer_names", False)
        self.n_features: int | None = first.n_features
        self.carries_labels: bool = first.carries_labels
        self.zero_based: bool | None = first.zero_based
        self.missing_codes: tuple[str, ...] = tuple(first.options.missing_codes)
        self.unreadable: Mapping[str, Message] = first.unreadable
        self.signs: Mapping[str, tuple[str, str]] = first.signs
        self.marks: Mapping[str, tuple[str, str]] = first.marks
        self.decimal: str = first.decimal
        self.label_column: str | None = first.label_column
        self.n_bytes: int = sum(file.n_bytes for file in files)
        by_text = {str(note): note for file in files for note in file.notes}
        self.notes: list[Message | str] = list(by_text.values())
        # The numbers of rows of the blocks of each file, after its first complete pass.
        self._block_rows: list[list[int] | None] = [None] * len(self._files)

    def __repr__(self) -> str:
        width = self.n_features if self.columns is None else len(self.columns)
        rows = "" if self.n_rows is None else f", {self.n_rows} rows"
        return f"<Table of {len(self.files)} {self.format} file(s), {width} columns{rows}>"

    @property
    def opened(self) -> tuple[TableFile, ...]:
        """The files as they are read, in order."""
        return self._files

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None if it is not known before a complete pass."""
        counts = [self._count_file_rows(i) for i in range(len(self._files))]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def _count_file_rows(self, number: int) -> int | None:
        rows = self._block_rows[number]
        return self._files[number].n_rows if rows is None else sum(rows)

    def column_index(self, column: str | int) -> int:
        r"""Return the zero-based position of a column given by its name or position.

        An integer is a position, unless the columns of a data frame have integers as names; a
        string of digits that is not the name of a column is a position, too.

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
        if self._integer_names and str(column) in (self._positions or {}):
            column = str(column)
        return find_column(column, self._positions, self.n_features, str(self.files[0]))

    def with_kinds(
        self,
        *,
        categorical: Sequence[str | int] = (),
        numeric: Sequence[str | int] = (),
        dates: Sequence[str | int] = (),
        words: Collection[str] = (),
        trained_marks: Mapping[str, tuple[str, str]] | None = None,
    ) -> Table:
        r"""Return the same table with given kinds for more columns, without reading the files.

        Parameters
        ----------
        categorical, numeric, dates : sequence of str or int
            Columns, by name or zero-based position, in addition to those given before.
        words : collection of str
            Usual markers of missing values that are categories of this table.
        trained_marks : mapping, optional
            The `marks` of the table that a model was fitted to, by which numbers are read.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from kernelmill.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "people.csv"
        ...     _ = path.write_text("age,zip\n31,00184\n40,10115\n")
        ...     table = open_table(path)
        >>> table.with_kinds(categorical=["zip"]).columns
        (TableColumn(name='age', kind='numeric'), TableColumn(name='zip', kind='category'))
        """
        options = self._files[0].options
        return self._derive(
            categorical=(*options.categorical, *check_columns("categorical", categorical)),
            numeric=(*options.numeric, *check_columns("numeric", numeric)),
            dates=(*options.dates, *check_columns("dates", dates)),
            not_missing=(*options.not_missing, *words),
            trained_marks=trained_marks,
        )

    def with_block_bytes(self, block_bytes: int) -> Table:
        """Return the same table with another size of blocks, without reading the files.

        Examples
        --------
        >>> import numpy as np, pathlib, tempfile
        >>> from kernelmill.io import open_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "rows.npy"
        ...     np.save(path, np.ones((4, 2)))
        ...     [block.n_rows for block in open_table(path).with_block_bytes(48).blocks()]
        [3, 1]
        """
        return self._derive(block_bytes=check_integer("block_bytes", block_bytes, 1))

    def with_unused(self, columns: Sequence[str | int]) -> Table:
        r"""Return the same table, of which some columns are not read, whatever their values.

        Their kind is "other", and they are null in blocks. Columns of a matrix are not checked.

        Examples
        --------
        >>> from kernelmill.io import open_table
        >>> table = open_table({"id": [2**60, 2**60 + 1], "size": [1, 2]})
        >>> [block.data.to_pydict() for block in table.with_unused(["id"]).blocks()]
        [{'id': [None, None], 'size': [1.0, 2.0]}]
        """
        unused = check_columns("columns", columns)
        if unused == self._files[0].options.unused:
            return self
        return self._derive(unused=unused)

    def with_originals(self, form: str) -> Table:
        """Return a table whose blocks also have the values of all columns as the files have them.

        `originals` has the columns of blocks with them.

        Parameters
        ----------
        form : {"text", "values"}
            For text files, "text" stands for values as they are written, except numbers with
            decimal commas. With "values", columns that are used are as they are read, and others
            are strings; plain numbers of a single small file, of which all rows were inspected,
            are integers or floats. Files with types have values of these types in both cases.
        """
        check_choice("form", form, ("text", "values"))
        is_single = form == "values" and len(self._files) == 1
        return self._derive(originals="types" if is_single else form)

    @property
    def originals(self) -> Mapping[str, Original]:
        """The columns of blocks with the unconverted values of each column."""
        return self._files[0].originals

    def _derive(self, **changes: Any) -> Table:
        files: list[TableFile] = []
        for number, file in enumerate(self._files):
            options = replace(file.options, **changes)
            derived = file.with_options(options, files[0] if files else None)
            derived.n_rows = self._count_file_rows(number)  # neither change affects it
            files.append(derived)
        _check_agreement(files)
        return Table(self.format, files)

    def check_unchanged(self) -> None:
        """Raise a `TableError` if a file is not the one that was opened."""
        for file in self._files:
            file.check_unchanged()

    def blocks(self, seed: int | None = None) -> Iterator[TableBlock]:
        """Iterate over all blocks, in order or, with a seed, in random order.

        Every pass gives the same blocks. The first pass in random order needs the positions of the
        blocks in the files; if there was no complete pass before, it makes one. Compressed text and
        matrices, and Parquet files with row groups larger than a block, are then decompressed once
        to a temporary file without a name (in the folder given by the variable TMPDIR).

        Parameters
        ----------
        seed : int, optional
            The seed of the `kernelmill.random.Stream` that determines the order.

        Raises
        ------
        TableError
            A file is malformed or has changed.
        """
        return self._read_in_order() if seed is None else self._read_shuffled(seed)

    def _read_in_order(self) -> Iterator[TableBlock]:
        first_row = 0
        for number, file in enumerate(self._files):
            rows: list[int] = []
            file.check_unchanged()
            for data, labels in file.blocks():
                yield TableBlock(data, labels, file.path, first_row, first_row - sum(rows))
                rows.append(count_rows(data))
                first_row += rows[-1]
            file.check_unchanged()
            expected = self._count_file_rows(number)
            if expected is not None and sum(rows) != expected:
                raise file.damage_error(f"{sum(rows)} rows", expected)
            self._block_rows[number] = rows

    def _read_shuffled(self, seed: int) -> Iterator[TableBlock]:
        for file in self._files:
            file.prepare_random_access()
        if any(rows is None for rows in self._block_rows):
            for _ in self._read_in_order():
                pass
        blocks: list[tuple[TableFile, int, int, int, int]] = []
        first_row = 0
        for file, rows in zip(self._files, self._block_rows, strict=True):
            before = first_row
            for number, count in enumerate(rows or ()):
                blocks.append((file, number, first_row, before, count))
                first_row += count
        for position in Stream.from_seed(seed).substream("blocks").permutation(len(blocks)):
            file, number, first_row, before, count = blocks[position]
            file.check_unchanged()
            data, labels = file.block(number)
            if count_rows(data) != count:
                raise file.changed_error()
            yield TableBlock(data, labels, file.path, first_row, before)
