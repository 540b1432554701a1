"""The arithmetic of the comparison on tables: splits, errors, ratios and their summary."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.tables.results import (
    Result,
    append_result,
    classification_error,
    describe_ratios,
    error_ratio,
    log_loss,
    markdown_errors,
    read_results,
    regression_error,
    with_fewer_rows,
)
from benchmarks.tables.sources import MAX_TRAIN_ROWS, Table, count_splits, split_table


def result(table, model, error, *, split=0, task="regression", n_train=800, n_test=200):
    return Result(table, task, split, model, error, None, 1.0, 1.0, 0.1, n_train, n_test)


@pytest.mark.representative
def test_errors_of_predictions():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    assert regression_error(y + np.array([1, -1, 1, -1]), y) == 1.0
    labels = np.array(["a", "b", "a", "c"])
    assert classification_error(np.array(["a", "a", "a", "b"]), labels) == 0.5


def test_log_loss_of_a_class_without_training_rows_is_that_of_the_smallest_probability():
    probabilities = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    y = np.array(["a", "b", "new"])
    expected = -(math.log(0.5) + math.log(0.75) + math.log(np.finfo(float).eps)) / 3
    assert log_loss(probabilities, np.array(["a", "b"]), y) == pytest.approx(expected, rel=1e-15)


def test_ratio_takes_only_splits_that_both_models_have():
    results = [
        result("t", "kernelmill", 1.0, split=0),
        result("t", "kernelmill", 3.0, split=1),
        result("t", "kernelmill", 100.0, split=2),
        result("t", "hgb", 2.0, split=0),
        result("t", "hgb", 2.0, split=1),
    ]
    assert error_ratio(results, "t", "kernelmill", "hgb") == 1.0
    assert error_ratio(results, "t", "kernelmill", "svm") is None
    assert error_ratio(results, "other", "kernelmill", "hgb") is None


def test_a_model_that_is_always_right_counts_as_half_a_row():
    results = [
        result("t", "kernelmill", 0.0, task="classification"),
        result("t", "hgb", 0.01, task="classification"),
    ]
    assert error_ratio(results, "t", "kernelmill", "hgb") == pytest.approx(0.5 / 2)
    assert error_ratio(results, "t", "hgb", "kernelmill") == pytest.approx(2 / 0.5)
    assert error_ratio(results, "t", "kernelmill", "kernelmill") == 1.0


def test_summary_has_mean_and_median_ratio_worst_table_and_losses():
    errors = {"a": 0.5, "b": 2.0, "c": 1.0, "d": 0.25}
    results = [result(name, "kernelmill", error) for name, error in errors.items()]
    results += [result(name, "hgb", 1.0) for name in errors]
    text = describe_ratios(results, "kernelmill", "hgb")
    assert text is not None
    assert f"geometric mean {0.25**0.25:.3f}, median 0.750 over 4 tables" in text
    assert "best 0.25 (d), worst 2.00 (b), 2 wins, 1 losses: b 2.00" in text
    assert describe_ratios(results, "kernelmill", "svm") is None
    lines = markdown_errors(results, ["kernelmill", "hgb"]).splitlines()
    assert lines[3] == "| b | 800 | 2 | 1 | 2.00 |"
    assert lines[-2].endswith(f"| {0.25**0.25:.3f} |")
    assert lines[-1].endswith("| 0.750 |")


def test_tables_where_a_model_had_fewer_rows():
    results = [
        result("large", "kernelmill", 1.0, n_train=50_000),
        result("large", "svm", 1.0, n_train=10_000),
        result("small", "kernelmill", 1.0),
        result("small", "svm", 1.0),
    ]
    assert {each.table for each in with_fewer_rows(results, "svm")} == {"large"}
    assert with_fewer_rows(results, "kernelmill") == []


def test_results_are_read_back_and_the_last_one_counts(tmp_path):
    path, absent = tmp_path / "deep" / "results.jsonl", tmp_path / "absent.jsonl"
    for error in (1.0, 2.0):
        append_result(path, result("t", "hgb", error))
    assert read_results([absent, path]) == [result("t", "hgb", 2.0)]


def test_a_split_holds_every_row_once_and_depends_on_its_seed():
    frame = pd.DataFrame({"x": np.arange(100.0), "town": ["Rome", None] * 50, "y": np.arange(100)})
    table = Table("t", "regression", "y", frame)
    first, second = split_table(table, 0), split_table(table, 1)
    assert (len(first.train), len(first.test)) == (80, 20)
    assert sorted([*first.train["y"], *first.test["y"]]) == list(range(100))
    assert first.test["y"].tolist() == split_table(table, 0).test["y"].tolist()
    assert set(first.test["y"]) != set(second.test["y"])
    assert first.categorical == ["town"]


def test_training_rows_are_limited_but_for_tables_taken_whole():
    n_rows = MAX_TRAIN_ROWS * 2
    frame = pd.DataFrame({"x": np.arange(n_rows), "y": np.arange(n_rows)})
    assert len(split_table(Table("t", "regression", "y", frame), 0).train) == MAX_TRAIN_ROWS
    whole = split_table(Table("covtype_full", "regression", "y", frame), 0)
    assert len(whole.train) == n_rows * 4 // 5
    assert count_splits("covtype_full", 5) == 1
    assert count_splits("t", 5) == 5
