"""Text in pieces that end where lines end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from kernelmill.io.errors import TableError

__all__ = ["LONGEST_LINE", "line_pieces"]

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
    >>> from kernelmill.io.svmlight_pieces import line_pieces
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
