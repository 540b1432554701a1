"""Principal components of many columns, in the fit of a table."""

import numpy as np
import pandas as pd
import pytest

import kernelmill
from kernelmill import PrincipalFourier, compare_table, fit_table
from kernelmill.files import read_model_file
from kernelmill.report.findings import columns_finding
from kernelmill.workflows.tuning.kernel_search import takes_directions
from kernelmill.workflows.tuning.map_choice import MapChoice


def draw_images(n_rows, n_columns=120):
    """Rows with a class that depends on six smooth patterns, among noise in every column."""
    rng = np.random.default_rng(0)
    places = np.linspace(0, np.pi, n_columns)
    patterns = np.sin(np.outer(np.arange(1, 7), places))
    heights = rng.normal(size=(n_rows, 6))
    rows = heights @ patterns + rng.normal(size=(n_rows, n_columns))
    label = np.where(heights[:, 0] * heights[:, 1] > 0.3, "yes", "no")
    table = pd.DataFrame(rows.round(4), columns=[f"p{place}" for place in range(n_columns)])
    return table.assign(label=label)


@pytest.fixture(scope="module")
def fitted():
    """A model of random features, which smaller tables do not have by default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelmill.workflows.tuning.settings._FEW_ROWS", 100)
        settings = {"kernel": "gaussian", "column_scales": False, "n_components": 64}
        settings |= {"solver": "sgd", "alpha": 1e-4}
        return fit_table(draw_images(800), "label", holdout=0.0, **settings)


def test_components_replace_columns_where_they_lower_the_error(fitted):
    features = fitted.learner.feature_map_
    assert isinstance(features, PrincipalFourier)
    assert features.directions_.shape == (64, 120)
    assert np.ndim(features.directions) == 2  # given, so that blocks of rows have the same ones
    assert fitted.summary.construction == "random features of 64 principal components"
    assert any(note.startswith("The kernel compares 64 principal") for note in fitted.notes)
    assert not any("length scale" in note for note in fitted.notes)
    chosen = [point for point in fitted.summary.tuning if point.chosen]
    assert [point.variant for point in chosen] == 2 * ["64 principal components"]
    assert {point.variant for point in fitted.summary.tuning} > {"", "steps, weight 10"}


def test_saved_and_loaded_it_predicts_the_same(fitted, tmp_path):
    rows = draw_images(100)
    fitted.save(tmp_path / "model.kmill", weights="float64")
    loaded = kernelmill.load(tmp_path / "model.kmill")
    assert loaded.predict(rows).tolist() == fitted.predict(rows).tolist()
    names = read_model_file(tmp_path / "model.kmill").tensors
    assert [name for name in names if "directions" in name] == ["learner/map/directions"]


def test_relevance_is_that_of_predictions():
    settings = {"feature_map": "principal_fourier", "n_components": 64, "tune": False}
    options = {"directions": np.eye(2, 6, k=1)}
    found = fit_table(draw_images(400, 6), "label", holdout=0.0, map_options=options, **settings)
    relevance = {each.name: each.relevance for each in found.column_relevance_}
    assert sorted(name for name in relevance if relevance[name] > 0) == ["p1", "p2"]
    assert max(relevance.values()) == 1.0
    first, second = sorted(("p1", "p2"), key=lambda name: -relevance[name])
    assert columns_finding(found.summary) == (
        f"Of 6 columns, ‘{first}’ and ‘{second}’ count most in predictions."  # noqa: RUF001
    )


@pytest.mark.parametrize("tune", [True, False])
def test_chosen_by_name(tune):
    settings = {"feature_map": "principal_fourier", "n_components": 64, "kernel": "gaussian"}
    found = fit_table(draw_images(200, 20), "label", holdout=0.0, tune=tune, **settings)
    assert found.learner.feature_map_.directions_.shape == (20, 20)
    assert np.ndim(found.learner.feature_map_.length_scale_) == 0


def test_when_they_are_considered():
    X = np.zeros((2, 100))
    assert takes_directions(MapChoice("auto"), X)
    assert takes_directions(MapChoice("auto", kernel="matern"), X)
    assert not takes_directions(MapChoice("auto"), X[:, :95])
    assert not takes_directions(MapChoice("auto", kernel="laplacian"), X)
    assert not takes_directions(MapChoice("fastfood"), X)


def test_other_kernels_are_rejected_before_the_table_is_read():
    with pytest.raises(ValueError, match=r"must be radial .* map principal_fourier"):
        MapChoice("principal_fourier", kernel="laplacian")


@pytest.mark.usefixtures("few_epochs")
def test_a_comparison_has_a_row_where_a_fit_tries_them(monkeypatch, shorten_tuning):
    shorten_tuning(monkeypatch)
    settings = {"n_components": [16, 32], "kernel": "gaussian", "exact_rows": 50}
    for most_landmark_rows, n_rows in ((100, 1), (20_000, 0)):
        monkeypatch.setattr("kernelmill.workflows.tuning.settings._FEW_ROWS", most_landmark_rows)
        found = compare_table(draw_images(300), "label", **settings)
        rows = [model for model in found.models if model.name == "principal_fourier"]
        assert len(rows) == n_rows
        assert all(row.n_components == 32 and row.family == "features" for row in rows)
