"""From a data file to a model to predictions, on the command line."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelmill.cli.program.files import FitCheckpoint
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import render_evaluation
from kernelmill.formatting import plain
from kernelmill.workflows import load
from kernelmill.workflows.records import Evaluation, FitSummary

from .conftest import revived, widest

SMALL = ["--n-components", "64"]


@pytest.mark.usefixtures("few_epochs")
def test_fit_with_a_file_and_a_target_only(run, rings, monkeypatch):
    monkeypatch.chdir(rings.parent)
    code, out, err = run("fit", "rings.csv", "--target", "place", "--drop", "radius", *SMALL)
    assert code == 0
    assert "the model will be written to rings.kmill" in err
    assert "rows (95 % interval" in out
    assert "Next: kernelmill predict rings.kmill NEW.csv --out predictions.csv" in out
    assert "\x1b" not in out + err
    assert widest(out) <= 80
    assert load("rings.kmill").summary.n_components == 64
    assert sorted(path.name for path in rings.parent.iterdir()) == ["rings.csv", "rings.kmill"]


def test_options_reach_the_fit(run, rings, tmp_path):
    out = tmp_path / "m.kmill"
    code, printed, _ = run(
        *("fit", rings, "-t", "radius", "-o", out, "--map", "tensor_sketch", "--no-tune"),
        *("--map-option", "degree=3", "--alpha", "0.5", "--seed", "7", "--holdout", "0.25"),
        *("--drop", "place", "--categorical", "a", "--json", *SMALL),
    )
    assert code == 0
    record = json.loads(printed)
    summary = revived(FitSummary, record["summary"])
    assert record["model"] == str(out)
    assert record["bytes"] == out.stat().st_size
    assert (summary.task, summary.target) == ("regression", "radius")
    assert (summary.map_name, summary.n_components) == ("tensor_sketch", 64)
    assert (summary.alpha, summary.seed) == (0.5, 7)
    assert 100 < summary.n_held_out < 200
    assert {column.name: column.kind for column in summary.columns} == {
        "a": "category",
        "b": "numeric",
        "colour": "category",
    }
    assert load(out).learner.feature_map_.degree == 3


def test_fit_with_landmarks(run, rings, tmp_path):
    out = tmp_path / "model.kmill"
    code, _, err = run(
        *("fit", rings, "-t", "radius", "-o", out, "--map", "nystroem", "--no-tune"),
        *("--kernel", "exponential", "-n", "100", "--quiet"),
    )
    assert code == 0, err
    code, printed, _ = run("inspect", out)
    assert code == 0
    assert "landmarks" in printed
    code, predicted, _ = run("predict", out, rings, "--out", "-", "--quiet")
    assert code == 0
    assert len(predicted.splitlines()) == 601
    _, help_text, _ = run("fit", "--help")
    assert "nystroem" in help_text


def test_the_solver_and_its_options_reach_the_fit(run, rings, tmp_path):
    out = tmp_path / "m.kmill"
    code, printed, _ = run(
        *("fit", rings, "-t", "place", "-o", out, "--no-tune", "--solver", "plain_sgd", *SMALL),
        *("--batch-size", "7", "--learning-rate", "0.25", "--epochs", "2"),
    )
    assert code == 0
    assert "plain_sgd" in printed
    learner = load(out).learner
    assert (learner.solver_, learner.batch_size, learner.learning_rate) == ("plain_sgd", 7, 0.25)


def test_float16_halves_the_weights(run, rings, tmp_path):
    for weights in ("float32", "float16"):
        common = ["-t", "place", "-o", tmp_path / weights, "--no-tune", "--epochs", "4"]
        code, _, _ = run("fit", rings, *common, "--precision", weights, "-n", "4096", "--quiet")
        assert code == 0
    large, small = ((tmp_path / name).stat().st_size for name in ("float32", "float16"))
    assert large - small > 4096


def test_files_are_one_table(run, rings, tmp_path):
    lines = rings.read_text().splitlines(keepends=True)
    (tmp_path / "part-1.csv").write_text("".join(lines[:300]))
    (tmp_path / "part-2.csv").write_text("".join([lines[0], *lines[300:]]))
    for data in ([tmp_path / "part-1.csv", tmp_path / "part-2.csv"], [tmp_path / "part-*.csv"]):
        out = tmp_path / "m.kmill"
        code, printed, _ = run(
            "fit", *data, "-t", "place", "-o", out, "--no-tune", "--json", *SMALL
        )
        assert code == 0
        summary = json.loads(printed)["summary"]
        assert summary["n_rows"] + summary["n_held_out"] == 600


def test_a_missing_target_lists_the_columns(run, rings):
    code, out, err = run("fit", rings, "--quiet")
    assert (code, out) == (2, "")
    assert f"--target must be given; the columns of {rings} are a, b, colour, radius, place" in err
    assert "try: name the column to predict" in err


def test_a_target_of_strings_is_for_classification(run, rings):
    code, _, err = run("fit", rings, "-t", "colour", "--task", "regression")
    assert code == 1
    assert "try: if the target is a class label, set the task (--task classification)" in err
    assert "--categorical" not in err


def test_near_columns_are_suggested(run, rings):
    code, _, err = run("fit", rings, "-t", "palce")
    assert code == 1
    assert "try: use a column with a similar name: 'place'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "no.csv", "-t", "a"], "no.csv"),
        (["predict", "no.kmill", "{csv}", "-o", "x.csv"], "no.kmill"),
        (["evaluate", "{csv}", "{csv}"], "rings.csv"),
        (["inspect", "{csv}"], "rings.csv"),
        (["fit", "{csv}", "-t", "place", "-o", "no/m.kmill"], "no/m.kmill"),
        (["fit", "{csv}", "-t", "place", "--report", "no/r.html"], "no/r.html"),
        (["fit", "{csv}", "-t", "place", "-o", "."], "folder"),
        (["fit", "{csv}", "-t", "place", "-o", "{csv}"], "overwritten"),
        (["fit", "{csv}", "-t", "place", "--map-option", "degree=3"], "degree"),
    ],
)
def test_work_that_cannot_be_done_exits_with_1(run, rings, monkeypatch, arguments, words):
    monkeypatch.chdir(rings.parent)
    before = rings.read_text()
    code, out, err = run(*[argument.format(csv=rings) for argument in arguments])
    assert (code, out) == (1, ""), err
    assert words in err[err.index("error: ") :]
    assert "Traceback" not in err
    assert "unexpected error" not in err
    assert rings.read_text() == before
    assert [path.name for path in rings.parent.iterdir()] == ["rings.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "{csv}", "-t", "place", "--alpha", "-1"], "--alpha must be"),
        (["fit", "{csv}", "-t", "place", "--kernel", "gausian"], "gaussian"),
        (["fit", "{csv}", "-t", "place", "--learning-rate", "1"], "--solver plain_sgd"),
        (["fit", "{csv}", "-t", "radius", "--batch-size", "9"], "without --batch-size"),
        (["fit", "{csv}", "-t", "place", "--kernel", "matern:mu=1"], "--kernel must be matern:nu="),
        (
            ["fit", "{csv}", "-t", "place", "--kernel", "laplacian", "--map", "fastfood"],
            "--map random_fourier",
        ),
    ],
)
def test_values_of_options_that_are_not_allowed_exit_with_2(run, rings, arguments, words):
    code, out, err = run(*[argument.format(csv=rings) for argument in arguments])
    assert (code, out) == (2, ""), err
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--report", "page.pdf"], "must end in .html or .htm"),
        (["--map-option", "n_components=3"], "--n-components"),
        (["--map-option", "random-state=3"], "--seed"),
        (["--map-option", "n_threads=3"], "--threads"),
        (["--map-option", "length_scale=3"], "--length-scale"),
        (["--seed", str(2**63)], "9223372036854775807"),
        (["--threads", "1025"], "1024"),
    ],
)
def test_settings_that_cannot_be_are_wrong_usage(run, rings, arguments, words):
    code, _, err = run("fit", rings, "-t", "place", *arguments)
    assert code == 2
    assert words in err
    assert [path.name for path in rings.parent.iterdir()] == ["rings.csv"]


def test_a_tilde_that_no_shell_expanded_is_named(run, rings, monkeypatch):
    monkeypatch.chdir(rings.parent)
    code, _, err = run("fit", rings, "-t", "place", "--out=~/no-such-folder/m.kmill")
    assert code == 1
    assert "the shell did not expand ~" in err


def test_data_files_are_told_from_models(run, rings, fitted, tmp_path):
    for arguments in (["inspect", rings], ["evaluate", rings, rings]):
        code, _, err = run(*arguments)
        assert code == 1
        assert f"{rings} is not a model file" in err
        assert f"kernelmill fit {rings} --target COLUMN" in err
    damaged = tmp_path / "damaged.kmill"
    damaged.write_bytes((fitted / "rings.kmill").read_bytes()[:-1])
    code, _, err = run("inspect", damaged)
    assert code == 1
    assert "kernelmill fit" not in err


@pytest.mark.parametrize("command", ["predict", "evaluate", "transform"])
def test_models_know_the_kinds_of_columns(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "--categorical" not in out
    assert "--numeric" not in out
    assert "--decimal" in out


def test_decimal_commas(run, rings, tmp_path):
    commas = rings.read_text().replace(",", ";").replace(".", ",")
    (tmp_path / "commas.csv").write_text(commas)
    models = []
    for name, options in (("rings.csv", []), ("commas.csv", ["--decimal", ","])):
        out = tmp_path / f"{name}.kmill"
        arguments = ["-t", "place", "-n", "16", "--no-tune", "--quiet", *options]
        assert run("fit", tmp_path / name, "-o", out, *arguments)[0] == 0
        models.append(load(out).learner.coef_)
    np.testing.assert_array_equal(*models)


@pytest.mark.parametrize(("name", "new"), [("a.data", "NEW.csv"), ("a.npz", "NEW")])
def test_the_next_command_names_a_plain_file(run, rings, tmp_path, name, new):
    if name == "a.npz":
        rows = np.random.default_rng(0).normal(size=(50, 3))
        np.savez(tmp_path / name, X=rows, y=rows[:, 0])
        target = []
    else:
        rings.rename(tmp_path / name)
        target = ["-t", "place"]
    out = tmp_path / "m.kmill"
    code, printed, err = run("fit", tmp_path / name, *target, "-o", out, "-n", "16", "--no-tune")
    assert code == 0, err
    assert f"Next: kernelmill predict {out} {new} --out predictions.csv" in printed


def test_map_options_need_a_name_and_a_value(run, rings):
    code, _, err = run("fit", rings, "-t", "place", "--map-option", "degree")
    assert code == 2
    assert "NAME=VALUE" in err


@pytest.mark.representative
def test_predict_writes_a_row_for_each_row(run, fitted, tmp_path):
    data, model = fitted / "rings.csv", fitted / "rings.kmill"
    out = tmp_path / "p.csv"
    code, printed, _ = run("predict", model, data, "-o", out, "--probabilities")
    assert code == 0
    assert printed.startswith(f"600 predictions in {out}")
    lines = [line.replace('"', "").split(",") for line in out.read_text().splitlines()]
    assert lines[0] == ["prediction", "probability of in", "probability of out"]
    assert len(lines) == 601
    for prediction, inside, _ in lines[1:]:
        assert (prediction == "in") == (float(inside) >= 0.5)
    code, printed, _ = run("predict", model, data, "-o", out, "--keep-columns", "--json")
    record = json.loads(printed)
    assert (code, record["rows"], record["out"]) == (0, 600, str(out))
    assert out.read_text().splitlines()[0].replace('"', "").split(",")[-1] == "prediction"


def test_predict_std(run, fitted, tmp_path):
    out = tmp_path / "p.npy"
    code, _, _ = run(
        "predict", fitted / "radius.kmill", fitted / "rings.csv", "-o", out, "--std", "--quiet"
    )
    assert code == 0
    assert np.load(out).shape == (600, 2)
    code, _, err = run(
        "predict", fitted / "rings.kmill", fitted / "rings.csv", "-o", out, "--std", "--quiet"
    )
    assert code == 2
    assert "--probabilities" in err


def test_predict_does_not_overwrite_what_it_reads(run, fitted):
    data, model = fitted / "rings.csv", fitted / "rings.kmill"
    before = data.read_bytes(), model.read_bytes()
    for out in (data, model, fitted / ".." / fitted.name / "rings.csv"):
        code, _, err = run("predict", model, data, "-o", out)
        assert code == 1
        assert "must not be a file that is read" in err
    assert (data.read_bytes(), model.read_bytes()) == before


@pytest.mark.parametrize("name", ["rings", "radius"])
def test_evaluate(run, fitted, name):
    code, out, _ = run("evaluate", fitted / f"{name}.kmill", fitted / "rings.csv", "--json")
    assert code == 0
    evaluation = revived(Evaluation, json.loads(out)["evaluation"])
    assert evaluation.n_rows == 600
    code, out, _ = run("evaluate", fitted / f"{name}.kmill", fitted / "rings.csv")
    assert code == 0
    assert widest(out) <= 80
    if name == "rings":
        assert "Confusion matrix: rows are true classes" in out
        assert "Calibration" in out
        assert f"error {plain.percent(evaluation.metrics['error'])} on 600 rows" in out
    else:
        assert out.startswith(f"root mean squared error {evaluation.metrics['rmse']:.4g}")


def test_json_has_no_points_of_plots_and_nothing_on_stderr(run, fitted):
    code, out, err = run("evaluate", fitted / "radius.kmill", fitted / "rings.csv", "--json")
    assert (code, err) == (0, "")
    evaluation = json.loads(out)["evaluation"]
    assert (evaluation["actual"], evaluation["predicted"]) == (None, None)
    assert evaluation["coverage"]["nominal"]
    _, out, _ = run("evaluate", fitted / "rings.kmill", fitted / "rings.csv", "--json")
    assert json.loads(out)["evaluation"]["calibration"]["predicted"]
    code, out, err = run(
        *("fit", fitted / "rings.csv", "-t", "place", "-n", "16", "--no-tune", "--json"),
        *("--out", fitted / "other.kmill"),
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["summary"]["kernel_check"]["exact"] is None


def test_the_headline_has_the_error_of_the_most_frequent_class():
    metrics = {"error": 0.1464, "error_low": 0.135, "error_high": 0.159, "baseline_error": 0.241}
    good = Evaluation("classification", "adult.test", 3256, metrics, 0.1)
    first, second, *_ = render_evaluation(good)
    assert first == (
        "error 14.6 % on 3,256 rows (95 % interval 13.5 % to 15.9 %); "
        "always predicting the most frequent class: 24.1 %"
    )
    assert second == ""
    bad = replace(good, metrics=metrics | {"error": 0.241})
    note = list(render_evaluation(bad))[1]
    assert note == "note: The model is no better than always predicting the most frequent class."
    table = list(render_evaluation(bad))[3]
    assert list(table.columns[0].cells) == ["time"]  # the rest is in the headline


def test_imbalanced_classes_that_are_ranked(run, tmp_path):
    """The AUC, and a verdict whose remedies are options of each command."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 2000)
    rare = rng.random(2000) < 0.15 + 0.13 * x
    lines = [f"{a:.4f},{'yes' if b else 'no'}" for a, b in zip(x, rare, strict=True)]
    table, model, page = (str(tmp_path / name) for name in ("a.csv", "a.kmill", "a.html"))
    Path(table).write_text("x,y\n" + "\n".join(lines) + "\n")
    settings = ("-n", "16", "--length-scale", "2", "--alpha", "0.01", "--epochs", "5")
    code, out, _ = run("fit", table, "-t", "y", *settings, "--out", model, "--report", page)
    assert code == 0
    area = re.search(r"^ROC AUC (0\.\d+) \(95 % interval 0\.\d+ to 0\.\d+\)$", out, re.MULTILINE)[1]
    note = (
        "note: The error is no lower than that of always predicting the most frequent class, but "
        f"the probabilities rank rows (AUC {area}): the classes are imbalanced; give rare classes "
        "more weight (--class-weight balanced), or choose"
    )
    assert note in out
    assert "give rare classes more weight, or choose" in Path(page).read_text()
    for command in (["inspect", model], ["evaluate", model, table]):
        _, out, _ = run(*command)
        assert re.search(r"ROC AUC +0\.\d+ \(95 % interval", out)
        assert "more weight (fit --class-weight balanced)" in out


