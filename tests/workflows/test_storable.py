"""What no model file can hold is found before the training."""

import numpy as np
import pytest

from kernelmill import RandomFourier, fit_table, load
from kernelmill.files import ModelFileError, model_file
from kernelmill.kernels import Spectrum
from kernelmill.workflows.training.plan import TrainingPlan

ROWS = np.random.default_rng(0).normal(size=(60, 2))
TABLE = {"a": ROWS[:, 0], "b": ROWS[:, 1], "y": ROWS[:, 0]}


@pytest.fixture
def untrained(monkeypatch):
    def train(*_, **__):
        raise AssertionError("it was trained")

    monkeypatch.setattr(TrainingPlan, "fit", train)


@pytest.mark.parametrize("limit", ["_MAX_RECORD", "_MAX_BYTES"])
def test_models_that_are_too_large_are_not_trained(untrained, monkeypatch, tmp_path, limit):
    monkeypatch.setattr(model_file, limit, 100)
    with pytest.raises(ModelFileError, match="the model could not be saved: the"):
        fit_table(TABLE, "y", tune=False, n_components=64, checkpoint=tmp_path / "state")
    with (
        pytest.warns(UserWarning, match="The model cannot be saved"),
        pytest.raises(AssertionError),
    ):
        fit_table(TABLE, "y", tune=False, n_components=64)


def test_functions_of_the_user_are_not_saved(untrained, tmp_path):
    spectrum = Spectrum(lambda stream, n, dim: stream.normals((n, dim)))
    feature_map = RandomFourier(spectrum, n_components=64, length_scale=1.0)
    with pytest.raises(ModelFileError, match="the model could not be saved"):
        fit_table(TABLE, "y", feature_map=feature_map, checkpoint=tmp_path / "state")


@pytest.mark.parametrize("size", [1e-32, 1e40])
def test_targets_of_unusual_sizes(tmp_path, size):
    """float32 does not hold such weights, so that they are stored in float64."""
    path = tmp_path / "model.kmill"
    model = fit_table({**TABLE, "y": size * TABLE["y"]}, "y", tune=False, n_components=64)
    model.save(path)
    found = load(path).predict(TABLE)
    np.testing.assert_allclose(found, model.predict(TABLE), rtol=1e-6)
    assert np.corrcoef(found / size, TABLE["y"])[0, 1] > 0.9
