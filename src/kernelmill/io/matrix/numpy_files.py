"""NPY and NPZ files."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelmill.io.compression import GET_AGAIN, detect_compression, open_stream
from kernelmill.io.errors import TableError
from kernelmill.io.limits import LONGEST_VALUE
from kernelmill.io.matrix.matrix_file import MatrixFile, RawArray, check_matrix

__all__ = ["NpyFile", "NpzFile", "read_npy_header"]

_LONGEST_HEADER = 1 << 16


class NpyFile(MatrixFile):
    """A matrix saved by `numpy.save`; object arrays are rejected, because they are pickled."""

    def find_arrays(self) -> tuple[RawArray, None]:
        """Find the matrix."""
        if detect_compression(self.path) is not None:
            raise TableError(f"{self.path} must not be compressed", "decompress it first")
        with open_stream(self.path) as stream:
            shape, fortran, dtype, offset = read_npy_header(stream, self.path)
        check_matrix(self.path, "the array", shape, dtype)
        check_size(self.path, shape, dtype, self.n_bytes - offset)
        path = self.path
        array = RawArray(path, partial(open_stream, path), offset, shape, dtype, fortran, offset)
        return array, None


def read_npy_header(
    stream: IO[bytes], path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Read the shape, whether the order is Fortran's, the dtype, and the size of the header."""
    counting = _CountingReader(stream)
    try:
        version = np.lib.format.read_magic(counting)
        counting.check_header_length(path, version)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(
                counting, max_header_size=_LONGEST_HEADER
            )
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(
                counting, max_header_size=_LONGEST_HEADER
            )
        else:
            raise TableError(
                f"{path} has version {version} of the NPY format, but only 1.0 and 2.0 are "
                "supported",
                "save the array again with numpy.save",
            )
    except TableError:
        raise
    except Exception as error:  # numpy raises several types
        raise TableError(f"{path} is not a valid NPY file: {str(error).rstrip('.')}") from None
    if any(not isinstance(size, int) or size < 0 for size in shape):
        raise TableError(f"{path} is not a valid NPY file: its shape is {shape}")
    return shape, bool(fortran), dtype, counting.count


def check_size(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], available: int) -> None:
    """Raise an error if an array does not fill its part of a file, before memory is allocated."""
    needed = math.prod(shape) * dtype.itemsize
    if needed < available:
        raise TableError(
            f"{path} is damaged, or contains more than one array: shape {shape} of {dtype} needs "
            f"{needed} bytes after the header, but there are {available}",
            "save one array per file",
            GET_AGAIN,
        )
    if needed > available:
        raise TableError(
            f"{path} is truncated: shape {shape} of {dtype} needs {needed} bytes after the header, "
            f"but there are {max(0, available)}",
            GET_AGAIN,
        )


class _CountingReader:
    """A stream that counts the bytes read, because streams from archives do not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.count = 0
        self._ahead = b""

    def check_header_length(self, path: Path, version: tuple[int, int]) -> None:
        """Check the length that comes next; numpy would read all of it, and suggest pickles."""
        layout = struct.Struct("<H" if version == (1, 0) else "<I")
        self._ahead = self._stream.read(layout.size)
        if len(self._ahead) == layout.size and layout.unpack(self._ahead)[0] > _LONGEST_HEADER:
            raise TableError(
                f"{path} is not a valid NPY file: its header has "
                f"{layout.unpack(self._ahead)[0]} bytes, more than {_LONGEST_HEADER}",
                "save the array again with numpy.save",
            )

    def read(self, size: int = -1, /) -> bytes:
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        data += self._stream.read(size - len(data))
        self.count += len(data)
        return data


_MATRIX_NAMES = ("X", "data")
_LABEL_NAMES = ("y", "target")
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    UnicodeDecodeError,
    struct.error,
)
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # the signature and the lengths of name and extra field


class NpzFile(MatrixFile):
    """Arrays saved by `numpy.savez`, read in place, or by `numpy.savez_compressed`."""

    def find_arrays(self) -> tuple[RawArray, RawArray | None]:
        """Find the matrix and the labels."""
        with _open_archive(self.path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if "indptr" in members:
                raise TableError(
                    f"{self.path} contains a SciPy sparse matrix",
                    "write an svmlight file with sklearn.datasets.dump_svmlight_file",
                )
            matrix_name = next((name for name in _MATRIX_NAMES if name in members), None)
            if matrix_name is None:
                raise TableError(
                    f"{self.path} must have a member X or data, got {', '.join(members) or 'none'}"
                )
            matrix = self._find_member(archive, members[matrix_name])
            check_matrix(self.path, matrix_name, matrix.shape, matrix.dtype)
            label_name = next((name for name in _LABEL_NAMES if name in members), None)
            if label_name is None:
                return matrix, None
            labels = self._find_member(archive, members[label_name])
            if labels.dtype.kind == "S":
                raise TableError(
                    f"{self.path}: {label_name} holds bytes (dtype {labels.dtype}), not strings",
                    f"save {label_name}.astype(str)",
                )
            if labels.dtype.kind not in "biufU" or labels.dtype.itemsize == 0:
                raise TableError(
                    f"{self.path}: {label_name} must hold numbers or strings, got dtype "
                    f"{labels.dtype} (object arrays are not read because reading them can run "
                    "code)",
                    f"save {label_name}.astype(str)",
                )
            if labels.dtype.itemsize > LONGEST_VALUE:
                raise TableError(
                    f"{self.path}: the strings of {label_name} have {labels.dtype.itemsize} bytes "
                    f"(dtype {labels.dtype}), more than the {LONGEST_VALUE} that a value may have",
                    "use shorter labels",
                )
            return matrix, labels

    def _find_member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> RawArray:
        path, name = self.path, info.filename
        if info.flag_bits & 1:
            raise TableError(f"{path}: {name} is encrypted", "save it without a password")
        with archive.open(info) as stream:
            shape, fortran, dtype, offset = read_npy_header(stream, path)
        begin: int | None = None
        if not dtype.hasobject:  # which the caller rejects; their size in the file is not known
            check_size(path, shape, dtype, info.file_size - offset)
            self._check_ratio(info)
            if info.compress_type == zipfile.ZIP_STORED:
                begin = self._find_begin(info) + offset
                check_size(path, shape, dtype, min(info.file_size - offset, self.n_bytes - begin))
        return RawArray(
            path, partial(_open_member, path, name), offset, shape, dtype, fortran, begin, True
        )

    def _check_ratio(self, info: zipfile.ZipInfo) -> None:
        """Raise an error for a member larger than 1032 times the file, the limit of deflate."""
        if info.compress_type == zipfile.ZIP_DEFLATED and info.file_size > 1032 * self.n_bytes:
            raise TableError(f"{self.path} is not a valid NPZ file: {info.filename} is too large")

    def _find_begin(self, info: zipfile.ZipInfo) -> int:
        """Return the offset of a member that is not compressed."""
        with open_stream(self.path) as stream:
            stream.seek(info.header_offset)
            header = stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise TableError(f"{self.path} is not a valid NPZ file: {info.filename} is missing")
        _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        return int(info.header_offset + _LOCAL_HEADER.size + name_length + extra_length)


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except _ARCHIVE_ERRORS as error:
        raise TableError(f"{path} is not a valid NPZ file: {error}", GET_AGAIN) from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from None


@contextmanager
def _open_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    with _open_archive(path) as archive, archive.open(name) as stream:
        yield stream