def test_quiet_means_nothing_but_errors(run, fitted):
    assert run("--quiet", "evaluate", fitted / "rings.kmill", fitted / "rings.csv") == (0, "", "")


def test_inspect(run, fitted):
    code, out, err = run("inspect", fitted / "rings.kmill")
    assert (code, err) == (0, "")
    for words in ("classification", "place", "2: in, out", "fastfood, ", "128 features", "colour"):
        assert words in out
    assert "Held out: " in out
    assert "SORF (Walsh-Hadamard)" in out
    code, out, _ = run("inspect", fitted / "rings.kmill", "--json")
    record = json.loads(out)
    assert record["summary"]["construction"] == "SORF (Walsh-Hadamard)"
    assert record["summary"]["solver"] == "sgd"
    assert record["bytes"] == (fitted / "rings.kmill").stat().st_size
    assert record["format_version"] == 1
    assert revived(FitSummary, record["summary"]).classes == ["in", "out"]


def test_inspect_shows_which_columns_matter(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4)).round(3)
    waves = np.sin(3 * rows[:, 0]) + rows[:, 1] / 2
    lines = [",".join(f"{x}" for x in (*row, y)) for row, y in zip(rows, waves, strict=True)]
    (tmp_path / "waves.csv").write_text("\n".join(["a,b,c,d,radius", *lines]) + "\n")
    path = tmp_path / "waves.kmill"
    settings = ["-n", "64", "--kernel", "gaussian", "--quiet"]
    assert run("fit", tmp_path / "waves.csv", "-t", "radius", "-o", path, *settings)[0] == 0
    columns = load(path).column_relevance_
    assert {each.name for each in columns[:2]} == {"a", "b"}
    out = run("inspect", path)[1]
    assert out.index("Column relevance") < out.index("range over searches")
    assert widest(out[out.index("Column relevance") :]) <= 80
    shown = json.loads(run("inspect", path, "--json")[1])["summary"]
    assert [each["name"] for each in shown["column_relevance"]] == [each.name for each in columns]
    assert revived(FitSummary, shown).column_relevance == columns
    assert shown["partial_dependence"][0]["outputs"] == ["radius"]


