"""Plots of records, each with its text alternative, its explanation and its numbers.

Contents
--------
drawing
    Colours, axes and marks, as all plots have them.
panel
    `Panel`: a plot with its words and numbers, as a part of a page.
fit, columns, kernels
    A fit, the columns of its table, and estimated kernel values.
evaluation, ranking
    Evaluations, and those of two classes.
comparison, diagnosis, experiments
    The plots of pages of these names.
"""
