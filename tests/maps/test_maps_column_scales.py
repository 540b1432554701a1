"""A length scale for each column: the properties of all maps that have a length scale.

The number of columns is part of these maps, so they are not in the table of maps themselves.
"""

import copy
import itertools
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.gaussian_process import kernels as peers

from kernelmill import (
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    TaylorSketch,
    runtime,
)
from kernelmill.files import ModelFileError
from kernelmill.kernels import BallConvolution, Gaussian, Laplacian, Matern, Spectrum
from kernelmill.maps.stored import map_from_record, map_record

DTYPES = [np.float64, np.float32]
CLASSES = [RandomFourier, Fastfood, TaylorSketch, GaussianTemplates, Nystroem]


def draw_scales(dim):
    """Length scales of a wide range; one in five columns is ignored."""
    rng = np.random.default_rng(dim)
    scales = np.exp(rng.uniform(np.log(0.5), np.log(50), dim)) * np.sqrt(dim)
    scales[3::5] = np.inf
    return scales


def with_scales(feature_map):
    def make(dim, **parameters):
        return clone(feature_map).set_params(length_scale=draw_scales(dim), **parameters)

    return make


@pytest.fixture
def scaled_map(map_with_length_scale):
    """Maps that have a length scale, with one per column: ``scaled_map(dim)``."""
    return with_scales(map_with_length_scale)


@pytest.fixture
def scaled_random_map(random_map_with_length_scale):
    """The same without maps of landmarks, for tests of bits."""
    return with_scales(random_map_with_length_scale)


def rounding_bound(Z, dtype):
    """Projections are of size 10 at most (heavy tails: more), in some hundred roundings."""
    return 1e4 * np.finfo(dtype).eps * max(np.sqrt(2 / Z.shape[1]), np.abs(Z).max() / 10)


