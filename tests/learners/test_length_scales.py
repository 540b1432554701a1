"""Length scales of columns: the evidence and its gradient, the search, the learners."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import kernelmill
from kernelmill import Fastfood, KernelClassifier, KernelRegressor, RandomFourier, TensorSketch
from kernelmill.kernels import Gaussian, Laplacian, Matern
from kernelmill.learners.tuning import length_scales
from kernelmill.learners.tuning.length_scales import (
    MOST_COLUMNS,
    EvidenceProblem,
    learn_length_scales,
    leave_one_out_errors,
)
from kernelmill.random import Stream


def make_rows(n=600, d=5, seed=0):
    """The first column matters in a wave, the second in a line, the others not at all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def make_problem(kernel=None, n=120, d=3, n_outputs=2, h=7, *, weighted=False):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)).astype(np.float32)
    Y = np.sin(2 * X[:, :n_outputs]).astype(np.float64) + 0.2 * rng.normal(size=(n, n_outputs))
    frequencies = (kernel or Gaussian()).frequencies(Stream.from_seed(3), h, d)
    return EvidenceProblem(X, Y, frequencies, make_weights(len(X)) if weighted else None)


def make_weights(n):
    """With mean 1; some rows do not count."""
    weights = np.random.default_rng(7).integers(0, 4, n).astype(float)
    return weights / weights.mean()


