"""`python -m reproduce`: names, results, resuming, interrupts."""

import json
from dataclasses import replace

import pytest

from reproduce import EXPERIMENTS, Cell, data_sets
from reproduce import __main__ as command

CALLS = []
FAIL = []


def measure(part, scale, seed):
    CALLS.append((part, scale.value, seed))
    if part in FAIL:
        raise KeyboardInterrupt
    yield Cell(part, "Speedup", (30.0, 31.0, 32.0))


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the program here: (exit code, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        code = command.main([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def experiments(monkeypatch):
    """Two experiments that take no time."""
    CALLS.clear()
    FAIL.clear()
    table = replace(EXPERIMENTS["fastfood-table-2"], measure=measure, claims=())
    rows = list(table.parts)
    missing = replace(
        table, name="fastfood-table-9", place="Table 9", parts={rows[0]: (), rows[1]: ("year",)}
    )
    chosen = {each.name: each for each in (table, missing)}
    monkeypatch.setattr(command, "EXPERIMENTS", chosen)
    monkeypatch.setenv("KERNELMILL_DATA", "/nowhere")
    monkeypatch.setattr(data_sets, "find_data", lambda name: None)
    return rows


@pytest.mark.representative
def test_lists_names_by_paper(run):
    code, out, _ = run("--list")
    assert code == 0
    assert "fastfood: Le, Sarlós & Smola (2013)" in out
    assert "fastfood-table-3" in out
    assert max(map(len, out.splitlines())) <= 80
    listed = json.loads(run("fastfood", "--list", "--json")[1])["experiments"]
    assert all(each["name"].startswith("fastfood-") for each in listed)


def test_runs_and_writes_everything(run, experiments, tmp_path):
    out = tmp_path / "deep" / "results"
    code, printed, _ = run("fastfood-table-2", "--quick", "--out", out, "--seed", 4)
    assert code == 0
    assert [(row, "quick", 4) for row in experiments] == CALLS
    assert "31" in printed
    assert "better" in printed  # 24x in the paper
    assert f"Page: {out / 'index.html'}" in printed.replace("\n", "")
    for name in ("index.html", "results.md", "results.json", "fastfood-table-2.svg"):
        assert (out / name).exists()


def test_all_names_what_is_missing(run, experiments, tmp_path):
    code, printed, _ = run("all", "--out", tmp_path, "--json")
    assert code == 0
    results = json.loads(printed)["results"]
    assert [each["name"] for each in results] == ["fastfood-table-2", "fastfood-table-9"]
    assert {scale for _, scale, _ in CALLS} == {"full"}
    assert list(results[1]["missing"]) == [experiments[1]]
    _, printed, _ = run("all", "--out", tmp_path)
    assert f"not run: fastfood-table-9 ({experiments[1]})" in printed


def test_resumes_after_ctrl_c(run, experiments, tmp_path):
    FAIL.append(experiments[1])
    code, _, err = run("fastfood-table-2", "--out", tmp_path)
    assert code == 130
    assert f"finished parts are kept in {tmp_path}" in err.replace("\n", " ")
    assert "run the same command again" in err
    page = (tmp_path / "index.html").read_text()
    assert experiments[0] in page
    FAIL.clear()
    assert run("fastfood-table-2", "--out", tmp_path)[0] == 0
    assert [row for row, _, _ in CALLS] == [
        experiments[0],
        experiments[1],
        experiments[1],
        experiments[2],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "NAME is missing"),
        (["fastfod"], "fastfood-table-3"),
        (["fastfood-table-2", "--out", "FILE"], "must be a folder"),
    ],
)
def test_wrong_usage(run, tmp_path, arguments, message):
    file = tmp_path / "file"
    file.write_text("")
    code, _, err = run(*(str(file) if each == "FILE" else each for each in arguments))
    assert code in (1, 2)
    assert message in err
