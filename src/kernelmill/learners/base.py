"""What the learners have in common: a fitted map, linear weights on it, prediction in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from kernelmill.learners.feature_map import unfitted_feature_map
from kernelmill.learners.mapped_rows import (
    features_of,
    n_rows_of,
    row_blocks,
    rows_per_block,
    take_rows,
)
from kernelmill.learners.run import Run
from kernelmill.maps.base import FeatureMap, check_data
from kernelmill.maps.registry import MAPS
from kernelmill.random import Stream
from kernelmill.runtime.progress import StderrProgress
from kernelmill.runtime.threads import resolve_threads

__all__ = ["KernelMachine"]


class KernelMachine(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """A linear model on features that are made on the fly.

    A subclass sets `coef_` of shape (n_outputs, D) and `intercept_` of shape (n_outputs,).
    """

    feature_map: Any
    random_state: Any
    n_threads: int | None
    checkpoint: Any
    checkpoint_seconds: float
    verbose: int

    feature_map_: Any
    stream_: Stream
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    _is_loaded: bool

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Whatever is raised inside, an interrupt included, the attributes are those of before.

        Arrays that attributes hold are not copied: replace them, do not write into them.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    @contextmanager
    def _running(self, run: Run | None) -> Iterator[Run]:
        """Yield the run, or one made from the parameters, which is finished at the end."""
        with self._unchanged_on_failure():
            current = self._make_run() if run is None else run
            yield current
            if run is None:
                current.finish()

    def _make_run(self) -> Run:
        return Run(
            self.checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
            progress=StderrProgress() if self.verbose else None,
        )

    def _verbose_run(self) -> Run:
        """A run without a checkpoint."""
        return Run(progress=StderrProgress() if self.verbose else None)

    def _start(self, X: Any, stream: Stream | None = None, y: Any = None) -> Any:
        """Check X, draw the stream, fit the map on X; returns the checked rows.

        A given `stream` takes the place of `random_state`: training is to be repeatable.
        """
        resolve_threads(self.n_threads)
        self.__dict__.pop("_is_loaded", None)
        if stream is None and self.random_state is not None:
            stream = Stream.from_random_state(self.random_state)
        feature_map = unfitted_feature_map(self.feature_map, stream, self.n_threads)
        self.stream_ = Stream.from_random_state(None) if stream is None else stream
        X = self._check_rows(X, reset=True, feature_map=feature_map)
        if isinstance(feature_map, FeatureMap):
            self.feature_map_ = feature_map.fit(X)
        else:
            self.feature_map_ = feature_map.fit(X, y)  # some learn from targets
        return X

    def _open_run(self, run: Run, data: str) -> Stream | None:
        """Open the checkpoint of a run on data of this digest; return the stream to use, if any."""
        parameters = self.get_params(deep=False)
        for name in ("checkpoint", "checkpoint_seconds", "n_threads", "verbose"):
            del parameters[name]
        if isinstance(parameters["random_state"], (np.random.RandomState, np.random.Generator)):
            # Its text is an address, and what was drawn from it is in the file.
            parameters["random_state"] = type(parameters["random_state"]).__name__
        identity = {name: repr(value) for name, value in parameters.items()}
        run.open({**identity, "the data": data})
        return run.draw_stream(self.random_state)

    def _check_rows(self, X: Any, *, reset: bool, feature_map: Any = None) -> Any:
        """X as kernelmill's maps take it; other transformers get it as it was given."""
        feature_map = self.feature_map_ if feature_map is None else feature_map
        if isinstance(feature_map, FeatureMap):
            return check_data(self, X, reset=reset, keep_integers=True)
        _check_feature_names(self, X, reset=reset)
        if hasattr(X, "shape"):
            _check_n_features(self, X, reset=reset)
        if n_rows_of(X) == 0:
            raise ValueError("X must have at least one row, got none.")
        return X.tocsr() if scipy.sparse.issparse(X) else X

    def _features(self, X: Any) -> NDArray[Any]:
        """The features of a few checked rows."""
        return features_of(self.feature_map_, X)

    def _feature_blocks(
        self, X: Any, rows: int | None = None
    ) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Slices of the checked rows with their features, in order.

        Without `rows`, blocks are as large as the cache allows. Nothing is as large as n x D.
        """
        n_rows = n_rows_of(X)
        if rows is None:
            rows = rows_per_block(self.coef_.shape[-1], np.dtype(np.float64).itemsize)
        for block in row_blocks(n_rows, rows):
            yield block, self._features(take_rows(X, block))

    def _scores(self, X: Any) -> NDArray[Any]:
        """z(x)ᵀ W + b for each row of X, of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        coef = np.atleast_2d(self.coef_)
        scores: NDArray[Any] | None = None
        weights = coef.T
        for block, Z in self._feature_blocks(X):
            if scores is None:
                weights = np.asfortranarray(coef.T, dtype=Z.dtype)
                scores = np.empty((n_rows_of(X), coef.shape[0]), Z.dtype)
            np.matmul(Z, weights, out=scores[block])
        assert scores is not None  # scikit-learn's checks let no empty X pass
        scores += np.atleast_1d(self.intercept_).astype(scores.dtype)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_named = isinstance(self.feature_map, str) and self.feature_map in MAPS
        if is_named or isinstance(self.feature_map, FeatureMap):
            tags.input_tags.sparse = True
        elif not isinstance(self.feature_map, type) and hasattr(
            self.feature_map, "__sklearn_tags__"
        ):
            tags.input_tags.sparse = self.feature_map.__sklearn_tags__().input_tags.sparse
        return tags
