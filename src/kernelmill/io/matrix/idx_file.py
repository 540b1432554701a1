"""IDX files such as those of MNIST: images, with their labels in a second file."""

from __future__ import annotations

import math
import struct
from functools import partial
from pathlib import Path

import numpy as np

from kernelmill.errors import Remedy
from kernelmill.io.compression import (
    GET_AGAIN,
    detect_compression,
    largest_size,
    open_stream,
    read_fully,
)
from kernelmill.io.errors import TableError
from kernelmill.io.matrix.matrix_file import MatrixFile, RawArray
from kernelmill.io.sources import find_labels

__all__ = ["IdxFile"]

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 8


class IdxFile(MatrixFile):
    """Images as rows; train-images-idx3-ubyte has its labels in train-labels-idx1-ubyte."""

    def find_arrays(self) -> tuple[RawArray, RawArray | None]:
        """Find the images and the labels."""
        images = _read_header(self.path, self.n_bytes)
        if len(images.shape) < 2:
            raise TableError(
                f"{self.path} has one number per row: it is a label file",
                "use the image file",
            )
        labels_path = find_labels(self.path)
        if labels_path is None:
            self.notes.append(f"There is no label file for {self.path.name} in its folder.")
            return images, None
        labels = _read_header(labels_path, labels_path.stat().st_size)
        self.notes.append(f"Labels are read from {labels_path.name}.")
        return images, labels


def _read_header(path: Path, n_bytes: int) -> RawArray:
    with open_stream(path) as stream:
        magic = read_fully(stream, 4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
            raise TableError(
                f"{path} is not an IDX file: it begins with {magic!r}",
                Remedy("specify its format", format=...),
            )
        n_dimensions = magic[3]
        if not 1 <= n_dimensions <= _MOST_DIMENSIONS:
            raise TableError(
                f"{path} is not a valid IDX file: {n_dimensions} dimensions, expected 1 to "
                f"{_MOST_DIMENSIONS}",
                GET_AGAIN,
            )
        sizes = read_fully(stream, 4 * n_dimensions)
    if len(sizes) < 4 * n_dimensions:
        raise TableError(f"{path} is truncated: its header is incomplete", GET_AGAIN)
    shape = struct.unpack(f">{n_dimensions}I", sizes)
    dtype = np.dtype(_TYPES[magic[2]])
    offset = 4 + len(sizes)
    _check_size(path, shape, offset + math.prod(shape) * dtype.itemsize, n_bytes)
    file_offset = offset if detect_compression(path) is None else None
    return RawArray(path, partial(open_stream, path), offset, shape, dtype, file_offset=file_offset)


def _check_size(path: Path, shape: tuple[int, ...], needed: int, n_bytes: int) -> None:
    if math.prod(shape[1:]) == 0:
        raise TableError(
            f"{path} is not a valid IDX file: its rows are empty, shape {shape}", GET_AGAIN
        )
    limit = largest_size(path, n_bytes)
    exact = detect_compression(path) is None
    if limit is not None and (needed > limit or (exact and needed != limit)):
        has = f"it has {n_bytes}" if exact else f"{n_bytes} compressed bytes cannot hold that"
        raise TableError(
            f"{path} is damaged: shape {shape} in its header needs {needed} bytes, but {has}",
            GET_AGAIN,
        )
