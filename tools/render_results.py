"""Write docs/results/full.md and quick.md from the results in the folders full and quick there.

    kernelmill reproduce all --out results
    python tools/render_results.py results

takes the results of `kernelmill reproduce` into these folders first. Parts of an experiment that
were not run again stay as they are, with the commit that they were run at.
"""

import json
import sys
from pathlib import Path

from kernelmill.experiments import EXPERIMENTS, Outcome, load_record
from kernelmill.report.experiment_page import render_markdown

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
    folder = RESULTS / scale
    outcomes = [
        Outcome(experiment, load_record(path))
        for name, experiment in EXPERIMENTS.items()
        if (path := folder / f"{name}.json").exists()
    ]
    return render_markdown(outcomes)


def main() -> None:
    for folder in sys.argv[1:]:
        take(Path(folder))
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        scale = folder.name
        text = render(scale)
        (RESULTS / f"{scale}.md").write_text(text)
        print(f"docs/results/{scale}.md: {len(text.splitlines())} lines")


if __name__ == "__main__":
    sys.exit(main())
