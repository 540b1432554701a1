"""Model files: writing them, and checking all of a file before any of it is used."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from itertools import chain
from typing import cast

import numpy as np

from kernelmill.errors import KernelmillError, Remedy
from kernelmill.files.atomic_file import atomic_write
from kernelmill.files.kinds import Record, Tensors
from kernelmill.files.remote_path import RemotePath, parse_path
from kernelmill.files.safetensors import (
    MAX_HEADER_BYTES,
    NAME,
    ModelFileError,
    Tensor,
    TensorPlace,
    canonical_json,
    errors_of_file,
    header_of,
    parse_json,
    places_in,
    places_of,
)

__all__ = [
    "FORMAT_VERSION",
    "ModelFile",
    "check_record",
    "check_tensor_bytes",
    "read_model_file",
    "write_model_file",
]

FORMAT_VERSION = 2
_FIRST_VERSION = 1
"""The version of files whose record is in the header."""

_MAX_INLINE = 1 << 23
"""Characters of a record in the header; a longer one is a tensor, called `_RECORD`."""

_RECORD = "record"
_MAX_RECORD = 1 << 28
_MAX_BYTES = 1 << 34
"""Bytes of all tensors: 4 * 10**9 weights in float32."""

_METADATA = {"kernelmill", "kind", "record", "sha256"}
_GIVE_ANOTHER = "pass a file that `save` wrote"
_OTHER_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive, perhaps of NumPy (.npz) or skops"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"PAR1", "a Parquet table"),
    (b"ARROW1", "an Arrow table"),
    (b"\x7fELF", "a program"),
    (b"\x89HDF", "an HDF5 file"),
)


class MissingModelFileError(KernelmillError, FileNotFoundError):
    """There is no file at the path of a model."""


@dataclass(frozen=True)
class ModelFile:
    """The content of a model file.

    Attributes
    ----------
    kind : str
        The kind of the content, such as "learner".
    format_version : int
    record : dict
        Plain values: dicts, lists, strings, numbers, booleans and None.
    tensors : dict of ndarray
    """

    kind: str
    format_version: int
    record: Record
    tensors: Tensors


def write_model_file(
    path: str | os.PathLike[str],
    *,
    kind: str,
    record: Mapping[str, object],
    tensors: Mapping[str, Tensor],
) -> None:
    """Write a safetensors file with a record and a checksum in its metadata.

    The same content gives the same bytes. The file is written atomically.

    Parameters
    ----------
    path : str or path
    kind : str
    record : dict
        Plain values; floats have to be finite.
    tensors : mapping of str to ndarray
        Arrays of dtype bool, uint8, uint16, int32, int64, float16, float32 or float64.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from kernelmill.files import read_model_file, write_model_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weights.kmill")
    ...     write_model_file(path, kind="example", record={"a": 1}, tensors={"w": np.ones(3)})
    ...     file = read_model_file(path)
    >>> file.kind, file.record, file.tensors
    ('example', {'a': 1}, {'w': array([1., 1., 1.])})
    """
    if not isinstance(kind, str) or not NAME.fullmatch(kind):
        raise ModelFileError(f"kind must be a name such as 'learner', got {kind!r:.80}")
    text, version = check_record(record), _FIRST_VERSION
    if _RECORD in tensors:
        raise ModelFileError(f"no tensor must have the name {_RECORD!r}, which is taken")
    if len(text) > _MAX_INLINE:
        tensors = {**tensors, _RECORD: np.frombuffer(text.encode("ascii"), np.uint8)}
        text, version = "", FORMAT_VERSION
    places = places_of(tensors)
    check_tensor_bytes(sum(tensor.nbytes for tensor in tensors.values()))
    # Contiguous and little-endian; no copy where they are that already.
    arrays = {
        name: np.ascontiguousarray(tensors[name], place.dtype) for name, place in places.items()
    }
    metadata = {
        "kernelmill": str(version),
        "kind": kind,
        "record": text,
        "sha256": _checksum(version, kind, text, places, arrays),
    }
    header = header_of(metadata, places)
    atomic_write(path, chain([header], (_bytes_of(arrays[name]) for name in places)))


def check_record(record: Mapping[str, object], n_more: int = 0) -> str:
    """Return the JSON of a record; raise an error if it is too long for a model file.

    `n_more` is the number of characters that will be added.
    """
    text = canonical_json(dict(record))
    size = len(text) + n_more
    if size > _MAX_RECORD:
        raise ModelFileError(
            f"the record of a model must be at most {_MAX_RECORD >> 20} MiB, got {size >> 20} MiB",
            "fit the model to fewer columns or categories",
        )
    return text


def check_tensor_bytes(n_bytes: int) -> None:
    """Raise an error if arrays have too many bytes for a model file."""
    if n_bytes > _MAX_BYTES:
        raise ModelFileError(
            f"the arrays of a model must be at most {_MAX_BYTES >> 30} GiB in total, got more",
            Remedy("use fewer components", n_components=...),
            Remedy("store the weights in lower precision", weights="float16"),
        )


def _bytes_of(array: Tensor) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(
    version: int,
    kind: str,
    record: str,
    places: Mapping[str, TensorPlace],
    arrays: Mapping[str, Tensor],
) -> str:
    """Return SHA-256 over all content; each piece follows its length, so none looks like two."""
    state = hashlib.sha256()

    def add(piece: bytes | memoryview) -> None:
        state.update(len(piece).to_bytes(8, "little"))
        state.update(piece)

    for text in (str(version), kind, record):
        add(text.encode("ascii"))
    for name in sorted(places):
        place = places[name]
        for text in (name, place.code, ",".join(map(str, place.shape))):
            add(text.encode("ascii"))
        add(_bytes_of(arrays[name]))
    return state.hexdigest()


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read and check a file that `write_model_file` wrote. Nothing in it is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    ModelFile

    Raises
    ------
    ModelFileError
        The file is not a model file, is damaged or changed, or has a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.files import read_model_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "other.kmill")
    ...     _ = path.write_text("something else")
    ...     try:
    ...         read_model_file(path)
    ...     except ValueError as error:
    ...         print(str(error).split(": ", 1)[1])
    it is a text file; pass a file that `save` wrote.
    """
    try:
        with errors_of_file(path):
            place = parse_path(path)
            mode = place.stat().st_mode
            if stat.S_ISDIR(mode):
                raise ModelFileError("it is a folder", _GIVE_ANOTHER)
            if not stat.S_ISREG(mode):
                raise ModelFileError("it is a device or a pipe", _GIVE_ANOTHER)
            with place.open("rb") as file:
                if isinstance(place, RemotePath):
                    content = file.read()
                    return _read(cast("BufferedReader", BytesIO(content)), len(content))
                return _read(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        raise MissingModelFileError(
            f"there is no model file {os.fspath(path)!r}", "check the path"
        ) from None
    except OSError as error:
        if error.filename is not None:  # the message contains it
            raise
        reason = (error.strerror or str(error)).lower()
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be read: {reason}", _GIVE_ANOTHER
        ) from None
    except MemoryError:
        raise ModelFileError(
            f"{os.fspath(path)!r} cannot be loaded: its arrays need more memory than is available",
            "load it on a machine with more memory",
        ) from None


