"""Deferred interrupts: changes that belong together complete before Ctrl-C is handled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["defer_interrupts"]


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer SIGINT to the end of the block, where it is handled as usual.

    This protects a few statements that change an object together. Python delivers signals only to
    the main thread, so nothing is deferred in other threads, nor if SIGINT is ignored or handled
    outside Python. In nested blocks, the outermost one handles the signal.

    Examples
    --------
    >>> import signal
    >>> done = []
    >>> try:
    ...     with defer_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("the rest of the block")
    ... except KeyboardInterrupt:
    ...     done.append("interrupt")
    >>> done
    ['the rest of the block', 'interrupt']
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before in (None, signal.SIG_IGN):
        yield
        return
    received: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: received.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            if callable(before):
                before(signal.SIGINT, received[0])
            else:
                signal.raise_signal(signal.SIGINT)
