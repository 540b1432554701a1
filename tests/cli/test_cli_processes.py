"""The program as shells and other programs meet it: signals, pipes, terminals."""

import io
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time

import pytest

from kernelmill.cli import main
from kernelmill.cli.program.terminal import Terminal
from kernelmill.cli.render.progress import ProgressBars

from .conftest import write_rings

COMMAND = [sys.executable, "-m", "kernelmill.cli"]
LONG = ["-t", "place", "--no-tune", "--n-components", "256", "--epochs", "1000000"]


@pytest.fixture
def start(tmp_path):
    """Start the program in an empty folder; it is ended with the test."""
    started = []

    def begin(*arguments, **settings):
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TERM": "xterm"}
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], cwd=tmp_path, env=os.environ | threads, **settings
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def test_ctrl_c_keeps_the_checkpoint_and_no_half_written_file(start, rings):
    """In a terminal: bars on stderr, taken away at the end with the cursor back."""
    (rings.parent / "rings.kmill").write_text("an earlier model")
    checkpoint = rings.parent / "rings.kmill.checkpoint"
    master, slave = pty.openpty()
    process = start(
        *("fit", rings, *LONG, "--checkpoint-seconds", "0.1"), stderr=slave, stdin=slave
    )
    os.close(slave)
    seen = b""
    while not (b"rows/s" in seen and checkpoint.exists()) and (more := read(master)):
        seen += more
    process.send_signal(signal.SIGINT)
    while more := read(master):
        seen += more
    os.close(master)
    assert process.wait(timeout=300) == 130, seen
    assert process.stdout.read() == b""
    assert b"checkpoint kept" in seen
    assert b"try: run again with --resume" in seen
    assert b"Training" in seen
    assert b"rows/s" in seen
    assert b"error: interrupted" in seen
    assert b"Traceback" not in seen
    hidden, shown = b"\x1b[?25l", b"\x1b[?25h"
    assert seen.rindex(shown) > seen.rindex(hidden)
    assert (rings.parent / "rings.kmill").read_text() == "an earlier model"
    assert sorted(path.name for path in rings.parent.iterdir()) == [
        *("rings.csv", "rings.kmill", "rings.kmill.checkpoint")
    ]


def test_ctrl_c_during_tuning_keeps_what_was_found(start, run, tmp_path, monkeypatch):
    """In one line, with code 130; a run that resumes does not repeat it."""
    rings, checkpoint = tmp_path / "rings.csv", tmp_path / "rings.kmill.checkpoint"
    write_rings(rings, 200)
    settings = ["fit", rings, "-t", "place", "-n", "16", "--epochs", "1", "--kernel", "gaussian"]
    process = start(*settings, "--checkpoint-seconds", "0")
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    last = process.stderr.read().decode().splitlines()[-2:]
    assert last[0] == (
        "error: interrupted: no model was written, checkpoint kept in rings.kmill.checkpoint"
    )
    assert last[1] == "try: run again with --resume"
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*settings, "--resume")
    assert code == 0
    assert "note: Resumed tuning: " in err
    assert not checkpoint.exists()


def test_json_leaves_terminals_alone(run, rings, tmp_path, monkeypatch):
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        code, out, _ = run(
            *("fit", rings, "-t", "place", "-o", tmp_path / "m.kmill"),
            *("-n", "64", "--no-tune", "--json"),
        )
        monkeypatch.undo()
    assert read(master) == b""
    os.close(master)
    assert code == 0
    assert json.loads(out)["summary"]["held_out"]["metrics"]["error"] < 0.5


def read(terminal):
    """What comes next; nothing once the other end is closed, or silent for a minute."""
    readable, _, _ = select.select([terminal], [], [], 60)
    try:
        return os.read(terminal, 4096) if readable else b""
    except OSError:
        return b""


def test_termination_leaves_no_temporary_files(start, rings):
    process = start("fit", rings, *LONG, "--checkpoint-seconds", "0")
    checkpoint = rings.parent / "rings.kmill.checkpoint"
    deadline = time.monotonic() + 300
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=300) == 143
    assert b"Traceback" not in process.stderr.read()
    assert sorted(path.name for path in rings.parent.iterdir()) == [
        *("rings.csv", "rings.kmill.checkpoint")
    ]


def test_readers_that_go_away_are_no_error(start, fitted):
    process = start("inspect", fitted / "rings.kmill")
    process.stdout.close()
    process.stdout = None
    assert process.wait(timeout=300) == 141
    assert process.stderr.read() == b""


