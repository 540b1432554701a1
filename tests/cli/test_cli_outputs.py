"""No command overwrites what it reads, or one of its outputs with another."""

import os
import shutil
import subprocess
import sys
from importlib import import_module

import click
import fsspec
import numpy as np
import pytest

from kernelmill import load
from kernelmill.cli.program.files import FitCheckpoint, InputPath, OutputFolder, OutputPath
from kernelmill.cli.program.group import COMMANDS
from kernelmill.files.remote_path import RemotePath

# Options and arguments that are text, but no names of files. A new one belongs here, or it needs
# the type `InputPath`, `OutputPath` or `OutputFolder`, which commands check before they run.
NO_FILES = {
    *("target", "drop", "weights", "kernel", "map_options", "class_weight", "cluster", "encoding"),
    *("missing_codes", "not_missing", "categorical", "numeric", "dates", "groups", "holdout_last"),
}
SMALL = ["-t", "place", "--no-tune", "-n", "16", "--epochs", "1"]


def get_command(name):
    return import_module(f"kernelmill.cli.commands.{name}").command


def parameters_of(command, kind):
    return [each for each in command.params if isinstance(each.type, kind)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_that_names_a_file_says_so(name):
    for parameter in get_command(name).params:
        if isinstance(parameter.type, click.types.StringParamType):
            assert parameter.name in NO_FILES, f"is {parameter.name} of {name} a file?"
        assert not isinstance(parameter.type, (click.File, click.Path))
        if parameter.name in ("source", "model", "validation"):
            assert isinstance(parameter.type, InputPath)
        if parameter.name in ("out", "report"):
            assert isinstance(parameter.type, (OutputPath, OutputFolder))


@pytest.fixture
def folder(tmp_path, fitted, monkeypatch):
    """A folder with a model and a table for each input that a command can have."""
    monkeypatch.chdir(tmp_path)
    for name in ("source", "validation"):
        shutil.copy(fitted / "rings.csv", name)
    shutil.copy(fitted / "rings.kmill", "model")
    return tmp_path


def arguments_of(command, **names):
    """The arguments of a command in which files have these names."""
    arguments = [command.name]
    for parameter in command.params:
        name = names.get(parameter.name)
        if name is None and isinstance(parameter, click.Argument):
            name = parameter.name
        if name is None and parameter.required:
            name = "other.csv"
        if name is not None:
            option = [] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len)]
            arguments += [*option, name]
    return arguments


def content(folder):
    links = {path.name: path.readlink() for path in folder.iterdir() if path.is_symlink()}
    return links | {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name not in links
    }


CLASHES = [  # a command, an output, and an input or another output
    (name, output.name, other.name)
    for name in COMMANDS
    for command in [get_command(name)]
    for output in parameters_of(command, OutputPath)
    for other in [*parameters_of(command, InputPath), *parameters_of(command, OutputPath)]
    if other.name != output.name
]


@pytest.mark.parametrize("spelling", ["the same", "link"])
@pytest.mark.parametrize(("name", "output", "other"), CLASHES)
def test_no_output_is_an_input_or_another_output(run, folder, name, output, other, spelling):
    file = f"{other}.html" if "report" in (output, other) else other
    if (folder / other).exists() and file != other:
        (folder / other).rename(file)
    same = file
    if spelling == "link":
        same = "link.html"
        (folder / same).symlink_to(file)
    before = content(folder)
    arguments = arguments_of(get_command(name), **{output: same, other: file})
    code, out, err = run(*arguments)
    assert (code, out) == (1, ""), (arguments, err)
    reported = output if (folder / file).exists() else "report"  # the later of two outputs
    assert err.startswith(f"error: --{reported} must not be ")
    assert "try: choose another name" in err
    assert content(folder) == before


