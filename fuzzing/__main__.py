"""Run all campaigns: `python -m fuzzing --count 1000 --seed 0`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzzing import arrays, checkpoints, model_files, tables
from fuzzing.campaign import run_campaign

FAILURES = Path("build/fuzzing")


def main() -> int:
    """Print a line for each subject; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="mutations of each subject")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("subjects", nargs="*", help="names of subjects; default: all")
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subjects = (
            *tables.make_subjects(),
            *model_files.make_subjects(),
            *checkpoints.make_subjects(),
            *arrays.make_subjects(),
        )
        for subject in subjects:
            if given.subjects and subject.name not in given.subjects:
                continue
            tally = run_campaign(subject, given.count, given.seed, Path(folder), FAILURES)
            print(tally, flush=True)
            for failure in tally.failures[:5]:
                print(failure, flush=True)
            failed += len(tally.failures)
    if failed:
        print(f"The files that failed are in {FAILURES}.")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
