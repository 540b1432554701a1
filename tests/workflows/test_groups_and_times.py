"""Whole groups are held out, or the latest rows, and errors are those of new groups or days."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from kernelmill import compare_table, diagnose_table, fit_table
from kernelmill.encoding.row_keys import TimeKeys
from kernelmill.errors import ArgumentError, ArgumentTypeError, Doubt
from kernelmill.io import TableError, open_table
from kernelmill.learners import CheckpointError
from kernelmill.random import Stream
from kernelmill.report.usage import fit_lines
from kernelmill.runtime.progress import SilentProgress
from kernelmill.workflows.records import FitSummary, RowDivision
from kernelmill.workflows.splits import KeyCounts, choose_latest, cut_windows, divide_sample
from kernelmill.workflows.training.encoded_rows import encode_table
from kernelmill.workflows.training.survey import open_inputs, survey_table

QUICK = {"tune": False, "length_scale": 1.0, "alpha": 1e-3, "n_components": 64}


def make_patients(n_patients=100, n_rows=6):
    """Rows of a patient are near each other, and have one label, which is noise."""
    rng = np.random.default_rng(3)
    patient = rng.permutation(np.repeat(np.arange(n_patients), n_rows))
    places = 5 * rng.normal(size=(n_patients, 2))
    X = places[patient] + 0.1 * rng.normal(size=(len(patient), 2))
    label = rng.integers(0, 2, n_patients)[patient]
    return {"patient": patient, "a": X[:, 0], "b": X[:, 1], "ill": np.array(["no", "yes"])[label]}


@pytest.mark.representative
@pytest.mark.parametrize("memory", [0, 1 << 28])
def test_errors_are_those_of_new_groups(memory):
    """50 held-out patients, 100 in folds: an error below 0.2 has a probability of 1e-5, or 1e-10.

    With random rows, the other rows of the patient tell the label.
    """
    options = {"n_components": 300, "length_scale": 0.1, "alpha": 1e-6, "epochs": 20}
    options |= {"feature_map": "nystroem", "holdout": 0.5, "memory": memory}
    model = fit_table(make_patients(), "ill", groups="patient", folds=4, **options)
    summary = model.summary
    assert summary.held_out.metrics["error"] > 0.2
    assert summary.cross_validation.mean > 0.2
    assert [column.name for column in summary.columns] == ["a", "b"]
    assert (summary.n_rows, summary.n_held_out) == (300, 300)
    assert summary.division == RowDivision("groups", "patient", 100, 50)
    note = "Rows with the same value of column 'patient', which is not an input, stay together: "
    assert note + "100 groups, of which 50 are held out." in summary.notes
    assert len(model.predict({"a": [0.1], "b": [0.2]})) == 1
    random = fit_table(make_patients(), "ill", drop=["patient"], **options)
    assert random.summary.held_out.metrics["error"] < 0.1


def test_tuning_keeps_groups_together():
    """The log loss of chance is 0.69, the squared error of signs 1; each has 25 patients or more.

    Settings that use the other rows of a patient would have 0.1 or less.
    """
    summary = fit_table(
        make_patients(), "ill", groups="patient", n_components=128, budget=5.0
    ).summary
    losses = [point.error for point in summary.tuning if point.criterion == "log loss"]
    errors = [point.error for point in summary.tuning if point.criterion == "squared error"]
    assert min(losses) > 0.5
    assert min(errors) > 0.7


@pytest.mark.usefixtures("few_epochs")
def test_comparisons_keep_groups_together():
    """25 test patients: an error below 0.15 has a probability of 1e-4."""
    found = compare_table(make_patients(), "ill", groups="patient", n_components=[64])
    errors = {model.name: model.error for model in found.models}
    assert min(errors.values()) > 0.15, errors
    command, program = fit_lines(replace(found, in_memory=False), "ill.kmill")
    assert "--group patient" in command
    assert "groups='patient'" in program
    assert found.division == RowDivision("groups", "patient", 100, 25)


def held_out_rows(source, target="y", *, holdout=0.3, missing="error", **options):
    """The survey, and the numbers of the held-out rows and of the training rows."""
    division = {each: options.pop(each, None) for each in ("groups", "holdout_last")}
    drop = options.pop("drop", [])
    table, inputs, _, division = open_inputs(
        source, target, "regression", options, drop, **division
    )
    progress = SilentProgress()
    found = survey_table(
        table,
        inputs,
        task="regression",
        missing=missing,
        holdout=holdout,
        stream=Stream.from_seed(0),
        progress=progress,
        division=division,
    )
    rows = encode_table(table, found, 1 << 30, progress)
    return found, rows.held_out.target, rows.training.target


def test_groups_of_every_type_are_held_out_alike(tmp_path):
    """The targets are row numbers. Groups are a column of any kind, or an array."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 30, 300)
    frame = pd.DataFrame({"x": rng.normal(size=300), "g": number, "y": np.arange(300.0)})
    words = frame.assign(g=[f"patient {each}" for each in number])
    days = frame.assign(g=pd.Timestamp("2024-01-01") + pd.to_timedelta(number, "D"))
    expected = {}
    for name, source in (("numbers", frame), ("words", words), ("days", days)):
        _, out, training = held_out_rows(source, groups="g")
        assert not set(number[out.astype(int)]) & set(number[training.astype(int)])
        assert 60 < len(out) < 120
        expected[name] = out
        source.to_csv(tmp_path / f"{name}.csv", index=False)
        source.to_parquet(tmp_path / f"{name}.parquet", row_group_size=70)
        for path in (f"{name}.csv", f"{name}.parquet"):
            found = held_out_rows(tmp_path / path, groups="g", block_bytes=1000)[1]
            np.testing.assert_array_equal(found, out)
        # An array instead: the column is then an input, unless it is dropped.
        for array in (source["g"], source["g"].to_numpy(), source["g"].tolist()):
            found, again, _ = held_out_rows(source, groups=array, drop=["g"])
            np.testing.assert_array_equal(again, out)
            assert found.inputs.columns == (("x", "numeric"),)
        shuffled = source.sample(frac=1, random_state=1)
        np.testing.assert_array_equal(np.sort(held_out_rows(shuffled, groups="g")[1]), out)
    X = np.c_[number, frame["x"], frame["y"]]
    np.testing.assert_array_equal(held_out_rows(X, 2, groups=0)[1], expected["numbers"])
    pair = (frame[["x"]].to_numpy(), frame["y"].to_numpy())
    np.testing.assert_array_equal(held_out_rows(pair, None, groups=number)[1], expected["numbers"])
    sparse = (csr_array(pair[0]), pair[1])
    np.testing.assert_array_equal(
        held_out_rows(sparse, None, groups=number)[1], expected["numbers"]
    )


