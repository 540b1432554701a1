"""Which format a file has, and which class reads it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import cast

from kernelmill.io.compression import COMPRESSIONS, first_bytes
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import TableFile
from kernelmill.io.unread_files import refuse_unread

__all__ = ["FORMATS", "detect_format", "file_class"]

# The classes are imported when a file of their format is opened.
FORMATS = {
    "text": "kernelmill.io.text_file:TextFile",
    "parquet": "kernelmill.io.parquet_file:ParquetFile",
    "arrow": "kernelmill.io.arrow_file:ArrowFile",
    "npy": "kernelmill.io.npy_file:NpyFile",
    "npz": "kernelmill.io.npz_file:NpzFile",
    "idx": "kernelmill.io.idx_file:IdxFile",
    "svmlight": "kernelmill.io.svmlight:SvmlightFile",
}

_ALIASES = {"csv": "text", "tsv": "text", "feather": "arrow", "ipc": "arrow", "libsvm": "svmlight"}

_EXTENSIONS = {
    ".csv": "text",
    ".tsv": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".idx": "idx",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}

_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}

_LABELS = re.compile(rb"[+-]?[\d.][\d.eE+,-]*")  # with commas: several labels
_SVMLIGHT_PAIR = re.compile(rb"(?:\d+|qid):[+-]?[\d.]\S*")


def detect_format(path: Path, given: str | None) -> str:
    """The format of a file: as given, by its extension, or by its first bytes."""
    if given is not None:
        name = _ALIASES.get(given, given)
        if name not in FORMATS:
            known = ", ".join(sorted({*FORMATS, *_ALIASES}))
            raise TableError(f"format must be one of {known}, got {given!r}.")
        refuse_unread(path, name)
        return name
    refuse_unread(path, None)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if re.search(r"idx\d-[a-z]+", path.name):
        return "idx"
    if suffixes and suffixes[-1] in _EXTENSIONS:
        return _EXTENSIONS[suffixes[-1]]
    return _by_content(first_bytes(path, 1 << 16))


def _by_content(start: bytes) -> str:
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    if len(start) > 4 and start[:2] == b"\0\0" and start[2] in range(8, 15) and start[3] < 8:
        return "idx"
    return "svmlight" if _looks_like_svmlight(start) else "text"


def _looks_like_svmlight(start: bytes) -> bool:
    """The first complete lines are labels and pairs "index:value", and some lines have pairs."""
    lines = [line.split(b"#")[0].split() for line in start.split(b"\n")[:-1][:50]]
    lines = [line for line in lines if line]
    labels_are_numbers = all(_LABELS.fullmatch(line[0]) for line in lines)
    pairs = [pair for line in lines for pair in line[1:]]
    return labels_are_numbers and bool(pairs) and all(map(_SVMLIGHT_PAIR.fullmatch, pairs))


def file_class(name: str) -> type[TableFile]:
    """The class that reads files of a format."""
    module, _, cls = FORMATS[name].partition(":")
    try:
        return cast("type[TableFile]", getattr(import_module(module), cls))
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise TableError(f"files of format {name} cannot be read by this version.") from None
