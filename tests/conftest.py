"""Fixtures that several test files share."""

import gc
import multiprocessing
import os
import runpy
import signal
import sys
from multiprocessing import forkserver

import pytest
from hypothesis import given, settings
from hypothesis.strategies import none
from threadpoolctl import threadpool_limits

from kernelmill import runtime

# The same examples in every run, as with all other random numbers of the tests.
settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")

# One thread of BLAS, OpenMP and kernelmill, here and in child processes: tests run side by side,
# and threads of small products mostly wait for each other. Tests of threads name their number.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Threads of OpenMP sleep while they wait. By default they spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_ignore_collect(collection_path, config):
    """Skip files without representative tests in `make check`: importing them takes longer."""
    if config.option.markexpr == "representative" and collection_path.match("test_*.py"):
        return "mark.representative" not in collection_path.read_text() or None
    return None


def pytest_collection_finish():
    """Exempt what exists by now from garbage collection.

    Otherwise, every full collection visits thousands of tests and modules. Hypothesis creates its
    generator in its first test and warns if it finds no reference to it; from Python 3.14, it does
    not find references of exempted objects.
    """
    settings(max_examples=1)(given(none())(lambda _: None))()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def sigint_raises_keyboard_interrupt():
    """Handle SIGINT as an interactive Python does, here and in child processes.

    A process started in the background (``nohup make test &``, some CI runners) inherits an ignored
    SIGINT, and so would every program that the tests start and interrupt.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Limit the libraries that were loaded before this file."""
    with threadpool_limits(int(os.environ["OMP_NUM_THREADS"])):
        yield


@pytest.fixture(scope="session")
def shorten_tuning():
    """Patches under which tables are tuned by short searches, penalties of classifiers on one fold.

    The defaults for few rows are 100 epochs on four folds. A function of a `MonkeyPatch`, for tests
    and for fixtures of a module.
    """

    def shorten(patch):
        patch.setattr("kernelmill.workflows.tuning.refinement._ROWS_TO_SEE", 1000)
        patch.setattr("kernelmill.workflows.training.relevance._EVALUATIONS", 3)
        search = "kernelmill.workflows.tuning.kernel_search"
        patch.setattr(f"{search}.MOST_FOLDED_ROWS", 0)
        for name in ("_EVALUATIONS", "_WARM_EVALUATIONS", "_BRIEF_EVALUATIONS"):
            patch.setattr(f"{search}.{name}", 3)

    return shorten


@pytest.fixture
def few_epochs(monkeypatch, shorten_tuning):
    """Train for 20 epochs, not up to 500, and for few on one fold in tuning.

    Trees of comparisons are five, not a hundred. For tests of something else than accuracy.
    """
    from kernelmill.workflows.comparison import compare_table

    shorten_tuning(monkeypatch)
    for module in ("kernelmill.learners.solvers.choice", "kernelmill.workflows.training.plan"):
        monkeypatch.setattr(f"{module}.default_epochs", lambda n_rows: 20)
    make_trees = compare_table.make_trees

    def make_few_trees(*arguments):
        for each in make_trees(*arguments):
            number = "max_iter" if each.name == "boosted trees" else "n_estimators"
            yield each._replace(model=each.model.set_params(**{number: 5}))

    monkeypatch.setattr(compare_table, "make_trees", make_few_trees)


@pytest.fixture(scope="session")
def client():
    """A client of a Dask cluster of two workers, each a process with one thread.

    The workers are forks of a process that has imported what they need. Each start, also of one
    that takes the place of a killed worker, would take three seconds otherwise.
    """
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    needed = ["distributed", "pandas", "kernelmill.scale", "kernelmill.workflows.spread_table"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as Dask does for workers
        multiprocessing.get_context("forkserver").set_forkserver_preload(needed)
        forkserver.ensure_running()
    settings = {
        "distributed.admin.tick.limit": "1h",
        "distributed.comm.timeouts.connect": "20s",
        "distributed.worker.daemon": False,
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _run_program(path, arguments):
    sys.argv = [str(path), *map(str, arguments)]
    runpy.run_path(str(path), run_name="__main__")


@pytest.fixture
def fork():
    """Run a Python program in a process with the imports of this one, which take two seconds."""
    started = []

    def begin(path, *arguments):
        context = multiprocessing.get_context("fork")
        started.append(context.Process(target=_run_program, args=(path, arguments)))
        started[-1].start()
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.join()


@pytest.fixture(params=runtime.available_isas())
def isa(request):
    """Run a test once on every instruction set that this machine has."""
    before = runtime.get_isa()
    runtime.set_isa(request.param)
    yield request.param
    runtime.set_isa(before)
