"""The state of a long training in a file, to go on from after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Checkpoint", "taken_array"]

_FORMAT = "kernelmill checkpoint 1"


class Checkpoint:
    """A file that holds the newest state of one training, replaced as a whole or not at all.

    Parameters
    ----------
    path : str or path
    seconds : float
        How much time at least lies between two states that are written.
    identity : mapping of str to str
        What the training is about: parameters and data. A state of another one is refused.
    """

    def __init__(
        self, path: str | os.PathLike[str], seconds: float, identity: Mapping[str, str]
    ) -> None:
        self.path = Path(path)
        self._seconds = seconds
        self._identity = dict(identity)
        self._last = time.monotonic()
        if not os.fspath(path) or self.path.is_dir():
            raise IsADirectoryError(
                f"checkpoint must be the path of a file, got {os.fspath(path)!r}; add a name such "
                "as 'state.npz'."
            )
        self._temporary = self.path.with_name(f"{self.path.name}.tmp")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"checkpoint must lie in an existing folder, got {os.fspath(path)!r}; create "
                f"{os.fspath(self.path.parent)!r} or choose another path."
            )

    def load(self) -> dict[str, NDArray[Any]] | None:
        """The arrays of the newest state, or None without a file. Nothing in it is executed."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                _refuse_swollen(file.zip, self.path.stat().st_size)
                header = json.loads(file["header"].astype(np.uint8, casting="no").tobytes())
                written, identity = str(header["format"]), dict(header["identity"])
                arrays = {name: file[name] for name in file.files if name != "header"}
        except Exception as error:  # damaged files raise nearly anything
            raise self._refused("it is damaged or not a checkpoint") from error
        if written != _FORMAT:
            raise self._refused(f"its format is {written!r}, not {_FORMAT!r}")
        for name, value in self._identity.items():
            if identity.get(name) != value:
                raise self._refused(
                    f"it belongs to another training, of which {name} was {identity.get(name)} "
                    f"instead of {value}"
                )
        return arrays

    def _refused(self, reason: str) -> ValueError:
        return ValueError(
            f"checkpoint {os.fspath(self.path)!r} cannot be used, {reason}; delete it to start "
            "from the beginning, or give another path."
        )

    def due(self) -> bool:
        """Whether it is time to write a state."""
        return time.monotonic() - self._last >= self._seconds

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Write the state beside the old one, then put it in its place."""
        header = json.dumps({"format": _FORMAT, "identity": self._identity}).encode()
        try:
            with self._temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, header=np.frombuffer(header, np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
            self._temporary.replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            raise
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Forget the state: the training has come to its end."""
        self.path.unlink(missing_ok=True)
        self._temporary.unlink(missing_ok=True)


def _refuse_swollen(file: zipfile.ZipFile, n_bytes: int) -> None:
    """ValueError if the arrays would take more memory than the file has bytes."""
    infos = file.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("compressed")
    if sum(info.file_size for info in infos) > n_bytes:
        raise ValueError("larger inside than outside")


def taken_array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int | None, ...], dtype: Any
) -> NDArray[Any]:
    """An array of a checkpoint if it is what it should be; None is any length."""
    if name not in arrays:
        raise ValueError(
            f"A checkpoint of this training must have {name!r}, got none; delete it to start from "
            "the beginning, or give another path."
        )
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        size in (None, there) for size, there in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype:
        raise ValueError(
            f"{name!r} in the checkpoint must be of shape {shape} and dtype {np.dtype(dtype)}, got "
            f"{array.shape} and {array.dtype}; delete it to start from the beginning, or give "
            "another path."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(
            f"{name!r} in the checkpoint must be finite, and is not; delete it to start from the "
            "beginning, or give another path."
        )
    return array
