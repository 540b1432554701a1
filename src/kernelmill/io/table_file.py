"""One file of a table, and the names and kinds of its columns."""

from __future__ import annotations

import difflib
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from kernelmill.errors import Message, Remedy
from kernelmill.io.compression import GET_AGAIN
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part

__all__ = [
    "Original",
    "TableColumn",
    "TableFile",
    "TableOptions",
    "compare_columns",
    "count_rows",
    "enumerate_names",
    "find_column",
    "find_similar",
    "large_integer_error",
    "make_unique",
    "name_originals",
    "resolve_kinds",
    "set_kinds",
]

LARGEST_EXACT = 2**53  # float64 represents all integers up to this one
SAME_COLUMNS = "use files with the same columns"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The name of a column and its kind: "numeric", "category", "date" or "other".

    Examples
    --------
    >>> from kernelmill.io import TableColumn
    >>> TableColumn("age", "numeric")
    TableColumn(name='age', kind='numeric')
    """

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Original:
    """The column of blocks with the unconverted values of a column, and their type.

    Attributes
    ----------
    name : str
        The name of the column of blocks.
    type : "string", dtype or pyarrow.DataType
        As in `open_writer`.
    """

    name: str
    type: Any


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a table: the arguments of `open_table` with the same names."""

    delimiter: str | None = None
    header: bool | None = None
    categorical: Sequence[str | int] = ()
    numeric: Sequence[str | int] = ()
    dates: Sequence[str | int] = ()
    skip_rows: int = 0
    block_bytes: int = 8 << 20
    n_features: int | None = None
    zero_based: bool | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_codes: Sequence[str] = ()
    not_missing: Collection[str] = ()
    names: Sequence[str] | None = None
    default_header: bool | None = None  # of text files, where `header` is None
    unused: Sequence[str | int] = ()  # see `Table.with_unused`
    originals: str | None = None  # "text", "values" or "types": see `Table.with_originals`
    # How numbers of columns were written in training, as in `Table.marks`; None without a model.
    trained_marks: Mapping[str, tuple[str, str]] | None = None


