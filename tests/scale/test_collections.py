"""Maps and learners on Dask arrays and data frames, without a cluster."""

import itertools
import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier, is_regressor

import kernelmill
from kernelmill import Fastfood, KernelClassifier, KernelRegressor, RandomFourier, TensorSketch
from kernelmill.learners import load_learner
from kernelmill.scale import (
    DaskKernelClassifier,
    DaskKernelRegressor,
    PieceError,
    fit_map,
    sample_rows,
    transform,
)

pytestmark = pytest.mark.usefixtures("synchronous")

N_ROWS = 600
ROWS = np.random.default_rng(0).normal(size=(N_ROWS, 4))
TARGETS = np.sin(2 * ROWS[:, 0]) + ROWS[:, 1]
LABELS = np.where(ROWS[:, 0] * ROWS[:, 1] > 0, "same", "other")
WEIGHTS = np.random.default_rng(1).uniform(size=N_ROWS)
CHUNKS = (1, 250, 0, 100, 249)  # one row, none, and uneven
MAP = Fastfood(n_components=64, length_scale=1.0, random_state=0)
NAMES = ["a", "b", "c", "d"]


def as_array(values, chunks=CHUNKS):
    return da.from_array(values, chunks=(chunks, *((size,) for size in values.shape[1:])))


def as_unknown(values):
    """The same rows in chunks of unknown sizes."""
    array = as_array(values)
    return array[da.from_array(np.ones(N_ROWS, bool), chunks=(CHUNKS,))]


def as_sparse(values):
    return as_array(values).map_blocks(scipy.sparse.csr_array, meta=scipy.sparse.csr_array((0, 0)))


def as_frame(values, names=NAMES):
    frame = pd.DataFrame(values, columns=names)
    edges = np.cumsum([0, *CHUNKS])
    parts = [frame[a:b] for a, b in itertools.pairwise(edges)]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=frame[:0])


@pytest.mark.parametrize(
    "name",
    [
        "AdditiveFourier",
        "CountSketch",
        "DotProductFastfood",
        "Fastfood",
        "GaussianTemplates",
        "Nystroem",
        "PrincipalFourier",
        "RandomFourier",
        "RandomMaclaurin",
        "TaylorSketch",
        "TensorSketch",
    ],
)
def test_every_map_on_arrays(name):
    for dtype in (np.float32, np.float64):
        rows = (np.abs(ROWS[:50]) / 4).astype(dtype)
        fitted = getattr(kernelmill, name)(n_components=32, random_state=0).fit(rows)
        lazy = transform(fitted, da.from_array(rows, chunks=((20, 0, 30), (3, 1))))
        expected = fitted.transform(rows)
        assert lazy.dtype == expected.dtype == lazy._meta.dtype
        assert lazy.shape == expected.shape
        np.testing.assert_array_equal(lazy.compute(), expected)


@pytest.mark.parametrize("make", [as_unknown, as_sparse, as_frame])
def test_transform_of_other_collections(make):
    fitted = MAP.fit(pd.DataFrame(ROWS, columns=NAMES) if make is as_frame else ROWS)
    lazy = transform(fitted, make(ROWS))
    assert isinstance(lazy, da.Array)
    assert isinstance(lazy._meta, np.ndarray)
    expected = fitted.transform(pd.DataFrame(ROWS, columns=NAMES) if make is as_frame else ROWS)
    np.testing.assert_allclose(lazy.compute(), expected, atol=1e-12)


def test_transform_to_frames():
    fitted = clone(MAP).set_output(transform="pandas").fit(pd.DataFrame(ROWS, columns=NAMES))
    lazy = transform(fitted, as_frame(ROWS))
    assert isinstance(lazy, dd.DataFrame)
    expected = fitted.transform(pd.DataFrame(ROWS, columns=NAMES))
    pd.testing.assert_frame_equal(lazy.compute(), expected)


def test_transform_computes_nothing_before_it_is_asked():
    calls = []

    def record(rows):
        calls.append(len(rows))
        return rows

    X = as_array(ROWS).map_blocks(record, meta=np.empty((0, 0)))
    lazy = transform(MAP.fit(ROWS), X)
    assert not calls
    lazy[:1].compute()
    assert calls == [1]


def test_a_map_is_fitted_on_a_sample():
    X = as_array(ROWS)
    whole = RandomFourier(n_components=8, length_scale="median", random_state=0).fit(ROWS)
    some = fit_map(clone(whole), X, n_rows=300)
    assert some.length_scale_ == pytest.approx(whole.length_scale_, rel=0.1)
    assert fit_map(clone(whole), X, n_rows=300).length_scale_ == some.length_scale_


