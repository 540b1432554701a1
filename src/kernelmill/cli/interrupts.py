"""Ctrl-C while the program is still being imported."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["leaving_at_interrupts"]

_STDERR = 2


@contextmanager
def leaving_at_interrupts() -> Iterator[None]:
    """End the process at Ctrl-C with a line and code 130: there is nothing to clean up yet.

    An exception would not do: modules that are half imported may turn it into another one.

    Examples
    --------
    >>> with leaving_at_interrupts():
    ...     import math
    """
    # Shells start programs in the background with SIGINT ignored; that is left as it is.
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_: int, __: FrameType | None) -> None:
    try:
        os.write(_STDERR, b"error: interrupted: nothing was written\n")
    finally:
        os._exit(130)
