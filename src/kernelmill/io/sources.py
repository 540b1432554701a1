"""The files of a source, and their formats."""

from __future__ import annotations

import difflib
import glob
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, cast

import numpy as np

from kernelmill.errors import ArgumentError, KernelmillError
from kernelmill.files.remote_path import RemotePath, parse_path
from kernelmill.io.compression import COMPRESSIONS, copy_errors, read_beginning, read_head
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import TableFile

__all__ = [
    "FORMATS",
    "describe_data",
    "detect_format",
    "find_files",
    "find_labels",
    "ignore_pandas",
    "is_data",
    "load_file_class",
    "match_files",
    "package_of",
    "reject_unsupported",
    "spool",
    "with_labels",
]


def find_files(source: Any) -> list[Path]:
    """Return the files of a source, in the order of their rows."""
    if isinstance(source, (str, os.PathLike)):
        return _check_distinct(_expand(os.fspath(source)))
    if hasattr(source, "read"):
        return [spool(source)]
    _reject_data(source)
    if not isinstance(source, Iterable):
        raise TableError(
            f"must be a path, a list of paths or a glob pattern, got {source!r}",
            parameter="source",
        )
    files: list[Path] = []
    for each in source:
        if not isinstance(each, (str, os.PathLike)):
            raise TableError(f"must contain paths, got {each!r}", parameter="source")
        files += _expand(os.fspath(each))
    if not files:
        raise TableError("must contain at least one path, got an empty list", parameter="source")
    return _check_distinct(files)


def match_files(text: str) -> list[Path]:
    """Return the files that a path or a pattern stands for, without checking them.

    A path stands for itself, also if there is no such file.

    Examples
    --------
    >>> from kernelmill.io.sources import match_files
    >>> match_files("rows.csv")
    [PosixPath('rows.csv')]
    """
    path = parse_path(text)
    if not glob.has_magic(text) or path.exists():  # also a file whose name has brackets
        return [path]
    if isinstance(path, RemotePath):
        return cast("list[Path]", [each for each in path.glob() if not each.is_dir()])
    found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  (absolute patterns too)
    return [Path(each) for each in found if not Path(each).is_dir()]


def find_labels(path: Path) -> Path | None:
    """Return the label file that is read with an image file such as train-images-idx3-ubyte."""
    name, changes = re.subn(r"images([-.])idx\d", r"labels\1idx1", path.name)
    if changes != 1:
        return None
    plain = name.removesuffix(".gz")
    candidates = [path.with_name(each) for each in (name, plain, plain + ".gz")]
    return next((each for each in candidates if each.is_file()), None)


def with_labels(files: Iterable[Path]) -> list[Path]:
    """Return all files that are read: the given ones, and the label files of images."""
    files = list(files)
    return files + [labels for each in files if (labels := find_labels(each)) is not None]


def ignore_pandas() -> None:
    """Keep pyarrow from importing pandas, for programs that have no data frames.

    When pyarrow creates its first array, it imports pandas if it is installed, which takes longer
    than reading a small table. After this call, Arrow tables cannot be converted to pandas in this
    process.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        import_module("pyarrow").array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas(MetaPathFinder):
    """Finds no pandas, as if it were not installed."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"{fullname} is not imported here", name=fullname)


