"""Commands and imports from the start of the process, and the prediction of single rows."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import kernelmill
from benchmarks.timing import best_times, heading, load


def bench_import() -> None:
    """Time interpreters that import kernelmill or its dependencies."""
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


ROWS, FEATURES, ROUNDS = 1000, 1024, 7


def write_table(path: Path) -> None:
    """Write rows of eight numbers and a category, with the target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 8))
    lines = ["a,b,c,d,e,f,g,h,colour,place"]
    for row in X:
        numbers = ",".join(f"{value:.4f}" for value in row)
        place = "in" if float(row @ row) < 7 else "out"
        lines.append(f"{numbers},{'red' if row[0] > 0 else 'blue'},{place}")
    path.write_text("\n".join(lines) + "\n")


def cpu_of_children(command: list[str], environment: dict[str, str]) -> float:
    """Return the CPU time of a command."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def commands() -> None:
    """Time whole processes."""
    heading(f"commands, process start included, {ROWS} rows of CSV; {load()}")
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder, "rows.csv"), Path(folder, "model.kmill")
        write_table(table)
        kernelmill.fit_table(table, "place", n_components=FEATURES, tune=False).save(model)
        # Compile modules once, as an installation does.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        program = [sys.executable, "-m", "kernelmill.cli"]
        calls = {
            "import numpy, scipy.linalg": [sys.executable, "-c", "import numpy, scipy.linalg"],
            "kernelmill --help": [*program, "--help"],
            "kernelmill inspect": [*program, "inspect", str(model)],
            "kernelmill predict": [
                *(*program, "predict", str(model), str(table), "--out"),
                str(Path(folder, "predictions.csv")),
            ],
            "kernelmill evaluate": [*program, "evaluate", str(model), str(table)],
        }
        run = partial(subprocess.run, check=True, capture_output=True, env=environment)
        t = best_times({name: partial(run, call) for name, call in calls.items()}, rounds=ROUNDS)
        cpu = {
            name: min(cpu_of_children(call, environment) for _ in range(3))
            for name, call in calls.items()
        }
    first = next(iter(calls))
    for name, seconds in t.items():
        print(
            f"{name:28s} {seconds * 1e3:6.0f} ms {seconds / t[first]:5.2f}x   "
            f"CPU {cpu[name] * 1e3:6.0f} ms {cpu[name] / cpu[first]:5.2f}x"
        )


def single_rows() -> None:
    """Time the prediction of one row in Python, compared with its features."""
    heading(f"one row in Python, {FEATURES} features; {load()}")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "rows.csv")
        write_table(table)
        model = kernelmill.fit_table(table, "place", n_components=FEATURES, tune=False)
    row = {**dict.fromkeys("abcdefgh", 0.3), "colour": "red"}
    assert model.predict_row(row) == model.predict({k: [v] for k, v in row.items()})[0]
    x = np.linspace(-1, 1, model.encoder.n_inputs, dtype=np.float32)
    t = best_times(
        {
            "its features": partial(model.learner.feature_map_._features, x[None]),
            "array in, label out": partial(model.learner.predict_row, x),
            "dictionary in, label out": partial(model.predict_row, row),
        }
    )
    for name, seconds in t.items():
        print(f"{name:28s} {seconds * 1e6:6.1f} us {seconds / t['its features']:5.1f}x")


def bench_commands() -> None:
    """Run both tables."""
    commands()
    single_rows()
