"""Run experiments part by part, and keep each finished part in a JSON file.

A file holds the results of one experiment at one scale and seed. Running again resumes: parts that
the file has are not run again, unless it is from another version, seed, scale or machine.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kernelmill.errors import ArgumentError
from kernelmill.files.atomic_file import atomic_write
from kernelmill.runtime import get_isa, get_num_threads
from kernelmill.runtime.progress import Progress, SilentProgress
from reproduce.data_sets import MissingDataError, load_data
from reproduce.declaration import Cell, Experiment, Points, Scale

__all__ = ["PartResult", "Record", "load_record", "run_experiment", "select_experiments"]

FORMAT = 1


@dataclass(frozen=True)
class PartResult:
    """The result of one part of an experiment: its cells and points, or why it was not run."""

    seconds: float
    cells: tuple[Cell, ...] = ()
    points: tuple[Points, ...] = ()
    missing: str = ""
    commit: str = ""  # where it is not that of the record


@dataclass(frozen=True)
class Record:
    """The results of an experiment, and where they come from."""

    name: str
    scale: str
    seed: int
    version: str
    commit: str
    created: str
    machine: dict[str, str]
    parts: dict[str, PartResult] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long all parts took."""
        return sum(part.seconds for part in self.parts.values())

    @property
    def commits(self) -> list[str]:
        """The commits that the parts were run at."""
        found = dict.fromkeys(each.commit or self.commit for each in self.parts.values())
        return [each for each in found if each]

    def merge(self, newer: Record) -> Record:
        """Return the newer record, with the parts that only this one has; each keeps its commit."""
        kept = {name: part for name, part in self.parts.items() if not part.missing}
        found = {name: part for name, part in newer.parts.items() if not part.missing}
        parts = {
            **newer.parts,
            **{
                name: replace(part, commit=part.commit or self.commit)
                for name, part in kept.items()
            },
            **found,
        }
        return replace(newer, parts=parts)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as values that the `json` module can write."""
        return {"format": FORMAT, **asdict(self)}


def run_experiment(
    experiment: Experiment,
    *,
    scale: Scale,
    seed: int = 0,
    folder: Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Record:
    """Run an experiment, or the parts that an earlier run did not finish.

    Parameters
    ----------
    experiment : Experiment
    scale : Scale
    seed : int, default=0
    folder : path, optional
        Where NAME.json is kept; each finished part is written at once.
    fresh : bool, default=False
        Run all parts, also those that the file has.
    progress : Progress, optional

    Returns
    -------
    Record
        With the parts whose data are missing, and why.

    Examples
    --------
    >>> from reproduce import EXPERIMENTS, Scale, run_experiment
    >>> record = run_experiment(EXPERIMENTS["fastfood-figure-1"], scale=Scale.TEST)
    >>> list(record.parts)
    ['uniform']
    """
    progress = progress or SilentProgress()
    record = new_record(experiment.name, scale, seed)
    path = None if folder is None else folder / f"{experiment.name}.json"
    if path is not None and path.exists():
        earlier = load_record(path)
        if _identity(earlier) != _identity(record):
            kept_as = path.with_suffix(".json.old")
            path.replace(kept_as)
            progress.note(f"earlier results with other settings are kept as {kept_as.name}")
        elif not fresh:
            # What was missing may have been found since.
            found = {name: part for name, part in earlier.parts.items() if not part.missing}
            record.parts.update(found)
    todo = {part: data for part, data in experiment.parts.items() if part not in record.parts}
    if todo:
        progress.start(experiment.name, len(todo), "parts")
    for part, data in todo.items():
        record.parts[part] = _run_part(experiment, part, data, scale, seed)
        progress.advance(1)
        if path is not None:
            atomic_write(path, [json.dumps(record.to_json(), indent=1).encode()])
    return record


def _run_part(
    experiment: Experiment, part: str, data: Sequence[str], scale: Scale, seed: int
) -> PartResult:
    begin = time.perf_counter()
    try:
        for name in data:
            load_data(name)
    except MissingDataError as error:
        return PartResult(time.perf_counter() - begin, missing=str(error))
    measured = list(experiment.measure(part, scale, seed))
    return PartResult(
        time.perf_counter() - begin,
        tuple(each for each in measured if isinstance(each, Cell)),
        tuple(each for each in measured if isinstance(each, Points)),
    )


def load_record(path: Path) -> Record:
    """Read what `run_experiment` wrote, checked.

    Raises
    ------
    ArgumentError
        The file is something else, or damaged.
    """
    try:
        values = json.loads(path.read_text())
        if values.pop("format") != FORMAT or not isinstance(values["seed"], int):
            raise ValueError
        Scale(values["scale"])
        parts = {
            str(name): PartResult(
                float(part["seconds"]),
                tuple(_read_cell(each) for each in part["cells"]),
                tuple(_read_points(each) for each in part["points"]),
                str(part["missing"]),
                str(part.get("commit", "")),
            )
            for name, part in values.pop("parts").items()
        }
        machine = {str(name): str(text) for name, text in values.pop("machine").items()}
        return Record(**values, machine=machine, parts=parts)
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ArgumentError(
            f"{path} holds no results of an experiment",
            "delete the file",
            "choose another folder",
            parameter="out",
        ) from error


def _read_cell(values: dict[str, Any]) -> Cell:
    row = values["row"]
    half = values["half_width"]
    runs = tuple(float(each) for each in values["runs"])
    if not runs:
        raise ValueError
    return Cell(
        row if isinstance(row, str) else float(row),
        str(values["column"]),
        runs,
        None if half is None else float(half),
        str(values["deviation"]),
    )


def _read_points(values: dict[str, Any]) -> Points:
    x, y = (tuple(float(each) for each in values[axis]) for axis in "xy")
    if len(x) != len(y):
        raise ValueError
    return Points(str(values["panel"]), x, y)


def new_record(name: str, scale: Scale, seed: int) -> Record:
    """Return an empty record of a run on this machine, now."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(name, scale.value, seed, _version(), _commit(), created, describe_machine())


