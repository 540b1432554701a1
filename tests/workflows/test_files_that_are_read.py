"""Files that a model was fitted to are not overwritten by it, in Python either."""

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.errors import ArgumentError
from kernelmill.report import write_report
from kernelmill.workflows.training.plan import TrainingPlan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    for name in ("rows.csv", "validation.csv"):
        lines = (f"{a},{b},{'yes' if a > b else 'no'}" for a, b in rows)
        (tmp_path / name).write_text("a,b,y\n" + "\n".join(lines))
    (tmp_path / "link").symlink_to("rows.csv")
    (tmp_path / "new-link").symlink_to("state")
    return tmp_path


@pytest.fixture
def unchanged(folder):
    before = {path: path.read_bytes() for path in folder.glob("*.csv")}
    yield
    assert {path: path.read_bytes() for path in folder.glob("*.csv")} == before


SMALL = {"tune": False, "n_components": 16, "epochs": 1}


def test_save_keeps_tables_and_needs_another_name_than_the_checkpoint(folder, unchanged):
    model = fit_table(
        ["rows.csv"], "y", validation="validation.csv", checkpoint="new-link", **SMALL
    )
    for path in ("rows.csv", "link", folder / "validation.csv"):
        with pytest.raises(ArgumentError, match="path must not be a file that is read"):
            model.save(path)
    for path in ("state", "new-link"):  # it would be deleted at once
        with pytest.raises(ArgumentError, match="path must not be the checkpoint of the model"):
            model.save(path)
    model.save("model.kmill")
    with pytest.raises(ArgumentError, match="must not be a file that is read, got"):
        write_report("model.kmill", fit=model.summary, model="model.kmill")


@pytest.mark.parametrize("checkpoint", ["rows.csv", "link", "validation.csv"])
@pytest.mark.parametrize("solver", ["sgd", "exact"])  # which saves no state, but `save` deletes it
def test_a_checkpoint_is_no_table(folder, unchanged, checkpoint, solver):
    settings = {**SMALL, "solver": solver}
    if solver == "exact":
        settings |= {"loss": "squared", "epochs": None}
    with pytest.raises(ArgumentError, match="checkpoint must not be a file that is read"):
        fit_table("rows.csv", "y", validation="validation.csv", checkpoint=checkpoint, **settings)


def test_results_are_not_written_to_their_table(folder, unchanged):
    model = fit_table("rows.csv", "y", **SMALL)
    for write in (model.predict_table, model.transform_table):
        with pytest.raises(ArgumentError, match="out must not be a file that is read"):
            write("*.csv", out="validation.csv")


def test_a_missing_validation_table_is_found_before_training(folder, monkeypatch):
    def train(*_, **__):
        raise AssertionError("it was trained")

    monkeypatch.setattr(TrainingPlan, "fit", train)
    with pytest.raises(ValueError, match=r"no\.csv does not exist"):
        fit_table("rows.csv", "y", validation="no.csv", **SMALL)
