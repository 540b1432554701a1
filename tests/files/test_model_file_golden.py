"""Files that were written once and have to be read, with the same predictions, by every release.

They are never written again: a new format gets files of its own. There is at least one file for
each map.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import kernelmill
from kernelmill.files import model_file, read_model_file
from kernelmill.learners import load_learner
from kernelmill.maps.registry import MAPS

FOLDER = Path(__file__).with_name("golden")
EXPECTED = FOLDER / "expected.json"
WEIGHTS = {
    "regressor-1.kmill": "float32",
    "additive_fourier-1.kmill": "float32",
    "classifier-1.kmill": "float16",
    "count_sketch-1.kmill": "float16",
    "dot_product_fastfood-1.kmill": "float32",
    "fastfood_columns-1.kmill": "float32",
    "fastfood_factors-1.kmill": "float32",
    "gaussian_templates-1.kmill": "float16",
    "nystroem-1.kmill": "float32",
    "principal_fourier-1.kmill": "float32",
    "random_fourier-1.kmill": "float64",
    "random_maclaurin-1.kmill": "float64",
    "tensor_sketch-1.kmill": "float32",
}
# The second one has rare categories, weights, folds and a second fit, the third one dates and codes
# of missing values, the fourth one a ranking and losses of held-out rows.
TABLES = ["table-1.kmill", "table-2.kmill", "table-3.kmill", "table-4.kmill"]


def rows():
    """Some rows whose entries are simple numbers."""
    return (np.arange(60).reshape(12, 5) * 7 % 11 - 5) / 4


def predictions(model):
    """The predictions of a model for the rows, by name."""
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
    found = predictions(load_learner(FOLDER / name))
    assert set(found) == set(expected)
    for key, value in expected.items():
        if key == "labels":
            assert found[key] == value
        else:
            # Sums of up to 32 products: another order of adding changes some last bits. Factors
            # (of standard deviations, of the kernel at landmarks) have a condition below 1e3.
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


def test_directions_that_were_stored_twice(tmp_path):
    """Files had the directions of PrincipalFourier as a parameter and as an attribute."""
    name, new = "given_directions-1.kmill", tmp_path / "new.kmill"
    model = load_learner(FOLDER / name)
    for key, value in json.loads(EXPECTED.read_text())[name].items():
        np.testing.assert_allclose(predictions(model)[key], value, rtol=1e-10, atol=1e-12)
    model.save(new)
    old, once = (read_model_file(path).tensors for path in (FOLDER / name, new))
    assert set(old) - set(once) == {"feature_map/directions"}
    again = load_learner(new)
    assert predictions(again) == predictions(model)
    np.testing.assert_array_equal(again.feature_map.directions, old["map/directions"])
    again.feature_map.set_params(directions=2 * again.feature_map.directions)
    again.save(new)  # other directions than the fitted ones
    assert set(read_model_file(new).tensors) == set(old)
    np.testing.assert_array_equal(
        load_learner(new).feature_map.directions, 2 * old["map/directions"]
    )


def test_every_map_has_a_file():
    names = {read_model_file(FOLDER / name).record["map"]["map"] for name in WEIGHTS}
    assert names == set(MAPS)


@pytest.mark.parametrize("name", TABLES)
def test_a_model_of_a_table(name, tmp_path):
    model = kernelmill.load(FOLDER / name)
    expected = json.loads(EXPECTED.read_text())[name]["labels"]
    assert model.predict((FOLDER / name).with_suffix(".csv")).tolist() == expected
    model.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_what_the_second_table_adds():
    model = kernelmill.load(FOLDER / "table-2.kmill")
    assert model.encoder.columns[1].rare == ("Bonn",)
    assert (model.summary.weights, model.summary.class_weight) == ("w", "in: 2")
    assert model.summary.cross_validation.n_folds == 3
    assert model.summary.refitted


def test_what_the_third_table_adds():
    model = kernelmill.load(FOLDER / "table-3.kmill")
    assert model.encoder.columns[0].format == "day first"
    assert model.inputs.missing_codes == ("-",)


def test_what_the_fourth_table_adds():
    summary = kernelmill.load(FOLDER / "table-4.kmill").summary
    assert summary.held_out.ranking.positive == "yes"
    assert all(point.held_out_loss > 0 for point in summary.learning_curve)


def test_a_record_in_a_tensor(tmp_path, monkeypatch):
    """Format 2: the model of the first table, as if its record were too long for the header."""
    file = FOLDER / "long_record-2.kmill"
    found = read_model_file(file)
    assert found.format_version == 2
    assert found.record == read_model_file(FOLDER / "table-1.kmill").record
    model = kernelmill.load(file)
    expected = json.loads(EXPECTED.read_text())["table-1.kmill"]["labels"]
    assert model.predict(FOLDER / "table-1.csv").tolist() == expected
    monkeypatch.setattr(model_file, "_MAX_INLINE", 1000)
    model.save(tmp_path / file.name)
    assert (tmp_path / file.name).read_bytes() == file.read_bytes()
