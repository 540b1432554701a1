"""One BLAS thread inside the block, the previous number after it."""

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
