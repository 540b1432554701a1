"""The cost of `import kernelmill` compared with its dependencies."""

import subprocess
import sys
from functools import partial

from benchmarks.timing import best_times, heading


def main() -> None:
    """Time whole interpreters that import one thing or the other."""
    heading("import, whole interpreter, warm disk")
    statements = {
        "nothing": "pass",
        "numpy, scipy.linalg, sklearn.base": "import numpy, scipy.linalg, sklearn.base",
        "kernelmill": "import kernelmill",
    }

    def start(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)

    t = best_times({name: partial(start, s) for name, s in statements.items()}, rounds=5)
    for name, seconds in t.items():
        print(f"{name:36s} {seconds * 1e3:6.0f} ms")


if __name__ == "__main__":
    main()