def test_few_and_missing_groups():
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=200), "y": rng.normal(size=200)}
    six = fit_table(rows | {"g": np.arange(200) % 6}, "y", groups="g", **QUICK).summary
    assert six.division == RowDivision("groups", "g", 6, 1)
    two = fit_table(rows | {"g": np.arange(200) % 2}, "y", groups="g", **QUICK).summary
    assert (two.n_rows, two.n_held_out) == (100, 100)
    assert any("one group, since only one is for training" in note for note in two.notes)
    for missing in (
        np.where(np.arange(200) % 3, np.arange(200) % 6, np.nan),
        [None, "a", "b", "c"] * 50,
    ):
        summary = fit_table(rows | {"g": missing}, "y", groups="g", **QUICK).summary
        n_missing = 67 if len(set(missing)) != 4 else 50
        assert f"{n_missing} rows without a group are one group." in summary.notes
    with pytest.warns(UserWarning, match="All values of column 'g' are different"):
        fit_table(rows | {"g": np.arange(200)}, "y", groups="g", **QUICK)


def test_each_group_with_a_class_of_its_own():
    """Nothing can be held out: a model could not know the class."""
    rows = {"x": np.random.default_rng(0).normal(size=200), "y": ["p", "q"] * 100}
    summary = fit_table(rows | {"g": [1, 2] * 100}, "y", groups="g", **QUICK).summary
    assert (summary.n_held_out, summary.held_out) == (0, None)
    assert any("without all rows of some groups, none of a class" in note for note in summary.notes)
    with pytest.raises(ArgumentError, match="folds is 2, but there are rows for 0 folds only"):
        fit_table(rows | {"g": [1, 2] * 100}, "y", groups="g", folds=2, **QUICK)


