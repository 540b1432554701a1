"""What the solvers of KernelClassifier arrive at, beside the minimum and beside exact kernels."""

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_classification, make_moons
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

from kernelmill import Fastfood, KernelClassifier, RandomFourier
from kernelmill.learners.losses import LOSSES

LENGTH_SCALE = 2.0


def noisy_classes(n_classes, n_rows=1500, dtype=np.float64):
    """Overlapping classes, for which the minimum is finite and far from separating."""
    X, y = make_classification(
        n_rows,
        n_features=8,
        n_informative=6,
        n_redundant=0,
        n_classes=n_classes,
        flip_y=0.15,
        random_state=3,
    )
    return X.astype(dtype), y


def objective(classifier, X, y, sample_weight=None):
    Z = classifier.feature_map_.transform(X).astype(np.float64)
    scores = Z @ classifier.coef_.T.astype(np.float64) + classifier.intercept_
    codes = np.searchsorted(classifier.classes_, y)
    losses, _ = LOSSES[classifier.loss].derivatives(scores, codes)
    mean = np.average(losses, weights=sample_weight)
    return mean + classifier.alpha / 2 * np.sum(classifier.coef_.astype(np.float64) ** 2)


def classifier_of(loss, **parameters):
    feature_map = Fastfood(n_components=256, length_scale=LENGTH_SCALE, random_state=1)
    return KernelClassifier(feature_map, loss=loss, random_state=5, **parameters)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_lbfgs_finds_the_minimum_of_logistic_regression(n_classes):
    X, y = noisy_classes(n_classes)
    alpha = 1e-4
    ours = classifier_of("log_loss", alpha=alpha, solver="lbfgs", tol=1e-9).fit(X, y)
    Z = ours.feature_map_.transform(X)
    theirs = LogisticRegression(C=1 / (alpha * len(X)), tol=1e-9, max_iter=10000).fit(Z, y)
    # Both gradients are below 1e-8 or so; the curvature is at least alpha.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), rtol=0, atol=1e-4)
    assert objective(ours, X, y) <= objective_of(theirs, ours, X, y) * (1 + 1e-9)


def objective_of(theirs, ours, X, y):
    copy = classifier_of(ours.loss, alpha=ours.alpha)
    copy.feature_map_, copy.classes_ = ours.feature_map_, ours.classes_
    copy.coef_, copy.intercept_ = theirs.coef_, theirs.intercept_
    return objective(copy, X, y)


@pytest.mark.representative
def test_exact_is_ridge_on_the_signs():
    X, y = noisy_classes(2)
    alpha = 1e-3
    ours = classifier_of("squared", alpha=alpha).fit(X, y)
    assert ours.solver_ == "exact"
    Z = ours.feature_map_.transform(X)
    theirs = Ridge(alpha * len(X)).fit(Z, 2.0 * y - 1)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_[0], theirs.intercept_, rtol=1e-8)


def test_hinge_comes_close_to_the_minimum_of_svc():
    X, y = noisy_classes(2)
    alpha = 1e-4
    ours = classifier_of("hinge", alpha=alpha, epochs=200).fit(X, y)
    Z = ours.feature_map_.transform(X)
    theirs = SVC(kernel="linear", C=1 / (alpha * len(X)), tol=1e-6).fit(Z, y)
    least = objective_of(theirs, ours, X, y)
    assert least <= objective(ours, X, y) <= 1.01 * least


