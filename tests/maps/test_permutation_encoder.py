"""Permutations as vectors: inner products, inverse transforms and errors."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

import kernelmill
from kernelmill import PermutationEncoder

ENCODERS = [
    PermutationEncoder(),
    PermutationEncoder(sparse_output=False),
    PermutationEncoder("pairs"),
    PermutationEncoder("pairs", normalize=False, dtype="float32", first=1),
    PermutationEncoder(normalize=False, dtype=np.float32, first=1),
    PermutationEncoder(sparse_output=False, dtype=np.float32, first=5),
]


@pytest.fixture(params=ENCODERS, ids=repr)
def encoder(request):
    return clone(request.param)


def orders(n_rows, n, first=0, seed=0):
    """Independent uniform permutations, one a row."""
    rng = np.random.default_rng([seed, n_rows, n])
    return np.argsort(rng.random((n_rows, n)), axis=1) + first


def gram(encoder, X, Y=None):
    """Inner products of encoded rows, as a dense float64 array."""
    encoder = clone(encoder).fit(X)
    product = encoder.transform(X) @ encoder.transform(X if Y is None else Y).T
    return np.asarray(product.toarray() if scipy.sparse.issparse(product) else product, np.float64)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_matrix_counts_places_of_agreement(n):
    X, Y = orders(20, n), orders(15, n, seed=1)
    agree = (X[:, np.newaxis] == Y).sum(axis=2)
    assert n == 1 or 0 < agree.sum() < agree.size * n  # neither always nor never
    np.testing.assert_array_equal(gram(PermutationEncoder(normalize=False), X, Y), agree)
    np.testing.assert_allclose(gram(PermutationEncoder(), X, Y), agree / n, rtol=1e-14)
    dense = PermutationEncoder(sparse_output=False)
    np.testing.assert_allclose(gram(dense, X, Y), agree / n, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("n", [2, 3, 12])
def test_pairs_give_kendalls_tau(n):
    X = orders(12, n)
    places = np.argsort(X, axis=1)
    tau = np.array([[kendalltau(a, b).statistic for b in places] for a in places])
    np.testing.assert_allclose(gram(PermutationEncoder("pairs"), X), tau, atol=1e-14)
    counts = gram(PermutationEncoder("pairs", normalize=False), X)
    np.testing.assert_allclose(counts, tau * (n * (n - 1) / 2), atol=1e-12)


def test_kernels_do_not_depend_on_the_numbers_of_the_items(encoder):
    X = orders(9, 8)
    other_number = orders(1, 8, seed=2)[0]
    renamed = other_number[X]
    before = gram(encoder, X + encoder.first)
    np.testing.assert_allclose(gram(encoder, renamed + encoder.first), before, atol=1e-6)
    # This is not trivial: renaming the items of one side changes the kernel.
    one_side = gram(encoder, X + encoder.first, renamed + encoder.first)
    assert np.abs(one_side - before).max() > 0.1


def test_only_matrix_forgets_the_order_of_places():
    X, shuffle = orders(9, 8), orders(1, 8, seed=3)[0]
    for encoding, invariant in (("matrix", True), ("pairs", False)):
        before, after = (gram(PermutationEncoder(encoding), x) for x in (X, X[:, shuffle]))
        assert np.allclose(before, after) == invariant


def test_rows_have_the_documented_length(encoder):
    X = orders(5, 6, encoder.first)
    length = 1 if encoder.normalize else {"matrix": 6, "pairs": 15}[encoder.encoding]
    np.testing.assert_allclose(np.diag(gram(encoder, X)), length, rtol=1e-6)


def test_shape_dtype_and_format(encoder):
    X = orders(5, 6, encoder.first)
    Z = encoder.fit_transform(X)
    assert Z.shape == (5, {"matrix": 36, "pairs": 15}[encoder.encoding])
    assert Z.dtype == encoder.dtype
    assert encoder.n_items_ == encoder.n_features_in_ == 6
    if encoder.encoding == "matrix" and encoder.sparse_output:
        assert isinstance(Z, scipy.sparse.csr_array)
        assert Z.nnz == X.size
        assert Z.has_canonical_format
        assert Z.indices.dtype == Z.indptr.dtype == np.int32
        Z.check_format(full_check=True)
    else:
        assert isinstance(Z, np.ndarray)


def test_sparse_and_dense_are_the_same():
    X = orders(7, 9)
    dense = PermutationEncoder(sparse_output=False).fit_transform(X)
    np.testing.assert_array_equal(PermutationEncoder().fit_transform(X).toarray(), dense)


def test_columns_are_what_their_names_say(encoder):
    first = encoder.first
    X = orders(6, 5, first)
    Z = encoder.fit_transform(X)
    Z = Z.toarray() if scipy.sparse.issparse(Z) else Z
    names = encoder.get_feature_names_out()
    assert len(set(names)) == len(names) == Z.shape[1]
    for row, encoded in zip(X.tolist(), Z, strict=True):
        positive = set(names[encoded > 0])
        if encoder.encoding == "matrix":
            assert positive == {f"item{x}_at_place{j}" for j, x in enumerate(row, first)}
        else:
            assert positive == {
                f"item{a}_before_item{b}" for i, a in enumerate(row) for b in row[i + 1 :] if a < b
            }


def test_places_with_names():
    X = pd.DataFrame(orders(4, 3), columns=["gold", "silver", "bronze"])
    encoder = PermutationEncoder(sparse_output=False).set_output(transform="pandas")
    Z = encoder.fit_transform(X)
    assert list(Z.columns[:4]) == [
        "item0_at_gold",
        "item1_at_gold",
        "item2_at_gold",
        "item0_at_silver",
    ]
    assert (Z["item1_at_gold"] > 0).tolist() == (X["gold"] == 1).tolist()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a", "b", "c"])
    plain = PermutationEncoder().fit(X.to_numpy())
    assert plain.get_feature_names_out(["a", "b", "c"])[-1] == "item2_at_c"
    with pytest.raises(ValueError, match=r"number of features \(3\), got 2"):
        plain.get_feature_names_out(["a", "b"])


def test_there_and_back(encoder):
    X = orders(40, 9, encoder.first)
    Z = encoder.fit_transform(X)
    np.testing.assert_array_equal(encoder.inverse_transform(Z), X)
    np.testing.assert_array_equal(encoder.inverse_transform(Z * (1 + 1e-4)), X)
    if scipy.sparse.issparse(Z):
        np.testing.assert_array_equal(encoder.inverse_transform(Z.toarray()), X)
        np.testing.assert_array_equal(encoder.inverse_transform(scipy.sparse.csc_matrix(Z)), X)


def test_there_and_back_in_several_blocks():
    X = orders(30, 300)  # of 90000 columns each
    encoder = PermutationEncoder().fit(X)
    Z = encoder.transform(X)
    np.testing.assert_array_equal(encoder.inverse_transform(Z), X)
    Z = Z.copy()
    Z.data[29 * 300] = 0
    with pytest.raises(ValueError, match="row 29 is not an encoded permutation"):
        encoder.inverse_transform(Z)


def test_no_way_back_from_what_is_no_encoding():
    X = orders(4, 3)
    matrix = PermutationEncoder(normalize=False, sparse_output=False).fit(X)
    pairs = PermutationEncoder("pairs", normalize=False).fit(X)
    good = matrix.transform(X)
    twice = np.array([[1.0, 0, 0, 1, 0, 0, 0, 0, 1]])  # item 0 at two places
    for wrong in (twice, good[:1] * 2, good[:1] + 0.1):
        with pytest.raises(
            ValueError, match=r"row 4 is not an encoded .*; pass rows that transform"
        ):
            matrix.inverse_transform(np.vstack([good, wrong]))
    circle = [[1.0, -1.0, 1.0]]  # 0 before 1, 1 before 2, 2 before 0
    with pytest.raises(ValueError, match="row 0 is not an encoded permutation"):
        pairs.inverse_transform(circle)
    with pytest.raises(ValueError, match="must have the 9 columns that transform returns, got 3"):
        matrix.inverse_transform(circle)
    with pytest.raises(ValueError, match="NaN"):
        matrix.inverse_transform(np.full((1, 9), np.nan))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8", ">i2", "f2", "f4", ">f8", "O"])
def test_numbers_of_any_kind(encoder, dtype):
    X = orders(6, 5, encoder.first)
    expected, actual = (clone(encoder).fit_transform(x) for x in (X, X.astype(dtype)))
    assert actual.dtype == expected.dtype
    assert abs(actual - expected).max() == 0


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]])
def test_layout_and_neighbours_do_not_matter(encoder, layout):
    X = orders(8, 5, encoder.first)
    Z = encoder.fit_transform(X)
    assert abs(encoder.transform(layout(X)) - Z).max() == 0
    for i in range(len(X)):
        assert abs(encoder.transform(X[i : i + 1]) - Z[i : i + 1]).max() == 0


def test_input_is_left_alone(encoder):
    X = orders(8, 5, encoder.first)
    before = X.copy()
    encoder.fit(X).transform(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            [0.0, np.nan, 2.0],
            "integers from 0 to 2 in each row, but row 1 has NaN at column 1",
        ),
        ([0.0, np.inf, 2.0], "row 1 has infinity at column 1"),
        ([0.0, 1.5, 2.0], r"row 1 has 1\.5 at column 1, which is not an integer"),
        ([0, 1, -1], r"row 1 has -1.* at column 2, which is out of range"),
        ([0, 7, 1], r"row 1 has 7.* at column 1, which is out of range"),
        ([0, 1e300, 1], "row 1 has 1e.300 at column 1, which is out of range"),
        ([1, 0, 1], "row 1 has 1 twice, at columns 0 and 2; drop or correct"),
        ([3, 1, 2], r"row 1 has 3.* at column 0.*; count items from 1 \(first=1\)"),
    ],
)
def test_rows_that_are_no_permutations(encoder, row, message):
    encoder.set_params(first=0)
    X = np.array([[2, 1, 0], row, [0, 0, 0]])
    with pytest.raises(ValueError, match=message):
        encoder.fit(X)
    assert not hasattr(encoder, "n_features_in_")
    encoder.fit(X[:1])
    with pytest.raises(ValueError, match=message):
        encoder.transform(X)


def test_unsigned_numbers_below_the_first():
    X = np.array([[1, 2], [0, 1]], np.uint8)
    with pytest.raises(ValueError, match=r"row 1 has 0 at column 0.*; count items from 0"):
        PermutationEncoder(first=1).fit(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, "Expected 2D array"),
        (np.zeros((0, 3)), ValueError, "0 sample"),
        (scipy.sparse.csr_array([[0, 1]]), TypeError, "[Ss]parse"),
        (np.ma.masked_array([[0, 1]]), TypeError, "X is a masked array"),
        ([["a", "b"]], ValueError, "could not convert|dtype='numeric'"),
    ],
)
def test_data_that_are_none(X, error, message):
    with pytest.raises(error, match=message):
        PermutationEncoder().fit(X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"encoding": "ranks"}, ValueError, "encoding must be one of 'matrix', 'pairs', got 'ra"),
        ({"first": -1}, ValueError, "first must be between 0 and"),
        ({"first": 0.5}, TypeError, "first must be an integer"),
        ({"dtype": int}, TypeError, "dtype must be float64 or float32"),
        ({"normalize": "yes"}, TypeError, "normalize must be True or False, got 'yes'"),
        ({"sparse_output": 1}, TypeError, "sparse_output must be True or False, got 1"),
    ],
)
def test_parameters_that_are_none(parameters, error, message):
    encoder = PermutationEncoder().fit([[1, 0]])
    state = dict(vars(encoder.set_params(**parameters)))
    with pytest.raises(error, match=message):
        encoder.fit([[0, 2, 1]])
    assert vars(encoder) == state


def test_pairs_need_two_items():
    with pytest.raises(ValueError, match=r"at least 2 columns to encode pairs.*n_features = 1"):
        PermutationEncoder("pairs").fit([[0]])
    assert PermutationEncoder().fit_transform([[0]]).toarray() == 1


def test_first_comes_fit(encoder):
    for use in (encoder.transform, encoder.inverse_transform):
        with pytest.raises(NotFittedError):
            use([[0, 1]])
    with pytest.raises(NotFittedError):
        encoder.get_feature_names_out()
    with pytest.raises(ValueError, match="X has 3 features, but PermutationEncoder is expecting 2"):
        encoder.fit([[encoder.first, encoder.first + 1]]).transform([[0, 1, 2]])


def test_works_in_pipelines_and_pickles(encoder):
    X = orders(200, 6, encoder.first)
    y = np.argmin(X, axis=1)  # where the first item stands: linear in both encodings
    model = pickle.loads(pickle.dumps(make_pipeline(encoder, Ridge(1e-6)).fit(X, y)))
    new = orders(50, 6, encoder.first, seed=4)
    assert model.score(new, np.argmin(new, axis=1)) > 0.999


# Most of scikit-learn's checks use arbitrary numbers, which are not permutations. They
# must fail for this reason and no other; and all must pass on the order of such numbers.

NOT_PERMUTATIONS = {
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
}

FURTHER = [
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]


@parametrize_with_checks([PermutationEncoder(), PermutationEncoder("pairs")])
def test_check_permutation_encoder(estimator, check):
    function = check
    while isinstance(function, partial):
        function = function.func
    if function.__name__ not in NOT_PERMUTATIONS:
        check(estimator)
        return
    with pytest.raises((ValueError, AssertionError)) as error:
        check(estimator)
    assert "must contain a permutation" in f"{error.value} {error.value.__cause__}"


class OrderEncoder(PermutationEncoder):
    """Encodes the order of the numbers in a row, whatever they are."""

    def _check_numbers(self, X, *, reset):
        numbers = validate_data(self, X, dtype="numeric", reset=reset)
        return np.argsort(numbers, axis=1, kind="stable") + self.first


@parametrize_with_checks([OrderEncoder(**encoder.get_params()) for encoder in ENCODERS[::2]])
def test_check_order_encoder(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.filterwarnings("ignore:X has feature names, but:UserWarning")
@pytest.mark.parametrize("name", [n for n in FURTHER if hasattr(estimator_checks, n)])
@pytest.mark.parametrize("encoding", ["matrix", "pairs"])
def test_further_check_of_order_encoder(encoding, name):
    encoder = OrderEncoder(encoding, sparse_output=False)
    getattr(estimator_checks, name)("OrderEncoder", encoder)


def test_is_exported():
    assert "PermutationEncoder" in kernelmill.__all__
    assert kernelmill.maps.PermutationEncoder is PermutationEncoder


def test_inverse_of_long_permutations_stays_sparse():
    """Made dense, the rows would have 4 million entries each."""
    rng = np.random.default_rng(0)
    permutations = np.array([rng.permutation(2000) for _ in range(200)])
    encoder = PermutationEncoder().fit(permutations)
    encoded = encoder.transform(permutations)
    np.testing.assert_array_equal(encoder.inverse_transform(encoded), permutations)
    encoded.data[5] = 7.0
    with pytest.raises(
        ValueError,
        match="encoded permutations, but row 0 is not an encoded",
    ):
        encoder.inverse_transform(encoded[:1])