def test_the_construction_is_named(run, rings, tmp_path):
    model, page = tmp_path / "m.kmill", tmp_path / "r.html"
    for options, construction in (
        (["--map-option", "structure=hadamard"], "Fastfood (Walsh-Hadamard)"),
        (["--map", "random_fourier"], "dense matrix"),
        (["--map-option", "structure=dct", "--report", page], "Fastfood with DCT"),
    ):
        arguments = ["fit", rings, "-t", "place", "-o", model, "--no-tune", *SMALL]
        code, out, _ = run(*arguments, *options)
        assert code == 0
        assert construction in out
        assert load(model).summary.construction == construction
        assert construction in run("inspect", model)[1]
    assert construction in page.read_text()


def test_inspect_names_the_construction_of_older_files(run):
    path = Path(__file__).parents[1] / "files" / "golden" / "table-1.kmill"
    assert load(path).summary.construction == ""
    shown = json.loads(run("inspect", path, "--json")[1])["summary"]
    assert shown["construction"] in run("inspect", path)[1]
    assert shown["construction"].startswith(("SORF", "Fastfood"))


def test_models_saved_in_python_are_told_apart(run, rings, tmp_path):
    from kernelmill.learners import KernelRegressor

    path = tmp_path / "learner.kmill"
    rows = np.random.default_rng(0).normal(size=(50, 3))
    KernelRegressor(random_state=0).fit(rows, rows[:, 0]).save(path)
    code, out, _ = run("inspect", path)
    assert code == 0
    assert "KernelRegressor" in out
    assert "Fastfood (Walsh-Hadamard)" in out
    assert json.loads(run("inspect", path, "--json")[1])["summary"] is None
    code, _, err = run("predict", path, rings, "-o", tmp_path / "p.csv")
    assert code == 1
    assert "contains an estimator that was saved in Python" in err


