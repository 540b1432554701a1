"""NPY files: one matrix of numbers."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelmill.io.compression import compression_of, open_stream
from kernelmill.io.errors import TableError
from kernelmill.io.matrix_file import MatrixFile, check_matrix
from kernelmill.io.raw_rows import RawArray

__all__ = ["NpyFile", "read_npy_header"]

_LONGEST_HEADER = 1 << 16


class NpyFile(MatrixFile):
    """A matrix saved by `numpy.save`; object arrays are refused, as they are pickles."""

    def arrays(self) -> tuple[RawArray, None]:
        """The matrix."""
        if compression_of(self.path) is not None:
            raise TableError(f"{self.path} must not be compressed; decompress it first.")
        with open_stream(self.path) as stream:
            shape, fortran, dtype, offset = read_npy_header(stream, self.path)
        check_matrix(self.path, "the array", shape, dtype)
        check_size(self.path, shape, dtype, self.n_bytes - offset)
        path = self.path
        return RawArray(path, lambda: open_stream(path), True, offset, shape, dtype, fortran), None


def read_npy_header(
    stream: IO[bytes], path: Path
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """The shape, whether columns come first, the dtype, and the bytes of the header."""
    counting = _CountingReader(stream)
    try:
        version = np.lib.format.read_magic(counting)
        counting.refuse_long_header(path, version)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(
                counting, max_header_size=_LONGEST_HEADER
            )
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(
                counting, max_header_size=_LONGEST_HEADER
            )
        else:
            raise TableError(f"{path} has version {version} of NPY; 1.0 and 2.0 are known.")
    except TableError:
        raise
    except Exception as error:  # whatever numpy finds in the header
        raise TableError(f"{path} is not a sound NPY file: {error}") from None
    if any(not isinstance(size, int) or size < 0 for size in shape):
        raise TableError(f"{path} is not a sound NPY file: its shape is {shape}.")
    return shape, bool(fortran), dtype, counting.count


def check_size(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], available: int) -> None:
    """Refuse a header that promises more than there is, before anything is allocated."""
    needed = math.prod(shape) * dtype.itemsize
    if needed > available:
        raise TableError(
            f"{path} is truncated: shape {shape} of {dtype} needs {needed} bytes after the header, "
            f"but there are {max(0, available)}; get the file again."
        )


class _CountingReader:
    """A stream that knows how many bytes were read, which streams from archives do not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.count = 0
        self._ahead = b""

    def refuse_long_header(self, path: Path, version: tuple[int, int]) -> None:
        """Look at the length that comes next; numpy would read so much, and advise pickles."""
        layout = struct.Struct("<H" if version == (1, 0) else "<I")
        self._ahead = self._stream.read(layout.size)
        if len(self._ahead) == layout.size and layout.unpack(self._ahead)[0] > _LONGEST_HEADER:
            raise TableError(
                f"{path} is not a sound NPY file: its header has "
                f"{layout.unpack(self._ahead)[0]} bytes, more than {_LONGEST_HEADER}; save the "
                "array again by numpy.save."
            )

    def read(self, size: int = -1, /) -> bytes:
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        data += self._stream.read(size - len(data))
        self.count += len(data)
        return data