def test_there_are_such_commands():
    """And none of them is left out above."""
    clashing = {name for name, _, _ in CLASHES}
    assert clashing == {"fit", "predict", "evaluate", "compare", "diagnose", "transform"}
    assert ("fit", "out", "validation") in CLASHES
    assert ("fit", "report", "out") in CLASHES


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("part-*.csv", "part-2.csv"),
        ("**/part-1.csv", "deep/er/part-1.csv"),
        ("part[1].csv", "part[1].csv"),  # a file, not a pattern
        ("part-1.csv", "hard.csv"),
        ("file://{folder}/part-1.csv", "part-1.csv"),
        ("part-1.csv", "file://{folder}/part-1.csv"),
    ],
)
def test_inputs_by_patterns_and_other_names(run, folder, source, out):
    (folder / "deep" / "er").mkdir(parents=True)
    for name in ("part-1.csv", "part-2.csv", "part[1].csv", "part1.csv", "deep/er/part-1.csv"):
        shutil.copy("source", name)
    os.link("part-1.csv", "hard.csv")
    names = [each.format(folder=folder) for each in (source, out)]
    for command in (["predict", "model", names[0]], ["fit", names[0], *SMALL]):
        code, _, err = run(*command, "-o", names[1])
        assert code == 1
        assert "--out must not be a file that is read" in err
    assert (folder / "hard.csv").read_bytes() == (folder / "source").read_bytes()


def test_stores_are_compared_for_outputs_in_stores_only(run, folder, monkeypatch):
    store = fsspec.filesystem("memory")
    store.pipe("/rows/a.csv", (folder / "source").read_bytes())
    asked = []
    exists = RemotePath.exists
    monkeypatch.setattr(RemotePath, "exists", lambda path: asked.append(str(path)) or exists(path))
    pattern = "memory://rows/*.csv"
    code, _, err = run("predict", "model", pattern, "-o", "memory:///rows/a.csv")
    assert (code, "--out must not be a file that is read" in err) == (1, True)
    asked.clear()
    code, _, err = run("predict", "no-model", pattern, "-o", "out.csv")
    assert (code, asked) == (1, [])
    store.rm("/rows", recursive=True)


def test_label_files_of_images_are_inputs(run, folder):
    images, labels = "images-idx3-ubyte", "labels-idx1-ubyte"
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (60, 2, 2), np.uint8)
    sizes = np.array([60, 2, 2], ">u4").tobytes()
    (folder / images).write_bytes(b"\0\0\x08\x03" + sizes + pixels.tobytes())
    written = b"\0\0\x08\x01" + sizes[:4] + (pixels[:, 0, 0] > 127).tobytes()
    (folder / labels).write_bytes(written)
    code, _, err = run("fit", images, "-o", labels, "--no-tune", "-n", "16")
    assert (code, "--out must not be a file that is read" in err) == (1, True)
    assert (folder / labels).read_bytes() == written
    assert run("fit", images, "-o", "other", "--no-tune", "-n", "16", "--epochs", "1")[0] == 0


@pytest.mark.parametrize("suffix", [".checkpoint", ".checkpoint.old"])
def test_a_checkpoint_is_no_input(run, folder, suffix):
    """It would be renamed and removed."""
    table = shutil.copy("source", f"m.kmill{suffix}")
    code, _, err = run("fit", table, *SMALL, "-o", "m.kmill")
    assert code == 1
    assert err.startswith("error: --out cannot be 'm.kmill': ")
    assert f"checkpoint of the model, '{table}', is a file that is read" in err
    assert (folder / table).read_bytes() == (folder / "source").read_bytes()
    hidden = shutil.copy("source", ".m.kmill.lock")
    code, _, err = run("fit", hidden, *SMALL, "-o", "m.kmill")
    assert (code, "the lock of the model, " in err) == (1, True)
    assert (folder / hidden).exists()


def test_the_default_name_is_no_input(run, folder):
    """And neither is it another output."""
    table = shutil.copy("source", "rows.kmill")
    code, _, err = run("fit", table, *SMALL)
    assert (code, "--out must not be a file that is read, got 'rows.kmill'" in err) == (1, True)
    (folder / "page.html").symlink_to("source.kmill")  # which does not exist
    code, _, err = run("fit", "source", *SMALL, "--report", "page.html")
    assert (code, "--report must not be the model as well" in err) == (1, True)
    assert not (folder / "source.kmill").exists()


