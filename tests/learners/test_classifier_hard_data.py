"""Data on which descent could diverge or stall: the defaults get through all of them."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelmill import Fastfood, KernelClassifier, TensorSketch

LOSSES = ["log_loss", "hinge", "squared_hinge", "squared"]


def fitted(loss, X, y, feature_map=None, **parameters):
    feature_map = feature_map or Fastfood(n_components=256)
    parameters = {"solver": "sgd", "random_state": 0, **parameters}
    classifier = KernelClassifier(feature_map, loss=loss, **parameters).fit(X, y)
    assert np.isfinite(classifier.coef_).all()
    assert np.isfinite(classifier.intercept_).all()
    assert np.isfinite(classifier.loss_curve_).all()
    return classifier


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


def test_unscaled_columns(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)) * [1e6, 1e5, 1e6, 3e5, 1e6] + [1e7, 0, -1e6, 0, 5]
    y = ((X - X.mean(axis=0)) / X.std(axis=0))[:, [0, 2]].prod(axis=1) > 0
    assert fitted(loss, X, y).score(X, y) > 0.9


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_features_of_any_size(loss, scale):
    """The polynomial kernel of data of any size: only the penalty, here none, could tell."""
    X, y = make_moons(1500, noise=0.1, random_state=0)
    X = scale * (X - X.mean(axis=0))
    feature_map = TensorSketch(3, coef0=scale**2, n_components=64, random_state=0)
    assert fitted(loss, X, y, feature_map, alpha=0.0).score(X, y) > 0.9


def test_rows_longer_than_those_of_the_sample(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 4))
    X[rng.permutation(len(X))[:5]] *= 1e4
    y = X[:, 0] * X[:, 1] > 0
    feature_map = TensorSketch(2, n_components=64, random_state=0)
    assert fitted(loss, X, y, feature_map, alpha=0.0, epochs=20).score(X, y) > 0.95


def test_constant_rows(loss):
    X = np.ones((200, 3))
    y = np.arange(200) % 4 == 0
    classifier = fitted(loss, X, y)
    assert classifier.score(X, y) == 0.75
    if loss == "log_loss":
        np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], 0.25, atol=0.02)


def test_duplicated_rows(loss):
    X, y = make_moons(20, random_state=0)
    classifier = fitted(loss, np.tile(X, (200, 1)), np.tile(y, 200))
    assert classifier.score(X, y) == 1.0


def test_perfectly_separable_classes(loss):
    X, y = make_blobs(3000, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    assert fitted(loss, X, y, alpha=0.0).score(X, y) == 1.0


def test_one_row_in_a_thousand(loss):
    """Weights of 500 and of 1/2: steps must be neither huge nor tiny."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 2))
    y = np.arange(20000) < 20
    X[y] = rng.normal(size=(20, 2)) * 0.3 + 3
    far = rng.normal(size=(1000, 2)) * 0.3 + 3
    classifier = fitted(loss, X, y, class_weight="balanced", alpha=1e-4)
    assert classifier.predict(far).mean() > 0.97
    assert classifier.predict(X[20:]).mean() < 0.03
    unweighted = fitted(loss, X, y, alpha=1e-4)
    assert unweighted.predict(X[20:]).mean() < 0.003


def test_one_row_with_nearly_all_the_weight(loss):
    X, y = make_moons(500, noise=0.1, random_state=0)
    weight = np.ones(500)
    weight[7] = 1e9
    classifier = KernelClassifier(Fastfood(n_components=64), loss=loss, random_state=0)
    classifier.fit(X, y, weight)
    assert np.isfinite(classifier.coef_).all()
    assert classifier.predict(X[7:8]) == y[7]


@pytest.mark.parametrize("n_rows", [2, 3, 7, 17, 50])
def test_few_rows(loss, n_rows):
    X = np.random.default_rng(1).normal(size=(n_rows, 3))
    y = np.arange(n_rows) % 2
    classifier = fitted(loss, X, y, Fastfood(n_components=512), alpha=1e-6)
    assert classifier.score(X, y) == 1.0


def test_very_many_classes(loss):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(150, 6)) * 5
    y = np.repeat(np.arange(150), 10)
    X = centers[y] + 0.3 * rng.normal(size=(1500, 6))
    classifier = fitted(loss, X, y, Fastfood(n_components=256), epochs=15)
    assert classifier.score(X, y) > 0.97


@pytest.mark.parametrize(
    ("loss", "size"), [*((loss, 40) for loss in LOSSES), ("log_loss", 1), ("squared", 1)]
)
def test_parts_of_few_rows(loss, size):
    """The first part alone does not show the spectrum."""
    X, y = make_moons(1600, noise=0.1, random_state=0)
    classifier = KernelClassifier(
        Fastfood(n_components=128, length_scale=0.5), loss=loss, solver="sgd", random_state=0
    )
    n = 400 if size == 1 else 1600
    for begin in range(0, n, size):
        part = slice(begin, begin + size)
        classifier.partial_fit(X[part], y[part], classes=[0, 1])
    assert np.isfinite(classifier.coef_).all()
    assert classifier.score(X, y) > 0.95