class TestMeaning:
    def test_features_are_those_of_scaled_data(self, isa, scaled_random_map, points):
        for dim, dtype in itertools.product([1, 5, 37, 64], DTYPES):
            X = points(40, dim, dtype)
            by_columns = scaled_random_map(dim, n_components=200).fit(X)
            scales = by_columns.length_scale_
            Z = by_columns.transform(X)
            scaled = X / scales  # in float64
            by_number = clone(by_columns).set_params(length_scale=1.0).fit(scaled)
            expected = by_number.transform(scaled)
            np.testing.assert_allclose(Z, expected, rtol=0, atol=rounding_bound(expected, dtype))
            if getattr(by_columns, "weighting", "gaussian") == "gaussian":
                # The spread is computed from rows that are rounded to their dtype.
                rtol = 100 * np.finfo(dtype).eps if hasattr(by_columns, "spread_") else 1e-12
                k = by_columns.exact_kernel(X)
                np.testing.assert_allclose(k, by_number.exact_kernel(scaled), rtol=rtol, atol=1e-14)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_equal_scales_are_one_number_to_the_bit(self, scaled_map, points, same_bits, dtype):
        X = points(20, 37, dtype)
        by_columns = scaled_map(37).set_params(length_scale=np.full(37, 1.7)).fit(X)
        by_number = clone(by_columns).set_params(length_scale=1.7).fit(X)
        for form in (np.asarray, sp.csr_array):
            same_bits(by_columns.transform(form(X)), by_number.transform(form(X)))

    def test_ignored_columns_have_no_effect(self, scaled_map, points, same_bits):
        X = points(20, 37)
        fitted = scaled_map(37).fit(X)
        other = X.copy()
        ignored = np.isinf(fitted.length_scale_)
        assert ignored.sum() == 7
        other[:, ignored] += 3.0
        Z = fitted.transform(X)
        np.testing.assert_array_equal(fitted.transform(other), Z)
        other[:, np.flatnonzero(~ignored)[0]] += 0.1
        assert not np.array_equal(fitted.transform(other), Z)

    @pytest.mark.parametrize("make", CLASSES)
    def test_all_columns_may_be_ignored(self, make, points):
        X = points(20, 3)
        fitted = make(length_scale=[np.inf] * 3, random_state=0).fit(X)
        np.testing.assert_array_equal(fitted.exact_kernel(X), 1.0)
        Z = fitted.transform(X)
        np.testing.assert_array_equal(Z, np.repeat(Z[:1], 20, axis=0))

    @pytest.mark.parametrize("make", CLASSES)
    def test_scales_of_any_range(self, make, points):
        X = points(20, 4)
        scales = [1e-300, 1e300, 1.0, 5e-324]
        with np.errstate(all="raise", under="ignore"):
            assert Gaussian()(X, length_scale=scales).min() == 0
        Z = RandomFourier(length_scale=[1e150, 2.0, 1e-150, np.inf], random_state=0)
        assert np.isfinite(Z.fit_transform(X)).all()
        large = make(length_scale=[1e90, 2.0, 1e50, np.inf], random_state=0).fit(X)
        assert np.isfinite(large.transform(X)).all()

    @pytest.mark.parametrize(
        "feature_map",
        [
            RandomFourier(),
            RandomFourier(Laplacian()),
            RandomFourier(Matern(1.5), sampling="orthogonal"),
            RandomFourier(Spectrum(np.random.default_rng(0).standard_normal((100, 6)))),
            Fastfood(),
            Fastfood(BallConvolution(2)),
            Fastfood(Matern(2.5), blocks="independent"),
            TaylorSketch(normalize=False, degree=12),
            GaussianTemplates(),
            GaussianTemplates(proper=False),
        ],
        ids=repr,
    )
    def test_unbiased(self, feature_map):
        """200 seeds; each score passes 5.8 with a probability of 1e-8 (Student's t)."""
        rng = np.random.default_rng(2)
        x = rng.standard_normal((5, 6))
        scales = np.array([2.0, 9.0, np.inf, 3.0, 20.0, 4.0])
        estimates = []
        for seed in range(200):
            made = clone(feature_map).set_params(
                n_components=200, length_scale=scales, random_state=seed
            )
            Z = made.fit(x).transform(x)
            estimates.append(Z @ Z.T)
        first, second = np.triu_indices(5, 1)
        pairs = np.array(estimates)[:, first, second]
        errors = pairs.std(axis=0, ddof=1) / np.sqrt(200)
        if isinstance(made.kernel_, Spectrum):  # all of its frequencies are used: nothing varies
            errors = errors + 1e-14
        scores = (pairs.mean(axis=0) - made.exact_kernel(x)[first, second]) / errors
        assert np.abs(scores).max() < 5.8
        isotropic = clone(made).set_params(length_scale=3.0).fit(x)
        wrong = (pairs.mean(axis=0) - isotropic.exact_kernel(x)[first, second]) / errors
        assert np.abs(wrong).max() > 10


class TestBits:
    def test_batches_and_threads(self, isa, scaled_random_map, points, same_bits):
        for dtype in DTYPES:
            X = points(43, 37, dtype)
            fitted = scaled_random_map(37, n_components=333).fit(X)
            Z = fitted.transform(X)
            assert Z.real.dtype == dtype
            for size in (1, 2, 3, 4, 7, 9, 17, 33):
                same_bits(fitted.transform(X[7 : 7 + size]), Z[7 : 7 + size])
            for n_threads in (1, 2, 3):
                same_bits(fitted.set_params(n_threads=n_threads).transform(X), Z)

    def test_sparse_and_other_layouts(self, isa, scaled_random_map, points, same_bits):
        for dtype in DTYPES:
            X = points(41, 37, dtype)
            X[np.random.default_rng(0).uniform(size=X.shape) < 0.7] = 0
            X[::7] = 0
            fitted = scaled_random_map(37, n_components=101)
            if "center" in fitted.get_params():  # it is subtracted from dense rows only
                fitted.set_params(center=None)
            Z = fitted.fit(X).transform(X)
            csr = sp.csr_array(X)
            wide = sp.csr_array(X.shape, dtype=dtype)
            wide.data, wide.indices = csr.data, csr.indices.astype("i8")
            wide.indptr = csr.indptr.astype("i8")
            for form in (csr, wide, sp.csc_array(X), np.asfortranarray(X), X[::-1][::-1]):
                same_bits(fitted.transform(form), Z)
            for row in (X[2:3], csr[2:3], wide[2:3]):
                same_bits(fitted.transform(row), Z[2:3])
            same_bits(clone(fitted).fit(csr).transform(csr), Z)

    @pytest.mark.skipif(len(runtime.available_isas()) < 2, reason="only one instruction set here")
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_instruction_sets_agree(self, scaled_map, points, dtype):
        X = points(50, 37, dtype)
        fitted = scaled_map(37, n_components=200).fit(X)
        before, results = runtime.get_isa(), []
        try:
            for isa in runtime.available_isas():
                runtime.set_isa(isa)
                results.append(fitted.transform(X))
        finally:
            runtime.set_isa(before)
        bound = rounding_bound(results[0], dtype)
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=0, atol=bound)


