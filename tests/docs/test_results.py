"""The results in docs/results are those of the JSON files, and of declared experiments."""

import importlib.util
from pathlib import Path

import pytest

from kernelmill.experiments import EXPERIMENTS, Outcome, load_record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def load_tool():
    spec = importlib.util.spec_from_file_location(
        "render_results", ROOT / "tools/render_results.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("scale", [path.name for path in RESULTS.iterdir() if path.is_dir()])
def test_pages_show_what_was_measured(scale):
    """If a declaration has changed: python tools/render_results.py."""
    assert (RESULTS / f"{scale}.md").read_text() == load_tool().render(scale)


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
