"""Parts of a file that are read separately, and ranges of bytes that begin and end with lines."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from kernelmill.io.compression import open_stream, read_at

__all__ = ["Part", "align_part", "cut_evenly", "find_long_line", "line_start", "open_range"]


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a file, from `begin` to `end` in the unit of its format.

    The unit is bytes of text, rows of a matrix, row groups of Parquet, or batches of Arrow. With
    `end` None, the part is the whole file.

    Attributes
    ----------
    n_rows, n_lines : int
        The size of the part; `n_rows` is None until `TableFile.measure` has counted the rows.
    row, line : int
        The rows and lines of the file before it.
    is_open : bool
        Whether the part ends inside a quoted value, so that the next part does not begin with a
        record.
    fails : bool
        Whether the rows cannot be read, or the part does not begin with a record.
    """

    begin: int
    end: int | None
    n_rows: int | None = None
    n_lines: int = 0
    row: int = 0
    line: int = 0
    is_open: bool = False
    fails: bool = False


def cut_evenly(begin: int, end: int, size: int) -> list[Part]:
    """Parts of `size` units, the last one shorter; their rows are not counted."""
    size = max(1, size)
    return [Part(at, min(at + size, end)) for at in range(begin, end, size)]


def align_part(path: Path, part: Part, n_bytes: int) -> Part:
    """Move the ends of a range of bytes to the ends of lines of a file of `n_bytes`."""
    if part.end is None:
        return part
    with open_stream(path) as stream:
        begin, end = (line_start(stream, place, n_bytes) for place in (part.begin, part.end))
    return replace(part, begin=begin, end=end)


def line_start(stream: IO[bytes], position: int, n_bytes: int) -> int:
    """The offset of the first line that begins at `position` or later; `n_bytes` if there is none.

    Lines end in LF; the first one of the file begins at 0.
    """
    place = position - 1
    while 0 <= place < n_bytes:
        piece = read_at(stream, place, 1 << 16)
        found = piece.find(b"\n")
        if found >= 0:
            return place + found + 1
        if not piece:
            break
        place += len(piece)
    return min(position, n_bytes) if place < 0 else n_bytes


def find_long_line(data: bytes, longest: int) -> int | None:
    """Return the offset of a line of more than `longest` bytes, without its LF; None if none is."""
    begin = 0
    while len(data) - begin > longest:
        end = data.rfind(b"\n", begin, begin + longest + 1) + 1
        if end == 0:
            return begin
        begin = end
    return None


class _Range(io.RawIOBase):
    """The bytes of a stream from one offset to another, as a stream."""

    def __init__(self, stream: IO[bytes], begin: int, end: int) -> None:
        self._stream, self._place, self._end = stream, begin, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = read_at(self._stream, self._place, min(len(buffer), self._end - self._place))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


@contextmanager
def open_range(path: Path, begin: int, end: int) -> Iterator[IO[bytes]]:
    """Open some bytes of a file that is not compressed."""
    with open_stream(path) as stream:
        yield cast("IO[bytes]", _Range(stream, begin, end))
