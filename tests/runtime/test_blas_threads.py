"""One BLAS thread inside the block, the previous number after it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kernelmill.runtime.threads import one_blas_thread


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