def test_sample_of_rows_and_targets():
    rows, targets = sample_rows(as_array(ROWS), 50, y=as_array(TARGETS), random_state=3)
    assert rows.shape == (50, 4)
    np.testing.assert_allclose(np.sin(2 * rows[:, 0]) + rows[:, 1], targets)
    assert sample_rows(as_frame(ROWS), 50).columns.tolist() == NAMES


@pytest.mark.representative
@pytest.mark.parametrize("make", [as_array, as_unknown, as_sparse])
def test_regressor_is_that_of_all_rows(make):
    here = KernelRegressor(MAP, alpha=0.1).fit(ROWS, TARGETS, WEIGHTS)
    there = DaskKernelRegressor(MAP, alpha=0.1)
    there.fit(make(ROWS), as_array(TARGETS), as_array(WEIGHTS))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-10 * np.abs(here.coef_).max())
    lazy = there.predict(make(ROWS))
    assert lazy.dtype == np.float64
    assert lazy.ndim == 1
    np.testing.assert_allclose(lazy.compute(), here.predict(ROWS), atol=1e-10)
    for found, expected in zip(
        there.predict(make(ROWS), return_std=True), here.predict(ROWS, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found.compute(), expected, atol=1e-8)
    assert there.score(make(ROWS), as_array(TARGETS)) == pytest.approx(here.score(ROWS, TARGETS))


def test_regressor_of_several_outputs():
    Y = np.stack([TARGETS, -2 * TARGETS], axis=1)
    model = DaskKernelRegressor(MAP, alpha=0.1).fit(as_array(ROWS), da.from_array(Y, (150, 1)))
    mean, std = model.predict(as_array(ROWS), return_std=True)
    assert mean.shape == std.shape == Y.shape
    local = KernelRegressor(MAP, alpha=0.1).fit(ROWS, Y)
    np.testing.assert_allclose(mean.compute(), local.predict(ROWS), atol=1e-10)
    assert model.score(as_array(ROWS), as_array(Y)) == pytest.approx(local.score(ROWS, Y))


def test_regressor_of_frames():
    frame = as_frame(ROWS)
    y = as_frame(TARGETS[:, None], ["y"])["y"]
    model = DaskKernelRegressor(MAP, alpha=0.1).fit(frame, y)
    assert model.feature_names_in_.tolist() == NAMES
    lazy = model.predict(frame)
    assert isinstance(lazy, dd.Series)
    assert lazy.name == "prediction"
    local = KernelRegressor(MAP, alpha=0.1).fit(pd.DataFrame(ROWS, columns=NAMES), TARGETS)
    found = lazy.compute()
    np.testing.assert_allclose(found, local.predict(pd.DataFrame(ROWS, columns=NAMES)), atol=1e-9)
    assert found.index.tolist() == list(range(N_ROWS))
    mean, std = model.predict(frame, return_std=True)
    assert len(mean.compute()) == len(std.compute()) == N_ROWS


def test_length_scales_and_penalties_are_tuned_on_the_sample():
    model = DaskKernelRegressor(Fastfood(n_components=32), tune=True, tune_budget=3, random_state=0)
    model.fit(as_array(ROWS), as_array(TARGETS))
    assert set(model.tuning_) == {"length_scale", "alpha", "log_evidence"}
    assert model.score(as_array(ROWS), as_array(TARGETS)) > 0.8


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_classifier(solver):
    settings = {"solver": solver, "alpha": 1e-3, "random_state": 0, "epochs": 20}
    here = KernelClassifier(MAP, **settings).fit(ROWS, LABELS)
    there = DaskKernelClassifier(MAP, **settings).fit(as_array(ROWS), as_array(LABELS))
    assert there.classes_.tolist() == ["other", "same"]
    assert len(there.loss_curve_) <= 20
    lazy = there.predict(as_array(ROWS))
    assert lazy.dtype == there.classes_.dtype
    share = float((lazy == as_array(LABELS)).mean().compute())
    assert there.score(as_array(ROWS), as_array(LABELS)) == pytest.approx(share)
    assert share > here.score(ROWS, LABELS) - 0.03
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        found = getattr(there, method)(as_array(ROWS))
        expected = getattr(there.to_local(), method)(ROWS)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-6, atol=1e-6)


