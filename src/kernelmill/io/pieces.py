"""Pieces of a table: consecutive rows that another process or machine can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part
from kernelmill.io.table import Table, TableBlock
from kernelmill.io.table_file import TableFile, count_rows

__all__ = ["TablePiece", "cut_table"]

_PIECE_BYTES = 64 << 20

Map = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


@dataclass(frozen=True)
class TablePiece:
    """Consecutive rows of one file of a table.

    A pickled piece is small: it contains the place of the rows and the options for reading the
    file. Columns and their kinds are not detected again.

    Attributes
    ----------
    file : TableFile
    part : Part
        The part of the file, with its rows counted.
    first_row : int
        The position of the first row, counted from 0 over all files.
    """

    file: TableFile
    part: Part
    first_row: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        assert self.part.n_rows is not None
        return self.part.n_rows

    def __str__(self) -> str:
        """Return the file and the rows, as messages name them."""
        return f"{self.file.path}, rows {self.first_row + 1} to {self.first_row + self.n_rows}"

    def blocks(self) -> Iterator[TableBlock]:
        """Read the rows in blocks.

        Raises
        ------
        TableError
            The file is malformed, has changed, or does not exist on this machine.
        """
        try:
            self.file.check_unchanged()
        except TableError as error:
            raise TableError(
                error.message.problem,
                "make the same files available to all workers under the same paths",
            ) from None
        first_row = self.first_row
        for data, labels in self.file.read_part(self.part):
            before = self.first_row - self.part.row
            yield TableBlock(data, labels, self.file.path, first_row, before)
            first_row += count_rows(data)
        if first_row != self.first_row + self.n_rows:
            raise self.file.changed_error()


def cut_table(table: Table, piece_bytes: int = _PIECE_BYTES, run: Map = map) -> list[TablePiece]:
    r"""Cut a table into pieces, which have all of its rows in order.

    Pieces are row groups of Parquet, batches of Arrow, rows of NPY, IDX and uncompressed NPZ, and
    ranges of bytes, between records, of text that is not compressed. Other files are one piece
    each. All pieces have rows.

    Parameters
    ----------
    table : Table
    piece_bytes : int, default=64 MiB
        The approximate size of a piece in the file.
    run : callable, optional
        Calls a function for each object of a list and gives the results in order, like `map`;
        here the rows of text are counted, on a cluster by its workers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io import open_table
    >>> from kernelmill.io.pieces import cut_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.csv"
    ...     _ = path.write_text("a\n1\n2\n3\n4\n5\n")
    ...     [(piece.first_row, piece.n_rows) for piece in cut_table(open_table(path), 4)]
    [(0, 2), (2, 2), (4, 1)]
    """
    table.check_unchanged()
    cut = [(file, part) for file in table.opened for part in file.cut(piece_bytes)]
    unknown = [place for place, (_, part) in enumerate(cut) if part.n_rows is None]
    counted = dict(zip(unknown, run(_measure, [cut[place] for place in unknown]), strict=True))
    parts: dict[TableFile, list[Part]] = {file: [] for file in table.opened}
    for place, (file, part) in enumerate(cut):
        parts[file].append(counted.get(place, part))
    pieces: list[TablePiece] = []
    first_row = 0
    for file, found in parts.items():
        row = line = 0
        for part in _join_open(found, partial(_measure_again, file, run)):
            placed = replace(part, row=row, line=line)
            if part.fails:
                for _ in file.read_part(placed):  # the error names the line
                    pass
                raise file.changed_error()
            assert part.n_rows is not None
            if part.n_rows:
                pieces.append(TablePiece(file, placed, first_row))
            row, line, first_row = row + part.n_rows, line + part.n_lines, first_row + part.n_rows
    return pieces


def _measure(place: tuple[TableFile, Part]) -> Part:
    file, part = place
    return file.measure(part)


def _measure_again(file: TableFile, run: Map, part: Part) -> Part:
    (found,) = run(_measure, [(file, part)])
    measured: Part = found
    return measured


def _join_open(parts: Sequence[Part], measure: Callable[[Part], Part]) -> Iterator[Part]:
    """The parts, those that end inside a quoted value joined with the next ones.

    The first part begins with a record, so what was found about it holds. If it does not end inside
    a value, the same is true of the next part.
    """
    begun: Part | None = None
    for part in parts:
        known = part
        if begun is not None:
            known = measure(Part(begun.begin, part.end))
        begun = known if known.is_open else None
        if begun is None:
            yield known
    if begun is not None:
        yield replace(begun, fails=True)
