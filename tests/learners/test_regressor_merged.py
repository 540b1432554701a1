"""Regressors from merged statistics: like one fit of all rows, or a clear error."""

import pickle
import signal

import numpy as np
import pytest
import scipy.sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmill import Fastfood, RandomFourier, TensorSketch
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.statistics import RidgeStatistics

MAP = Fastfood(n_components=48, length_scale=1.5, random_state=1)


def problem(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 3))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(n_rows)
    return X, y, rng.uniform(0, 2, n_rows)


def assert_same(a, b, X):
    # Sums in another order: 300 rows, condition below 300 / 0.1, so 1e-12 and some.
    for left, right in zip(
        a.predict(X, return_std=True), b.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-9)
    np.testing.assert_allclose(a.noise_, b.noise_, rtol=1e-9)
    assert a.log_marginal_likelihood() == pytest.approx(b.log_marginal_likelihood())


@pytest.mark.parametrize("outputs", [None, 1, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_merged_is_like_one_fit(outputs, fit_intercept):
    X, y, weights = problem()
    Y = y if outputs is None else np.stack([y, X[:, 1] + 5], axis=1)[:, :outputs]
    whole = KernelRegressor(MAP, alpha=0.1, fit_intercept=fit_intercept).fit(X, Y, weights)
    machines = [KernelRegressor(MAP) for _ in range(3)]
    rows = [slice(0, 10), slice(10, 150), slice(150, 300)]
    first, *others = [
        pickle.loads(pickle.dumps(machine.statistics(X[part], Y[part], weights[part])))
        for machine, part in zip(machines, rows, strict=True)
    ]
    for other in others:
        first.merge(other)
    model = KernelRegressor(MAP, alpha=0.1, fit_intercept=fit_intercept).fit_statistics(first)
    assert_same(model, whole, X)
    assert model.predict(X).shape == Y.shape
    assert model.n_features_in_ == 3
    assert model.n_iter_ == 1


def test_one_seed_of_the_regressor_is_enough():
    X, y, _ = problem()
    model = KernelRegressor(Fastfood(n_components=32, length_scale=2.0), random_state=4)
    merged = model.statistics(X[:100], y[:100]).merge(model.statistics(X[100:], y[100:]))
    assert_same(KernelRegressor().fit_statistics(merged), model.fit(X, y), X)


def test_blocks():
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=[1e-3, 0.1, 10.0])
    blocks = ((X[i : i + 7], y[i : i + 7]) for i in range(0, 300, 7))
    assert_same(
        model.fit_statistics(model.statistics_of_blocks(blocks)),
        KernelRegressor(MAP, alpha=[1e-3, 0.1, 10.0]).fit(X, y),
        X,
    )
    assert len(model.scores_) == 3


def test_goes_on_with_partial_fit():
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1)
    model.fit_statistics(model.statistics(X[:200], y[:200])).partial_fit(X[200:], y[200:])
    assert_same(model, KernelRegressor(MAP, alpha=0.1).fit(X, y), X)


def test_statistics_and_model_do_not_share():
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1)
    statistics = model.statistics(X[:200], y[:200])
    assert not hasattr(model, "feature_map_")
    before = pickle.dumps(model.fit_statistics(statistics))
    statistics.merge(model.statistics(X[200:], y[200:]))
    assert pickle.dumps(model) == before
    assert model.statistics_.n_rows == 200
    assert statistics.n_rows == 300


def test_a_tuned_map_is_shared():
    X, y, _ = problem()
    tuned = KernelRegressor(
        Fastfood(n_components=32), tune=True, tune_budget=3, random_state=0
    ).fit(X[:100], y[:100])
    model = KernelRegressor(tuned.feature_map_, alpha=tuned.alpha_)
    merged = model.statistics(X[:100], y[:100]).merge(model.statistics(X[100:], y[100:]))
    assert_same(model.fit_statistics(merged), tuned.partial_fit(X[100:], y[100:]), X)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = KernelRegressor(MAP, alpha=0.1)
    merged = model.statistics(frame[:100], y[:100]).merge(model.statistics(frame[100:], y[100:]))
    model.fit_statistics(merged)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert_same(model, KernelRegressor(MAP, alpha=0.1).fit(frame, y), frame)
    other = model.statistics(frame.rename(columns={"a": "z"}), y)
    with pytest.raises(ValueError, match="same columns"):
        merged.merge(other)
    model.fit_statistics(model.statistics(X, y))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    "other",
    [
        Fastfood(n_components=48, length_scale=1.5, random_state=2),
        Fastfood(n_components=48, length_scale=1.5001, random_state=1),
        Fastfood(n_components=48, length_scale=1.5),
        Fastfood(n_components=48, random_state=1),
        RandomFourier(n_components=48, length_scale=1.5, random_state=1),
        TensorSketch(n_components=48, random_state=1),
        make_pipeline(StandardScaler(), RBFSampler(n_components=48, random_state=1)),
    ],
)
def test_other_maps_are_rejected(other):
    X, y, _ = problem()
    mine = KernelRegressor(MAP).statistics(X, y)
    before = pickle.dumps(mine)
    with pytest.raises(ValueError, match=r"the same map.*integer random_state"):
        mine.merge(KernelRegressor(other).statistics(X, y))
    assert pickle.dumps(mine) == before


