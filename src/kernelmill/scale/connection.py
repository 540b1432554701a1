"""Connections to clusters, and results of tasks in the order of their inputs."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import dask
import distributed

from kernelmill.errors import ArgumentError, KernelmillError
from kernelmill.io.sources import ignore_pandas
from kernelmill.scale.cluster import (
    Cluster,
    ClusterError,
    PieceError,
    check_task,
    installed_version,
)
from kernelmill.scale.resources import use_worker

__all__ = ["connect", "delay", "map_in_order", "worker_memory"]

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")
_SECONDS = 30
_SETTINGS = {
    # A fitted learner may be larger; sending it once to each worker is intended.
    "distributed.admin.large-graph-warning-threshold": "1TiB",
}


@contextmanager
def connect(given: Any) -> Iterator[Cluster]:
    """Connect to a cluster, and disconnect from it afterwards if it was not connected before.

    Parameters
    ----------
    given : Cluster, distributed.Client, Dask cluster or str
        A string is the address of a scheduler ("tcp://10.0.0.1:8786"), or "local" or "local:N" for
        N new processes on this machine, by default as many as there are cores.

    Raises
    ------
    ClusterError
        There is no scheduler at the address, it has no workers, or a worker has another version of
        kernelmill.
    """
    with dask.config.set(_SETTINGS), contextlib.ExitStack() as stack:
        if isinstance(given, Cluster):
            cluster = given
        elif isinstance(given, distributed.Client):
            cluster = Cluster(given)
        else:
            cluster = Cluster(stack.enter_context(_open_client(given)))
        cluster.check_versions()
        yield cluster


@contextmanager
def _open_client(given: Any) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        address = given
        local = _LOCAL.fullmatch(given) if isinstance(given, str) else None
        if local is not None:
            n_workers = int(local[1] or len(os.sched_getaffinity(0)))
            address = stack.enter_context(
                _close_at_end(
                    distributed.LocalCluster(
                        n_workers=n_workers,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )
                )
            )
        elif isinstance(given, str) and "://" not in given:
            raise ArgumentError(
                f"must be the address of a scheduler such as tcp://10.0.0.1:8786, or local or "
                f"local:N, got {given!r}",
                parameter="cluster",
            )
        elif not isinstance(given, str) and not hasattr(given, "scheduler_address"):
            raise ArgumentError(
                "must be an address, a distributed.Client or a Dask cluster, got "
                f"{type(given).__name__}",
                parameter="cluster",
            )
        try:
            client = distributed.Client(address, set_as_default=False, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")
            raise ClusterError(
                f"there is no scheduler at {address}: {reason}",
                "start one with: dask scheduler",
                "check the address and the firewall",
            ) from None
        stack.enter_context(_close_at_end(client))
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
        except (TimeoutError, OSError):
            raise ClusterError(
                f"the cluster {given} has no workers", "start workers with: dask worker ADDRESS"
            ) from None
        if local is not None:
            client.run(ignore_pandas)  # these workers read files, no data frames
        yield client


@contextmanager
def _close_at_end(opened: Any) -> Iterator[Any]:
    try:
        yield opened
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            opened.close(timeout=5)


def worker_memory(cluster: Cluster) -> int:
    """Return the bytes of memory that all workers may use; 0 if there is no cluster or no limit."""
    if cluster.client is None:
        return 0
    with cluster.explain_errors():
        workers = cluster.client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(int(worker.get("memory_limit") or 0) for worker in workers)


def delay(function: Callable[[Any], Any], given: Any) -> Any:
    """Return a delayed call, as the source of a `kernelmill.scale.Piece`."""
    return dask.delayed(function, pure=False)(given)


class _SharedCall(NamedTuple):
    """The objects that all tasks share, which are sent once to each worker."""

    function: Callable[[Any], Any]
    version: str


def map_in_order(
    cluster: Cluster,
    function: Callable[[Any], Any],
    given: Sequence[Any],
    places: Sequence[str] | None = None,
) -> Iterator[Any]:
    """Call a function for each of the given objects on the workers; yield the results in order.

    The workers are a few results ahead of what is taken, so that memory is bounded.

    Parameters
    ----------
    cluster : Cluster
    function : callable
        Picklable; it is sent once to each worker.
    given : sequence
        Small picklable objects.
    places : sequence of str, optional
        What errors call each of them.

    Raises
    ------
    PieceError
        A call raised an error; it names the place and the cause.

    Examples
    --------
    >>> import dask
    >>> from kernelmill.scale import Cluster
    >>> from kernelmill.scale.connection import map_in_order
    >>> with dask.config.set(scheduler="synchronous"):
    ...     list(map_in_order(Cluster(), abs, [3, -4]))
    [3, 4]
    """
    names = [""] * len(given) if places is None else places
    call = _SharedCall(function, installed_version())
    client = cluster.client
    if client is None:
        for each, place in zip(given, names, strict=True):
            yield _run(call, each, place)
        return
    waiting: deque[Any] = deque()
    try:
        with cluster.explain_errors():
            ahead = 2 + 2 * sum(client.nthreads().values())
            shared = client.submit(_identity, call, pure=False)
            for each, place in zip(given, names, strict=True):
                waiting.append(client.submit(_run, shared, each, place, pure=False))
                if len(waiting) > ahead:
                    yield waiting[0].result()
                    waiting.popleft()
            while waiting:
                yield waiting[0].result()
                waiting.popleft()
    finally:
        if waiting and client.status == "running":
            client.cancel(list(waiting), force=True)


def _identity(call: _SharedCall) -> _SharedCall:
    return call


def _run(call: _SharedCall, given: Any, place: str) -> Any:
    check_task(call.version)
    try:
        with use_worker():
            return call.function(given)
    except Exception as error:
        if isinstance(error, KernelmillError) and not place:
            raise
        raise PieceError.of(place or "a task", error) from error