class TableFile(ABC):
    """An opened file; its blocks can be read any number of times.

    The class of a format is called with the path, the options and the first file of the table (None
    for the first), whose delimiter and kinds of columns apply to all files. The constructor
    inspects the file: it reads no more than is necessary to know the columns, and leaves no file
    open. Then `configure` applies the options that need no further look at the file, so that
    `with_options` can change them.

    Attributes
    ----------
    path, columns, ordered, booleans, n_features, carries_labels, notes, n_bytes
        See `Table`.
    zero_based : bool or None
        For formats with indices: whether they count from 0.
    n_rows : int or None
        The number of rows, if it is known without reading them.
    originals, unreadable, label_column, signs, marks, decimal
        See `Table`.
    """

    # Files may differ in the number of features; the table has the largest.
    widens: ClassVar[bool] = False
    # Attributes that a copy in another process lacks: temporary files, and input of `configure`.
    not_copied: ClassVar[tuple[str, ...]] = ()

    columns: tuple[TableColumn, ...] | None = None
    ordered: frozenset[str] = frozenset()
    booleans: frozenset[str] = frozenset()
    n_features: int | None = None
    carries_labels: bool = False
    zero_based: bool | None = None
    n_rows: int | None = None
    signs: Mapping[str, tuple[str, str]] = MappingProxyType({})
    marks: Mapping[str, tuple[str, str]] = MappingProxyType({})
    decimal: str = ""
    originals: Mapping[str, Original] = MappingProxyType({})
    unreadable: Mapping[str, Message] = MappingProxyType({})
    label_column: str | None = None
    _is_copy = False

    def __init__(self, path: Path, options: TableOptions, first: Self | None) -> None:
        self.path = path
        self.options = options
        self.notes: list[Message | str] = []
        self._state = self.read_state()
        self.n_bytes = self._state[0]

    def read_state(self) -> tuple[int, int, int]:
        """Return the size of the file, and what else changes with it."""
        return _read_state(self.path)

    @abstractmethod
    def configure(self, first: Self | None) -> None:
        """Apply the column kinds and the block size in `options`, without reading the file."""

    def with_options(self, options: TableOptions, first: Self | None) -> Self:
        """The same file with other kinds of columns or another block size; it is not read."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = options
        other.configure(first)
        return other

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield all blocks in order as (data, labels); none of them is empty."""

    def prepare_random_access(self) -> None:  # noqa: B027  (nothing to do for most)
        """Prepare for calls of `block`; called before the pass that precedes them."""

    @abstractmethod
    def block(self, number: int) -> tuple[Any, NDArray[Any] | None]:
        """Read one block again; a complete pass of `blocks` has been made before."""

    def cut(self, n_bytes: int) -> list[Part]:
        """Parts of about `n_bytes` that can be read separately; one if that is not possible."""
        return [Part(0, None, self.n_rows)]

    def measure(self, part: Part) -> Part:
        """Return the part with its rows and lines counted."""
        return replace(part, n_rows=sum(count_rows(data) for data, _ in self.read_part(part)))

    def read_part(self, part: Part) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """Yield the blocks of a part in order, as `blocks` does for the whole file."""
        return self.blocks()

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process or machine, which reads the file without inspecting it."""
        return {**self.__dict__, **dict.fromkeys(self.not_copied), "_is_copy": True}

    def check_unchanged(self) -> None:
        """Raise an error if the file is not the one that was opened."""
        compared = slice(1 if self._is_copy else None)  # other machines may report other file times
        if self.read_state()[compared] != self._state[compared]:
            raise self.changed_error()

    def damage_error(self, found: str, expected: int) -> TableError:
        """Return the error for a file whose content is not what its metadata declares."""
        return TableError(
            f"{self.path} is damaged: it has {found}, but its metadata declares {expected}",
            GET_AGAIN,
        )

    def changed_error(self) -> TableError:
        """Return the error for a file that was modified after it was opened."""
        return TableError(
            f"{self.path} changed while it was being read", "run again when the file is complete"
        )


def count_rows(data: Any) -> int:
    """Return the number of rows of a record batch or a matrix."""
    return int(data.shape[0]) if hasattr(data, "shape") else int(data.num_rows)


def _read_state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise TableError(f"{path} must be a regular file, because it is read more than once")
    return found.st_size, found.st_mtime_ns, found.st_ino


def large_integer_error(
    place: str, column: str, value: int | str, as_categories: str | None = None
) -> TableError:
    """Return the error for an integer that float64 may not represent.

    `as_categories` is what to do in files whose integers cannot be read as categories.
    """
    shown = str(value)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    return TableError(
        f"{place}: column {column!r} has integers beyond 2**53, such as {shown}, which float64 "
        "does not represent exactly",
        as_categories or Remedy("read it as categories", categorical=[column]),
        Remedy("leave it out if it is an identifier", drop=[column]),
        Remedy("round them", numeric=[column]),
    )


def enumerate_names(names: Sequence[str]) -> dict[str, int]:
    """Return the position of each name."""
    return {name: position for position, name in enumerate(names)}


def find_column(
    column: str | int, positions: Mapping[str, int] | None, n_features: int | None, source: str
) -> int:
    """The position of a column given by name or position; the error lists the existing ones."""
    width = n_features if positions is None else len(positions)
    if isinstance(column, str) and positions is not None and column in positions:
        return positions[column]
    is_number = isinstance(column, int) and not isinstance(column, bool)
    if is_number or (isinstance(column, str) and re.fullmatch("-?[0-9]{1,18}", column)):
        position = int(column)
        if width is None and position >= 0:
            return position
        if width is not None and -width <= position < width:
            return position % width  # negative ones count from the end
        limits = "" if width is None else f" and {width - 1}: {source} has {width} columns"
        raise TableError(f"column {column} must be between 0{limits}")
    if not isinstance(column, str):
        raise TableError(f"a column must be a name or a zero-based index, got {column!r}")
    if positions is None:
        raise TableError(
            f"{source} is a matrix whose columns have no names, got {column!r}",
            "use the zero-based index of the column",
        )
    names = list(positions)
    problem = f"{source} has no column {column!r}"
    dots = ", ..." if len(names) > 10 else ""
    every = f"use one of its columns: {', '.join(map(repr, names[:10]))}{dots}"
    similar = ", ".join(map(repr, find_similar(column, names)))
    near = [f"use a column with a similar name: {similar}"] if similar else []
    raise TableError(problem, *near, every)


def find_similar(column: str, names: Sequence[str]) -> list[str]:
    """Return the names that are like that of a column, the most similar first."""
    plain = column.strip().lower()
    same = [name for name in names if name.strip().lower() == plain]
    return list(dict.fromkeys(same + difflib.get_close_matches(column, names, n=3, cutoff=0.6)))


def make_unique(given: Sequence[str]) -> tuple[tuple[str, ...], list[Message | str]]:
    """Make the column names unique; return them with notes on those that were changed."""
    names: list[str] = []
    notes: list[Message | str] = []
    taken, used = set(given), set[str]()
    for position, name in enumerate(given):
        unique = name
        if name == "" or name in used:
            unique = f"{name}_{position}" if name else str(position)
            while unique in taken:
                unique += "_"
            taken.add(unique)
            what = f"repeats the name {name!r}" if name else "has no name"
            notes.append(f"Column {position} {what}; it is called {unique!r}.")
        names.append(unique)
        used.add(unique)
    return tuple(names), notes


def resolve_kinds(names: Sequence[str], options: TableOptions, source: str) -> dict[str, str]:
    """Return the kinds that are given, by the column names; that of unused ones is "other"."""
    by_name = enumerate_names(names)
    positions = {
        kind: {find_column(each, by_name, None, source) for each in given}
        for kind, given in (
            ("category", options.categorical),
            ("numeric", options.numeric),
            ("date", options.dates),
            ("other", options.unused),
        )
    }
    both = sorted(positions["category"] & positions["numeric"])
    both += sorted(positions["date"] & (positions["category"] | positions["numeric"]))
    if both:
        name = names[both[0]]
        raise TableError(
            f"column {name!r} must be declared as only one of categorical, numeric and date, "
            "got two of them",
            Remedy("declare it once", categorical=..., numeric=..., dates=...),
        )
    return {names[position]: kind for kind, each in positions.items() for position in each}


def set_kinds(kinds: Mapping[str, str], given: Mapping[str, str]) -> tuple[TableColumn, ...]:
    """Return the columns with their kinds, those in `given` before the detected ones."""
    return tuple(TableColumn(name, given.get(name, kind)) for name, kind in kinds.items())


def name_originals(names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """Names for further columns of blocks, which have the values of others as they are."""
    prefix = "original "
    while any(f"{prefix}{name}" in taken for name in names):
        prefix += "original "
    return {name: f"{prefix}{name}" for name in names}


def compare_columns(
    path: Path, columns: Mapping[str, str], first_path: Path, first: Mapping[str, str]
) -> None:
    """Raise an error if the columns of a file, name to kind, are not those of the first file."""
    lacking = [name for name in first if name not in columns]
    extra = [name for name in columns if name not in first]
    differences = [
        *(f"column {name!r} is missing" for name in lacking[:3]),
        *(f"column {name!r} is additional" for name in extra[:3]),
    ]
    for name, kind in first.items():
        if columns.get(name, kind) != kind:
            differences.append(
                f"{name!r} is {columns[name]} in this file and {kind} in the first one"
            )
    if differences:
        raise TableError(
            f"{path} and {first_path} have different columns: {', '.join(differences[:6])}",
            SAME_COLUMNS,
        )
