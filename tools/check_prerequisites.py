"""Say plainly what a machine lacks to build kernelmill, before anything is downloaded."""

import os
import shutil
import sys


def missing() -> list[str]:
    """Return one line for every prerequisite that is not there."""
    lines = []
    if sys.version_info < (3, 11):  # noqa: UP036 - this very check must run on older versions
        lines.append(
            f"Python 3.11 or newer (this is {sys.version.split()[0]}): install one and run "
            "'make PYTHON=python3.11 ...' with its name"
        )
    try:
        import ensurepip  # noqa: F401, PLC0415
        import venv  # noqa: F401, PLC0415
    except ImportError:
        lines.append("Python's venv module: on Debian and Ubuntu, 'apt install python3-venv'")
    named = os.environ.get("CXX", "").split()
    if named and not shutil.which(named[0]):
        lines.append(f"the C++ compiler that the environment variable CXX names, {named[0]!r}")
    elif not named and not any(shutil.which(c) for c in ("c++", "g++", "clang++")):
        lines.append(
            "a C++20 compiler, GCC 11 or Clang 14 or newer: on Debian and Ubuntu, 'apt install g++'"
        )
    return lines


if __name__ == "__main__":
    problems = missing()
    if problems:
        sys.exit(
            "kernelmill cannot be built here. Missing:\n" + "\n".join(f"  - {p}" for p in problems)
        )