def test_latest_rows_are_held_out(tmp_path):
    """Of 300 rows on 50 days the last 15 days, in every format; the targets are days."""
    day = np.random.default_rng(0).permutation(np.repeat(np.arange(50), 6))
    x = np.random.default_rng(1).normal(size=300)
    dates = pd.Timestamp("2023-12-20") + pd.to_timedelta(day, "D")
    frame = pd.DataFrame({"x": x, "day": dates, "y": day.astype(float)})
    numbers = frame.assign(day=day - 20.5)
    frame.to_parquet(tmp_path / "typed.parquet", row_group_size=70)
    frame.to_csv(tmp_path / "iso.csv", index=False)
    frame.to_csv(tmp_path / "european.csv", index=False, date_format="%d.%m.%Y")
    frame.to_csv(tmp_path / "american.csv", index=False, date_format="%m/%d/%Y")
    for source, since in (
        (frame, "2024-01-24"),
        (numbers, "14.5"),
        (tmp_path / "typed.parquet", "2024-01-24"),
        (tmp_path / "iso.csv", "2024-01-24"),
        (tmp_path / "european.csv", "2024-01-24"),
        (tmp_path / "american.csv", "2024-01-24"),
    ):
        for options in ({}, {"drop": ["day"]}):
            found, out, training = held_out_rows(source, holdout_last="day", **options)
            assert sorted(out) == sorted(day[day >= 35])
            assert training.max() == 34
            assert found.division == RowDivision("time", "day", since=since)
            assert len(found.columns) == 2 - len(options)
            # Equal days stay together, and there is at least one on each side.
            assert set(held_out_rows(source, holdout=0.01, holdout_last="day", **options)[1]) == {
                49
            }
            assert set(held_out_rows(source, holdout=0.9, holdout_last="day", **options)[2]) == set(
                range(5)
            )
    X = numbers.to_numpy()
    assert sorted(held_out_rows(X, 2, holdout_last=1)[1]) == sorted(day[day >= 35])


