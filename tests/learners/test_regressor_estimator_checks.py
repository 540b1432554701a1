"""scikit-learn's checks of KernelRegressor, and its model selection around it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmill import Fastfood
from kernelmill.learners.regressor import KernelRegressor

# Length scales are given: one that is taken from the data counts rows of weight zero too.
REGRESSORS = [
    KernelRegressor(Fastfood(n_components=64, length_scale=4.0)),
    KernelRegressor(Fastfood(n_components=64, length_scale=4.0), alpha=0.1, fit_intercept=False),
    KernelRegressor(Fastfood(n_components=64, length_scale=4.0), solver="cg", tol=1e-12),
]

FURTHER = [
    "check_dataframe_column_names_consistency",
    "check_dict_unchanged",
    "check_estimators_partial_fit_n_features",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_regressor_data_not_an_array",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_sample_weights_invariance",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
]


@parametrize_with_checks(REGRESSORS[::2])  # one for each solver
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("name", [n for n in FURTHER if hasattr(estimator_checks, n)])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=["exact", "no intercept", "cg"])
def test_further_check(estimator, name):
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))


def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(120)


def test_grid_search():
    X, y = problem()
    search = GridSearchCV(
        KernelRegressor(Fastfood(n_components=128, random_state=0)),
        {"feature_map__length_scale": [0.01, 1.0, 100.0], "alpha": [0.01, 1e4]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"alpha": 0.01, "feature_map__length_scale": 1.0}
    assert search.best_score_ > 0.8


def test_pipelines_scores_and_copies():
    X, y = problem()
    model = make_pipeline(
        StandardScaler(), KernelRegressor("random_fourier", alpha=0.01, random_state=0)
    )
    assert cross_val_score(model, X, y, cv=3).mean() > 0.5
    model = KernelRegressor(Fastfood(n_components=32), random_state=0).fit(X, y)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_threads_change_nothing_beyond_rounding():
    X, y = problem()
    feature_map = Fastfood(n_components=32, random_state=0)
    one = KernelRegressor(feature_map, n_threads=1).fit(X, y)
    two = KernelRegressor(feature_map, n_threads=2).fit(X, y)
    assert one.feature_map_.n_threads == 1
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=0, atol=1e-10)
