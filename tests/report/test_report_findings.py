"""The sentences and figures that sum a record up."""

import shlex
from dataclasses import replace

import pytest

from kernelmill.report.findings import comparison_finding, evaluation_finding, fit_finding
from kernelmill.report.tiles import comparison_tiles, evaluation_tiles, fit_tiles
from kernelmill.report.usage import fitting_lines, using_lines
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
        "The model gets 14.6 % of 3,256 held-out rows wrong (13.5–15.8 %); "  # noqa: RUF001
        "always answering ‘<=50K’ would get 24.1 % wrong."  # noqa: RUF001
    )


def test_classification_without_confusion_or_interval():
    evaluation = replace(adult(), metrics={"error": 0.00123}, confusion=None)
    assert plain(evaluation_finding(evaluation)) == "The model gets 0.12 % of 3,256 rows wrong."


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("value", [None, float("nan")])
def test_unknown_error(task, value):
    evaluation = Evaluation(task, "a.csv", 7, {"error": value, "rmse": value}, 0.1)
    assert (
        evaluation_finding(evaluation) == "The model was tried on 7 rows; its error is not known."
    )
    assert evaluation_tiles(evaluation)[0].value == "\N{EN DASH}"


@pytest.mark.parametrize("metrics", [{"r2": 0.75}, {"target_std": 1.2}])
def test_regression_has_the_mean_as_its_rival(metrics):
    evaluation = Evaluation("regression", "a.csv", 50, {"rmse": 0.6} | metrics, 0.1)
    assert evaluation_finding(evaluation) == (
        "Predictions for 50 rows are off by 0.6 (root mean square); "
        "always answering the mean would be off by 1.2."
    )
    assert [tile.value for tile in evaluation_tiles(evaluation)][:2] == ["0.6", "1.2"]


def test_comparison(samples):
    assert plain(comparison_finding(samples["comparison"]["comparison"])) == (
        "On 800 rows, fastfood with 4,096 features gets 7.0 % wrong, the linear model gets 15.2 % "
        "wrong and the exact kernel (fitted to 2,000 of 4,000 rows) gets 6.7 % wrong."
    )
    told = comparison_finding(samples["comparison_rmse"]["comparison"])
    assert "the linear model is off by 0.152 and" in told
    told = comparison_finding(samples["unknown"]["comparison"])
    assert told == "No contender of the comparison has an error that is known."
    assert comparison_tiles(samples["unknown"]["comparison"]) == []


def test_fit(samples):
    fit = samples["two_classes"]["fit"]
    assert plain(fit_finding(fit)) == (
        "The model is a kernel machine (kernel: Gaussian) on 4,096 fastfood features, fitted to "
        "29,305 rows in 19 s."
    )
    assert [plain(tile.value) for tile in fit_tiles(fit)] == ["29,305", "4,096", "19 s", "432 MB"]
    names = [tile.name for tile in fit_tiles(fit)]
    assert names == ["Trained on", "Features", "Training time", "Training memory"]
    assert len(fit_tiles(samples["bare"]["fit"])) == 2


def test_lines_ask_for_what_the_model_can_give(samples):
    shell, python = using_lines(samples["two_classes"]["fit"], "classification", "m.kmill")
    assert "--probabilities" in shell
    assert "probabilities=True" in python
    hinge = replace(samples["two_classes"]["fit"], loss="hinge")
    assert "probabilities" not in "".join(using_lines(hinge, "classification", "m.kmill"))
    shell, python = using_lines(samples["regression"]["fit"], "regression", "m.kmill")
    assert "--std" in shell
    assert "std=True" in python
    for lines in (python, fitting_lines(samples["comparison"]["comparison"], "m.kmill")[1]):
        compile(lines, "report", "exec")


def test_target_is_an_index_or_a_name(samples):
    comparison = samples["comparison"]["comparison"]
    for target, written in (("14", "target=14)"), ("the digit", "target='the digit')")):
        _, python = fitting_lines(replace(comparison, target=target), "m.kmill")
        assert written in python
    shell, _ = fitting_lines(replace(comparison, target="the digit"), "m.kmill")
    assert "--target 'the digit' " in shell
    shell, python = fitting_lines(replace(comparison, target=""), "m.kmill")
    assert "target" not in shell + python


def test_lines_carry_the_settings_of_the_comparison(samples):
    settings = {
        "task": ["regression"],
        "drop": ["z", "my col"],
        "delimiter": ["\t"],
        "header": ["False"],
        "skip_rows": ["2"],
    }
    comparison = replace(samples["comparison"]["comparison"], settings=settings)
    shell, python = fitting_lines(comparison, "m.kmill")
    assert (
        "--target digit --task regression --drop z --drop 'my col' --delimiter tab --no-header "
        "--skip-rows 2 --out m.kmill"
    ) in shell
    assert (
        "target='digit', task='regression', drop=['z', 'my col'], delimiter='\\t', header=False, "
        "skip_rows=2)"
    ) in python
    compile(python, "report", "exec")
    from kernelmill.cli.program.group import program

    _, name, *arguments = shlex.split(shell)
    taken = program.get_command(None, name).make_context(name, arguments).params
    assert (taken["task"], taken["drop"]) == ("regression", ("z", "my col"))
    assert (taken["header"], taken["skip_rows"]) == (False, 2)


def test_one_row_is_singular(samples):
    one = replace(samples["two_classes"]["evaluation"], n_rows=1)
    assert " of 1 held-out row wrong" in evaluation_finding(one, "held-out rows")
