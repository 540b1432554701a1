"""Pages about models that people read: one HTML file with plots, and the plots themselves.

Contents
--------
write_report, render
    A page about how a model was made, how good it is and how it does beside others.
calibration_figure, confusion_figure, coverage_figure, predicted_figure, residuals_figure
    How good predictions are.
error_by_features_figure, error_by_time_figure, memory_figure
    Models beside each other.
kernel_check_figure
    Estimated against exact kernel values.
learning_curve_figure, time_figure, tuning_figure
    How a model was made.

Figures are matplotlib figures that no window shows: `figure.savefig("plot.png")` writes one.
"""

from kernelmill.report.comparison_figures import (
    error_by_features_figure,
    error_by_time_figure,
    memory_figure,
)
from kernelmill.report.confusion_figure import confusion_figure
from kernelmill.report.evaluation_figures import (
    calibration_figure,
    coverage_figure,
    predicted_figure,
    residuals_figure,
)
from kernelmill.report.kernel_check_figure import kernel_check_figure
from kernelmill.report.page import render, write_report
from kernelmill.report.training_figures import learning_curve_figure, time_figure, tuning_figure

__all__ = [
    "calibration_figure",
    "confusion_figure",
    "coverage_figure",
    "error_by_features_figure",
    "error_by_time_figure",
    "kernel_check_figure",
    "learning_curve_figure",
    "memory_figure",
    "predicted_figure",
    "render",
    "residuals_figure",
    "time_figure",
    "tuning_figure",
    "write_report",
]