def test_two_new_outputs_that_differ_only_in_case(run, folder):
    code, _, err = run("fit", "source", *SMALL, "-o", "m.html", "--report", "M.html")
    assert (code, "--report must not be the model as well" in err) == (1, True)


@pytest.mark.parametrize("file", ["source", "model", "out.csv"])
def test_stdout_is_no_input_and_no_other_output(folder, file):
    """The shell opens it before the program starts: `>>` leaves what is there."""
    (folder / "out.csv").write_text("before")
    out = file if file == "out.csv" else "-"
    before = content(folder)
    with open(file, "ab") as stdout:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "kernelmill.cli", "predict", "model", "source", "-o", out],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "must not be" in done.stderr
    assert content(folder) == before


TARGETS = {  # of --out, with what is said
    "folder/": "must be a file, got the folder 'folder/'",
    "folder": "must be a file, got the folder 'folder'",
    "new/": "must be a file, got the folder 'new/'",
    "loop": "a link that leads back to itself",
    "dangling": "must be in an existing folder",
    "pipe": "a device or a pipe",
    "/dev/null": "a device or a pipe",
    "/proc/m.csv": "must be in a writable folder",
    "/sys/m.csv": "must be in a writable folder",
    "a" * 300: "file name too long",
}


@pytest.mark.parametrize("command", ["fit", "predict", "transform"])
@pytest.mark.parametrize("out", TARGETS, ids=lambda out: out[:20])
def test_targets_are_checked_before_the_work(run, folder, monkeypatch, command, out):
    def work(*_, **__):
        raise AssertionError("it was begun")

    monkeypatch.setattr("kernelmill.workflows.fit_table", work)
    monkeypatch.setattr("kernelmill.workflows.model.loading.load", work)
    monkeypatch.setattr("kernelmill.workflows.model.loading.load_predictor", work)
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere/m.csv")
    os.mkfifo("pipe")
    before = sorted(folder.iterdir())
    arguments = ["source", "-t", "place"] if command == "fit" else ["model", "source"]
    code, _, err = run(command, *arguments, "-o", out)
    assert code == 1
    assert TARGETS[out] in err
    assert sorted(folder.iterdir()) == before
    assert run(command, *arguments, "--report", "pipe.html", "-o", "x.csv")[0] != 0


def test_links_of_models_and_checkpoints_stay_links(run, folder):
    """What they point to is written, and removed at the end."""
    disk = folder / "disk"
    disk.mkdir()
    (folder / "m.kmill").symlink_to("disk/m.kmill")
    (folder / "m.kmill.checkpoint").symlink_to("disk/state")
    checkpoint = FitCheckpoint(folder / "m.kmill")
    checkpoint.path.write_text("hours of work")
    assert [path.name for path in disk.iterdir()] == ["state"]
    checkpoint.prepare(resume=False)
    assert sorted(path.name for path in disk.iterdir()) == ["state.old"]
    checkpoint.restore()
    assert (disk / "state").read_text() == "hours of work"
    code, _, err = run("fit", "source", *SMALL, "-o", "m.kmill", "--checkpoint-seconds", "0")
    assert code == 0, err
    assert [path.name for path in disk.iterdir()] == ["m.kmill"]
    assert (folder / "m.kmill").is_symlink()
    assert (folder / "m.kmill.checkpoint").is_symlink()
    assert load("m.kmill").summary.target == "place"


def test_runs_that_reach_one_checkpoint_by_two_names_exclude_each_other(run, folder):
    (folder / "link.kmill").symlink_to("m.kmill")
    checkpoint = FitCheckpoint(folder / "m.kmill")
    checkpoint.lock()
    try:
        code, _, err = run("fit", "source", *SMALL, "-o", "link.kmill")
    finally:
        checkpoint.unlock()
    assert (code, "another training run is writing link.kmill" in err) == (1, True)
    assert run("fit", "source", *SMALL, "-o", "link.kmill")[0] == 0
