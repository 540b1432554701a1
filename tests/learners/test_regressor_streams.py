"""Rows in blocks, one after the other, in any order; what interrupts and memory leave."""

import pickle
import signal
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmill import Fastfood
from kernelmill.learners import regressor as module
from kernelmill.learners.regressor import KernelRegressor

MAP = Fastfood(n_components=48, length_scale=1.5, random_state=1)


def problem(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 3))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(n_rows)
    return X, y, rng.uniform(0, 2, n_rows)


def assert_same(a, b, X, bound=1e-9):
    for left, right in zip(
        a.predict(X, return_std=True), b.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(left, right, rtol=0, atol=bound)
    assert a.noise_ == pytest.approx(b.noise_)
    assert a.log_marginal_likelihood() == pytest.approx(b.log_marginal_likelihood())


@pytest.mark.parametrize("step", [1, 7, 300, 1000])
@pytest.mark.parametrize("weighted", [True, False])
def test_blocks_of_any_size_in_any_order(step, weighted):
    X, y, weights = problem()
    order = np.random.default_rng(1).permutation(300)
    whole = KernelRegressor(MAP, alpha=0.1).fit(X, y, weights if weighted else None)

    def blocks():
        for begin in range(0, 300, step):
            rows = order[begin : begin + step]
            yield (X[rows], y[rows], weights[rows]) if weighted else (X[rows], y[rows])

    assert_same(whole, KernelRegressor(MAP, alpha=0.1).fit_blocks(blocks()), X)


def test_partial_fit_goes_on():
    X, y, weights = problem()
    whole = KernelRegressor(MAP, alpha=0.1).fit(X, y, weights)
    parts = KernelRegressor(MAP, alpha=0.1)
    parts.partial_fit(X[:100], y[:100], weights[:100]).partial_fit(X[100:], y[100:], weights[100:])
    assert_same(whole, parts, X)
    after_fit = KernelRegressor(MAP, alpha=0.1).fit(X[:250], y[:250], weights[:250])
    assert_same(whole, after_fit.partial_fit(X[250:], y[250:], weights[250:]), X)
    several = KernelRegressor(MAP, alpha=[1e-3, 0.1, 10.0]).fit(X[:3], y[:3])
    several.partial_fit(X[3:], y[3:])
    assert several.alpha_ == KernelRegressor(MAP, alpha=[1e-3, 0.1, 10.0]).fit(X, y).alpha_


def test_partial_fit_keeps_the_scale_of_the_first_rows():
    X, y, _ = problem()
    model = KernelRegressor(Fastfood(n_components=16, random_state=0)).partial_fit(X, y)
    scale = model.feature_map_.length_scale_
    model.partial_fit(100 * X, y)
    assert model.feature_map_.length_scale_ == scale
    assert model.fit(100 * X, y).feature_map_.length_scale_ == pytest.approx(100 * scale)


def test_mixed_blocks():
    X, y, weights = problem()
    whole = KernelRegressor(MAP, alpha=0.1).fit(X, y, np.r_[weights[:100], np.ones(200)])
    blocks = [
        (X[:100], y[:100], weights[:100]),
        (scipy.sparse.csr_array(X[100:150]), list(y[100:150])),
        [X[150:], y[150:], None],
    ]
    assert_same(whole, KernelRegressor(MAP, alpha=0.1).fit_blocks(blocks), X)


def test_other_transformers():
    X, y, _ = problem()
    sampler = make_pipeline(StandardScaler(), RBFSampler(n_components=64, random_state=0))
    model = KernelRegressor(sampler, alpha=0.1).fit(X, y)
    assert model.score(X, y) > 0.8
    rest = KernelRegressor(sampler, alpha=0.1).partial_fit(X[:200], y[:200])
    assert rest.partial_fit(X[200:], y[200:]).score(X, y) > 0.8


def test_pickles_go_on():
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1).fit(X[:200], y[:200])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert_same(model.partial_fit(X[200:], y[200:]), copy.partial_fit(X[200:], y[200:]), X, 1e-12)


def test_memory_does_not_grow_with_the_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 2)).astype(np.float32)
    feature_map = Fastfood(n_components=256, random_state=0)

    def peak(action):
        tracemalloc.start()
        action()
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    features = 60_000 * 256 * 4
    for solver in ("exact", "cg"):
        model = KernelRegressor(feature_map, solver=solver, alpha=100.0, tol=1e-3)
        assert peak(lambda m=model: m.fit(X, X[:, 0])) < features / 2
        assert peak(lambda m=model: m.predict(X)) < features / 2
    model = KernelRegressor(feature_map, alpha=[1.0, 10.0], scoring="loo")
    assert peak(lambda: model.fit(X, X[:, 0])) < features / 2
    assert peak(lambda: model.predict(X, return_std=True)) < features / 2


