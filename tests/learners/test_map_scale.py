"""Tuning by evidence: what it finds, its budget, its repeatability, its errors."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmill import CountSketch, Fastfood, TensorSketch
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.tuning.map_scale import _search


def problem(n_rows=400, scale=1.0):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n_rows, 1))
    y = np.sin(4 * X[:, 0]) + 0.2 * rng.standard_normal(n_rows)
    return scale * X, y


def test_length_scale_and_noise_are_found():
    X, y = problem()
    # The default length scale, 1.7, is far above the 0.4 or so that a sine of period 1.6 needs.
    feature_map = Fastfood(n_components=128, random_state=0)
    default = KernelRegressor(feature_map).fit(X, y)
    tuned = KernelRegressor(feature_map, tune=True).fit(X, y)
    assert tuned.feature_map_.length_scale_ < 0.6 * default.feature_map_.length_scale_
    # 400 rows, some 30 of them spent on the function: the variance 0.04 to √(2/370) = 7.3 %;
    # six deviations.
    assert tuned.noise_ == pytest.approx(0.04, rel=6 * 0.073)
    best = int(np.argmax(tuned.tuning_["log_evidence"]))
    assert tuned.tuning_["length_scale"][best] == tuned.feature_map_.length_scale_
    assert tuned.tuning_["alpha"][best] == tuned.alpha_
    # All rows and all features were in the sample: the evidence is that of the fit.
    assert tuned.tuning_["log_evidence"][best] == pytest.approx(
        tuned.log_marginal_likelihood(), rel=1e-6
    )
    assert tuned.feature_map_.n_components == 128


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_it_starts_where_the_data_are(scale):
    expected = KernelRegressor(Fastfood(n_components=64, random_state=0), tune=True)
    expected = expected.fit(*problem()).feature_map_.length_scale_
    X, y = problem(scale=scale)
    model = KernelRegressor(Fastfood(n_components=64, random_state=0), tune=True).fit(X, y)
    assert model.feature_map_.length_scale_ == pytest.approx(scale * expected, rel=0.05)


@pytest.mark.parametrize("budget", [1, 2, 7, 8, 12])
def test_the_budget_is_kept(budget):
    X, y = problem(100)
    feature_map = Fastfood(n_components=16, random_state=0)
    model = KernelRegressor(feature_map, tune=True, tune_budget=budget).fit(X, y)
    assert len(model.tuning_["alpha"]) <= budget
    assert len(set(model.tuning_["length_scale"])) == len(model.tuning_["length_scale"])


def test_one_seed_one_result():
    X, y = problem(3000)
    model = KernelRegressor(Fastfood(n_components=64), tune=True, tune_budget=8, random_state=5)
    first = model.fit(X, y)
    coef, table = first.coef_, first.tuning_
    model.fit(X, y)
    np.testing.assert_array_equal(model.coef_, coef)
    for name, column in table.items():
        np.testing.assert_array_equal(model.tuning_[name], column)


@pytest.mark.parametrize("name", ["alpha", "noise"])
def test_what_is_given_stays(name):
    X, y = problem()
    feature_map = Fastfood(n_components=64, random_state=0)
    model = KernelRegressor(feature_map, tune=True, tune_budget=9, **{name: 0.3}).fit(X, y)
    np.testing.assert_array_equal(model.tuning_["alpha"], 0.3)
    assert model.alpha_ == 0.3
    best = model.tuning_["log_evidence"].max()
    assert model.log_marginal_likelihood() == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", ["gamma", "gamma of a pipeline", "gamma of inner products"])
def test_other_maps(name):
    X, y = problem()
    feature_map = {
        "gamma": RBFSampler(gamma="scale", n_components=100, random_state=0),
        "gamma of a pipeline": make_pipeline(
            StandardScaler(), RBFSampler(n_components=100, random_state=0)
        ),
        "gamma of inner products": TensorSketch(3, coef0=1.0, n_components=64, random_state=0),
    }[name]
    model = KernelRegressor(feature_map, tune=True, tune_budget=12).fit(X, y)
    last = model.feature_map_[-1] if "pipeline" in name else model.feature_map_
    best = int(np.argmax(model.tuning_["log_evidence"]))
    assert last.gamma == model.tuning_["gamma"][best]
    if name != "gamma of inner products":  # a cubic is no sine
        assert model.score(X, y) > 0.8
    assert isinstance(feature_map, type(model.feature_map_))


def test_given_gamma_is_where_the_search_starts():
    X, y = problem()
    feature_map = Fastfood(n_components=32, gamma=2.0, random_state=0)
    model = KernelRegressor(feature_map, tune=True, tune_budget=1).fit(X, y)
    np.testing.assert_allclose(model.tuning_["length_scale"], [0.5])  # exp(-|x-y|²·2)
    assert model.feature_map_.gamma is None


def test_scales_of_columns_keep_their_proportions():
    X, y = problem()
    X = np.column_stack([X, np.random.default_rng(1).uniform(-3, 3, (400, 2))])
    scales = np.array([1.0, 16.0, np.inf])
    feature_map = Fastfood(n_components=128, length_scale=scales, random_state=0)
    model = KernelRegressor(feature_map, tune=True).fit(X, y)
    found = model.feature_map_.length_scale_
    np.testing.assert_allclose(found[:2] / found[0], [1.0, 16.0])
    assert np.isinf(found[2])
    assert found[0] < 0.7  # as for the first column alone
    best = int(np.argmax(model.tuning_["log_evidence"]))
    assert model.tuning_["length_scale"][best] == pytest.approx(4 * found[0])  # geometric mean


def test_maps_without_a_scale():
    X, y = problem()
    model = KernelRegressor(CountSketch(n_components=4, random_state=0), tune=True)
    with pytest.raises(ValueError, match="feature_map must have a parameter length_scale or gamma"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="alpha with tune=True must be a finite number"):
        KernelRegressor(tune=True, alpha=[1.0, 2.0]).fit(X, y)


@pytest.mark.parametrize("n_rows", [1, 2, 50])
def test_nothing_to_find(n_rows):
    feature_map = Fastfood(n_components=16, random_state=0)
    model = KernelRegressor(feature_map, tune=True, tune_budget=9)
    X = np.ones((n_rows, 2))
    model.fit(X, np.ones(n_rows))
    np.testing.assert_allclose(model.predict(X), 1.0)
    assert model.feature_map_.length_scale_ == feature_map.fit(X).length_scale_
    noise = np.random.default_rng(0).standard_normal(n_rows)
    assert np.isfinite(model.fit(X, noise).predict(X)).all()


def test_weights_of_zero_are_left_out():
    X, y = problem()
    y[::2] = 1e6
    weights = np.ones(400)
    weights[::2] = 0
    feature_map = Fastfood(n_components=64, length_scale=1.0, random_state=0)
    model = KernelRegressor(feature_map, tune=True, tune_budget=10).fit(X, y, weights)
    alone = KernelRegressor(feature_map, tune=True, tune_budget=10).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="only zeros"):
        model.fit(X, y, np.zeros(400))


def test_streams_are_tuned_on_their_first_rows():
    X, y = problem()
    feature_map = Fastfood(n_components=64, length_scale=1.0, random_state=0)
    first = KernelRegressor(feature_map, tune=True, tune_budget=9).fit(X[:200], y[:200])
    model = KernelRegressor(feature_map, tune=True, tune_budget=9)
    model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert model.alpha_ == first.alpha_
    assert model.feature_map_.length_scale_ == first.feature_map_.length_scale_
    blocks = KernelRegressor(feature_map, tune=True, tune_budget=9)
    blocks.fit_blocks([(X[:200], y[:200]), (X[200:], y[200:])])
    np.testing.assert_allclose(model.predict(X), blocks.predict(X), rtol=0, atol=1e-8)


def test_progress_is_printed(capsys):
    X, y = problem(50)
    feature_map = Fastfood(n_components=16, random_state=0)
    KernelRegressor(feature_map, tune=True, tune_budget=2).fit(X, y)
    assert capsys.readouterr() == ("", "")
    KernelRegressor(feature_map, tune=True, tune_budget=2, verbose=1).fit(X, y)
    assert capsys.readouterr().err.count("log evidence") == 2


@pytest.mark.parametrize("peak", [-9.3, -2.2, 0.0, 0.4, 3.0, 11.7])
def test_search_finds_a_far_peak(peak):
    tried = []

    def value(offset):
        tried.append(offset)
        return -abs(offset - peak)

    assert _search(value, 30) == pytest.approx(peak, abs=0.05)
    assert len(tried) <= 30
