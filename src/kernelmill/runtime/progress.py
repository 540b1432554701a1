"""Progress of long-running work, and receivers of its reports."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from kernelmill.errors import ArgumentTypeError, Doubt, Message, Remedy
from kernelmill.formatting import plain

__all__ = [
    "LogProgress",
    "Progress",
    "SilentProgress",
    "StderrProgress",
    "WarningProgress",
    "end_stage",
    "percent_done",
    "reports_progress",
]

_SECONDS_BETWEEN_LINES = 0.2
_LINE_WIDTH = 78
_PACKAGE = str(Path(__file__).parents[1])


class Progress(Protocol):
    """A receiver of reports of long-running work, such as the progress bars of the command line."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Begin a stage such as "Reading"; `total` is the amount of work, if known."""

    def advance(self, amount: int, status: str = "") -> None:
        """Add to the amount of completed work; `status` is a short text such as "loss 0.31"."""

    def end_pass(self, summary: str) -> None:
        """End one pass over the data, with a summary such as "epoch 1/4: loss 0.31"."""

    def note(self, message: Message | str) -> None:
        """Show a finding for the user, such as "no header: columns are numbered"."""


class SilentProgress:
    """Ignores all reports."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Do nothing."""

    def advance(self, amount: int, status: str = "") -> None:
        """Do nothing."""

    def end_pass(self, summary: str) -> None:
        """Do nothing."""

    def note(self, message: Message | str) -> None:
        """Do nothing."""


class WarningProgress(SilentProgress):
    """Issues notes as warnings and ignores other reports.

    Parameters
    ----------
    only_doubts : bool, default=False
        Whether to issue only notes of type `Doubt`, if the results of the call list all notes.

    Examples
    --------
    >>> import warnings
    >>> from kernelmill.runtime.progress import WarningProgress
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     WarningProgress().note("No header was detected.")
    >>> str(found[0].message)
    'No header was detected.'
    """

    def __init__(self, *, only_doubts: bool = False) -> None:
        self._only_doubts = only_doubts

    def note(self, message: Message | str) -> None:
        """Issue a warning at the line of the user's call."""
        if not self._only_doubts or isinstance(message, Doubt):
            warnings.warn(str(message), UserWarning, stacklevel=_count_own_frames())


def _count_own_frames() -> int:
    """Return the `stacklevel` of the first frame outside of kernelmill, for `warnings.warn`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


class LogProgress:
    """Writes lines: notes, the ends of stages, and the progress of stages at intervals.

    Parameters
    ----------
    write : callable, optional
        Receives each line without its end; by default lines are printed on stderr.
    seconds : float, default=30.0
        The minimum time between two lines about a stage.

    Examples
    --------
    >>> from kernelmill.runtime.progress import LogProgress
    >>> lines = []
    >>> progress = LogProgress(lines.append, seconds=0)
    >>> progress.start("Reading", total=200)
    >>> progress.advance(100)
    >>> progress.end_stage()
    >>> lines[0].startswith("Reading: 50 %, 100 of 200 rows, ")
    True
    >>> lines[1].startswith("Reading: 100 rows, ")
    True
    """

    def __init__(self, write: Callable[[str], None] | None = None, seconds: float = 30.0) -> None:
        self._write = _write_line if write is None else write
        self._seconds = seconds
        self._stage = ""
        self._total: int | None = None
        self._unit, self._done = "rows", 0
        self._begin = self._shown = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Write a line about the previous stage, if any, and begin to count."""
        self.end_stage()
        self._stage, self._total, self._unit, self._done = stage, total, unit, 0
        self._begin = self._shown = time.monotonic()
        if self._seconds > 0:
            # A thread writes lines on time even if the work does not advance for minutes.
            self._ended = threading.Event()
            threading.Thread(target=self._watch, args=(self._ended,), daemon=True).start()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(self._seconds):
            with self._lock:
                if not ended.is_set() and time.monotonic() - self._shown >= self._seconds:
                    self._report("")

    def advance(self, amount: int, status: str = "") -> None:
        """Count, and write a line if the interval has passed."""
        with self._lock:
            self._done += amount
            if self._total:  # Some totals are estimates.
                self._total = max(self._total, self._done)
            if time.monotonic() - self._shown >= self._seconds:
                self._report(status)

    def _report(self, status: str) -> None:
        """Write a line about the progress of the stage."""
        now = self._shown = time.monotonic()
        took = max(now - self._begin, 1e-9)
        parts = [f"{plain.count(self._done)} {self._unit}" if self._done else plain.duration(took)]
        if self._total:
            parts[0] = f"{plain.count(self._done)} of {plain.count(self._total)} {self._unit}"
            parts.insert(0, f"{percent_done(self._done, self._total)} %")
            if 0 < self._done < self._total:
                left = took * (self._total - self._done) / self._done
                parts.append(f"{plain.duration(left)} left")
        if status:
            parts.append(status)
        self._write(f"{self._stage}: {', '.join(parts)}")

    def end_pass(self, summary: str) -> None:
        """Write nothing, since the stage continues."""

    def note(self, message: Message | str) -> None:
        """Write a line."""
        self._write(f"note: {message}")

    def stop(self) -> None:
        """Write no further lines about the current stage."""
        with self._lock:
            self._ended.set()

    def end_stage(self) -> None:
        """Write a line about the current stage and end it."""
        self.stop()
        if self._stage:
            amount = f"{plain.count(self._done)} {self._unit}, " if self._done else ""
            took = plain.duration(time.monotonic() - self._begin)
            self._write(f"{self._stage}: {amount}{took}")
        self._stage = ""


