"""A file that is replaced as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write the parts to a new file beside `path`, and give it that name when all is on the disk.

    Whatever happens before, Ctrl-C included, the old file stays and nothing else is left. A
    symbolic link stays a link, and what it points to is replaced. The permissions are those of any
    new file.

    Parameters
    ----------
    path : str or path
    parts : iterable of bytes

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kernelmill.storage.replaced_file import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "file")
    ...     replace_file(target, [b"two ", b"parts"])
    ...     target.read_bytes()
    b'two parts'
    """
    target = check_target(path)
    # Not longer than the name itself could be: file systems have limits.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    # Not the tempfile module, whose files are for their owner alone: here the umask decides.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 # a descriptor, not a path
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    with contextlib.suppress(OSError):  # some file systems cannot; the file is complete anyway
        _sync_folder(target.parent)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The file that `path`, or the link there, means; an error if no file can be there."""
    given = os.fspath(path)
    if not isinstance(given, str):
        raise TypeError(f"path must be a string or a path, got {type(path).__name__}.")
    if not given or "\0" in given:
        raise ValueError(f"path must be the name of a file, got {given!r}.")
    target = Path(os.path.realpath(given))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path must lie in an existing folder, got {given!r}; create "
            f"{os.fspath(target.parent)!r} or choose another path."
        )
    if target.is_dir() or given.endswith("/"):
        raise IsADirectoryError(
            f"path must be the name of a file, got the folder {given!r}; add a name such as "
            "'model.kmill'."
        )
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(target.stat().st_mode):
            raise ValueError(
                f"path must be an ordinary file or a new one, got {given!r}, which is a device or "
                "a pipe; choose another path."
            )
    return target


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
