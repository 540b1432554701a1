"""One BLAS thread inside the block, the previous number after it."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kernelmill.runtime.threads import limit_blas_threads, one_blas_thread


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_restores_what_was_before():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == {1}
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert blas_threads() == before


def test_any_thread_may_enter_and_the_last_one_restores():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
    entered, left = threading.Event(), threading.Event()

    def enter_first():
        with one_blas_thread():
            entered.set()
            assert left.wait(10)
        return blas_threads()

    def inside():
        with one_blas_thread():
            return blas_threads()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(2) as pool:
        assert inside() == {1}
        assert pool.submit(inside).result() == {1}  # after another thread was inside
        assert blas_threads() == before
        first = pool.submit(enter_first)
        assert entered.wait(10)
        with one_blas_thread():
            left.set()
            assert first.result() == {1}
        assert blas_threads() == before  # this thread did not set the limit


def test_limits_of_several_threads_end_with_the_last():
    """The second thread limits BLAS after a part of the first one's work has released it."""
    entered, left = threading.Event(), threading.Event()

    def second():
        with limit_blas_threads(1):
            entered.set()
            assert left.wait(10)
            return blas_threads()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        before = blas_threads()
        with limit_blas_threads(1):
            with one_blas_thread():
                pass
            waiting = pool.submit(second)
            assert entered.wait(10)
        left.set()
        assert waiting.result() == {1}
        assert blas_threads() == before
        with limit_blas_threads(2), pool.submit(limit_blas_threads, None).result():
            assert blas_threads() == before


def test_a_forked_process_leaves_the_limits_of_other_threads():
    """In a process of its own: one thread is always inside, and children must not wait for it."""
    script = """
import os, threading, time
from kernelmill.runtime.threads import one_blas_thread

def stay():
    while True:
        with one_blas_thread():
            pass

threading.Thread(target=stay, daemon=True).start()
for _ in range(5):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        with one_blas_thread():
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)
