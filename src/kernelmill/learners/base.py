"""The base class of the estimators: a fitted map, linear weights on its features, blocks."""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from kernelmill.errors import ArgumentError
from kernelmill.files import write_model_file
from kernelmill.learners.blocks import BlockSource, count_rows
from kernelmill.learners.digests import BlockDigests, digest_block
from kernelmill.learners.features import Features, compute_features
from kernelmill.learners.prediction import LinearModel, check_row
from kernelmill.learners.run import Run
from kernelmill.learners.saving import learner_record
from kernelmill.learners.tuning.length_scales import LearnedScales, TunedColumns, tune_columns
from kernelmill.maps.base import FeatureMap, check_data
from kernelmill.maps.nystroem import Nystroem
from kernelmill.maps.registry import MAPS, make_feature_map
from kernelmill.random import Stream
from kernelmill.runtime.progress import Progress, StderrProgress
from kernelmill.runtime.threads import limit_blas_threads, resolve_threads

__all__ = ["KernelMachine"]


class KernelMachine(BaseEstimator):  # type: ignore[misc] # scikit-learn is untyped
    """A linear model on features that are computed on the fly.

    A subclass sets `coef_` of shape (n_outputs, D) and `intercept_` of shape (n_outputs,).
    """

    feature_map: Any
    random_state: Any
    n_threads: int | None
    column_groups: Any
    checkpoint: Any
    checkpoint_seconds: float
    verbose: int

    feature_map_: Any
    learned_scales_: LearnedScales
    stream_: Stream
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    _is_loaded: bool
    _score_dtype: Any = None  # of predictions: that of the features
    _dual: tuple[NDArray[Any], NDArray[np.float64]]

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        """Restore all attributes if anything is raised, an interrupt included.

        Arrays that attributes hold are not copied: replace them, do not write into them.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    @contextmanager
    def _start_run(self, run: Run | None) -> Iterator[Run]:
        """Yield the run, or one made from the parameters, which is finished at the end."""
        with self._unchanged_on_failure():
            if run is not None:
                yield run
                return
            current = self._make_run(self.checkpoint)
            current.keeps_last = False
            with current.lock():
                yield current
                current.finish()

    def _limit_blas(self, X: Any = None) -> AbstractContextManager[Any]:
        """Return a context with the BLAS threads that a fit uses, for rows that are given."""
        n_rows = X.shape[0] if hasattr(X, "shape") and len(X.shape) else None
        return limit_blas_threads(self.n_threads, n_rows)

    def _make_run(self, checkpoint: Any = None) -> Run:
        return Run(
            checkpoint,
            checkpoint_seconds=self.checkpoint_seconds,
            progress=StderrProgress() if self.verbose else None,
        )

    def _open_checkpoint(self, run: Run, source: BlockSource) -> Stream | None:
        """Open the checkpoint of a run on these rows; return the stream to use, if there is one."""
        if run.path is None:
            return None
        parameters = self.get_params(deep=False)
        for name in ("checkpoint", "checkpoint_seconds", "n_threads", "verbose"):
            del parameters[name]
        if isinstance(parameters["random_state"], (np.random.RandomState, np.random.Generator)):
            # Its text is an address, and what was drawn from it is in the file.
            parameters["random_state"] = type(parameters["random_state"]).__name__
        digest = digest_block(*source.first)
        identity = {name: repr(value) for name, value in parameters.items()}
        identity["feature_map"] += _digest_arrays(self.feature_map)
        identity["the data"] = digest
        identity["the form of the data"] = source.form
        run.open(identity)
        if source.form == "blocks":
            source.digests = BlockDigests(run, digest)
        return run.draw_stream(self.random_state)

    def _check_resumed(self, source: BlockSource, run: Run, *results: NDArray[Any]) -> None:
        """Raise if a fit that has resumed is not one of these rows, or if it is not finite."""
        source.compare_rest()
        if run.has_resumed and not all(np.isfinite(each).all() for each in results):
            raise run.explain(ArgumentError("its weights are not finite"))

    def _fit_map(self, X: Any, y: Any, stream: Stream | None = None) -> Any:
        """Check X, draw the stream, fit the map on X; return the checked rows.

        A given `stream` replaces `random_state`, so that the run can be repeated.
        """
        resolve_threads(self.n_threads)
        self.__dict__.pop("_is_loaded", None)
        if stream is None and self.random_state is not None:
            stream = Stream.from_random_state(self.random_state)
        feature_map = make_feature_map(self.feature_map, stream, self.n_threads)
        self.stream_ = Stream.from_random_state(None) if stream is None else stream
        X = self._check_rows(X, reset=True, feature_map=feature_map)
        if isinstance(feature_map, FeatureMap):
            self.feature_map_ = feature_map.fit(X)
        else:
            self.feature_map_ = feature_map.fit(X, y)  # some learn from targets
        return X

    def _tune_columns(
        self,
        X: Any,
        Y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None,
        progress: Progress,
    ) -> TunedColumns:
        """Replace the fitted map by one with length scales learned from checked rows."""
        tuned = tune_columns(
            make_feature_map(self.feature_map, self.stream_, self.n_threads),
            X,
            Y,
            groups=self.column_groups,
            stream=self.stream_.substream("length scales"),
            sample_weight=sample_weight,
        )
        self.feature_map_ = tuned.feature_map.fit(X)
        self.learned_scales_ = tuned.learned
        kept = "for each column" if tuned.errors[1] < tuned.errors[0] else "for all columns"
        progress.end_pass(
            f"one length scale {kept}: squared error {tuned.errors.min():.4g} on rows not used "
            f"for the search, otherwise {tuned.errors.max():.4g}"
        )
        return tuned

    def _check_rows(self, X: Any, *, reset: bool, feature_map: Any = None) -> Any:
        """Return X as kernelmill's maps take it; other transformers get it as it was given."""
        feature_map = self.feature_map_ if feature_map is None else feature_map
        if isinstance(feature_map, FeatureMap):
            return check_data(self, X, reset=reset, keep_integers=True)
        _check_feature_names(self, X, reset=reset)
        if hasattr(X, "shape"):
            _check_n_features(self, X, reset=reset)
        if count_rows(X) == 0:
            raise ArgumentError("must have at least one row, got none", parameter="X")
        return X.tocsr() if scipy.sparse.issparse(X) else X

    def _features(self) -> Features:
        """Return the function from checked rows to features."""
        return partial(compute_features, self.feature_map_)

    def _set_weights(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        self.coef_, self.intercept_ = coef, intercept
        self._linear_model()  # dual weights are computed here, since predictions keep nothing

    def _linear_model(self) -> LinearModel:
        """Return what predictions are computed from."""
        dual = None
        if isinstance(self.feature_map_, Nystroem):
            # Kept with the weights that they belong to, which more rows may replace.
            if "_dual" not in self.__dict__ or self._dual[0] is not self.coef_:
                weights = self.feature_map_._dual_weights(np.atleast_2d(self.coef_))
                self._dual = (self.coef_, weights)
            dual = self._dual[1]
        return LinearModel(self.feature_map_, self.coef_, self.intercept_, dual)

    def _scores(self, X: Any, dtype: Any = None) -> NDArray[Any]:
        """Return z(x)ᵀ W + b for each row of X, of shape (n_samples, n_outputs).

        Without a `dtype` it is that of the features.
        """
        check_is_fitted(self)
        return self._linear_model().scores(self._check_rows(X, reset=False), dtype)

    def predict_row(self, row: Any) -> Any:
        """Return the prediction for one row, without the overhead of a matrix.

        Parameters
        ----------
        row : array_like of shape (n_features,)
            Finite numbers. Column names are not checked.

        Returns
        -------
        label, float or ndarray of shape (n_outputs,)
            The prediction that `predict` returns for this row.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill import KernelClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = np.where(X[:, 0] > 0, "a", "b")
        >>> classifier = KernelClassifier(epochs=20, random_state=0).fit(X, y)
        >>> str(classifier.predict_row([2.0, 0.0]))
        'a'
        """
        if not hasattr(self, "coef_"):
            check_is_fitted(self)
        X = check_row(row, self.n_features_in_)
        return self._predictions(self._linear_model().scores(X, self._score_dtype))[0]

    @abstractmethod
    def _predictions(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the predictions for rows with these scores."""

    def save(self, path: str | os.PathLike[str], *, weights: str = "float32") -> None:
        """Write the fitted model to a file, for `load_learner`.

        The safetensors file contains the parameters, the seed and the fitted attributes, but no
        code and no coefficients of the map. It is written atomically.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the weights in the file. With "float64", the predictions of the loaded
            model are bit-identical.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from kernelmill import KernelClassifier
        >>> from kernelmill.learners import load_learner
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = np.where((X**2).sum(axis=1) < 1, "inside", "outside")
        >>> classifier = KernelClassifier(epochs=5, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "circle.kmill")
        ...     classifier.save(path)
        ...     again = load_learner(path)
        >>> bool((again.predict(X) == classifier.predict(X)).all())
        True
        """
        record, tensors = learner_record(self, weights)
        write_model_file(path, kind="learner", record=record, tensors=tensors)

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


def _digest_arrays(feature_map: Any) -> str:
    """Return a digest of the parameters that are many numbers: as text they are cut short."""
    if not hasattr(feature_map, "get_params"):
        return ""
    arrays = {}
    for name, value in sorted(feature_map.get_params(deep=True).items()):
        is_list = isinstance(value, (list, tuple)) and all(isinstance(v, Real) for v in value)
        if is_list or (isinstance(value, np.ndarray) and value.dtype.kind in "fiu"):
            arrays[name] = np.asarray(value)
    state = hashlib.sha256()
    for name, array in arrays.items():
        state.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
    return f" {state.hexdigest()}" if arrays else ""