def _identity(record: Record) -> tuple[Any, ...]:
    """What has to agree for results to be completed by further parts."""
    return (
        *(record.name, record.scale, record.seed, record.version, record.commit),
        *(record.machine.get("processor"), record.machine.get("threads")),
    )


def describe_machine() -> dict[str, str]:
    """Return the processor, threads and versions that times depend on."""
    return {
        "processor": _processor(),
        "instruction set": get_isa(),
        "threads": str(get_num_threads()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{name: version(name.lower()) for name in ("NumPy", "SciPy", "scikit-learn")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version() -> str:
    try:
        return version("kernelmill")
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """Return the commit of the checkout that this package is in; "" for installed packages."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return ""
    return done.stdout.strip()


def select_experiments(
    names: Sequence[str], experiments: dict[str, Experiment]
) -> list[Experiment]:
    """Return the experiments of these names, papers or "all", in the order of their declaration.

    "NAME:PART" is a part of an experiment, such as one data set; the beginning of its name is
    enough.

    Examples
    --------
    >>> from reproduce import EXPERIMENTS, select_experiments
    >>> [each.place for each in select_experiments(["fastfood-table-3"], EXPERIMENTS)]
    ['Table 3']
    """
    wanted: dict[str, list[str]] = {}
    for name in names:
        key, _, part = name.partition(":")
        found = [each for each in experiments.values() if key in ("all", each.name, each.paper.key)]
        if not found:
            papers = dict.fromkeys(each.paper.key for each in experiments.values())
            raise ArgumentError(
                f"must be an experiment, a paper ({', '.join(papers)}) or all, got {name!r}",
                f"choose one of {', '.join(experiments)}",
                parameter="names",
            )
        for each in found:
            parts = [known for known in each.parts if known.lower().startswith(part.lower())]
            if not parts:
                raise ArgumentError(
                    f"must name a part of {each.name} after the colon, got {part!r}",
                    f"choose one of {', '.join(each.parts)}",
                    parameter="names",
                )
            wanted.setdefault(each.name, []).extend(parts)
    return [
        replace(each, parts={part: each.parts[part] for part in each.parts if part in chosen})
        for each in experiments.values()
        if (chosen := wanted.get(each.name))
    ]
