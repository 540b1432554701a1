"""The files that a path, a list of paths or a glob pattern means."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernelmill.io.errors import TableError

__all__ = ["source_files"]


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