def test_maps_that_follow_the_data_are_rejected():
    X, y, _ = problem()
    for feature_map in (
        Fastfood(n_components=48, random_state=1),
        make_pipeline(StandardScaler(), RBFSampler(n_components=48, random_state=1)),
    ):
        model = KernelRegressor(feature_map)
        with pytest.raises(ValueError, match="the same map"):
            model.statistics(X[:100], y[:100]).merge(model.statistics(X[100:], y[100:]))


@pytest.mark.parametrize("length_scale", [1e-3, 1.0, 1e4])
def test_length_scales_of_any_size_are_told_apart(length_scale):
    X, y, _ = problem()
    mine, same, other = (
        KernelRegressor(MAP.__class__(n_components=48, length_scale=scale, random_state=1))
        for scale in (length_scale, length_scale, 1.001 * length_scale)
    )
    statistics = mine.statistics(X, y).merge(same.statistics(X, y))
    with pytest.raises(ValueError, match="the same map"):
        statistics.merge(other.statistics(X, y))


def test_other_rows_are_rejected():
    X, y, _ = problem()
    model = KernelRegressor(MAP)
    statistics = model.statistics(X, y)
    with pytest.raises(ValueError, match="same columns"):
        statistics.merge(model.statistics(X[:, :2], y))
    with pytest.raises(ValueError, match=r"1 dimension\(s\), got 2"):
        statistics.merge(model.statistics(X, y[:, None]))
    with pytest.raises(ValueError, match="same numbers of features and targets"):
        model.statistics(X, y[:, None]).merge(model.statistics(X, np.stack([y, y], axis=1)))
    sparse = model.statistics(scipy.sparse.csr_array(X), y)
    assert statistics.merge(sparse).n_rows == 600


def test_plain_statistics_of_the_same_features():
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1)
    plain = RidgeStatistics(48, 1).update(MAP.fit(X).transform(X[100:]), y[100:])
    merged = model.statistics(X[:100], y[:100]).merge(plain)
    assert isinstance(merged, MappedStatistics)
    assert_same(model.fit_statistics(merged), KernelRegressor(MAP, alpha=0.1).fit(X, y), X)
    with pytest.raises(TypeError, match="which includes the map, got RidgeStatistics"):
        model.fit_statistics(plain)


def test_maps_without_numbers():
    words = ["some", "words", "of", "different", "lengths"]
    lengths = FunctionTransformer(lambda rows: np.array([[len(row)] for row in rows]))
    model = KernelRegressor(lengths, alpha=1e-9)
    y = np.array([4.0, 5.0, 2.0, 9.0, 7.0])
    merged = model.statistics(words[:2], y[:2]).merge(model.statistics(words[2:], y[2:]))
    np.testing.assert_allclose(model.fit_statistics(merged).predict(["four"]), [4.0], atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "cg"}, "must be 'exact' for .*, got 'cg'"),
        ({"alpha": [1.0, 2.0], "scoring": "loo"}, "scoring must be 'gcv'"),
        ({"alpha": -1.0}, "alpha must be a finite"),
        ({"tune": True}, "tune must be False"),
        ({"feature_map": Fastfood(n_components=8200)}, "at most 8192 features, got 8200"),
    ],
)
def test_parameters_that_do_not_go_with_statistics(parameters, message):
    X, y, _ = problem()
    model = KernelRegressor(MAP).fit(X, y)
    statistics = model.statistics(X, y)
    expected = model.predict(X)
    model.set_params(**parameters)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.statistics(X, y)
    if not {"tune", "feature_map"} & set(parameters):
        with pytest.raises(ValueError, match=message):
            model.fit_statistics(statistics)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(model.predict(X), expected)


def test_no_rows_and_interrupts_change_nothing(monkeypatch):
    X, y, _ = problem()
    model = KernelRegressor(MAP).fit(X, y)
    statistics = model.statistics(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="only zeros"):
        model.fit_statistics(model.statistics(X, y, np.zeros(300)))
    real = RidgeStatistics.finalize

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.setattr(RidgeStatistics, "finalize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit_statistics(statistics)
    assert pickle.dumps(model) == before
