"""The thread pool as Python sees it: counts, threadpoolctl, forks, many threads, interrupts."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import threadpoolctl

import kernelmill
from kernelmill import fwht
from kernelmill.transforms import circular_convolve, sincos


def run(code, environment=None, timeout=300):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.fixture
def restored_count():
    before = kernelmill.get_num_threads()
    yield before
    kernelmill.set_num_threads(before)


class TestCount:
    show = "import kernelmill; print(kernelmill.get_num_threads())"

    def test_default_is_the_affinity(self):
        one_cpu = """
            import os
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            import kernelmill; print(kernelmill.get_num_threads())
        """
        environment = {"OMP_NUM_THREADS": ""}
        assert run(one_cpu, environment).stdout.strip() == "1"
        assert run(self.show, environment).stdout.strip() == str(len(os.sched_getaffinity(0)))

    @pytest.mark.parametrize(("value", "expected"), [("1", 1), ("1,4", 1), ("junk", 0), ("0", 0)])
    def test_omp_num_threads_lowers_it(self, value, expected):
        cpus = len(os.sched_getaffinity(0))
        out = run(self.show, {"OMP_NUM_THREADS": value}).stdout.strip()
        assert out == str(expected or cpus)

    def test_can_be_set(self, restored_count):
        kernelmill.set_num_threads(3)
        assert kernelmill.get_num_threads() == 3

    @pytest.mark.parametrize(
        ("value", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError), ("2", TypeError)]
    )
    def test_invalid_counts(self, value, error, restored_count):
        with pytest.raises(error, match=r"count must be (at least 1|an integer), got"):
            kernelmill.set_num_threads(value)
        assert kernelmill.get_num_threads() == restored_count

    def test_threadpoolctl_sees_and_limits_it(self, restored_count):
        kernelmill.set_num_threads(4)
        info = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "kernelmill"]
        assert [i["num_threads"] for i in info] == [4]
        with threadpoolctl.threadpool_limits(1):
            assert kernelmill.get_num_threads() == 1
        assert kernelmill.get_num_threads() == 4
        with threadpoolctl.threadpool_limits({"kernelmill": 2}):
            assert kernelmill.get_num_threads() == 2

    def test_no_thread_is_started_by_the_import(self):
        code = """
            import os, kernelmill
            before = len(os.listdir("/proc/self/task"))
            import numpy as np
            kernelmill.fwht(np.ones((1000, 1024)), n_threads=3)
            print(before, len(os.listdir("/proc/self/task")))
        """
        # BLAS starts threads too: one each, so that only those of kernelmill are counted.
        one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        assert run(code, one).stdout.split() == ["1", "3"]


def work(seed):
    """Use every transform on several threads; return what it gave as bytes."""
    x = np.random.default_rng(seed).standard_normal((64, 2048)).astype(np.float32)
    y = fwht(x, n_threads=3)
    s, c = sincos(x, n_threads=3)
    return b"".join(a.tobytes() for a in (y, s, c, circular_convolve(x, y, n_threads=3)))


def test_many_python_threads_at_once():
    expected = [work(seed) for seed in range(8)]
    results = [None] * 8

    def repeat(seed):
        results[seed] = {work(seed) for _ in range(10)}

    threads = [threading.Thread(target=repeat, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [{e} for e in expected]


class TestFork:
    @staticmethod
    def in_child(task):
        """Fork, run the task in the child, and return whether it ended well within 30 s."""
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            code = 1
            try:
                code = 0 if task() else 1
            finally:
                os._exit(code)
        return os.waitpid(pid, 0)[1] == 0

    # Python 3.12 and newer warn about any fork with threads about; whether ours survives it is
    # what is tested here.
    pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

    def test_after_the_pool_was_used(self):
        expected = work(0)
        assert self.in_child(lambda: work(0) == expected)
        assert work(0) == expected

    def test_child_of_a_child(self):
        expected = work(0)
        assert self.in_child(lambda: self.in_child(lambda: work(0) == expected))

    def test_while_other_threads_compute(self):
        expected = work(0)
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                work(1)

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(15):
                assert self.in_child(lambda: work(0) == expected)
        finally:
            stop.set()
            for t in threads:
                t.join()

    def test_multiprocessing_with_fork(self):
        code = """
            import multiprocessing, numpy as np, kernelmill
            x = np.random.default_rng(0).standard_normal((64, 4096))
            expected = kernelmill.fwht(x, n_threads=2).sum()
            def task(i):
                return kernelmill.fwht(x, n_threads=2).sum()
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(task, range(20)) == [expected] * 20
            print("fine")
        """
        result = run(code, {"PYTHONWARNINGS": "ignore::DeprecationWarning"})
        assert result.stdout.strip() == "fine", result.stderr


class TestGil:
    def test_is_released(self):
        """Another thread makes progress while a long transform runs."""
        x = np.ones((512, 2**16), np.float32)
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.0005)

        ticker = threading.Thread(target=tick)
        ticker.start()
        start = time.perf_counter()
        fwht(x, out=x, n_threads=1)
        end = time.perf_counter()
        stop.set()
        ticker.join()
        assert sum(start < t < end for t in ticks) >= 3


class TestInterrupt:
    """Ctrl-C during a call: it stops soon, or finishes what must not be left incomplete."""

    prologue = """
        import os, signal, threading, time
        import numpy as np
        import kernelmill
        from kernelmill import fwht
        x = np.ones((4096, 2**15), np.float32)  # half a GiB: a second or so of work
        def interrupt_soon():
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    """

    def test_stops_and_everything_works_on(self):
        code = textwrap.dedent(self.prologue) + textwrap.dedent("""
            out = np.empty_like(x)
            interrupt_soon()
            try:
                for _ in range(100):
                    fwht(x, out=out, n_threads=2)
                print("not interrupted")
            except KeyboardInterrupt:
                print("interrupted")
            print((x == 1).all(), (fwht(x[:8])[:, 0] == 2**15).all())
        """)
        result = run(code)
        assert result.stdout.split() == ["interrupted", "True", "True"], result.stderr

    def test_in_place_finishes_first(self):
        code = textwrap.dedent(self.prologue) + textwrap.dedent("""
            interrupt_soon()
            try:
                for _ in range(100):
                    x[:] = 1
                    fwht(x, out=x, n_threads=2)
                    assert (x[:, 0] == 2**15).all()
                print("not interrupted")
            except KeyboardInterrupt:
                pass
            # Whichever statement was hit, no row is half transformed.
            done = x[:, 0] == 2**15
            assert (x[done, 1:] == 0).all() and (x[~done] == 1).all()
            print("whole")
        """)
        result = run(code)
        assert result.stdout.strip() == "whole", result.stderr


@pytest.mark.parametrize("function", ["fwht(X)", "svmlight_bounds(TEXT)"])
def test_daemon_threads_at_exit(function):
    """CPython ends them when they take the GIL, which must not unwind C++ functions."""
    code = f"""
import threading, time
import numpy as np
from kernelmill._native import svmlight_bounds
from kernelmill.transforms import fwht
X, TEXT = np.zeros((2000, 1024), np.float32), b"1 1:1\\n" * 1_000_000
begun = threading.Barrier(4)
def work():
    begun.wait()
    while True:
        {function}
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.05)
"""
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
