"""Maps of dot-product kernels with extreme data and parameters."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmill import (
    CountSketch,
    DotProductFastfood,
    GaussianTemplates,
    PermutationEncoder,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
    _native,
)
from kernelmill.kernels import ArcCosine, ExponentialDotProduct, Maclaurin, SpherePower, Zonal
from kernelmill.projections import FeatureLayout

X = np.random.default_rng(0).normal(size=(20, 5))
ALL = (
    CountSketch,
    DotProductFastfood,
    GaussianTemplates,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)


class TestFarFromZero:
    """The center is subtracted before anything else, so its size does not matter."""

    @pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
    @pytest.mark.parametrize("Map", [TaylorSketch, GaussianTemplates])
    def test_center_does_not_cancel(self, Map, offset):
        near = np.round(X, 3)
        parameters = {"n_components": 300, "length_scale": 3.0, "random_state": 0}
        Z = Map(**parameters).fit(near).transform(near)
        moved = Map(**parameters).fit(near + offset).transform(near + offset)
        np.testing.assert_allclose(moved, Z, rtol=0, atol=1e-13 * offset + 1e-12)

    def test_equal_rows_in_float32(self):
        far = np.full((6, 3), 1e8, np.float32)
        for features in (TaylorSketch(random_state=0), GaussianTemplates(random_state=0)):
            Z = features.fit_transform(far)
            assert np.ptp(Z, axis=0).max() == 0
            assert np.isfinite(Z).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighting", ["gaussian", "student"])
def test_templates_of_huge_rows_are_zero(dtype, weighting):
    features = GaussianTemplates(
        n_components=16,
        length_scale=1.0,
        spread=1.0,
        weighting=weighting,
        proper=weighting == "gaussian",
        random_state=0,
    ).fit(X.astype(dtype))
    top = float(np.finfo(dtype).max)
    for size in (1e4, 1e18, top / 1e3, top / 10, top):
        assert (features.transform(np.full((1, 5), size, dtype)) == 0).all()
        assert (features.transform(sp.csr_array(np.full((1, 5), size, dtype))) == 0).all()


class TestKernelsOfTheUser:
    def test_functions_may_work_in_place(self):
        def doubled(cosine):
            return np.exp(np.multiply(cosine, 2, out=cosine))

        in_place = DotProductFastfood(Zonal(doubled), random_state=0).fit(X)
        plain = DotProductFastfood(Zonal(lambda c: np.exp(2 * c)), random_state=0).fit(X)
        np.testing.assert_array_equal(in_place.transform(X), plain.transform(X))

    def test_coefficients_must_be_repeatable(self):
        rng = np.random.default_rng(0)
        for Map in (DotProductFastfood, RandomMaclaurin):
            with pytest.raises(ValueError, match="must always return the same number"):
                Map(lambda n: rng.uniform() * 0.1**n).fit(X)

    def test_values_of_what_is_not_finite(self):
        values = Maclaurin(lambda n: 0.5**n).value([[1.0, np.nan], [np.inf, -1.0]])
        np.testing.assert_allclose(values, [[2.0, np.nan], [np.nan, 2 / 3]], rtol=1e-12)

    def test_an_array_of_coefficients_says_all(self):
        with pytest.raises(ValueError, match="value must be None if the coefficients"):
            Maclaurin([1.0, 1.0], value=np.exp)

    def test_expansions_that_overflow(self):
        with pytest.raises(ValueError, match="must be finite up to degree"):
            DotProductFastfood(Zonal(lambda c: 1e300 * (1 + c))).fit(np.ones((2, 300)))

    def test_too_many_powers(self):
        with pytest.raises(ValueError, match="coefficients must be at most 256, got 1000"):
            SpherePower(np.ones(1000))


class TestErrors:
    @pytest.mark.parametrize("Map", ALL)
    @pytest.mark.parametrize("n_components", [2**31, 10**30])
    def test_too_many_components(self, Map, n_components):
        with pytest.raises(ValueError, match="n_components must be"):
            Map(n_components=n_components).fit(X)

    @pytest.mark.parametrize("name", ["length_scale", "spread"])
    @pytest.mark.parametrize("number", [1e-160, 1e160])
    def test_scales_of_templates(self, name, number):
        with pytest.raises(ValueError, match=f"{name} must be between 1e-100 and 1e\\+100"):
            GaussianTemplates(**{"length_scale": 1.0, "spread": 1.0, name: number}).fit(X)

    @pytest.mark.parametrize("factor", [1e-170, 1e200])
    def test_norms_for_the_sphere(self, factor):
        with pytest.raises(ValueError, match=r"typical norm of the rows must be .*scale the data"):
            DotProductFastfood(ArcCosine(1)).fit(X * factor)
        fitted = DotProductFastfood(ArcCosine(1)).fit(X)
        with pytest.raises(ValueError, match=r"features of row 0 are not finite .*scale the col"):
            fitted.transform(np.full((1, 5), 1e155))

    @pytest.mark.parametrize("length_scale", [1e-160, 1e160, 1e300])
    def test_scales_of_taylor(self, length_scale):
        Z = TaylorSketch(length_scale=length_scale, random_state=0).fit_transform(X)
        assert np.isfinite(Z).all()

    def test_kernels_for_other_maps(self):
        with pytest.raises(TypeError, match="but DotProductFastfood takes it"):
            RandomMaclaurin(ArcCosine(1)).fit(X)
        with pytest.raises(ValueError, match="larger length_scale"):
            DotProductFastfood(ExponentialDotProduct(1.0)).fit(X * 100)

    def test_more_terms_than_columns(self):
        with pytest.raises(
            ValueError, match=r"n_components must be greater than the degree, 9, .* got 5"
        ):
            TaylorSketch(5, degree=9).fit(X)

    def test_permutations(self):
        encoder = PermutationEncoder().fit([[0, 1], [1, 0]])
        with pytest.raises(ValueError, match="encoding must be one of"):
            encoder.set_params(encoding="zzz").transform([[0, 1]])
        with pytest.raises(TypeError, match="X must contain integers, got dtype datetime64"):
            PermutationEncoder().fit(np.array([["2020-01-01", "2020-01-02"]], "M8[D]"))

    def test_native_lengths(self):
        with pytest.raises((ValueError, TypeError)):
            _native.ring_roots_size(3**40)


@pytest.mark.parametrize("n_components", [10, 700, 3000])
def test_lengths_of_centres_in_odd_numbers_of_columns(n_components):
    """Those that were drawn are those of the projections of all unit vectors."""
    features = GaussianTemplates(n_components=n_components, length_scale=30.0, random_state=0)
    projection = features.fit(np.ones((2, 300))).projection_
    columns = np.empty((300, n_components))
    projection.features(np.eye(300), FeatureLayout("projection", n_components), None, columns)
    np.testing.assert_allclose(np.linalg.norm(columns, axis=0), projection.lengths(), rtol=1e-12)


def test_few_components_of_many_columns():
    """Only lengths of rows that are used are measured: of 16384 it would take long."""
    wide = np.random.default_rng(1).standard_normal((3, 9000))
    features = GaussianTemplates(n_components=10, length_scale=300.0, random_state=0).fit(wide)
    restored = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(restored.transform(wide), features.transform(wide))


@pytest.mark.parametrize("length_scale", [0.01, 1e6])
def test_taylor_columns_are_found_quickly(length_scale):
    """All sizes of terms are below the smallest number for most degrees."""
    fitted = TaylorSketch(20_000, length_scale=length_scale).fit(X[:, :2])
    assert sum(fitted.columns_of_degrees_) == 20_000
