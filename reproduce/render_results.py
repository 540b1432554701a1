"""Write docs/results/full.md and quick.md from the results in the folders full and quick there.

    python -m reproduce all --out results
    python -m reproduce.render_results results

takes the results of `python -m reproduce` into these folders first. Parts of an experiment that
were not run again stay as they are, with the commit that they were run at.
"""

import json
import sys
from pathlib import Path

from reproduce import EXPERIMENTS, Outcome, load_record
from reproduce.page import render_markdown

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def take(folder: Path) -> None:
    """Copy or merge the results of a folder."""
    for name in EXPERIMENTS:
        if not (folder / f"{name}.json").exists():
            continue
        record = load_record(folder / f"{name}.json")
        path = RESULTS / record.scale / f"{name}.json"
        if path.exists():
            record = load_record(path).merge(record)
        path.write_text(json.dumps(record.to_json(), indent=1))


def render(scale: str) -> str:
    """Return the page of all results at a scale."""
    folder = RESULTS / scale
    outcomes = [
        Outcome(experiment, load_record(path))
        for name, experiment in EXPERIMENTS.items()
        if (path := folder / f"{name}.json").exists()
    ]
    return render_markdown(outcomes)


def main() -> None:
    """Take the results of the named folders, then write the pages."""
    for given in sys.argv[1:]:
        take(Path(given))
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        text = render(folder.name)
        (RESULTS / f"{folder.name}.md").write_text(text)
        sys.stdout.write(f"docs/results/{folder.name}.md: {len(text.splitlines())} lines\n")


if __name__ == "__main__":
    main()
