"""Targets: classes and values from strings, numbers and labels."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kernelmill.encoding.targets import TargetLearner, TargetReader, format_label
from kernelmill.files import ModelFileError
from kernelmill.io import TableError
from kernelmill.io.table import TableBlock


def block(values, first_row=0):
    if any(isinstance(v, str) for v in values):
        column = pa.array(values, pa.string()).dictionary_encode()
    else:
        column = pa.array(values, pa.float64())
    return TableBlock(pa.record_batch({"y": column}), None, Path("t.csv"), first_row)


def fit_target(*lists, task="auto"):
    learner = TargetLearner("y", task)
    for values in lists:
        learner.update(block(values))
    return learner.finish()


@pytest.mark.representative
def test_texts_are_classes():
    reader, notes = fit_target(["b", "a"], ["c", None])
    assert reader.task == "classification"
    assert reader.classes.tolist() == ["a", "b", "c"]
    numbers, present = reader.numbers(block(["c", None, "a"]))
    assert numbers.tolist() == [2, 0, 0]
    assert present.tolist() == [True, False, True]
    assert notes == []


def test_few_integers_are_classes_and_that_is_noted():
    reader, notes = fit_target([1.0, 7.0, 3.0])
    assert reader.classes.tolist() == [1, 3, 7]
    assert reader.classes.dtype == np.int64
    (note,) = notes
    assert note.problem == "The target 'y' has 3 different integers, which are read as classes"
    assert [remedy.settings for remedy in note.remedies] == [{"task": "regression"}]
    assert reader.numbers(block([7.0, 1.0]))[0].tolist() == [2, 0]


def test_other_numbers_are_values():
    assert fit_target([0.5, 1.0])[0].task == "regression"
    assert fit_target(list(np.arange(31.0)))[0].task == "regression"
    assert fit_target(list(np.arange(30.0)))[0].task == "classification"


def test_task_can_be_given():
    assert fit_target([1.0, 2.0], task="regression")[0].classes is None
    assert fit_target([0.5, 1.0], task="classification")[0].classes.tolist() == [0.5, 1.0]
    with pytest.raises(TableError, match="must hold numbers for regression"):
        fit_target(["a", "b"], task="regression")


def test_many_values_take_no_memory():
    learner = TargetLearner("y", "auto")
    for part in range(5):
        learner.update(block(list(np.arange(1000.0) / 7 + part)))
    assert len(learner.counts) <= 2000
    assert learner.finish()[0].task == "regression"


def test_too_many_classes():
    with pytest.raises(TableError, match="more than 1000"):
        fit_target([f"t{i}" for i in range(1001)])


def test_numbers_that_hardly_repeat_are_not_classes():
    for values in ([i / 7 for i in range(40)], list(range(40)), [*range(31), *range(30)]):
        with pytest.raises(TableError, match=r"different numbers in .*; fit a regressor \(task="):
            fit_target([float(value) for value in values], task="classification")
    twice = [float(value) for value in (*range(31), *range(31))]
    assert len(fit_target(twice, task="classification")[0].classes) == 31


@pytest.mark.parametrize(
    ("values", "words"), [([None], "are missing"), ([3.0, 3.0], "two different")]
)
def test_one_value_is_not_enough(values, words):
    with pytest.raises(TableError, match=words):
        fit_target(values)


def test_unknown_labels_are_named_with_their_row():
    reader, _ = fit_target(["<=50K", ">50K"])
    with pytest.raises(TableError, match=r"'<=50K.' in row 12.*<=50K, >50K"):
        reader.numbers(block([">50K", "<=50K."], first_row=10))
    numbers, _ = fit_target([1.0, 2.0])
    with pytest.raises(TableError, match="is 3 in row 1"):
        numbers.numbers(block([3.0]))


def test_text_classes_that_look_like_numbers_later():
    reader = TargetReader("y", "classification", np.array(["1", "2", "x"]))
    assert reader.numbers(block([2.0, 1.0]))[0].tolist() == [1, 0]
    with pytest.raises(TableError, match="is 3"):
        reader.numbers(block([3.0]))


def test_number_classes_that_are_texts_later():
    reader = TargetReader("y", "classification", np.array([1, 2]))
    assert reader.numbers(block(["2", "1"]))[0].tolist() == [1, 0]


def test_labels_that_float64_would_merge():
    with pytest.raises(TableError, match=r"beyond 2\*\*53") as caught:
        fit_target([float(2**60), 1.0])
    assert caught.value.message.remedies[0].settings == {"categorical": ["y"]}
    labels = np.array([2**60, 2**60 + 1])
    learner = TargetLearner("labels", "auto")
    block = TableBlock(np.zeros((2, 1)), labels, Path("t.npz"), 0)
    learner.update(block)
    reader, _ = learner.finish()
    assert reader.classes.tolist() == [str(2**60), str(2**60 + 1)]
    assert reader.numbers(block)[0].tolist() == [0, 1]
    assert fit_target([1e300, 2e300, 0.5])[0].task == "regression"


def test_infinite_targets_and_identifiers_are_rejected_in_training():
    with pytest.raises(TableError, match="is inf in row 2"):
        fit_target([1.0, np.inf])
    with pytest.raises(TableError, match="too many for classes"):
        fit_target([f"id{i}" for i in range(100)])


def test_infinite_targets_are_rejected():
    reader = TargetReader("y", "regression", None)
    with pytest.raises(TableError, match="row 2"):
        reader.numbers(block([1.0, np.inf]))
    with pytest.raises(TableError, match="must hold numbers"):
        reader.numbers(block(["a"]))


@pytest.mark.parametrize("classes", [[1, 2], [0.5, 1.0], ["a", "b"], None], ids=str)
def test_comes_back_from_a_record(classes):
    task = "regression" if classes is None else "classification"
    reader = TargetReader("y", task, None if classes is None else np.array(classes))
    again = TargetReader.from_record(reader.to_record())
    assert again.task == task
    if classes is not None:
        assert again.classes.tolist() == classes
        assert again.classes.dtype == reader.classes.dtype


@pytest.mark.parametrize(
    "change",
    [{"classes": [1, "a"]}, {"classes": ["a"]}, {"classes": 5}, {"task": "x"}, {"target": None}],
    ids=str,
)
def test_wrong_records_are_rejected(change):
    values = {"target": "y", "task": "classification", "classes": ["a", "b"], **change}
    (name,) = change
    with pytest.raises(ModelFileError, match=f"^{name} must be "):
        TargetReader.from_record(values)


@pytest.mark.parametrize(("task", "classes"), [("classification", None), ("regression", [1, 2])])
def test_classes_that_do_not_fit_the_task_are_rejected(task, classes):
    with pytest.raises(ModelFileError, match="classification has classes and regression has none"):
        TargetReader.from_record({"target": "y", "task": task, "classes": classes})


def test_labels_are_written_as_people_do():
    assert [format_label(x) for x in (3.0, 0.5, "a", 7)] == ["3", "0.5", "a", "7"]