def test_without_a_terminal_there_are_no_bars_or_escapes(rings, monkeypatch):
    """Nor characters that its encoding does not have."""
    monkeypatch.chdir(rings.parent)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    rings.rename("rings·.csv")
    for name in ("stdout", "stderr"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
        monkeypatch.setattr(sys, name, stream)
    code = main(["fit", "rings·.csv", "-t", "place", "-o", "m.kmill", "-n", "64", "--no-tune"])
    streams = sys.stdout, sys.stderr
    monkeypatch.undo()
    out, err = (stream.buffer.getvalue().decode("ascii") for stream in streams)
    assert code == 0, err
    assert "\x1b" not in out + err
    assert "\r" not in err
    assert "rows/s" not in err
    assert "rings?.csv" in out
    assert out.splitlines()[-2].startswith("Model: m.kmill (")


def test_a_closed_stdout_is_reported_before_any_work(tmp_path):
    for closed in (">&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{shlex.join([*COMMAND, 'fit', 'no.csv'])} {closed}"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, "")
        if closed == ">&-":
            first, second = done.stderr.splitlines()
            assert first.startswith("error: stdout is closed")
            assert second.startswith("try: ")
        else:
            assert done.stderr == ""


def test_quiet_work_needs_no_stdout(fitted, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    out = tmp_path / "p.csv"
    code = main(
        ["predict", "--quiet", *map(str, (fitted / "rings.kmill", fitted / "rings.csv", "-o", out))]
    )
    with sys.stdout:  # the null device, which the program opened in its place
        monkeypatch.undo()
    assert (code, capsys.readouterr().err) == (0, "")
    assert len(out.read_text().splitlines()) == 601


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("numpy", "--version"), ("click", "--version"), ("kernelmill.workflows", "fit no.csv")],
)
def test_ctrl_c_during_imports_is_one_line(module, arguments):
    """SIGINT comes while a module is looked for that the package, program or command imports."""
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv[:] = ["/usr/bin/kernelmill"]
from kernelmill.cli import main
sys.exit(main({arguments.split()}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == ("", "error: interrupted: nothing was written\n")


def test_a_full_stdout_is_one_line(fitted):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "kernelmill.cli", "inspect", fitted / "rings.kmill", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: the result cannot be written to stdout: no space left on device",
        "try: redirect it to another file",
    ]


def test_pipes(start, fitted):
    data = (fitted / "rings.csv").read_bytes()
    process = start("predict", fitted / "rings.kmill", "-", "-o", "-", stdin=subprocess.PIPE)
    out, err = process.communicate(data)
    assert (process.returncode, err) == (0, b"")
    lines = out.decode().splitlines()
    assert lines[0] == "prediction"
    assert set(lines[1:]) == {"in", "out"}
    assert len(lines) == 601


def test_nothing_is_printed_before_an_error_of_the_first_rows(run, fitted, tmp_path):
    table = tmp_path / "wrong.csv"
    lines = (fitted / "rings.csv").read_text().splitlines()
    table.write_text("\n".join([*lines, *lines[1:2] * 400, "wrong" + lines[1], ""]))
    code, out, err = run("predict", fitted / "rings.kmill", table, "-o", "-")
    assert (code, out) == (1, "")
    assert "wrong.csv, line 1002, column 'a'" in err


@pytest.mark.parametrize(
    "arguments", [("fit", "-", "-t", "y"), ("predict", "MODEL", "-", "-o", "-"), ("compare", "-")]
)
def test_a_closed_stdin_is_one_line(fitted, arguments):
    arguments = [fitted / "rings.kmill" if each == "MODEL" else each for each in arguments]
    command = f"{shlex.join(map(str, [*COMMAND, *arguments]))} <&-"
    ended = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=fitted, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "error: '-' is the standard input, which is closed\n"
        "try: send a table to it, or pass the path of a file\n"
    )


def test_stdin_of_other_commands(run, fitted, tmp_path, monkeypatch):
    def give(arguments):
        text = io.BytesIO((fitted / "rings.csv").read_bytes())
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))
        return run(*arguments)

    model = tmp_path / "model.kmill"
    settings = ["--no-tune", "-n", "16", "--epochs", "1", "--missing-codes", "-,-999"]
    code, out, _ = give(["fit", "-", "-t", "-1", "-o", model, *settings])
    assert code == 0
    assert "standard input" in out
    code, out, _ = give(["evaluate", model, "-", "--json"])
    assert (code, json.loads(out)["evaluation"]["n_rows"]) == (0, 600)
    code, out, _ = give(["transform", model, "-", "-o", "-"])
    assert (code, len(out.splitlines())) == (0, 601)
    code, _, err = give(["predict", model, "-", "-o", "-", "--json"])
    assert (code, "--out must be a file with --json" in err) == (2, True)


def test_logs_have_lines_of_progress(run, rings, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelmill.cli.render.progress.SECONDS_BETWEEN_LINES", 0.0)
    arguments = ["fit", rings, "-t", "place", "--no-tune", "-n", "16", "--epochs", "1"]
    _, _, err = run(*arguments, "-o", tmp_path / "m.kmill")
    assert any(line.startswith("Reading: ") for line in err.splitlines())
    assert any(line.startswith("Training: ") and " left" in line for line in err.splitlines())
    _, _, err = run(*arguments, "-o", tmp_path / "m.kmill", "--quiet")
    assert err == ""


def test_lines_of_progress_are_about_the_current_stage(capsys, monkeypatch):
    monkeypatch.setattr("kernelmill.cli.render.progress.SECONDS_BETWEEN_LINES", 0.02)
    with ProgressBars(Terminal()) as progress:
        progress.start("First", 10)
        progress.start("Second", 10)
        progress.advance(3)
        capsys.readouterr()
        time.sleep(0.2)
        err = capsys.readouterr().err
    assert "Second: 30 %, 3 of 10 rows" in err
    assert "First" not in err
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_bars_pass_no_total_and_are_full_at_the_end_only(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBars(Terminal()) as progress:
        progress.start("Tuning", 57, "steps")
        progress.advance(57)
        progress.advance(1)
        time.sleep(0.5)  # bars are drawn ten times a second
        (task,) = progress._bars.tasks
        assert (task.completed, task.total) == (58, 58)
    shown = screen.getvalue()
    assert " 99 %" in shown
    assert "100 %" not in shown
    assert "Tuning: 58 steps, " in shown


def test_a_model_on_stdout(rings, tmp_path, monkeypatch, capfdbinary):
    settings = ["-t", "place", "--no-tune", "-n", "16", "--epochs", "1"]
    with rings.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["fit", "-", *settings, "-o", "-"]) == 0
    (tmp_path / "model.kmill").write_bytes(capfdbinary.readouterr().out)
    assert main(["evaluate", str(tmp_path / "model.kmill"), str(rings)]) == 0
    assert main(["fit", str(rings), *settings, "-o", "-", "--resume"]) == 2
