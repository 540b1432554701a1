"""Faults with real processes: workers and schedulers that die, other versions, threads."""

import multiprocessing
import os
import platform
import resource
import runpy
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from kernelmill import Fastfood, __version__
from kernelmill.scale import (
    Cluster,
    ClusterError,
    DaskKernelClassifier,
    DaskKernelRegressor,
    Piece,
    PieceError,
    Pieces,
)

# Dask warns of sockets of dead processes, and of busy machines.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]

N_ROWS, N_CHUNKS = 1600, 16
ROWS = np.random.default_rng(0).normal(size=(N_ROWS, 4))
TARGETS = np.sin(2 * ROWS[:, 0]) + ROWS[:, 1]
MAP = Fastfood(n_components=64, length_scale=1.0, random_state=0)


def slow(rows, flag=None):
    """The same rows, later: time enough to kill a worker in the middle of a fit."""
    time.sleep(0.05)
    return rows


def as_array(values):
    chunks = (N_ROWS // N_CHUNKS, *values.shape[1:])
    return da.from_array(values, chunks=chunks, name=False)


def as_slow_array(values):
    array = as_array(values)
    return array.map_blocks(slow, meta=array._meta)


class Killer(threading.Thread):
    """Kills a worker of the cluster, once, when the cluster has been busy for a moment."""

    def __init__(self, client):
        super().__init__()
        self.client = client
        self.killed = None

    def run(self):
        deadline = time.monotonic() + 20
        while self.killed is None and time.monotonic() < deadline:
            time.sleep(0.05)
            running = {
                address: tasks for address, tasks in self.client.processing().items() if tasks
            }
            has_results = any(self.client.has_what().values())
            if running and has_results:
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
                pids = self.client.run(os.getpid)
                address = max(running, key=lambda worker: len(running[worker]))
                assert address in workers
                os.kill(pids[address], signal.SIGKILL)
                self.killed = pids[address]


def with_a_death(client, call):
    """Return the result of a call during which a worker is killed by SIGKILL."""
    client.wait_for_workers(2, timeout=30)
    killer = Killer(client)
    killer.start()
    result = call()
    killer.join()
    assert killer.killed is not None
    assert killer.killed not in client.run(os.getpid).values()
    client.wait_for_workers(2, timeout=30)
    return result


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return DaskKernelRegressor(MAP, alpha=0.1).fit(as_array(ROWS), as_array(TARGETS))


def test_ridge_is_bit_identical_on_a_cluster_and_after_a_death(client, expected):
    model = DaskKernelRegressor(MAP, alpha=0.1, client=client)
    assert model.client_ is client
    model.fit(as_array(ROWS), as_array(TARGETS))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.statistics_.n_rows == N_ROWS
    again = with_a_death(client, lambda: model.fit(as_slow_array(ROWS), as_slow_array(TARGETS)))
    np.testing.assert_array_equal(again.coef_, expected.coef_)
    assert again.statistics_.n_rows == N_ROWS


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_classifiers_do_not_depend_on_the_workers(client, solver):
    labels = as_array((TARGETS > 0).astype(int))
    settings = {"solver": solver, "epochs": 3, "random_state": 0, "alpha": 1e-3, "tol": 1.0}
    found = DaskKernelClassifier(MAP, client=client, **settings).fit(as_array(ROWS), labels)
    with dask.config.set(scheduler="synchronous"):
        there = DaskKernelClassifier(MAP, **settings).fit(as_array(ROWS), labels)
    np.testing.assert_array_equal(found.coef_, there.coef_)


def test_a_chunk_that_raises_names_its_place_and_cause(client):
    bad = TARGETS.copy()
    bad[281] = np.nan
    with pytest.raises(PieceError, match=r"chunk 2 \(rows 200 to 299\): .*NaN"):
        DaskKernelRegressor(MAP, client=client).fit(as_array(ROWS), as_array(bad))


def report_threads(total, blocks, number):
    from threadpoolctl import threadpool_info

    list(blocks)
    return max(library["num_threads"] for library in threadpool_info())


def read_nothing(source):
    yield np.zeros((source, 1)), np.zeros(source)


def test_tasks_share_the_cores(client):
    pieces = [Piece(str(number), 1) for number in range(4)]
    # Dask gives its worker processes OMP_NUM_THREADS=1.
    assert Pieces(pieces, read_nothing, Cluster(client)).fold(report_threads, max) == 1


def count_page_faults(total, blocks, number):
    """The page faults of 50 arrays of 4 MiB, one after the other."""
    list(blocks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(1 << 19)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is that of glibc")
def test_tasks_use_freed_memory_again(client):
    found = Pieces([Piece("one", 1)], read_nothing, Cluster(client)).fold(count_page_faults, max)
    assert found < 5000  # about 500, or 25,000 with new pages


def test_tasks_share_the_cores_of_a_worker_with_threads():
    n_cores = len(os.sched_getaffinity(0))
    with (
        Client(
            processes=False,
            n_workers=1,
            threads_per_worker=n_cores,
            dashboard_address=":0",
            set_as_default=False,
        ) as client,
    ):
        pieces = [Piece(str(number), 1) for number in range(4)]
        assert Pieces(pieces, read_nothing, Cluster(client)).fold(report_threads, max) == 1


PROGRAM = """
import os, runpy, sys
for stream in (1, 2):
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
sys.path[:0] = {folders}
sys.argv = {arguments}
runpy.run_module("distributed.cli." + sys.argv[0], run_name="__main__")
"""


def start(script, *arguments, folders=()):
    """Start a program of Dask; modules and packages are looked for in `folders` first.

    It is a fork of the process that those of `client` are forks of, which has imported what it
    needs.
    """
    script.write_text(PROGRAM.format(folders=[*map(str, folders)], arguments=[*arguments]))
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=runpy.run_path, args=(str(script),))
    process.start()
    return process


def end(process):
    process.kill()
    process.join()


@pytest.fixture
def lone_scheduler(client, tmp_path):
    """A scheduler in a process of its own, and its address."""
    file = tmp_path / "scheduler.json"
    process = start(
        tmp_path / "scheduler.py",
        "dask_scheduler",
        "--port=0",
        "--host=127.0.0.1",
        "--no-dashboard",
        f"--scheduler-file={file}",
    )
    deadline = time.monotonic() + 30
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    yield process, str(file)
    end(process)


def test_a_worker_with_another_version_is_rejected_and_a_lost_scheduler_is_reported(
    lone_scheduler, tmp_path
):
    scheduler, file = lone_scheduler
    other = tmp_path / "other" / "kernelmill-9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: kernelmill\nVersion: 9.9\n")
    worker = start(
        tmp_path / "worker.py",
        "dask_worker",
        f"--scheduler-file={file}",
        "--nthreads=1",
        "--no-nanny",
        "--no-dashboard",
        folders=[other.parent],
    )
    timeouts = {"distributed.comm.timeouts.connect": "1s", "distributed.comm.retry.count": 0}
    try:
        with dask.config.set(timeouts):
            client = Client(scheduler_file=file, set_as_default=False)
            model = DaskKernelRegressor(MAP, client=client)
            with pytest.raises(ClusterError, match=r"has no workers|must have kernelmill"):
                model.fit(as_array(ROWS), as_array(TARGETS))
            client.wait_for_workers(1, timeout=30)
            with pytest.raises(
                ClusterError, match=r"must have the same kernelmill version .*, got 9\.9"
            ):
                model.fit(as_array(ROWS), as_array(TARGETS))
            pieces = Pieces([Piece("one", 1)], read_nothing, Cluster(client))
            with pytest.raises(
                (ClusterError, PieceError),
                match=rf"worker \S+ must have the same .* as the client, {__version__}, got 9\.9",
            ):
                pieces.fold(report_threads, max)  # a worker that comes later
            dies = dask.delayed(os.kill)(scheduler.pid, signal.SIGKILL)
            with pytest.raises(ClusterError, match=r"connection to the scheduler .* is lost"):
                Cluster(client).compute(dies)  # in the middle of a computation
            with pytest.raises(ClusterError, match=r"connection to the scheduler .* is lost"):
                model.fit(as_array(ROWS), as_array(TARGETS))
            client.close(timeout=1)
    finally:
        end(worker)
