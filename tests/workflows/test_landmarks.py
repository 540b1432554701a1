"""Tables of few rows get Nyström features, unless the user or memory decides otherwise."""

import numpy as np
import pytest
import scipy.sparse as sp

import kernelmill
from kernelmill import Fastfood, fit_table
from kernelmill.workflows import tuning
from kernelmill.workflows.map_choice import MapChoice

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
    model = fit_table(waves, "y", **QUICK, **options)
    assert model.summary.map_name == name
    assert model.summary.n_components <= 64


def test_what_auto_stands_for():
    """By the number of rows, and of columns: landmarks are dense."""
    X = np.zeros((10, 3))

    def name(X, n_rows, feature_map="auto", **options):
        choice = MapChoice(feature_map, None, options)
        return tuning._map_of_auto(choice, X, n_rows).feature_map

    assert name(X, 20_000) == "nystroem"
    assert name(X, 20_001) == "auto"
    assert name(X, 100, feature_map="random_fourier") == "random_fourier"
    assert name(X, 100, structure="dct") == "auto"
    assert name(np.zeros((10, 2000)), 100) == "auto"
    assert name(sp.csr_array(X), 100) == "auto"
