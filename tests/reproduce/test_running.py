"""Runs in parts: kept, resumed, interrupted; every experiment at the scale of the tests."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kernelmill.errors import ArgumentError
from reproduce import (
    EXPERIMENTS,
    Cell,
    Outcome,
    Points,
    Scale,
    load_record,
    run_experiment,
    select_experiments,
)


@pytest.fixture
def counting_experiment(make_experiment):
    """An experiment of three parts that notes its calls, and fails at one of them."""

    def declare(calls, fail_at=None):
        def measure(part, scale, seed):
            calls.append(part)
            if part == fail_at:
                raise KeyboardInterrupt
            yield Cell(part, "error", (float(seed), 1.0))
            yield Points("points", (0.5, 1.0), (0.4, 1.1))

        return make_experiment(parts={"a": (), "b": (), "c": ()}, measure=measure)

    return declare


@pytest.mark.representative
def test_results_survive_the_file(tmp_path, counting_experiment):
    calls = []
    record = run_experiment(counting_experiment(calls), scale=Scale.QUICK, seed=3, folder=tmp_path)
    loaded = load_record(tmp_path / "paper-table-1.json")
    assert loaded == record
    assert loaded.seed == 3
    assert loaded.scale == "quick"
    assert [part.cells[0].row for part in loaded.parts.values()] == ["a", "b", "c"]
    assert loaded.machine["threads"]


def test_a_run_that_was_interrupted_is_resumed(tmp_path, counting_experiment):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(counting_experiment(calls, "b"), scale=Scale.TEST, folder=tmp_path)
    assert list(load_record(tmp_path / "paper-table-1.json").parts) == ["a"]
    run_experiment(counting_experiment(calls), scale=Scale.TEST, folder=tmp_path)
    assert calls == ["a", "b", "b", "c"]
    run_experiment(counting_experiment(calls), scale=Scale.TEST, folder=tmp_path)
    assert len(calls) == 4
    run_experiment(counting_experiment(calls), scale=Scale.TEST, folder=tmp_path, fresh=True)
    assert len(calls) == 7


def test_parts_can_be_run_one_by_one(tmp_path, counting_experiment):
    calls = []
    experiment = counting_experiment(calls)
    for part in "ca":
        chosen = replace(experiment, parts={part: ()})
        record = run_experiment(chosen, scale=Scale.TEST, folder=tmp_path)
    outcome = Outcome(experiment, record)
    assert calls == ["c", "a"]
    assert outcome.results.rows() == ["a", "c"]
    assert outcome.missing == {"b": "it was not run"}


def test_parts_of_other_commits_keep_them(tmp_path, counting_experiment):
    """A record that is updated by a newer one, part by part, and its file."""
    old = run_experiment(counting_experiment([]), scale=Scale.TEST)
    new = run_experiment(counting_experiment([]), scale=Scale.TEST, seed=1)
    del old.parts["c"], new.parts["a"]
    new.parts["c"] = replace(new.parts["c"], missing="no data")
    merged = replace(old, commit="older").merge(replace(new, commit="newer"))
    assert {name: part.commit for name, part in merged.parts.items()} == {
        "a": "older",
        "b": "",
        "c": "",
    }
    assert sorted(merged.commits) == ["newer", "older"]
    assert merged.parts["b"].cells == new.parts["b"].cells
    (tmp_path / "record.json").write_text(json.dumps(merged.to_json()))
    assert load_record(tmp_path / "record.json") == merged


def test_results_of_other_settings_are_kept_aside(tmp_path, counting_experiment):
    calls = []
    run_experiment(counting_experiment(calls), scale=Scale.TEST, folder=tmp_path)
    run_experiment(counting_experiment(calls), scale=Scale.TEST, seed=1, folder=tmp_path)
    assert len(calls) == 6
    assert load_record(tmp_path / "paper-table-1.json").seed == 1
    assert load_record(tmp_path / "paper-table-1.json.old").seed == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": 99}',
        '{"format": 1, "parts": 3}',
        '{"format": 1, "parts": {"a": {"seconds": 1, "cells": [{"row": 1}], "points": []}}}',
    ],
)
def test_other_files_are_rejected_and_left_alone(tmp_path, content, counting_experiment):
    path = tmp_path / "paper-table-1.json"
    path.write_text(content)
    with pytest.raises(ArgumentError, match="holds no results of an experiment"):
        run_experiment(counting_experiment([]), scale=Scale.TEST, folder=tmp_path)
    assert path.read_text() == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values["parts"]["a"]["points"][0]["x"].pop(),
        lambda values: values["parts"]["a"]["cells"][0]["runs"].clear(),
        lambda values: values.update(scale="huge"),
        lambda values: values.update(seed="0"),
        lambda values: values.pop("machine"),
    ],
)
def test_damaged_files_are_rejected(tmp_path, counting_experiment, damage):
    run_experiment(counting_experiment([]), scale=Scale.TEST, folder=tmp_path)
    path = tmp_path / "paper-table-1.json"
    values = json.loads(path.read_text())
    damage(values)
    path.write_text(json.dumps(values))
    with pytest.raises(ArgumentError, match="holds no results"):
        load_record(path)


def test_columns_of_other_versions_are_left_out(counting_experiment, make_experiment):
    record = run_experiment(counting_experiment([]), scale=Scale.TEST)
    experiment = make_experiment(columns=make_experiment().columns[1:])
    assert Outcome(experiment, record).lines == []


def test_missing_data_are_named_and_looked_for_again(no_data, tmp_path, counting_experiment):
    calls = []
    experiment = replace(
        counting_experiment(calls), parts={"a": (), "b": ("ct_slices",), "c": ("adult",)}
    )
    for _ in range(2):
        record = run_experiment(experiment, scale=Scale.TEST, folder=tmp_path)
        assert calls == ["a"]
        missing = Outcome(experiment, record).missing
        assert list(missing) == ["b", "c"]
        assert "slice_localization_data.csv" in missing["b"]


def test_names_are_experiments_papers_or_all():
    assert select_experiments(["all"], EXPERIMENTS) == list(EXPERIMENTS.values())
    of_paper = select_experiments(["fastfood"], EXPERIMENTS)
    assert of_paper
    assert {each.paper.key for each in of_paper} == {"fastfood"}
    chosen = select_experiments(["fastfood-table-3", "fastfood-figure-1"], EXPERIMENTS)
    assert [each.name for each in chosen] == ["fastfood-figure-1", "fastfood-table-3"]
    part = select_experiments(["fastfood-table-3:wine"], EXPERIMENTS)
    assert [list(each.parts) for each in part] == [["Wine Quality"]]
    with pytest.raises(ArgumentError, match=r"part of fastfood-table-3 .*got 'beer'; .*Insurance"):
        select_experiments(["fastfood-table-3:beer"], EXPERIMENTS)
    with pytest.raises(ArgumentError, match=r"a paper \(fastfood.*got 'fastfod'"):
        select_experiments(["fastfod"], EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs(small_data, name):
    """At the scale of the tests, on small files: every part gives finite values."""
    experiment = EXPERIMENTS[name]
    record = run_experiment(experiment, scale=Scale.TEST, seed=1)
    outcome = Outcome(experiment, record)
    assert not outcome.missing
    assert all(part.cells or part.points for part in record.parts.values())
    for line in outcome.lines:
        assert np.all(np.isfinite(line.cell.runs)), line
    measured = {(line.row, line.column) for line in outcome.lines}
    names = {column for _, column in measured}
    assert names == {each.name for each in experiment.columns}
    for claim, (_, check) in zip(experiment.claims, outcome.checks, strict=True):
        assert (check.word == "not measured") == claim.full_only, claim.text
    json.dumps(outcome.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", ["fastfood-figure-1", "fastfood-table-3"])
def test_the_same_seed_gives_the_same_values(small_data, name):
    experiment = replace(EXPERIMENTS[name], parts=dict(list(EXPERIMENTS[name].parts.items())[:1]))
    first, again, other = (
        [
            part.cells
            for part in run_experiment(experiment, scale=Scale.TEST, seed=seed).parts.values()
        ]
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_errors_of_fastfood_are_those_of_the_thesis():
    """Sivertsen (2014), Table 4.1, D = 256.

    The mean of six runs deviates by 4 % (one standard deviation), the thesis's of 16 by 3 %: 20 %
    is four of both, with a probability of false alarm of 1e-4 for another seed.
    """
    experiment = EXPERIMENTS["thesis-table-4-1"]
    results = Outcome(experiment, run_experiment(experiment, scale=Scale.TEST)).results
    for column in ("Fastfood abs.", "Fastfood rel."):
        measured = results.get(256.0, column).interval.mean
        printed = float(experiment.published[256.0, column])
        assert abs(measured / printed - 1) < 0.2, column