@pytest.mark.parametrize("memory", [0, 1 << 28])
def test_folds_are_in_order_of_time(memory):
    """A level that doubles each quarter: a model of the past is wrong by most of the next one."""
    t = np.random.default_rng(0).permutation(400)
    level = 2.0 ** (t // 100)
    rows = {"x": np.random.default_rng(1).normal(size=400), "t": t, "y": level}
    options = {**QUICK, "feature_map": "fastfood", "holdout_last": "t", "drop": ["t"]}
    options["task"] = "regression"
    summary = fit_table(rows, "y", folds=3, holdout=0.25, memory=memory, **options).summary
    # The mean of 1, 1.5 and 7/3 is predicted, but for what noise teaches.
    assert summary.cross_validation.errors == pytest.approx([1, 2.5, 17 / 3], rel=0.1)
    assert summary.held_out.metrics["rmse"] == pytest.approx(17 / 3, rel=0.1)
    assert (summary.n_rows, summary.n_held_out) == (300, 100)
    with pytest.raises(
        ArgumentError, match="folds needs at least 2 times but one, of which there are 1"
    ):
        fit_table(rows | {"t": t % 2}, "y", folds=2, **options)


def test_tuning_is_validated_by_the_latest_rows():
    """In each quarter the next rows are like the last ones, but not like the future."""
    keys = np.random.default_rng(0).permutation(np.arange(200, dtype=np.uint64) // 2)
    order, ends = divide_sample(keys, None, 200, in_order=True)
    assert ends == [150, 200]
    assert keys[order[:150]].max() == 74
    assert keys[order[150:]].min() == 75
    order, ends = divide_sample(np.array([1, 1, 1, 2], np.uint64), None, 4, in_order=True)
    assert ends == [3, 4]
    # Noise that is constant within a week: neighbors in time know it, the past does not.
    rng = np.random.default_rng(0)
    t = rng.permutation(600)
    rows = {"t": t, "y": rng.normal(size=60)[t // 10]}
    errors = {}
    for options in ({"holdout_last": "t"}, {}):
        summary = fit_table(rows, "y", n_components=128, kernel="gaussian", **options).summary
        errors[bool(options)] = min(point.error for point in summary.tuning)
    # 14 weeks: the mean of squares of so many normal numbers is below 0.35 with probability 1e-3.
    assert errors[True] > 0.35
    assert errors[False] < 0.3


def test_parts_in_order_of_time():
    times = KeyCounts()
    times.update(np.repeat(np.arange(1, 11, dtype=np.uint64), [5, 1, 1, 1, 1, 1, 1, 1, 1, 7]))
    held_out = choose_latest(times, 0.1)
    assert held_out.rows(np.arange(1, 11, dtype=np.uint64)).tolist() == [False] * 9 + [True]
    keys = np.arange(1, 11, dtype=np.uint64)
    windows = list(cut_windows(times, 3))
    rows = [each.rows(keys) for each in windows]
    assert (np.sum(rows, axis=0) <= 1).all()
    for earlier, later, held_out in zip(rows, rows[1:], windows, strict=False):
        assert keys[earlier].max() + 1 == keys[later].min()
        assert keys[held_out.unused(keys)].min() == keys[later].min()
    assert not np.any(rows, axis=0)[0]
    assert not windows[-1].unused(keys).any()
    numbers = np.array([-np.inf, -2.5, -0.0, 0.0, 1e-300, 3.0])
    table = open_table({"t": numbers[1:]})
    keys = np.concatenate([TimeKeys("t").of(block) for block in table.blocks()])
    assert (np.diff(keys.astype(object)) >= 0).all()
    assert [TimeKeys("t").format(int(each)) for each in keys] == ["-2.5", "0", "0", "1e-300", "3"]


def test_missing_times():
    rng = np.random.default_rng(0)
    t = np.arange(200.0)
    t[[3, 199]] = np.nan
    rows = {"x": rng.normal(size=200), "t": t, "y": np.arange(200.0)}
    for drop in ([], ["t"]):
        with pytest.raises(TableError, match=r"column 't' has no value in row 4.*missing='impute'"):
            held_out_rows(rows, holdout_last="t", drop=drop)
    found, out, _ = held_out_rows(rows, holdout=0.1, holdout_last="t", missing="impute")
    assert sorted(out) == list(range(179, 199))
    assert "Rows without a value of 't' (1.0 %) count as the earliest." in map(str, found.notes)


def test_validation_and_no_held_out_rows():
    """Groups and times still decide which rows validate settings."""
    rows = {key: values[:120] for key, values in make_patients().items()}
    options = {"groups": "patient", "n_components": 16, "epochs": 2, "kernel": "gaussian"}
    for other in ({"validation": make_patients()}, {"holdout": 0}):
        summary = fit_table(rows, "ill", **options, **other).summary
        assert summary.n_rows == 120
        assert summary.division.n_held_out_groups == 0
    options = {"tune": False, "holdout": 0, "holdout_last": "patient"}
    notes = fit_table(rows, "ill", n_components=16, **options).summary.notes
    assert "Settings are tuned by the rows with the latest 'patient'." in notes


def test_weights_with_groups():
    rows = make_patients() | {"w": np.linspace(1, 2, 600)}
    summary = fit_table(rows, "ill", groups="patient", weights="w", **QUICK).summary
    assert [column.name for column in summary.columns] == ["a", "b"]


ROWS = {"x": np.arange(120.0) % 7, "g": np.arange(120) % 5, "y": np.arange(120.0)}
NOT_ONE_EACH = "groups must have one number or string for each of the 120 rows, got"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"groups": "h"}, TableError, "has no column 'h'"),
        ({"groups": "y"}, TableError, "groups must be a column other than the target 'y'"),
        ({"holdout_last": "y"}, TableError, "holdout_last must be a column other than the target"),
        ({"holdout_last": "h"}, TableError, "has no column 'h'"),
        (
            {"groups": "g", "holdout_last": "x"},
            ArgumentError,
            "cannot be used with groups, got 'x'",
        ),
        ({"groups": True}, ArgumentTypeError, "groups must be the name of a column"),
        ({"holdout_last": [1.0]}, ArgumentTypeError, "holdout_last must be the name of a column"),
        ({"groups": [1, 2, 3]}, ArgumentError, f"{NOT_ONE_EACH} 3 values of type int64"),
        ({"groups": [[1, 2]] * 120}, ArgumentError, NOT_ONE_EACH),
        ({"groups": [object()] * 120}, ArgumentError, "groups must be a column, or one string"),
        ({"groups": [1] * 120}, TableError, "groups must have at least two different values"),
    ],
)
def test_wrong_divisions(options, error, words):
    with pytest.raises(error, match=words):
        fit_table(ROWS, "y", **options, **QUICK)


