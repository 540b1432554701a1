"""Commands that answer at once: which modules they import, and that their predictions are the same.

Importing scikit-learn takes longer than the rest of these commands together.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelmill

GOLDEN = Path(__file__).parents[1] / "files" / "golden"
SLOW = {"sklearn", "matplotlib", "pandas", "joblib", "jinja2"}
PROGRAM = """
import sys
sys.argv[0] = {name!r}  # as the command does, without the cost of one more process
from kernelmill.cli import main
code = main(sys.argv[1:])
print(code or 0, *{{name.split(".")[0] for name in sys.modules}}, file=sys.stderr)
"""


def run(*arguments, name="kernelmill"):
    """The top-level modules that a command has imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


def test_help_and_inspect_read_no_tables():
    assert not run("--help") & {*SLOW, "pyarrow"}
    assert not run("inspect", GOLDEN / "table-4.kmill") & {*SLOW, "pyarrow"}
    assert not run("inspect", GOLDEN / "classifier-1.kmill") & {*SLOW, "pyarrow"}


@pytest.mark.representative
def test_predictions_need_no_estimators(tmp_path):
    out = tmp_path / "predictions.csv"
    for name in ("table-1", "table-4"):
        modules = run("predict", GOLDEN / f"{name}.kmill", GOLDEN / f"{name}.csv", "--out", out)
        assert not modules & SLOW
        assert "pyarrow" in modules


def test_evaluations_need_no_estimators():
    model, table = GOLDEN / "table-4.kmill", GOLDEN / "table-4.csv"
    module = str(Path("kernelmill", "cli", "__main__.py"))  # of python -m kernelmill.cli
    assert not run("evaluate", model, table, name=module) & SLOW


@pytest.mark.parametrize("name", ["table-1", "table-2", "table-3", "table-4"])
def test_tables_are_predicted_as_by_estimators(name):
    model = kernelmill.load(GOLDEN / f"{name}.kmill")
    predictor = kernelmill.load_predictor(GOLDEN / f"{name}.kmill")
    requests = [{}]
    if model.reader.task == "classification" and model.learner.loss == "log_loss":
        requests.append({"probabilities": True})
    for request in requests:
        ours = predictor.predict_table(GOLDEN / f"{name}.csv", **request)
        assert ours.equals(model.predict_table(GOLDEN / f"{name}.csv", **request))


@pytest.mark.parametrize("name", ["classifier-1", "regressor-1"])
def test_learners_predict_as_estimators(name):
    learner = kernelmill.load(GOLDEN / f"{name}.kmill")
    predictor = kernelmill.load_predictor(GOLDEN / f"{name}.kmill")
    X = np.random.default_rng(0).normal(size=(50, learner.n_features_in_))
    for rows in (X, X.astype(np.float32), X[:1]):
        np.testing.assert_array_equal(predictor.predict(rows), learner.predict(rows))
    if name == "classifier-1":
        np.testing.assert_array_equal(predictor.decision_function(X), learner.decision_function(X))
    else:
        for ours, theirs in zip(
            predictor.predict(X, return_std=True),
            learner.predict(X, return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("X", "problem"),
    [
        (np.ones((2, 1)), "columns"),
        (np.ones(3), "columns"),
        ("empty", "at least one row"),
        ("nan", "finite"),
    ],
)
def test_predictors_reject_other_rows(X, problem):
    predictor = kernelmill.load_predictor(GOLDEN / "classifier-1.kmill")
    if isinstance(X, str):
        X = np.full((0 if X == "empty" else 1, predictor.n_features_in_), np.nan)
    with pytest.raises(kernelmill.errors.ArgumentError, match=problem):
        predictor.predict(X)
