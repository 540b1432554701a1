"""`pip install .` from a clean copy of the sources, and what it says without a compiler."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = [
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "bindings",
    "cmake",
    "native",
    "pyproject.toml",
    "src",
]


@pytest.fixture
def sources(tmp_path):
    """A copy of what a source distribution holds, with no trace of earlier builds."""
    copy = tmp_path / "kernelmill"
    copy.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / part, copy / part, ignore=ignore)
        else:
            shutil.copy(ROOT / part, copy / part)
    return copy


def pip(*arguments, environment=None):
    """Run pip offline: the build requirements are those of the environment that runs the tests."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def test_installs_and_runs_elsewhere(sources, tmp_path):
    site = tmp_path / "site"
    result = pip(
        "install", "--no-build-isolation", "--no-deps", "--target", str(site), str(sources)
    )
    assert result.returncode == 0, result.stdout + result.stderr
    code = (
        "import kernelmill, numpy; print(kernelmill.__file__); "
        "print(kernelmill.fwht(numpy.arange(4.0)), kernelmill.random.Stream.from_seed(0).signs(2))"
    )
    run = subprocess.run(
        # -S and the paths by hand: an editable installation must not step in.
        [
            sys.executable,
            "-S",
            "-c",
            f"import sys; sys.path[:0] = {[str(site), *paths()]!r}; {code}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    where, result = run.stdout.splitlines()
    assert where.startswith(str(site))
    assert result.startswith("[ 6. -2. -4.  0.]")
    for name in ("py.typed", "report/page.html.jinja", "report/page.css"):
        assert (site / "kernelmill" / name).exists()
    assert (site / "bin" / "kernelmill").exists()


def paths():
    """The directories that hold numpy and the other dependencies."""
    import numpy as np

    return [str(Path(np.__file__).parents[1])]


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("/nonexistent/compiler", "names '/nonexistent/compiler', which does not work"),
        (None, "found no C++ compiler"),
    ],
)
def test_says_what_is_missing_without_a_compiler(sources, tmp_path, compiler, message):
    tools = tmp_path / "bin"
    tools.mkdir()
    ninja = shutil.which("ninja", path=str(Path(sys.executable).parent)) or shutil.which("ninja")
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    for tool in (ninja, cmake, sys.executable):
        (tools / Path(tool).name).symlink_to(tool)
    environment = {k: v for k, v in os.environ.items() if k not in ("CXX", "CC", "CXXFLAGS")}
    environment["PATH"] = str(tools)  # nothing but what the build needs: no c++, no g++
    if compiler:
        environment["CXX"] = compiler
    result = pip(
        *("install", "--no-build-isolation", "--no-deps", "--target", str(tmp_path / "site")),
        str(sources),
        environment=environment,
    )
    assert result.returncode != 0
    output = " ".join((result.stdout + result.stderr).split())  # CMake folds long lines
    assert message in output
    assert "apt install g++" in output
