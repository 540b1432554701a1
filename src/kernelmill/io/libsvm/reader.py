"""The text of a svmlight file in pieces of complete lines, and the numbering of its indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelmill.io.compression import open_stream
from kernelmill.io.errors import TableError
from kernelmill.io.libsvm.parser import (
    LARGEST_INDEX,
    Space,
    SvmlightRows,
    SvmlightText,
    parse_rows,
)

__all__ = [
    "LARGEST_WIDTH",
    "LONGEST_LINE",
    "IndexRange",
    "Numbering",
    "Place",
    "SvmlightPass",
    "line_pieces",
]

# One vector of so many float64 takes 1 GiB; wider tables are most likely damaged ones.
LARGEST_WIDTH = 2**27


@dataclass
class IndexRange:
    """The smallest and the largest index seen so far; nothing was seen if they are in disorder."""

    smallest: int = LARGEST_INDEX
    largest: int = -1

    def include(self, smallest: int, largest: int) -> None:
        """Take in those of more rows."""
        self.smallest = min(self.smallest, smallest)
        self.largest = max(self.largest, largest)


@dataclass(frozen=True)
class Numbering:
    """What the user said of indices: nothing, or the number of features or the first index.

    Without a word, indices count from 0 if the index 0 occurs, otherwise from 1 as LIBSVM has it.

    Examples
    --------
    >>> numbering = Numbering()
    >>> numbering.zero_based_in(IndexRange(0, 7)), numbering.width_of(IndexRange(0, 7))
    (True, 8)
    >>> numbering.zero_based_in(IndexRange(2, 7)), numbering.width_of(IndexRange(2, 7))
    (False, 7)
    """

    n_features: int | None = None
    zero_based: bool | None = None
    widest: int | None = None  # more features are an error, unless the user asked for them

    def __post_init__(self) -> None:
        n_features, zero_based = self.n_features, self.zero_based
        if zero_based is not None and not isinstance(zero_based, bool):
            raise TableError(f"zero_based must be True, False or None, got {zero_based!r}.")
        if n_features is None:
            return
        if isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 0:
            raise TableError(
                f"n_features must be a whole number of columns, at least 0, got {n_features!r}."
            )
        if n_features > LARGEST_INDEX:
            raise TableError(f"n_features must be at most {LARGEST_INDEX}, got {n_features}.")

    def zero_based_in(self, seen: IndexRange) -> bool:
        """Whether indices count from 0, if these are all there are."""
        return seen.smallest == 0 if self.zero_based is None else self.zero_based

    def width_of(self, seen: IndexRange) -> int:
        """The number of features, if these are all the indices there are."""
        if self.n_features is not None:
            return self.n_features
        return max(0, seen.largest + self.zero_based_in(seen))

    def limit(self, zero_based: bool) -> int:
        """The largest index that may occur."""
        if self.n_features is not None:
            return self.n_features - zero_based
        return LARGEST_INDEX if self.widest is None else self.widest - zero_based


# A line is in memory as a whole; this one would have some twenty million entries.
LONGEST_LINE = 1 << 28


def line_pieces(
    stream: IO[bytes], piece_bytes: int, path: Path, longest_line: int = LONGEST_LINE
) -> Iterator[tuple[int, int, memoryview]]:
    r"""Where a piece starts, its length in the stream, and the piece itself, which ends with \n.

    Pieces have at most `piece_bytes` bytes, or twice the length of their first line if that is
    more. A last line without an end gets one, which does not count in the length. The memory of a
    piece is used again for the next one.

    Examples
    --------
    >>> import io
    >>> from pathlib import Path

    >>> stream = io.BytesIO(b"1 2:3\n4\n5 6:7")
    >>> [(start, size, bytes(p)) for start, size, p in line_pieces(stream, 9, Path("rows.svm"))]
    [(0, 8, b'1 2:3\n4\n'), (8, 5, b'5 6:7\n')]
    """
    start, filled = 0, 0
    buffer = bytearray(piece_bytes + 1)  # one byte more, for the end of the last line
    while True:
        at_end, filled = _fill(stream, buffer, filled)
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if cut == 0 and not at_end:
            if filled > longest_line:
                raise TableError(
                    f"{path} has a line of more than {longest_line} bytes, from byte {start + 1} "
                    "on; is it a text file with one row to a line?"
                )
            larger = bytearray(2 * (len(buffer) - 1) + 1)
            larger[:filled] = memoryview(buffer)[:filled]
            buffer = larger
            continue
        if cut > 0:
            end = cut
            if buffer[cut - 1] != ord("\n"):
                buffer[cut] = ord("\n")
                end += 1
            yield start, cut, memoryview(buffer)[:end]
        if at_end:
            return
        buffer[: filled - cut] = bytes(memoryview(buffer)[cut:filled])  # they may overlap
        start, filled = start + cut, filled - cut
        size = max(piece_bytes, 2 * filled) + 1
        if len(buffer) > size:  # after a long line
            buffer = buffer[:filled] + bytearray(size - filled)


def _fill(stream: Any, buffer: bytearray, filled: int) -> tuple[bool, int]:
    """Fill the buffer but for its last byte; whether the stream ended, and how full it is."""
    view = memoryview(buffer)
    while filled < len(buffer) - 1:
        count = stream.readinto(view[filled:-1])
        if not count:
            return True, filled
        filled += count
    return False, filled


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Place:
    """Where a piece of text is: its first byte, its length, the number of its first line."""

    start: int
    length: int
    line: int


@dataclass(frozen=True)
class SvmlightPass:
    """How the text of a file is read: in pieces of which size, to values of which type.

    Attributes
    ----------
    path : Path
        The file.
    numbering : Numbering
        What the user said of indices.
    zero_based : bool
        What is known of them in this pass: where it is False they may still start with 0.
    piece_bytes : int
        The size of a piece of text.
    dtype : dtype
        The type of values.
    """

    path: Path
    numbering: Numbering
    zero_based: bool
    piece_bytes: int
    dtype: Any

    def pieces(self, space: Space | None = None) -> Iterator[tuple[Place, SvmlightRows]]:
        """All rows, piece by piece; with a `space`, they hold until the next piece."""
        line = 1
        with open_stream(self.path) as stream:
            for start, length, text in line_pieces(stream, self.piece_bytes, self.path):
                place = Place(start, length, line)
                rows = self.parse(text, place, space)
                line += rows.n_lines
                yield place, rows

    def parse(self, text: Any, place: Place, space: Space | None = None) -> SvmlightRows:
        """The rows of a piece of text; the mark at the front of some files is left out."""
        if place.start == 0 and text[:3] == _BYTE_ORDER_MARK:
            text = text[3:]
        limit = self.numbering.limit(self.zero_based)
        source = SvmlightText(text, self.path, place.line, self.numbering.n_features, limit)
        return parse_rows(source, self.dtype, space)
