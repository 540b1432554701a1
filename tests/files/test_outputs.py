"""Files that are written: what they must not be, whether they exist or not."""

import os
import socket
from pathlib import Path

import pytest

from kernelmill.errors import ArgumentError, KernelmillError
from kernelmill.files.atomic_file import atomic_file, check_target
from kernelmill.files.outputs import Output, check_outputs, is_same_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    return tmp_path


def link(name, target):
    Path(name).symlink_to(target)
    return name


SPELLINGS = {  # of an existing file and of a new one
    "itself": str,
    "relative": lambda path: path.name,
    "dots": lambda path: f"there/../{path.name}",
    "URL": lambda path: f"file://{path}",
    "link": lambda path: link("link", path),
    "relative link": lambda path: link("there/link", f"../{path.name}"),
    "link of a folder": lambda path: f"{link('here', '.')}/{path.name}",
    "link of a link": lambda path: link("other", link("one", path)),
}


@pytest.mark.parametrize("name", ["rows.csv", "new.csv"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_are_the_same_file(folder, name, spelling):
    path = folder / name
    other = SPELLINGS[spelling](path)
    assert is_same_file(path, other)
    assert is_same_file(other, path)
    assert not is_same_file(other, folder / "another.csv")
    assert not is_same_file(other, f"s3://{path}")


def test_hard_links_are_the_same_file(folder):
    os.link("rows.csv", "hard.csv")
    assert is_same_file("rows.csv", "hard.csv")


def test_cases_are_compared_as_the_file_system_does(folder):
    """Of new files nobody knows; existing ones are as many as there are."""
    assert is_same_file("m.html", "M.HTML")
    assert is_same_file("caf\u00e9", "cafe\u0301")
    assert not is_same_file("m.html", "there/M.html")
    (folder / "m.html").touch()
    (folder / "M.html").touch()
    n_files = len([each for each in folder.iterdir() if each.name.lower() == "m.html"])
    assert is_same_file("m.html", "M.html") == (n_files == 1)


def test_a_loop_of_links_is_itself_only(folder):
    (folder / "loop").symlink_to("loop")
    assert is_same_file("loop", "./loop")
    assert not is_same_file("loop", "rows.csv")


def test_files_of_stores_are_compared_by_their_store(folder):
    assert is_same_file("memory://a/b.csv", "memory:///a/b.csv")
    assert not is_same_file("memory://a/b.csv", "memory://a/c.csv")
    assert not is_same_file("memory://a/b.csv", "a/b.csv")


def test_outputs_are_compared_with_inputs_and_with_each_other(folder):
    model = Output("m.html", "out", "the model")
    page = Output("there/../m.html", "report", "the report")
    with pytest.raises(ArgumentError, match="report must not be the model as well, got 'there/"):
        check_outputs([model, page])
    with pytest.raises(ArgumentError, match="out must not be a file that is read, got 'm"):
        check_outputs([model], ["rows.csv", folder / "m.html"])
    derived = Output("rows.csv", "out", "the checkpoint of the model", "rows")
    with pytest.raises(
        ArgumentError, match="out cannot be 'rows': the checkpoint of the model, 'r"
    ):
        check_outputs([Output("rows", "out", "the model"), derived], ["rows.csv"])
    check_outputs([model, Output("page.html", "report", "the report")], ["rows.csv"])


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


TARGETS = {
    "a pipe": (os.mkfifo, "device or a pipe"),
    "a socket": (make_socket, "device or a pipe"),
    "a device": (lambda path: path.symlink_to("/dev/full"), "device or a pipe"),
    "a loop": (lambda path: path.symlink_to(path), "leads back to itself"),
    "a folder": (lambda path: path.mkdir(), "got the folder"),
    "a dangling link": (lambda path: path.symlink_to("nowhere/m"), "existing folder"),
    "in a file": (lambda path: path.symlink_to("rows.csv/m"), "existing folder"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_that_no_file_can_replace(folder, name):
    make, words = TARGETS[name]
    path = folder / "target"
    make(path)
    before = sorted(folder.iterdir())
    for writes in (check_target, lambda path: atomic_file(path).__enter__()):
        with pytest.raises(KernelmillError, match=words):
            writes(path)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("path", ["there/", "new/", "there/.", "new/.", ".."])
def test_names_of_folders(folder, path):
    with pytest.raises(IsADirectoryError, match="got the folder"):
        check_target(path)


def test_the_pipe_of_another_process_is_no_file(folder):
    reading, writing = os.pipe()
    try:
        with pytest.raises(ArgumentError, match="device or a pipe"):
            check_target(f"/dev/fd/{writing}")
    finally:
        os.close(reading)
        os.close(writing)
