"""The text of a svmlight file in pieces of complete lines, and the numbering of its indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError
from kernelmill.io.compression import open_stream
from kernelmill.io.errors import TableError
from kernelmill.io.file_parts import Part, open_range
from kernelmill.io.limits import LONGEST_VALUE
from kernelmill.io.svmlight.parser import (
    LARGEST_INDEX,
    Buffers,
    SvmlightRows,
    SvmlightText,
    parse_rows,
)

__all__ = [
    "LONGEST_LINE",
    "IndexRange",
    "Numbering",
    "SvmlightPass",
    "TextSpan",
    "split_lines",
]


@dataclass
class IndexRange:
    """The smallest and the largest index seen so far; smallest > largest if there is none."""

    smallest: int = LARGEST_INDEX
    largest: int = -1

    def include(self, smallest: int, largest: int) -> None:
        """Extend the range by that of more rows."""
        self.smallest = min(self.smallest, smallest)
        self.largest = max(self.largest, largest)


@dataclass(frozen=True)
class Numbering:
    """The user's options for indices: the number of features, and the first index.

    By default indices count from 0 if the index 0 occurs, otherwise from 1 as in LIBSVM.

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
    widest: int | None = None  # more features are an error, unless `n_features` is given

    def __post_init__(self) -> None:
        if self.zero_based is not None and not isinstance(self.zero_based, bool):
            raise ArgumentError(
                f"must be True, False or None, got {self.zero_based!r}", parameter="zero_based"
            )
        if self.n_features is not None:
            check_integer("n_features", self.n_features, 0, LARGEST_INDEX)

    def zero_based_in(self, seen: IndexRange) -> bool:
        """Return whether indices count from 0, if `seen` is the range of all of them."""
        return seen.smallest == 0 if self.zero_based is None else self.zero_based

    def width_of(self, seen: IndexRange) -> int:
        """Return the number of features, if `seen` is the range of all indices."""
        if self.n_features is not None:
            return self.n_features
        return max(0, seen.largest + self.zero_based_in(seen))

    def limit(self, zero_based: bool) -> int:
        """Return the largest index that is allowed."""
        if self.n_features is not None:
            return self.n_features - zero_based
        return LARGEST_INDEX if self.widest is None else self.widest - zero_based


# A line is in memory as a whole; one of this size has about twenty million entries.
LONGEST_LINE = 1 << 28


def split_lines(
    stream: IO[bytes], piece_bytes: int, path: Path, longest_line: int = LONGEST_LINE
) -> Iterator[tuple[int, int, memoryview]]:
    r"""Yield the offset of a piece, its length in the stream, and the piece, which ends with \n.

    Pieces have at most `piece_bytes` bytes, or twice the length of their first line if that is
    more. A last line without a line end gets one, which is not counted in the length. The memory
    of a piece is reused for the next one.

    Examples
    --------
    >>> import io
    >>> from pathlib import Path

    >>> stream = io.BytesIO(b"1 2:3\n4\n5 6:7")
    >>> [(start, size, bytes(p)) for start, size, p in split_lines(stream, 9, Path("rows.svm"))]
    [(0, 8, b'1 2:3\n4\n'), (8, 5, b'5 6:7\n')]
    """
    start, filled = 0, 0
    buffer = bytearray(piece_bytes + 1)  # one more byte, for the end of the last line
    while True:
        at_end, filled = _fill_buffer(stream, buffer, filled)
        cut = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if cut == 0 and not at_end:
            if filled > longest_line:
                raise _line_error(path, start, f"{longest_line} bytes")
            if _ends_in_long_value(buffer, filled):
                raise _line_error(path, start, f"{LONGEST_VALUE >> 20} MiB without a space")
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


def _line_error(path: Path, start: int, most: str) -> TableError:
    return TableError(
        f"{path} has a line of more than {most}, starting at byte {start + 1}",
        "check that this is a text file with one row per line",
    )


def _ends_in_long_value(buffer: bytearray, filled: int) -> bool:
    """Return whether the last of the bytes are one value that is too long."""
    begin = filled - LONGEST_VALUE
    return begin > 0 and all(buffer.rfind(blank, begin, filled) < 0 for blank in (b" ", b"\t"))


def _fill_buffer(stream: Any, buffer: bytearray, filled: int) -> tuple[bool, int]:
    """Fill all but the last byte of the buffer; whether the stream ended, and how full it is."""
    view = memoryview(buffer)
    while filled < len(buffer) - 1:
        count = stream.readinto(view[filled:-1])
        if not count:
            return True, filled
        filled += count
    return False, filled


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextSpan:
    """The position of a piece of text: its first byte, length and first line."""

    start: int
    length: int
    line: int


@dataclass(frozen=True)
class SvmlightPass:
    """One pass over the text of a file, in pieces.

    Attributes
    ----------
    path : Path
        The file.
    numbering : Numbering
        What the user specifies about indices.
    zero_based : bool
        What is known in this pass; while it is False, the index 0 is still accepted.
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

    def pieces(
        self, buffers: Buffers | None = None, part: Part | None = None
    ) -> Iterator[tuple[TextSpan, SvmlightRows]]:
        """Yield all rows, or those of a part of the file, piece by piece.

        With `buffers`, they are valid until the next piece.
        """
        line, begin, opened = 1, 0, open_stream(self.path)
        if part is not None and part.end is not None:
            line, begin = line + part.line, part.begin
            opened = open_range(self.path, begin, part.end)
        with opened as stream:
            for start, length, text in split_lines(stream, self.piece_bytes, self.path):
                place = TextSpan(begin + start, length, line)
                rows = self.parse(text, place, buffers)
                line += rows.n_lines
                yield place, rows

    def parse(self, text: Any, place: TextSpan, buffers: Buffers | None = None) -> SvmlightRows:
        """Parse a piece of text; the byte order mark of some files is skipped."""
        if place.start == 0 and text[:3] == _BYTE_ORDER_MARK:
            text = text[3:]
        limit = self.numbering.limit(self.zero_based)
        source = SvmlightText(text, self.path, place.line, self.numbering.n_features, limit)
        return parse_rows(source, self.dtype, buffers)
