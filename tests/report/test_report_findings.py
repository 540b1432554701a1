"""The sentences and numbers that summarize a record."""

import shlex
from dataclasses import replace

import pytest

from kernelmill.report.findings import (
    columns_finding,
    comparison_finding,
    comparison_tiles,
    evaluation_finding,
    evaluation_tiles,
    fit_finding,
    fit_tiles,
)
from kernelmill.report.usage import fit_lines, usage_lines
from kernelmill.workflows.records import Evaluation


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def adult():
    return Evaluation(
        "classification",
        "adult.data",
        3256,
        {"error": 475 / 3256, "error_low": 0.1348, "error_high": 0.1585},
        0.1,
        classes=["<=50K", ">50K"],
        confusion=[[2300, 171], [304, 481]],
    )


def test_classification():
    assert plain(evaluation_finding(adult(), "held-out rows")) == (
        "The model misclassifies 14.6 % of 3,256 held-out rows (13.5–15.8 %); "  # noqa: RUF001
        "always predicting ‘<=50K’ would misclassify 24.1 %."  # noqa: RUF001
    )


def test_constant_prediction_on_weighted_rows():
    evaluation = replace(adult(), metrics={"error": 0.2, "baseline_error": 0.3})
    assert plain(evaluation_finding(evaluation)) == (
        "The model misclassifies 20.0 % of 3,256 rows; always predicting the most frequent class "
        "would misclassify 30.0 %."
    )
    assert plain(evaluation_tiles(evaluation)[1].value) == "30.0 %"


def test_classification_without_confusion_or_interval():
    evaluation = replace(adult(), metrics={"error": 0.00123}, confusion=None)
    assert plain(evaluation_finding(evaluation)) == "The model misclassifies 0.12 % of 3,256 rows."


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("value", [None, float("nan")])
def test_unknown_error(task, value):
    evaluation = Evaluation(task, "a.csv", 7, {"error": value, "rmse": value}, 0.1)
    assert evaluation_finding(evaluation) == "The error of the model on 7 rows is not known."
    assert evaluation_tiles(evaluation)[0].value == "\N{EN DASH}"


@pytest.mark.parametrize("metrics", [{"r2": 0.75}, {"target_std": 1.2}])
def test_regression_is_compared_with_the_mean(metrics):
    evaluation = Evaluation("regression", "a.csv", 50, {"rmse": 0.6} | metrics, 0.1)
    assert evaluation_finding(evaluation) == (
        "The root mean squared error on 50 rows is 0.6; always predicting the mean would give 1.2."
    )
    assert [tile.value for tile in evaluation_tiles(evaluation)][:2] == ["0.6", "1.2"]


def test_comparison(samples):
    assert plain(comparison_finding(samples["comparison"]["comparison"])) == (
        "The error on 800 rows is 7.0 % for fastfood with 4,096 features, 15.2 % for the linear "
        "model, 8.0 % for the boosted trees and 6.7 % for the exact kernel (trained on 2,000 of "
        "4,000 rows)."
    )
    finding = comparison_finding(samples["comparison_rmse"]["comparison"])
    assert "root mean squared error" in finding
    assert "0.152 for the linear model, 0.08 for the boosted trees and" in finding
    finding = comparison_finding(samples["unknown"]["comparison"])
    assert finding == "No model in the comparison has a known error."
    assert comparison_tiles(samples["unknown"]["comparison"]) == []


def test_fit(samples):
    fit = samples["two_classes"]["fit"]
    assert plain(fit_finding(fit)) == (
        "The model is a kernel machine (kernel: Gaussian) on 4,096 fastfood features, trained on "
        "29,305 rows in 19 s."
    )
    assert [plain(tile.value) for tile in fit_tiles(fit)] == ["29,305", "4,096", "19 s", "432 MB"]
    names = [tile.name for tile in fit_tiles(fit)]
    assert names == ["Training set", "Features", "Training time", "Training memory"]
    assert len(fit_tiles(samples["bare"]["fit"])) == 2


def test_most_relevant_columns(samples):
    fit = samples["two_classes"]["fit"]
    assert columns_finding(fit) == (
        "‘age’, ‘workclass’ and ‘hours-per-week’ count most in kernel distances."  # noqa: RUF001
    )
    numbered = replace(fit.column_relevance[0], name="7")
    assert columns_finding(replace(fit, column_relevance=[numbered])) == (
        "Column 7 counts most in kernel distances."
    )
    assert "Of 200 columns" in columns_finding(samples["wide"]["fit"])
    assert columns_finding(samples["one_scale"]["fit"]) == ""


def test_lines_ask_for_what_the_model_can_give(samples):
    shell, python = usage_lines(samples["two_classes"]["fit"], "classification", "m.kmill")
    assert "--probabilities" in shell
    assert "probabilities=True" in python
    hinge = replace(samples["two_classes"]["fit"], loss="hinge")
    assert "probabilities" not in "".join(usage_lines(hinge, "classification", "m.kmill"))
    shell, python = usage_lines(samples["regression"]["fit"], "regression", "m.kmill")
    assert "--std" in shell
    assert "std=True" in python
    for lines in (python, fit_lines(samples["comparison"]["comparison"], "m.kmill")[1]):
        compile(lines, "report", "exec")


def test_target_is_an_index_or_a_name(samples):
    comparison = samples["comparison"]["comparison"]
    for target, written in (("14", "target=14)"), ("the digit", "target='the digit')")):
        _, python = fit_lines(replace(comparison, target=target), "m.kmill")
        assert written in python
    shell, _ = fit_lines(replace(comparison, target="the digit"), "m.kmill")
    assert "--target 'the digit' " in shell
    shell, python = fit_lines(replace(comparison, target=""), "m.kmill")
    assert "target" not in shell + python


def test_lines_carry_the_settings_of_the_comparison(samples):
    settings = {
        "task": "regression",
        "drop": ["z", "my col"],
        "delimiter": "\t",
        "header": False,
        "skip_rows": 2,
        "feature_map": "random_fourier",
        "n_components": 4096,
        "map_options": {"sampling": "orthogonal", "store_matrix": False},
    }
    comparison = replace(samples["comparison"]["comparison"], settings=settings)
    shell, python = fit_lines(comparison, "m.kmill")
    assert (
        "--target digit --task regression --drop z --drop 'my col' --delimiter tab --no-header "
        "--skip-rows 2 --map random_fourier --n-components 4096 --map-option sampling=orthogonal "
        "--map-option store_matrix=false --out m.kmill"
    ) in shell
    assert (
        "target='digit', task='regression', drop=['z', 'my col'], delimiter='\\t', header=False, "
        "skip_rows=2, feature_map='random_fourier', n_components=4096, "
        "map_options={'sampling': 'orthogonal', 'store_matrix': False})"
    ) in python
    compile(python, "report", "exec")
    from kernelmill.cli.program.group import program

    _, name, *arguments = shlex.split(shell)
    taken = program.get_command(None, name).make_context(name, arguments).params
    assert (taken["task"], taken["drop"]) == ("regression", ("z", "my col"))
    assert (taken["table"]["header"], taken["table"]["skip_rows"]) == (False, 2)
    assert (taken["feature_map"], taken["n_components"]) == ("random_fourier", 4096)
    assert taken["map_options"] == settings["map_options"]


def test_one_row_is_singular(samples):
    one = replace(samples["two_classes"]["evaluation"], n_rows=1)
    assert " of 1 held-out row (" in evaluation_finding(one, "held-out rows")
