"""The number of threads that native code and BLAS use, also controlled by threadpoolctl."""

import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

import threadpoolctl
from threadpoolctl import LibController, ThreadpoolController, register

from kernelmill import _native
from kernelmill.arguments import check_integer

MAX_THREADS = 2**31 - 1
"""The largest number of threads, an int in C++."""

_FEW_ROWS = 2000
"""Matrices with fewer rows get one BLAS thread."""


def get_num_threads() -> int:
    """Return the number of threads of calls without ``n_threads``.

    The default is the number of CPUs that the process may use, or ``OMP_NUM_THREADS`` if that is
    smaller.

    Examples
    --------
    >>> import kernelmill
    >>> kernelmill.get_num_threads() >= 1
    True
    """
    return _native.get_num_threads()


def set_num_threads(count: int) -> None:
    """Set the number of threads of calls without ``n_threads``.

    Results do not depend on this number. ``threadpoolctl.threadpool_limits`` sets the same number
    within a block.

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
    _native.set_num_threads(min(check_integer("count", count, 1), MAX_THREADS))


def resolve_threads(n_threads: int | None) -> int:
    """Check the argument ``n_threads`` and return it for native code: 0 stands for the default."""
    return 0 if n_threads is None else min(check_integer("n_threads", n_threads, 1), MAX_THREADS)


class _ThreadpoolctlController(LibController):  # type: ignore[misc] # threadpoolctl is untyped
    """Lets threadpoolctl inspect and limit the pool through symbols of the extension module."""

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


def limit_blas_threads(
    n_threads: int | None, n_rows: int | None = None
) -> AbstractContextManager[None]:
    """Return a context in which BLAS uses this number of threads; None changes nothing.

    The number is one if `n_rows` is given and small. Several threads may enter such contexts at
    the same time. The number applies to the whole process: it is the smallest requested one, and
    is restored when the last thread leaves.
    """
    resolve_threads(n_threads)
    if n_rows is not None and n_rows < _FEW_ROWS:
        return one_blas_thread()
    return nullcontext() if n_threads is None else _BlasLimit(n_threads)


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread.

    Waiting BLAS threads spin. They take CPU time from native code and other programs, up to ten
    times the time of the work on busy CPUs.
    """
    return _BlasLimit(1)


class _BlasLimit:
    """A limit of the number of BLAS threads.

    The limits of threadpoolctl do not support several threads. Since version 3.8, only the first
    thread can limit a shared pool, and others are ignored; before, the last thread to leave
    restored the number that it found, which may have been the limit of another thread. Libraries
    that are built with OpenMP have a limit for each thread.
    """

    _lock = threading.Lock()
    _limits: ClassVar[list[int]] = []  # Limits of all threads inside such contexts.
    _libraries: ClassVar[list[LibController]] = []
    # Number of imported modules at the last search for libraries, which takes milliseconds.
    _n_modules: ClassVar[int] = 0
    _originals: ClassVar[dict[str, int]] = {}  # Numbers of threads of libraries with shared pools.

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        # Previous numbers of threads of libraries with a limit for each thread.
        self._own: dict[str, int] = {}

    def __enter__(self) -> None:
        with self._lock:
            if not self._limits and len(sys.modules) != self._n_modules:
                self._libraries[:] = ThreadpoolController().select(user_api="blas").lib_controllers
                type(self)._n_modules = len(sys.modules)
            self._limits.append(self._n_threads)
            _release_blas()
            for library in self._libraries:
                if getattr(library, "threading_layer", None) != "openmp":
                    self._originals.setdefault(library.filepath, library.get_num_threads())
                    library.set_num_threads(min(self._limits))
                else:
                    self._own[library.filepath] = library.get_num_threads()
                    library.set_num_threads(self._n_threads)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._limits.remove(self._n_threads)
            before = self._own | ({} if self._limits else self._originals)
            _release_blas()
            for library in self._libraries:
                if library.filepath in before:
                    library.set_num_threads(before[library.filepath])
                elif library.filepath in self._originals:
                    library.set_num_threads(min(self._limits))
            if not self._limits:
                self._originals.clear()
                _release_blas()


def _forget_limits() -> None:
    """Leave the contexts of threads that do not exist in a forked process."""
    limit = _BlasLimit
    limit._lock = threading.Lock()
    limit._limits.clear()
    for library in limit._libraries:
        if library.filepath in limit._originals:
            library.set_num_threads(limit._originals[library.filepath])
    limit._originals.clear()


os.register_at_fork(after_in_child=_forget_limits)


def _release_blas() -> None:
    """Allow any thread to limit BLAS next."""
    release = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