def test_classifier_of_frames_with_strings():
    y = as_frame(LABELS[:, None], ["y"])["y"]
    model = DaskKernelClassifier(MAP, loss="squared").fit(as_frame(ROWS), y)
    found = model.predict(as_frame(ROWS)).compute()
    local = KernelClassifier(MAP, loss="squared").fit(pd.DataFrame(ROWS, columns=NAMES), LABELS)
    np.testing.assert_array_equal(found, local.predict(pd.DataFrame(ROWS, columns=NAMES)))
    log_loss = DaskKernelClassifier(MAP, solver="lbfgs").fit(as_frame(ROWS), y)
    assert log_loss.predict_proba(as_frame(ROWS)).columns.tolist() == ["other", "same"]
    assert not hasattr(model, "predict_proba")


def test_early_stopping_measures_rows_that_no_chunk_trains_on():
    model = DaskKernelClassifier(
        MAP, validation_fraction=0.2, patience=10, epochs=20, alpha=1e-3, random_state=0
    )
    model.fit(as_array(ROWS, (300, 300)), as_array(LABELS, (300, 300)))
    assert len(model.validation_curve_) == len(model.loss_curve_)
    assert max(model.validation_curve_) > 0.7  # 64 features; a constant would have 0.5
    # 60 of 300 rows in each chunk, to one for each class: the scores are multiples of 1/120.
    shares = np.array(model.validation_curve_) * 120
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-6)


def test_weights_of_rows_in_descent():
    # Rows of weight zero have labels that contradict the others.
    labels = np.where(np.arange(N_ROWS) % 2, LABELS, np.where(LABELS == "same", "other", "same"))
    weights = (np.arange(N_ROWS) % 2).astype(float)
    model = DaskKernelClassifier(MAP, epochs=20, alpha=1e-3, random_state=0)
    model.fit(as_array(ROWS), as_array(labels), as_array(weights))
    # With equal weights, half of all labels would be wrong.
    local = KernelClassifier(MAP, epochs=20, alpha=1e-3, random_state=0)
    expected = local.fit(ROWS, labels, weights).score(ROWS, LABELS)
    assert model.score(as_array(ROWS), as_array(LABELS)) > expected - 0.03 > 0.7


def test_model_file_is_that_of_the_plain_estimator(tmp_path):
    model = DaskKernelRegressor(MAP, alpha=0.1).fit(as_array(ROWS), as_array(TARGETS))
    model.save(tmp_path / "dask.kmill")
    model.to_local().save(tmp_path / "local.kmill")
    assert (tmp_path / "dask.kmill").read_bytes() == (tmp_path / "local.kmill").read_bytes()
    loaded = load_learner(tmp_path / "dask.kmill")
    assert type(loaded) is type(model.to_local()) is KernelRegressor
    np.testing.assert_allclose(loaded.predict(ROWS), model.predict(ROWS), atol=1e-5)


def test_conventions_of_estimators():
    model = DaskKernelClassifier(MAP, alpha=0.5, client=None)
    assert model.get_params()["alpha"] == 0.5
    assert set(model.get_params(deep=False)) == {
        *KernelClassifier().get_params(deep=False),
        "client",
    }
    assert clone(model).alpha == 0.5
    assert model.set_params(alpha=0.25).alpha == 0.25
    assert "alpha=0.25" in repr(model)
    assert is_classifier(model)
    assert is_regressor(DaskKernelRegressor())
    assert model.client_ is None
    assert pickle.loads(pickle.dumps(model)).alpha == 0.25
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        DaskKernelRegressor(client="tcp://localhost").fit(as_array(ROWS), as_array(TARGETS))


def test_a_failed_fit_changes_nothing():
    model = DaskKernelRegressor(MAP, alpha=0.1).fit(as_array(ROWS), as_array(TARGETS))
    before = model.coef_
    bad = np.where(np.arange(N_ROWS) == 300, np.inf, TARGETS)
    with pytest.raises(PieceError, match=r"chunk 3 \(rows 251 to 350\): .*infinity"):
        model.fit(as_array(ROWS), as_array(bad))
    assert model.coef_ is before


def test_errors_of_lazy_predictions_name_the_chunk():
    model = DaskKernelRegressor(MAP, alpha=0.1).fit(as_array(ROWS), as_array(TARGETS))
    bad = ROWS.copy()
    bad[300, 0] = np.nan
    with pytest.raises(PieceError, match=r"chunk 3 \(rows 251 to 350\): .*NaN"):
        model.predict(as_array(bad)).compute()
    frames = DaskKernelRegressor(MAP).fit(as_frame(ROWS), as_frame(TARGETS[:, None], ["y"])["y"])
    with pytest.raises(PieceError, match=r"partition 3: .*NaN"):
        frames.predict(as_frame(bad)).compute()


