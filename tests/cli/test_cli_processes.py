"""The program as shells and other programs meet it: signals, pipes, terminals."""

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
    assert process.wait(timeout=60) == 130, seen
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


def test_json_leaves_terminals_alone(start, rings, tmp_path):
    master, slave = pty.openpty()
    process = start(
        *("fit", rings, "-t", "place", "-n", "64", "--no-tune", "--json"), stderr=slave, stdin=slave
    )
    os.close(slave)
    assert read(master) == b""
    os.close(master)
    summary = json.loads(process.stdout.read())["summary"]
    assert process.wait(timeout=60) == 0
    assert summary["held_out"]["metrics"]["error"] < 0.5


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
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=60) == 143
    assert b"Traceback" not in process.stderr.read()
    assert sorted(path.name for path in rings.parent.iterdir()) == [
        *("rings.csv", "rings.kmill.checkpoint")
    ]


def test_readers_that_go_away_are_no_error(start, fitted):
    process = start("inspect", fitted / "rings.kmill")
    process.stdout.close()
    process.stdout = None
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""


def test_without_a_terminal_there_are_no_bars_or_escapes(run_process, rings):
    """Nor characters that its encoding does not have."""
    rings.rename(rings.parent / "rings·.csv")
    done = run_process(
        *("fit", "rings·.csv", "-t", "place", "-o", "m.kmill", "--n-components", "64", "--no-tune"),
        PYTHONIOENCODING="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr
    assert "rows/s" not in done.stderr
    assert "rings?.csv" in done.stdout
    assert done.stdout.splitlines()[-2].startswith("Model: m.kmill (")


@pytest.mark.parametrize("arguments", [["--version"], ["doctor", "--json"], ["fit", "no.csv"]])
def test_a_closed_stdout_is_said_before_any_work(tmp_path, arguments):
    line = shlex.join([*COMMAND, *arguments])
    done = subprocess.run(
        ["sh", "-c", f"{line} >&-"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("error: stdout is closed")
    assert second.startswith("try: ")
    both = subprocess.run(
        ["sh", "-c", f"{line} >&- 2>&-"], capture_output=True, cwd=tmp_path, check=False
    )
    assert (both.returncode, both.stdout, both.stderr) == (1, b"", b"")


def test_quiet_work_needs_no_stdout(fitted, tmp_path):
    line = shlex.join(
        [*COMMAND, "predict", "--quiet", str(fitted / "rings.kmill"), str(fitted / "rings.csv")]
    )
    done = subprocess.run(
        ["sh", "-c", f"{line} --out p.csv >&-"], capture_output=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 601


def test_ctrl_c_during_imports_is_one_line():
    """SIGINT comes while click is looked for, which is imported before the program runs."""
    code = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from kernelmill.cli import main
sys.exit(main(["--version"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == ("", "error: interrupted: nothing was written\n")
