"""The results of tuning steps, stored in the checkpoint of a training run.

Tuning is deterministic: a run that resumes repeats its decisions from the results of its steps, and
computes only the steps that are not in the checkpoint yet.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used

from kernelmill.formatting import plain
from kernelmill.learners import Run
from kernelmill.learners.run import CheckpointError, check_identity
from kernelmill.learners.tuning.length_scales import LearnedScales

__all__ = ["TuningMemory", "digest", "read_number", "read_size"]

_Result = TypeVar("_Result")

_NAME = "tuning"
_SECONDS = 2.0  # between two writes: they are small, and steps are short
_SMALLEST = 1e-30  # length scale, or penalty


class TuningMemory:
    """The results of the steps of a tuning, each computed once.

    Parameters
    ----------
    run : Run, optional
        Whose checkpoint has the results; without one they are in memory only.

    Examples
    --------
    >>> from kernelmill.workflows.tuning.memory import TuningMemory
    >>> memory = TuningMemory()
    >>> [memory.recall(("step", 1), lambda: print("computed") or 2.5, float) for _ in range(2)]
    computed
    [2.5, 2.5]
    """

    def __init__(self, run: Run | None = None) -> None:
        self._run = Run() if run is None else run
        self._results: dict[str, Any] = {}
        self._identity: dict[str, str] = {}
        self._lock = threading.Lock()
        self._is_saved = True

    def open(self, identity: Mapping[str, Any]) -> None:
        """Read the results of an earlier run, which must have had the same data and settings."""
        self._identity = {name: digest(value) for name, value in identity.items()}
        data = self._run.read_kept(_NAME)
        if data is None:
            return
        assert self._run.path is not None
        try:
            found = json.loads(data)
            known, results = dict(found["identity"]), dict(found["results"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CheckpointError(self._run.path, "it is damaged") from error
        check_identity(self._run.path, known, self._identity)
        self._results = results
        self._keep()
        if results:
            steps = plain.count(len(results), "step")
            self._run.progress.note(f"Resumed tuning: {steps} in the checkpoint.")

    def recall(
        self, step: Any, compute: Callable[[], Any], read: Callable[[Any], _Result]
    ) -> _Result:
        """Return the result of a step, which JSON can write: from memory, or computed.

        Parameters
        ----------
        step : any types that `digest` knows
            The arguments that determine the result.
        compute, read : callable
            Return the value for JSON, and the result of the step from it. `read` raises
            ValueError, TypeError or KeyError for other values, which a crafted file may have.
        """
        key = digest(step)
        if key not in self._results:
            result = compute()
            with self._lock:
                self._results[key] = result
                self._is_saved = False
                if self._run.is_due(_SECONDS):
                    self._save()
        try:
            return read(self._results[key])
        except (ValueError, TypeError, KeyError) as error:
            if self._run.path is None:
                raise
            raise CheckpointError(self._run.path, "a result of tuning in it is damaged") from error

    def recall_scales(
        self, step: Any, compute: Callable[[], LearnedScales], n_columns: int
    ) -> LearnedScales:
        """Return the result of a search for length scales of so many columns."""

        def search() -> dict[str, Any]:
            found = asdict(compute())
            return found | {"length_scale": found["length_scale"].tolist()}

        def read(found: Any) -> LearnedScales:
            scales = np.array([read_size(each) for each in found["length_scale"]])
            if len(scales) != n_columns:
                raise ValueError(f"{len(scales)} length scales")
            isotropic, alpha = read_size(found["isotropic"]), read_size(found["alpha"])
            return LearnedScales(scales, isotropic, alpha, read_number(found["log_evidence"]))

        return self.recall(step, search, read)

    @contextmanager
    def save_at_end(self) -> Iterator[None]:
        """Save the results at the end of the block, also after an error or Ctrl-C."""
        try:
            yield
        finally:
            with self._lock:
                if not self._is_saved and self._run.path is not None:
                    self._save()

    def _save(self) -> None:
        self._keep()
        self._run.save()
        self._is_saved = True

    def _keep(self) -> None:
        record = {"identity": self._identity, "results": self._results}
        self._run.keep(_NAME, json.dumps(record).encode())


def read_number(value: Any) -> float:
    """Return a number of a JSON record."""
    if not isinstance(value, float):
        raise TypeError(f"{value!r} is not a number")
    return value


def read_size(value: Any) -> float:
    """Return a length scale or a penalty of a JSON record, which is positive."""
    number = read_number(value)
    if not (_SMALLEST < number < 1 / _SMALLEST or number == math.inf):
        raise ValueError(f"{number} is not possible")
    return number


def digest(value: Any) -> str:
    """Return a digest, a short string, of plain values, arrays, dataclasses and other objects.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows.tuning.memory import digest
    >>> digest(np.arange(3)) == digest(np.arange(3)), digest((1, 2.0)) == digest((1, 2))
    (True, False)
    """
    found = hashlib.sha256()
    _add(found, value)
    return found.hexdigest()[:32]


def _add(found: Any, value: Any) -> None:
    found.update(type(value).__name__.encode())
    if scipy.sparse.issparse(value):
        value = (value.shape, value.indptr, value.indices, value.data)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()  # as text, it would be cut short
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype.str}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).view(np.uint8).data)
    elif hasattr(value, "get_params"):  # maps are dataclasses, whose fitted fields may be unset
        _add(found, value.get_params(deep=False))
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            _add(found, getattr(value, each.name))
    elif isinstance(value, Mapping):
        _add(found, list(value.items()))
    elif isinstance(value, (list, tuple)):
        found.update(f"{len(value)}".encode())
        for each in value:
            _add(found, each)
    elif isinstance(value, float):
        found.update(value.hex().encode() if math.isfinite(value) else repr(value).encode())
    else:
        text = re.sub(" at 0x[0-9a-f]+", "", repr(value))  # addresses differ from run to run
        found.update(f"{len(text)}{text}".encode())
