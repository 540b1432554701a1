"""The papers' tables and figures, rerun: what `kernelmill reproduce` runs.

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

from kernelmill.experiments.data_sets import DATA_SETS, MissingDataError
from kernelmill.experiments.declaration import (
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
from kernelmill.experiments.fastfood_paper import FASTFOOD_EXPERIMENTS
from kernelmill.experiments.mckernel_paper import MCKERNEL_EXPERIMENTS
from kernelmill.experiments.outcome import Line, Outcome, Verdict, judge
from kernelmill.experiments.running import (
    Record,
    load_record,
    run_experiment,
    select_experiments,
)
from kernelmill.experiments.tensor_sketch_paper import TENSOR_SKETCH_EXPERIMENTS
from kernelmill.experiments.thesis_errors import THESIS_ERRORS
from kernelmill.experiments.thesis_speed import THESIS_SPEED

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
