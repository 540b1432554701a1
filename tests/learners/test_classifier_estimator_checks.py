"""scikit-learn's checks of classifiers, those of check_estimator and those it leaves out."""

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmill import Fastfood, KernelClassifier, RandomFourier, TensorSketch

# A length scale taken from the data does not know of weights.
FIXED = Fastfood(n_components=64, length_scale=2.0)

# One for each solver, which has the code that differs.
CLASSIFIERS = [
    KernelClassifier(RandomFourier(n_components=64), loss="hinge", epochs=40),
    KernelClassifier(FIXED, solver="lbfgs", alpha=1e-2, tol=1e-7),
    KernelClassifier(TensorSketch(n_components=64, coef0=1.0), loss="squared", alpha=1e-3),
]

FURTHER = [
    "check_classifier_data_not_an_array",
    "check_dataframe_column_names_consistency",
    "check_estimators_partial_fit_n_features",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
]

SAMPLED = (
    "rows are drawn in proportion to their weights, so a weight of 2 is two rows on average only"
)

ROUNDED = (
    "values of the objective end the search when gradients are 1e-8, so scores agree to that only"
)


def expected_failures(classifier):
    if classifier.loss == "squared":
        return {}
    reason = ROUNDED if classifier.solver == "lbfgs" else SAMPLED
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(CLASSIFIERS, expected_failed_checks=expected_failures)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("name", [n for n in FURTHER if hasattr(estimator_checks, n)])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
def test_further_check(estimator, name):
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))
