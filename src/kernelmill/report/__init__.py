"""Reports about models: a self-contained HTML page, and its plots.

Contents
--------
write_report, render
    A page about the fit of a model, its evaluation and its comparison with others.
calibration_plot, confusion_plot, coverage_plot, predicted_plot, residuals_plot
    Evaluations.
error_by_features_plot, error_by_time_plot, memory_plot
    Comparisons of models.
kernel_check_plot
    Estimated against exact kernel values.
learning_curve_plot, time_plot, tuning_plot
    The fit of a model.
relevance_plot, partial_dependence_plot
    The columns of its table.

Plots are matplotlib figures without a window: `kernel_check_plot(...).savefig("plot.png")`.
"""

from kernelmill.report.column_plots import partial_dependence_plot, relevance_plot
from kernelmill.report.comparison_plots import (
    error_by_features_plot,
    error_by_time_plot,
    memory_plot,
)
from kernelmill.report.evaluation_plots import (
    calibration_plot,
    confusion_plot,
    coverage_plot,
    predicted_plot,
    residuals_plot,
)
from kernelmill.report.fit_plots import learning_curve_plot, time_plot, tuning_plot
from kernelmill.report.kernel_plots import kernel_check_plot
from kernelmill.report.page import render, write_report

__all__ = [
    "calibration_plot",
    "confusion_plot",
    "coverage_plot",
    "error_by_features_plot",
    "error_by_time_plot",
    "kernel_check_plot",
    "learning_curve_plot",
    "memory_plot",
    "partial_dependence_plot",
    "predicted_plot",
    "relevance_plot",
    "render",
    "residuals_plot",
    "time_plot",
    "tuning_plot",
    "write_report",
]
