"""scikit-learn's own checks of KernelRegressor, and its model selection around it."""

import pytest
from sklearn.base import clone
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


@parametrize_with_checks(REGRESSORS)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("name", [n for n in FURTHER if hasattr(estimator_checks, n)])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=["exact", "no intercept", "cg"])
def test_further_check(estimator, name):
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))
