"""Progress as lines: in logs and in Python."""

import threading
import time

import numpy as np
import pytest

from kernelmill import fit_table
from kernelmill.runtime.progress import LogProgress, SilentProgress, reports_progress


def test_lines_come_after_the_time_between_them(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lines = []
    progress = LogProgress(lines.append, seconds=30)
    progress.start("Training", 1000)
    for _ in range(10):
        now[0] += 8
        progress.advance(100, "loss 0.5")
    progress.start("Evaluating", None, "rows")
    progress.advance(7)
    progress.end_stage()
    progress.end_stage()
    assert lines == [
        "Training: 40 %, 400 of 1,000 rows, 48 s left, loss 0.5",
        "Training: 80 %, 800 of 1,000 rows, 16 s left, loss 0.5",
        "Training: 1,000 rows, 80 s",
        "Evaluating: 7 rows, 0 µs",
    ]


def test_verbose_prints_the_stages_of_a_fit(capsys):
    x = np.random.default_rng(0).normal(size=200)
    columns = {"x": x, "y": x**2, "c": np.ones(200)}
    fit_table(columns, "y", tune=False, n_components=16, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    stages = ["note", "Reading", "Encoding", "Training", "Evaluating"]
    assert [line.split(":")[0] for line in lines] == stages
    fit_table(columns, "y", tune=False, n_components=16)
    assert capsys.readouterr().err == ""
    fit_table(columns, "y", tune=False, n_components=16, verbose=True, progress=SilentProgress())
    assert capsys.readouterr().err == ""


def test_lines_come_in_time_if_nothing_advances():
    lines = []
    progress = LogProgress(lines.append, seconds=0.01)
    progress.start("Solving", 10)
    progress.advance(5)
    deadline = time.monotonic() + 300
    while len(lines) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.end_stage()
    assert lines[2].startswith("Solving: 50 %, 5 of 10 rows, ")
    n_lines = len(lines)
    time.sleep(0.05)
    assert len(lines) == n_lines


def test_an_error_ends_the_lines(capsys):
    @reports_progress
    def fail(*, progress=None, verbose=False):
        progress.start("Failing")
        raise ValueError("on purpose")

    before = threading.active_count()
    with pytest.raises(ValueError, match="on purpose"):
        fail(verbose=True)
    assert capsys.readouterr().err.startswith("Failing: ")
    deadline = time.monotonic() + 300
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_doubts_are_warnings_at_the_line_of_the_call():
    x = np.random.default_rng(0).normal(size=200)
    columns = {"x": x, "y": x**2, "rows": np.arange(200.0)}
    with pytest.warns(UserWarning, match="'rows' increases by one") as found:
        model = fit_table(columns, "y", tune=False, n_components=16)
    assert found[0].filename == __file__
    assert any("increases by one" in note for note in model.summary.notes)


def test_more_than_an_estimated_total():
    lines = []
    progress = LogProgress(lines.append, seconds=0)
    progress.start("Tuning", 2, "steps")
    for _ in range(3):
        progress.advance(1)
    assert lines[1:] == ["Tuning: 99 %, 2 of 2 steps", "Tuning: 99 %, 3 of 3 steps"]
    progress.end_stage()
    assert lines[3].startswith("Tuning: 3 steps, ")
