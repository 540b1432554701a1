"""Ctrl-C at a moment that leaves nothing half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_deferred"]


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let SIGINT wait for the end of the block, where what it does, it does then.

    For a few lines that change an object in several steps. Python delivers signals to the main
    thread alone, so nothing is deferred elsewhere; nor where another program than Python
    handles SIGINT. Blocks may be nested: the outermost one counts.

    Examples
    --------
    >>> import signal
    >>> done = []
    >>> try:
    ...     with interrupts_deferred():
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
