"""The results in docs/results are those of the JSON files, and of declared experiments."""

from pathlib import Path

import pytest

from reproduce import EXPERIMENTS, Outcome, load_record
from reproduce.render_results import render

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


@pytest.mark.parametrize("scale", [path.name for path in RESULTS.iterdir() if path.is_dir()])
def test_pages_show_what_was_measured(scale):
    """If a declaration has changed: python -m reproduce.render_results."""
    assert (RESULTS / f"{scale}.md").read_text() == render(scale)


def test_every_record_belongs_to_an_experiment_and_a_commit():
    paths = sorted(RESULTS.rglob("*.json"))
    assert paths
    for path in paths:
        record = load_record(path)
        assert record.name == path.stem
        assert record.scale == path.parent.name
        assert record.commit, path
        assert "dirty" not in record.commit, path
        outcome = Outcome(EXPERIMENTS[record.name], record)
        assert len(outcome.lines) == len(outcome.results.cells), path
