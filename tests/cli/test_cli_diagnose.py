"""`kernelmill diagnose`: its table, JSON, page and errors."""

import json

import pytest

from kernelmill.workflows import diagnosis as module
from kernelmill.workflows.diagnosis import Diagnosis

from .conftest import revived, widest


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "_MAX_FEATURES", 256)
    monkeypatch.setattr(module, "_GRAM_ROWS", 60)


def test_table_and_page(run, rings, tmp_path):
    page = tmp_path / "d.html"
    arguments = [
        "diagnose",
        rings,
        "-t",
        "radius",
        "--drop",
        "place",
        "--rows",
        "200",
        "--transform",
        "none",
    ]
    code, out, err = run(*arguments, "--tolerance", "0.1", "--report", page)
    assert code == 0, err
    lines = [line for line in out.splitlines() if not line.startswith(("Use ", "Report"))]
    assert widest("\n".join(lines)) <= 80
    for text in ("Sample: 200 of 600 rows", "fastfood (sorf)", "taylor_sketch", "1,476", "Use "):
        assert text in out
    text = page.read_text()
    assert text.count("<svg") == 4
    assert "kernelmill fit" in text
    assert "A sample of 200 of 600 rows, seed 0" in text


def test_json(run, rings):
    arguments = ["diagnose", rings, "--kernel", "laplacian", "--length-scale", "median"]
    code, out, err = run(*arguments, "--tolerance", "0.1", "--probability", "0.9", "--json")
    assert code == 0, err
    found = revived(Diagnosis, json.loads(out)["diagnosis"])
    assert [each.map_name for each in found.requirements] == ["random_fourier", "nystroem"]
    assert found.requirements[0].from_bound == 1199  # 4 log(2 / 0.1) / 0.1^2
    assert found.probability == 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tolerance", "0"], "--tolerance must be a positive, finite number"),
        (["--probability", "1"], "--probability must be above 0 and below 1"),
        (["--kernel", "gausian"], "--kernel gaussian"),
        (["--kernel", "poly", "--length-scale", "2"], "--length-scale cannot be set"),
        (["--length-scale", "long"], "must be a number, 'scale' or 'median'"),
        (["-t", "nothing"], "nothing"),
        (["--report", "page.pdf"], "must end in .html"),
    ],
)
def test_errors(run, rings, arguments, message):
    code, out, err = run("diagnose", rings, *arguments)
    assert code in (1, 2)
    assert out == ""
    assert message in err


def test_units_of_polynomial_kernels_are_said(run, rings):
    code, out, err = run("diagnose", rings, "--kernel", "poly:degree=2,coef0=1", "--rows", "60")
    assert code == 0, err
    assert "the mean of k(x, x) is" in " ".join(out.split())
    code, out, err = run("diagnose", rings, "--kernel", "cauchy", "--rows", "60")
    assert code == 0, err
    assert "the mean of k(x, x)" not in out
