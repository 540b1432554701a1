"""What KernelClassifier takes and gives: data, labels, weights, blocks, copies, errors."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from kernelmill import Fastfood, KernelClassifier, RandomFourier

SOLVERS = [
    {"loss": "log_loss"},
    {"loss": "hinge"},
    {"loss": "squared_hinge"},
    {"loss": "squared"},
    {"loss": "log_loss", "solver": "lbfgs", "alpha": 1e-4, "epochs": 60},
    {"loss": "squared", "solver": "sgd"},
]
# For what all losses of a solver share.
ONE_PER_SOLVER = [{"loss": "log_loss"}, {"loss": "squared"}, SOLVERS[4]]
STREAMABLE = [parameters for parameters in SOLVERS if parameters.get("solver") != "lbfgs"]


def small(**parameters):
    feature_map = Fastfood(n_components=128, length_scale=0.7)
    return KernelClassifier(feature_map, **{"random_state": 0, "epochs": 30, **parameters})


@pytest.fixture(scope="module")
def moons():
    return make_moons(800, noise=0.15, random_state=0)


class Blocks:
    """Blocks that can be passed over again."""

    def __init__(self, *arrays, size):
        self.arrays, self.size, self.passes = arrays, size, 0

    def __iter__(self):
        self.passes += 1
        for begin in range(0, len(self.arrays[0]), self.size):
            yield tuple(array[begin : begin + self.size] for array in self.arrays)


@pytest.mark.parametrize("parameters", ONE_PER_SOLVER, ids=str)
@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], [False, True], ["no", "yes"], [3.0, 7.0]], ids=str
)
def test_labels_of_any_kind(parameters, labels, moons):
    X, y = moons
    y = np.array(labels)[y]
    classifier = small(**parameters).fit(X, y)
    assert classifier.score(X, y) > 0.95
    assert classifier.classes_.tolist() == labels
    assert classifier.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(
        classifier.predict(X), np.array(labels)[(classifier.decision_function(X) > 0).astype(int)]
    )


def test_labels_in_objects(moons):
    X, y = moons
    y = np.array(["one", "two"], dtype=object)[y]
    assert small().fit(X, y).score(X, y) > 0.95
    assert small().fit(X, pd.Series(y)).score(X, y) > 0.95


def test_probabilities(moons):
    X, y = moons
    classifier = small(alpha=1e-4).fit(X, y)
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(probabilities), classifier.predict_log_proba(X), atol=1e-12)
    assert log_loss(y, probabilities) < 0.15
    X, y = load_iris(return_X_y=True)
    classifier = small(alpha=1e-4).fit(X, y)
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(probabilities), classifier.predict_log_proba(X), atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), probabilities.argmax(axis=1))
    assert log_loss(y, probabilities) < 0.2


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared"])
def test_only_log_loss_has_probabilities(loss, moons):
    X, y = moons
    classifier = small(loss=loss)
    assert not hasattr(classifier, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        classifier.fit(X, y).predict_proba(X)
    calibrated = CalibratedClassifierCV(classifier, cv=3).fit(X, y)
    assert log_loss(y, calibrated.predict_proba(X)) < 0.15


@pytest.mark.representative
@pytest.mark.parametrize("parameters", SOLVERS, ids=str)
def test_the_same_seed_gives_the_same_model(parameters, moons):
    X, y = moons
    first, second = (small(**parameters).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    other = small(**{**parameters, "random_state": 1}).fit(X, y)
    assert not np.array_equal(first.coef_, other.coef_)
    assert first.feature_map_.random_state != other.feature_map_.random_state


@pytest.mark.parametrize("parameters", ONE_PER_SOLVER, ids=str)
def test_all_forms_of_the_data_give_the_same_model(parameters, moons):
    X, y = moons
    expected = small(**parameters).fit(X, y).decision_function(X)
    forms = [
        scipy.sparse.csr_array(X),
        scipy.sparse.csc_matrix(X),
        np.asfortranarray(X),
        X.tolist(),
        pd.DataFrame(X, columns=["a", "b"]),
    ]
    for form in forms:
        scores = small(**parameters).fit(form, y).decision_function(form)
        # Sparse rows are summed in another order; descent amplifies that a little.
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


def test_integers_are_not_converted_all_at_once():
    X = np.random.default_rng(0).integers(0, 255, size=(20000, 500), dtype=np.uint8)
    y = X[:, 0] > 128
    classifier = KernelClassifier(
        Fastfood(n_components=32, length_scale=500.0), epochs=1, random_state=0
    )
    classifier.fit(X[:1000], y[:1000])
    # As float64 they would take 80 MB.
    assert peak_memory(lambda: classifier.predict(X)) < 40e6
    expected = classifier.decision_function(X[:500].astype(np.float64))
    np.testing.assert_array_equal(classifier.decision_function(X[:500]), expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("parameters", ONE_PER_SOLVER, ids=str)
def test_features_are_never_stored(parameters):
    """Memory stays well below that of the n x D features, which would take 123 MB."""
    n_rows, n_features = 60000, 512
    X = np.random.default_rng(0).normal(size=(n_rows, 3)).astype(np.float32)
    y = (X**2).sum(axis=1) > 2
    all_features = n_rows * n_features * 4
    classifier = KernelClassifier(
        Fastfood(n_components=n_features), random_state=0, **{**parameters, "epochs": 1}
    )
    assert peak_memory(lambda: classifier.fit(X, y)) < 0.5 * all_features
    assert peak_memory(lambda: classifier.predict(X)) < 0.1 * all_features
    if parameters["loss"] == "log_loss":
        assert peak_memory(lambda: classifier.predict_proba(X)) < 0.1 * all_features
    if parameters.get("solver") != "lbfgs":
        assert peak_memory(lambda: classifier.partial_fit(X, y)) < 0.5 * all_features


def peak_memory(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_do_not_depend_on_the_batch(dtype, moons):
    X, y = moons
    X = X.astype(dtype)
    classifier = small(epochs=5).fit(X, y)
    scores = classifier.decision_function(X)
    assert scores.dtype == dtype
    # The features are the same bits; BLAS may add them up in another order.
    bound = 200 * np.finfo(dtype).eps * np.abs(classifier.coef_).sum() * np.sqrt(2 / 128)
    one_by_one = np.concatenate([classifier.decision_function(x[None]) for x in X[:50]])
    np.testing.assert_allclose(one_by_one, scores[:50], rtol=0, atol=bound)


class TestBlocks:
    @pytest.mark.parametrize(
        ("parameters", "size"),
        [*((each, 50) for each in SOLVERS), *((SOLVERS[0], size) for size in (300, 800))],
        ids=str,
    )
    def test_learns_from_a_list(self, parameters, size, moons):
        X, y = moons
        blocks = Blocks(X, y, size=size)
        classifier = small(**parameters).fit_blocks(blocks)
        assert classifier.score(X, y) > 0.95
        assert classifier.classes_.tolist() == [0, 1]
        if classifier.solver_ == "sgd":
            # One pass for the labels, which the look at the first block begins, and 30 epochs.
            assert blocks.passes == 31

    @pytest.mark.parametrize("parameters", STREAMABLE, ids=str)
    def test_learns_from_a_generator(self, parameters):
        X, y = make_moons(12000, noise=0.15, random_state=0)
        blocks = ((X[i : i + 500], y[i : i + 500]) for i in range(0, 12000, 500))
        classifier = small(**parameters, epochs=None).fit_blocks(blocks, classes=[0, 1])
        assert classifier.score(X, y) > 0.95
        assert classifier.n_iter_ == 1
        with pytest.raises(ValueError, match="epochs=2"):
            small(epochs=2).fit_blocks(iter([(X, y)]), classes=[0, 1])

    @pytest.mark.parametrize("parameters", STREAMABLE, ids=str)
    def test_partial_fit_goes_on(self, parameters):
        X, y = make_moons(12000, noise=0.15, random_state=0)
        classifier = small(**parameters)
        for begin in range(0, 12000, 500):
            part = slice(begin, begin + 500)
            classifier.partial_fit(X[part], y[part], classes=[0, 1])
        assert classifier.score(X, y) > 0.95

    def test_partial_fit_of_least_squares_is_exact(self, moons):
        X, y = moons
        whole = small(loss="squared", alpha=1e-3).fit(X, y)
        parts = small(loss="squared", alpha=1e-3)
        for part in np.array_split(np.random.default_rng(0).permutation(800), 7):
            parts.partial_fit(X[part], y[part], classes=[0, 1])
        blocks = small(loss="squared", alpha=1e-3).fit_blocks(Blocks(X, y, size=33))
        for other in (parts, blocks):
            np.testing.assert_allclose(other.coef_, whole.coef_, rtol=1e-7, atol=1e-9)

    def test_partial_fit_after_fit_keeps_what_was_learnt(self, moons):
        X, y = moons
        classifier = small().fit(X, y)
        before = classifier.score(X, y)
        classifier.partial_fit(X[:50], y[:50])
        assert classifier.score(X, y) > before - 0.02
        assert len(classifier.loss_curve_) == 31

    def test_weights_of_blocks(self, moons):
        X, y = moons
        weight = np.where(X[:, 0] > 0.5, 0.0, 1.0)
        wrong = np.where(weight == 0, 1 - y, y)
        for classifier in (
            small().fit_blocks(Blocks(X, wrong, weight, size=100)),
            small().fit(X, wrong, weight),
        ):
            assert classifier.score(X[weight > 0], y[weight > 0]) > 0.95

    def test_balanced_classes_in_blocks(self):
        X, y = make_moons(2000, noise=0.15, random_state=0)
        kept = np.flatnonzero((y == 0) | (np.arange(2000) % 40 == 1))
        X, y = X[kept], y[kept]
        scores = {
            name: small(class_weight="balanced", alpha=1e-4).fit_blocks(Blocks(X, y, size=150))
            if name == "blocks"
            else small(class_weight="balanced", alpha=1e-4).fit(X, y)
            for name in ("blocks", "whole")
        }
        X_test, y_test = make_moons(2000, noise=0.15, random_state=1)
        for classifier in scores.values():
            assert classifier.score(X_test, y_test) > 0.9

    def test_a_generator_needs_the_classes(self, moons):
        X, y = moons
        with pytest.raises(ValueError, match="classes"):
            small(epochs=None).fit_blocks((X, y) for _ in range(2))

    @pytest.mark.parametrize(
        ("blocks", "error", "message"),
        [
            ([], ValueError, "at least one block"),
            (iter([]), ValueError, "at least one block"),
            (5, TypeError, "iterable"),
            ("abc", TypeError, "iterable"),
            ([np.ones((3, 2))], TypeError, "tuple"),
            ([(np.ones((3, 2)),)], TypeError, "tuple"),
            ([(np.ones((3, 2)), [0, 1])], ValueError, "same number of rows"),
            ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 3)), [0, 1])], ValueError, "features"),
            ([(np.ones((2, 2)), [0, 0])], ValueError, "two classes"),
        ],
    )
    def test_bad_blocks(self, blocks, error, message):
        classifier = small()
        with pytest.raises(error, match=message):
            classifier.fit_blocks(blocks)
        with pytest.raises(NotFittedError):
            classifier.predict(np.ones((1, 2)))

    def test_an_error_in_a_later_block_leaves_the_old_model(self, moons):
        X, y = moons
        classifier = small().fit(X, y)
        before = classifier.decision_function(X)
        with pytest.raises(ValueError, match="NaN"):
            classifier.fit_blocks([(X, y), (np.full((3, 2), np.nan), [0, 1, 1])])
        with pytest.raises(ValueError, match="not among the classes"):
            classifier.partial_fit(X[:3], [0, 1, 2])
        np.testing.assert_array_equal(classifier.decision_function(X), before)


class TestEarlyStopping:
    def test_stops_and_keeps_the_best(self):
        rng = np.random.default_rng(0)
        X, y = make_moons(600, noise=0.3, random_state=0)
        y = np.where(rng.random(600) < 0.2, 1 - y, y)
        classifier = small(validation_fraction=0.25, epochs=200, patience=4).fit(X, y)
        assert classifier.n_iter_ < 200
        assert len(classifier.validation_curve_) == classifier.n_iter_
        best = int(np.argmax(classifier.validation_curve_))
        assert classifier.n_iter_ == best + 1 + 4

    def test_held_out_rows_are_not_learnt_from(self, moons):
        """Labels that contradict each other, separated by one column only."""
        X = np.random.default_rng(0).normal(size=(400, 30))
        y = np.random.default_rng(1).integers(0, 2, 400)
        classifier = KernelClassifier(
            Fastfood(n_components=2048), alpha=0.0, validation_fraction=0.5, epochs=30, patience=30
        ).set_params(random_state=0)
        classifier.fit(X, y)
        # 200 guesses: outside of 0.3 to 0.7 with probability 2e-8.
        assert 0.3 < classifier.validation_curve_[-1] < 0.7
        assert classifier.loss_curve_[-1] < 0.1

    def test_needs_blocks_that_can_be_passed_over_again(self, moons):
        X, y = moons
        with pytest.raises(ValueError, match="validation_fraction"):
            small(validation_fraction=0.2, epochs=None).fit_blocks(iter([(X, y)]), classes=[0, 1])
        blocks = Blocks(X, y, size=200)
        assert small(validation_fraction=0.2).fit_blocks(blocks).score(X, y) > 0.95


@pytest.mark.parametrize("parameters", SOLVERS, ids=str)
def test_pickles_and_copies(parameters, moons):
    X, y = moons
    classifier = small(**parameters).fit(X, y)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.decision_function(X), classifier.decision_function(X))
    assert not hasattr(clone(classifier), "coef_")
    if parameters.get("solver") != "lbfgs":
        for model in (classifier, again):
            model.partial_fit(X[:100], y[:100])
        np.testing.assert_array_equal(again.coef_, classifier.coef_)


def test_a_pickle_is_small(moons):
    X, y = moons
    classifier = KernelClassifier(Fastfood(n_components=20_000), epochs=1).fit(X, y)
    # Three copies of the weights: predictions, and the state that partial_fit continues from.
    assert len(pickle.dumps(classifier)) < 3.2 * 20_000 * 8


def test_any_transformer_is_a_map(moons):
    X, y = moons
    for feature_map in (
        "fastfood",
        "random_fourier",
        make_pipeline(StandardScaler(), Fastfood(n_components=128)),
        Nystroem(n_components=100, gamma=1.0),
        RandomFourier(n_components=64, features="complex"),
        FunctionTransformer(lambda X: scipy.sparse.csr_array(np.hstack([X, X**2, X**3]))),
    ):
        classifier = KernelClassifier(feature_map, random_state=0, epochs=20).fit(X, y)
        assert classifier.score(X, y) > 0.85


def test_frames_of_mixed_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(["red", "blue"], 400), "size": rng.normal(size=400)})
    y = (frame["color"] == "red") ^ (frame["size"] > 0)
    columns = make_column_transformer((OneHotEncoder(), ["color"]), (StandardScaler(), ["size"]))
    feature_map = make_pipeline(columns, Fastfood(n_components=64))
    classifier = KernelClassifier(feature_map, random_state=0, epochs=20).fit(frame, y)
    assert classifier.score(frame, y) > 0.95
    assert classifier.feature_names_in_.tolist() == ["color", "size"]


def test_model_selection(moons):
    X, y = moons
    grid = {"feature_map__length_scale": [0.01, 0.7], "alpha": [1e-6, 1e-2]}
    search = GridSearchCV(small(epochs=20), grid, cv=2).fit(X, y)
    assert search.best_params_["feature_map__length_scale"] == 0.7
    pipeline = make_pipeline(StandardScaler(), small(epochs=20))
    assert cross_val_score(pipeline, X, y, scoring="roc_auc", cv=3).mean() > 0.97


def test_threads_may_share_a_model(moons):
    X, y = moons
    classifier = small().fit(X, y)
    expected = classifier.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: classifier.decision_function(X), range(20)):
            np.testing.assert_array_equal(scores, expected)


def test_says_when_lbfgs_has_not_converged(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="2 iterations"):
        small(solver="lbfgs", epochs=2).fit(X, y)


def test_lbfgs_of_few_rows_and_a_weak_penalty_converges():
    """Its coordinates are much shorter than the weights along some directions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] * X[:, 1] + 0.7 * rng.normal(size=150) > 0
    features = Fastfood(n_components=256, length_scale=2.0, random_state=0)
    found = KernelClassifier(features, alpha=1e-7, solver="lbfgs", tol=1e-5).fit(X, y)
    signs = np.where(y, 1, -1)
    slopes = -signs / (1 + np.exp(signs * found.decision_function(X))) / len(y)
    gradient = found.feature_map_.transform(X).T @ slopes + 1e-7 * found.coef_[0]
    assert np.abs(gradient).max() < 2e-5


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"feature_map": "slowfood"}, ValueError, "feature_map must be one of"),
        ({"feature_map": "fastfod"}, ValueError, "similar name .*feature_map='fastfood'"),
        ({"feature_map": Fastfood}, TypeError, "feature_map"),
        ({"feature_map": None}, TypeError, "feature_map"),
        ({"loss": "log"}, ValueError, "loss must be one of"),
        ({"solver": "newton"}, ValueError, "solver must be one of"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"alpha": float("nan")}, ValueError, "alpha"),
        ({"alpha": "auto"}, TypeError, "alpha"),
        ({"epochs": 0}, ValueError, "epochs"),
        ({"epochs": 1.5}, TypeError, "epochs"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction"),
        ({"patience": 0}, ValueError, "patience"),
        ({"tol": 0.0}, ValueError, "tol"),
        ({"class_weight": "even"}, ValueError, "class_weight"),
        ({"class_weight": {0: -1.0}}, ValueError, "class"),
        ({"class_weight": {0: 1.0, "one": 2.0}}, ValueError, "not one of the classes"),
        ({"class_weight": [1, 2]}, TypeError, "class_weight"),
        ({"n_threads": 0}, ValueError, "n_threads"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"solver": "exact"}, ValueError, "loss='squared'"),
        ({"solver": "lbfgs", "loss": "hinge"}, ValueError, "smooth"),
        ({"checkpoint": "x.npz", "solver": "exact", "loss": "squared"}, ValueError, "checkpoint"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, message, moons):
    X, y = moons
    classifier = small().set_params(**parameters)
    with pytest.raises(error, match=message):
        classifier.fit(X, y)
    assert not hasattr(classifier, "coef_")
    assert not hasattr(classifier, "n_features_in_")


