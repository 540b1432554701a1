"""Compressed files as streams of their decompressed bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import re
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from kernelmill.errors import Remedy
from kernelmill.files.remote_path import RemotePath
from kernelmill.io.errors import TableError

__all__ = [
    "COMPRESSIONS",
    "GET_AGAIN",
    "TemporaryCopy",
    "copy_errors",
    "decompress",
    "detect_compression",
    "largest_size",
    "open_stream",
    "read_at",
    "read_beginning",
    "read_fully",
    "read_head",
    "read_to_end",
    "transcode",
]

COMPRESSIONS = (".gz", ".bz2", ".zst")

GET_AGAIN = "copy or download the file again"  # the remedy for damaged files

# Deflate expands one byte to at most 1032; bzip2 and Zstandard have no useful limit.
_LARGEST_RATIO = {".gz": 1032}

_PIECE = 1 << 20


# The first bytes of compressed data; file names are not always correct.
_BEGINNINGS = {
    ".gz": re.compile(rb"\x1f\x8b\x08"),
    ".bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}


def detect_compression(path: Path) -> str | None:
    """The extension of the compression, from the name or the first bytes; None if there is none."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS:
        return suffix
    start = read_beginning(path)
    return next((name for name, each in _BEGINNINGS.items() if each.match(start)), None)


def read_beginning(path: Path) -> bytes:
    """Return the first 16 bytes of the file as stored; empty if it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would block until something is written
            return b""
        with path.open("rb", buffering=0) as stream:
            return stream.read(16) or b""
    except OSError:
        return b""


def largest_size(path: Path, n_bytes: int) -> int | None:
    """An upper bound of the decompressed size of a file of `n_bytes`; None if there is none."""
    compression = detect_compression(path)
    if compression is None:
        return n_bytes
    ratio = _LARGEST_RATIO.get(compression)
    return None if ratio is None else ratio * n_bytes


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open the decompressed bytes of a file; errors become a `TableError` that names it."""
    try:
        with _open(path) as stream:
            yield stream
    except EOFError:
        raise TableError(
            f"{path} is truncated: the compressed data is incomplete", GET_AGAIN
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is not a valid gzip file: {error}", GET_AGAIN) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from None


def _open(path: Path) -> IO[bytes]:
    compression = detect_compression(path)
    if compression == ".gz":
        return cast("IO[bytes]", _GzipReader(path))
    if compression == ".bz2":
        return cast("IO[bytes]", io.BufferedReader(_Bz2Reader(path), _PIECE))
    if compression == ".zst":
        import pyarrow as pa  # noqa: PLC0415  (heavy)

        source = path.open("rb") if isinstance(path, RemotePath) else str(path)
        return cast("IO[bytes]", pa.input_stream(source, compression="zstd"))
    return path.open("rb", buffering=0)


class _GzipReader(gzip.GzipFile):
    """The bytes of a gzip file, which is closed with it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        super().__init__(fileobj=self._file)

    def close(self) -> None:
        super().close()
        self._file.close()


class _Bz2Reader(io.RawIOBase):
    """The bytes of a bzip2 file; `bz2.open` ignores what follows the first damaged stream."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._decompressor = bz2.BZ2Decompressor()
        self._begun = False  # whether the stream has any bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            piece = b""
            if self._decompressor.eof:
                piece = self._decompressor.unused_data
                self._decompressor, self._begun = bz2.BZ2Decompressor(), False
            if not piece and self._decompressor.needs_input:
                piece = self._file.read(_PIECE)
                if not piece and not self._begun:
                    return 0
                if not piece:
                    raise EOFError
            self._begun = self._begun or bool(piece)
            data = self._decompressor.decompress(piece, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_to_end(stream: Any, path: Path) -> None:
    """Read the end of a compressed stream, which verifies its checksum; more data is an error."""
    surplus = stream.read(_PIECE)
    if surplus:
        raise TableError(f"{path} is damaged: it has more data than its header declares", GET_AGAIN)


def read_head(path: Path, count: int) -> bytes:
    """Return the first `count` bytes of the decompressed file, or all of them if it is shorter."""
    with open_stream(path) as stream:
        return read_fully(stream, count)


def read_fully(stream: Any, count: int) -> bytes:
    """Read `count` bytes; fewer only at the end of the stream."""
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
    """Read `count` bytes at an offset, fewer at the end of the file; its position is unchanged."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError):  # not a file of this machine
        before = stream.tell()
        stream.seek(offset)
        data = read_fully(stream, count) if count > 0 else b""
        stream.seek(before)
        return data
    pieces = []
    while count > 0 and (piece := os.pread(descriptor, count, offset)):
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class TemporaryCopy:
    """A temporary file without a name, closed when this object is garbage-collected.

    Attributes
    ----------
    stream : file object
        Can be written, read and positioned.
    """

    def __init__(self) -> None:
        self.stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self.stream.close)


def decompress(path: Path) -> TemporaryCopy:
    """Copy the decompressed bytes of a file to a temporary file."""
    copy = TemporaryCopy()
    with open_stream(path) as stream:
        while piece := stream.read(_PIECE):
            with copy_errors(path):
                copy.stream.write(piece)
    with copy_errors(path):
        copy.stream.flush()
    return copy


def transcode(path: Path, encoding: str) -> TemporaryCopy:
    """Copy the decompressed text of a file to a temporary file in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    copy = TemporaryCopy()
    with open_stream(path) as stream:
        at_end = False
        while not at_end:
            piece = stream.read(_PIECE)
            at_end = not piece
            try:
                text = decoder.decode(piece, final=at_end)
            except UnicodeError as error:  # UTF-16 without a byte order mark has no reason
                raise TableError(
                    f"{path} is not encoded as {encoding}: {getattr(error, 'reason', error)}",
                    Remedy("specify another encoding", encoding=...),
                ) from None
            with copy_errors(path):
                copy.stream.write(text.encode(errors="replace"))
    with copy_errors(path):
        copy.stream.flush()
    return copy


@contextmanager
def copy_errors(path: Path) -> Iterator[None]:
    """Convert errors of writing a temporary copy of a file to a `TableError`."""
    try:
        yield
    except OSError as error:
        raise TableError(
            f"{path} cannot be copied to a temporary file in {tempfile.gettempdir()}: "
            f"{error.strerror or error}",
            "set the environment variable TMPDIR to a folder with more space",
        ) from None