@pytest.mark.parametrize(
    ("loss", "n_classes", "dtype", "epochs", "allowed"),
    [
        ("log_loss", 4, np.float32, 1500, 2e-4),
        ("squared_hinge", 4, np.float64, 300, 1e-3),
        ("squared", 4, np.float32, 300, 1e-3),
    ],
)
def test_descent_converges_to_what_lbfgs_finds(loss, n_classes, dtype, epochs, allowed):
    X, y = noisy_classes(n_classes, n_rows=1000, dtype=dtype)
    least = objective(classifier_of(loss, alpha=1e-4, solver="lbfgs").fit(X, y), X, y)
    gaps = []
    for some in (4, 40, epochs):
        ours = classifier_of(loss, alpha=1e-4, solver="sgd", epochs=some).fit(X, y)
        assert ours.coef_.dtype == dtype
        gaps.append(objective(ours, X, y) / least - 1)
    assert gaps[2] < gaps[1] < gaps[0]
    assert -1e-6 < gaps[2] < allowed


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "hinge", "squared"])
def test_weights_are_those_of_the_objective(loss):
    """Integers as weights, by every solver: the minimum for repeated rows."""
    X, y = noisy_classes(2, n_rows=800)
    weight = np.random.default_rng(0).integers(0, 4, len(X)) * (1.0 + 3.0 * y)
    solver = "sgd" if loss == "hinge" else "lbfgs"
    most = 250 if loss == "hinge" else 500
    best = classifier_of(loss, alpha=1e-3, solver=solver, epochs=most).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    least = objective(best, X, y, weight)
    for other in {"sgd", solver}:
        ours = classifier_of(loss, alpha=1e-3, solver=other, epochs=200).fit(X, y, weight)
        assert abs(objective(ours, X, y, weight) / least - 1) < 1e-2
    unweighted = classifier_of(loss, alpha=1e-3, solver=solver, epochs=most).fit(X, y)
    assert objective(unweighted, X, y, weight) / least - 1 > 5e-2


@pytest.mark.parametrize(
    ("loss", "data"),
    [
        ("log_loss", "moons"),
        ("squared_hinge", "circles"),
        ("hinge", "moons"),
        ("hinge", "circles"),
        ("squared", "circles"),
    ],
)
def test_is_as_good_as_the_exact_kernel(loss, data):
    make = {"moons": make_moons, "circles": make_circles}[data]
    noise = {"moons": 0.25, "circles": 0.15}[data]
    X, y = make(4000, noise=noise, random_state=0)
    X_train, y_train, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]
    exact = SVC(C=1, gamma=1.0).fit(X_train, y_train).score(X_test, y_test)
    ours = KernelClassifier(
        RandomFourier(n_components=512, gamma=1.0), loss=loss, alpha=1e-3, random_state=0
    )
    # Three standard deviations of the difference of two accuracies on 3000 rows.
    allowed = 3 * np.sqrt(2 * exact * (1 - exact) / len(X_test))
    assert ours.fit(X_train, y_train).score(X_test, y_test) > exact - allowed
    assert LogisticRegression().fit(X_train, y_train).score(X_test, y_test) < exact - allowed


@pytest.mark.parametrize(("learning_rate", "step"), [(None, 0.001), (0.02, 0.02)])
def test_plain_descent_has_the_settings_of_the_paper(learning_rate, step):
    """softmax(W z + b) of cosines and sines z; W and b take the same steps, from zero."""
    X, y = noisy_classes(4, n_rows=500)
    ours = classifier_of("log_loss", alpha=0.0, solver="plain_sgd", learning_rate=learning_rate)
    ours.fit(X, y)
    assert ours.n_iter_ == 20
    stream = ours.stream_
    raw = np.sqrt(128) * ours.feature_map_.transform(X)
    weights = np.zeros((257, 4))
    raw = np.hstack([raw, np.ones((len(raw), 1))])
    for epoch in range(20):
        order = stream.substream("order", epoch, 0).permutation(len(X))
        for begin in range(0, len(X), 10):
            rows = order[begin : begin + 10]
            scores = np.exp(raw[rows] @ weights)
            scores /= scores.sum(axis=1, keepdims=True)
            scores[np.arange(len(rows)), y[rows]] -= 1
            weights -= step * raw[rows].T @ scores / len(rows)
    np.testing.assert_allclose(ours.coef_.T, weights[:-1] * np.sqrt(128), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_, weights[-1], rtol=1e-6, atol=1e-8)
