"""One file of a table: what a format has to offer."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from kernelmill.io.errors import TableError

__all__ = ["Column", "TableFile", "TableOptions"]


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
