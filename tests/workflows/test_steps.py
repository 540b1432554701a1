"""Step functions of single columns, and L-BFGS, in the fit of a table."""

import numpy as np
import pandas as pd
import pytest

import kernelmill
from kernelmill import AdditiveFourier, fit_table
from kernelmill.files import read_model_file, without_prefix
from kernelmill.learners.prediction import read_learner
from kernelmill.maps.registry import describe_construction
from kernelmill.report.findings import columns_finding


def draw_amounts(n_rows):
    """Rows whose class depends on thresholds of an amount, and a little on another column."""
    rng = np.random.default_rng(0)
    amount, noise = rng.exponential(1000.0, n_rows).round(), rng.normal(size=n_rows)
    inside = ((amount > 300) & (amount < 500)) | ((amount > 1200) & (amount < 1300))
    label = np.where(inside ^ (noise > 2), "in", "out")
    kind = rng.choice(["a", "b", "c"], n_rows)
    return pd.DataFrame({"amount": amount, "noise": noise, "kind": kind, "label": label})


@pytest.fixture(scope="module")
def fitted():
    """A model of random features, which smaller tables do not have by default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelmill.workflows.tuning.settings._FEW_ROWS", 400)
        patch.setattr("kernelmill.learners.solvers.choice._FEWEST_MINIMIZED_ROWS", 400)
        settings = {"kernel": "gaussian", "column_scales": False, "n_components": 128}
        return fit_table(draw_amounts(1300), "label", holdout=0.0, **settings)


def test_steps_are_added_and_placed_by_the_sample(fitted):
    features = fitted.learner.feature_map_
    assert isinstance(features, AdditiveFourier)
    assert fitted.summary.map_name == "additive_fourier"
    assert len(features.steps_) <= 128
    assert np.ndim(features.steps) == 2  # given, so that blocks of rows have the same ones
    assert any(note.startswith("Added step functions of single columns") for note in fitted.notes)


def test_classifiers_on_random_features_are_trained_to_the_minimum(fitted):
    assert fitted.summary.solver == "lbfgs"
    learner, rows = fitted.learner, draw_amounts(1300)
    X = np.vstack([np.asarray(X) for X, _, _ in fitted._encode(rows, {})])
    margins = np.where(rows["label"] == learner.classes_[1], 1, -1) * learner.decision_function(X)
    slopes = -np.where(rows["label"] == learner.classes_[1], 1, -1) / (1 + np.exp(margins))
    gradient = learner.feature_map_.transform(X).T @ slopes / len(X)
    gradient += learner.alpha_ * learner.coef_[0]
    assert np.abs(gradient).max() < 1e-3
    assert np.abs(slopes.mean()) < 1e-3


def test_saved_and_loaded_it_predicts_the_same(fitted, tmp_path):
    rows = draw_amounts(200)
    fitted.save(tmp_path / "model.kmill", weights="float64")
    loaded = kernelmill.load(tmp_path / "model.kmill")
    assert loaded.predict(rows).tolist() == fitted.predict(rows).tolist()
    found = loaded.learner.feature_map_
    np.testing.assert_array_equal(found.steps_, fitted.learner.feature_map_.steps_)


def test_relevance_includes_what_steps_contribute(tmp_path):
    settings = {"feature_map": "additive_fourier", "n_components": 64, "tune": False}
    scales = [1e6, 1.0, 1.0, 1.0, 1.0]  # the kernel hardly sees the amount
    rows = draw_amounts(600).assign(amount=lambda table: table["amount"].clip(upper=2000))
    found = fit_table(rows, "label", holdout=0.0, length_scale=scales, transform="none", **settings)
    first = found.column_relevance_[0]
    assert (first.name, first.relevance, first.low) == ("amount", 1.0, None)
    assert found.summary.partial_dependence[0].name == "amount"
    assert "most in predictions" in columns_finding(found.summary)
    expected = "random features, and 31 steps of single columns with weight 1"
    assert found.summary.construction == expected
    found.save(tmp_path / "model.kmill")
    record = read_model_file(tmp_path / "model.kmill")
    learner = read_learner(record.record["learner"], without_prefix("learner", record.tensors))
    assert describe_construction(learner[2].feature_map) == expected


@pytest.mark.parametrize("options", [{"epochs": 2}, {"solver": "sgd"}, {"loss": "hinge"}])
def test_descent_where_it_is_asked_for(options):
    settings = {
        "feature_map": "additive_fourier",
        "n_components": 64,
        "length_scale": 3.0,
        "alpha": 1e-4,
    }
    found = fit_table(draw_amounts(2200), "label", holdout=0.0, **settings, **options)
    assert found.summary.solver == "sgd"
