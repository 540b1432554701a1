"""`doctor` and `bench` on this machine."""

import json

import numpy as np
import pytest

from kernelmill.cli import self_test
from kernelmill.cli.commands import doctor
from kernelmill.cli.self_test import Check
from kernelmill.installation import speed as contests


def test_doctor_says_what_is_there_and_that_it_works(run):
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
    assert record["good"]
    assert {check["name"] for check in record["checks"]} == {
        *("packages", "disk", "random bits", "instruction sets", "kernel error", "save and load")
    }


@pytest.mark.parametrize("quiet", [False, True])
def test_doctor_fails_with_the_move(run, monkeypatch, quiet):
    broken = [Check("random bits", False, "0x1 instead of 0x2", "reinstall")]
    monkeypatch.setattr(doctor, "self_test", lambda: broken)
    code, out, err = run("doctor", *["--quiet"] * quiet)
    assert code == 1
    said = err if quiet else out
    assert "error: failed: random bits\ntry: reinstall" in said
    assert (out == "") == quiet


def test_self_test_finds_wrong_bits(monkeypatch):
    class Biased(self_test.Stream):
        def uniforms(self, size, **settings):
            return np.full(size, 0.5)

    monkeypatch.setattr(self_test, "Stream", Biased)
    results = {check.name: check for check in self_test.self_test()}
    assert not results["random bits"].good
    assert results["random bits"].move


def test_self_test_finds_wrong_kernel_values(monkeypatch):
    from kernelmill.maps import Fastfood

    right = Fastfood.transform
    monkeypatch.setattr(Fastfood, "transform", lambda self, X: 1.1 * right(self, X))
    results = {check.name: check for check in self_test.self_test()}
    assert not results["kernel error"].good


def test_missing_packages_are_named(monkeypatch, run):
    monkeypatch.setattr(doctor, "versions", lambda: {"python": "3.11", "pyarrow": "missing"})
    code, out, _ = run("doctor")
    assert code == 1
    assert "try: pip install pyarrow" in out


def test_bench_compares_in_one_run(run, monkeypatch):
    measure = contests.best_times
    monkeypatch.setattr(contests, "best_times", lambda calls, rounds: measure(calls, 1))
    code, out, _ = run("bench", "--quick", "--json")
    record = json.loads(out)
    assert code == 0
    names = [[each["name"] for each in contest["contenders"]] for contest in record["contests"]]
    assert names[0][:2] == ["kernelmill Fastfood", "scikit-learn RBFSampler"]
    assert "limit: filling the output" in names[0]
    for contest in record["contests"]:
        assert contest["contenders"][0]["ratio"] == 1
    made = [
        contests.Contest("features", 10, "error", [contests.Contender("kernelmill", 0.5, 0.01)])
    ]
    monkeypatch.setattr(
        "kernelmill.cli.commands.bench.contests", lambda quick: [("one", lambda: made[0])]
    )
    code, out, _ = run("bench")
    assert code == 0
    assert out.splitlines()[-1].split() == ["kernelmill", "0.5", "s", "20", "1x", "0.01"]


def test_bench_refuses_wrong_answers(run, monkeypatch):
    from kernelmill.maps import Fastfood

    right = Fastfood.transform
    monkeypatch.setattr(Fastfood, "transform", lambda self, X: 2 * right(self, X))
    code, _, err = run("bench", "--quick")
    assert code == 1
    assert "kernel values should be off by less than" in err
    assert "try: run kernelmill doctor" in err
