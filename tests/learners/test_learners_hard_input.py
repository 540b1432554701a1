"""Input that once went wrong silently: buffers used again, mixed weights, odd maps, odd files."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from kernelmill import Fastfood, KernelClassifier, KernelRegressor, TensorSketch, two_sample_test
from kernelmill.errors import ArgumentError

SMALL = Fastfood(n_components=64, length_scale=1.0, random_state=0)

pytestmark = pytest.mark.usefixtures("few_epochs")


def same_buffer(n_blocks, seed=0, classes=False):
    """Blocks in one array that is filled again and again."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((20, 2)), np.empty(20)
    for _ in range(n_blocks):
        X[:] = rng.normal(size=X.shape)
        y[:] = X[:, 0] > 0 if classes else np.sin(X[:, 0])
        yield X, y


def test_blocks_may_be_filled_again():
    X = np.random.default_rng(9).normal(size=(500, 2))
    regressor = KernelRegressor(SMALL, alpha=0.01).fit_blocks(same_buffer(50))
    assert regressor.score(X, np.sin(X[:, 0])) > 0.99
    classifier = KernelClassifier(SMALL, random_state=0)
    classifier.fit_blocks(same_buffer(200, classes=True), classes=[0, 1])
    assert classifier.score(X, X[:, 0] > 0) > 0.9


def test_streams_of_a_test_may_be_filled_again():
    fresh = [[X.copy() for X, _ in same_buffer(30, seed)] for seed in (1, 2)]
    again = [(X for X, _ in same_buffer(30, seed)) for seed in (1, 2)]
    expected = two_sample_test(*map(iter, fresh), n_permutations=99, random_state=0)
    found = two_sample_test(*again, n_permutations=99, random_state=0)
    assert found.p_value == expected.p_value


def test_further_rows_of_another_length_keep_the_intercept():
    X = np.random.default_rng(0).normal(size=(500, 1))
    classifier = KernelClassifier(FunctionTransformer(), random_state=0)
    classifier.fit(X, (X[:, 0] > -1.5).astype(int))
    before = classifier.intercept_[0]
    classifier.partial_fit([[1000.0]], [1])
    assert classifier.intercept_[0] == pytest.approx(before, rel=0.1)


def test_blocks_without_weights_count_as_one():
    rng = np.random.default_rng(0)
    X1, X2 = rng.normal(size=(2, 500, 2))
    y1, y2 = X1[:, 0] > 0, X2[:, 0] < 0
    heavy = np.full(500, 50.0)
    for blocks in ([(X1, y1), (X2, y2, heavy)], [(X1, y1, np.ones(500)), (X2, y2, heavy)]):
        classifier = KernelClassifier(SMALL, random_state=0).fit_blocks(blocks)
        assert classifier.score(X2, y2) > 0.9


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", [0, 4321])
def test_features_that_overflow_are_rejected(row):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    y = X[:, 0] > 0
    X[row] = 1e110
    sketch = TensorSketch(n_components=32, degree=3, random_state=0)
    with pytest.raises(ValueError, match=r"are not finite .* 1e\+110, in column 0"):
        KernelClassifier(sketch, random_state=0, epochs=3).fit(X, y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_that_overflow_are_rejected():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.sin(X[:, 0])
    with pytest.raises(ValueError, match="too large"):
        KernelRegressor(SMALL, solver="cg").fit(X, y * 1e300)
    for learner, targets in ((KernelRegressor(SMALL), y), (KernelClassifier(SMALL), y > 0)):
        with pytest.raises(ValueError, match="sample_weight must have a finite sum"):
            learner.fit(X, targets, np.full(300, 1e308))
    with pytest.raises(ArgumentError, match="sample_weight has a sum of"):
        KernelRegressor(SMALL).fit(X, 100 * y, np.full(300, 1e305))


class OneIterator:
    """Gives the same iterator whenever it is asked."""

    def __init__(self, blocks):
        self.iterator = iter(blocks)

    def __iter__(self):
        return self.iterator


def test_objects_with_one_iterator_are_passed_over_once():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = X[:, 0] > 0
    blocks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 1000, 100)]
    classifier = KernelClassifier(SMALL, loss="squared", alpha=1e-3)
    classifier.fit_blocks(OneIterator(blocks), classes=[False, True])
    whole = KernelClassifier(SMALL, loss="squared", alpha=1e-3).fit(X, y)
    np.testing.assert_allclose(classifier.coef_, whole.coef_, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="classes"):
        KernelClassifier(SMALL).fit_blocks(OneIterator(blocks))


def test_labels_keep_their_type_in_blocks():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.array(["2020-01-01", "2021-01-01"], "M8[ns]")[np.arange(40) % 2]
    classifier = KernelClassifier(SMALL, random_state=0).fit_blocks(
        [(X[:20], y[:20]), (X[20:], y[20:])]
    )
    assert classifier.classes_.dtype == y.dtype


def test_masked_and_dated_targets_are_rejected():
    X = np.ones((4, 2))
    masked = np.ma.masked_array([0, 1, 0, 1], [0, 0, 1, 0])
    for learner in (KernelClassifier(SMALL), KernelRegressor(SMALL)):
        with pytest.raises(TypeError, match="masked"):
            learner.fit(X, masked)
    with pytest.raises(TypeError, match="numbers"):
        KernelRegressor(SMALL).fit(X, np.array(["2020-01-01"] * 4, "M8[D]"))


def test_maps_may_learn_from_targets_or_be_fitted_already():
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = X[:, 3] > 0
    classifier = KernelClassifier(SelectKBest(k=1), random_state=0).fit(X, y)
    assert classifier.score(X, y) > 0.95
    frozen = FrozenEstimator(SMALL.fit(X))
    learner = KernelRegressor(frozen).fit(X, X[:, 3])
    assert learner.feature_map_.estimator is not None
    assert KernelClassifier(frozen, random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    "function",
    [lambda X: X[:, 0], lambda X: X[:, :0], lambda X: X[1:], lambda X: X[None]],
    ids=["1-d", "no columns", "lost rows", "3-d"],
)
def test_maps_that_give_no_matrix_are_rejected(function):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="one row for each"):
        KernelClassifier(FunctionTransformer(function)).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("form", ["coo_array", "dia_array", "bsr_array", "lil_matrix"])
def test_sparse_rows_of_any_form_for_any_map(form, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    rows = getattr(scipy.sparse, form)(X)
    for feature_map in (StandardScaler(with_mean=False), SMALL):
        classifier = KernelClassifier(
            feature_map, checkpoint=tmp_path / "state.npz", random_state=0
        )
        assert classifier.fit(rows, y).score(rows, y) > 0.8


def test_no_rows_to_predict():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for feature_map in (StandardScaler(), SMALL):
        with pytest.raises(ValueError, match=r"at least one row|0 sample"):
            KernelClassifier(feature_map).fit(X, X[:, 0] > 0).predict(X[:0])