def percent_done(done: float, total: float) -> int:
    """Return the progress of an unfinished stage in percent, at most 99.

    Examples
    --------
    >>> from kernelmill.runtime.progress import percent_done
    >>> percent_done(1, 3), percent_done(3, 3)
    (33, 99)
    """
    return min(int(100 * done / total), 99)


def _write_line(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


def reports_progress(work: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Decorate a function with arguments `progress` and `verbose`, whose results list notes.

    By default, the receiver prints lines on stderr if `verbose`, and issues doubts as warnings
    otherwise. The last stage ends when the function returns.

    Examples
    --------
    >>> from kernelmill.runtime.progress import reports_progress
    >>> @reports_progress
    ... def count(n, *, progress=None, verbose=False):
    ...     progress.start("Counting", n)
    ...     return n
    >>> count(3)
    3
    """

    @wraps(work)
    def call(*args: _Parameters.args, **settings: _Parameters.kwargs) -> _Returned:
        progress = settings.get("progress")
        if progress is None:
            is_verbose = settings.get("verbose", False)
            progress = LogProgress(seconds=5.0) if is_verbose else WarningProgress(only_doubts=True)
        elif not all(hasattr(progress, name) for name in ("start", "advance", "note")):
            raise ArgumentTypeError(
                f"must have the methods of `Progress`, got {progress!r}",
                Remedy("print progress lines on stderr", verbose=True),
                parameter="progress",
            )
        settings["progress"] = progress
        try:
            return work(*args, **settings)
        finally:
            end_stage(progress)

    return call


def end_stage(progress: object) -> None:
    """Write the line of the last stage, if the receiver is a `LogProgress`."""
    if isinstance(progress, LogProgress):
        progress.end_stage()


class StderrProgress:
    """Writes to stderr: one line that is rewritten in a terminal, one line per pass elsewhere.

    Examples
    --------
    >>> import contextlib, io
    >>> from kernelmill.runtime.progress import StderrProgress
    >>> with contextlib.redirect_stderr(io.StringIO()) as text:
    ...     progress = StderrProgress()
    ...     progress.start("Training", total=200)
    ...     progress.advance(100, "pass 1/2  loss 0.31")
    ...     progress.end_pass("pass 1/2  loss 0.31")
    >>> text.getvalue().startswith("pass 1/2  loss 0.31  0.")
    True
    """

    def __init__(self) -> None:
        self._in_terminal = sys.stderr.isatty()
        self._begin = self._shown = time.monotonic()
        self._total: int | None = None
        self._unit = "rows"
        self._done = 0

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Begin to count and to measure the time."""
        self._begin = self._shown = time.monotonic()
        self._total, self._unit, self._done = total, unit, 0

    def advance(self, amount: int, status: str = "") -> None:
        """Rewrite the line in a terminal: status, rate, remaining time."""
        self._done += amount
        now = time.monotonic()
        if not self._in_terminal or now - self._shown < _SECONDS_BETWEEN_LINES:
            return
        self._shown = now
        rate = self._done / max(now - self._begin, 1e-9)
        text = f"{status}  {rate:,.0f} {self._unit}/s"
        if self._total is not None:
            text += f"  {max(self._total - self._done, 0) / max(rate, 1e-9):.0f} s left"
        sys.stderr.write(f"\r{text:<{_LINE_WIDTH}}")
        sys.stderr.flush()

    def end_pass(self, summary: str) -> None:
        """Write a line with the time since the start."""
        self._write_line(f"{summary}  {time.monotonic() - self._begin:.1f} s")

    def note(self, message: Message | str) -> None:
        """Write a line."""
        self._write_line(f"note: {message}")

    def _write_line(self, text: str) -> None:
        start = "\r" if self._in_terminal else ""
        sys.stderr.write(f"{start}{text:<{_LINE_WIDTH}}\n")
        sys.stderr.flush()
