"""The papers' tables and figures, rerun: what `python -m reproduce` runs.

Contents
--------
EXPERIMENTS
    The experiments by name, one for each table or figure.
select_experiments, run_experiment
    From names to experiments; run one, or resume it.
Experiment, Paper, Column, Claim, Published
    What an experiment declares.
Cell, Points, Results, Record
    What it gives.
Outcome, Line, judge, Verdict, Check
    How that compares with the paper.
Scale, CONFIDENCE
    As in the paper, quick, or small enough for tests; the level of the intervals.
"""

from reproduce.data_sets import DATA_SETS, MissingDataError
from reproduce.declaration import (
    CONFIDENCE,
    Cell,
    Check,
    Claim,
    Column,
    ConfidenceInterval,
    Experiment,
    Paper,
    Points,
    Published,
    Results,
    Scale,
)
from reproduce.fastfood_paper import FASTFOOD_EXPERIMENTS
from reproduce.mckernel_paper import MCKERNEL_EXPERIMENTS
from reproduce.outcome import Line, Outcome, Verdict, judge
from reproduce.running import (
    Record,
    load_record,
    run_experiment,
    select_experiments,
)
from reproduce.tensor_sketch_paper import TENSOR_SKETCH_EXPERIMENTS
from reproduce.thesis_errors import THESIS_ERRORS
from reproduce.thesis_speed import THESIS_SPEED

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        *FASTFOOD_EXPERIMENTS,
        *TENSOR_SKETCH_EXPERIMENTS,
        *THESIS_ERRORS,
        *THESIS_SPEED,
        *MCKERNEL_EXPERIMENTS,
    )
}

__all__ = [
    "CONFIDENCE",
    "DATA_SETS",
    "EXPERIMENTS",
    "Cell",
    "Check",
    "Claim",
    "Column",
    "ConfidenceInterval",
    "Experiment",
    "Line",
    "MissingDataError",
    "Outcome",
    "Paper",
    "Points",
    "Published",
    "Record",
    "Results",
    "Scale",
    "Verdict",
    "judge",
    "load_record",
    "run_experiment",
    "select_experiments",
]
