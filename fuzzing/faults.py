"""Faults while commands run: `python -m fuzzing.faults --count 40`, or `make faults`.

Processes are killed and interrupted at random moments, of tuning too, disks are full after some
bytes, clocks jump, memory is short, checkpoints are damaged, two runs write one file, outputs are
inputs. Afterwards each file is the old one or a complete new one, `--resume` gives the same bits,
and messages name the file and a remedy, which is tried. Only processes started here are killed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kernelmill
from kernelmill.files import ModelFileError, read_model_file

_FIT = ("--n-components", "256", "--epochs", "30", "--checkpoint-seconds", "0.05", "--no-tune")
_TUNE = (
    "--n-components",
    "64",
    "--epochs",
    "2",
    "--checkpoint-seconds",
    "0.05",
    "--map",
    "fastfood",
)
_SLOWEST = 900  # seconds, after which a process is stopped
_RESUME = "run again with --resume"


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kernelmill.cli", *arguments]


def _digest(path: Path) -> str:
    """What a model computes: the tensors, without times and paths of the record."""
    state = hashlib.sha256()
    for name, tensor in sorted(read_model_file(path).tensors.items()):
        state.update(name.encode() + np.ascontiguousarray(tensor).tobytes())
    return state.hexdigest()


class Faults:
    """Runs commands in a folder, disturbs them, and counts what is lost."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        self.tried = dict[str, int]()
        self.losses: list[str] = []
        rows = np.random.default_rng(0).normal(size=(1500, 3))
        labels = np.where(rows[:, 0] * rows[:, 1] > 0, "yes", "no")
        lines = (",".join(f"{v:.4f}" for v in row) for row in rows)
        text = "".join(f"{line},{label}\n" for line, label in zip(lines, labels, strict=True))
        (folder / "rows.csv").write_text("a,b,c,label\n" + text)
        self.model, self.out = folder / "model.kmill", folder / "predictions.csv"
        self.page = folder / "page.html"
        self.fit = ("fit", "rows.csv", "-t", "label", "-o", "model.kmill", *_FIT)
        self.predict = ("predict", "model.kmill", "rows.csv", "-o", "predictions.csv")
        (folder / "few.csv").write_text(
            "".join((folder / "rows.csv").read_text().splitlines(keepends=True)[:250])
        )
        self.tune = ("fit", "few.csv", "-t", "label", "-o", "tuned.kmill", *_TUNE)
        self.tuned = folder / "tuned.kmill"
        self.skipped = dict[str, str]()
        self.report = ("evaluate", "model.kmill", "rows.csv", "--report", "page.html")
        begin = time.monotonic()
        self._run(self.fit)
        self.seconds = time.monotonic() - begin
        begin = time.monotonic()
        self._run(self.tune)
        self.tuning_seconds = time.monotonic() - begin
        self.expected_tuned = _digest(self.tuned)
        for command in (self.predict, self.report):
            self._run(command)
        self.expected = _digest(self.model)
        self.predictions = self.out.read_bytes()

    def _run(self, command: tuple[str, ...], **settings: Any) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            _command(*command),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_SLOWEST,
            check=False,
            **settings,
        )
        if not settings and done.returncode != 0:  # no fault, or the remedy of one
            raise RuntimeError(f"{command} fails without a fault: {done.stderr}")
        return done

    def _lose(self, what: str) -> None:
        self.losses.append(what)
        print(f"lost: {what}", flush=True)

    def check_files(self, what: str) -> None:
        """The model loads, and predictions and page are complete, or absent."""
        if self.model.exists():
            try:
                if _digest(self.model) != self.expected:
                    self._lose(f"{what}: another model")
            except ModelFileError as error:
                self._lose(f"{what}: {error}")
        if self.out.exists() and self.out.read_bytes() != self.predictions:
            self._lose(f"{what}: predictions are not complete")
        if self.page.exists() and not self.page.read_text().rstrip().endswith("</html>"):
            self._lose(f"{what}: the page is not complete")

    def check_words(self, what: str, done: subprocess.CompletedProcess[str]) -> None:
        """A failure is an error with a message, never a traceback."""
        if done.returncode == 0:
            return
        said = done.stderr
        if "Traceback" in said or "error: " not in said:
            self._lose(f"{what}: exit code {done.returncode}, {said[-300:]}")

    def kill(self) -> None:
        """Kill a command at a random moment; a fit is then resumed."""
        command = (self.fit, self.fit, self.predict, self.report)[int(self.rng.integers(4))]
        if command is self.fit and self.rng.random() < 0.5:
            self.model.unlink(missing_ok=True)
        process = self._start(command)
        time.sleep(float(self.rng.uniform(0, 1.1)) * self.seconds)
        process.kill()
        process.communicate()
        self.check_files(f"killed {command[0]}")
        if command is self.fit:
            self._run((*self.fit, "--resume"))
            self.check_files("resumed after kill")
            if not self.model.exists():
                self._lose("no model after --resume")

    def kill_tuning(self) -> None:
        """Kill a fit while it tunes; what was measured is in the checkpoint."""
        self.tuned.unlink(missing_ok=True)
        process = self._start(self.tune)
        time.sleep(float(self.rng.uniform(0.2, 1)) * self.tuning_seconds)
        process.kill()
        process.wait()
        self._run((*self.tune, "--resume"))
        if _digest(self.tuned) != self.expected_tuned:
            self._lose("another model after a kill during tuning")

    def interrupt(self) -> None:
        """Press Ctrl-C during a fit: a message, whose remedy gives the same model."""
        self.model.unlink(missing_ok=True)
        process = self._start(self.fit)
        time.sleep(float(self.rng.uniform(0.3, 1)) * self.seconds)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=_SLOWEST)[1]
        # Nothing is printed while modules are imported.
        is_silent = process.returncode in (-signal.SIGINT, 130) and not said.strip()
        if "Traceback" in said or not (process.returncode == 0 or is_silent or "interrupt" in said):
            self._lose(f"interrupted fit: exit code {process.returncode}, {said[-300:]}")
        self._try_remedy("interrupted fit", said)

    def run_twice(self) -> None:
        """Fit to one file twice at the same time: the second run is an error, the first is not."""
        first = self._start(self.fit)
        lock = self.folder / ".model.kmill.lock"
        while not lock.exists() and first.poll() is None:
            time.sleep(0.01)
        second = self._run(self.fit, env=dict(os.environ))
        if first.poll() is None and "another training run is writing model.kmill" not in (
            second.stderr
        ):
            self._lose(f"two runs: {second.stderr[-300:]}")
        first.communicate(timeout=_SLOWEST)
        if first.returncode != 0:
            self._lose("two runs: the first one fails")
        self.check_files("two runs")

    def damage_checkpoint(self) -> None:
        """Change a checkpoint: an error that names it, whose remedy gives the same model."""
        self.model.unlink(missing_ok=True)
        process = self._start(self.fit)
        checkpoint = self.folder / "model.kmill.checkpoint"
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        if checkpoint.exists():
            content = bytearray(checkpoint.read_bytes())
            content[int(self.rng.integers(len(content)))] ^= 1
            checkpoint.write_bytes(content)
        done = self._run((*self.fit, "--resume"), env=dict(os.environ))
        self.check_words("a damaged checkpoint", done)
        if done.returncode != 0:
            for words in ("model.kmill.checkpoint", "run again without --resume"):
                if words not in done.stderr:
                    self._lose(f"a damaged checkpoint: no {words!r} in {done.stderr[-300:]}")
            self._run(self.fit)  # the remedy
        self.check_files("a damaged checkpoint")

    def fill_file_system(self) -> None:
        """Run out of space on a small file system of its own, make room, and try the remedy."""
        disk = self.folder / "disk"
        disk.mkdir(exist_ok=True)
        size = int(self.rng.choice([8, 32, 64, 100, 1000, 1600, 2400])) << 10
        if not _mount(disk, size):
            self.skipped["fill_file_system"] = "no file system can be mounted here"
            return
        try:
            self._fill(disk, size)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def _fill(self, disk: Path, size: int) -> None:
        out = disk / "model.kmill"
        command = ("fit", "rows.csv", "-t", "label", "-o", "disk/model.kmill", *_FIT)
        done = self._run(command, env=dict(os.environ))
        what = f"fit on a file system of {size} bytes"
        self.check_words(what, done)
        if done.returncode != 0 and "disk/" not in done.stderr:
            self._lose(f"{what}: no file is named: {done.stderr[-300:]}")
        if done.returncode != 0 and out.exists():
            self._lose(f"{what}: a part of a model")
        if found := re.search("written to (/.*) instead", done.stderr):
            elsewhere = Path(found[1])
            if _digest(elsewhere) != self.expected:
                self._lose(f"{what}: another model elsewhere")
            shutil.rmtree(elsewhere.parent)
        _mount(disk, 16 << 20, again=True)
        again = (*command, "--resume") if _RESUME in done.stderr else command
        self._run(again)
        if _digest(out) != self.expected:
            self._lose(f"{what}: another model after the remedy")

    def overwrite(self) -> None:
        """Name an input, or another output, as an output: an error, and no file changes."""
        source = ("few.csv", "*.csv", "rows.csv")[int(self.rng.integers(3))]
        commands = (
            ("fit", source, "-t", "label", "-o", "{}", *_FIT),
            ("fit", "few.csv", "-t", "label", "--validation", "rows.csv", "-o", "{}", *_FIT),
            ("fit", source, "-t", "label", "-o", "{}", "--report", "new.html", *_FIT),
            ("predict", "model.kmill", source, "-o", "{}"),
            ("transform", "model.kmill", source, "-o", "{}"),
            ("evaluate", "model.kmill", source, "--report", "{}"),
            ("compare", source, "-t", "label", "--report", "{}"),
            ("diagnose", source, "--report", "{}"),
        )
        command = commands[int(self.rng.integers(len(commands)))]
        inputs = [self.folder / name for name in ("model.kmill", "rows.csv") if name in command]
        inputs += [] if source == "rows.csv" else [self.folder / "few.csv"] * (source in command)
        if "new.html" in command:
            inputs = [self.folder / "new.html"]
        target = inputs[int(self.rng.integers(len(inputs)))]
        links = self.folder / "links"
        links.mkdir()
        name = self._spell(target, links, ".html" if command[-2] == "--report" else target.suffix)
        before = {path: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        done = self._run(tuple(part.format(name) for part in command), env=dict(os.environ))
        shutil.rmtree(links)
        what = f"{command} with {name}"
        self.check_words(what, done)
        if done.returncode == 0:
            self._lose(f"{what}: it is written")
        after = {path: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        if after != before:
            changed = [path.name for path in before if after.get(path) != before[path]]
            self._lose(f"{what}: changed {changed}")

    def _spell(self, target: Path, links: Path, suffix: str) -> str:
        """Return one of the names that a file, which may not exist, can have."""
        link = links / f"link{suffix}"
        kinds = ["link", "links", "hard", "name", "dots", "absolute"]
        kind = kinds[int(self.rng.integers(6 if target.suffix == suffix else 3))]
        if kind == "hard" and target.exists():
            os.link(target, link)
        elif kind == "links":
            (links / "other").symlink_to(os.path.relpath(target, links))
            link.symlink_to("other")
        else:
            link.symlink_to(target)
        spellings = {"name": target.name, "dots": f"links/../{target.name}", "absolute": target}
        return str(spellings.get(kind, f"links/{link.name}"))

    def _try_remedy(self, what: str, said: str) -> None:
        """Run a fit again, with --resume if the message says so."""
        self._run((*self.fit, "--resume") if _RESUME in said else self.fit)
        self.check_files(f"{what}, remedy")
        if not self.model.exists():
            self._lose(f"{what}: no model after the remedy")

    def _start(self, command: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            _command(*command),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fill_disk(self) -> None:
        """Let every write beyond some bytes of a file fail, as on a full disk."""
        command = (self.fit, self.predict, self.report)[int(self.rng.integers(3))]
        limit = int(self.rng.choice([0, 1, 100, 4096, 10_000, 20_000, 40_000]))

        def before() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writes fail instead
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = self._run(command, preexec_fn=before)
        what = f"{command[0]} with a disk full after {limit} bytes"
        self.check_words(what, done)
        self.check_files(what)
        names = ("model.kmill", "predictions.csv", "page.html", "temporary file", "stdout")
        if done.returncode != 0 and not any(name in done.stderr for name in names):
            self._lose(f"{what}: no file is named: {done.stderr[-300:]}")

    def jump_clock(self) -> None:
        """Let the clock of the day jump back and forth during a fit, which must not matter."""
        code = (
            "import sys, time, itertools\n"
            "jumps, now = itertools.cycle([0, -1e8, 3e9, -5, 1e6]), time.time\n"
            "time.time = lambda: max(0.0, now() + next(jumps))\n"
            "from kernelmill.cli import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *self.fit],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_SLOWEST,
            check=False,
        )
        if done.returncode != 0:
            self._lose(f"clock jumps: {done.stderr[-300:]}")
        self.check_files("clock jumps")

    def limit_memory(self) -> None:
        """Allow little address space: an error with a message, or success."""
        command = (self.fit, self.predict)[int(self.rng.integers(2))]
        limit = int(self.rng.choice([1200, 1600, 2000])) << 20

        def before() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = self._run(command, preexec_fn=before, env=one)
        what = f"{command[0]} with {limit >> 20} MiB of memory"
        self.check_words(what, done)
        self.check_files(what)

    def run(self, count: int) -> None:
        """Try so many faults, in turn."""
        kinds: tuple[Callable[[], None], ...] = (
            self.kill,
            self.fill_disk,
            self.fill_file_system,
            self.kill_tuning,
            self.limit_memory,
            self.interrupt,
            self.fill_disk,
            self.damage_checkpoint,
            self.kill,
            self.jump_clock,
            self.run_twice,
            self.overwrite,
        )
        for number in range(count):
            fault = kinds[number % len(kinds)]
            fault()
            if fault.__name__ not in self.skipped:
                self.tried[fault.__name__] = self.tried.get(fault.__name__, 0) + 1
            for rest in self.folder.glob(".*.tmp"):  # of killed processes
                rest.unlink()
            if not self.model.exists():
                self._run(self.fit)


def _mount(folder: Path, size: int, *, again: bool = False) -> bool:
    """Mount a file system in memory of this size, or change the size; False without the rights."""
    options = f"remount,size={size}" if again else f"size={size}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def main() -> int:
    """Print the faults that were tried and what was lost; 1 if anything was."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.faults", description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kernelmill-faults-"))
    try:
        faults = Faults(folder, given.seed)
        faults.run(given.count)
    finally:
        shutil.rmtree(folder)
    tried = ", ".join(f"{name} {count}" for name, count in sorted(faults.tried.items()))
    print(f"kernelmill {kernelmill.__version__}: faults tried: {tried}")
    for name, reason in faults.skipped.items():
        print(f"skipped {name}: {reason}")
    print(f"losses: {len(faults.losses)}")
    return min(1, len(faults.losses))


if __name__ == "__main__":
    sys.exit(main())
