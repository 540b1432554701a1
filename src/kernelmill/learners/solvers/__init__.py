"""Solvers, one per file: from an objective, blocks of rows and a run to a fit.

They know nothing of estimators. Blocks are any iterable of `kernelmill.learners.blocks.Block` that
gives the same blocks each time it is iterated over.

Contents
--------
sgd
    Mini-batch stochastic gradient descent, preconditioned and averaged, for any loss.
averaging
    The same on several machines at once, averaged after each epoch.
lbfgs
    L-BFGS, for smooth losses.
exact
    Normal equations, for least squares.
cg
    Conjugate gradients, for least squares with many features.
choice
    The solvers by name, with the parameters of the estimators that concern them.
spectrum
    The leading eigenvectors of the features, which precondition `sgd` and `lbfgs`.
"""

__all__ = ["SOLVERS"]

SOLVERS = {
    "classification": ("auto", "sgd", "lbfgs", "exact", "plain_sgd"),
    "regression": ("auto", "exact", "cg"),
}
"""The names of the solvers, by task."""
