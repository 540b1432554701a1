"""Signals that end the program: Ctrl-C during imports, SIGTERM and SIGHUP during work.

Nothing slow is imported here, so that the handlers are installed early.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType

__all__ = ["exit_on_interrupt", "ignore_interrupts", "runs_as_program", "unwind_on_termination"]

_STDERR = 2
_NAME = "kernelmill.cli"
_MODULE_PARTS = ("kernelmill", "cli", "__main__.py")


def runs_as_program() -> bool:
    """Return whether the process is the command `kernelmill`, or ``python -m kernelmill.cli``."""
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    path = PurePath(first)
    is_module = first == "-m" and _NAME in sys.orig_argv  # while the package is imported
    return path.name == "kernelmill" or is_module or path.parts[-3:] == _MODULE_PARTS


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the process at Ctrl-C with one line and exit code 130; nothing has to be cleaned up.

    Raising an exception is not an option: modules that are half imported may turn it into another
    one.

    Examples
    --------
    >>> with exit_on_interrupt():
    ...     import math
    """
    # Shells start background jobs with SIGINT ignored; this is not changed.
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(_: int, __: FrameType | None) -> None:
    try:
        os.write(_STDERR, b"error: interrupted: nothing was written\n")
    finally:
        os._exit(130)


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, while an error is printed and until the program ends.

    Examples
    --------
    >>> with ignore_interrupts():
    ...     print("error: ...")
    error: ...
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if not runs_as_program():
            signal.signal(signal.SIGINT, before)


@contextmanager
def unwind_on_termination() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that temporary files are removed.

    Examples
    --------
    >>> with unwind_on_termination():
    ...     pass
    """

    def unwind(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP: keep that
                before[number] = signal.signal(number, unwind)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
