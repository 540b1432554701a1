"""Comparison of models."""

import json

import numpy as np
import pytest

from kernelmill import compare_table
from kernelmill.io import TableError
from kernelmill.workflows.records import Comparison

from .conftest import write_rings


def test_classification(folder, rings_csv):
    found = compare_table(rings_csv, "place", n_components=(16, 64, 128), exact_rows=500)
    assert [(m.name, m.n_components) for m in found.models] == [
        ("linear", None),
        ("fastfood", 16),
        ("fastfood", 64),
        ("fastfood", 128),
        ("random_fourier", 64),
        ("tensor_sketch", 64),
        ("exact kernel", None),
    ]
    errors = [model.error for model in found.models]
    assert errors[3] < 0.05
    assert errors[0] > 0.2
    assert errors[-1] < 0.08
    assert found.models[-1].n_train == 500
    assert found.models[0].n_train == found.n_train
    assert 0.2 < found.n_test / 1500 < 0.3
    assert all(m.fit_seconds > 0 and m.predict_seconds > 0 for m in found.models)
    assert found.settings == {}
    again = Comparison.from_record(json.loads(json.dumps(found.to_record(), allow_nan=False)))
    assert again == found


@pytest.mark.parametrize("kernel", [None, "matern"])
def test_regression(waves_csv, kernel):
    found = compare_table(waves_csv, "y", n_components=[64], kernel=kernel)
    by_name = {model.name: model.error for model in found.models}
    assert found.error_name == "rmse"
    assert by_name["fastfood"] < 0.13 < by_name["linear"]
    assert by_name["exact kernel"] < 0.13


def test_all_models_can_learn(folder):
    """An odd function of one column, far from zero: each can learn it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    path = folder / "odd.csv"
    rows = (f"{a},{b},{100 + 3 * a + 0.1 * b}" for a, b in x)
    path.write_text("a,b,y\n" + "\n".join(rows))
    found = compare_table(path, "y", task="regression", drop=(), n_components=[128])
    assert all(model.error < 0.3 for model in found.models), found.models
    assert found.settings == {"task": "regression"}


def test_bad_requests(folder, rings_csv):
    with pytest.raises(ValueError, match="at least one number"):
        compare_table(rings_csv, "place", n_components=[])
    with pytest.raises(ValueError, match="missing must be one of"):
        compare_table(rings_csv, "place", missing="drop")
    few = write_rings(folder / "fifty.csv", 50)
    with pytest.raises(TableError, match="at least 100"):
        compare_table(few, "place")
