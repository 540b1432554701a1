"""Kernel, map, length scales, penalty and number of features, chosen on a sample of the rows.

Contents
--------
settings
    `tune_settings`: all that is not given.
map_choice
    How to construct the map of a model.
budget
    What fits in the budget of a fit.
kernel_search
    Kernels and length scales, compared by ridge regression.
refinement
    Penalty and bandwidth of a classifier, by its own loss.
memory
    Results of steps, which an interrupted run finds again in its checkpoint.
"""
