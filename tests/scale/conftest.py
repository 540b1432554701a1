"""Most tests of this folder need no cluster."""

import dask
import pytest


@pytest.fixture
def synchronous():
    """Run the tasks of Dask in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield
