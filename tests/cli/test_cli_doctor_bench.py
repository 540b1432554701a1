"""`doctor` and `bench` on this machine."""

import json

import numpy as np
import pytest

from kernelmill.cli.commands import bench
from kernelmill.installation import checks, speed
from kernelmill.installation.checks import CheckResult


def test_doctor_shows_the_installation_and_passes(run):
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    for word in ("python", "numpy", "scikit-learn", "pyarrow", "instruction set", "threads"):
        assert f"{word} " in out
    for word in ("BLAS", "memory", "disk here", "terminal"):
        assert f"{word} " in out
    assert "FAILED" not in out
    assert out.splitlines()[-1] == "Everything works."
    assert max(map(len, out.splitlines())) <= 80


def test_doctor_as_json(run):
    code, out, _ = run("doctor", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["passed"]
    assert {check["name"] for check in record["checks"]} == {
        *("packages", "disk", "random bits", "instruction sets", "kernel error", "save and load")
    }


@pytest.mark.parametrize("quiet", [False, True])
def test_doctor_fails_with_a_remedy(run, monkeypatch, quiet):
    broken = [CheckResult("random bits", False, "0x1 instead of 0x2", "reinstall")]
    monkeypatch.setattr(checks, "run_self_test", lambda: broken)
    code, out, err = run("doctor", *["--quiet"] * quiet)
    assert code == 1
    shown = err if quiet else out
    assert "error: failed: random bits\ntry: reinstall" in shown
    assert (out == "") == quiet


def test_self_test_detects_wrong_bits(monkeypatch):
    class Biased(checks.Stream):
        def uniforms(self, size, **settings):
            return np.full(size, 0.5)

    monkeypatch.setattr(checks, "Stream", Biased)
    results = {check.name: check for check in checks.run_self_test()}
    assert not results["random bits"].passed
    assert results["random bits"].remedy


def test_self_test_detects_wrong_kernel_values(monkeypatch):
    from kernelmill.maps import Fastfood

    right = Fastfood.transform
    monkeypatch.setattr(Fastfood, "transform", lambda self, X: 1.1 * right(self, X))
    results = {check.name: check for check in checks.run_self_test()}
    assert not results["kernel error"].passed


def test_missing_packages_are_named(monkeypatch, run):
    monkeypatch.setattr(checks, "list_versions", lambda: {"python": "3.11", "pyarrow": "missing"})
    code, out, _ = run("doctor")
    assert code == 1
    assert "try: pip install pyarrow" in out


def test_bench_compares_in_one_run(run, monkeypatch):
    measure = speed.measure_times
    monkeypatch.setattr(speed, "measure_times", lambda calls, rounds: measure(calls, 1))
    code, out, _ = run("bench", "--quick", "--json")
    record = json.loads(out)
    assert code == 0
    names = [[each["name"] for each in made["timings"]] for made in record["benchmarks"]]
    assert names[0][:2] == ["kernelmill Fastfood", "scikit-learn RBFSampler"]
    assert "limit: filling the output" in names[0]
    for made in record["benchmarks"]:
        assert made["timings"][0]["ratio"] == 1
    one = speed.Benchmark("features", 10, "error", [speed.Timing("kernelmill", 0.5, 0.01)])
    monkeypatch.setattr(bench, "list_benchmarks", lambda quick: [("one", lambda: one)])
    code, out, _ = run("bench")
    assert code == 0
    assert out.splitlines()[-1].split() == ["kernelmill", "0.5", "s", "20", "1x", "0.01"]


def test_bench_rejects_wrong_results(run, monkeypatch):
    from kernelmill.maps import Fastfood

    right = Fastfood.transform
    monkeypatch.setattr(Fastfood, "transform", lambda self, X: 2 * right(self, X))
    code, _, err = run("bench", "--quick")
    assert code == 1
    assert "the mean error of kernel values must be below" in err
    assert "try: run kernelmill doctor" in err
