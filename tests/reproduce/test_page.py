"""The page, Markdown and plots of the papers' experiments."""

import json
import re

import pytest

from reproduce import (
    EXPERIMENTS,
    Cell,
    Outcome,
    Points,
    Record,
    Scale,
    run_experiment,
)
from reproduce.page import (
    render_experiments,
    render_markdown,
    write_experiments,
)
from reproduce.running import PartResult


def make_outcome(name, *measured, missing=""):
    """All values in the first part of the experiment."""
    part = PartResult(
        1.5,
        tuple(each for each in measured if isinstance(each, Cell)),
        tuple(each for each in measured if isinstance(each, Points)),
        missing,
    )
    record = Record(
        name,
        "full",
        0,
        "0.1",
        "abc123",
        "2026-11-01T10:00:00+00:00",
        {"threads": "2"},
        {next(iter(EXPERIMENTS[name].parts)): part},
    )
    return Outcome(EXPERIMENTS[name], record)


@pytest.fixture
def outcomes():
    return [
        make_outcome(
            "fastfood-figure-1",
            *(Cell(n, "Fastfood", (0.9 / n, 1.1 / n)) for n in (16.0, 64.0)),
            *(Cell(n, "Random Kitchen Sinks", (1.0 / n, 1.2 / n)) for n in (16.0, 64.0)),
            Points("d = 10", (0.1, 0.5, 1.0), (0.12, 0.48, 1.0)),
        ),
        make_outcome(
            "fastfood-table-3",
            Cell("Wine Quality", "Exact RBF", (0.6, 0.61, 0.62)),
            Cell("Wine Quality", "Fastfood RBF", (0.7, 0.74, 0.78)),
            Cell("CPU", "Fastfood RBF", (9.0, 9.1, 9.2)),
            Cell("KEGG Network", "Fastfood RBF", (0.2, 0.21)),
        ),
        make_outcome("fastfood-cifar", missing="the files of CIFAR-10 were not found"),
    ]


@pytest.mark.representative
def test_page_has_settings_verdicts_and_what_is_missing(outcomes):
    page = render_experiments(outcomes)
    assert "Of 3 values that can be compared" in page
    assert ": 1 better, 1 the same within chance, 1 worse." in page
    assert "the files of CIFAR-10 were not found" in page
    assert "fastfood-cifar (CIFAR-10)" in page
    assert re.search(r"fastfood-table-3 \([^)]*Forest\)", page.replace("(axial)", ""))
    assert "Forest: it was not run" in page
    assert "0.740" in page  # the paper's figure, as printed
    assert "The paper does not give the unit of the target." in page
    assert "abc123" in page
    for outcome in outcomes:
        assert outcome.experiment.title in page
    assert page.count("<svg") == 3  # points, curves, ratios
    assert "<script" not in page
    assert "http://" not in re.sub(r'xmlns\S*="[^"]*"', "", page)


def test_markdown_has_the_same_tables(outcomes):
    text = render_markdown(outcomes)
    assert "## Le, Sarlós & Smola (2013), Table 3: Test RMSE of regression on UCI data" in text
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("| Wine Quality | Fastfood RBF |"))
    assert "| 0.740 | 0.74 ± " in row
    assert "| same |" in row
    widths = {line.count("|") for line in lines if line.startswith("| CPU |")}
    assert len(widths) == 2  # a table of values and one of verdicts


def test_files(outcomes, tmp_path):
    written = write_experiments(tmp_path, outcomes)
    assert written[0] == tmp_path / "index.html"
    names = {path.name for path in written}
    assert {"results.md", "results.json", "fastfood-table-3.svg", "fastfood-table-3.png"} <= names
    assert {"fastfood-figure-1-1.svg", "fastfood-figure-1-2.png"} <= names
    assert all(path.stat().st_size > 100 for path in written)
    results = json.loads((tmp_path / "results.json").read_text())
    wine = results[1]["values"][1]
    assert (wine["published"], wine["verdict"]) == ("0.740", "same")
    assert wine["low"] < wine["measured"] < wine["high"]
    before = (tmp_path / "index.html").read_bytes()
    write_experiments(tmp_path, outcomes)
    assert (tmp_path / "index.html").read_bytes() == before


def test_measured_results_are_drawn():
    experiment = EXPERIMENTS["fastfood-figure-1"]
    outcome = Outcome(experiment, run_experiment(experiment, scale=Scale.TEST))
    page = render_experiments([outcome])
    assert "sizes are too small for conclusions" in page
    assert page.count("<svg") == 1
