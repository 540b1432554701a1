"""Files that were written once and have to be read, with the same predictions, by every release.

``python tests/storage/test_model_file_golden.py`` wrote them. They are never written again: a new
format gets files of its own.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from kernelmill.learners import load_learner
from kernelmill.storage import read_model_file

FOLDER = Path(__file__).with_name("golden")
EXPECTED = FOLDER / "expected.json"
WEIGHTS = {"regressor-1.kmill": "float32", "classifier-1.kmill": "float16"}


def rows():
    """Some rows whose entries are simple numbers."""
    return (np.arange(60).reshape(12, 5) * 7 % 11 - 5) / 4


def said(model):
    """What a model says of the rows, by name."""
    if hasattr(model, "classes_"):
        return {
            "labels": model.predict(rows()).tolist(),
            "probabilities": model.predict_proba(rows()).tolist(),
        }
    mean, std = model.predict(rows(), return_std=True)
    return {"mean": mean.tolist(), "std": std.tolist()}


@pytest.mark.representative
@pytest.mark.parametrize("name", WEIGHTS)
def test_predictions(isa, name):
    expected = json.loads(EXPECTED.read_text())[name]
    found = said(load_learner(FOLDER / name))
    assert set(found) == set(expected)
    for key, value in expected.items():
        if key == "labels":
            assert found[key] == value
        else:
            # Sums of 32 products: another order of adding changes some last bits. The factor of
            # the standard deviations has a condition number below 1e3.
            np.testing.assert_allclose(found[key], value, rtol=1e-10, atol=1e-12)


@pytest.mark.representative
@pytest.mark.parametrize("name", WEIGHTS)
def test_saved_again_it_is_the_same_file(name, tmp_path):
    load_learner(FOLDER / name).save(tmp_path / name, weights=WEIGHTS[name])
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", WEIGHTS)
def test_what_is_inside(name):
    file = read_model_file(FOLDER / name)
    assert (file.kind, file.format_version) == ("learner", 1)
    assert (FOLDER / name).stat().st_size < 6000


def write():
    """Write the files, for a new format."""
    from kernelmill import Fastfood, KernelClassifier, KernelRegressor, TaylorSketch
    from kernelmill.kernels import Matern

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    features = Fastfood(Matern(1.5), n_components=32, length_scale=2.0, random_state=0)
    regressor = KernelRegressor(features, alpha=0.5).fit(X, np.sin(X[:, 0]) + X[:, 1] ** 2)
    regressor.save(FOLDER / "regressor-1.kmill", weights="float32")
    labels = np.array(["inside", "outside", "above"])
    y = labels[np.where(X[:, 0] > 1, 2, (X[:, 1] ** 2 > 0.5).astype(int))]
    features = TaylorSketch(48, length_scale=2.0)
    classifier = KernelClassifier(features, solver="lbfgs", alpha=1e-3, random_state=1).fit(X, y)
    classifier.save(FOLDER / "classifier-1.kmill", weights="float16")
    expected = {name: said(load_learner(FOLDER / name)) for name in WEIGHTS}
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    write()
