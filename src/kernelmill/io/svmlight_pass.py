"""One pass over the text of a svmlight file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelmill.io.compression import open_stream
from kernelmill.io.svmlight_numbering import Numbering
from kernelmill.io.svmlight_pieces import line_pieces
from kernelmill.io.svmlight_rows import Space, SvmlightRows, SvmlightText, parse_rows

__all__ = ["Place", "SvmlightPass"]

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
