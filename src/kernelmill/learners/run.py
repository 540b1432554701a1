"""One training run: its checkpoint, and the receiver of its progress."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Doubt, KernelmillError, Remedy
from kernelmill.files.atomic_file import FileLock, atomic_file, check_target
from kernelmill.formatting import plain
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, WarningProgress

__all__ = [
    "CHECKPOINT_SECONDS",
    "LARGEST",
    "CheckpointError",
    "Run",
    "SavedState",
    "Watch",
    "WatchedPoint",
    "check_identity",
    "has_last_state",
]

CHECKPOINT_SECONDS = 60.0
"""The time between two writes of a checkpoint by default."""

_FORMAT = "kernelmill checkpoint 4"  # 2 and 3 have digests of some of the rows
_KEY_BYTES = 16
_MOST_COUNTED = 1 << 50  # rows, or anything else
LARGEST = 1e150
"""Numbers below have finite squares, also some of them together."""
_MAP_TOLERANCE = 1e-3  # other instruction sets round differently; another map differs by its size


class CheckpointError(KernelmillError, ValueError):
    """A checkpoint file exists, but the run cannot resume from it.

    Parameters
    ----------
    path : str or path
    reason : str
        What is wrong with the file, as a clause: "it is damaged".
    *remedies : Remedy or str
        What to do other than to delete the file.

    Attributes
    ----------
    path : str
        The file. Interfaces that have their own way to start from the beginning offer that.

    Examples
    --------
    >>> from kernelmill.learners.run import CheckpointError
    >>> print(CheckpointError("state.npz", "it is damaged"))
    checkpoint 'state.npz' cannot be used: it is damaged; delete it to start from the beginning.
    """

    def __init__(self, path: str | os.PathLike[str], reason: str, *remedies: Remedy | str) -> None:
        self.path = os.fspath(path)
        super().__init__(
            f"{self.path!r} cannot be used: {reason}",
            *remedies,
            "delete it to start from the beginning",
            parameter="checkpoint",
        )
        self.args = (self.path, reason, *remedies)


class SavedState:
    """The arrays of a checkpoint, each checked when it is taken.

    Attributes
    ----------
    is_last : bool
        Whether the training had finished.
    """

    def __init__(
        self, path: Path, arrays: Mapping[str, NDArray[Any]], is_last: bool = False
    ) -> None:
        self.is_last = is_last
        self._path = path
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def part(self, prefix: str) -> SavedState:
        """Return the arrays whose names begin with the prefix, without it."""
        length = len(prefix)
        arrays = {name[length:]: a for name, a in self._arrays.items() if name.startswith(prefix)}
        return SavedState(self._path, arrays, self.is_last)

    def array(self, name: str, shape: tuple[int | None, ...], dtype: Any) -> NDArray[Any]:
        """Return a finite array of this shape and dtype; None in `shape` is any length."""
        if name not in self._arrays:
            raise self.error(f"it has no {name!r}")
        array = self._arrays[name]
        fits = array.ndim == len(shape) and all(
            size in (None, there) for size, there in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != dtype:
            raise self.error(
                f"{name!r} in it must have shape {shape} and dtype {np.dtype(dtype)}, got "
                f"{array.shape} and {array.dtype}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.error(f"{name!r} in it must be finite, got NaN or infinity")
        return array

    def means(self, name: str, length: int) -> NDArray[np.float64]:
        """Return numbers whose squares are finite."""
        means = self.array(name, (length,), np.float64)
        self.check(bool((np.abs(means) < LARGEST).all()), repr(name))
        return means

    def counts(self, name: str, length: int) -> list[int]:
        """Return integers, none of which is negative."""
        counts: list[int] = self.array(name, (length,), np.int64).tolist()
        if min(counts) < 0 or max(counts) > _MOST_COUNTED:
            raise self.error(f"{name!r} in it must be numbers of things, got {counts}")
        return counts

    def check(self, is_possible: bool, what: str) -> None:
        """Raise an error about the checkpoint unless a condition holds."""
        if not is_possible:
            raise self.error(f"{what} in it is not possible")

    def error(self, reason: str, *remedies: Remedy | str) -> CheckpointError:
        """Return an error about this checkpoint."""
        return CheckpointError(self._path, reason, *remedies)


class WatchedPoint(NamedTuple):
    """The state of training after a number of rows, counted again in each epoch."""

    rows: int
    loss: float  # the mean loss of the rows seen since the last point
    watched_loss: float
    watched_error: float


class Watch:
    """Measures a classifier during its training, on rows that it is not trained on.

    It has no effect on the training.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The rows.
    codes : ndarray of int
        The numbers of their classes.
    every : int
        The number of training rows between two measurements.

    Attributes
    ----------
    points : list of WatchedPoint
    """

    def __init__(self, X: Any, codes: NDArray[np.intp], every: int) -> None:
        self.X = X
        self.codes = codes
        self.points: list[WatchedPoint] = []
        self._every = max(1, every)
        self._seen = self._measured = 0
        self._loss, self._rows = 0.0, 0  # since the last point
        self._sums = (0.0, 0)  # of the epoch

    def begin(self, n_rows: int) -> None:
        """Start, or resume after this number of rows."""
        self._seen = self._measured = n_rows

    def advance(self, n_rows: int, loss_sum: float, loss_rows: int) -> bool:
        """Count rows, given the sums of this epoch; return whether it is time to measure."""
        before = self._sums if loss_rows >= self._sums[1] else (0.0, 0)
        self._loss += loss_sum - before[0]
        self._rows += loss_rows - before[1]
        self._sums = (loss_sum, loss_rows)
        self._seen += n_rows
        return self._seen - self._measured >= self._every

    def add(self, losses: NDArray[Any], wrong: NDArray[np.bool_]) -> None:
        """Add a point: the loss of each watched row, and whether it is misclassified."""
        if self._rows:
            means = (self._loss / self._rows, float(losses.mean()), float(wrong.mean()))
            self.points.append(WatchedPoint(self._seen, *means))
        self._measured, self._loss, self._rows = self._seen, 0.0, 0


class Run:
    """One training run: a checkpoint to resume from, and a receiver of its progress.

    An estimator makes one from its own parameters, or is given one by a caller that shows the
    progress itself or decides when the checkpoint is no longer needed. The maker calls `finish`.
    After an error or Ctrl-C, the newest state that was written stays in the file.

    Parameters
    ----------
    checkpoint : str or path, optional
        The file, which is written atomically. Nothing in it is executed when it is read.
    checkpoint_seconds : float, default=60.0
        The least time between two states that are written.
    progress : Progress, optional
        Receives the progress.

    Attributes
    ----------
    path : Path or None
    progress : Progress
    saved : SavedState or None
        The state to resume from, after `open`.
    watch : Watch or None
        What measures the classifier during training; set it before.
    describe_data : function or None
        Returns arrays that identify the data, which every state is saved with.
    keeps_last : bool
        Whether the last state is written, too: the result of the training is needed later.
    has_resumed : bool
        Whether the solver has taken a saved state.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from kernelmill import KernelRegressor
    >>> from kernelmill.learners import Run
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Run(pathlib.Path(folder, "state.npz"), checkpoint_seconds=0)
    ...     model = KernelRegressor(random_state=0).fit(X, X[:, 0], run=run)
    ...     kept = run.path.exists()
    ...     run.finish()  # once the model has been saved
    >>> kept, run.path.exists()
    (True, False)
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        progress: Progress | None = None,
    ) -> None:
        self.path: Path | None = None
        self.progress: Progress = progress or WarningProgress(only_doubts=True)
        self.saved: SavedState | None = None
        self.watch: Watch | None = None
        self.describe_data: Callable[[], Mapping[str, NDArray[Any]]] | None = None
        self.keeps_last = True
        self.has_resumed = False
        self._has_begun = False
        self._is_interrupted = False
        self._seconds, self._last = 0.0, time.monotonic()
        self._identity: dict[str, str] | None = None  # once a learner has opened the checkpoint
        self._origin: dict[str, NDArray[Any]] = {}
        self._kept: dict[str, NDArray[Any]] = {}
        self._has_failed = self._was_training = self._has_last = False
        if checkpoint is None:
            return
        if not isinstance(checkpoint_seconds, Real) or not float(checkpoint_seconds) >= 0:
            raise ArgumentError(
                f"must be a non-negative number, got {checkpoint_seconds!r}",
                Remedy("write as often as possible", checkpoint_seconds=0),
                parameter="checkpoint_seconds",
            )
        check_target(checkpoint, parameter="checkpoint")
        self.path = Path(checkpoint)
        self._seconds = float(checkpoint_seconds)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other training runs, of other processes or threads too, off the checkpoint."""
        lock = None if self.path is None else FileLock(self.path)
        if lock is None:
            yield
            return
        if not lock.acquire():
            raise ArgumentError(
                f"{str(self.path)!r} cannot be used: another training run is writing it",
                Remedy("choose another file", checkpoint=...),
                "wait until it has finished",
                parameter="checkpoint",
            )
        try:
            yield
        finally:
            lock.release()

    def begin(self, total: int | None = None) -> None:
        """Start the stage "Training" of the progress, with the number of rows of all passes.

        Only the first call counts: the maker of the run may know the total better.
        """
        if not self._has_begun:
            self._has_begun = True
            self.progress.start("Training", total)

    def open(self, identity: Mapping[str, str]) -> None:
        """Read the checkpoint if there is one; it must be of a run of the same identity.

        Parameters
        ----------
        identity : mapping of str to str
            Parameters and data of the run.
        """
        if self.path is None:
            return
        self._identity = dict(identity)
        found = _read(self.path) if self.path.exists() else None
        if found is not None and found.identity is not None:
            check_identity(self.path, found.identity, self._identity)
            self.saved = SavedState(self.path, found.arrays, found.is_last)
            self._has_last = found.is_last

    def keep(self, name: str, data: bytes) -> None:
        """Write these bytes with every state from now on, beside what a learner saves."""
        self._kept[name] = np.frombuffer(data, np.uint8)

    def read_kept(self, name: str) -> bytes | None:
        """Return the bytes that an earlier run kept under this name, if there are any."""
        if self.path is None or not self.path.exists():
            return None
        content = _read(self.path)
        self._was_training = content.identity is not None
        found = content.arrays.get(name)
        if found is not None and found.dtype != np.uint8:
            raise CheckpointError(self.path, f"{name!r} in it must be bytes, got {found.dtype}")
        return None if found is None else found.tobytes()

    def draw_stream(self, random_state: Any) -> Stream | None:
        """Return the stream for everything random, which a resumed run has to repeat.

        None without a checkpoint: seeds may then stay open.
        """
        if self.path is None:
            return None
        if self.saved is None:
            return Stream.from_random_state(random_state)
        key = self.saved.array("stream", (_KEY_BYTES,), np.uint8)
        return Stream(int.from_bytes(key.tobytes(), "little"))

    def set_origin(self, stream: Stream, probe: NDArray[Any]) -> None:
        """Take the stream and the features of one row, which every state is saved with.

        A checkpoint in which that row has other features is an error.
        """
        key = np.frombuffer(stream.key.to_bytes(_KEY_BYTES, "little"), np.uint8)
        self._origin = {"stream": key, "probe": probe}
        if self.saved is None:
            return
        before = self.saved.array("probe", probe.shape, probe.dtype)
        bound = _MAP_TOLERANCE * float(np.abs(probe).max())
        if not (np.abs(before - probe) <= bound).all():
            raise self.saved.error(
                "feature_map computes different features than when the checkpoint was written",
                "set random_state of feature_map to an integer",
            )

    @contextmanager
    def save_on_interrupt(self) -> Iterator[None]:
        """Defer Ctrl-C until the next state that can be saved, and save it before.

        A second Ctrl-C interrupts at once. Without a checkpoint nothing is deferred, nor outside
        the main thread, which alone receives signals.
        """
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if self.path is None or not is_main or before is not signal.default_int_handler:
            yield
            return

        def defer(_: int, __: FrameType | None) -> None:
            self._is_interrupted = True
            signal.signal(signal.SIGINT, before)
            self.progress.note(
                "Interrupted: saving a checkpoint (press Ctrl-C again to stop at once)."
            )

        signal.signal(signal.SIGINT, defer)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        if self._is_interrupted:
            raise KeyboardInterrupt

    def is_due(self, most_seconds: float = math.inf) -> bool:
        """Return whether it is time to save a state; after `most_seconds` at the latest."""
        if self.path is None:
            return False
        seconds = min(self._seconds, most_seconds)
        return self._is_interrupted or time.monotonic() - self._last >= seconds

    def save(self, arrays: Mapping[str, Any] | None = None) -> None:
        """Write a state to the checkpoint, atomically; then raise a deferred interrupt.

        Without `arrays`, it is a state before the training. If it cannot be written, the run
        continues with a note: the work is worth more than its checkpoint.
        """
        assert self.path is not None
        if arrays is None and self._was_training:
            return  # the file has a later state
        self._write(arrays)
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def save_last(self, arrays: Mapping[str, Any]) -> None:
        """Write the state at the end of the training, from which `take_saved` returns its result.

        It is not written where it would take the room of the model that follows.
        """
        if self.path is not None and self.keeps_last and not self._has_last:
            self._write(arrays, is_last=True)

    def _write(self, arrays: Mapping[str, Any] | None, *, is_last: bool = False) -> None:
        assert self.path is not None
        header: dict[str, Any] = {"format": _FORMAT, "identity": None, "last": is_last}
        members = dict(self._kept)
        if arrays is not None:
            header["identity"] = self._identity
            about_data = {} if self.describe_data is None else self.describe_data()
            members |= {**self._origin, **about_data, **arrays}
        members["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        n_bytes = sum(np.asarray(each).nbytes for each in members.values())
        try:
            if not is_last or _has_room(self.path, 2 * n_bytes):
                with atomic_file(self.path, parameter="checkpoint") as file:
                    np.savez(file, allow_pickle=False, **members)
            self._has_failed = False
        except OSError as error:
            if not is_last:
                self._note_failure(error, n_bytes)
        self._last = time.monotonic()

    def _note_failure(self, error: OSError, n_bytes: int) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        reason = (error.strerror or str(error)).lower()
        kept = "an earlier one is kept" if self.path and self.path.exists() else "there is none"
        self.progress.note(
            Doubt(
                f"The checkpoint {self.path} ({plain.size(n_bytes)}) cannot be written: {reason}; "
                f"training continues, and {kept}",
                f"free some disk space: the next attempt is in {plain.duration(self._seconds)}",
            )
        )

    def take_saved(self) -> SavedState | None:
        """Return the state to resume from, once: it is large."""
        saved, self.saved = self.saved, None
        self.has_resumed = saved is not None
        return saved

    def explain(self, error: ArgumentError) -> KernelmillError:
        """Return the error to raise where either the data or the state of the training is wrong.

        It is about the checkpoint if the run has resumed: from the beginning, data are to blame.
        """
        if not self.has_resumed:
            return error
        assert self.path is not None
        return CheckpointError(
            self.path, f"training cannot continue from it: {error.message.problem}"
        )

    def finish(self) -> None:
        """Delete the checkpoint: the result of the run is safe. A link to it stays."""
        if self.path is not None:
            Path(os.path.realpath(self.path)).unlink(missing_ok=True)


def has_last_state(path: Path) -> bool:
    """Return whether a file is the checkpoint of a finished training."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return bool(json.loads(file["header"].tobytes())["last"])
    except Exception:  # damaged files raise many kinds of errors
        return False


