"""What may be tested, what comes out the same, what is rejected, and how much memory it takes."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmill import Fastfood, TensorSketch
from kernelmill.stats import TwoSampleResult, two_sample_test

SMALL = Fastfood(n_components=32, length_scale="median")
FIXED = Fastfood(n_components=32, length_scale=2.0)


def samples(n_x=40, n_y=60, shift=0.0):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_x, 3)), rng.normal(shift, size=(n_y, 3))


def cut(X, rows):
    return (X[begin : begin + rows] for begin in range(0, len(X), rows))


def run(X, Y, feature_map=SMALL, n_permutations=99, random_state=0, **parameters):
    return two_sample_test(
        X, Y, feature_map=feature_map, n_permutations=n_permutations, random_state=random_state,
        **parameters,
    )  # fmt: skip


def assert_same(a, b):
    assert a.p_value == b.p_value
    assert a.mmd2 == b.mmd2
    np.testing.assert_array_equal(a.null_statistics, b.null_statistics)


def test_seed_decides():
    X, Y = samples()
    assert_same(run(X, Y), run(X, Y))
    assert run(X, Y).mmd2 != run(X, Y, random_state=1).mmd2
    assert_same(run(X, Y, random_state=np.random.RandomState(3)),
                run(X, Y, random_state=np.random.RandomState(3)))  # fmt: skip


def test_threads_change_nothing():
    X, Y = samples()
    assert_same(run(X, Y, n_threads=1), run(X, Y, n_threads=2))


@pytest.mark.parametrize(("n_x", "n_y"), [(40, 60), (3000, 1700), (30, 5000)])
def test_streams_with_a_given_length_scale_are_as_matrices(n_x, n_y):
    X, Y = samples(n_x, n_y)
    whole = run(X, Y, FIXED, shuffle=False)
    assert_same(whole, run(cut(X, 37), cut(Y, 500), FIXED))
    assert_same(whole, run(X, cut(Y, 1), FIXED, shuffle=False))
    assert_same(whole, run([X], [Y[:1], Y[1:1], Y[1:]], FIXED))


@pytest.mark.parametrize(("n_x", "n_y"), [(40, 60), (3000, 1700)])
def test_how_streams_are_cut_does_not_matter(n_x, n_y):
    X, Y = samples(n_x, n_y)
    assert_same(run(cut(X, 10), cut(Y, 7)), run(cut(X, 800), cut(Y, 1000)))


def test_length_scales_of_columns():
    X, Y = samples()
    result = run(X, Y, Fastfood(n_components=32, length_scale=[1.0, 4.0, np.inf]))
    assert result.length_scale == 2.0  # the geometric mean
    Y[:, 2] += 100  # is ignored
    np.testing.assert_allclose(run(X, Y, result.feature_map).mmd2, result.mmd2, rtol=1e-10)


def test_short_streams_have_the_length_scale_of_all_rows():
    X, Y = samples()
    assert run(cut(X, 9), cut(Y, 9)).length_scale == run(X, Y).length_scale


def test_streams_of_a_difference_and_of_none():
    X, Y = samples(4000, 3000, shift=0.3)
    assert run(cut(X, 100), cut(Y, 100)).p_value == 0.01
    assert run(cut(X[:2000], 100), cut(X[2000:], 100)).p_value > 0.01


def test_sparse_rows_and_frames():
    X, Y = samples()
    X[X < 0], Y[Y < 0] = 0, 0
    plain = run(X, Y)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, pd.DataFrame, np.ndarray.tolist):
        other = run(kind(X), kind(Y))
        assert other.p_value == plain.p_value
        assert other.mmd2 == pytest.approx(plain.mmd2, rel=1e-9)
    assert run(X, scipy.sparse.csr_array(Y)).p_value == plain.p_value
    stream = run(cut(X, 11), cut(Y, 11))
    sparse_blocks = (scipy.sparse.csr_array(block) for block in cut(X, 11))
    assert run(sparse_blocks, cut(Y, 11)).p_value == stream.p_value


def test_float32_and_integers():
    X, Y = (np.rint(4 * part) for part in samples())
    plain = run(X, Y)
    narrow = run(X.astype(np.float32), Y.astype(np.float32))
    assert narrow.mmd2 == pytest.approx(plain.mmd2, rel=1e-4)
    assert narrow.mmd2 != plain.mmd2  # so float32 it was
    assert_same(plain, run(X.astype(np.int32), Y.astype(np.float32)))


def test_rounding_of_one_sample_is_no_difference_of_kinds():
    X, Y = samples()
    assert (
        run(X.astype(np.float32), Y).p_value == run(X.astype(np.float32).astype(float), Y).p_value
    )


def test_other_maps():
    X, Y = samples(shift=1.0)
    for features in (
        "random_fourier", "tensor_sketch", TensorSketch(degree=2, coef0=1.0, n_components=32),
        make_pipeline(StandardScaler(), Fastfood(n_components=32)),
        Fastfood(n_components=32, features="complex"), StandardScaler(),
    ):  # fmt: skip
        assert run(X, Y, features).p_value == 0.01
        assert run(cut(X, 9), cut(Y, 9), features).p_value == 0.01


def test_constant_data():
    for n_x, n_y in ((3, 5), (3000, 1100), (2, 5000)):
        result = run(np.full((n_x, 3), 0.1), np.full((n_y, 3), 0.1))
        assert result.p_value == 1
        assert result.statistic == result.mmd2 == 0


def test_identical_samples():
    X, _ = samples(900)
    result = run(X, X[::-1])
    assert result.p_value == 1
    assert result.statistic == 0


def test_equal_statistics_count_whatever_the_order_of_sums():
    """Rows of two kinds: 0 and 1. Only the number of ones in X matters, so ties abound."""
    X, Y = np.r_[np.zeros(9), np.ones(4)][:, None], np.r_[np.zeros(8), np.ones(9)][:, None]
    result = run(X, Y, FIXED, n_permutations=999)
    values = np.unique(result.null_statistics.round(12))
    exact = np.count_nonzero(result.null_statistics > result.statistic - 1e-9)
    assert values.size < 14
    assert result.p_value == (1 + exact) / 1000
    assert np.count_nonzero(abs(result.null_statistics - result.statistic) < 1e-9) > 10


def test_single_rows():
    result = run([[0.0]], [[1.0]])
    assert result.p_value == 1
    assert np.isnan(result.mmd2_unbiased)


def test_repr_and_attributes():
    X, Y = samples(shift=2.0)
    result = run(X, Y)
    assert isinstance(result, TwoSampleResult)
    assert repr(result).startswith("TwoSampleResult(p_value=0.01, statistic=")
    assert "n_x=40, n_y=60, n_features=32, n_permutations=99, length_scale=" in repr(result)
    with pytest.raises(AttributeError):
        result.p_value = 0.0
    assert not hasattr(SMALL, "length_scale_")  # the map given is not fitted itself
    with pytest.raises(ValueError, match="3 columns like the samples, got 2"):
        result.witness([[0.0, 1.0]])


def test_names_mean_the_median_distance():
    X, Y = samples()
    named = two_sample_test(X, Y, random_state=0)
    assert named.n_features == 2048
    assert named.length_scale == run(X, Y).length_scale


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3)), "2 columns in X and 3 in Y"),
        (np.zeros((3, 2)), [[1.0, np.nan]], "Y cannot be tested: .*NaN"),
        ([[np.inf]], [[1.0]], "X cannot be tested: .*infinity"),
        (np.zeros(3), np.zeros((3, 1)), "X cannot be tested: .*2D array"),
        (np.zeros((0, 2)), np.zeros((3, 2)), "X cannot be tested: .*0 sample"),
        (iter([]), np.zeros((3, 2)), "X must have at least one row"),
        (np.zeros((3, 2)), iter([np.zeros((0, 2))]), "Y must have at least one row"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], np.zeros((3, 2)), "2 columns first and 4 later"),
        ([np.zeros((3, 2))], [np.zeros((3, 1))], "2 columns in X and 1 in Y"),
        (pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [1.0], "a": [2.0]}),
         "got 'a' in X where Y has 'b'"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_tested(X, Y, message):
    with pytest.raises(ValueError, match=message):
        run(X, Y)


def test_late_errors_of_streams():
    good = np.zeros((1000, 2))
    with pytest.raises(ValueError, match=r"Y cannot be tested: .*NaN"):
        run(good, iter([good, np.full((1, 2), np.nan)]))


def test_streams_of_numbers():
    with pytest.raises(TypeError, match=r"an iterable with 1.0 in it; combine the rows"):
        run(iter([1.0, 2.0]), np.zeros((3, 1)))


def test_masked_arrays():
    with pytest.raises(TypeError, match=r"Y cannot be tested: .*masked array"):
        run(np.zeros((3, 1)), np.ma.masked_array(np.zeros((3, 1))))


def test_one_iterator_is_not_two_samples():
    blocks = iter([np.zeros((3, 2))])
    with pytest.raises(ValueError, match="one iterator twice"):
        run(blocks, blocks)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_permutations": 0}, ValueError, "n_permutations must be at least 1, got 0"),
        ({"n_permutations": 9.5}, TypeError, "n_permutations must be an integer, got 9.5"),
        ({"shuffle": "no"}, TypeError, "shuffle must be True or False, got 'no'"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
        ({"feature_map": "fast"}, ValueError, "feature_map must be one of 'fastfood'"),
        ({"random_state": "x"}, TypeError, "random_state must be"),
    ],
)
def test_parameters_that_make_no_sense(parameters, error, message):
    with pytest.raises(error, match=message):
        run(*samples(), **parameters)


@pytest.mark.parametrize("X", ["text", {"a": [1]}])
def test_things_that_are_no_samples(X):
    with pytest.raises(TypeError, match="X must be a matrix or an iterable of blocks of rows"):
        run(X, np.zeros((3, 2)))


def test_features_that_overflow():
    features = TensorSketch(degree=3, gamma=1.0, n_components=8)
    with pytest.raises(ValueError, match="features of a row are not finite in float64"):
        run(np.full((3, 2), 1e200), np.ones((3, 2)), features)


def test_memory_does_not_grow_with_the_rows():
    """Less than a tenth of the features of all rows, and the same for four times the rows."""
    features = Fastfood(n_components=512, length_scale="median")
    peaks = []
    for blocks in (20, 80):
        rng = np.random.default_rng(0)
        X, Y = ((rng.normal(size=(500, 4)) for _ in range(blocks)) for _ in range(2))
        tracemalloc.start()
        try:
            result = run(X, Y, features, n_permutations=999)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert result.n_x == result.n_y == 500 * blocks
    assert peaks[1] < 2 * 40_000 * 512 * 8 / 10
    assert peaks[1] < 1.25 * peaks[0]
