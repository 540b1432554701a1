"""One file of a table, and the names and kinds of its columns."""

from __future__ import annotations

import difflib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from kernelmill.io.errors import TableError

__all__ = [
    "Column",
    "TableFile",
    "TableOptions",
    "given_kinds",
    "index_of_column",
    "overridden_kinds",
    "places_of",
    "unique_names",
]


@dataclass(frozen=True)
class Column:
    """The name of a column and its kind: "numeric", "category", "date" or "other".

    Examples
    --------
    >>> from kernelmill.io import Column
    >>> Column("age", "numeric")
    Column(name='age', kind='numeric')
    """

    name: str
    kind: str


@dataclass(frozen=True)
class TableOptions:
    """How to read; the arguments of `open_table` of the same names."""

    delimiter: str | None = None
    header: bool | None = None
    categorical: Sequence[str | int] = ()
    numeric: Sequence[str | int] = ()
    skip_rows: int = 0
    block_bytes: int = 8 << 20
    n_features: int | None = None
    zero_based: bool | None = None
    decimal: str | None = None


class TableFile(ABC):
    """A file of some format, opened; blocks of it can be read again and again.

    A class of a format is called with the path, the options and the first file of the table (None
    for the first), whose decisions (types of columns, delimiter) hold for all. It reads no more
    than it needs to know columns, and keeps no file open between passes.

    Attributes
    ----------
    path, columns, n_features, carries_labels, notes, n_bytes
        As in `Table`.
    zero_based : bool or None
        Of formats with indices: whether they count from 0.
    n_rows : int or None
        The number of rows, where it is cheaply known.
    """

    # Files may differ in the number of features, and the table has the largest.
    widens: ClassVar[bool] = False

    columns: tuple[Column, ...] | None = None
    n_features: int | None = None
    carries_labels: bool = False
    zero_based: bool | None = None
    n_rows: int | None = None

    def __init__(self, path: Path, options: TableOptions, first: Self | None) -> None:
        self.path = path
        self.options = options
        self.notes: list[str] = []
        self._state = _state(path)
        self.n_bytes = self._state[0]

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Any, NDArray[Any] | None]]:
        """All blocks in order, (data, labels); none of them is empty."""

    def prepare_random_access(self) -> None:  # noqa: B027  (nothing to do for most)
        """Called before the first call of `block`, and before the pass that precedes it."""

    @abstractmethod
    def block(self, number: int) -> tuple[Any, NDArray[Any] | None]:
        """One block again; a complete pass of `blocks` was made before."""

    def check_unchanged(self) -> None:
        """Raise an error if the file is not the one that was opened."""
        if _state(self.path) != self._state:
            raise TableError(
                f"{self.path} changed while it was being read; start again when it is complete."
            )


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116  (one call, and the errors of the system)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise TableError(f"{path} must be a regular file, as it is read more than once.")
    return found.st_size, found.st_mtime_ns, found.st_ino


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


def unique_names(given: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names for columns: the given ones where they differ, and notes on the others."""
    names: list[str] = []
    notes = []
    taken, used = set(given), set[str]()
    for place, name in enumerate(given):
        unique = name
        if name == "" or name in used:
            unique = f"{name}_{place}" if name else str(place)
            while unique in taken:
                unique += "_"
            taken.add(unique)
            what = f"has the name {name!r} again" if name else "has no name"
            notes.append(f"Column {place} {what}; it is called {unique!r}.")
        names.append(unique)
        used.add(unique)
    return tuple(names), notes


def given_kinds(
    names: Sequence[str],
    categorical: Sequence[str | int],
    numeric: Sequence[str | int],
    source: str,
) -> dict[str, str]:
    """The kinds that the user gives, by the names of columns."""
    by_name = places_of(names)
    places = {
        kind: {index_of_column(each, by_name, None, source) for each in given}
        for kind, given in (("category", categorical), ("numeric", numeric))
    }
    both = sorted(places["category"] & places["numeric"])
    if both:
        raise TableError(
            f"column {names[both[0]]!r} must be in categorical or in numeric, got it in both."
        )
    return {names[place]: kind for kind, each in places.items() for place in each}


def overridden_kinds(kinds: Mapping[str, str], given: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns, with the kinds that the user gives."""
    return tuple(Column(name, given.get(name, kind)) for name, kind in kinds.items())
