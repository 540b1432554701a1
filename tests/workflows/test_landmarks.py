"""Tables of few rows get Nyström features, unless the user or memory decides otherwise."""

import numpy as np
import pytest
import scipy.sparse as sp

import kernelmill
from kernelmill import Fastfood, fit_table
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.tuning import settings as tuning
from kernelmill.workflows.tuning.kernel_search import (
    LINE,
    Candidate,
    KernelSearch,
    Sample,
    average_scales,
)
from kernelmill.workflows.tuning.map_choice import MapChoice
from kernelmill.workflows.tuning.memory import TuningMemory
from kernelmill.workflows.tuning.refinement import Refinement

from .conftest import write_rings, write_waves

QUICK = {"n_components": 64, "random_state": 0, "column_scales": False, "holdout": 0.1}


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    return write_waves(tmp_path_factory.mktemp("landmarks") / "waves.csv", 300)


@pytest.fixture(scope="module")
def rings(tmp_path_factory):
    return write_rings(tmp_path_factory.mktemp("landmarks") / "rings.csv", 300)


@pytest.mark.parametrize("data", ["waves", "rings"])
def test_few_rows(request, data, tmp_path):
    path = request.getfixturevalue(data)
    size = None if data == "waves" else 100  # the number is searched for in one of them
    target = "y" if data == "waves" else "place"
    model = fit_table(path, target, n_components=size, alpha=1e-3, random_state=0)
    assert model.summary.map_name == "nystroem"
    assert model.learner.feature_map_.landmarks_.shape[0] == model.summary.n_components
    assert model.summary.n_components == size or 100 < model.summary.n_components <= 300
    model.save(tmp_path / "model.kmill")
    again = kernelmill.load(tmp_path / "model.kmill")
    np.testing.assert_array_equal(again.predict(path), model.predict(path))
    assert again.summary.map_name == "nystroem"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"feature_map": "fastfood"}, "fastfood"),
        ({"feature_map": Fastfood(structure="dct")}, "fastfood"),
        ({"map_options": {"features": "cos_phase"}}, "fastfood"),
        ({"tune": False}, "fastfood"),
        ({"length_scale": 1.0}, "fastfood"),
        ({"memory": 0}, "fastfood"),
        ({"feature_map": "nystroem", "memory": 0, "kernel": "matern"}, "nystroem"),
    ],
    ids=repr,
)
def test_what_keeps_random_features(waves, options, name):
    is_named = isinstance(options.get("feature_map", ""), str)
    kernel = {"kernel": "gaussian"} if is_named else {}
    model = fit_table(waves, "y", **{**QUICK, **kernel, **options})
    assert model.summary.map_name == name
    assert model.summary.n_components <= 64


def test_what_auto_stands_for():
    """By the number of rows, and of columns: landmarks are dense."""
    X = np.zeros((10, 3))

    def name(X, n_rows, feature_map="auto", n_classes=2, budget=60.0, **options):
        choice = MapChoice(feature_map, None, options)
        return tuning._map_of_auto(choice, X, n_rows, n_classes, budget).feature_map

    assert name(X, 20_000) == "nystroem"
    assert name(X, 20_001) == "auto"
    assert name(X, 20_001, n_classes=None) == "nystroem"
    assert name(X, 78_000, n_classes=None) == "nystroem"
    assert name(X, 79_000, n_classes=None) == "auto"
    assert name(X, 79_000, n_classes=None, budget=120.0) == "nystroem"
    assert name(X, 40_000, n_classes=None, budget=10.0) == "auto"
    assert name(X, 100, feature_map="random_fourier") == "random_fourier"
    assert name(X, 100, structure="dct") == "auto"
    assert name(np.zeros((10, 2000)), 100) == "auto"
    assert name(sp.csr_array(X), 100) == "auto"


@pytest.mark.usefixtures("full_tuning")
def test_a_linear_table_gets_a_linear_kernel():
    """With noise; the errors of a model that has to learn the line as a curve are larger."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(200)
    model = fit_table((X, y), kernel="exponential", random_state=0, holdout=0.0)
    assert model.learner.feature_map_.linear >= 1
    assert any("linear" in note for note in model.summary.notes)
    assert "linear" in model.summary.construction


@pytest.mark.usefixtures("full_tuning")
def test_classes_that_a_line_separates():
    """The log loss sees it, squared errors do not: a linear kernel with one length scale."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    y = np.where(X.sum(axis=1) + 0.3 * rng.standard_normal(150) > 0, "a", "b")
    model = fit_table((X, y), kernel="exponential", random_state=0, holdout=0.0)
    assert model.learner.feature_map_.linear == LINE
    assert np.ndim(model.learner.feature_map_.length_scale_) == 0
    assert any("kernel is linear" in note for note in model.summary.notes)
    assert (model.summary.kernel, model.summary.length_scale) == ("linear", None)


@pytest.mark.usefixtures("full_tuning")
def test_a_wave_gets_none():
    X = np.random.default_rng(0).uniform(-3, 3, size=(200, 1))
    y = np.cos(3 * X[:, 0])
    model = fit_table((X, y), kernel="gaussian", random_state=0, holdout=0.0)
    assert model.learner.feature_map_.linear == 0


