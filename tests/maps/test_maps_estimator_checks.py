"""scikit-learn's estimator checks: those of check_estimator and some that it leaves out."""

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelmill import (
    CountSketch,
    DotProductFastfood,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.kernels import ArcCosine, Matern, Polynomial
from kernelmill.maps import registry

# One or two maps of each class, with different kinds of output and with scales from the data: the
# checks exercise the code of the base classes, and the contract tests cover every parameter.
MAPS = [
    RandomFourier(sampling="qmc", features="cos_phase", store_matrix=False),
    Fastfood(features="complex"),
    Fastfood(Matern(2.5), length_scale="median", n_components=7),
    CountSketch(hashing="independent", n_components=3),
    TensorSketch(3, gamma="scale", coef0=1.0, n_components=17),
    TaylorSketch(),
    RandomMaclaurin(Polynomial(3, coef0=1.0), degrees="geometric", store_matrix=False),
    GaussianTemplates(),
    Nystroem("exponential", n_components=7),
    DotProductFastfood(ArcCosine(1), max_degree=8, blocks="independent", n_components=7),
]

MAPS += [each() for each in registry.MAPS.values() if each not in {type(one) for one in MAPS}]

FURTHER = [
    "check_dataframe_column_names_consistency",
    "check_estimators_partial_fit_n_features",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_transformer_preserve_dtypes",
]


@parametrize_with_checks(MAPS)
def test_check_estimator(estimator, check):
    check(estimator)


# Some versions of scikit-learn lack some of these. Four of them fit a data frame and transform an
# array, or the other way around; scikit-learn warns about both.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("name", [n for n in FURTHER if hasattr(estimator_checks, n)])
@pytest.mark.parametrize("estimator", MAPS, ids=repr)
def test_further_check(estimator, name):
    if getattr(estimator, "features", None) == "complex" and "polars" in name:
        pytest.skip("polars has no complex numbers and cannot compare columns of objects")
    getattr(estimator_checks, name)(type(estimator).__name__, clone(estimator))
