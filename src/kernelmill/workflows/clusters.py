"""The argument `cluster` of functions of tables; Dask is imported when it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kernelmill.errors import ArgumentError
from kernelmill.io import Table
from kernelmill.runtime.progress import Progress

if TYPE_CHECKING:
    from kernelmill.workflows.spread_table import SpreadTable

__all__ = ["connects_cluster", "spread"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def connects_cluster(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Connect to the cluster that is given by the keyword `cluster`, while the function runs.

    The function gets a `kernelmill.scale.Cluster`, or None without a cluster.
    """

    @wraps(function)
    def connected(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        given = options.get("cluster")
        if given is None:
            return function(*args, **options)
        try:
            from kernelmill.scale.connection import connect  # noqa: PLC0415 # optional
        except ImportError:
            raise ArgumentError(
                "needs the package dask, which is not installed",
                "install it: pip install 'kernelmill[dask]'",
                parameter="cluster",
            ) from None
        with connect(given) as cluster:
            options["cluster"] = cluster
            return function(*args, **options)

    return connected


def spread(table: Table, cluster: Any, progress: Progress) -> SpreadTable | None:
    """The table in pieces for the workers of a cluster; None without one."""
    if cluster is None:
        return None
    from kernelmill.workflows.spread_table import SpreadTable  # noqa: PLC0415 # imports Dask

    return SpreadTable(table, cluster, progress)
