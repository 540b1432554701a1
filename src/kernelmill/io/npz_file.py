"""NPZ files: a matrix X (or data) and maybe labels y (or target)."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kernelmill.io.compression import open_stream
from kernelmill.io.errors import TableError
from kernelmill.io.matrix_file import MatrixFile, check_matrix
from kernelmill.io.npy_file import check_size, read_npy_header
from kernelmill.io.raw_rows import RawArray

__all__ = ["NpzFile"]

_MATRIX_NAMES = ("X", "data")
_LABEL_NAMES = ("y", "target")
_ARCHIVE_FAULTS = (
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

    def arrays(self) -> tuple[RawArray, RawArray | None]:
        """The matrix and the labels."""
        with _opened(self.path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if "indptr" in members:
                raise TableError(
                    f"{self.path} holds a sparse matrix of scipy; write it as an svmlight file "
                    "instead (sklearn.datasets.dump_svmlight_file)."
                )
            matrix_name = next((name for name in _MATRIX_NAMES if name in members), None)
            if matrix_name is None:
                raise TableError(
                    f"{self.path} must have a member X or data, got {', '.join(members) or 'none'}."
                )
            matrix = self._member(archive, members[matrix_name])
            check_matrix(self.path, matrix_name, matrix.shape, matrix.dtype)
            label_name = next((name for name in _LABEL_NAMES if name in members), None)
            if label_name is None:
                return matrix, None
            labels = self._member(archive, members[label_name])
            if labels.dtype.kind == "S":
                raise TableError(
                    f"{self.path}: {label_name} holds bytes (dtype {labels.dtype}), which are no "
                    f"text; save {label_name}.astype(str)."
                )
            if labels.dtype.kind not in "biufU" or labels.dtype.itemsize == 0:
                raise TableError(
                    f"{self.path}: {label_name} must hold numbers or strings, got dtype "
                    f"{labels.dtype}; object arrays are not read, as that may run code: save "
                    f"{label_name}.astype(str)."
                )
            return matrix, labels

    def _member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> RawArray:
        path, name = self.path, info.filename
        if info.flag_bits & 1:
            raise TableError(f"{path}: {name} is encrypted; save it without a password.")
        with archive.open(info) as stream:
            shape, fortran, dtype, offset = read_npy_header(stream, path)
        if dtype.hasobject:  # refused by the caller; its size in the file is not known
            return RawArray(path, lambda: open_stream(path), False, offset, shape, dtype, fortran)
        check_size(path, shape, dtype, info.file_size - offset)
        self._check_ratio(info)
        if info.compress_type == zipfile.ZIP_STORED:
            begin = self._begin(info)
            check_size(path, shape, dtype, min(info.file_size, self.n_bytes - begin) - offset)
            return RawArray(
                path, lambda: open_stream(path), True, begin + offset, shape, dtype, fortran
            )
        return RawArray(
            path, lambda: _member_stream(path, name), False, offset, shape, dtype, fortran
        )

    def _check_ratio(self, info: zipfile.ZipInfo) -> None:
        """A member cannot be more than 1032 times as large as what it is made from (deflate)."""
        if info.compress_type == zipfile.ZIP_DEFLATED and info.file_size > 1032 * self.n_bytes:
            raise TableError(f"{self.path} is not a sound NPZ file: {info.filename} is too large.")

    def _begin(self, info: zipfile.ZipInfo) -> int:
        """Where the bytes of a member that is not compressed begin in the file."""
        with open_stream(self.path) as stream:
            stream.seek(info.header_offset)
            header = stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(b"PK\x03\x04"):
            raise TableError(f"{self.path} is not a sound NPZ file: {info.filename} is not there.")
        _, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        return int(info.header_offset + _LOCAL_HEADER.size + name_length + extra_length)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _ARCHIVE_FAULTS as error:
        raise TableError(f"{path} is not a sound NPZ file: {error}; get it again.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from None


@contextmanager
def _member_stream(path: Path, name: str) -> Iterator[IO[bytes]]:
    with _opened(path) as archive, archive.open(name) as stream:
        yield stream
