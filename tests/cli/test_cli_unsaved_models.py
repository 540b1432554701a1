"""Models that cannot be written: the work of their training is kept, and the message says where."""

import errno
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelmill.cli import main
from kernelmill.workflows import TableModel, load

SMALL = ["--n-components", "64", "--alpha", "0.01"]


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize(
    ("target", "options", "solver"),
    [
        ("place", ["--epochs", "6"], "sgd.Training.visit"),
        ("place", ["--solver", "lbfgs"], "lbfgs._add_losses"),
        ("radius", [], "exact.RidgeStatistics.update"),
        ("radius", ["--solver", "cg"], "cg._project"),
    ],
)
def test_a_failure_after_training_keeps_the_checkpoint(
    run, rings, tmp_path, monkeypatch, target, options, solver, other
):
    """However short the training was; `--resume` does not train again."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a folder"
    folder.mkdir()
    arguments = ["fit", rings, "-t", target, "--no-tune", *SMALL, *options]
    assert run(*arguments, "-o", "whole.kmill")[0] == 0
    whole = load("whole.kmill").learner.coef_
    with monkeypatch.context() as patched:
        patched.setattr("kernelmill.workflows.TableModel.save", full_disk)
        code, _, err = run(*arguments, "-o", "a folder/m.kmill")
    assert (code, list(folder.iterdir())) == (1, [folder / "m.kmill.checkpoint"])
    problem, remedy = err.splitlines()[-2:]
    assert problem == (
        "error: a folder/m.kmill cannot be written: no space left on device; the training has "
        "finished, and its checkpoint is kept in a folder/m.kmill.checkpoint"
    )
    assert remedy.startswith("try: run again with --resume, which does not train again, or write")
    monkeypatch.setattr(f"kernelmill.learners.solvers.{solver}", train_again)
    if other:
        move = remedy[remedy.index("mv ") : remedy.index(", and run")]
        subprocess.run(move, shell=True, check=True)
        out = remedy.split()[-1]
        assert remedy.endswith(f"again with --resume --out {out}")
    else:
        out = "a folder/m.kmill"
    code, _, err = run(*arguments, "-o", out, "--resume")
    assert code == 0, err
    np.testing.assert_array_equal(load(out).learner.coef_, whole)
    assert [path.name for path in folder.iterdir()] == ([] if other else ["m.kmill"])
    assert not list(tmp_path.glob("*.checkpoint"))


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def train_again(*_, **__):
    raise AssertionError("it trains again")


def test_a_model_is_written_elsewhere_if_the_disk_has_no_room_for_a_checkpoint(
    run, rings, tmp_path, monkeypatch
):
    save, out = TableModel.save, tmp_path / "m.kmill"

    def on_another_disk(model, path, **settings):
        if path == out:
            full_disk()
        save(model, path, **settings)

    arguments = ["fit", rings, "-t", "place", "-o", out, "--no-tune", "--epochs", "6", *SMALL]
    monkeypatch.setattr("kernelmill.learners.run._has_room", lambda *_: False)
    monkeypatch.setattr(TableModel, "save", on_another_disk)
    code, printed, err = run(*arguments, "--json")
    assert (code, [path.name for path in tmp_path.iterdir()]) == (1, ["rings.csv"])
    error = json.loads(printed)["error"]
    found = re.fullmatch(
        rf"{out} cannot be written: no space left on device; it was written to (.*) instead",
        error["message"],
    )
    assert found, err
    assert error["try"] == "copy it: the folder is temporary"
    path = Path(found[1])
    assert load(path).summary.target == "place"
    path.unlink()
    path.parent.rmdir()


@pytest.mark.parametrize("seconds", ["0", "1000"])
def test_where_nothing_can_be_written_the_message_says_so(
    run, rings, tmp_path, monkeypatch, seconds
):
    """An earlier state of the training may be there."""
    arguments = ["fit", rings, "-t", "place", "-o", tmp_path / "m.kmill", "--no-tune", *SMALL]
    arguments += ["--epochs", "6", "--checkpoint-seconds", seconds]
    monkeypatch.setattr("kernelmill.learners.run._has_room", lambda *_: False)
    monkeypatch.setattr(TableModel, "save", full_disk)
    code, _, err = run(*arguments)
    problem, remedy = err.splitlines()[-2:]
    assert code == 1
    assert "neither can a temporary file: no space left on device" in problem
    if seconds == "0":
        assert remedy == (
            "try: free some disk space: checkpoint kept in "
            f"{tmp_path / 'm.kmill.checkpoint'}; run again with --resume"
        )
    else:
        assert problem.endswith("; the work of this training is lost")
        assert remedy == "try: free some disk space"


def test_a_model_for_a_full_stdout_is_kept(rings, monkeypatch, capsys):
    arguments = ["fit", rings, "-t", "place", "-o", "-", "--no-tune", "--epochs", "1", *SMALL]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", full)
        code = main([str(each) for each in arguments])
        monkeypatch.undo()
    problem, remedy = capsys.readouterr().err.splitlines()[-2:]
    assert (code, remedy) == (1, "try: copy it: the folder is temporary")
    found = re.search(
        "stdout: no space left on device; the model was written to (.*) instead", problem
    )
    assert load(found[1]).summary.target == "place"
    shutil.rmtree(Path(found[1]).parent)
