"""What a user has to know is said: rare classes, unseen categories, outlying values."""

import signal
import threading

import numpy as np
import pytest

import kernelmill
from kernelmill import fit_table
from kernelmill.encoding.columns import CategoryEncoding
from kernelmill.learners import Run
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.records import ComparedModel, Comparison

QUICK = {"tune": False, "length_scale": 1.0, "alpha": 1e-4, "epochs": 4, "n_components": 32}


def make_columns(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    color = np.where(rng.random(n_rows) > 0.5, "red", "blue").astype(object)
    label = np.where(a * a + b * b < 1.4, "in", "out").astype(object)
    return {"a": a, "b": b, "color": color, "place": label}


def test_classes_with_hardly_any_rows_have_a_note():
    columns = make_columns()
    columns["place"][5] = "inn"
    with pytest.warns(UserWarning, match=r"learn from: 'inn' \(1 row\) of 300 rows; correct"):
        fit_table(columns, "place", **QUICK)


@pytest.mark.filterwarnings("ignore:Some classes have too few rows")
@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_rows_of_rare_classes_stay_in_training(memory):
    columns = make_columns()
    columns["place"][[5, 90, 91, 200]] = ["solitary", "pair", "pair", "other"]
    notes = set()
    for seed in range(12):
        model = fit_table(columns, "place", random_state=seed, memory=memory, **QUICK)
        assert model.learner.classes_.tolist() == ["in", "other", "out", "pair", "solitary"]
        notes.update(note for note in model.summary.notes if "too rare" in note)
        assert model.summary.n_rows + model.summary.n_held_out == 300
    # Each of three classes is held out with probability 0.1, 0.1 and 0.01 in one of 12 fits: none
    # ever is with probability 0.07 for random seeds; these are fixed.
    assert any("'solitary' (1 row)" in note or "'other' (1 row)" in note for note in notes)


def test_unseen_categories_are_counted(tmp_path):
    columns = make_columns()
    columns["color"][7] = "mauve"  # pooled, but seen
    model = fit_table(columns, "place", **QUICK)
    assert model.encoder.columns[2].rare == ("mauve",)
    model.save(tmp_path / "model.kmill")
    new = dict(columns, color=columns["color"].copy())
    new["color"][:4] = ["green", "green", "teal", "mauve"]
    message = (
        "Column 'color' has categories in 3 of 300 rows that did not occur in training: "
        r"'green' \(2\), 'teal' \(1\)."
    )
    for each in (model, kernelmill.load(tmp_path / "model.kmill")):
        with pytest.warns(UserWarning, match=message):
            each.predict_table(new)
        assert sum("did not occur" in note for note in each.evaluate_table(new).notes) == 1
        assert not each.evaluate_table(columns).notes


def test_pooled_categories_of_older_files_are_not_called_new():
    values = kernelmill.io.open_table({"c": ["x", "y", None]})
    (block,) = values.blocks()
    column = block.data.column("c")
    assert not CategoryEncoding("c", ("a",), others=True).count_unseen(column)
    assert CategoryEncoding("c", ("a",)).count_unseen(column) == {"x": 1, "y": 1}
    assert CategoryEncoding("c", ("y",), True, rare=("x",)).count_unseen(column) == {}


@pytest.mark.parametrize("transform", ["auto", "none"])
def test_an_outlying_value_is_named(transform):
    columns = make_columns()
    columns["a"][17] = -1e12
    message = "Column 'a' has the value -1e12, but 95 % of its values are"
    with pytest.warns(UserWarning, match=message):
        notes = fit_table(columns, "place", transform=transform, **QUICK).summary.notes
    assert any(note.startswith(message) for note in notes)
    columns["a"][17] = -8.0
    assert not fit_table(columns, "place", transform=transform, **QUICK).summary.notes


def test_one_constant_column():
    columns = make_columns() | {"c": np.ones(300)}
    assert fit_table(columns, "place", **QUICK).summary.notes == [
        "1 constant column is left out: 'c'."
    ]


class Interrupting(SilentProgress):
    """Sends SIGINT when the training begins."""

    def __init__(self):
        self.notes = []

    def advance(self, amount, status=""):
        if status.startswith("pass 2"):
            signal.raise_signal(signal.SIGINT)

    def note(self, message):
        self.notes.append(str(message))


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
def test_an_interrupt_saves_a_checkpoint(tmp_path):
    columns = make_columns(600)
    path = tmp_path / "state"
    whole = fit_table(columns, "place", **QUICK)
    progress = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        fit_table(columns, "place", checkpoint=path, progress=progress, **QUICK)
    assert path.exists()
    assert progress.notes[-1].startswith("Interrupted: saving a checkpoint")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resumed = fit_table(columns, "place", checkpoint=path, **QUICK)
    np.testing.assert_array_equal(resumed.learner.coef_, whole.learner.coef_)


def test_an_interrupt_without_a_checkpoint_is_not_deferred():
    with Run().save_on_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_results_in_notebooks_are_tables():
    model = ComparedModel("fast<food", "features", 64, 10, 0.25, 1.0, 0.1, None)
    comparison = Comparison("classification", "a.csv", "y", 10, 5, "error", [model] * 50)
    html = comparison._repr_html_()
    assert "<table>" in html
    assert "fast&lt;food" in html
    assert "40 of 50" in html
    summary = fit_table(make_columns(), "place", **QUICK).summary
    assert "<summary>held out</summary>" in summary._repr_html_()