@pytest.mark.parametrize(
    ("X", "y", "weight", "message"),
    [
        (np.ones((4, 2)), None, None, "y"),
        (np.ones((4, 2)), [0, 1, 0], None, "same number of rows"),
        (np.ones((4, 2)), [0, 1, 0, np.nan], None, "NaN"),
        (np.ones((4, 2)), [0.1, 0.2, 0.3, 0.4], None, "continuous"),
        (np.ones((4, 2)), [1, 1, 1, 1], None, "two classes"),
        (np.ones((4, 2)), np.eye(4), None, "1d"),
        (np.full((4, 2), np.inf), [0, 1, 0, 1], None, "infinity"),
        (np.ones((4, 2)), [0, 1, 0, 1], [1, 1, 1], "sample_weight"),
        (np.ones((4, 2)), [0, 1, 0, 1], [1, 1, -1, 1], "egative"),
        (np.ones((4, 2)), [0, 1, 0, 1], [0, 0, 0, 0], "zero"),
        (np.ones((4, 2)), [0, 1, 0, 1], [1, 1, 1, np.nan], "nan"),
        (np.ones((0, 2)), [], None, "0 sample"),
    ],
)
def test_bad_data(X, y, weight, message):
    for parameters in SOLVERS:
        classifier = small(**parameters)
        with pytest.raises(ValueError, match=message):
            classifier.fit(X, y, weight)
        assert not hasattr(classifier, "coef_")


