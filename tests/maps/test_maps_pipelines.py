"""Maps in scikit-learn pipelines, searches and unions."""

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import Gaussian, Matern


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0)


@pytest.mark.parametrize("make", [RandomFourier, Fastfood])
def test_beats_the_linear_model(make, digits):
    train, test, y_train, y_test = digits
    linear = make_pipeline(StandardScaler(), RidgeClassifier()).fit(train, y_train)
    features = make(n_components=300, random_state=0)
    kernel = make_pipeline(StandardScaler(), features, RidgeClassifier(0.1)).fit(train, y_train)
    assert kernel.score(test, y_test) > linear.score(test, y_test) + 0.01


def test_logistic_regression(digits):
    train, test, y_train, y_test = digits
    features = Fastfood(n_components=600, random_state=0)
    model = make_pipeline(StandardScaler(), features, LogisticRegression(C=100, max_iter=500))
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    score = model.fit(train, y_train).score(test, y_test)
    assert score > linear.fit(train, y_train).score(test, y_test)


# Python 3.12 and newer warn about any fork with threads about.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_grid_search_in_processes(digits):
    """In forks, which are quick to start; `test_maps_state.py` loads maps in new processes."""
    train, test, y_train, y_test = digits
    model = make_pipeline(
        StandardScaler(), Fastfood(n_components=200, random_state=0), RidgeClassifier(0.1)
    )
    grid = {
        "fastfood__length_scale": [1e-3, 8.0, "median"],
        "fastfood__kernel": [Gaussian(), Matern(2.5)],
    }
    with joblib.parallel_config("multiprocessing"):
        searches = [GridSearchCV(model, grid, cv=2, n_jobs=n).fit(train, y_train) for n in (1, 2)]
    scores = [s.cv_results_["mean_test_score"] for s in searches]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert searches[1].best_params_["fastfood__length_scale"] != 1e-3
    assert searches[1].score(test, y_test) > 0.9


def test_cross_validation_without_a_seed(digits):
    train, _, y_train, _ = digits
    model = make_pipeline(StandardScaler(), RandomFourier(), RidgeClassifier())
    assert (cross_val_score(model, train, y_train, cv=2) > 0.7).all()


def test_union(points):
    X = points(20, 5)
    union = FeatureUnion(
        [
            ("wide", Fastfood(length_scale=10.0, n_components=7, random_state=0)),
            ("narrow", RandomFourier("laplacian", n_components=9, random_state=0)),
        ]
    )
    assert union.fit_transform(X).shape == (20, 16)
    names = union.get_feature_names_out()
    assert names[0] == "wide__fastfood0"
    assert names[-1] == "narrow__randomfourier8"


@pytest.mark.parametrize("make", [RBFSampler, RandomFourier, Fastfood])
def test_takes_the_place_of_rbf_sampler(make):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 8))
    Z = make(gamma=0.2, n_components=500, random_state=1).fit_transform(X)
    assert Z.shape == (50, 500)
    # An entry of Z Z^T is a mean of terms of variance <= 1/2 and with 500 columns has a standard
    # deviation <= 0.045 (one cosine each) or 0.045 (pairs); the root of the mean square is less.
    error = Z @ Z.T - rbf_kernel(X, gamma=0.2)
    assert np.sqrt((error**2).mean()) < 0.06
