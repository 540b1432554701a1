"""The program as shells and other programs meet it: signals, pipes, terminals."""

import json
import os
import pty
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
    (rings.parent / "rings.kmill").write_text("an earlier model")
    process = start("fit", rings, *LONG, "--checkpoint-seconds", "0.1", "--json")
    checkpoint = rings.parent / "rings.kmill.checkpoint"
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    error = json.loads(out)["error"]
    assert "checkpoint kept" in error["message"]
    assert error["try"] == "run again with --resume"
    assert b"Traceback" not in err
    assert (rings.parent / "rings.kmill").read_text() == "an earlier model"
    assert sorted(path.name for path in rings.parent.iterdir()) == [
        *("rings.csv", "rings.kmill", "rings.kmill.checkpoint")
    ]


def test_bars_in_a_terminal_have_rows_a_second_and_time_left(start, rings):
    """And are taken away after Ctrl-C, with the cursor back."""
    master, slave = pty.openpty()
    process = start("fit", rings, *LONG, stderr=slave, stdin=slave)
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + 60
    try:
        while b"rows/s" not in seen and time.monotonic() < deadline:
            seen += os.read(master, 4096)
        process.send_signal(signal.SIGINT)
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
    finally:
        os.close(master)
    assert process.wait(timeout=60) == 130
    assert b"Training" in seen
    assert b"rows/s" in seen
    hidden, shown = b"\x1b[?25l", b"\x1b[?25h"
    assert seen.rindex(shown) > seen.rindex(hidden)
    assert b"error: interrupted" in seen
    assert process.stdout.read() == b""


def test_readers_that_go_away_are_no_error(start, fitted):
    process = start("inspect", fitted / "rings.kmill")
    process.stdout.close()
    process.stdout = None
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""


def test_without_a_terminal_there_are_no_bars_or_escapes(run_process, rings):
    done = run_process("fit", rings, "-t", "place", "--n-components", "64", "--no-tune")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr
    assert "rows/s" not in done.stderr
    assert done.stdout.splitlines()[-2].startswith("Model: rings.kmill (")


def test_ascii_terminals_get_something_readable(run_process, fitted):
    done = run_process(
        "evaluate", fitted / "rings.kmill", fitted / "rings.csv", PYTHONIOENCODING="ascii"
    )
    assert done.returncode == 0, done.stderr
    assert "Confusion" in done.stdout
