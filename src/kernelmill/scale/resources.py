"""Cores and memory of a worker process while it runs tasks."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import distributed
from threadpoolctl import ThreadpoolController

__all__ = ["current_worker", "use_worker"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST_REUSED = 32 << 20  # the most that glibc allows
_USUAL_MMAP_THRESHOLD = 128 << 10

_lock = threading.Lock()
_limit: Any = None
_n_inside = 0


def current_worker() -> Any:
    """Return the worker that runs this task, or None outside of a cluster."""
    try:
        return distributed.get_worker()
    except ValueError:
        return None


@cache
def _find_libraries() -> Any:
    """Return the controller of thread pools; to look for them takes as long as a small task."""
    return ThreadpoolController()


@contextmanager
def use_worker() -> Iterator[None]:
    """Limit each thread of a worker to its share of the cores; reuse freed memory.

    A worker with t threads runs t tasks at once in one process. Limits of the BLAS threads and
    native code that are lower already, such as OMP_NUM_THREADS=1, which Dask sets by default, stay.
    """
    global _limit, _n_inside  # noqa: PLW0603 # the settings are those of the whole process
    worker = current_worker()
    if worker is None:
        yield
        return
    share = max(1, len(os.sched_getaffinity(0)) // worker.state.nthreads)
    with _lock:
        if _n_inside == 0:
            _limit = _limit_threads(share, "blas", "kernelmill")
            _keep_freed_memory(True)
        _n_inside += 1
    of_this_thread = _limit_threads(share, "openmp")  # the setting of OpenMP is one for each thread
    try:
        yield
    finally:
        of_this_thread.restore_original_limits()
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limit.restore_original_limits()
                _keep_freed_memory(False)


def _limit_threads(share: int, *apis: str) -> Any:
    """Limit libraries to the share, or to fewer threads if they have fewer already."""
    controller = _find_libraries()
    limits = {}
    for api in apis:
        libraries = controller.select(user_api=api).lib_controllers
        if libraries:
            limits[api] = min([share, *(library.num_threads for library in libraries)])
    return controller.limit(limits=limits)


def _keep_freed_memory(keep: bool) -> None:
    """Let the allocator reuse blocks of some megabytes instead of returning them to the system.

    glibc does so by itself, unless MALLOC_TRIM_THRESHOLD_ is set, as Dask does for its workers:
    each block of features then consists of new pages, which take longer than the features.
    """
    given = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if not given.isdecimal() or (adjust := _find_mallopt()) is None:
        return
    adjust(_M_MMAP_THRESHOLD, _LARGEST_REUSED if keep else _USUAL_MMAP_THRESHOLD)
    adjust(_M_TRIM_THRESHOLD, 2 * _LARGEST_REUSED if keep else int(given))


@cache
def _find_mallopt() -> Any:
    return getattr(ctypes.CDLL(None), "mallopt", None)
