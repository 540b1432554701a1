"""The source distribution, the wheel, and the error message without a compiler.

The wheel is built in the build tree of the editable installation: what is compiled there is not
compiled again.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FILES = ["CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"]
FOLDERS = ["bindings", "cmake", "native", "src"]
SOURCES = {".cmake", ".cpp", ".css", ".hpp", ".jinja", ".py", ".pyi", ".txt", ".typed"}


def pip(*arguments, environment=None):
    """Run pip offline: the build requirements are those of the environment that runs the tests."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def test_source_distribution_holds_what_a_build_needs(tmp_path):
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=300)
    (archive,) = tmp_path.glob("kernelmill-*.tar.gz")
    with tarfile.open(archive) as sdist:
        packed = {Path(*Path(name).parts[1:]).as_posix() for name in sdist.getnames()}
    paths = [p.relative_to(ROOT) for folder in FOLDERS for p in (ROOT / folder).rglob("*")]
    sources = {p.as_posix() for p in paths if p.suffix in SOURCES and "tests" not in p.parts}
    assert packed >= sources | set(FILES)
    assert not {name.split("/")[0] for name in packed} & {"benchmarks", "build", "tests"}
    assert not [name for name in packed if name.endswith((".so", ".pyc"))]


def test_wheel_runs_elsewhere(tmp_path):
    site = tmp_path / "site"
    result = pip("install", "--no-build-isolation", "--no-deps", "--target", str(site), str(ROOT))
    assert result.returncode == 0, result.stdout + result.stderr
    code = (
        "import kernelmill, numpy; print(kernelmill.__file__); "
        "print(kernelmill.fwht(numpy.arange(4.0)), kernelmill.random.Stream.from_seed(0).signs(2))"
    )
    # -S and explicit paths: otherwise the editable installation would be imported.
    paths = [str(site), str(Path(np.__file__).parents[1])]
    run = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {paths!r}; {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    where, result = run.stdout.splitlines()
    assert where.startswith(str(site))
    assert result.startswith("[ 6. -2. -4.  0.]")
    for name in ("py.typed", "report/page.html.jinja", "report/page.css"):
        assert (site / "kernelmill" / name).exists()
    assert (site / "bin" / "kernelmill").exists()


@pytest.fixture
def sources(tmp_path):
    """A copy of the sources without anything built."""
    copy = tmp_path / "kernelmill"
    copy.mkdir()
    for file in FILES:
        shutil.copy(ROOT / file, copy / file)
    for folder in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignore)
    return copy


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        ("/nonexistent/compiler", "names '/nonexistent/compiler', which does not work"),
        (None, "found no C++ compiler"),
    ],
)
def test_without_a_compiler_the_error_names_it(sources, tmp_path, compiler, message):
    tools = tmp_path / "bin"
    tools.mkdir()
    ninja = shutil.which("ninja", path=str(Path(sys.executable).parent)) or shutil.which("ninja")
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    for tool in (ninja, cmake, sys.executable):
        (tools / Path(tool).name).symlink_to(tool)
    environment = {k: v for k, v in os.environ.items() if k not in ("CXX", "CC", "CXXFLAGS")}
    environment["PATH"] = str(tools)  # the tools of the build alone: no c++, no g++
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
