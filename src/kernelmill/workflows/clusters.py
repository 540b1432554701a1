"""The argument `cluster` of functions on tables; Dask is imported only if it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kernelmill.errors import ArgumentError
from kernelmill.io import Table
from kernelmill.runtime.progress import Progress

if TYPE_CHECKING:
    from kernelmill.workflows.spread_table import SpreadTable

__all__ = ["spread"]


@contextmanager
def spread(table: Table, cluster: Any, progress: Progress) -> Iterator[SpreadTable | None]:
    """Connect to a cluster and yield the table in pieces for its workers; None without one."""
    if cluster is None:
        yield None
        return
    try:
        from kernelmill.scale.connection import connect  # noqa: PLC0415 # optional
        from kernelmill.workflows.spread_table import SpreadTable  # noqa: PLC0415 # optional
    except ImportError:
        raise ArgumentError(
            "needs the package dask, which is not installed",
            "install it: pip install 'kernelmill[dask]'",
            parameter="cluster",
        ) from None
    with connect(cluster) as connected:
        yield SpreadTable(table, connected, progress)