def test_rows_whose_features_are_not_finite_are_an_error():
    sketch = TensorSketch(3, n_components=16, random_state=0)
    rows = ROWS.copy()
    rows[400] = 1e200
    message = r"\(rows 351 to 599\): the features of a row are not finite .* 1e\+200, in column 0"
    with pytest.raises(PieceError, match=message):
        transform(sketch.fit(ROWS), as_array(rows)).compute()
    classifier = DaskKernelClassifier(sketch, random_state=0).fit(as_array(ROWS), as_array(LABELS))
    for method in (classifier.predict, classifier.predict_proba):
        with pytest.raises(PieceError, match=message):
            method(as_array(rows)).compute()
    regressor = DaskKernelRegressor(sketch, alpha=1.0).fit(as_array(ROWS), as_array(TARGETS))
    with pytest.raises(PieceError, match=message):
        regressor.predict(as_array(rows), return_std=True)[1].compute()


def test_input_that_does_not_fit():
    model = DaskKernelRegressor(MAP)
    with pytest.raises(TypeError, match="X must be a Dask array or data frame, got ndarray"):
        model.fit(ROWS, TARGETS)
    with pytest.raises(ValueError, match="one entry for each of the 600 rows of X, got 599"):
        model.fit(as_array(ROWS), da.from_array(TARGETS[1:], 100))
    with pytest.raises(ValueError, match=r"y must have the same chunks as X, 5 of them, got 2"):
        model.fit(as_unknown(ROWS), da.from_array(TARGETS, 300))
    with pytest.raises(ValueError, match="as many rows as X in each chunk"):
        model.fit(as_unknown(ROWS), as_array(TARGETS, (1, 249, 1, 100, 249)))
    with pytest.raises(ValueError, match="two dimensions"):
        model.fit(as_array(TARGETS), as_array(TARGETS))


def test_dtypes_are_checked_before_anything_is_computed():
    model = DaskKernelRegressor(MAP, alpha=1.0).fit(as_array(ROWS), as_array(TARGETS))
    frame = dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), npartitions=1)
    for X in (as_array(ROWS.astype(str)), as_array(ROWS.astype(complex)), frame):
        for call in (model.predict, lambda X: DaskKernelRegressor(MAP).fit(X, as_array(TARGETS))):
            with pytest.raises(TypeError, match="X must be real numbers, got dtype"):
                call(X)
    with pytest.raises(TypeError, match="y must be real numbers, got dtype complex128"):
        model.score(as_array(ROWS), as_array(TARGETS.astype(complex)))


def test_scores_of_no_rows():
    rows, zeros = as_array(ROWS), as_array(np.zeros(N_ROWS))
    for model, y in (
        (DaskKernelRegressor(MAP, alpha=1.0), as_array(TARGETS)),
        (DaskKernelClassifier(MAP, loss="squared"), as_array(LABELS)),
    ):
        model.fit(rows, y)
        for given in ((rows[:0], y[:0]), (rows, y, zeros)):
            with pytest.raises(ValueError, match="at least one row whose weight is not zero"):
                model.score(*given)


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_weights_that_are_all_zero(solver):
    rows, labels, weights = (as_array(each) for each in (ROWS, LABELS, np.zeros(N_ROWS)))
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one row"):
        DaskKernelClassifier(MAP, solver=solver).fit(rows, labels, weights)


def test_descent_resumes_from_the_last_epoch(tmp_path, monkeypatch):
    from kernelmill.learners.solvers import averaging

    X, labels = as_array(ROWS), as_array(LABELS)
    settings = {"epochs": 4, "alpha": 1e-3, "random_state": 0}
    expected = DaskKernelClassifier(MAP, **settings).fit(X, labels)
    path = tmp_path / "state.npz"
    model = DaskKernelClassifier(MAP, checkpoint=path, **settings)
    visit, epochs = averaging._visit, []

    def fail_in_third_epoch(objective, settings, start, *rest):
        epochs.append(start.epoch)
        if start.epoch == 2 and len(set(epochs)) == 3:
            raise OSError("a fault")
        return visit(objective, settings, start, *rest)

    monkeypatch.setattr(averaging, "_visit", fail_in_third_epoch)
    with pytest.raises(PieceError, match="OSError: a fault"):
        model.fit(X, labels)
    assert path.exists()
    epochs.clear()
    model.fit(X, labels)
    assert min(epochs) == 2
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert not path.exists()


