"""Progress as lines: in logs and in Python."""

import numpy as np

from kernelmill import fit_table
from kernelmill.runtime.progress import LogProgress, SilentProgress, choose_progress


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
    given = SilentProgress()
    assert choose_progress(given, True) is given
