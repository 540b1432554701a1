"""Files in object stores and other file systems, by their URLs, through the package fsspec."""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from kernelmill.errors import ArgumentError

__all__ = ["STDOUT", "RemotePath", "is_url", "parse_path"]

STDOUT = "-"
"""The path that stands for the standard output."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_READ_AHEAD = 4 << 20


def is_url(path: Any) -> bool:
    """Return whether a path is written as a URL, such as "s3://bucket/rows.csv".

    Examples
    --------
    >>> from kernelmill.files.remote_path import is_url
    >>> is_url("s3://bucket/rows.csv"), is_url("folder/rows.csv")
    (True, False)
    """
    return isinstance(path, (str, os.PathLike)) and bool(_URL.fullmatch(os.fsdecode(path)))


def parse_path(path: Any) -> Path:
    """Return the file of a path or URL; a `RemotePath` if it is not on this machine.

    Its type says `Path`, of which a `RemotePath` has what readers use.

    Examples
    --------
    >>> from kernelmill.files.remote_path import parse_path
    >>> parse_path("file:///data/rows.csv")
    PosixPath('/data/rows.csv')
    """
    text = os.fsdecode(path)
    found = _URL.fullmatch(text)
    if found is None:
        return Path(text)
    if found[1].lower() in ("file", "local"):
        return Path(found[2])
    return cast("Path", RemotePath(text))


# What fsspec needs for a protocol.
_PACKAGES = {
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
}


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or "unknown reason"


class RemotePath(os.PathLike[str]):
    """A file that fsspec finds; it has those methods of `pathlib.Path` that readers use.

    Parameters
    ----------
    url : str
        Such as "s3://bucket/folder/rows.csv". A package for its protocol must be installed, such
        as s3fs, gcsfs or adlfs; credentials are found as that package does.

    Examples
    --------
    >>> from kernelmill.files.remote_path import RemotePath
    >>> path = RemotePath("memory://folder/rows.csv.gz")
    >>> path.name, path.suffixes, str(path.with_name("other.csv"))
    ('rows.csv.gz', ['.csv', '.gz'], 'memory://folder/other.csv')
    """

    def __init__(self, url: str) -> None:
        self._url = url
        match = _URL.fullmatch(url)
        assert match is not None
        self._protocol = match[1]
        self._key = PurePosixPath(match[2])
        self._opened: tuple[Any, str] | None = None

    def _system(self) -> tuple[Any, str]:
        """Return the file system, and the path in it."""
        if self._opened is None:
            try:
                import fsspec  # noqa: PLC0415 # optional

                self._opened = fsspec.core.url_to_fs(self._url)
            except ImportError as error:
                packages = _PACKAGES.get(self._protocol.lower(), "")
                raise ArgumentError(
                    f"{self._url} needs a package that is not installed: {_first_line(error)}",
                    f"install it: pip install fsspec {packages}".rstrip(),
                    "download the file, and pass its path",
                ) from None
            except Exception as error:  # each file system raises its own errors
                reason = _first_line(error)
                if not isinstance(error, ValueError):
                    reason = f"{type(error).__name__}: {reason}"
                known = ", ".join(f"{name}://" for name in ("s3", "gs", "abfs", "https", "file"))
                raise ArgumentError(
                    f"{self._url} cannot be opened: {reason}",
                    f"use a URL that the package fsspec can open, such as {known}",
                    "download the file, and pass its path",
                ) from None
        return self._opened

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath, (self._url,)

    def __fspath__(self) -> str:
        return self._url

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"RemotePath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._key.name

    @property
    def suffix(self) -> str:
        """The extension."""
        return self._key.suffix

    @property
    def suffixes(self) -> list[str]:
        """All extensions."""
        return self._key.suffixes

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        return RemotePath(f"{self._protocol}://{self._key.parent}")

    def with_name(self, name: str) -> RemotePath:
        """Return the path of another file in the same folder."""
        return RemotePath(f"{self._protocol}://{self._key.with_name(name)}")

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        system, place = self._system()
        return bool(system.exists(place))

    def is_file(self) -> bool:
        """Return whether there is such a file."""
        system, place = self._system()
        return bool(system.isfile(place))

    def is_dir(self) -> bool:
        """Return whether there is such a folder."""
        system, place = self._system()
        return bool(system.isdir(place))

    def is_same(self, other: RemotePath) -> bool:
        """Return whether both are the same file of the same store, maybe with other spellings."""
        if self == other:
            return True
        (system, place), (other_system, other_place) = self._system(), other._system()
        return bool(system == other_system and place == other_place)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what is in the folder."""
        system, place = self._system()
        for each in system.ls(place, detail=False):
            yield RemotePath(system.unstrip_protocol(each))

    def glob(self) -> list[RemotePath]:
        """Return the files that match this path as a pattern, sorted."""
        system, place = self._system()
        return [RemotePath(system.unstrip_protocol(each)) for each in sorted(system.glob(place))]

    def stat(self) -> os.stat_result:
        """Return the size, and in the inode a checksum of what else the store knows of it."""
        system, place = self._system()
        info = system.info(place)
        marks = {name: info.get(name) for name in ("ETag", "etag", "generation", "mtime")}
        marks |= {name: str(info.get(name)) for name in ("created", "LastModified", "updated")}
        mode = stat.S_IFDIR if info.get("type") == "directory" else stat.S_IFREG
        size = info.get("size") or 0
        number = zlib.crc32(repr(sorted(marks.items(), key=lambda item: item[0])).encode())
        return os.stat_result((mode, number, 0, 1, 0, 0, size, 0, 0, 0))

    def open(self, mode: str = "rb", buffering: int = -1) -> IO[bytes]:
        """Open the file for reading bytes."""
        if mode != "rb":
            raise ValueError(f"mode must be 'rb', got {mode!r}")
        system, place = self._system()
        if self._protocol == "memory":  # whose open files share one position
            return io.BytesIO(system.cat_file(place))
        return cast("IO[bytes]", system.open(place, "rb", block_size=_READ_AHEAD))

    @contextlib.contextmanager
    def replace_by(self) -> Iterator[Path]:
        """Yield a local file, which is stored at this place if no error is raised."""
        import tempfile  # noqa: PLC0415 # only here

        system, place = self._system()
        with tempfile.TemporaryDirectory(prefix="kernelmill-") as folder:
            local = Path(folder) / self.name
            yield local
            system.put_file(str(local), place)
