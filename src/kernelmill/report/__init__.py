"""Reports about models: a self-contained HTML page, and its plots.

Contents
--------
write_report, render
    A page about the fit of a model, its evaluation and its comparison with others.
calibration_plot, confusion_plot, coverage_plot, predicted_plot, residuals_plot
    Evaluations.
roc_plot, precision_recall_plot, lift_plot
    Evaluations of two classes.
error_by_features_plot, error_by_time_plot, memory_plot
    Comparisons of models.
write_diagnosis
    A page about the number of features that each map needs.
kernel_error_by_features_plot, error_over_range_plot, gram_error_plot
    Errors of feature maps.
kernel_check_plot
    Estimated against exact kernel values.
learning_curve_plot, time_plot, tuning_plot
    The fit of a model.
relevance_plot, partial_dependence_plot
    The columns of its table.

Plots are matplotlib figures that open no window: `kernel_check_plot(...).savefig("plot.png")`.
"""

from kernelmill.report.diagnosis_page import write_diagnosis
from kernelmill.report.page import render, write_report
from kernelmill.report.plots.columns import partial_dependence_plot, relevance_plot
from kernelmill.report.plots.comparison import (
    error_by_features_plot,
    error_by_time_plot,
    memory_plot,
)
from kernelmill.report.plots.diagnosis import (
    error_over_range_plot,
    gram_error_plot,
    kernel_error_by_features_plot,
)
from kernelmill.report.plots.evaluation import (
    calibration_plot,
    confusion_plot,
    coverage_plot,
    predicted_plot,
    residuals_plot,
)
from kernelmill.report.plots.fit import learning_curve_plot, time_plot, tuning_plot
from kernelmill.report.plots.kernels import kernel_check_plot
from kernelmill.report.plots.ranking import lift_plot, precision_recall_plot, roc_plot

__all__ = [
    "calibration_plot",
    "confusion_plot",
    "coverage_plot",
    "error_by_features_plot",
    "error_by_time_plot",
    "error_over_range_plot",
    "gram_error_plot",
    "kernel_check_plot",
    "kernel_error_by_features_plot",
    "learning_curve_plot",
    "lift_plot",
    "memory_plot",
    "partial_dependence_plot",
    "precision_recall_plot",
    "predicted_plot",
    "relevance_plot",
    "render",
    "residuals_plot",
    "roc_plot",
    "time_plot",
    "tuning_plot",
    "write_diagnosis",
    "write_report",
]
