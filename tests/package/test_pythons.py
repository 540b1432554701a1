"""The search for interpreters of `make test-pythons`."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/test_pythons.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("test_pythons_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_program(path, code):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)


def test_newest_of_pyenv_is_found_behind_a_shim_that_fails(tool, tmp_path, monkeypatch):
    write_program(tmp_path / "shims/python3.97", "echo not selected >&2; exit 127")
    for version in ("3.97.2", "3.97.10", "3.97-dev"):
        described = f'["{version}", "/the/python"]'
        write_program(tmp_path / f"versions/{version}/bin/python3.97", f"echo '{described}'")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"), prepend=":")
    assert tool.find_interpreter("3.97") == ("3.97.10", "/the/python")


def test_interpreters_without_a_version_in_their_name(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    write_program(tmp_path / "python3", """echo '["3.97.1", "/the/python"]'""")
    assert tool.find_interpreter("3.97") == ("3.97.1", "/the/python")
    with pytest.raises(tool.NotTestable, match="not available"):
        tool.find_interpreter("3.96")
    here = f"3.{sys.version_info.minor}"
    assert tool.find_interpreter(here)[0] == sys.version.split()[0], "the one that runs the tests"


def test_path_of_an_interpreter(tool):
    version, executable = tool.find_interpreter(sys.executable)
    assert sys.version.startswith(version)
    assert executable == sys.executable


def test_result_is_failure_where_an_interpreter_fails_or_none_is_available(
    tool, monkeypatch, capsys
):
    monkeypatch.setattr(tool, "build_wheel", lambda: "the.whl")
    assert tool.main(["3.98", "/nonexistent/python"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "Python 3.98: not available",
        "Python /nonexistent/python: not available",
        "No version of Python passed.",
    ]
    errors = {
        "3.97": "ERROR: No matching distribution found for numpy>=2.0",
        "3.98": "ERROR: the disk is full",
    }
    monkeypatch.setattr(tool, "find_interpreter", lambda name: (name, f"python{name}"))

    def run(command, seconds=0):
        for version, error in errors.items():
            if version in str(command) and "install" in command:
                raise RuntimeError(error)
        if "kernelmill.__file__" in command[-1]:
            return f"{Path(command[0]).parents[1]}/kernelmill/__init__.py"
        return "5 passed, 1 skipped in 0.1s"

    monkeypatch.setattr(tool, "run", run)
    assert tool.main(["3.96", "3.97"]) == 0
    assert tool.main(["3.96", "3.97", "3.98"]) == 1
    passed, no_wheel, *_ = capsys.readouterr().out.splitlines()
    assert passed == "Python 3.96: passed, 5 tests in 0 s with the installation"
    assert no_wheel == (
        "Python 3.97: not tested, because the package index has no wheel of numpy>=2.0 for it"
    )