def is_data(source: Any) -> bool:
    """Return whether a source is data in memory rather than the names of files."""
    if isinstance(source, (str, bytes, os.PathLike, list)):
        return False
    if isinstance(source, Mapping) or type(source).__module__.startswith("scipy.sparse"):
        return True
    if isinstance(source, tuple):  # (X, y), or paths
        return len(source) == 2 and is_data(source[0]) and not isinstance(source[0], tuple)
    if isinstance(source, np.ndarray):
        return not (source.ndim == 1 and source.dtype.kind in "UO")  # paths
    if any(hasattr(source, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")):
        return True
    # Of versions before the Arrow interface, and lazy ones.
    return type(source).__name__ in ("DataFrame", "LazyFrame") and package_of(source) in (
        "pandas",
        "polars",
    )


def describe_data(source: Any) -> str:
    """Return the name of data in memory for messages, such as "pandas DataFrame"."""
    if isinstance(source, tuple):
        return f"pair of {describe_data(source[0])} and labels"
    if isinstance(source, Mapping):
        return "dictionary of columns"
    name = "array" if isinstance(source, np.ndarray) else type(source).__name__
    package = {"numpy": "NumPy", "scipy": "SciPy"}.get(package_of(source), package_of(source))
    return f"{package} {name}"


def package_of(source: Any) -> str:
    """The name of the package that defines the type of an object."""
    return type(source).__module__.partition(".")[0]


def _reject_data(source: Any) -> None:
    """Raise an error for other data frames, whose iterators yield column names."""
    if type(source).__name__ == "DataFrame":
        raise TableError(
            f"must be a path, a list of paths, a glob pattern or data in memory, got a "
            f"{describe_data(source)}",
            "convert it to pandas, polars or pyarrow, or write it to a file",
            parameter="source",
        )


def _check_distinct(files: list[Path]) -> list[Path]:
    """Return the same files; one that occurs twice, maybe by another name, is an error."""
    seen: dict[tuple[Any, int], Path] = {}
    for path in files:
        try:
            found = path.stat()
        except OSError:  # reported when the file is opened
            continue
        is_remote = isinstance(path, RemotePath)
        key = (str(path), 0) if is_remote else (found.st_dev, found.st_ino)
        same = seen.setdefault(key, path)
        if same is not path:
            also = "" if same == path else f" (it is the same file as {same})"
            is_stream = any(path == spooled for _, spooled, _ in _spooled)
            raise TableError(
                f"{'the stream' if is_stream else path} is given twice{also}; its rows would be "
                "read twice",
                "remove the duplicate",
            )
    return files


def _expand(text: str | bytes) -> list[Path]:
    """Return the files of one path or pattern."""
    text = os.fsdecode(text)
    if text == STDIN:
        if sys.stdin is None or sys.stdin.closed:  # None if it was closed when Python started
            raise TableError(
                f"{STDIN!r} is the standard input, which is closed",
                "send a table to it",
                "pass the path of a file",
            )
        return [spool(sys.stdin.buffer)]
    path = parse_path(text)
    if isinstance(path, RemotePath):
        return _expand_remote(path)
    text = str(path)
    if path.is_dir():
        raise TableError(f"{text} is a folder", _suggest_pattern(path))
    if path.exists():  # also a file whose name has brackets
        if not path.is_file():  # opening a pipe would wait for a writer
            raise TableError(
                f"{text} must be a regular file, because it is read more than once, got a pipe or "
                "a device",
                f"send it to standard input and use {STDIN!r}",
                "copy it to a file",
            )
        return [path]
    if glob.has_magic(text):
        if files := match_files(text):
            return files
        raise TableError(f"no file matches the pattern {text}{_list_similar(path)}")
    raise TableError(
        f"{text} does not exist{_list_similar(path)}",
        "pass the path of a file, a list of paths or a glob pattern",
    )


def _expand_remote(path: RemotePath) -> list[Path]:
    """Return the files of one URL, which may be a pattern."""
    try:
        if glob.has_magic(str(path)) and not path.exists():
            if files := match_files(str(path)):
                return files
            raise TableError(f"no file matches the pattern {path}")
        if path.is_dir():
            raise TableError(f"{path} is a folder", f"use a pattern such as '{path}/*'")
        if not path.exists():
            raise TableError(f"{path} does not exist", "use the URL of a file or a pattern")
    except KernelmillError:
        raise
    except Exception as error:  # each store raises its own errors
        reason = str(error).rstrip(".") or "unknown reason"
        raise TableError(f"{path} cannot be read: {type(error).__name__}: {reason}") from error
    return [cast("Path", path)]


def _suggest_pattern(folder: Path) -> str:
    """Return the pattern to give instead of a folder, with its most frequent extension."""
    extensions = [path.suffix for path in _list(folder) if path.suffix and path.is_file()]
    if not extensions:
        return "pass the path of a file or a glob pattern"
    common = max(sorted(set(extensions)), key=extensions.count)
    return f"to read the files in it, use a pattern such as '{folder / ('*' + common)}'"


def _list_similar(path: Path) -> str:
    """Return the files in the same folder whose names are similar, in parentheses."""
    names = [each.name for each in _list(path.parent)]
    similar = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    if not similar:
        if path.parent.is_dir() or glob.has_magic(str(path.parent)):
            return ""
        return f" (there is no folder {path.parent})"
    return f" (similar names in that folder: {', '.join(similar)})"


def _list(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


STDIN = "-"
_spooled: list[tuple[Any, Path, Any]] = []  # streams, their files, and the folders of these


def spool(stream: Any) -> Path:
    """Copy a stream to a temporary file, since tables are read more than once.

    The file is removed when the process ends. A stream is copied once.
    """
    for known, path, _ in _spooled:
        if known is stream:
            return path
    folder = tempfile.TemporaryDirectory(prefix="kernelmill-")
    name = "stdin" if getattr(stream, "name", "") == "<stdin>" else "stream"
    path = Path(folder.name) / name
    with copy_errors(Path(name)), path.open("wb") as file:
        while piece := stream.read(1 << 20):
            file.write(piece.encode() if isinstance(piece, str) else piece)
    _spooled.append((stream, path, folder))
    return path


# The classes are imported when a file of their format is opened.
FORMATS = {
    "text": "kernelmill.io.text.text_file:TextFile",
    "jsonl": "kernelmill.io.json_lines:JsonLinesFile",
    "parquet": "kernelmill.io.columnar.parquet_file:ParquetFile",
    "arrow": "kernelmill.io.columnar.arrow_file:ArrowFile",
    "npy": "kernelmill.io.matrix.numpy_files:NpyFile",
    "npz": "kernelmill.io.matrix.numpy_files:NpzFile",
    "idx": "kernelmill.io.matrix.idx_file:IdxFile",
    "svmlight": "kernelmill.io.svmlight.svmlight_file:SvmlightFile",
}

_ALIASES = {
    "csv": "text",
    "tsv": "text",
    "feather": "arrow",
    "ipc": "arrow",
    "libsvm": "svmlight",
    "ndjson": "jsonl",
}

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
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
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
    """Return the format of a file: as given, from its extension, or from its first bytes."""
    if given is not None:
        name = _ALIASES.get(given, given)
        if name not in FORMATS:
            known = ", ".join(sorted({*FORMATS, *_ALIASES}))
            raise ArgumentError(f"must be one of {known}, got {given!r}", parameter="format")
        reject_unsupported(path, name)
        return name
    reject_unsupported(path, None)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if re.search(r"idx\d-[a-z]+", path.name):
        return "idx"
    if suffixes and suffixes[-1] in _EXTENSIONS:
        return _EXTENSIONS[suffixes[-1]]
    return _detect_from_content(read_head(path, 1 << 16))


def _detect_from_content(start: bytes) -> str:
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    if start.lstrip()[:2] in (b'{"', b"{}"):
        return "jsonl"
    if len(start) > 4 and start[:2] == b"\0\0" and start[2] in range(8, 15) and start[3] < 8:
        return "idx"
    return "svmlight" if _looks_like_svmlight(start) else "text"


def _looks_like_svmlight(start: bytes) -> bool:
    """Whether the first complete lines are labels and pairs "index:value", with some pairs."""
    lines = [line.split(b"#")[0].split() for line in start.split(b"\n")[:-1][:50]]
    lines = [line for line in lines if line]
    labels_are_numbers = all(_LABELS.fullmatch(line[0]) for line in lines)
    pairs = [pair for line in lines for pair in line[1:]]
    return labels_are_numbers and bool(pairs) and all(map(_SVMLIGHT_PAIR.fullmatch, pairs))


def load_file_class(name: str) -> type[TableFile]:
    """Import the class that reads files of a format."""
    module, _, cls = FORMATS[name].partition(":")
    return cast("type[TableFile]", getattr(import_module(module), cls))


_HTML = (".html", ".htm", ".xhtml")
_HTML_BEGINNINGS = (b"<!doctype html", b"<html")
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_OTHER_COMPRESSIONS = (".xz", ".lzma", ".7z", ".zip", ".rar", ".lz4", ".br", ".z", ".tgz", ".tar")
_OTHER_BEGINNINGS = {
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x04\x22\x4d\x18": "lz4",
}


def reject_unsupported(path: Path, given: str | None) -> None:
    r"""Raise an error for a workbook, an HTML page, an archive or an unsupported compression.

    Parameters
    ----------
    path : Path
        The file.
    given : str or None
        The format given by the user, if any: then only the content of the file is examined.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.io.sources import reject_unsupported
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows"
    ...     _ = path.write_bytes(b"\xfd7zXZ\0...")
    ...     try:
    ...         reject_unsupported(path, None)
    ...     except ValueError as error:
    ...         print(str(error).replace(folder, ""))
    /rows is compressed with xz, which is not supported; decompress it or use .gz, .bz2 or .zst.
    """
    suffix = path.suffix.lower()
    start = read_beginning(path)
    members = _list_members(path) if start.startswith(_ZIP) and given != "npz" else None
    if (
        (given is None and suffix in _WORKBOOKS)
        or start.startswith(_OLD_WORKBOOK)
        or (members is not None and any(_is_workbook_part(name) for name in members))
    ):
        raise TableError(f"{path} is a workbook, which is not supported", "save the sheet as CSV")
    if (given is None and suffix in _HTML) or start.lstrip().lower().startswith(_HTML_BEGINNINGS):
        raise TableError(
            f"{path} is an HTML page, which is not a table format",
            f"save the table as CSV, or as another format: {', '.join(_EXTENSIONS)}",
        )
    if members is not None and not any(name.endswith(".npy") for name in members):
        raise TableError(f"{path} is a zip archive, which is not supported", "unpack it first")
    found = next((n for magic, n in _OTHER_BEGINNINGS.items() if start.startswith(magic)), "")
    if not found and given is None and suffix in _OTHER_COMPRESSIONS and members is None:
        found = suffix.removeprefix(".")
    if found:
        supported = f"{', '.join(COMPRESSIONS[:-1])} or {COMPRESSIONS[-1]}"
        raise TableError(
            f"{path} is compressed with {found}, which is not supported",
            f"decompress it or use {supported}",
        )


def _list_members(path: Path) -> list[str] | None:
    """Return the names in a zip archive; None if it is damaged, which its reader reports."""
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def _is_workbook_part(name: str) -> bool:
    return name.startswith("xl/") or name == "content.xml"
