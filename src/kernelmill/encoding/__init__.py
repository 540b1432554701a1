"""The encoding of tables: from columns and targets to numeric inputs of estimators.

Contents
--------
columns
    The encoding of one column: standardized numbers, categories as columns of 0 and 1 or, if they
    have an order, as one number.
dates
    Dates and times: year, month, weekday, time of day, elapsed time.
levels
    The order of categories that represent numbers, such as "10-19" and "65+".
monotone
    `MonotoneTransform` of skewed and heavy-tailed numbers: ranks to normal scores.
units
    Columns in one unit, such as pixels, which are divided by one number.
encoder
    `Encoder`, and `ColumnEncoder` for tables with columns, fitted by a `ColumnLearner`.
matrix
    `MatrixEncoder` for matrix files, fitted by a `MatrixLearner`.
targets
    `TargetReader`, which converts the target to numbers, fitted by a `TargetLearner`.
inputs
    `Inputs`: the columns of a table that a model uses.
"""

__all__ = ["MISSING", "TASKS"]

MISSING = ("error", "impute")
"""The ways to handle missing values."""

TASKS = ("auto", "classification", "regression")
"""What a model of a table predicts; "auto" is decided by the values of the target."""
