"""Nyström features: the kernel at landmarks, its projection elsewhere, and exact machines."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import cholesky, solve
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_dict_unchanged

from kernelmill import KernelClassifier, KernelRegressor, Nystroem
from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.files import ModelFileError
from kernelmill.kernels import (
    BallConvolution,
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Radial,
    RationalQuadratic,
    Spectrum,
    resolve,
)
from kernelmill.learners.loading import learner_from_record, load_learner
from kernelmill.learners.saving import learner_record
from kernelmill.maps import nystroem
from kernelmill.maps.stored import map_from_record, map_record

JITTER = 1e-6
SCALES = np.array([0.7, 2.0, np.inf, 1.2])
KERNELS = [
    Gaussian(),
    Exponential(),
    Matern(1.5),
    Matern(2.2),
    RationalQuadratic(0.5),
    Cauchy(),
    BallConvolution(2),
    Laplacian(),
    Radial([0.5, 1.0, 2.0]),
    Spectrum(np.random.default_rng(0).standard_normal((50, 4))),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 4))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(90)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
NEW = RNG.standard_normal((40, 4))


def all_rows(kernel="exponential", **parameters):
    return Nystroem(kernel, **{"n_components": 90, "random_state": 0, **parameters})


class TestKernel:
    @pytest.mark.parametrize("length_scale", [1.3, SCALES], ids=["one", "columns"])
    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_exact_at_landmarks_and_projected_elsewhere(self, kernel, length_scale):
        fitted = Nystroem(kernel, n_components=30, length_scale=length_scale, random_state=0)
        Z = fitted.fit(X).transform(NEW)
        U = fitted.landmarks_
        exact = kernel(U, length_scale=length_scale)
        K = exact + JITTER * np.eye(30)
        k = kernel(NEW, U, length_scale=length_scale)
        np.testing.assert_allclose(Z @ Z.T, k @ solve(K, k.T, assume_a="pos"), atol=1e-7)
        at_landmarks = fitted.transform(U)
        # The difference is between 0 and 1e-6 times the identity.
        np.testing.assert_allclose(at_landmarks @ at_landmarks.T, exact, atol=1.05 * JITTER)
        between = exact @ solve(K, k.T, assume_a="pos")
        np.testing.assert_allclose(at_landmarks @ Z.T, between, atol=1e-7)
        np.testing.assert_array_equal(fitted.exact_kernel(NEW, U), k)

    @pytest.mark.parametrize("length_scale", [1.3, SCALES], ids=["one", "columns"])
    @pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
    def test_a_linear_kernel_is_added(self, kernel, length_scale):
        fitted = all_rows(kernel, length_scale=length_scale, linear=3.0).fit(X)
        Z = fitted.transform(X)
        points = (X - X.mean(axis=0)) / length_scale
        line = points @ points.T
        exact = kernel(X, length_scale=length_scale) + 3.0 * line / np.diag(line).mean()
        np.testing.assert_allclose(fitted.exact_kernel(X), exact, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(fitted._variances(X), np.diag(exact), rtol=1e-12)
        np.testing.assert_allclose(Z @ Z.T, exact, atol=1.05 * JITTER * np.diag(exact).max())

    def test_linear_functions_are_learned_beyond_the_landmarks(self):
        """The kernel alone returns to the mean there; with a linear one, lines go on."""
        slopes = np.array([2.0, -1.0, 0.5, 0.0])
        far = 10 * NEW
        errors = {}
        for linear in (0.0, 100.0):
            model = KernelRegressor(all_rows("gaussian", length_scale=2.0, linear=linear))
            predicted = model.set_params(alpha=1e-4).fit(X, X @ slopes).predict(far)
            errors[linear] = np.abs(predicted - far @ slopes).max()
        assert errors[100.0] < 0.1
        assert errors[0.0] > 10

    @pytest.mark.parametrize("linear", [-1.0, np.nan, np.inf, "much", 1e7])
    def test_bad_weights_of_a_linear_kernel(self, linear):
        error = ArgumentTypeError if linear == "much" else ArgumentError
        with pytest.raises(error, match="linear"):
            all_rows(linear=linear).fit(X)

    def test_landmarks_are_different_rows(self):
        chosen = Nystroem(n_components=20, random_state=0).fit(X).landmarks_
        positions = [np.flatnonzero((row == X).all(axis=1)).item() for row in chosen]
        assert positions == sorted(set(positions))
        assert len(positions) == 20
        other = Nystroem(n_components=20, random_state=1).fit(X).landmarks_
        assert not np.array_equal(chosen, other)

    @pytest.mark.parametrize("kernel", ["gaussian", "exponential", "matern"])
    def test_float32(self, kernel):
        fitted = all_rows(kernel, length_scale=1.5).fit(X.astype(np.float32))
        Z = fitted.transform(X.astype(np.float32))
        assert Z.dtype == np.float32
        np.testing.assert_allclose(Z @ Z.T, fitted.exact_kernel(X), atol=2e-5)

    @pytest.mark.parametrize("shift", [1e3, 1e6])
    @pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
    def test_data_far_from_zero(self, kernel, shift):
        moved = X + shift
        Z = all_rows(kernel, length_scale=1.5).fit_transform(moved)
        exact = all_rows(kernel, length_scale=1.5).fit(moved).exact_kernel(moved)
        np.testing.assert_allclose(Z @ Z.T, exact, atol=2 * JITTER)


class TestBatches:
    """Other batches and formats: features agree to rounding.

    The squared distance of equal rows is rounded by some 1e-16. The distance, which is what matters
    for the exponential kernel, is then 1e-8. The triangular matrix has a condition below 1e3.
    """

    @pytest.mark.parametrize(
        ("kernel", "dtype", "atol"),
        [
            ("gaussian", np.float64, 1e-11),
            ("gaussian", np.float32, 1e-3),
            ("exponential", np.float64, 1e-6),
            ("exponential", np.float32, 1e-3),
            ("laplacian", np.float64, 1e-11),
        ],
    )
    def test_batches_and_formats(self, kernel, dtype, atol, monkeypatch):
        assert_close = partial(np.testing.assert_allclose, rtol=0, atol=atol)
        rows = np.where(RNG.uniform(size=(200, 4)) < 0.3, 0, RNG.standard_normal((200, 4)))
        rows = rows.astype(dtype)
        fitted = Nystroem(kernel, n_components=60, random_state=0).fit(rows)
        Z = fitted.transform(rows)
        for size in (1, 2, 7, 16, 17, 64):
            assert_close(fitted.transform(rows[:size]), Z[:size])
        for form in (sp.csr_array, sp.csc_matrix, sp.coo_array, np.asfortranarray):
            assert_close(fitted.transform(form(rows)), Z)
            again = Nystroem(kernel, n_components=60, random_state=0).fit(form(rows))
            np.testing.assert_array_equal(again.landmarks_, fitted.landmarks_)
        monkeypatch.setattr(nystroem, "_BLOCK_ENTRIES", 60 * 13)
        assert_close(fitted.transform(rows), Z)

    def test_the_factor_is_not_pickled(self):
        fitted = all_rows().fit(X)
        assert len(pickle.dumps(fitted)) < X.nbytes + fitted._points.nbytes + 3000
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(fitted)).transform(NEW), fitted.transform(NEW)
        )


class TestRows:
    def test_more_components_than_rows(self):
        fitted = Nystroem(n_components=1000, random_state=0).fit(X)
        assert fitted.transform(NEW).shape == (40, 90)
        assert len(fitted.get_feature_names_out()) == 90
        assert fitted.n_components == 1000
        again = map_from_record(*map_record(fitted))
        assert again.n_components == 90
        np.testing.assert_array_equal(again.transform(NEW), fitted.transform(NEW))

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_one_row(self, kernel):
        fitted = Nystroem(kernel, length_scale=1.0).fit(X[:1])
        expected = fitted.exact_kernel(NEW, X[:1]) / np.sqrt(1 + JITTER)
        np.testing.assert_allclose(fitted.transform(NEW), expected, rtol=1e-12)

    @pytest.mark.parametrize("kernel", ["gaussian", "exponential", "laplacian"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_equal_rows(self, kernel, dtype):
        rows = np.repeat(X[:10], 20, axis=0).astype(dtype)
        Z = Nystroem(kernel, n_components=200, length_scale=1.0).fit_transform(rows)
        exact = Nystroem(kernel, length_scale=1.0).fit(rows).exact_kernel(rows)
        np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-5)
        constant = Nystroem(kernel, random_state=0).fit_transform(np.ones((30, 3), dtype))
        np.testing.assert_allclose(constant @ constant.T, 1, atol=1e-5)

    def test_rows_that_nearly_agree_far_from_others(self):
        """Distances are lost in rounding; without more jitter there would be no factor."""
        rows = np.repeat(1000 * X[:10], 50, axis=0)
        rows *= 1 + 1e-7 * np.random.default_rng(1).standard_normal(rows.shape)
        for each in (rows, rows.astype(np.float32)):
            fitted = Nystroem("exponential", n_components=500, length_scale=1.0).fit(each)
            Z = fitted.transform(each)
            np.testing.assert_allclose(Z @ Z.T, fitted.exact_kernel(each), atol=5e-3)

    @pytest.mark.parametrize("kernel", KERNELS[:8], ids=repr)
    def test_far_rows(self, kernel):
        far = np.array([1e3, 1e20, 1e160, 1e300])[:, np.newaxis] * np.ones(4)
        for dtype in (np.float64, np.float32):
            fitted = Nystroem(kernel, length_scale=1.0, random_state=0).fit(X.astype(dtype))
            rows = np.minimum(far, 1e38).astype(dtype)
            Z = fitted.transform(rows)
            assert np.isfinite(Z).all()
            assert np.abs(Z[1:]).max() < 1e-6  # RationalQuadratic(0.5) is 1 / distance


def not_positive(distance):
    return np.where(np.asarray(distance) > 0, 2.0, 1.0)


class TestErrors:
    def test_limits(self):
        with pytest.raises(ArgumentError, match=r"n_components must be at most 32768.*got 32769"):
            Nystroem(n_components=32769).fit(X)
        wide = sp.csr_array((20_000, 20_000))
        with pytest.raises(ArgumentError, match=r"20000 landmarks of 20000 columns .*n_components"):
            Nystroem(n_components=20_000, length_scale=1.0).fit(wide)

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    def test_length_scales_that_are_too_small(self, kernel):
        with pytest.raises(ArgumentError, match="length_scale is too small for the landmarks"):
            Nystroem(kernel, length_scale=1e-160).fit(X)

    def test_kernels_that_are_none(self):
        with pytest.raises(ArgumentError, match=r"far from positive definite.*larger length scale"):
            Nystroem(Radial([1.0], value=not_positive)).fit(X)
        with pytest.raises(ValueError, match="kernel must be one of"):
            Nystroem("polynomial").fit(X)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_a_failed_fit_leaves_the_old_one(self, monkeypatch, error):
        fitted = Nystroem(n_components=20, random_state=0).fit(X)
        Z, landmarks = fitted.transform(NEW), fitted.landmarks_

        def fail(*arguments, **options):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr("scipy.linalg.cholesky", fail)
            with pytest.raises(error):
                fitted.fit(NEW[:, :2])
        with pytest.raises(ArgumentError):
            fitted.set_params(n_components=40_000).fit(NEW[:, :2])
        assert fitted.landmarks_ is landmarks
        np.testing.assert_array_equal(fitted.transform(NEW), Z)


class TestExactMachines:
    @pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Laplacian()], ids=repr)
    def test_kernel_ridge(self, kernel):
        alpha, feature_map = 0.1, all_rows(kernel, length_scale=1.5)
        model = KernelRegressor(feature_map, alpha=alpha, fit_intercept=False).fit(X, Y)
        K = kernel(X, length_scale=1.5)
        k = kernel(NEW, X, length_scale=1.5)
        exact = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, Y)
        np.testing.assert_allclose(model.predict(NEW), exact.predict(k), atol=1e-4)
        expected = k @ solve(K + alpha * np.eye(90), Y, assume_a="pos")
        np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-4)

    def test_logistic_regression(self):
        kernel, C = Exponential(), 10.0
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
        model = KernelClassifier(
            all_rows(kernel, length_scale=1.5), solver="lbfgs", alpha=1 / (C * 90), tol=1e-8
        ).fit(X, y)
        L = cholesky(kernel(X, length_scale=1.5) + JITTER * np.eye(90), lower=True)
        exact = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(L, y)
        new = solve(L, kernel(X, NEW, length_scale=1.5)).T
        np.testing.assert_allclose(model.predict_proba(NEW), exact.predict_proba(new), atol=1e-4)


def learners():
    small = Nystroem("exponential", n_components=25, length_scale=1.5, random_state=0)
    yield KernelRegressor(small, alpha=0.1), Y
    yield KernelRegressor(small, alpha=0.1), np.stack([Y, Y**2], axis=1)
    yield KernelClassifier(small, loss="squared"), CLASSES
    yield KernelClassifier(small, loss="hinge", epochs=3, random_state=0), CLASSES > 0


def scores(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return model.predict(rows)


@pytest.fixture(params=learners(), ids=["regressor", "outputs", "classes", "hinge"])
def model(request):
    made, y = request.param
    return made.fit(X, y)


class TestDualWeights:
    def test_scores_are_those_of_features(self, model):
        for rows in (NEW, sp.csr_array(NEW)):
            Z = model.feature_map_.transform(rows)
            expected = (Z @ np.atleast_2d(model.coef_).T + model.intercept_).squeeze()
            np.testing.assert_allclose(scores(model, rows), expected, rtol=1e-7, atol=1e-7)

    def test_predictions_keep_nothing(self):
        for made, _ in learners():
            check_dict_unchanged(type(made).__name__, made)

    def test_float32(self):
        single = X.astype(np.float32)
        for made, y in learners():
            fitted = made.fit(single, y)
            Z = fitted.feature_map_.transform(NEW.astype(np.float32))
            expected = (Z @ np.atleast_2d(fitted.coef_).T + fitted.intercept_).squeeze()
            np.testing.assert_allclose(
                scores(fitted, NEW.astype(np.float32)), expected, rtol=1e-3, atol=1e-3
            )

    def test_partial_fit_replaces_them(self):
        for made, y in learners():
            if getattr(made, "loss", None) == "squared":
                continue
            fitted = made.fit(X[:50], y[:50])
            before = scores(fitted, NEW)
            fitted.partial_fit(X[50:], y[50:])
            Z = fitted.feature_map_.transform(NEW)
            expected = (Z @ np.atleast_2d(fitted.coef_).T + fitted.intercept_).squeeze()
            np.testing.assert_allclose(scores(fitted, NEW), expected, rtol=1e-7, atol=1e-7)
            assert np.abs(scores(fitted, NEW) - before).max() > 1e-3

    def test_copies_and_another_fit(self):
        for made, y in learners():
            fitted = made.fit(X, y)
            before = scores(fitted, NEW)
            copied = pickle.loads(pickle.dumps(fitted))
            np.testing.assert_array_equal(scores(copied, NEW), before)
            again = copied.fit(X, y[::-1])
            assert np.abs(scores(again, NEW) - before).max() > 1e-3
            expected = fitted.fit(X, y[::-1])
            np.testing.assert_array_equal(scores(again, NEW), scores(expected, NEW))


class TestFiles:
    @pytest.mark.parametrize("weights", ["float64", "float32", "float16"])
    def test_predictions_are_the_same_bits(self, model, tmp_path, weights):
        """Scores take the dual weights, which are stored in float64."""
        model.save(tmp_path / "model.kmill", weights=weights)
        again = load_learner(tmp_path / "model.kmill")
        for rows in (NEW, NEW[:1], NEW.astype(np.float32)):
            np.testing.assert_array_equal(scores(again, rows), scores(model, rows))
        np.testing.assert_array_equal(again.feature_map_.landmarks_, model.feature_map_.landmarks_)
        again.save(tmp_path / "again.kmill", weights=weights)
        first, second = ((tmp_path / n).read_bytes() for n in ("model.kmill", "again.kmill"))
        assert first == second

    def test_standard_deviations(self, tmp_path):
        model = next(learners())[0].fit(X, Y)
        model.save(tmp_path / "model.kmill", weights="float64")
        found = load_learner(tmp_path / "model.kmill").predict(NEW, return_std=True)
        expected = model.predict(NEW, return_std=True)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        np.testing.assert_allclose(found[0], model.predict(NEW), rtol=1e-7, atol=1e-7)

    def test_without_dual_weights_they_are_computed(self, model):
        record, tensors = learner_record(model, "float64")
        assert tensors["dual"].shape == (len(np.atleast_2d(model.coef_)), 25)
        del tensors["dual"]
        again = learner_from_record(record, tensors)
        np.testing.assert_allclose(scores(again, NEW), scores(model, NEW), rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("name", ["dual", "map/landmarks_"])
    def test_damaged_tensors(self, model, name):
        record, tensors = learner_record(model)
        right = tensors[name]
        wrong = [
            right[:-1] if name != "dual" else np.vstack([right, right]),
            right[:, :-1],
            right[np.newaxis],
            right.astype(np.int32),
            np.where(np.arange(right.size).reshape(right.shape) == 3, np.nan, right),
            np.full_like(right, np.inf),
            right[:, :0],
        ]
        for damaged in wrong:
            with pytest.raises(ModelFileError):
                learner_from_record(record, {**tensors, name: damaged})
        if name != "dual":
            with pytest.raises(ModelFileError):
                learner_from_record(record, {k: v for k, v in tensors.items() if k != name})

    def test_landmarks_that_overflow(self, model):
        record, tensors = learner_record(model)
        huge = 1e200 * tensors["map/landmarks_"]
        with pytest.raises(ModelFileError):
            learner_from_record(record, {**tensors, "map/landmarks_": huge})


def test_standard_deviations_are_those_of_the_exact_process(points):
    X = points(80, 3)
    y = np.sin(X[:, 0]) + X[:, 1]
    noise = 0.05
    feature_map = Nystroem("matern", n_components=80, length_scale=1.5, random_state=0)
    model = KernelRegressor(feature_map, alpha=noise, noise=None, fit_intercept=False).fit(X, y)
    K = model.feature_map_.exact_kernel(X)
    for shift in (0.0, 1.0, 5.0, 50.0):  # far from the landmarks nothing is known
        rows = X[:20] + shift
        k = model.feature_map_.exact_kernel(rows, X)
        variances = 1 - np.einsum("ij,ji->i", k, np.linalg.solve(K + noise * np.eye(80), k.T))
        expected = np.sqrt(variances * model.noise_ / noise)
        std = model.predict(rows, return_std=True)[1]
        np.testing.assert_allclose(std, expected, rtol=1e-3)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "matern"])
def test_groups_of_rows_that_are_far_apart(kernel, far):
    """Distances in a group are exact, however far the groups are apart."""
    rng = np.random.default_rng(0)
    near = rng.integers(-8, 8, size=(40, 2)) / 4  # exact after the shift, too
    X = np.tile(near, (2, 1))
    X[40:, 0] += 2.0 ** round(np.log2(far))
    fitted = Nystroem(kernel, n_components=80, length_scale=1.0, random_state=0).fit(X)
    Z = fitted.transform(X)
    expected = resolve(kernel)(near, near)
    # The jitter of 1e-6; squared distances up to 1e4 lengths away have errors of 1e-7.
    np.testing.assert_allclose(Z[:40] @ Z[:40].T, expected, atol=1e-3)
    np.testing.assert_allclose(Z[40:] @ Z[40:].T, expected, atol=1e-3)
    np.testing.assert_allclose(Z[40:] @ Z[:40].T, 0, atol=1e-6)
    if far > 1e4:  # by differences: rounding does not depend on the other rows
        parts = [fitted.transform(X[i : i + 1]) for i in range(80)]
        np.testing.assert_allclose(Z, np.concatenate(parts), atol=1e-9)


def test_tiny_penalties_in_float32_are_doubtful():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    model = KernelRegressor(Nystroem(n_components=50, random_state=0), alpha=1e-9)
    with pytest.warns(
        UserWarning, match="penalty 1e-09 is below the rounding error of landmark feat"
    ):
        model.fit(X.astype(np.float32), y)
    model.fit(X, y)
    model.set_params(alpha=1e-4).fit(X.astype(np.float32), y)
