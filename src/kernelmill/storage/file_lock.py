"""Locks of files that one process may write at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from weakref import WeakSet

__all__ = ["FileLock"]


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
    >>> from kernelmill.storage.file_lock import FileLock
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