@pytest.mark.parametrize("solver", ["sgd", "lbfgs", "exact"])
@pytest.mark.parametrize("silent", [0, 1])
def test_blocks_without_weight_change_nothing(moons, solver, silent):
    X, y = moons
    blocks = [(X[:400], y[:400], np.ones(400)), (X[400:800], y[400:800], np.ones(400))]
    X, y, _ = blocks[silent]
    blocks[silent] = (X, 1 - y, np.zeros(400))
    classifier = small(solver=solver, loss="squared" if solver == "exact" else "log_loss")
    with_both = classifier.fit_blocks(blocks).score(X, y)
    assert with_both > 0.8


def test_times_are_no_numbers(moons):
    X, y = moons
    classifier = small(epochs=1).fit(X, y)
    times = X.astype("datetime64[s]")
    for call in (classifier.predict, classifier.decision_function, classifier.predict_row):
        with pytest.raises(TypeError, match=r"numbers.*datetime64\[s\]"):
            call(times[0] if call == classifier.predict_row else times)
    frame = pd.DataFrame({"a": X[:3, 0], "b": pd.date_range("2024", periods=3)})
    with pytest.raises(TypeError, match=r"X must be numbers, got dtype datetime.* in column 'b'"):
        small(epochs=1).fit(frame, [0, 1, 0])


def test_prints_its_progress(moons, capsys):
    X, y = moons
    small(verbose=1, epochs=3, validation_fraction=0.1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["1/3", "2/3", "3/3"]
    assert all("loss" in line and "held-out accuracy" in line for line in lines)
    small(epochs=3).fit(X, y)
    assert capsys.readouterr().err == ""
