"""Commands that compare, and the pages they write."""

import json
from functools import partial

import pytest

from kernelmill import workflows
from kernelmill.cli.commands import demo
from kernelmill.workflows.records import ComparedModel, Comparison, Evaluation, FitSummary

from .conftest import revived, widest

SIZES = ["-n", "16", "-n", "64", "--kernel", "gaussian"]

pytestmark = pytest.mark.usefixtures("few_epochs")


def test_compare(run, rings, tmp_path, monkeypatch):
    page = tmp_path / "c.html"
    arguments = ["compare", rings, "-t", "radius", "--drop", "place", *SIZES, "--report", page]
    code, out, err = run(*arguments, "--rows", "300", "--exact-rows", "100", "--json")
    assert code == 0, err
    record = json.loads(out)
    comparison = revived(Comparison, record["comparison"])
    families = {model.family for model in comparison.models}
    assert families == {"linear", "features", "nystroem", "trees", "exact"}
    size = comparison.settings.get("n_components")
    assert size in (None, 16, 64)  # None for the default fit
    assert size is None or f"--n-components {size}" in page.read_text()
    sizes = {model.n_components for model in comparison.models if model.name == "fastfood"}
    assert sizes == {16, 64}
    assert max(model.n_train for model in comparison.models if model.family == "exact") <= 100
    assert comparison.n_train <= 300
    assert record["report"] == str(page)
    assert page.read_text().lstrip().lower().startswith("<!doctype html")

    # The same result as a table.
    monkeypatch.setattr(workflows, "compare_table", lambda *args, **settings: comparison)
    code, out, _ = run("compare", rings, "-t", "radius", "--drop", "place", *SIZES, "--rows", "300")
    assert code == 0
    out, _, command = out.rpartition("Next: ")
    assert command.startswith(f"kernelmill fit {rings} --target radius --drop place")
    assert "fit (defaults)" in out
    assert widest(out) <= 80
    for name in ("linear", "fastfood", "nystroem", "boosted trees", "exact kernel", "rmse"):
        assert name in out
    assert "*" in out


@pytest.mark.parametrize("best", ["linear", "fastfood", "exact kernel"])
def test_compare_explains_what_it_suggests(run, monkeypatch, tmp_path, best):
    """The best model may be one of scikit-learn."""
    errors = {"linear": 0.3, "fastfood": 0.2, "exact kernel": 0.4, best: 0.1}
    models = [
        ComparedModel("linear", "linear", None, 90, errors["linear"], 1, 1, None),
        ComparedModel("fastfood", "features", 16, 90, errors["fastfood"], 1, 1, None),
        ComparedModel("exact kernel", "exact", None, 90, errors["exact kernel"], 1, 1, None),
    ]
    found = Comparison("classification", "a.csv", "y", 90, 30, "error", models)
    monkeypatch.setattr("kernelmill.workflows.compare_table", lambda *args, **settings: found)
    page = tmp_path / "c.html"
    monkeypatch.chdir(tmp_path)
    for name in ("a.kmill", "a-2.kmill"):  # which the suggested command must not overwrite
        (tmp_path / name).touch()
    code, out, _ = run("compare", "a.csv", "-t", "y", "--report", page)
    assert code == 0
    assert "--out a-3.kmill" in out
    for text in (" ".join(out.split()), page.read_text()):
        assert ("10.0 %, is that of linear from scikit" in text) == (best == "linear")
        assert ("10.0 %, is that of the exact kernel f" in text) == (best == "exact kernel")
        assert ("With as many features as rows, the map nystroem" in text) == (
            best == "exact kernel"
        )
        assert ("best model of kernelmill has 20.0 %." in text) == (best != "fastfood")
        assert "does not fit" not in text


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_fit_and_evaluate_write_pages(run, fitted, tmp_path, command):
    page = tmp_path / "page.html"
    data, model = fitted / "rings.csv", tmp_path / "m.kmill"
    arguments = {
        "fit": ["fit", data, "-t", "place", "-o", model, "--no-tune", "-n", "16"],
        "evaluate": ["evaluate", fitted / "radius.kmill", data],
    }[command]
    code, out, err = run(*arguments, "--report", page)
    assert code == 0, err
    assert f"Report: {page}" in out
    assert "<svg" in page.read_text()


def test_notes_of_pages_name_options(run, tmp_path):
    data, page = tmp_path / "a.csv", tmp_path / "a.html"
    data.write_text("share,y\n" + "".join(f"{i % 7}.5%,{i % 7}.25\n" for i in range(60)))
    settings = ["-t", "y", "-o", tmp_path / "m.kmill", "--no-tune", "-n", "16"]
    code, _, err = run("fit", data, *settings, "--report", page, "--quiet")
    assert code == 0, err
    assert "--categorical share" in page.read_text()
    assert "categorical=[" not in page.read_text()
    code, _, err = run("evaluate", tmp_path / "m.kmill", data, "--report", page, "--quiet")
    assert code == 0, err
    assert "--categorical share" in page.read_text()
    assert "categorical=[" not in page.read_text()


def test_demo_shows_the_whole_way(run, tmp_path, monkeypatch):
    """All steps on the real files; the fit is not tuned, and few rows are compared."""
    monkeypatch.setattr(demo, "N_COMPONENTS", (32,))
    quick_fit = partial(workflows.fit_table, tune=False)
    quick_comparison = partial(workflows.compare_table, kernel="gaussian", rows=200, exact_rows=99)
    monkeypatch.setattr(workflows, "fit_table", quick_fit)
    monkeypatch.setattr(workflows, "compare_table", quick_comparison)
    folder = tmp_path / "new" / "demo"
    code, out, err = run("demo", "--out", folder, "--json")
    assert code == 0, err
    record = json.loads(out)
    summary = revived(FitSummary, record["summary"])
    assert (summary.task, summary.target, len(summary.classes)) == ("classification", "digit", 10)
    # 32 features of 64 pixels: worse than a linear model, and far better than chance (90 %).
    assert revived(Evaluation, record["evaluation"]).metrics["error"] < 0.45
    assert revived(Comparison, record["comparison"]).models
    assert sorted(path.name for path in folder.iterdir()) == [
        *("digits-test.csv", "digits-train.csv", "digits.kmill", "report.html")
    ]


def test_demo_prints_each_command_line(run, tmp_path, monkeypatch, fitted):
    """Those lines are accepted by the program."""
    from kernelmill.cli.program.group import program
    from kernelmill.workflows import load

    model = load(fitted / "rings.kmill")
    monkeypatch.setattr("kernelmill.workflows.fit_table", lambda *args, **settings: model)
    evaluation = model.evaluate_table(fitted / "rings.csv")
    monkeypatch.setattr(type(model), "evaluate_table", lambda *args, **settings: evaluation)
    comparison = Comparison("classification", "d.csv", "digit", 10, 5, "error", [])
    monkeypatch.setattr("kernelmill.workflows.compare_table", lambda *args, **settings: comparison)
    code, out, err = run("demo", "--out", tmp_path)
    assert code == 0, err
    lines = [line.split()[2:] for line in out.splitlines() if line.startswith("$ kernelmill ")]
    assert [line[0] for line in lines] == ["fit", "evaluate", "compare"]
    for name, *arguments in lines:
        program.get_command(None, name).make_context(name, arguments)
    assert f"Open the report in a browser: {(tmp_path / 'report.html').as_uri()}" in out