@pytest.mark.parametrize("where", ["update", "finalize", "merge"])
def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch, where):
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1).fit(X[:200], y[:200])
    before = pickle.dumps(model)
    real = getattr(module.RidgeStatistics, where)

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.setattr(module.RidgeStatistics, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[200:], y[200:])
    if where != "merge":
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    monkeypatch.undo()
    assert pickle.dumps(model) == before
    whole = KernelRegressor(MAP, alpha=0.1).fit(X, y)
    assert_same(whole, model.partial_fit(X[200:], y[200:]), X)


def good_then(bad):
    X, y, _ = problem()
    return [(X, y), bad]


X_GOOD = np.zeros((4, 3))
Y_GOOD = np.zeros(4)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "at least one block"),
        (iter([]), "at least one block"),
        (3, "iterable"),
        ([(X_GOOD,)], "1 items as block 0"),
        (good_then(X_GOOD), "ndarray as block 1"),
        (good_then((X_GOOD[:, :2], Y_GOOD)), "2 features"),
        (good_then((X_GOOD, Y_GOOD[:3])), "4 rows and 3 entries"),
        (good_then((X_GOOD, np.zeros((4, 2)))), "y must have shape"),
        (good_then((X_GOOD, Y_GOOD, -np.ones(4))), "not negative"),
        (good_then((X_GOOD, np.full(4, np.nan))), "NaN"),
        (good_then((np.full((4, 3), np.nan), Y_GOOD)), "NaN"),
    ],
)
def test_bad_blocks_change_nothing(blocks, message):
    X, y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1).fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit_blocks(blocks)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha must be a finite number that is not negative, got -1.0"),
        ({"alpha": "1"}, "alpha must be"),
        ({"noise": 0.0}, "noise must be a positive"),
        ({"noise": -1.0}, "noise must be a positive"),
        ({"alpha": 1.0, "noise": 1.0}, "only one of alpha and noise"),
        ({"alpha": [1.0, 2.0], "noise": 1.0}, "only one of alpha and noise"),
        ({"solver": "svd"}, "solver must be one of"),
        ({"scoring": "r2"}, "scoring must be one of"),
        ({"tune_budget": 0}, "tune_budget must be at least 1"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"tol": 0.0}, "tol must be a positive"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"feature_map": "slowfood"}, "feature_map must be one of"),
        ({"feature_map": Fastfood}, "feature_map must be a name"),
    ],
)
def test_bad_parameters_change_nothing(parameters, message):
    X, y, _ = problem()
    model = KernelRegressor(MAP).fit(X, y)
    expected = model.predict(X)
    for method in (model.fit, model.partial_fit):
        if "feature_map" in parameters and method == model.partial_fit:
            continue  # the map is there already
        with pytest.raises((ValueError, TypeError), match=message):
            model.set_params(**parameters) and method(X, y)
    model.set_params(feature_map=MAP, n_threads=None)
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (None, None, "requires y"),
        (np.zeros(299), None, "300 rows and 299 entries"),
        (np.zeros((300, 2, 1)), None, "dim"),
        (np.zeros((300, 0)), None, "y must be|feature"),
        (np.zeros(300, complex), None, "Complex"),
        (np.full(300, np.inf), None, "infinity"),
        (np.full(300, 1e200), None, "1e\\+140"),
        (["a"] * 300, None, "convert"),
        (np.zeros(300), np.zeros(300), "only zeros"),
        (np.zeros(300), np.ones(2), "shape"),
        (np.zeros(300), np.full(300, np.nan), "nan"),
        (np.zeros(300), -1.0, "negative"),
    ],
)
def test_bad_targets_and_weights(y, weights, message):
    X, good, _ = problem()
    model = KernelRegressor(MAP).fit(X, good)
    before = pickle.dumps(model)
    for method in (model.fit, model.partial_fit):
        if message == "only zeros" and method == model.partial_fit:
            continue  # there are other rows with a weight
        with pytest.raises((ValueError, TypeError), match=message):
            method(X, y, weights)
        assert pickle.dumps(model) == before


def test_features_that_are_not_finite():
    class Overflow(StandardScaler):
        def transform(self, X, copy=None):
            return np.where(X > 1.9, np.inf, X)

    X, y, _ = problem()
    for solver in ("exact", "cg"):
        with pytest.raises(ValueError, match="finite"):
            KernelRegressor(Overflow(), solver=solver).fit(X, y)
