"""BLAS with one thread, for products too small for several."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_limit: Any = None
_inside = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process, inside the block.

    BLAS threads that wait for small pieces of work spin, and so take CPU time from native code and
    from other programs. Several threads may enter; the last one to leave restores the limit.
    """
    global _limit, _inside  # noqa: PLW0603 # the setting is one for the whole process
    with _lock:
        if _inside == 0:
            _limit = ThreadpoolController().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