class TestState:
    def test_copies_and_files(self, scaled_map, points, same_bits, tmp_path):
        X = points(20, 37)
        fitted = scaled_map(37).fit(X)
        Z = fitted.transform(X)
        joblib.dump(fitted, tmp_path / "map")
        for again in (
            pickle.loads(pickle.dumps(fitted)),
            copy.deepcopy(fitted),
            joblib.load(tmp_path / "map"),
            map_from_record(*map_record(fitted)),
        ):
            same_bits(again.transform(X), Z)
            same_bits(again.length_scale_, fitted.length_scale_)
            same_bits(clone(again).fit_transform(X), Z)

    @pytest.mark.parametrize("make", CLASSES)
    @pytest.mark.parametrize("form", [list, tuple, np.float32, np.int64, np.float64])
    def test_forms_of_scales(self, make, points, same_bits, form):
        X = points(20, 3)
        given = form([2, 4, 8])
        fitted = make(length_scale=given, random_state=0).fit(X)
        assert fitted.length_scale is given
        same_bits(fitted.length_scale_, np.array([2.0, 4.0, 8.0]))
        expected = make(length_scale=[2.0, 4.0, 8.0], random_state=0).fit_transform(X)
        same_bits(fitted.transform(X), expected)
        assert repr(fitted).startswith(make.__name__)

    @pytest.mark.parametrize("make", CLASSES)
    def test_arrays_are_left_alone_and_not_shared(self, make, points, same_bits):
        X = points(20, 3)
        given = np.array([2.0, 4.0, np.inf])
        fitted = make(length_scale=given, random_state=0).fit(X)
        Z, before = fitted.transform(X), map_record(fitted)
        np.testing.assert_array_equal(given, [2.0, 4.0, np.inf])
        single = X.astype(np.float32)
        expected = clone(fitted).fit(X).transform(single)
        given[:] = 1.0  # coefficients for another dtype are drawn later
        same_bits(fitted.transform(single), expected)
        same_bits(fitted.transform(X), Z)
        record, tensors = map_record(fitted)
        assert record == before[0]
        same_bits(tensors["length_scale"], np.array([2.0, 4.0, np.inf]))

    def test_factors(self, points):
        rng = np.random.default_rng(0)
        G, S = rng.standard_normal((2, 4, 16))
        B, places = rng.choice([-1, 1], (4, 16)), [rng.permutation(16) for _ in range(4)]
        X, scales = points(20, 9), draw_scales(9)
        by_columns = Fastfood.from_factors(B, places, G, S, length_scale=scales, n_features=9)
        by_number = Fastfood.from_factors(B, places, G, S, n_features=9)
        np.testing.assert_allclose(
            by_columns.transform(X), by_number.transform(X / scales), rtol=0, atol=1e-13
        )


WRONG = [
    ([1.0, 2.0], ValueError, r"one for each of the 5 columns, shape \(5,\), got shape \(2,\)"),
    ([1.0], ValueError, r"one for each of the 5 columns, shape \(5,\), got shape \(1,\)"),
    (np.ones((5, 1)), ValueError, r"shape \(5,\), got shape \(5, 1\)"),
    ([], ValueError, r"got shape \(0,\)"),
    ([1.0, 2.0, 0.0, 1.0, -1.0], ValueError, r"positive numbers, .* got 0\.0 at position 2"),
    ([1.0, 2.0, 1.0, -3.0, 1.0], ValueError, r"got -3\.0 at position 3"),
    ([1.0, np.nan, 1.0, 1.0, 1.0], ValueError, "got nan at position 1"),
    ([1.0, -np.inf, 1.0, 1.0, 1.0], ValueError, "got -inf at position 1"),
    (["a"] * 5, TypeError, "length_scale must hold real numbers, got an array of dtype <U1"),
    ([True] * 5, TypeError, "length_scale must hold real numbers, got an array of dtype bool"),
    ([1j] * 5, TypeError, "length_scale must hold real numbers, .* dtype complex128"),
    ([[1.0], [1.0, 2.0], 3.0, 4.0, 5.0], TypeError, "length_scale must hold real numbers"),
]


