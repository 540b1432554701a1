"""The encoding of tables: from columns and targets to the numbers that learners take.

Contents
--------
columns
    The encoding of one column: standardized numbers, categories as columns of 0 and 1 or, if they
    have an order, as one number.
dates
    Dates and times: year, month, weekday, time of day, elapsed time.
levels
    The order of categories that name numbers, such as "10-19" and "65+".
monotone
    `MonotoneTransform` of skewed and heavy-tailed numbers: ranks to normal scores.
encoder
    `Encoder`, and `ColumnEncoder` for tables with columns, fitted by a `ColumnLearner`.
matrix
    `MatrixEncoder` for files that hold a matrix, fitted by a `MatrixLearner`.
targets
    `TargetReader`, which converts the target to numbers, fitted by a `TargetLearner`.
inputs
    `Inputs`: which columns of a table a model takes.
"""

__all__ = ["MISSING"]

MISSING = ("error", "impute")
"""The ways to handle missing values."""
