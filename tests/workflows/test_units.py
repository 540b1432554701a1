"""Tables whose columns have one unit: when they are divided by one number, and what follows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import kernelmill

NOTE = "divided by the same number"


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return pd.DataFrame(X, columns=[f"p{j}" for j in range(64)]).assign(digit=y)


def fit(table, target, **settings):
    return kernelmill.fit_table(
        table, target, n_components=128, kernel="gaussian", column_scales=False, **settings
    )


def has_note(model):
    return any(NOTE in str(note) for note in model.notes)


def test_pixels_have_one_unit(digits, tmp_path):
    model = fit(digits[:700], "digit")
    assert has_note(model)
    scales = {each.scale for each in model.encoder.columns} - {0.0}
    assert len(scales) == 1
    assert not model.encoder.columns[20].both
    assert f"divided by {scales.pop():.3g}" in model.summary.columns[20].detail
    rest = digits[700:]
    predicted = model.predict(rest.drop(columns="digit"))
    standardized = fit(digits[:700], "digit", transform="none")
    assert not has_note(standardized)
    errors = [
        float(np.mean(found != rest["digit"]))
        for found in (predicted, standardized.predict(rest.drop(columns="digit")))
    ]
    assert errors[0] < errors[1]
    model.save(tmp_path / "digits.kmill")
    loaded = kernelmill.load(tmp_path / "digits.kmill")
    np.testing.assert_array_equal(loaded.predict(rest), predicted)
    row = rest.drop(columns="digit").iloc[0].to_dict()
    assert model.predict_row(row) == predicted[0]
    assert pickle.loads(pickle.dumps(model)).predict_row(row) == predicted[0]


def test_missing_values_and_categories_do_not_matter(digits):
    table = digits[:700].copy()
    table["site"] = ["a", "b"] * 350
    table.loc[5, "p20"] = np.nan
    model = fit(table, "digit", missing="impute")
    assert has_note(model)


def test_arrays_have_one_unit_too(digits):
    X, y = digits.drop(columns="digit").to_numpy()[:500], digits["digit"].to_numpy()[:500]
    model = fit((X, y), None)
    assert has_note(model)
    assert len(set(model.encoder.scale.tolist())) == 1


@pytest.mark.parametrize("settings", [{"tune": False}, {"length_scale": 3.0}])
def test_settings_that_are_given_are_for_standardized_columns(digits, settings):
    model = fit(digits[:300], "digit", **settings)
    assert not has_note(model)
    assert len({each.scale for each in model.encoder.columns}) > 30


def test_small_columns_that_matter_are_standardized():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (600, 12))
    X[:, :3] *= 0.1  # only these matter
    y = np.sin(40 * X[:, 0]) + np.cos(40 * X[:, 1]) + 10 * X[:, 2]
    assert not has_note(fit((X, y), None))
    weights = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)]).assign(
        y=y + X[:, 3:].sum(axis=1), weight=rng.uniform(0.5, 2, 600)
    )
    assert np.isfinite(fit(weights, "y", weights="weight").summary.held_out.metrics["rmse"])


def test_size_of_targets_does_not_matter(digits):
    X, y = digits.drop(columns="digit").to_numpy()[:300], digits["digit"].to_numpy()[:300] * 1.0
    noted = {has_note(fit((X, y * size), None, task="regression")) for size in (1.0, 1e-100, 1e60)}
    assert len(noted) == 1


def test_tables_with_thousands_of_columns_have_one_length_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4100))
    model = kernelmill.fit_table((X, X[:, 0] > 0), n_components=32, kernel="gaussian", folds=None)
    assert np.ndim(model.learner.feature_map_.length_scale_) == 0