@pytest.mark.parametrize(
    ("solver", "options", "fails_at", "tolerance"),
    [
        ("exact", {}, 17, 0.0),  # in the pass after that for the sample
        ("cg", {"tol": 1e-8}, 35, 0.0),  # in the first iteration
        ("lbfgs", {"tol": 1e-6}, 45, 1e-3),
    ],
)
def test_solvers_resume_from_what_is_done(tmp_path, solver, options, fails_at, tolerance):
    """Ten chunks; a fault in one of them, and the same call again."""
    reads = []

    def read(rows):
        reads.append(len(rows))
        if len(reads) == fails_at:
            raise OSError("a fault")
        return rows

    X = da.from_array(ROWS, chunks=(60, 4))
    y = da.from_array(LABELS if solver == "lbfgs" else TARGETS, chunks=60)
    learner = DaskKernelClassifier if solver == "lbfgs" else DaskKernelRegressor
    settings = {"solver": solver, "alpha": 0.1, "random_state": 0, **options}
    expected = learner(MAP, **settings).fit(X, y)
    path = tmp_path / "state.npz"
    model = learner(MAP, checkpoint=path, checkpoint_seconds=0, **settings)
    faulty = X.map_blocks(read, meta=np.empty((0, 0)))
    with pytest.raises((PieceError, OSError), match="a fault"):
        model.fit(faulty, y)
    assert path.exists()
    reads.clear()
    fails_at = 10**9
    model.fit(faulty, y)
    assert not path.exists()
    scale = np.abs(expected.coef_).max()
    assert np.abs(model.coef_ - expected.coef_).max() <= tolerance * scale
    if solver == "exact":  # the sample, and the four chunks that were not done
        assert len(reads) == 14


@pytest.mark.parametrize("learner", [DaskKernelRegressor, DaskKernelClassifier])
def test_length_scales_of_columns_are_learned_from_the_sample(learner):
    rows = np.random.default_rng(3).normal(size=(450, 3))
    target = np.sin(3 * rows[:, 0])
    y = target if learner is DaskKernelRegressor else target > 0
    options = {"tune": "columns", "random_state": 0}
    options |= {"loss": "squared"} if learner is DaskKernelClassifier else {}
    model = learner(Fastfood(n_components=64, random_state=0), **options)
    model.fit(da.from_array(rows, chunks=(150, 3)), da.from_array(y, chunks=150))
    scales = model.feature_map_.length_scale_
    assert scales[0] < 0.3 * min(scales[1:])
    assert model.to_local().score(rows, y) > 0.9


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_conjugate_gradients_on_chunks(weights):
    given = None if weights is None else as_array(weights)
    there = DaskKernelRegressor(MAP, alpha=0.1, solver="cg", tol=1e-10)
    there.fit(as_array(ROWS), as_array(TARGETS), given)
    here = KernelRegressor(MAP, alpha=0.1).fit(ROWS, TARGETS, weights)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-7 * np.abs(here.coef_).max())
    assert there.noise_ == pytest.approx(here.noise_)


def test_errors_of_the_users_graph_name_the_chunk():
    def fail(rows, block_info=None):
        if block_info and block_info[0]["chunk-location"][0] == 4:
            raise RuntimeError("no such sensor")
        return rows

    broken = as_array(ROWS).map_blocks(fail, dtype=ROWS.dtype)
    with pytest.raises(
        PieceError, match=r"chunk 4 \(rows 351 to 599\): RuntimeError: no such sensor"
    ):
        DaskKernelRegressor(MAP).fit(broken, as_array(TARGETS))


@pytest.mark.parametrize(
    ("learner", "options"),
    [(DaskKernelClassifier, {"loss": "squared", "epochs": 2}), (DaskKernelRegressor, {})],
)
def test_chunks_are_kept_for_solvers_of_several_passes(monkeypatch, learner, options):
    """With solver="auto": the number of features decides, as it does for the plain estimator."""
    monkeypatch.setattr("kernelmill.learners.solvers.choice.MOST_EXACT_FEATURES", 32)
    kept = []
    monkeypatch.setattr("kernelmill.scale.pieces.Pieces.persist", lambda self: kept.append(1))
    y = as_array(LABELS if learner is DaskKernelClassifier else TARGETS)
    for n_components, is_exact in ((32, True), (64, False)):
        model = learner(Fastfood(n_components=n_components, random_state=0), alpha=0.1, **options)
        model.fit(as_array(ROWS), y)
        assert (kept == []) == is_exact