def _read(file: BufferedReader, size: int) -> ModelFile:
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if size < 10 or not 2 <= length <= min(size - 8, MAX_HEADER_BYTES):
        beginning = start + file.read(56)
        raise unknown_file_error(beginning, size)
    text = file.read(length)
    if text[:1] != b"{":
        raise unknown_file_error(start + text[:56], size)
    header = _header(text)
    metadata = header.get("__metadata__")
    version = _version(metadata)
    assert isinstance(metadata, dict)
    if set(metadata) != _METADATA or not all(type(v) is str for v in metadata.values()):
        raise _changed_file_error("its metadata does not contain the fields of a model file")
    try:
        places = places_in(header, size - 8 - length)
    except ModelFileError as error:
        raise _changed_file_error(error.message.problem) from None
    # Only the canonical spelling is accepted, so equal content means equal bytes.
    if not all(value.isascii() for value in metadata.values()):
        raise _changed_file_error("its header does not have the form that kernelmill writes")
    if header_of(metadata, places)[8:] != text:
        raise _changed_file_error("its header does not have the form that kernelmill writes")
    if size > _MAX_BYTES:
        raise ModelFileError(
            f"it is larger than {_MAX_BYTES >> 30} GiB, the largest size of a model"
        )
    tensors = _tensors(file, places, size - 8 - length)
    kind, record = metadata["kind"], metadata["record"]
    if _checksum(version, kind, record, places, tensors) != metadata["sha256"]:
        raise _changed_file_error("its checksum is wrong")
    if not NAME.fullmatch(kind):
        raise _changed_file_error("its kind is not a name")
    if version > _FIRST_VERSION:
        record = _take_record(tensors, record)
    try:
        values = parse_json(record)
    except ModelFileError as error:
        raise _changed_file_error(error.message.problem) from None
    if not isinstance(values, dict) or canonical_json(values) != record:
        raise _changed_file_error("its record does not have the form that kernelmill writes")
    native = {
        name: each.astype(each.dtype.newbyteorder("="), copy=False)
        for name, each in tensors.items()
    }
    return ModelFile(kind, version, values, native)


