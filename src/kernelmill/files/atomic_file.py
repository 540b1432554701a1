"""Files that are written atomically, and locks of files that one process may write at a time.

Readers of an atomic file see the old content or the new, never a part.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast
from weakref import WeakSet

from kernelmill.errors import ArgumentError, ArgumentTypeError, KernelmillError, Remedy
from kernelmill.files.remote_path import RemotePath, is_url, parse_path

__all__ = [
    "FileLock",
    "MissingFolderError",
    "PathIsFolderError",
    "atomic_file",
    "atomic_write",
    "check_folder",
    "check_target",
]


class MissingFolderError(KernelmillError, FileNotFoundError):
    """A file cannot be written because its folder does not exist."""

    def __init__(self, problem: str, *remedies: Remedy | str, parameter: str | None = None) -> None:
        super().__init__(problem, *remedies, parameter=parameter)
        self.errno, self.strerror = errno.ENOENT, os.strerror(errno.ENOENT)


class PathIsFolderError(KernelmillError, IsADirectoryError):
    """A file cannot be written because its path is that of a folder."""

    def __init__(self, problem: str, *remedies: Remedy | str, parameter: str | None = None) -> None:
        super().__init__(problem, *remedies, parameter=parameter)
        self.errno, self.strerror = errno.EISDIR, os.strerror(errno.EISDIR)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, parameter: str = "path") -> Iterator[BinaryIO]:
    """Open a binary file that appears at `path` when the ``with`` block ends without an error.

    Until then the data are in a temporary file in the same folder. After an error or Ctrl-C that
    file is removed, and an existing file at `path` is unchanged. The data are on the disk before
    the file gets its name. A file at a URL such as s3://bucket/name is written to a temporary
    folder first and then stored as a whole. A symbolic link stays a link: the file that it points
    to is replaced. The permissions are those of any new file (the umask applies).

    Parameters
    ----------
    path : str or path
    parameter : str, default="path"
        The name of the argument in errors about `path`.

    Yields
    ------
    BinaryIO
        Can be written, read and positioned. Leave it open.

    Raises
    ------
    MissingFolderError, PathIsFolderError, ArgumentError
        No file can be written at `path`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from kernelmill.files.atomic_file import atomic_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "arrays.npz")
    ...     with atomic_file(target) as file:
    ...         np.savez(file, a=np.arange(3))
    ...     np.load(target)["a"]
    array([0, 1, 2])
    """
    remote = parse_path(path) if is_url(path) else None
    if isinstance(remote, RemotePath):
        with remote.replace_by() as local, local.open("w+b") as file:
            yield file
            file.flush()
        return
    target = check_target(path, parameter=parameter)
    temporary, descriptor = _create_beside(target)
    try:
        with open(descriptor, "w+b") as file:  # noqa: PTH123 # a descriptor, not a path
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)  # a full disk, an error without a file name
        raise
    with contextlib.suppress(
        OSError
    ):  # some file systems cannot; the file is complete nevertheless
        _sync_folder(target.parent)


def atomic_write(
    path: str | os.PathLike[str],
    parts: Iterable[bytes | memoryview],
    *,
    parameter: str = "path",
) -> None:
    """Write the parts to a file at `path`, atomically; see `atomic_file`.

    Parameters
    ----------
    path : str or path
    parts : iterable of bytes
    parameter : str, default="path"
        The name of the argument in errors about `path`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.files.atomic_file import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "file")
    ...     atomic_write(target, [b"two ", b"parts"])
    ...     target.read_bytes()
    b'two parts'
    """
    with atomic_file(path, parameter=parameter) as file:
        for part in parts:
            file.write(part)


def check_target(path: str | os.PathLike[str], *, parameter: str = "path") -> Path:
    """Return the file that `path` or the link there stands for; raise if none can be written."""
    given = os.fspath(path) if isinstance(path, (str, bytes, os.PathLike)) else None
    if not isinstance(given, str):
        raise ArgumentTypeError(
            f"must be a string or a path, got {type(path).__name__}", parameter=parameter
        )
    if not given or "\0" in given:
        raise ArgumentError(f"must be the path of a file, got {given!r}", parameter=parameter)
    if is_url(given):
        place = parse_path(given)
        if isinstance(place, RemotePath):
            return cast("Path", place)
        given = str(place)
    target = Path(os.path.realpath(given))
    if target.is_dir() or os.path.basename(given) in ("", ".", ".."):  # noqa: PTH119 # Path drops /
        raise PathIsFolderError(
            f"must be the path of a file, got the folder {given!r}",
            "add the name of a file",
            parameter=parameter,
        )
    if not target.parent.is_dir():
        raise MissingFolderError(
            f"must lie in an existing folder, got {given!r}",
            f"create {os.fspath(target.parent)!r} or choose another path",
            parameter=parameter,
        )
    try:
        # Of the path as it was given: pipes of other processes have no path that is real.
        mode = os.stat(given).st_mode  # noqa: PTH116
    except FileNotFoundError:
        return target
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ArgumentError(
            f"must be the path of a file, got {given!r}, a link that leads back to itself",
            "choose another path",
            parameter=parameter,
        ) from None
    if not stat.S_ISREG(mode):
        raise ArgumentError(
            f"must be a regular file or a new one, got {given!r}, which is a device or a pipe",
            "choose another path",
            parameter=parameter,
        )
    return target


def check_folder(target: Path) -> None:
    """Raise OSError if no file can be created beside `target`, whatever the reason is.

    Permissions do not tell: root has all of them, and file systems have rules of their own.
    """
    temporary, descriptor = _create_beside(target)
    os.close(descriptor)
    temporary.unlink()


def _create_beside(target: Path) -> tuple[Path, int]:
    """Create a temporary file in the same folder; return its path and its descriptor."""
    # File systems limit the length of names, so long names are truncated.
    shortened = os.fsencode(target.name)[:40].decode(errors="ignore")
    temporary = target.with_name(f".{shortened}.{secrets.token_hex(6)}.tmp")
    # The tempfile module would let only the owner read the file.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return temporary, os.open(temporary, flags, 0o666)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileLock:
    """A lock of the system, on a file ``.NAME.lock`` beside the file NAME.

    Links are followed, so that a file has one lock however it is reached.

    The lock is released when the process ends for any reason, and it is not inherited by forked
    processes. Where the system has no locks, as on some network file systems, or where the file
    cannot be made, everybody has the lock: the file itself is written atomically anyway.

    Parameters
    ----------
    path : Path
        The file that is to be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelmill.files.atomic_file import FileLock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = (FileLock(pathlib.Path(folder, "file")) for _ in range(2))
    ...     print(one.acquire(), other.acquire())
    ...     one.release()
    ...     print(other.acquire())
    ...     other.release()
    True False
    True
    """

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))
        self.path = target.with_name(f".{target.name}.lock")
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock; False if another process, thread or run has it."""
        while self._descriptor is None:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError:  # reported when the file is written
                return True
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:
                os.close(descriptor)
                return True
            # Another run may have removed the file after it was opened here.
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_ino == os.fstat(descriptor).st_ino:
                    self._descriptor = descriptor
                    _held.add(self)
            if self._descriptor is None:
                os.close(descriptor)
        return True

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # native code may have forked
            self._close()

    def _close(self) -> None:
        """Close the file, which ends the lock unless the parent of a fork holds it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        _held.discard(self)


_held: WeakSet[FileLock] = WeakSet()


def _forget() -> None:
    """Close the copies that a child of a fork gets: they would hold the locks of its parent."""
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_forget)
