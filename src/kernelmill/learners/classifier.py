"""Kernel classifiers: support vector machines and logistic regression on random features."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kernelmill.arguments import check_choice, check_integer, check_positive
from kernelmill.learners.classifier_training import TrainedClassifier
from kernelmill.learners.labelled_blocks import BlockSource
from kernelmill.learners.labels import (
    check_classes,
    check_labels,
    class_factors,
    codes_of,
    row_weights,
)
from kernelmill.learners.losses import LOSSES
from kernelmill.learners.problem import LabelledRows, RowSource, codes_of_scores
from kernelmill.learners.run import Run
from kernelmill.learners.stored import learner_record
from kernelmill.storage import write_model_file

__all__ = ["KernelClassifier"]

_SOLVERS = ("auto", "sgd", "lbfgs", "exact", "plain_sgd")


def _gives_probabilities(classifier: KernelClassifier) -> bool:
    if classifier.loss == "log_loss":
        return True
    raise AttributeError(
        f"predict_proba needs loss='log_loss', got loss={classifier.loss!r}; or wrap the "
        "classifier in sklearn.calibration.CalibratedClassifierCV."
    )


def _takes_parts(classifier: KernelClassifier) -> bool:
    if classifier.solver != "lbfgs":
        return True
    raise AttributeError(
        "partial_fit is not to be had with solver='lbfgs', which needs all rows; use solver='sgd'."
    )


class KernelClassifier(ClassifierMixin, TrainedClassifier):  # type: ignore[misc] # untyped
    r"""A kernel classifier at linear cost: a linear one on random features made on the fly.

    Minimizes the mean loss of the rows plus :math:`\frac{\alpha}{2} |W|^2` over weights W and
    intercepts b of the scores :math:`z(x)^T W + b`. The features of all rows never exist at once:
    only those of a batch and, at the beginning, of a sample of at most 2000 rows.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill such as ``Fastfood(n_components=8192)``, any other transformer or
        pipeline of scikit-learn, or a name: "fastfood", "random_fourier", "taylor_sketch",
        "gaussian_templates", "tensor_sketch", "dot_product_fastfood", "random_maclaurin" or
        "count_sketch" with 2048 components.
    loss : {"log_loss", "hinge", "squared_hinge", "squared"}, default="log_loss"
        "log_loss" is logistic regression, of several classes by softmax; it alone has
        probabilities. The others tell each class from the rest: "hinge" as SVC does,
        "squared_hinge" as LinearSVC, "squared" by least squares.
    alpha : float, default=None
        Weight of the penalty. SVC and LogisticRegression have ``C = 1 / (alpha * n_samples)``, and
        the default is the alpha that stands for C = 10; where the number of rows is not known, in
        `partial_fit` and for generators, it is 1e-6.
    solver : {"auto", "sgd", "lbfgs", "exact", "plain_sgd"}, default="auto"
        "sgd" is mini-batch descent, preconditioned by the leading eigenvectors of the features and
        averaged; its steps come from the data. "lbfgs" goes to the minimum, in many more passes.
        "exact", for the squared loss, solves the normal equations. "plain_sgd" has the fixed steps,
        batches and epochs of McKernel (Curtó et al.), for comparison. "auto" is "exact" for the
        squared loss and up to 8192 features, otherwise "sgd".
    epochs : int, default=None
        The number of passes over the data; for "lbfgs" the most iterations. By default so many that
        100,000 rows are seen, but at least 4 and at most 500; for "lbfgs" 1000.
    batch_size : int, default=None
        By default 256, less for few rows.
    validation_fraction : float, default=None
        The share of rows to hold out: training stops when their accuracy has not improved for
        `patience` epochs, and the best weights are kept. None means all rows are trained on.
    patience : int, default=3
    class_weight : dict or "balanced", default=None
        Factors of the weights of rows by class, as in scikit-learn.
    tol : float, default=1e-6
        "lbfgs" stops where the gradient is smaller.
    checkpoint : str or path, default=None
        A file in which "sgd" keeps its state. If the process dies, the same call of `fit` goes on
        from there and gives the same result; at the end the file is removed. `partial_fit`, and
        the exact solver where "auto" chooses it, do without.
    checkpoint_seconds : float, default=60.0
        How often it is written.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed of the order of the rows, and of the map if that has none of its own.
    n_threads : int, default=None
        Of the map, if that does not say it itself.
    verbose : int, default=0
        1 tells about the progress on stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features_out) or (n_classes, n_features_out)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    feature_map_ : transformer
        The fitted map.
    loss_curve_ : list of float
        The mean loss in each epoch, each row's before it was learnt; for "lbfgs" the objective
        after each iteration.
    validation_curve_ : list of float
        The accuracy on held-out rows after each epoch, if there are any.
    n_iter_ : int
        How many epochs or iterations there were.
    alpha_ : float
        The penalty that was used.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    KernelRegressor : Regression on the same features.

    Notes
    -----
    Rows are visited in random order, rows of larger weight more often (by systematic sampling);
    "lbfgs" and "exact" multiply by the weights. Weights are relative: to double all of them
    changes nothing. Results are repeatable for an integer `random_state`, to rounding: sums of
    products depend on the BLAS. Dense float32 data take about half the time of float64 data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from kernelmill import Fastfood, KernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> classifier = KernelClassifier(Fastfood(n_components=1024), random_state=0)
    >>> bool(classifier.fit(X_train, y_train).score(X_test, y_test) > 0.97)
    True
    """

    def __init__(
        self,
        feature_map: Any = "fastfood",
        *,
        loss: str = "log_loss",
        alpha: float | None = None,
        solver: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        validation_fraction: float | None = None,
        patience: int = 3,
        class_weight: Any = None,
        tol: float = 1e-6,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        random_state: Any = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.feature_map = feature_map
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.epochs = epochs
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.tol = tol
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, run: Run | None = None) -> Self:
        """Learn to tell the classes apart.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,)
            Labels: numbers or strings.
        sample_weight : array_like of shape (n_samples,), default=None
        run : Run, default=None
            Checkpoint and progress of the training run, in place of those that the parameters
            `checkpoint`, `checkpoint_seconds` and `verbose` describe. The caller finishes it.

        Returns
        -------
        self
            If anything is wrong, it stays as it was before the call.
        """
        with self._running(run) as current:
            self._check_parameters()
            X = self._start(X, self._open_checkpoint(current, X, y, sample_weight), y)
            labels = check_labels(y, X, type(self).__name__)
            self.classes_ = check_classes(labels)
            codes = codes_of(labels, self.classes_)
            plain = row_weights(sample_weight, X, codes, None)
            totals = np.bincount(codes, plain, len(self.classes_)).astype(np.float64)
            factors = class_factors(self.class_weight, self.classes_, totals)
            rows = LabelledRows(X, codes, row_weights(sample_weight, X, codes, factors))
            source = RowSource(lambda: [rows], len(codes), one_block=True)
            self._learn(source, self._probe(X), current)
        return self

    def fit_blocks(self, blocks: Any, *, classes: Any = None, run: Run | None = None) -> Self:
        """Learn from blocks of rows, of which only one has to be in memory.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            A list, or an object whose ``__iter__`` starts anew, is passed over once for each epoch.
            A generator is passed over once, with "sgd" or "exact". The map is fitted on the first
            block, and rows are shuffled only within blocks: they should not be sorted by class.
        classes : array_like, default=None
            All labels. Without them there is a pass to collect them, which a generator cannot do.
        run : Run, default=None
            As in `fit`.

        Returns
        -------
        self
            If anything is wrong, it stays as it was before the call.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelmill import KernelClassifier
        >>> def blocks():
        ...     rng = np.random.default_rng(0)
        ...     for _ in range(10):
        ...         X = rng.normal(size=(1000, 2))
        ...         yield X, np.where((X**2).sum(axis=1) < 1, "inside", "outside")
        >>> classifier = KernelClassifier(random_state=0)
        >>> classifier = classifier.fit_blocks(blocks(), classes=["inside", "outside"])
        >>> classifier.predict([[0, 0], [2, 0]])
        array(['inside', 'outside'], dtype='<U7')
        """
        with self._running(run) as current:
            self._check_parameters()
            source = BlockSource(blocks)
            if not source.repeatable and self.epochs is not None and self.epochs > 1:
                raise ValueError(
                    f"epochs={self.epochs} needs blocks that can be passed over again, and a "
                    "generator gives one pass; leave epochs out, or give a list or an object whose "
                    "__iter__ starts anew."
                )
            if current.path is not None and not source.repeatable:
                raise ValueError(
                    "A checkpoint needs blocks that can be passed over again, and a generator "
                    "cannot; give a list or an object whose __iter__ starts anew."
                )
            stream = self._open_checkpoint(current, *source.first)
            probe = self._probe(self._start(source.first[0], stream, source.first[1]))
            n_rows, totals = None, None
            if classes is None or isinstance(self.class_weight, str):
                classes, totals, n_rows = self._collect_classes(source, classes)
            self.classes_ = check_classes(classes)
            factors = class_factors(self.class_weight, self.classes_, totals)

            def check_blocks() -> Iterator[LabelledRows]:
                for X, y, weight in source:
                    yield self._labelled(X, y, weight, factors)

            checked = RowSource(check_blocks, n_rows, repeatable=source.repeatable)
            self._learn(checked, probe, current)
        return self

    @available_if(_takes_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows, in one pass over them.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,)
        classes : array_like, default=None
            All labels; needed in the first call, which also fits the map.
        sample_weight : array_like of shape (n_samples,), default=None

        Returns
        -------
        self
            If anything is wrong, it stays as it was before the call.
        """
        with self._unchanged_on_failure():
            self._check_parameters()
            if self.validation_fraction:
                raise ValueError("partial_fit holds no rows out; set validation_fraction=None.")
            if not hasattr(self, "classes_"):
                if classes is None:
                    raise ValueError(
                        "classes must be given in the first call of partial_fit: all labels that "
                        "will come."
                    )
                X = self._start(X, None, y)
                self.classes_ = check_classes(classes)
                self._set_solver(self._probe(X).shape[1])
                self._set_alpha(None)
                self._training = self._statistics = None
            elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
                raise ValueError(
                    f"classes must be the same in every call, got {np.unique(classes).tolist()} "
                    f"after {self.classes_.tolist()}; make a new classifier to change them."
                )
            rows = self._labelled(
                X, y, sample_weight, class_factors(self.class_weight, self.classes_, None)
            )
            if hasattr(self, "_is_loaded"):
                raise ValueError(
                    "partial_fit cannot go on with a classifier from a file, which holds no state "
                    "of the training; fit again with all rows, or keep the classifier in memory."
                )
            if hasattr(self, "coef_") and self._training is None and self._statistics is None:
                raise ValueError(
                    f"partial_fit cannot go on after fit with solver={self.solver_!r}, which keeps "
                    "no state; make a new classifier with solver='sgd'."
                )
            if self.solver_ == "exact":
                self._solve([rows], copy.deepcopy(self._statistics))
            else:
                self._descend_further(rows)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The score of each class; with two classes, of the second one.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each row.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        labels: NDArray[Any] = self.classes_[codes_of_scores(scores)]
        return labels

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class, by the logistic function or softmax of the scores.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithms of the probabilities.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return np.hstack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)])
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    def save(self, path: str | os.PathLike[str], *, weights: str = "float32") -> None:
        """Write the fitted classifier to a file, for `load_learner`.

        The file is a safetensors file with the parameters, the seed and what was learnt; no code
        and no coefficients of the map. An existing one is replaced when the new one is complete.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the weights in the file. With "float64" predictions are the same to
            the last bit.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> from kernelmill import KernelClassifier
        >>> from kernelmill.learners import load_learner
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> y = np.where((X**2).sum(axis=1) < 1, "inside", "outside")
        >>> classifier = KernelClassifier(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "circle.kmill")
        ...     classifier.save(path)
        ...     again = load_learner(path)
        >>> bool((again.predict(X) == classifier.predict(X)).all())
        True
        """
        record, tensors = learner_record(self, weights)
        write_model_file(path, kind="learner", record=record, tensors=tensors)

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("solver", self.solver, _SOLVERS)
        if self.alpha is not None and not (
            isinstance(self.alpha, Real) and 0 <= float(self.alpha) < np.inf
        ):
            raise ValueError(
                f"alpha must be None or a number, finite and not negative, got {self.alpha!r}."
            )
        for name in ("epochs", "batch_size"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        check_integer("patience", self.patience, 1)
        check_positive("tol", self.tol)
        if self.validation_fraction is not None and not (
            isinstance(self.validation_fraction, Real) and 0 <= float(self.validation_fraction) < 1
        ):
            raise ValueError(
                "validation_fraction must be None or from 0 to below 1, got "
                f"{self.validation_fraction!r}."
            )
        if self.solver == "exact" and self.loss != "squared":
            raise ValueError(
                f"solver='exact' needs loss='squared', got loss={self.loss!r}; use solver='auto'."
            )
        if self.solver == "lbfgs" and not LOSSES[self.loss].smooth:
            raise ValueError(
                f"solver='lbfgs' needs a smooth loss, got loss={self.loss!r}; use "
                "loss='squared_hinge' or solver='sgd'."
            )

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any, factors: NDArray[np.float64] | None
    ) -> LabelledRows:
        X = self._check_rows(X, reset=False)
        codes = codes_of(check_labels(y, X, type(self).__name__), self.classes_)
        return LabelledRows(X, codes, row_weights(sample_weight, X, codes, factors))

    def _collect_classes(
        self, source: BlockSource, classes: Any
    ) -> tuple[NDArray[Any], NDArray[np.float64], int]:
        """All labels in the blocks, the weight of each, and the number of rows."""
        if not source.repeatable:
            raise ValueError(
                "blocks can be passed over only once, so the labels cannot be collected first; "
                "give `classes` (and class_weight as a dict, if any), or a list instead of a "
                "generator."
            )
        known: NDArray[Any] | None = None if classes is None else check_classes(classes)
        totals = np.zeros(0 if known is None else len(known))
        n_rows = 0
        for X, y, weight in source:
            labels = check_labels(y, X, type(self).__name__)
            if classes is None:
                found = np.unique(labels)
                both = found if known is None else np.union1d(known, found)
                grown = np.zeros(len(both))
                if known is not None:
                    grown[codes_of(known, both)] = totals
                known, totals = both, grown
            assert known is not None
            codes = codes_of(labels, known)
            totals += np.bincount(codes, row_weights(weight, X, codes, None), len(known))
            n_rows += len(labels)
        assert known is not None
        return known, totals, n_rows