def _has_room(path: Path, n_bytes: int) -> bool:
    """Return whether so many bytes fit on the disk, or whether nobody knows."""
    found = os.statvfs(Path(os.path.realpath(path)).parent)
    return found.f_blocks == 0 or found.f_bavail * found.f_frsize >= n_bytes


class _Content(NamedTuple):
    identity: dict[str, str] | None  # None before the training
    arrays: dict[str, NDArray[Any]]
    is_last: bool


def _read(path: Path) -> _Content:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            _reject_oversized(file.zip, path.stat().st_size)
            header = json.loads(file["header"].astype(np.uint8, casting="no").tobytes())
            written, found = str(header["format"]), header["identity"]
            identity, is_last = None if found is None else dict(found), bool(header["last"])
            arrays = {name: file[name] for name in file.files if name != "header"}
            if not all(isinstance(each, np.ndarray) for each in arrays.values()):
                raise ValueError("it has other members than arrays")
    except Exception as error:  # damaged files raise many kinds of errors
        another = Remedy("choose another file", checkpoint=...)
        raise CheckpointError(path, "it is damaged or not a checkpoint", another) from error
    if written != _FORMAT:
        raise CheckpointError(path, f"its format is {written!r}, not {_FORMAT!r}")
    return _Content(identity, arrays, is_last)


def check_identity(path: Path, found: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Raise if a checkpoint is of another run."""
    for name, value in identity.items():
        if found.get(name) != value:
            raise CheckpointError(
                path,
                f"it belongs to another training run, where {name} was {found.get(name)}, not "
                f"{value}",
            )


def _reject_oversized(file: zipfile.ZipFile, n_bytes: int) -> None:
    """Raise if the arrays would take more memory than the file has bytes."""
    infos = file.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("its arrays are compressed")
    if sum(info.file_size for info in infos) > n_bytes:
        raise ValueError("its arrays are larger than the file")