class TestErrors:
    @pytest.mark.parametrize("make", CLASSES)
    @pytest.mark.parametrize(("scales", "error", "message"), WRONG, ids=repr)
    def test_wrong_scales(self, make, points, scales, error, message):
        with pytest.raises(error, match=message) as caught:
            make(length_scale=scales).fit(points(10, 5))
        assert caught.value.message.parameter == "length_scale"
        if make is RandomFourier:
            with pytest.raises(error, match=message):
                Gaussian()(points(10, 5), length_scale=scales)

    @pytest.mark.parametrize("make", CLASSES)
    def test_gamma_beside_scales(self, make, points):
        with pytest.raises(ValueError, match="only one of length_scale and gamma"):
            make(length_scale=[1.0] * 5, gamma=2.0).fit(points(10, 5))

    def test_coefficients_that_overflow(self, points):
        X = points(10, 3, np.float32)
        for make in (RandomFourier, Fastfood):
            with pytest.raises(ValueError, match="too large for float32; use a larger length sc"):
                make(length_scale=[1.0, 1e-60, 1.0]).fit(X)


class TestRecords:
    @pytest.fixture
    def stored(self, points):
        scales = np.array([2.0, np.inf, 4.0])
        return map_record(Fastfood(length_scale=scales, random_state=0).fit(points(10, 3)))

    def test_scales_are_one_tensor(self, stored):
        record, tensors = stored
        assert list(tensors) == ["length_scale"]
        assert "length_scale" not in record["parameters"]
        assert record["learnt"] == {}

    @pytest.mark.parametrize(
        "scales",
        [
            np.array([2.0, np.nan, 4.0]),
            np.array([2.0, 0.0, 4.0]),
            np.array([2.0, -np.inf, 4.0]),
            np.array([2.0, 4.0]),
            np.array([2.0, 4.0, 1.0, 1.0]),
            np.array([[2.0, 4.0, 1.0]]),
            np.array([2.0, 4.0, 1.0], np.float32),
            None,
        ],
        ids=repr,
    )
    def test_wrong_tensors(self, stored, scales):
        record, _ = stored
        with pytest.raises(ModelFileError, match=r"length_scale_? must be .*shape \(n_features_in"):
            map_from_record(record, {} if scales is None else {"length_scale": scales})

    def test_a_number_beside_a_tensor(self, stored):
        record, tensors = stored
        for part, name in (("parameters", "length_scale"), ("learnt", "length_scale_")):
            wrong = {**record, part: {**record[part], name: 2.0}}
            with pytest.raises(ModelFileError, match="inconsistent: length_scale_ must have"):
                map_from_record(wrong, tensors)

    def test_many_columns(self):
        dim = 100_000
        scales = np.linspace(1, 2, dim)
        X = sp.csr_array(([1.0], ([0], [5])), (1, dim))
        record, tensors = map_record(Fastfood(length_scale=scales, random_state=0).fit(X))
        assert len(str(record)) < 1000
        assert sum(each.nbytes for each in tensors.values()) == 8 * dim


def test_kernels_are_those_of_scikit_learn(points):
    X, Y, scales = points(20, 4), points(15, 4), np.array([0.5, 2.0, 7.0, 1.0])
    for ours, theirs in (
        (Gaussian(), peers.RBF(scales)),
        (Matern(1.5), peers.Matern(scales, nu=1.5)),
        (Matern(2.5), peers.Matern(scales, nu=2.5)),
    ):
        for form in (np.asarray, sp.csr_array):
            k = ours(form(X), form(Y), length_scale=scales)
            np.testing.assert_allclose(k, theirs(X, Y), rtol=1e-10, atol=1e-14)
    k = Laplacian()(X, Y, length_scale=scales)
    distances = (np.abs(X[:, np.newaxis] - Y) / scales).sum(axis=-1)
    np.testing.assert_allclose(k, np.exp(-distances), rtol=1e-12)