def test_transform_writes_features_whose_products_are_kernel_values(run, fitted, tmp_path):
    out = tmp_path / "z.npy"
    code, printed, _ = run("transform", fitted / "rings.kmill", fitted / "rings.csv", "-o", out)
    assert code == 0
    assert printed.startswith("600 rows of 128 features")
    features = np.load(out)
    assert features.shape == (600, 128)
    np.testing.assert_allclose((features**2).sum(axis=1), 1, rtol=1e-5)  # k(x, x)


def test_transform_writes_tables_too(run, fitted, tmp_path):
    out = tmp_path / "z.csv"
    code, _, _ = run("transform", fitted / "rings.kmill", fitted / "rings.csv", "-o", out)
    assert code == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 601
    assert lines[0].startswith("fastfood0,fastfood1,")


def test_interrupted_fits_resume(run, rings, tmp_path, monkeypatch):
    """As if it had never been interrupted, to the bit."""
    out, checkpoint = tmp_path / "m.kmill", tmp_path / "m.kmill.checkpoint"
    arguments = ["fit", rings, "-t", "place", "-o", out, "--no-tune", "--epochs", "6", *SMALL]
    arguments += ["--checkpoint-seconds", "0"]
    assert run(*arguments)[0] == 0
    assert not checkpoint.exists()
    whole = load(out).learner.coef_
    out.unlink()

    def interrupt(bars, amount, status=""):
        if checkpoint.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ProgressBars, "advance", interrupt)
        code, _, err = run(*arguments)
    assert code == 130
    assert f"checkpoint kept in {checkpoint}" in err
    assert "try: run again with --resume" in err
    assert not out.exists()
    code, _, err = run(*arguments, "--resume")
    assert code == 0
    assert f"resuming from {checkpoint}" in err
    np.testing.assert_array_equal(load(out).learner.coef_, whole)
    assert not checkpoint.exists()


