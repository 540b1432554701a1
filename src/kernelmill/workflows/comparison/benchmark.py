"""Models trained and tested on the same rows, with error, times and memory of each."""

from __future__ import annotations

import ctypes
import gc
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kernelmill.encoding.encoder import RowScaling
from kernelmill.learners import KernelClassifier, KernelRegressor, default_epochs
from kernelmill.runtime.progress import Progress
from kernelmill.runtime.threads import one_blas_thread
from kernelmill.workflows.records import DEFAULT_FIT, ComparedModel
from kernelmill.workflows.training.encoded_rows import EncodedRows
from kernelmill.workflows.tuning.map_choice import MapChoice
from kernelmill.workflows.tuning.settings import TunedSettings, tune_settings

__all__ = ["FitBenchmark", "PeakMemory"]

_LENGTHS = ("epochs", "max_iter", "n_estimators")  # what makes a fit long, not large


@dataclass(frozen=True)
class FitBenchmark:
    """Training rows and test rows, the same for all models.

    `n_fit` is the number of rows of the table, and `in_memory` whether `fit_table` would keep them
    in memory: its choices depend on both. For `in_order` and `independent`, see `tune_settings`.
    """

    training: EncodedRows
    test: EncodedRows
    n_classes: int | None
    seed: int
    n_threads: int | None
    groups: NDArray[Any]
    n_fit: int
    in_memory: bool
    in_order: bool
    independent: bool

    def tune(
        self,
        choice: MapChoice,
        n_components: int | None,
        *,
        progress: Progress,
        n_rows: int | None = None,
        as_fit: bool = False,
    ) -> TunedSettings:
        """Tune a map on the first `n_rows` training rows, by default all of them.

        If `as_fit`, map, penalty and number of features are chosen as `fit_table` does. Otherwise
        the map is one of random features, and other machines of its kernel share the settings.
        """
        with one_blas_thread():
            return tune_settings(
                choice,
                self.training.X[:n_rows],
                self.training.target[:n_rows],
                n_classes=self.n_classes,
                n_components=n_components,
                n_rows=self.n_fit if as_fit else self.n_rows,
                in_memory=as_fit and self.in_memory,
                seed=self.seed,
                n_threads=self.n_threads,
                progress=progress,
                groups=self.groups,
                at_size=as_fit,
                steps=as_fit,
                solver="auto" if as_fit else "sgd",
                sample_weight=self.training.select(slice(n_rows)).weight,
                sample_keys=self.training.select(slice(n_rows)).keys,
                in_order=self.in_order,
                independent=self.independent,
            )

    def with_scaled_rows(self) -> FitBenchmark:
        """Return the same rows, scaled to similar lengths."""
        scaling = RowScaling.of_rows(self.training.X)
        return replace(
            self,
            training=self.training._replace(X=scaling.apply(self.training.X)),
            test=self.test._replace(X=scaling.apply(self.test.X)),
        )

    def make_map(self, choice: MapChoice, tuned: TunedSettings, n_components: int) -> Any:
        """Return an unfitted map with the tuned length scale."""
        return choice.make(tuned.length_scale, n_components, self.seed, self.n_threads)

    @property
    def task(self) -> str:
        """The task of the models."""
        return "regression" if self.n_classes is None else "classification"

    @property
    def n_rows(self) -> int:
        """The number of training rows."""
        return len(self.training.target)

    def fit_features(
        self, choice: MapChoice, tuned: TunedSettings, n_components: int, detail: str = ""
    ) -> ComparedModel:
        """Return a kernel machine on the features of a map."""
        learner = self.make_learner(self.make_map(choice, tuned, n_components), tuned)
        return self.measure(
            choice.name, "features", learner, n_components=n_components, detail=detail
        )

    def fit_default(self, tuned: TunedSettings, seconds: float) -> ComparedModel:
        """Fit what `fit_table` would choose for the whole table, to the training rows.

        `seconds` is the time of the tuning. The penalty of a classifier is per row.
        """
        if self.n_classes is not None:
            tuned = replace(tuned, alpha=tuned.alpha * self.n_fit / self.n_rows)
        choice, size = tuned.choice, min(tuned.n_components, self.n_rows)
        size = size if choice.name == "nystroem" else tuned.n_components
        learner = self.make_learner(self.make_map(choice, tuned, size), tuned)
        if self.n_classes is not None:
            epochs = {"epochs": default_epochs(self.n_rows)}  # unless tuning has chosen them
            learner.set_params(**{**epochs, **tuned.solver_parameters()})
        elif len(tuned.alphas) > 1:
            learner.set_params(alpha=np.array(tuned.alphas))
        family = "nystroem" if choice.name == "nystroem" else "features"
        detail = f"{choice.name}, {choice.kernel_name}; time includes tuning"
        found = self.measure(DEFAULT_FIT, family, learner, n_components=size, detail=detail)
        return replace(found, fit_seconds=found.fit_seconds + seconds)

    def make_learner(self, feature_map: Any, tuned: TunedSettings) -> Any:
        """Return an unfitted kernelmill learner on the features of a transformer."""
        return (KernelRegressor if self.n_classes is None else KernelClassifier)(
            feature_map, alpha=tuned.alpha, random_state=self.seed, n_threads=self.n_threads
        )

    def measure(
        self,
        name: str,
        family: str,
        model: Any,
        *,
        n_components: int | None = None,
        n_train: int | None = None,
        detail: str = "",
    ) -> ComparedModel:
        """Train and test a model, and measure its error, times and memory."""
        rows = self.training.select(slice(n_train))
        self._warm_up(model)
        memory = PeakMemory()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the time is measured as it is
            model.fit(rows.X, rows.target, sample_weight=rows.weight)
        fitted = time.perf_counter()
        predicted = model.predict(self.test.X)
        end = time.perf_counter()
        if self.n_classes is None:
            squares = (np.ravel(predicted) - self.test.target) ** 2
            error = float(np.sqrt(np.average(squares, weights=self.test.weight)))
        else:
            error = float(np.average(predicted != self.test.target, weights=self.test.weight))
        return ComparedModel(
            name=name,
            family=family,
            n_components=n_components,
            n_train=len(rows.target),
            error=error,
            fit_seconds=fitted - start,
            predict_seconds=end - fitted,
            peak_memory=memory.bytes_more(),
            detail=detail,
        )

    def _warm_up(self, model: Any) -> None:
        """Fit to a few rows: libraries allocate their buffers before the measurement."""
        X, target = self.training.X, self.training.target
        known = model.get_params()
        copy = clone(model).set_params(**{name: 1 for name in _LENGTHS if name in known})
        _, first = np.unique(target, return_index=True)
        rows = np.unique(np.r_[first[:50], : min(64, len(target))])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.fit(X[rows], target[rows])
            copy.predict(X[:2])


class PeakMemory:
    """The peak of the resident memory beyond its amount at the start, on Linux.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows.comparison.benchmark import PeakMemory
    >>> memory = PeakMemory()
    >>> block = np.ones(1 << 24)
    >>> peak = memory.bytes_more()
    >>> peak is None or peak > 1 << 24
    True
    """

    def __init__(self) -> None:
        gc.collect()
        # Freed memory that the C library keeps would hide what is allocated from it again.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        # Resets the peak (Linux, proc(5)); without permission, the result is an upper bound.
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._start = _read_status("VmRSS")

    def bytes_more(self) -> int | None:
        """Return the bytes beyond the start; None if the system does not report them."""
        peak = _read_status("VmHWM")
        return None if peak is None or self._start is None else max(0, peak - self._start)


def _read_status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
