"""The command line in this process, and data and models for it."""

import numpy as np
import pytest

from kernelmill.cli import main


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the program here: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*arguments):
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def write_rings(path, n_rows=600, seed=0):
    """Two classes that no line parts, a column of categories, and a number to predict."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows)).round(4)
    lines = ["a,b,colour,radius,place"]
    for x, y in zip(a, b, strict=True):
        radius = np.hypot(x, y)
        colour = "red" if x + rng.normal() > 0 else "green"
        lines.append(f"{x},{y},{colour},{radius:.4f},{'in' if radius < 1.1 else 'out'}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def rings(tmp_path):
    """A CSV file of 600 rows."""
    return write_rings(tmp_path / "rings.csv")


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A folder with rings.csv and its classifier, rings.kmill, and regressor, radius.kmill."""
    folder = tmp_path_factory.mktemp("fitted")
    data = write_rings(folder / "rings.csv")
    settings = ["--n-components", "128", "--no-tune", "--quiet"]
    for target, name, other in (("place", "rings", "radius"), ("radius", "radius", "place")):
        out = str(folder / f"{name}.kmill")
        assert main(["fit", str(data), "-t", target, "-o", out, "--drop", other, *settings]) == 0
    return folder


def revived(kind, values):
    """The record of `--json`, which has null for the points of plots."""
    check = values.get("kernel_check")
    if check is not None:
        assert check["exact"] is None
        assert check["estimated"] is None
        values = {**values, "kernel_check": {**check, "exact": [], "estimated": []}}
    return kind.from_record(values)


def widest(printed):
    """The characters of the longest line, apart from headlines, which terminals may wrap."""
    return max(len(line) for line in printed.splitlines() if "% interval" not in line)
