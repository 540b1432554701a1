"""Write docs/results/full.md and quick.md from the results in the folders full and quick there.

Copy the JSON files of `kernelmill reproduce` there first:

    kernelmill reproduce all --out docs/results/full
    python tools/render_results.py
"""

import sys
from pathlib import Path

from kernelmill.experiments import EXPERIMENTS, Outcome, load_record
from kernelmill.report.experiment_page import render_markdown

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def render(scale: str) -> str:
    folder = RESULTS / scale
    outcomes = [
        Outcome(experiment, load_record(path))
        for name, experiment in EXPERIMENTS.items()
        if (path := folder / f"{name}.json").exists()
    ]
    return render_markdown(outcomes)


def main() -> None:
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        scale = folder.name
        text = render(scale)
        (RESULTS / f"{scale}.md").write_text(text)
        print(f"docs/results/{scale}.md: {len(text.splitlines())} lines")


if __name__ == "__main__":
    sys.exit(main())
