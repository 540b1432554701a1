"""Edge cases: unusual but valid data and parameters, and attempts to corrupt a map."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import BallConvolution, Radial, Spectrum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6))


@pytest.mark.parametrize("kernel", [BallConvolution(2), Radial([1.0, 2.0])], ids=repr)
def test_sorf_rejects_few_columns_where_signs_may_cancel(kernel):
    with pytest.raises(ValueError, match=r"at least 16 columns for .*, got 3.*hadamard"):
        Fastfood(kernel, structure="sorf").fit(X[:, :3])
    wide = RNG.standard_normal((5, 16))
    for seed in range(30):
        features = Fastfood(kernel, structure="sorf", n_components=500, random_state=seed)
        assert np.isfinite(features.fit_transform(wide)).all()


@pytest.mark.parametrize("make", [Fastfood, RandomFourier])
def test_coefficients_that_overflow_are_an_error(make):
    single = X.astype(np.float32)
    with pytest.raises(ValueError, match=r"too large for float32; use a larger .*length_scale"):
        make(length_scale=1e-40).fit(single)
    assert np.isfinite(make(length_scale=1e-40, random_state=0).fit_transform(X)).all()
    with pytest.raises(ValueError, match="too large for float64"):
        make(length_scale=1e-310).fit(X)
    with pytest.raises(ValueError, match="must be positive and finite, got inf"):
        make(gamma=1e-320).fit(X)
    huge = make(length_scale=1.7e308, random_state=0).fit_transform(X)
    assert np.isfinite(huge).all()


def test_given_factors_that_overflow_are_an_error():
    ones, order = np.ones((1, 8)), [np.arange(8)]
    with pytest.raises(ValueError, match="B must be finite"):
        Fastfood.from_factors(np.full((1, 8), np.longdouble(10) ** 4000), order, ones, ones)
    made = Fastfood.from_factors(ones, order, ones, 1e300 * ones)
    with pytest.raises(ValueError, match="too large for float32"):
        made.transform(np.ones((1, 8), np.float32))


def test_equal_entries_have_no_spread():
    for constant in (0.1, 0.3, -7.7):
        data = np.full((100, 3), constant)
        for given in (data, sp.csr_array(data)):
            assert RandomFourier().fit(given).length_scale_ == pytest.approx(np.sqrt(0.5))


def test_spread_of_sparse_data_is_that_of_dense_data():
    data = np.where(RNG.uniform(size=(500, 9)) < 0.1, RNG.standard_normal((500, 9)) + 3, 0.0)
    expected = np.sqrt(9 * data.var() / 2)
    assert Fastfood().fit(data).length_scale_ == pytest.approx(expected, rel=1e-12)
    assert Fastfood().fit(sp.csr_array(data)).length_scale_ == pytest.approx(expected, rel=1e-12)


def test_median_does_not_take_rounding_for_distance():
    base = RNG.standard_normal((5, 50))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    for seed in range(5):
        rows = np.random.default_rng(seed).choice(5, 300, p=[0.8, 0.05, 0.05, 0.05, 0.05])
        dense = Fastfood(length_scale="median").fit(base[rows]).length_scale_
        sparse = Fastfood(length_scale="median").fit(sp.csr_array(base[rows])).length_scale_
        assert sparse == pytest.approx(dense, rel=1e-6)
    with pytest.raises(ValueError, match="too large for float64"):
        Fastfood(length_scale="median").fit(sp.csr_array(np.abs(X) * 1e160))


def test_masks_are_not_lost_silently():
    with pytest.raises(TypeError, match="mask would be lost"):
        Fastfood().fit(np.ma.masked_greater(X, 1))


def test_sparse_data_with_strides():
    matrix = sp.csr_array(X)
    features = Fastfood(random_state=0).fit(X)
    expected = features.transform(matrix)
    matrix.data = np.repeat(matrix.data, 2)[::2]
    np.testing.assert_array_equal(features.transform(matrix), expected)


def test_exact_kernel_checks_columns():
    features = Fastfood().fit(X)
    with pytest.raises(ValueError, match="expecting 6 features"):
        features.exact_kernel(X[:, :4])
    frame = pd.DataFrame(X, columns=list("abcdef"))
    features = Fastfood().fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        features.exact_kernel(frame, frame[list("fedcba")])


def test_float32_frames_stay_float32():
    single = X.astype(np.float32)
    expected = Fastfood(random_state=0).fit_transform(single)
    for frame in (
        pl.DataFrame(single),
        pd.DataFrame(single),
        pd.DataFrame(single, dtype="Float32"),
    ):
        made = Fastfood(random_state=0).fit_transform(frame)
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made, expected)
    assert Fastfood().fit_transform(pl.DataFrame(X)).dtype == np.float64


def unsteady_radii(stream, n, dim):
    return np.random.default_rng().uniform(size=n)


def frequencies_from_the_end(stream, n, dim):
    return stream.normals((n, dim))[::-1]


def test_draws_that_cannot_be_repeated_are_an_error():
    with pytest.raises(ValueError, match=r"must be a function of the stream.*unsteady_radii"):
        Fastfood(Radial(unsteady_radii)).fit(X)
    with pytest.raises(ValueError, match="do not depend on n"):
        RandomFourier(Spectrum(frequencies_from_the_end)).fit(X)


def test_the_permutation_cannot_be_spoilt():
    features = Fastfood(random_state=0).fit(X)
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match="read-only"):
            features.projection_.factors(dtype).permutation[:] = 2**30
    given = Fastfood.from_factors(np.ones(8), np.arange(8), np.ones(8), np.ones(8))
    with pytest.raises(ValueError, match="read-only"):
        given.projection_.factors().permutation[:] = 2**30


def test_phases_differ_between_maps_of_one_seed():
    maps = [
        Fastfood(features="cos_phase", random_state=0),
        Fastfood(features="cos_phase", structure="sorf", random_state=0),
        RandomFourier(features="cos_phase", random_state=0),
        RandomFourier(features="cos_phase", sampling="orthogonal", random_state=0),
    ]
    at_zero = [features.fit(X).transform(np.zeros((1, 6))) for features in maps]
    for i, first in enumerate(at_zero):
        for second in at_zero[:i]:
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.5  # of 100: false alarm below 1e-6


def test_given_factors_leave_no_doubt_about_other_parameters():
    made = Fastfood.from_factors(np.ones(8), np.arange(8), np.ones(8), np.ones(8))
    assert "1 blocks of 8" in repr(made)
    with pytest.raises(ValueError, match="kernel must be 'gaussian' if factors"):
        made.set_params(kernel="matern").fit(X)
    with pytest.raises(TypeError, match="from_factors"):
        Fastfood(factors=(1, 2, 3)).fit(X)
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        Fastfood.from_factors(np.ones(8), np.arange(8), np.ones(8), np.ones(8), n_features=-1)


def test_hints_in_errors():
    for parameters, hint in [
        ({"kernel": "Matern"}, "kernel='matern'"),
        ({"gamma": "median"}, "length_scale='median'"),
        ({"gamma": "auto"}, r"gamma=1 / X.shape\[1\]"),
        ({"length_scale": np.ones(7)}, r"one for each of the \d+ columns"),
    ]:
        with pytest.raises(ValueError, match=hint):
            Fastfood(**parameters).fit(X)
    with pytest.raises(ValueError, match=r"40 frequencies, but 51 are needed.*n_components"):
        RandomFourier(Spectrum(X), n_components=101).fit(X)
