"""Text from files that nobody has checked: names, labels and paths in terminals, shells, pages."""

import csv
import fcntl
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CLEAR, TITLE, REVERSE = "\x1b[2J", "\x1b]0;owned\x07", "\u202e"
QUICK = ["--n-components", "32", "--no-tune", "--epochs", "3"]


@pytest.fixture
def strange(tmp_path):
    """A table whose names, categories and labels are not what a terminal should get."""
    rng = np.random.default_rng(0)
    path = tmp_path / "strange.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([f"{CLEAR}a", f"b{REVERSE}", "c\x9b2J", "label"])
        for x in rng.normal(size=120):
            label = f"{TITLE}yes" if x > 0 else "=cmd|'/C calc'!A0"
            writer.writerow([f"{x:.4f}", f"{CLEAR}{x > 1}", f"{-x:.3f}", label])
    return path


@pytest.mark.representative
def test_controls_reach_neither_terminal_nor_page(run, strange, tmp_path):
    model, page = tmp_path / f"m{CLEAR}.kmill", tmp_path / "page.html"
    commands = [
        ["fit", strange, "-t", "label", "-o", model, "--report", page, *QUICK],
        ["inspect", model],
        ["evaluate", model, strange],
        ["predict", model, strange, "--out", tmp_path / f"p{CLEAR}.csv"],
    ]
    for command in commands:
        code, out, err = run(*command)
        assert code == 0, err
        assert not CONTROLS.search(out + err)
        assert r"\x" in out + err  # tables may cut it
    assert not CONTROLS.search(page.read_text(encoding="utf-8"))


def test_controls_in_errors(run, strange, tmp_path):
    for command in (
        ["fit", strange, "-t", f"{TITLE}nothing", *QUICK],
        ["inspect", tmp_path / f"{CLEAR}.kmill"],
        ["fit", tmp_path / f"{REVERSE}.csv", "-t", "a"],
        [f"fi{CLEAR}"],
    ):
        code, out, err = run(*command)
        assert code != 0
        assert not CONTROLS.search(out + err)


def test_json_keeps_the_text(run, strange, tmp_path):
    model = tmp_path / "m.kmill"
    code, out, _ = run("fit", strange, "-t", "label", "-o", model, "--json", *QUICK)
    assert code == 0
    assert not CONTROLS.search(out)
    assert "\\u001b]0;owned\\u0007yes" in out


def test_the_next_command_is_quoted(run, strange, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "$(touch PWNED) `id`.csv"
    strange.rename(tmp_path / name)
    code, out, err = run("fit", name, "-t", "label", *QUICK)
    assert code == 0, err
    line = next(line for line in out.splitlines() if line.startswith("Next: "))
    assert shlex.split(line)[:4] == ["Next:", "kernelmill", "predict", "$(touch PWNED) `id`.kmill"]


@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_formulas_of_spreadsheets(run, strange, tmp_path, extension):
    model, out = tmp_path / "m.kmill", tmp_path / f"p.{extension}"
    assert run("fit", strange, "-t", "label", "-o", model, *QUICK)[0] == 0
    for options, first in (([], "=cmd"), (["--escape-formulas"], "'=cmd")):
        assert run("predict", model, strange, "-o", out, "--probabilities", *options)[0] == 0
        delimiter = "," if extension == "csv" else "\t"
        rows = list(csv.DictReader(out.read_text().splitlines(), delimiter=delimiter))
        labels = {row["prediction"] for row in rows}
        assert any(label.startswith(first) for label in labels)
        assert all(float(row["probability of =cmd|'/C calc'!A0"]) >= 0 for row in rows)


def test_two_fits_of_one_model(run, rings, tmp_path):
    model, lock = tmp_path / "rings.kmill", tmp_path / ".rings.kmill.lock"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    code, _, err = run("fit", rings, "-t", "place", "-o", model, *QUICK)
    assert code == 1
    assert "another training run is writing" in err
    assert "--out" in err
    os.close(descriptor)  # as when the other run ends, whatever the reason
    assert run("fit", rings, "-t", "place", "-o", model, *QUICK)[0] == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rings.csv", "rings.kmill"]


INTERRUPTED_TWICE = """
import os, signal, sys
import kernelmill.cli.program.group as group
signal.signal(signal.SIGINT, signal.default_int_handler)
name = {"while": "report_error", "before": "ignore_interrupts"}[sys.argv.pop(1)]
original, left = getattr(group, name), [1]
def interrupted(*arguments):
    if left:
        left.pop()
        os.kill(os.getpid(), signal.SIGINT)
    return original(*arguments)
setattr(group, name, interrupted)
sys.argv[0] = "kernelmill"
sys.exit(group.run())
"""


@pytest.mark.parametrize("moment", ["while", "before"])
def test_interrupts_while_an_error_is_printed(moment):
    arguments = [sys.executable, "-c", INTERRUPTED_TWICE, moment, "inspect", "nothing.kmill"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.returncode in (1, 130)