def test_wrong_divisions_of_files(tmp_path):
    frame = pd.DataFrame(ROWS).assign(word="a", day="2024-01-01", note=[["a"]] * 120)
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.svm").write_text("1 1:2\n0 1:3\n")
    fit = {**QUICK, "drop": ["note"]}
    with pytest.raises(
        ArgumentError, match=r"groups must be a column of .*, got an object of type list"
    ):
        fit_table(tmp_path / "rows.parquet", "y", groups=[1] * 120, **fit)
    with pytest.raises(
        TableError, match="of dates or numbers, got 'word' of kind 'category'; read it"
    ):
        fit_table(tmp_path / "rows.parquet", "y", holdout_last="word", **fit)
    with pytest.raises(
        TableError, match="groups must be a column of numbers, strings or dates, got 'note'"
    ):
        fit_table(tmp_path / "rows.parquet", "y", groups="note", **fit)
    frame.drop(columns="note").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(
        TableError, match=r"holdout_last must have different values, but all of .* 'day'"
    ):
        fit_table(tmp_path / "rows.csv", "y", holdout_last="day", **QUICK)
    with pytest.raises(TableError, match=r"is for tables with columns, but .* is an svmlight file"):
        fit_table(tmp_path / "rows.svm", groups=0, **QUICK)


def test_classes_of_the_future():
    rows = ROWS | {"y": np.where(np.arange(120) < 110, np.arange(120) % 2, 2), "t": np.arange(120)}
    with pytest.raises(
        ArgumentError, match="holdout_last leaves 1 of 3 classes without a training"
    ):
        fit_table(rows, "y", holdout_last="t", drop=["t"], **QUICK)


class Noting(SilentProgress):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_note_on_a_column_that_identifies_groups():
    """Twenty machines with their own level, which explains all: not for new machines."""
    rng = np.random.default_rng(0)
    machine = rng.integers(0, 20, 400)
    y = rng.normal(size=20)[machine] + 0.01 * rng.normal(size=400)
    rows = {"machine": machine, "x": rng.normal(size=400), "y": y}
    options = {"n_components": 64, "kernel": "gaussian", "random_state": 1}
    for source, name in ((rows, "machine"), (np.c_[machine, rows["x"], y], 0)):
        progress = Noting()
        target = "y" if name == "machine" else 2
        summary = fit_table(source, target, progress=progress, **options).summary
        assert summary.held_out.metrics["r2"] > 0.95
        doubts = [each for each in progress.notes if isinstance(each, Doubt)]
        (doubt,) = (each for each in doubts if "The error is near 0, and" in str(each))
        assert f"depend mostly on {str(name)!r} (20 values)" in str(doubt)
        assert f"groups={str(name)!r}" in str(doubt)
        assert str(doubt) in summary.notes
    progress = Noting()
    fit_table(rows, "y", groups="machine", progress=progress, **options)
    # A smooth function of a number, of which each value occurs once, identifies nothing.
    x = rng.permutation(400)
    fit_table(
        {"x": x, "z": rng.normal(size=400), "y": np.sin(x / 60)}, "y", progress=progress, **options
    )
    assert not any("The error is near 0, and" in str(each) for each in progress.notes)


