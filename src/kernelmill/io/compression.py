"""Compressed files as streams of their decompressed bytes."""

from __future__ import annotations

import bz2
import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from kernelmill.io.errors import TableError

__all__ = [
    "COMPRESSIONS",
    "compression_of",
    "copying_errors",
    "decompressed_copy",
    "first_bytes",
    "largest_size",
    "open_stream",
    "raw_beginning",
    "read_at",
    "read_fully",
]

COMPRESSIONS = (".gz", ".bz2", ".zst")

# Deflate makes at most 1032 bytes from one; bzip2 and zstandard have no limit worth checking.
_LARGEST_RATIO = {".gz": 1032}

_PIECE = 1 << 20


# How compressed data begins; names do not always tell.
_BEGINNINGS = {
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}


def compression_of(path: Path) -> str | None:
    """The extension of the compression, by the name or else by the first bytes, or None."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS:
        return suffix
    start = raw_beginning(path)
    return next((name for name, each in _BEGINNINGS.items() if each.match(start)), None)


def raw_beginning(path: Path) -> bytes:
    """Some first bytes of the file as it is, none if it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would wait for its writer
            return b""
        with path.open("rb", buffering=0) as stream:
            return stream.read(16) or b""
    except OSError:
        return b""


def largest_size(path: Path, n_bytes: int) -> int | None:
    """The largest size that a file of `n_bytes` can have when it is decompressed, if known."""
    compression = compression_of(path)
    if compression is None:
        return n_bytes
    ratio = _LARGEST_RATIO.get(compression)
    return None if ratio is None else ratio * n_bytes


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file; what goes wrong in between is an error that names it."""
    try:
        with _opened(path) as stream:
            yield stream
    except EOFError:
        raise TableError(
            f"{path} is truncated: the compressed data ends too early; get the file again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is not a sound gzip file: {error}; get it again.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from None


def _opened(path: Path) -> IO[bytes]:
    compression = compression_of(path)
    if compression == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if compression == ".bz2":
        return cast("IO[bytes]", bz2.open(path, "rb"))
    if compression == ".zst":
        import pyarrow as pa  # noqa: PLC0415  (heavy)

        return cast("IO[bytes]", pa.input_stream(str(path), compression="zstd"))
    return path.open("rb", buffering=0)


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of the decompressed file, at most `count`."""
    with open_stream(path) as stream:
        return read_fully(stream, count)


def read_fully(stream: Any, count: int) -> bytes:
    """`count` bytes, or fewer at the end of the stream only."""
    piece = stream.read(count)
    if len(piece) in (0, count):
        return cast("bytes", piece)
    pieces = [piece]
    missing = count - len(piece)
    while missing > 0 and (piece := stream.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def read_at(stream: IO[bytes], offset: int, count: int) -> bytes:
    """`count` bytes at a place of a file, or fewer at its end; the file's position stays."""
    pieces = []
    while count > 0 and (piece := os.pread(stream.fileno(), count, offset)):
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompressed_copy(path: Path) -> IO[bytes]:
    """The decompressed bytes in a temporary file without a name, which goes away when closed."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115  (the caller keeps it)
    try:
        with open_stream(path) as stream:
            while piece := stream.read(_PIECE):
                with copying_errors(path):
                    copy.write(piece)
        with copying_errors(path):
            copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy


@contextmanager
def copying_errors(path: Path) -> Iterator[None]:
    """Errors of writing a temporary copy of a file as ones that say where, and what to do."""
    try:
        yield
    except OSError as error:
        raise TableError(
            f"{path} cannot be copied to a temporary file in {tempfile.gettempdir()}: "
            f"{error.strerror or error}; name a folder with more space by the variable TMPDIR."
        ) from None