@pytest.mark.representative
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(), Matern(nu=1.5)], ids=str)
def test_gradient_is_that_of_finite_differences(kernel, weighted):
    problem = make_problem(kernel, weighted=weighted)
    logs, log_alpha, step = np.array([0.3, -0.2, -0.7]), -2.0, 3e-3
    _, of_weights, of_alpha = problem.value(logs, log_alpha)
    # Products are in float32: a value is exact to some 1e-6, a difference quotient to 1e-6 / step.
    tolerance = 1e-6 / step + 1e-3 * abs(of_weights).max()
    for column in range(3):
        shift = step * np.eye(3)[column]
        quotient = (
            problem.value(logs + shift, log_alpha)[0] - problem.value(logs - shift, log_alpha)[0]
        ) / (2 * step)
        assert of_weights[column] == pytest.approx(quotient, abs=tolerance)
    quotient = (
        problem.value(logs, log_alpha + step)[0] - problem.value(logs, log_alpha - step)[0]
    ) / (2 * step)
    assert of_alpha == pytest.approx(quotient, abs=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_the_evidence_of_the_dense_process(weighted):
    """Differences of the value are those of the log density, at the best variance."""
    problem = make_problem(n=40, weighted=weighted)
    weights = make_weights(40) if weighted else np.ones(40)
    n, n_outputs = problem.Y.shape

    def dense(logs, alpha):
        P = problem.X @ (problem.frequencies * np.exp(logs)).T
        Z = np.hstack([np.cos(P), np.sin(P)]) / np.sqrt(len(problem.frequencies))
        Z = (Z - weights @ Z / weights.sum()) * np.sqrt(weights)[:, None]
        K = Z @ Z.T + alpha * np.eye(n)
        variance = np.vdot(problem.Y, np.linalg.solve(K, problem.Y)) / (n * n_outputs)
        density = multivariate_normal(np.zeros(n), variance * K)
        return -sum(density.logpdf(y) for y in problem.Y.T) / (n * n_outputs)

    points = [(np.zeros(3), 0.1), (np.array([0.5, -0.3, 0.1]), 0.02), (np.full(3, -1.0), 1.0)]
    ours = [problem.value(logs, np.log(alpha))[0] for logs, alpha in points]
    exact = [dense(logs, alpha) for logs, alpha in points]
    np.testing.assert_allclose(np.diff(ours), np.diff(exact), atol=1e-4)


# The spectrum of the Laplacian kernel has heavy tails. With 64 of its frequencies the scales of
# columns without influence vary by a factor of 20 from seed to seed, and with a BLAS's rounding.
@pytest.mark.parametrize(
    ("kernel", "n_frequencies"),
    [(Gaussian(), 64), (Matern(nu=1.5), 64), (Laplacian(), 256)],
    ids=str,
)
def test_columns_that_matter_get_short_length_scales(kernel, n_frequencies):
    """The isotropic optimum explains the line only: the search must not stay there."""
    X, y = make_rows()
    settings = {"stream": Stream.from_seed(0), "n_frequencies": n_frequencies}
    learned = learn_length_scales(kernel, X, y, **settings)
    assert learned.length_scale[0] < learned.length_scale[1] < learned.length_scale[2:].min()
    assert learned.length_scale[2:].min() > 8 * learned.length_scale[0]
    together = learn_length_scales(kernel, X, y, groups=np.zeros(5, int), **settings)
    assert learned.log_evidence > together.log_evidence + 0.1


def test_groups_share_a_length_scale():
    X, y = make_rows()
    learned = learn_length_scales(
        Gaussian(),
        X,
        y,
        groups=[4, 7, 7, 1, 1],
        stream=Stream.from_seed(0),
        n_frequencies=32,
    )
    scales = learned.length_scale
    assert scales[1] == scales[2]
    assert scales[3] == scales[4]
    assert len(np.unique(scales)) == 3


def test_few_rows_and_many_columns_stay_near_one_length_scale():
    """Without signal, the prior keeps 300 columns within a factor of each other."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 300)), rng.normal(size=80)
    learned = learn_length_scales(Gaussian(), X, y, stream=Stream.from_seed(0), n_frequencies=32)
    ratio = learned.length_scale / np.median(learned.length_scale)
    assert np.quantile(ratio, 0.95) < 3
    assert np.quantile(ratio, 0.05) > 1 / 3


def test_length_scales_of_very_many_columns_are_drawn_together(monkeypatch):
    """As the square root of their number: here four times as many as may be free."""
    X, y = make_rows(n=300, d=4)
    settings = {"stream": Stream.from_seed(0), "n_frequencies": 32}
    free = learn_length_scales(Gaussian(), X, y, **settings)
    monkeypatch.setattr(length_scales, "_MOST_FREE", 1)
    drawn = learn_length_scales(Gaussian(), X, y, **settings)
    assert drawn.isotropic == free.isotropic
    np.testing.assert_allclose(
        np.log(drawn.length_scale / drawn.isotropic),
        np.log(free.length_scale / free.isotropic) / 2,
        rtol=1e-12,
    )


def test_the_same_seed_gives_the_same_length_scales_for_dense_and_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    X, y = make_rows(200)
    X[np.abs(X) < 0.5] = 0
    stream = Stream.from_seed(5)
    first = learn_length_scales(Gaussian(), X, y, stream=stream, n_frequencies=16)
    again = learn_length_scales(Gaussian(), X, y, stream=stream, n_frequencies=16)
    csr = learn_length_scales(Gaussian(), sparse.csr_array(X), y, stream=stream, n_frequencies=16)
    np.testing.assert_array_equal(first.length_scale, again.length_scale)
    np.testing.assert_array_equal(first.length_scale, csr.length_scale)


def test_constant_columns_and_targets():
    X, y = make_rows(100)
    X[:, 3] = 2.0
    learned = learn_length_scales(Gaussian(), X, y, stream=Stream.from_seed(0), n_frequencies=16)
    assert np.isfinite(learned.length_scale).all()
    constant = learn_length_scales(
        Gaussian(), X, np.ones(100), stream=Stream.from_seed(0), n_frequencies=16
    )
    assert np.isfinite(constant.length_scale).all()


@pytest.mark.parametrize(
    ("groups", "words"),
    [([0, 1], "groups must contain one integer for each of the 5 columns"), ([0.5] * 5, "dtype")],
)
def test_wrong_groups(groups, words):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=words):
        learn_length_scales(Gaussian(), X, y, groups=groups, stream=Stream.from_seed(0))


def test_too_many_columns():
    X = np.zeros((10, MOST_COLUMNS + 1), np.float32)
    with pytest.raises(ValueError, match="use one length scale for all"):
        learn_length_scales(Gaussian(), X, np.zeros(10), stream=Stream.from_seed(0))


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_leaving_out_each_row(weighted):
    X, y = make_rows(60)
    weights = make_weights(60) if weighted else np.ones(60)
    given = weights if weighted else None
    fitted = RandomFourier(n_components=20, length_scale=2.0, random_state=0).fit(X)
    Z = fitted.transform(X)
    for ridge in (1e-3, 1.0):
        errors = leave_one_out_errors(fitted, X, y[:, None], 40, start=ridge, sample_weight=given)
        squares = []
        for row in range(40, 60):
            kept = np.arange(60) != row
            shares = weights[kept] / weights[kept].sum()
            mean, center = shares @ Z[kept], shares @ y[kept]
            weighed = ((Z[kept] - mean) * weights[kept][:, None]).T
            A = weighed @ (Z[kept] - mean) + ridge * np.eye(20)
            w = np.linalg.solve(A, weighed @ (y[kept] - center))
            squares.append((y[row] - center - (Z[row] - mean) @ w) ** 2)
        expected = np.average(squares, weights=weights[40:])
        assert errors[ridge] == pytest.approx(expected, rel=1e-6)


@pytest.mark.representative
def test_regressor_learns_columns():
    X, y = make_rows(1500)
    plain = KernelRegressor(Fastfood(n_components=256), alpha=0.01, random_state=0)
    learner = KernelRegressor(Fastfood(n_components=256), tune="columns", random_state=0)
    train, test = slice(0, 1000), slice(1000, None)
    before = plain.fit(X[train], y[train]).score(X[test], y[test])
    after = learner.fit(X[train], y[train]).score(X[test], y[test])
    assert after > 0.95 > before
    scales = learner.feature_map_.length_scale_
    assert scales.shape == (5,)
    assert learner.tuning_["error"][1] < learner.tuning_["error"][0]
    np.testing.assert_allclose(scales, learner.learned_scales_.length_scale)


@pytest.mark.parametrize("learner", [KernelRegressor, KernelClassifier])
def test_weights_count_when_columns_are_learned(learner):
    """Rows of weight zero change nothing, and few heavy rows decide which column matters."""
    X, _ = make_rows(800)
    heavy = np.arange(800) % 4 == 0
    y = np.where(heavy, np.sin(3 * X[:, 0]), np.sin(3 * X[:, 1]))
    y = y if learner is KernelRegressor else np.sign(y)
    model = learner(Fastfood(n_components=64), tune="columns", random_state=0)
    scales = model.fit(X, y, np.where(heavy, 10.0, 1e-3)).learned_scales_.length_scale
    assert scales[0] < scales[1] / 2
    scales = model.fit(X, y, np.where(heavy, 0.0, 1.0)).learned_scales_.length_scale
    assert scales[1] < scales[0] / 2
    with pytest.raises(ValueError, match="zero"):
        model.fit(X, y, np.zeros(800))


def test_penalties_do_not_depend_on_the_unit_of_weights():
    X, y = make_rows(200)
    weights = make_weights(200)
    model = KernelRegressor(Fastfood(n_components=32), tune="columns", random_state=0)
    alpha, predicted = model.fit(X, y, weights).alpha_, model.predict(X)
    assert model.fit(X, y, 8 * weights).alpha_ == pytest.approx(8 * alpha)
    np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-5, atol=1e-7)


def test_classifier_learns_columns(tmp_path):
    X, y = make_rows(1500)
    labels = np.where(y > 0, "up", "down")
    learner = KernelClassifier(Fastfood(n_components=256), tune="columns", random_state=0)
    learner.fit(X[:1000], labels[:1000])
    plain = KernelClassifier(Fastfood(n_components=256), random_state=0).fit(
        X[:1000], labels[:1000]
    )
    assert learner.score(X[1000:], labels[1000:]) > plain.score(X[1000:], labels[1000:]) + 0.05
    learner.save(tmp_path / "model.kmill", weights="float64")
    loaded = kernelmill.load(tmp_path / "model.kmill")
    np.testing.assert_array_equal(loaded.predict(X), learner.predict(X))
    assert loaded.tune == "columns"


def test_one_length_scale_is_kept_where_all_columns_matter_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 60))
    y = np.tanh(X.sum(axis=1) / 8) + 0.3 * rng.normal(size=160)
    learner = KernelRegressor(RandomFourier(n_components=256), tune="columns", random_state=0)
    learner.fit(X, y)
    errors = learner.tuning_["error"]
    per_column = np.ndim(learner.feature_map_.length_scale_) == 1
    assert per_column == bool(errors[1] < errors[0])


def test_rejected_arguments():
    X, y = make_rows(50)
    with pytest.raises(ValueError, match="tune must be"):
        KernelRegressor(tune="rows").fit(X, y)
    with pytest.raises(ValueError, match="tune must be"):
        KernelClassifier(tune=True).fit(X, y > 0)
    with pytest.raises(ValueError, match="length scale for tune='columns'"):
        KernelRegressor(TensorSketch(n_components=16), tune="columns").fit(X, y)