@pytest.mark.usefixtures("full_tuning")
def test_each_quarter_of_few_rows_validates(monkeypatch):
    """Every row once; the last quarter alone where there are more rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 101)
    sample = Sample.of(rng.standard_normal((101, 2)), codes, 2)

    def validated():
        refinement = Refinement(
            MapChoice("nystroem"),
            sample,
            scales=(1.0,) * 4,
            n_components=16,
            loss="log_loss",
            seed=0,
            n_threads=1,
            n_rows=101,
            budget=60.0,
            points=[],
            progress=None,
            memory=None,
        )
        return [fold.validation_X for fold in refinement._folds]

    np.testing.assert_array_equal(np.concatenate(validated()), sample.X)
    monkeypatch.setattr("kernelmill.workflows.tuning.kernel_search.MOST_FOLDED_ROWS", 100)
    (last,) = validated()
    np.testing.assert_array_equal(last, sample.X[sample.n_train :])


@pytest.mark.usefixtures("full_tuning")
def test_length_scales_of_a_fold_do_not_depend_on_its_rows():
    """Rows that validate are unseen: their targets change the length scales of other folds only."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(80)
    first_quarter = np.arange(80) < 20

    def learn(targets):
        sample = Sample.of(X, targets, None)
        search = KernelSearch(
            MapChoice("nystroem", "gaussian"), sample, 0, 1, [], SilentProgress(), TuningMemory()
        )
        scales = np.array([0.5, 2.0, 2.0])
        return search.with_folds(Candidate(MapChoice("nystroem", "gaussian"), scales), None).folds

    folds, changed = learn(y), learn(np.where(first_quarter, -y, y))
    assert len(folds) == 4
    np.testing.assert_array_equal(folds[0], changed[0])
    assert not np.array_equal(folds[1], changed[1])
    mean = average_scales(folds)
    assert np.all(mean[0] < mean[1:])  # the wave is in the first column
    np.testing.assert_allclose(np.log(mean).mean(), np.log(folds[-1]).mean())


@pytest.mark.usefixtures("full_tuning")
def test_the_penalty_is_chosen_again_by_all_rows(monkeypatch):
    """Leave-one-out errors of a few rows only say where to look."""
    monkeypatch.setattr("kernelmill.workflows.tuning.kernel_search.MOST_COMPARING_ROWS", 60)
    monkeypatch.setattr("kernelmill.workflows.tuning.settings.MOST_COMPARING_ROWS", 60)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = X[:, 0] + rng.standard_normal(300)
    options = {"kernel": "gaussian", **QUICK}
    model = fit_table((X, y), **options)
    assert len(model.learner.alphas_) == 5
    assert model.learner.alpha_ == model.learner.alphas_[np.argmin(model.learner.scores_)]
    assert not hasattr(fit_table((X, y), alpha=1.0, **options).learner, "alphas_")


@pytest.mark.usefixtures("full_tuning")
def test_the_penalty_is_tuned_at_the_number_of_features_that_is_given(monkeypatch):
    monkeypatch.setattr("kernelmill.workflows.tuning.refinement._REFINING_COMPONENTS", 32)
    monkeypatch.setattr("kernelmill.workflows.tuning.refinement._ROWS_TO_SEE", 500)
    monkeypatch.setattr(
        "kernelmill.workflows.tuning.refinement._SECONDS_OF_FEATURE", 2e-6
    )  # 0.6 s for the larger one
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(X[:, 0] > 0, "p", "n")}
    settings = {"feature_map": "fastfood", "kernel": "gaussian", "length_scale": 2.0, "epochs": 2}
    sizes = {}
    for budget in (60.0, 0.5):
        fit = fit_table(columns, "y", n_components=48, budget=budget, **settings).summary
        sizes[budget] = {
            point.n_components for point in fit.tuning if point.criterion == "log loss"
        }
        best = min(
            (point for point in fit.tuning if point.n_components == max(sizes[budget])),
            key=lambda point: point.error,
        )
        (chosen,) = (point for point in fit.tuning if point.chosen)
        assert (chosen.n_components, chosen.alpha) == (max(sizes[budget]), fit.alpha)
        # A weaker penalty has to lower the loss by half a percent.
        assert fit.alpha >= best.alpha * 0.999
    assert sizes == {60.0: {32, 48}, 0.5: {32}}


@pytest.mark.usefixtures("full_tuning")
def test_the_penalty_suits_the_number_of_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    columns = {"a": x[:, 0], "b": x[:, 1], "y": np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=300)}
    options = {"kernel": "gaussian", "column_scales": False}
    model = kernelmill.fit_table(columns, "y", n_components=32, **options)
    tried = [point for point in model.summary.tuning if point.n_components == 32]
    best = min(tried, key=lambda point: point.error)
    assert model.summary.alpha == best.alpha
    assert [point for point in model.summary.tuning if point.chosen] == [best]
    many = {"n_components": 1024, "feature_map": "fastfood", "budget": 0.01}
    model = kernelmill.fit_table(columns, "y", **many, **options)
    note = "The penalty was tuned with 270 of 1,024 features, since more would take longer"
    assert any(each.startswith(note) for each in model.summary.notes), model.summary.notes
