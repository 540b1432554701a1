"""From a table to a fitted model.

Contents
--------
fit_table
    `fit_table`: the stages of a fit, one after the other.
checks
    Errors before a model is trained.
survey
    The first pass over a table: encoding, target, a sample of the rows.
encoded_rows
    The encoded rows, in memory or read again in each pass.
plan
    Settings and rows: training, held-out rows, cross-validation, training on all rows.
relevance
    How much each column counts, and partial dependence.
"""