def test_note_on_dates():
    frame = pd.DataFrame(ROWS).assign(day=pd.date_range("2024-01-01", periods=120))
    note = "Column 'day' has dates, but the held-out rows are random"
    for options, expected in (
        ({}, True),
        ({"holdout_last": "day"}, False),
        ({"groups": "g"}, False),
        ({"holdout": 0}, False),
    ):
        notes = fit_table(frame, "y", **options, **QUICK).summary.notes
        assert any(each.startswith(note) for each in notes) == expected
    assert "holdout_last='day'" in next(
        each for each in fit_table(frame, "y", **QUICK).summary.notes if each.startswith(note)
    )


def test_diagnosis_without_the_groups():
    options = {"groups": "g", "rows": 40, "tolerance": 0.5, "kernel": "polynomial"}
    found = diagnose_table(ROWS, "y", **options)
    assert (found.n_inputs, found.settings["groups"]) == (1, "g")
    assert diagnose_table({"x": ROWS["x"], "g": ROWS["g"]}, **options).n_inputs == 1


def test_division_is_stored(tmp_path):
    for options, text in (
        ({"groups": "g"}, "1 of 5 groups of column g"),
        ({"holdout_last": "x"}, "the latest, x from 6 on"),
        ({}, ""),
    ):
        model = fit_table(ROWS | {"z": np.sin(ROWS["y"])}, "y", **options, **QUICK)
        assert model.summary.division.text == text
        record = json.loads(json.dumps(model.summary.to_record(), allow_nan=False))
        assert FitSummary.from_record(record).division == model.summary.division
    copies = {name: np.tile(values, 2) for name, values in ROWS.items()}
    assert fit_table(copies, "y", **QUICK).summary.division == RowDivision("inputs", n_repeated=205)


def test_checkpoint_of_another_division(tmp_path):
    class Interrupting(SilentProgress):
        def start(self, stage, total=None, unit="rows"):
            self.stage = stage

        def advance(self, amount, status=""):
            if self.stage == "Tuning":
                raise KeyboardInterrupt

    options = {"n_components": 16, "kernel": "gaussian", "holdout": 0, "drop": ["x"]}
    rows = ROWS | {"z": np.sin(ROWS["y"])}
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit_table(rows, "y", groups="g", checkpoint=path, progress=Interrupting(), **options)
    for other in ({}, {"holdout_last": "z"}):
        with pytest.raises(CheckpointError, match="digest of the"):
            fit_table(rows, "y", checkpoint=path, **other, **options)


def make_noise(n_rows=150):
    rng = np.random.default_rng(1)
    time = (np.arange(n_rows) > 0).astype(float)
    return {"a": rng.normal(size=n_rows), "time": time, "y": rng.normal(size=n_rows)}


@pytest.mark.parametrize("run", [fit_table, compare_table])
def test_one_row_before_all_others_is_too_few_to_train_on(run):
    """A comparison used to train on all rows, and to test on them."""
    with pytest.raises(TableError, match="1 row of 150 would be left for training"):
        run(make_noise(), "y", holdout_last="time")


@pytest.mark.parametrize(
    "groups", [[2**70 + i % 5 for i in range(150)], pd.DataFrame({"g": np.arange(150) % 5})]
)
def test_groups_that_are_no_array_of_numbers_or_strings(groups):
    with pytest.raises(ArgumentError, match="one string or 64-bit number for each row"):
        fit_table(make_noise(), "y", groups=groups, **QUICK)


def test_folds_of_two_times():
    table = make_noise() | {"time": np.arange(150) % 2}
    with pytest.raises(ArgumentError, match="needs at least 2 times but one, of which there are 1"):
        fit_table(table, "y", holdout_last="time", folds=5, **QUICK)


@pytest.mark.parametrize("target", ["y", "label"])
def test_errors_of_rows_without_weight_are_not_known(target):
    weights = (np.arange(150) < 100).astype(float)
    table = make_noise() | {"w": weights, "day": 2.0 * np.arange(150)}
    table["label"] = np.where(table["y"] > 0, "p", "q")
    held_out = fit_table(table, target, weights="w", holdout_last="day", **QUICK).summary.held_out
    assert np.isnan(held_out.metrics["error" if target == "label" else "rmse"])
    assert "All rows have weight 0, so their error is not known." in held_out.notes
