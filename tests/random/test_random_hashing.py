"""Hash functions: exact against big integers, and independent over the choice of the function.

Statistical tests are at level 1e-4 with fixed seeds.
"""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelmill.random import HashFunction, SignHash, Stream

LEVEL = 1e-4
PRIME = 2**61 - 1
FIELD = st.integers(0, PRIME - 1) | st.sampled_from([0, 1, 2**60 - 1, 2**60, PRIME - 2, PRIME - 1])


def value(coefficients, x):
    return sum(c * x**power for power, c in enumerate(coefficients)) % PRIME


@settings(max_examples=200, deadline=None)
@given(
    st.lists(FIELD, min_size=1, max_size=5),
    st.lists(FIELD, min_size=1, max_size=8),
    st.integers(1, PRIME) | st.integers(1, 100),
)
def test_against_big_integers(coefficients, indices, n_buckets):
    h, s = HashFunction(tuple(coefficients), n_buckets), SignHash(tuple(coefficients))
    values = [value(coefficients, x) for x in indices]
    assert h(indices).tolist() == [v * n_buckets >> 61 for v in values]
    assert s(indices).tolist() == [1 if v < 2**60 else -1 for v in values]


def test_dtypes_and_shapes():
    stream = Stream.from_seed(31)
    h, s = stream.hash_function(1000), stream.sign_hash()
    x = np.arange(24)
    expected = h(x)
    assert expected.dtype == np.int64
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"):
        np.testing.assert_array_equal(h(x.astype(dtype)), expected)
    np.testing.assert_array_equal(h(x.reshape(2, 3, 4)), expected.reshape(2, 3, 4))
    np.testing.assert_array_equal(h(x.reshape(4, 6).T), expected.reshape(4, 6).T)
    np.testing.assert_array_equal(h(x[::-2]), expected[::-2])
    assert h([]).shape == (0,)
    assert h(np.empty((3, 0), np.int32)).shape == (3, 0)
    for dtype in (np.int64, np.int8, np.float64, np.float32):
        assert s(x, dtype=dtype).dtype == dtype
        np.testing.assert_array_equal(s(x, dtype=dtype), s(x))


def test_threads_do_not_matter():
    h = Stream.from_seed(32).hash_function(10**6, independence=3)
    x = np.arange(50_001) * 7919
    np.testing.assert_array_equal(h(x, n_threads=1), h(x, n_threads=3))


def test_hash_functions_are_values():
    stream = Stream.from_seed(33)
    for one, other in [
        (stream.hash_function(9), stream.hash_function(9, index=1)),
        (stream.sign_hash(), stream.sign_hash(index=1)),
    ]:
        assert one != other
        for same in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), eval(repr(one))):
            assert same == one
            assert hash(same) == hash(one)
    assert stream.hash_function(9).coefficients != stream.sign_hash().coefficients
    assert stream.hash_function(9, independence=5).independence == 5


def many(make, points, count=20_000):
    return np.array([make(index=i)(points) for i in range(count)])


@pytest.mark.parametrize("points", [(0, 1), (1, 2), (5, 10), (0, 2**61 - 2), (7, 7 + 2**32)])
def test_buckets_are_pairwise_independent(points):
    stream = Stream.from_seed(34).substream(*points)
    h = many(lambda index: stream.hash_function(5, index=index), points)
    assert stats.chisquare(np.bincount(h[:, 0] * 5 + h[:, 1], minlength=25)).pvalue > LEVEL


def test_signs_are_independent_in_twos_and_fours():
    stream = Stream.from_seed(35)
    two = many(lambda index: stream.sign_hash(index=index), (0, 1, 2, 3))
    four = many(lambda index: stream.sign_hash(independence=4, index=index), (0, 1, 2, 3))
    for signs in (two, four):
        for i in range(4):
            for j in range(i):
                table = np.bincount((signs[:, i] + 1) + (signs[:, j] + 1) // 2, minlength=4)
                assert stats.chisquare(table).pvalue > LEVEL
    cells = ((four + 1) // 2) @ [8, 4, 2, 1]
    assert stats.chisquare(np.bincount(cells, minlength=16)).pvalue > LEVEL
    # Degree one is too little for that: on four equally spaced points the test sees it.
    cells = ((two + 1) // 2) @ [8, 4, 2, 1]
    assert stats.chisquare(np.bincount(cells, minlength=16)).pvalue < 1e-12


def test_one_function_spreads_a_range_evenly():
    h = Stream.from_seed(36).hash_function(100, independence=4)
    counts = np.bincount(h(np.arange(100_000)), minlength=100)
    # With 4-wise independent buckets P(|count - mean| >= t) <= (3 + 1/mean) (mean / t**2)**2.
    assert np.abs(counts - 1000).max() < 1000**0.5 * (100 * 3.01 / LEVEL) ** 0.25