def _take_record(tensors: dict[str, Tensor], inline: str) -> str:
    """Remove the tensor that holds the record, and return its text."""
    found = tensors.pop(_RECORD, None)
    if inline or found is None or found.dtype != np.uint8 or found.ndim != 1:
        raise _changed_file_error("its record is not a tensor of bytes")
    if found.size > _MAX_RECORD:
        raise ModelFileError(f"its record is larger than {_MAX_RECORD >> 20} MiB")
    try:
        return found.tobytes().decode("ascii")
    except UnicodeDecodeError:
        raise _changed_file_error(
            "its record does not have the form that kernelmill writes"
        ) from None


def _header(text: bytes) -> dict[str, object]:
    try:
        header = parse_json(text.decode("utf-8"))
    except UnicodeDecodeError:
        raise _changed_file_error("its header is not text") from None
    except ModelFileError as error:
        raise _changed_file_error(error.message.problem) from None
    if not isinstance(header, dict):
        raise _changed_file_error("its header is not a JSON object")
    return header


def _version(metadata: object) -> int:
    """Return the version of the format, which is checked before everything else."""
    if not isinstance(metadata, dict) or "kernelmill" not in metadata:
        raise ModelFileError("it is a safetensors file that another program wrote", _GIVE_ANOTHER)
    version = metadata["kernelmill"]
    if type(version) is not str or not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        raise _changed_file_error(f"its format version is {version!r:.80}")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"it was written by a newer kernelmill (format {version}, and this one reads up to "
            f"{FORMAT_VERSION})",
            "upgrade with `pip install --upgrade kernelmill`",
        )
    return int(version)


def _tensors(
    file: BufferedReader, places: Mapping[str, TensorPlace], n_bytes: int
) -> dict[str, Tensor]:
    content = np.empty(n_bytes, np.uint8)
    if n_bytes and file.readinto(content.data) != n_bytes:
        raise _changed_file_error("it became shorter while it was read")
    tensors = {}
    for name, place in places.items():
        part = content[place.begin : place.end]
        if place.code == "BOOL" and part.max(initial=0) > 1:
            raise _changed_file_error(f"tensor {name!r} must contain only 0 and 1")
        tensors[name] = np.require(part.view(place.dtype).reshape(place.shape), requirements="A")
    return tensors


def _changed_file_error(reason: str) -> ModelFileError:
    return ModelFileError(
        f"{reason} (it is damaged or was changed)", "copy it again", "save the model again"
    )


def unknown_file_error(beginning: bytes, size: int) -> ModelFileError:
    """Return the error about a file that is not a model, judged by its first bytes.

    Examples
    --------
    >>> from kernelmill.files.model_file import unknown_file_error
    >>> unknown_file_error(b"%PDF-1.7", 1000)
    ModelFileError('it is a PDF', 'pass a file that `save` wrote')
    """
    problem, remedy = _describe(beginning, size)
    return ModelFileError(problem, remedy or _GIVE_ANOTHER)


def _describe(beginning: bytes, size: int) -> tuple[str, str | None]:
    """Return what a file is, and a remedy other than passing another file."""
    if size == 0:
        return "it is empty", "save the model again"
    for start, name in _OTHER_FORMATS:
        if beginning.startswith(start):
            return f"it is {name}", None
    if beginning.startswith(b"\x1f\x8b"):
        return "it is compressed with gzip", "decompress it first if it contains a model"
    if beginning[:1] == b"\x80" and beginning[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            "it is a pickle file, which can run arbitrary code and is never loaded by kernelmill",
            "load it with the pickle module if you trust it, then write the model with `save`",
        )
    if beginning[8:9] == b"{":
        return "it is truncated or its first bytes are damaged", "copy it again"
    is_text = all(byte in b"\t\r\n" or 32 <= byte < 127 or byte >= 128 for byte in beginning)
    return "it is a text file" if is_text else "it is not a kernelmill model file", None