@pytest.mark.parametrize("suffix", [".checkpoint", ".checkpoint.old"])
def test_folders_in_place_of_checkpoints_are_rejected_before_training(run, rings, suffix, tmp_path):
    (tmp_path / f"m.kmill{suffix}").mkdir()
    code, out, err = run("fit", rings, "-t", "place", "-o", tmp_path / "m.kmill")
    assert (code, out) == (1, "")
    assert f"m.kmill{suffix}, but a folder has that name" in err
    assert not (tmp_path / "m.kmill").exists()


def test_the_default_name_is_not_printed_without_data(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fit", "no.csv", "-t", "place")
    assert code == 1
    assert "the model will be" not in err


def test_resume_without_a_checkpoint_starts_from_the_beginning(run, rings, tmp_path):
    out = tmp_path / "m.kmill"
    code, _, err = run("fit", rings, "-t", "place", "-o", out, "--no-tune", "--resume", *SMALL)
    assert code == 0
    assert "there is no checkpoint" in err
    assert out.exists()


def test_a_forgotten_resume_loses_nothing(tmp_path):
    checkpoint = FitCheckpoint(tmp_path / "m.kmill")
    checkpoint.path.write_text("hours of work")
    assert "starting from the beginning" in checkpoint.prepare(resume=False)
    assert not checkpoint.path.exists()
    assert "nothing was written" in checkpoint.describe_interrupt()[0]
    assert checkpoint.path.read_text() == "hours of work"
    checkpoint.prepare(resume=False)
    checkpoint.restore()
    assert checkpoint.path.read_text() == "hours of work"
    checkpoint.prepare(resume=False)
    checkpoint.path.write_text("new")
    assert "checkpoint kept" in checkpoint.describe_interrupt()[0]
    assert checkpoint.old.read_text() == "hours of work"
    checkpoint.discard_old()
    assert [path.name for path in tmp_path.iterdir()] == ["m.kmill.checkpoint"]


def test_a_checkpoint_of_other_settings_is_rejected_with_a_remedy(run, rings, tmp_path):
    out, checkpoint = tmp_path / "m.kmill", tmp_path / "m.kmill.checkpoint"
    checkpoint.write_bytes(b"not a checkpoint")
    code, _, err = run("fit", rings, "-t", "place", "-o", out, "--no-tune", "--resume", *SMALL)
    assert code == 1
    assert "checkpoint" in err
    assert "try: run again without --resume" in err
    assert not out.exists()
    assert checkpoint.exists()


def test_inspect_names_options_not_arguments(run, rings, tmp_path):
    lines = rings.read_text().splitlines()
    numbered = tmp_path / "numbered.csv"
    numbered.write_text(
        "\n".join([f"id,{lines[0]}", *(f"{i},{v}" for i, v in enumerate(lines[1:]))])
    )
    model = tmp_path / "model.kmill"
    settings = ["--no-tune", "-n", "16", "--epochs", "1", "--quiet"]
    assert run("fit", numbered, "-t", "place", "-o", model, *settings)[0] == 0
    _, out, _ = run("inspect", model)
    assert "if it is a row number, leave it out (--drop id)" in out
    assert "drop=" not in out


def test_training_options(run, rings, tmp_path):
    lines = rings.read_text().splitlines()
    weighted = tmp_path / "weighted.csv"
    weighted.write_text(
        "\n".join([lines[0] + ",w", *(f"{line},{1 + i % 3}" for i, line in enumerate(lines[1:]))])
    )
    model = tmp_path / "weighted.kmill"
    code, out, _ = run(
        *("fit", weighted, "-t", "place", "--no-tune", "-n", "32", "-o", model, "--folds", "3"),
        *("--weights", "w", "--class-weight", "in=2", "--refit", "--drop", "radius"),
    )
    assert code == 0
    assert "Cross-validated (3 folds): error" in out
    assert "all in the refit; error" in out
    assert "column w" in out
    code, out, _ = run("inspect", model)
    assert "class weights  in: 2" in out
    assert "Cross-validated (3 folds)" in out
    code, _, err = run("fit", weighted, "-t", "place", "--class-weight", "in")
    assert code == 2
    assert "--class-weight must be balanced, or LABEL=NUMBER such as yes=5, got 'in'" in err
    other = tmp_path / "other.csv"
    other.write_bytes(weighted.read_bytes())
    code, out, _ = run(
        *("fit", weighted, "-t", "place", "--no-tune", "-n", "32", "-o", model),
        *("--validation", other, "--json"),
    )
    assert json.loads(out)["summary"]["n_held_out"] == 600


@pytest.mark.parametrize("command", ["predict", "evaluate", "transform"])
def test_models_have_a_budget_of_memory(run, fitted, tmp_path, command):
    out = [] if command == "evaluate" else ["-o", str(tmp_path / "out.csv")]
    arguments = (command, str(fitted / "rings.kmill"), str(fitted / "rings.csv"), *out)
    code, _, said = run(*arguments, "--max-memory", "1")
    assert code == 1
    assert "its map would take about" in said
    assert "--max-memory 1G" in said
    assert run(*arguments, "--max-memory", "1G")[0] == 0  # the remedy
    code, _, said = run(*arguments, "--max-memory", "much")
    assert code == 2
    assert "must be a size such as 16G or 500M, got 'much'" in said


def test_groups_and_latest_rows(run, rings, tmp_path):
    """The summary says how rows were held out; errors name the options."""
    lines = rings.read_text().splitlines()
    rows = [f"{line},{i % 12},{i}" for i, line in enumerate(lines[1:])]
    rings.write_text("\n".join([f"{lines[0]},patient,visit", *rows]) + "\n")
    quick = ("-t", "place", "-n", 32, "--no-tune", "--out", tmp_path / "m.kmill")
    code, out, _ = run("fit", rings, *quick, "--group", "patient", "--json")
    assert code == 0
    division = json.loads(out)["summary"]["division"]
    assert (division["by"], division["column"], division["n_groups"]) == ("groups", "patient", 12)
    code, out, _ = run("inspect", tmp_path / "m.kmill")
    assert "1 of 12 groups of column patient" in out
    code, out, err = run("fit", rings, *quick, "--holdout-last", "visit", "--drop", "visit")
    assert "Rows with 'visit' from 540 on are held out" in " ".join(err.split())
    assert "the latest, visit from 540 on" in " ".join(out.split())
    code, _, err = run("fit", rings, *quick, "--group", "patient", "--holdout-last", "visit")
    assert code == 2
    assert "--holdout-last cannot be used with groups, got 'visit'" in " ".join(err.split())
    assert "leave out the groups (without --group)" in " ".join(err.split())
    code, _, err = run("compare", rings, "-t", "place", "--group", "place")
    assert "--group must be a column other than the target 'place'" in " ".join(err.split())
