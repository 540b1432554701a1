"""A file that appears when it is complete, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from kernelmill.io.errors import TableError

__all__ = ["WholeFile"]


class WholeFile:
    """Gives a stream to a temporary file in the same folder, and renames it in the end.

    If the block of `with` ends by an error, or by Ctrl-C, the temporary file is removed, and a file
    that was there before stays as it was.

    Parameters
    ----------
    path : path
        Where the file will be.
    extensions : iterable of str
        What the name may end in.
    inputs : iterable of path
        Files that are being read, which must not be replaced.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        extensions: Iterable[str],
        inputs: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.path = Path(path)
        extension = self.path.suffix.lower()
        known = list(extensions)
        if extension not in known:
            allowed = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
            raise TableError(
                f"the extension of {self.path} must be {allowed}, got {extension or 'none'!r}."
            )
        self._target = self.path.resolve()  # the file behind a link, not the link
        if not self._target.parent.is_dir():
            raise TableError(f"the folder {self.path.parent} does not exist; make it first.")
        if self._target.exists():
            if not self._target.is_file():
                raise TableError(f"{self.path} must be a file, got something else of that name.")
            if any(Path(each).exists() and self._target.samefile(each) for each in inputs):
                raise TableError(f"{self.path} is being read; write to another file.")
        self._temporary = self._target.with_name(
            f".{self._target.name}.{secrets.token_hex(4)}.partial"
        )
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        try:
            self._stream = self._temporary.open("xb")
        except OSError as error:
            raise self.unwritable(error) from None
        return self._stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._stream is not None
        try:
            if kind is None:
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._stream.close()
                self._temporary.replace(self._target)
        except OSError as fault:
            raise self.unwritable(fault) from None
        finally:
            with suppress(OSError):  # what cannot be flushed to a full disk need not be
                self._stream.close()
            self._temporary.unlink(missing_ok=True)

    def unwritable(self, error: OSError) -> TableError:
        """The error of the system as one that names the file."""
        return TableError(f"{self.path} cannot be written: {error.strerror or error}.")
