"""Execution of tasks: on the workers of a Dask cluster, or in this process."""

from __future__ import annotations

import importlib.metadata
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import uuid4

import dask
import distributed
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm import CommClosedError

from kernelmill.errors import ArgumentTypeError, KernelmillError, Remedy
from kernelmill.maps.finite import NotFiniteError
from kernelmill.scale.resources import current_worker

__all__ = ["Cluster", "ClusterError", "PieceError", "check_task", "report_rows"]

_IN_THIS_PROCESS = ("sync", "synchronous", "single-threaded", "threads", "threading")
_PACKAGE = "kernelmill"

# The errors that Dask raises if the scheduler is gone.
_LOST = (CancelledError, FutureCancelledError, ClosedClientError, CommClosedError, OSError)


class ClusterError(KernelmillError, RuntimeError):
    """The cluster cannot do the work: no scheduler, workers that die, other versions."""


class PieceError(KernelmillError, ValueError):
    """An error on a worker, with the place of the rows that it is about.

    Parameters
    ----------
    place : str
        Such as "chunk 3 (rows 3000 to 3999)".
    problem : str
    *remedies : Remedy or str

    Examples
    --------
    >>> from kernelmill.scale import PieceError
    >>> print(PieceError("chunk 3", "ZeroDivisionError: division by zero"))
    chunk 3: ZeroDivisionError: division by zero.
    """

    def __init__(self, place: str, problem: str, *remedies: Remedy | str) -> None:
        super().__init__(f"{place}: {problem}", *remedies)
        self.place = place
        self.args = (place, problem, *remedies)

    @classmethod
    def of(cls, place: str, error: BaseException) -> PieceError:
        """Return the error with its place."""
        if isinstance(error, PieceError):
            return error
        if isinstance(error, NotFiniteError):
            error = error.found.error()  # without the number of the row in this piece
        if isinstance(error, KernelmillError):
            message = error.message
            subject = "" if message.parameter is None else f"{message.parameter} "
            return cls(place, subject + message.problem, *message.remedies)
        return cls(place, f"{type(error).__name__}: {str(error).rstrip('.')}")


class Cluster:
    """The workers of a client; or this process, in which Dask's own schedulers run tasks.

    Parameters
    ----------
    client : distributed.Client, default=None
        None for the client of the surrounding code, if there is one and Dask is not configured
        to use another scheduler.

    Attributes
    ----------
    client : distributed.Client or None

    Examples
    --------
    >>> import dask
    >>> from kernelmill.scale import Cluster
    >>> with dask.config.set(scheduler="synchronous"):
    ...     Cluster().compute(dask.delayed(sum)([1, 2]))
    3
    """

    def __init__(self, client: Any = None) -> None:
        if client is not None and not isinstance(client, distributed.Client):
            raise ArgumentTypeError(
                f"must be a distributed.Client or None, got {type(client).__name__}",
                "create one with distributed.Client(address)",
                parameter="client",
            )
        self.client = _find_client() if client is None else client

    def check_versions(self) -> None:
        """Raise if a worker has another version of kernelmill, or none."""
        if self.client is None:
            return
        with self.explain_errors():
            # A function of the standard library, so that workers without kernelmill can run it.
            found = self.client.run(importlib.metadata.version, _PACKAGE, on_error="return")
        if not found:
            raise ClusterError(
                f"the cluster {self._address()} has no workers",
                "start workers, or wait until they have started",
            )
        for worker, version in found.items():
            if version != installed_version():
                has = "no kernelmill" if isinstance(version, Exception) else f"{version}"
                raise _other_version(f"worker {worker}", has, installed_version())

    def compute(self, value: Any) -> Any:
        """Return the result of a delayed value; if it is not awaited, its tasks are cancelled."""
        client = self.client
        if client is None:
            return dask.compute(value)[0]
        future = None
        try:
            with self.explain_errors():
                future = client.compute(value)
                return future.result()
        except BaseException:
            if future is not None and client.status == "running":
                client.cancel(future, force=True)
            raise

    def persist(self, values: list[Any]) -> list[Any]:
        """Return delayed values that workers keep in memory; without a cluster, the same ones."""
        if self.client is None:
            return values
        with self.explain_errors():
            kept: list[Any] = list(self.client.persist(values))
        return kept

    def n_threads(self) -> int:
        """Return the number of tasks that run at once."""
        if self.client is None:
            return 1
        with self.explain_errors():
            return max(1, int(sum(self.client.nthreads().values())))

    @contextmanager
    def listen(self, on_rows: Callable[[int], None]) -> Iterator[str | None]:
        """Yield a topic; what tasks report to it by `report_rows` is given to the function."""
        if self.client is None:
            yield None
            return
        topic = f"kernelmill-{uuid4().hex}"
        with self.explain_errors():
            self.client.subscribe_topic(topic, lambda event: on_rows(int(event[1])))
        try:
            yield topic
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(topic)

    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "")) or "(closed)"

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Turn errors of Dask itself into errors with remedies."""
        assert self.client is not None
        address = self._address()
        if self.client.status != "running":
            raise _no_scheduler(address)
        try:
            yield
        except KernelmillError:
            raise
        except distributed.KilledWorker as error:
            raise ClusterError(
                f"workers died repeatedly while running {error.task}; the last one was "
                f"{getattr(error.last_worker, 'address', error.last_worker)}",
                "look at their logs",
                "use smaller chunks, fewer features or workers with more memory",
            ) from error
        except _LOST as error:
            raise _no_scheduler(address, error) from error


def _no_scheduler(address: str, error: BaseException | None = None) -> ClusterError:
    reason = "" if error is None or not str(error) else f" ({type(error).__name__}: {error})"
    return ClusterError(
        f"the connection to the scheduler {address} is lost{reason}",
        "restart the cluster, connect a new client and repeat the call",
    )


def _find_client() -> Any:
    if dask.config.get("scheduler", None) in _IN_THIS_PROCESS:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


@cache
def installed_version() -> str:
    """Return the version of kernelmill in this process."""
    return importlib.metadata.version(_PACKAGE)


def _other_version(worker: str, found: str, expected: str) -> ClusterError:
    """Return the error for a worker with another version than the client's."""
    return ClusterError(
        f"{worker} must have the same kernelmill version as the client, {expected}, got {found}",
        "install the same version on all workers",
    )


def check_task(version: str) -> None:
    """Raise in a task if the process that sent it has another version than this worker."""
    worker = current_worker()
    if version != installed_version():
        name = "a worker" if worker is None else f"worker {worker.address}"
        raise _other_version(name, installed_version(), version)


def report_rows(topic: str | None, n_rows: int) -> None:
    """Report rows that a task is done with."""
    worker = current_worker()
    if topic is not None and worker is not None:
        worker.log_event(topic, n_rows)
