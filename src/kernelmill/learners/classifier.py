"""Kernel classifiers: support vector machines and logistic regression on random features."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kernelmill.arguments import check_choice, check_not_negative
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.base import KernelMachine
from kernelmill.learners.blocks import Block, BlockSource, take_rows
from kernelmill.learners.features import compute_features
from kernelmill.learners.losses import (
    LOSSES,
    ClassifierFit,
    Objective,
    classes_of_scores,
    default_alpha,
    log_probabilities_of_scores,
    probabilities_of_scores,
    signs_of_classes,
)
from kernelmill.learners.run import CHECKPOINT_SECONDS, Run
from kernelmill.learners.solvers.choice import ClassifierSolver
from kernelmill.learners.targets import (
    check_classes,
    check_labels,
    collect_classes,
    compute_class_factors,
    compute_row_weights,
    encode_labels,
    encode_rows,
)
from kernelmill.maps.base import FeatureMap

__all__ = ["KernelClassifier"]

KEPT_BYTES = 1 << 28  # of features that take long to compute


def _gives_probabilities(classifier: KernelClassifier) -> bool:
    if classifier.loss == "log_loss":
        return True
    raise AttributeError(
        f"predict_proba needs loss='log_loss', got loss={classifier.loss!r}; set "
        "loss='log_loss', or wrap the classifier in sklearn.calibration.CalibratedClassifierCV."
    )


def _takes_parts(classifier: KernelClassifier) -> bool:
    if classifier.solver != "lbfgs":
        return True
    raise AttributeError(
        "partial_fit is not available with solver='lbfgs', which needs all rows; use solver='sgd'."
    )


class KernelClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc] # untyped
    r"""Kernel classifier at linear cost: a linear classifier on random features.

    Minimizes the mean loss of the rows plus :math:`\frac{\alpha}{2} |W|^2` over weights W and
    intercepts b of the scores :math:`z(x)^T W + b`. Features are computed on the fly and never
    stored for all rows: at most those of one batch and, at the beginning, of a sample of at most
    2000 rows.

    Parameters
    ----------
    feature_map : str or transformer, default="fastfood"
        A map of kernelmill such as ``Fastfood(n_components=8192)``, any scikit-learn transformer or
        pipeline, or the name of a map with 2048 components: "fastfood", "random_fourier",
        "nystroem", "additive_fourier", "principal_fourier", "taylor_sketch", "gaussian_templates",
        "tensor_sketch", "dot_product_fastfood", "random_maclaurin" or "count_sketch".
    loss : {"log_loss", "hinge", "squared_hinge", "squared"}, default="log_loss"
        "log_loss" is logistic regression (multinomial for more than two classes); it is the only
        loss that provides probabilities. The other losses are one-vs-rest: "hinge" as in SVC,
        "squared_hinge" as in LinearSVC, "squared" for least squares.
    alpha : float, default=None
        The strength of the L2 penalty. In SVC and LogisticRegression, this is ``C = 1 / (alpha *
        n_samples)``. The default corresponds to C = 10 or, for "log_loss" and more than 1000 rows,
        to C = n_samples / 100, at most 1000. If the number of rows is not known, as in
        `partial_fit` and for generators, the default is 1e-6.
    solver : {"auto", "sgd", "lbfgs", "exact", "plain_sgd"}, default="auto"
        "sgd" is mini-batch gradient descent, preconditioned by the leading eigenvectors of the
        features and averaged, with step sizes estimated from the data. "lbfgs" converges to the
        minimum, in many more passes. "exact", for the squared loss, solves the normal equations.
        "plain_sgd" uses the fixed step size, batch size and number of epochs of McKernel (Curtó et
        al., 2017), for comparison; its intercept is learned like any other weight, from zero.
        "auto" selects "exact" for the squared loss and up to 8192 features, otherwise "sgd".
    epochs : int, default=None
        The number of passes over the data; for "lbfgs" the maximum number of iterations. The
        default is the number that processes 100,000 rows, from 4 to 500; for "lbfgs" it is 1000.
    batch_size : int, default=None
        The number of rows in a step. The default is 256, or less for few rows; for "plain_sgd" it
        is 10.
    learning_rate : float, default=None
        The step size of "plain_sgd", for features scaled to cosines and sines. The default is
        0.001, as in McKernel. Other solvers do not use it.
    validation_fraction : float, default=None
        The fraction of rows to hold out for early stopping: training stops when the accuracy on
        these rows has not improved for `patience` epochs, and the best weights are kept. With None,
        all rows are used for training.
    patience : int, default=3
    class_weight : dict or "balanced", default=None
        Factors that multiply the row weights of each class, as in scikit-learn.
    tune : {False, "columns"}, default=False
        "columns" learns a length scale for each column (automatic relevance determination) for maps
        of kernelmill. It maximizes the evidence of a least-squares regression on the class signs,
        with at most 2500 rows. The learned length scales are used only if they lower the error on
        other rows; otherwise all columns share one length scale.
    column_groups : array_like of int of shape (n_features,), default=None
        For ``tune="columns"``: columns with the same number share a length scale, such as the
        one-hot columns of a categorical column.
    tol : float, default=1e-6
        "lbfgs" stops when the norm of the gradient is below `tol`.
    checkpoint : str or path, default=None
        A file in which "sgd" and "lbfgs" save their state. If the process is interrupted, the same
        call of `fit` resumes from this state. The result is the same for "sgd", and the same within
        `tol` for "lbfgs". The file is deleted at the end. `partial_fit`, and the exact solver if
        "auto" selects it, do not use the file.
    checkpoint_seconds : float, default=60.0
        The minimum time between checkpoints.
    random_state : int, RandomState, Generator or Stream, default=None
        The seed of the order of the rows, and of the map if its own `random_state` is None.
    n_threads : int, default=None
        The number of threads of the map, if its own `n_threads` is None.
    verbose : int, default=0
        1 prints the progress to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features_out) or (n_classes, n_features_out)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    feature_map_ : transformer
        The fitted map.
    loss_curve_ : list of float
        The mean loss in each epoch, where the loss of a row is evaluated before the step that uses
        it; for "lbfgs", the objective after each iteration.
    validation_curve_ : list of float
        The accuracy on held-out rows after each epoch, if there are any.
    n_iter_ : int
        The number of epochs or iterations.
    alpha_ : float
        The penalty in use.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X had column names at `fit`.

    See Also
    --------
    KernelRegressor : Regression on the same features.

    Notes
    -----
    Rows are visited in random order, and rows with larger weights more often (by systematic
    sampling); "lbfgs" and "exact" multiply losses by the weights. Weights are relative: doubling
    all of them changes nothing. Results are reproducible for an integer `random_state`, and results
    of "sgd" do not depend on the number of threads. Dense float32 data take about half the time of
    float64 data.

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

    alpha_: float
    classes_: NDArray[Any]
    solver_: str
    loss_curve_: list[float]
    validation_curve_: list[float]
    n_iter_: int
    _state: Any  # of the solver: what partial_fit adds rows to, or None

    def __init__(
        self,
        feature_map: Any = "fastfood",
        *,
        loss: str = "log_loss",
        alpha: float | None = None,
        solver: str = "auto",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation_fraction: float | None = None,
        patience: int = 3,
        class_weight: Any = None,
        tune: Any = False,
        column_groups: Any = None,
        tol: float = 1e-6,
        checkpoint: Any = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
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
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.tune = tune
        self.column_groups = column_groups
        self.tol = tol
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, run: Run | None = None) -> Self:
        """Fit the map and the weights.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,)
            Labels: numbers or strings. Missing labels, numbers among strings, NUL characters at the
            end of strings, lone surrogates and integers beyond 64 bits raise an error.
        sample_weight : array_like of shape (n_samples,), default=None
        run : Run, default=None
            The checkpoint and progress of the training run. It replaces the parameters
            `checkpoint`, `checkpoint_seconds` and `verbose`. The caller finishes the run.

        Returns
        -------
        self
            The fitted classifier. If an error is raised, the classifier is unchanged.
        """
        with self._start_run(run) as current, self._limit_blas(X):
            self._check_parameters()
            source = BlockSource.from_arrays(X, y, sample_weight)
            X = self._start(source, current)
            self.classes_, rows = encode_rows(
                X, y, sample_weight, self.class_weight, type(self).__name__
            )
            source.check_with(Block, rows)
            self._learn(source, self._probe(X), current, len(rows.y))
        return self

    def fit_blocks(self, blocks: Any, *, classes: Any = None, run: Run | None = None) -> Self:
        """Fit to blocks of rows, with one block in memory at a time.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            A list, or an object whose ``__iter__`` starts from the beginning, is iterated over once
            per epoch. A generator is iterated over once, with "sgd" or "exact". The map is fitted
            on the first block, and rows are shuffled only within blocks, so they should not be
            sorted by class.
        classes : array_like, default=None
            All labels. If None, they are collected in an additional pass, which is not possible
            with a generator.
        run : Run, default=None
            As in `fit`.

        Returns
        -------
        self
            The fitted classifier. If an error is raised, the classifier is unchanged.

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
        with self._start_run(run) as current, self._limit_blas():
            self._check_parameters()
            source = BlockSource(blocks)
            probe = self._probe(self._start(source, current))
            n_rows, totals = source.n_rows, None
            if classes is None or isinstance(self.class_weight, str):
                source.require_passes(
                    "collecting the classes and their weights",
                    Remedy(
                        "pass all labels as classes, and class_weight as a dict if it is used",
                        classes=...,
                    ),
                )
                classes, totals, n_rows = collect_classes(source, classes, type(self).__name__)
            self.classes_ = check_classes(classes)
            factors = compute_class_factors(self.class_weight, self.classes_, totals)
            source.check_with(partial(self._check_block, factors))
            self._learn(source, probe, current, n_rows)
        return self

    @available_if(_takes_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the weights in one pass over the given rows.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,)
        classes : array_like, default=None
            All labels. Required in the first call, which also fits the map.
        sample_weight : array_like of shape (n_samples,), default=None

        Returns
        -------
        self
            The fitted classifier. If an error is raised, the classifier is unchanged.
        """
        with self._unchanged_on_failure():
            self._check_parameters()
            if self.validation_fraction:
                raise ArgumentError(
                    "must be None for partial_fit, which does not hold out rows, got "
                    f"{self.validation_fraction!r}",
                    parameter="validation_fraction",
                )
            if not hasattr(self, "classes_"):
                if classes is None:
                    raise ArgumentError(
                        "must be passed in the first call of partial_fit, with all labels that "
                        "will occur",
                        parameter="classes",
                    )
                X = self._fit_map(X, y)
                self._tune(X, y, sample_weight, self._make_run())
                self.classes_ = check_classes(classes)
                self._choose(self._probe(X).shape[1], None)
            elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
                raise ArgumentError(
                    f"must be the same in every call, got {np.unique(classes).tolist()} after "
                    f"{self.classes_.tolist()}",
                    "create a new classifier to change them",
                    parameter="classes",
                )
            factors = compute_class_factors(self.class_weight, self.classes_, None)
            block = self._check_block(factors, X, y, sample_weight)
            self._check_continuable()
            probe = self._probe(block.X)
            solver = self._solver().resolve(probe.shape[1])
            self._take_fit(
                solver.add_rows(
                    self._objective(probe),
                    block,
                    self._make_run(),
                    stream=self.stream_,
                    state=self._state,
                )
            )
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the score of each class or, for two classes, the score of the second class.

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
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predictions(self._scores(X))

    def _predictions(self, scores: NDArray[Any]) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[classes_of_scores(scores)]
        return labels

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class: the logistic function or softmax of the scores.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return probabilities_of_scores(self._scores(X))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return log_probabilities_of_scores(self._scores(X))

    def _solver(self) -> ClassifierSolver:
        return ClassifierSolver.from_parameters(self.get_params(deep=False))

    def _check_parameters(self) -> None:
        self._solver().check()
        if self.alpha is not None:
            check_not_negative("alpha", self.alpha)
        if self.tune:
            check_choice("tune", self.tune, ("columns",))

    def _start(self, source: BlockSource, run: Run) -> Any:
        """Open the checkpoint and fit the map on the first block; return its checked rows."""
        self._solver().check_source(source, run)
        first = source.first
        X = self._fit_map(first.X, first.y, self._open_checkpoint(run, source))
        self._tune(X, first.y, first.weight, run)
        return X

    def _tune(self, X: Any, y: Any, sample_weight: Any, run: Run) -> None:
        """Learn length scales of columns, if asked for: from the signs of the classes."""
        self.__dict__.pop("learned_scales_", None)
        if not self.tune:
            return
        name, given = type(self).__name__, self.class_weight
        classes, rows = encode_rows(X, y, sample_weight, given, name)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        signs = signs_of_classes(rows.y, n_outputs, np.float64)
        self._tune_columns(X, signs, rows.weight, run.progress)

    def _probe(self, X: Any) -> NDArray[Any]:
        """Return the features of one row, which show their number and dtype."""
        return compute_features(self.feature_map_, take_rows(X, slice(0, 1)))

    def _check_block(
        self, factors: NDArray[np.float64] | None, X: Any, y: Any, sample_weight: Any
    ) -> Block:
        X = self._check_rows(X, reset=False)
        codes = encode_labels(check_labels(y, X, type(self).__name__), self.classes_)
        return Block(X, codes, compute_row_weights(sample_weight, codes, factors))

    def _check_continuable(self) -> None:
        """Raise if a fitted classifier has no state that more rows could be added to."""
        if hasattr(self, "_is_loaded"):
            raise ArgumentError(
                "partial_fit cannot continue with a classifier from a file, which does not "
                "contain the state of the training run",
                "fit again on all rows, or keep the classifier in memory",
            )
        if hasattr(self, "coef_") and self._state is None:
            raise ArgumentError(
                f"partial_fit cannot continue after fit with solver={self.solver_!r}, which keeps "
                "no state",
                Remedy("create a new classifier", solver="sgd"),
            )

    def _choose(self, n_features: int, n_rows: int | None) -> ClassifierSolver:
        """Set the solver and the penalty, and forget the state of an earlier fit."""
        self._state = None
        solver = self._solver().resolve(n_features)
        self.solver_ = solver.solver
        self.alpha_ = default_alpha(n_rows, self.loss) if self.alpha is None else float(self.alpha)
        return solver

    def _objective(self, probe: NDArray[Any]) -> Objective:
        return Objective(
            self._features(),
            n_features=probe.shape[1],
            dtype=probe.dtype,
            loss=LOSSES[self.loss],
            alpha=self.alpha_,
            n_classes=len(self.classes_),
            n_threads=self.n_threads,
        )

    def _learn(
        self, source: BlockSource, probe: NDArray[Any], run: Run, n_rows: int | None
    ) -> None:
        """Call the solver on the blocks; `probe` are the features of one row."""
        run.set_origin(self.stream_, probe)
        solver = self._choose(probe.shape[1], n_rows)
        objective = self._objective(probe)
        if (  # features that take long are computed once, if they fit in memory
            isinstance(self.feature_map_, FeatureMap)
            and self.feature_map_._is_costly
            and source.is_whole
            and len(source.first.y) * probe.nbytes <= KEPT_BYTES
        ):
            block = source.first
            Z = compute_features(self.feature_map_, block.X)
            source = BlockSource.from_arrays(Z, block.y, block.weight)
            source.check_with(Block, Block(Z, block.y, block.weight))
            objective = replace(objective, features=np.asarray)
            if run.watch is not None:
                run.watch.X = compute_features(self.feature_map_, run.watch.X)
        fit = solver.solve(objective, source, run, stream=self.stream_, n_rows=n_rows)
        self._check_resumed(source, run, fit.coef, fit.intercept)
        self._take_fit(fit)

    def _take_fit(self, fit: ClassifierFit) -> None:
        self._set_weights(fit.coef, fit.intercept)
        self.loss_curve_, self.validation_curve_ = list(fit.loss_curve), list(fit.validation_curve)
        self.n_iter_ = max(1, len(fit.loss_curve))
        self._state = fit.state
