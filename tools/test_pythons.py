"""Run the representative tests with the installed wheel on several versions of Python.

Arguments are versions such as 3.13, looked for on PATH and under the versions folder of pyenv, or
paths of interpreters. One wheel is built; each interpreter gets a new virtual environment in
build/pythons with the wheel and what the tests import. The exit code is 1 if the tests fail on an
interpreter, or if none is available.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "pythons"
DEFAULT = ["3.11", "3.12", "3.13", "3.14"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
DESCRIBE = "import json, sys, venv; print(json.dumps([sys.version.split()[0], sys.executable]))"
NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")


class NotTestable(Exception):
    """The tests cannot run on this machine, whatever the code."""


def run(command: list[str], seconds: int = 900) -> str:
    """Return what a command prints; raise `RuntimeError` with it where the command fails."""
    # Nothing of the sources or of the calling environment may take the place of the wheel.
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} ...\n{done.stdout}")
    return done.stdout


def is_version(name: str) -> bool:
    """Whether an argument is a version rather than a path."""
    return re.fullmatch(r"3\.\d+", name) is not None


def list_candidates(name: str) -> list[Path]:
    """Return the files that may be the interpreter: of a path, or of a version."""
    if not is_version(name):
        return [Path(name)]
    folders = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    versions = [p for p in pyenv.glob(f"versions/{name}.*") if p.name.rpartition(".")[2].isdigit()]
    versions.sort(key=lambda path: int(path.name.rpartition(".")[2]), reverse=True)
    folders += [version / "bin" for version in versions]
    unnamed = [folder / "python3" for folder in folders]
    return [*(folder / f"python{name}" for folder in folders), *unnamed, Path(sys.executable)]


def find_interpreter(name: str) -> tuple[str, str]:
    """Return the version and the path of an interpreter that runs and has the module venv."""
    for path in list_candidates(name):
        try:  # a shim of pyenv exists for versions that are not selected, too
            version, executable = json.loads(run([str(path), "-c", DESCRIBE]))
        except (OSError, RuntimeError, ValueError):
            continue
        if not is_version(name) or version.startswith(f"{name}."):
            return version, executable
    raise NotTestable("not available")


def build_wheel() -> str:
    """Build the wheel, in the build tree of the editable installation."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    run([*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(FOLDER / "wheel"), "."])
    (wheel,) = (FOLDER / "wheel").glob("kernelmill-*.whl")
    return str(wheel)


def install(executable: str, environment: Path, wheel: str) -> str:
    """Create a virtual environment with the wheel and the test group; return its interpreter."""
    run([executable, "-m", "venv", "--without-pip", str(environment)])
    python = str(environment / "bin" / "python")
    command = [*PIP, "--python", python, "install", "--only-binary", ":all:", "--no-compile"]
    try:
        run([*command, "--group", "test", wheel])
    except RuntimeError as error:
        if missing := NO_WHEEL.search(str(error)):
            reason = f"not tested, because the package index has no wheel of {missing[1]} for it"
            raise NotTestable(reason) from error
        raise
    imported = run([python, "-c", "import kernelmill; print(kernelmill.__file__)"]).strip()
    if not Path(imported).is_relative_to(environment):
        raise RuntimeError(f"the tests would run with {imported}, which is not the wheel")
    return python


def test(name: str, wheel: str) -> bool | None:
    """Print a line about an interpreter; return whether it passes, None if it is not available."""
    label, start = f"Python {name}", time.monotonic()
    try:
        version, executable = find_interpreter(name)
        label = f"Python {version}"
        python = install(executable, FOLDER / version, wheel)
        tests = ["-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]
        output = run([python, *tests, "-m", "representative", "tests"])
    except NotTestable as reason:
        print(f"{label}: {reason}", flush=True)
        return None
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{label}: failed\n{error}", flush=True)
        return False
    n_passed = re.findall(r"(\d+) passed", output)[-1]
    seconds = time.monotonic() - start
    print(f"{label}: passed, {n_passed} tests in {seconds:.0f} s with the installation", flush=True)
    return True


def main(names: list[str]) -> int:
    """Test every interpreter; return the exit code."""
    wheel = build_wheel()
    passed = [test(name, wheel) for name in names]
    if not any(passed):
        print("No version of Python passed.")
    return 0 if any(passed) and False not in passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or DEFAULT))
