"""One cluster of two worker processes for all tests of this folder; most need none."""

import dask
import pytest


@pytest.fixture(scope="session")
def client():
    """A client of two workers, each a process with one thread."""
    from distributed import Client, LocalCluster

    with dask.config.set(
        {
            "distributed.worker.daemon": False,
            "distributed.admin.tick.limit": "1h",
            "distributed.comm.timeouts.connect": "20s",
        }
    ):
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        )
        found = Client(cluster, set_as_default=False)
        yield found
        found.close()
        cluster.close()


@pytest.fixture
def synchronous():
    """Run the tasks of Dask in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield
