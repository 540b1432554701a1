"""Fitted learners in model files.

Contents
--------
stored
    The fields that a file holds.
saving
    From a fitted learner to their values.
loading
    `load_learner`, and learners from their values. Those for prediction alone, which do without
    scikit-learn, are in `kernelmill.learners.prediction`.
"""
