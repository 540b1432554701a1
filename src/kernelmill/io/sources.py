"""The files that a source names, and the format of each."""

from __future__ import annotations

import difflib
import glob
import os
import re
import zipfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from kernelmill.io.compression import COMPRESSIONS, first_bytes, raw_beginning
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import TableFile

__all__ = ["FORMATS", "detect_format", "file_class", "refuse_unread", "source_files"]


def source_files(source: Any) -> list[Path]:
    """The files of a source, in the order of their rows."""
    if isinstance(source, (str, os.PathLike)):
        return _each_once(_files_of_one(os.fspath(source)))
    _refuse_data(source)
    if not isinstance(source, Iterable):
        raise TableError(
            f"source must be a path, a list of paths or a glob pattern, got {source!r}."
        )
    files: list[Path] = []
    for each in source:
        if not isinstance(each, (str, os.PathLike)):
            raise TableError(f"source must hold paths, got {each!r}.")
        files += _files_of_one(os.fspath(each))
    if not files:
        raise TableError("source must name at least one file, got an empty list.")
    return _each_once(files)


# What people hold in memory, by the type's module and name, and how it becomes a file.
_DATA_IN_MEMORY = {
    ("pandas", "DataFrame"): "df.to_parquet('rows.parquet')",
    ("polars", "DataFrame"): "df.write_parquet('rows.parquet')",
    ("polars", "LazyFrame"): "df.sink_parquet('rows.parquet')",
    ("pyarrow", "Table"): "pyarrow.parquet.write_table(table, 'rows.parquet')",
    ("pyarrow", "RecordBatch"): "pyarrow.parquet.write_table(table, 'rows.parquet')",
    ("numpy", "ndarray"): "numpy.savez('rows.npz', X=X, y=y)",
    ("scipy", "sparse"): "sklearn.datasets.dump_svmlight_file(X, y, 'rows.svm')",
}


def _refuse_data(source: Any) -> None:
    """Data in memory is no source; iterating over it would give names of columns or rows."""
    kind = type(source)
    package = kind.__module__.partition(".")[0]
    name = "sparse" if kind.__module__.startswith("scipy.sparse") else kind.__name__
    if package == "numpy" and getattr(source, "dtype", None) is not None:
        if source.ndim == 1 and source.dtype.kind in "UO":  # paths
            return
        name = "ndarray"
    move = _DATA_IN_MEMORY.get((package, name))
    if move is None and name == "DataFrame":  # of another package
        move = "df.to_parquet('rows.parquet')"
    if move is not None:
        article = "an" if kind.__name__ == "ndarray" else "a"
        raise TableError(
            "source must be a path, a list of paths or a glob pattern, got "
            f"{article} {kind.__name__}; write it to a file first, such as by {move}."
        )


def _each_once(files: list[Path]) -> list[Path]:
    """The same files; one that is there twice, maybe by another name, is an error."""
    seen: dict[tuple[int, int], Path] = {}
    for path in files:
        try:
            found = path.stat()
        except OSError:  # told when it is opened
            continue
        same = seen.setdefault((found.st_dev, found.st_ino), path)
        if same is not path:
            also = "" if same == path else f" (it is the same file as {same})"
            raise TableError(
                f"{path} is given twice{also}: rows of it would be read twice; give it once."
            )
    return files


def _files_of_one(text: str | bytes) -> list[Path]:
    text = os.fsdecode(text)
    path = Path(text)
    if path.is_dir():
        raise TableError(f"{text} is a folder; {_pattern_for(path)}.")
    if path.exists():  # also a file whose name has brackets
        return [path]
    if glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (absolute patterns too)
        files = [Path(each) for each in found if not Path(each).is_dir()]
        if not files:
            raise TableError(f"no file matches the pattern {text}{_near_names(path)}.")
        return files
    raise TableError(
        f"{text} does not exist{_near_names(path)}; "
        "give the path of a file, a list of paths or a glob pattern."
    )


def _pattern_for(folder: Path) -> str:
    """Which pattern to give instead of a folder: by its most frequent extension."""
    extensions = [path.suffix for path in _listed(folder) if path.suffix and path.is_file()]
    if not extensions:
        return "give the path of a file or a glob pattern"
    common = max(sorted(set(extensions)), key=extensions.count)
    return f"to read the files in it, give a pattern such as '{folder / ('*' + common)}'"


def _near_names(path: Path) -> str:
    names = [each.name for each in _listed(path.parent)]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if not near:
        if path.parent.is_dir() or glob.has_magic(str(path.parent)):
            return ""
        return f" (there is no folder {path.parent})"
    return f" (near names in that folder: {', '.join(near)})"


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


# The classes are imported when a file of their format is opened.
FORMATS = {
    "text": "kernelmill.io.text.text_file:TextFile",
    "parquet": "kernelmill.io.columnar.columnar_files:ParquetFile",
    "arrow": "kernelmill.io.columnar.columnar_files:ArrowFile",
    "npy": "kernelmill.io.matrix.numpy_files:NpyFile",
    "npz": "kernelmill.io.matrix.numpy_files:NpzFile",
    "idx": "kernelmill.io.matrix.idx_file:IdxFile",
    "svmlight": "kernelmill.io.libsvm.svmlight_file:SvmlightFile",
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


_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_COMPRESSED_NAMES = (".xz", ".lzma", ".7z", ".zip", ".rar", ".lz4", ".br", ".z", ".tgz", ".tar")
_COMPRESSED_BEGINNINGS = {
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x04\x22\x4d\x18": "lz4",
}


def refuse_unread(path: Path, given: str | None) -> None:
    r"""Raise an error for a workbook, an archive or a compression that is not read.

    Parameters
    ----------
    path : Path
        The file.
    given : str or None
        The format that the user named: then only the file's content counts.

    Examples
    --------
    >>> import pathlib, tempfile

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows"
    ...     _ = path.write_bytes(b"\xfd7zXZ\0...")
    ...     try:
    ...         refuse_unread(path, None)
    ...     except ValueError as error:
    ...         print(str(error).replace(folder, ""))
    /rows is compressed by xz, which is not read; decompress it, or use .gz, .bz2 or .zst.
    """
    suffix = path.suffix.lower()
    start = raw_beginning(path)
    members = _members(path) if start.startswith(_ZIP) and given != "npz" else None
    if (
        (given is None and suffix in _WORKBOOKS)
        or start.startswith(_OLD_WORKBOOK)
        or (members is not None and any(_is_of_workbook(name) for name in members))
    ):
        raise TableError(
            f"{path} is a workbook: Excel workbooks are not read; save the sheet as CSV."
        )
    if members is not None and not any(name.endswith(".npy") for name in members):
        raise TableError(f"{path} is a zip archive, which is not read; unpack it first.")
    found = next((n for magic, n in _COMPRESSED_BEGINNINGS.items() if start.startswith(magic)), "")
    if not found and given is None and suffix in _COMPRESSED_NAMES and members is None:
        found = suffix.removeprefix(".")
    if found:
        known = f"{', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}"
        raise TableError(
            f"{path} is compressed by {found}, which is not read; decompress it, or use {known}."
        )


def _members(path: Path) -> list[str] | None:
    """The names in a zip archive; None if it is damaged, which its reader tells."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def _is_of_workbook(name: str) -> bool:
    return name.startswith("xl/") or name == "content.xml"
