"""The number of threads that native code and BLAS use, also controlled by threadpoolctl."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import threadpoolctl
from threadpoolctl import LibController, ThreadpoolController, register, threadpool_limits

from kernelmill import _native
from kernelmill.arguments import check_integer

_MOST = 2**31 - 1  # of an int in C++

_lock = threading.Lock()
_blas_limit: Any = None
_blocks_inside = 0


def get_num_threads() -> int:
    """Return the number of threads that calls use when they are not given ``n_threads``.

    The default is the number of CPUs that the process may run on, or ``OMP_NUM_THREADS`` if that
    is smaller.

    Examples
    --------
    >>> import kernelmill
    >>> kernelmill.get_num_threads() >= 1
    True
    """
    return _native.get_num_threads()


def set_num_threads(count: int) -> None:
    """Set the number of threads for calls that are not given ``n_threads``.

    Results never depend on it. ``threadpoolctl.threadpool_limits`` sets the same number within
    a block.

    Parameters
    ----------
    count : int
        At least 1. Larger numbers are reduced to four times the number of CPUs, or to 16.

    Examples
    --------
    >>> import kernelmill
    >>> before = kernelmill.get_num_threads()
    >>> kernelmill.set_num_threads(1)
    >>> kernelmill.get_num_threads()
    1
    >>> kernelmill.set_num_threads(before)
    """
    _native.set_num_threads(min(check_integer("count", count, 1), _MOST))


def resolve_threads(n_threads: int | None) -> int:
    """Return the argument ``n_threads`` as native code takes it: 0 stands for the default."""
    return 0 if n_threads is None else min(check_integer("n_threads", n_threads, 1), _MOST)


class _ThreadpoolctlController(LibController):  # type: ignore[misc] # threadpoolctl is untyped
    """Lets threadpoolctl see and limit the pool through symbols of the extension module."""

    user_api = "kernelmill"
    internal_api = "kernelmill"
    filename_prefixes = ("_native",)
    check_symbols = ("kernelmill_get_num_threads", "kernelmill_set_num_threads")

    def get_num_threads(self) -> int:
        return int(self.dynlib.kernelmill_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.kernelmill_set_num_threads(num_threads)

    def get_version(self) -> str | None:
        return None


register(_ThreadpoolctlController)


def limit_blas_threads(n_threads: int | None) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses this number of threads; None changes nothing."""
    resolve_threads(n_threads)
    if n_threads is None:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(n_threads, user_api="blas")
    return limits


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process, inside the block.

    BLAS threads that wait for small pieces of work spin, and so take CPU time from native code and
    from other programs. Several threads may enter; the last one to leave restores the limit.
    """
    global _blas_limit, _blocks_inside  # noqa: PLW0603 # the setting is one for the whole process
    with _lock:
        if _blocks_inside == 0:
            _release_blas()
            _blas_limit = ThreadpoolController().limit(limits=1, user_api="blas")
        _blocks_inside += 1
    try:
        yield
    finally:
        with _lock:
            _blocks_inside -= 1
            if _blocks_inside == 0:
                _release_blas()
                _blas_limit.restore_original_limits()
                _release_blas()


def _release_blas() -> None:
    """Let any thread limit BLAS next.

    Since threadpoolctl 3.8 only one thread can, the first that does, and limits of others are
    ignored: inside the block BLAS would use all threads, or one for ever after it.
    """
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
