"""The page of a diagnosis: complete, safe with any names, and without a recommendation."""

import json
from dataclasses import replace

import numpy as np
import pytest

import kernelmill
from kernelmill.errors import ArgumentError
from kernelmill.report import (
    error_over_range_plot,
    gram_error_plot,
    kernel_error_by_features_plot,
    write_diagnosis,
)
from kernelmill.report.diagnosis_page import render_diagnosis
from kernelmill.workflows import diagnosis as module
from kernelmill.workflows.diagnosis import Diagnosis

MALICIOUS = "<script>alert(1)</script>\"'&$x_1$"


@pytest.fixture(scope="module")
def diagnosis():
    X = np.random.default_rng(0).normal(size=(60, 3))
    table = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] * X[:, 1]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_FEATURES", 256)
        found = kernelmill.diagnose_table(table, "y", tolerance=0.1)
    return Diagnosis.from_record(json.loads(json.dumps(found.to_record())))


def test_plots_and_numbers(diagnosis, tmp_path):
    path = write_diagnosis(tmp_path / "d.html", diagnosis)
    text = path.read_text()
    assert text == render_diagnosis(diagnosis)
    assert text.count("<svg") == 4
    for words in ("effective dimension", "fastfood (sorf)", "model = kernelmill.fit_table(table"):
        assert words in text
    axes = kernel_error_by_features_plot(diagnosis).axes[0]
    labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert labels == [each.label for each in diagnosis.requirements]
    names = [text.get_text() for text in gram_error_plot(diagnosis).legends[0].get_texts()]
    assert names == ["spectral norm", "Frobenius norm", "ridge regression"]
    assert len(error_over_range_plot(diagnosis).axes[0].patches) == len(diagnosis.ranges)


def test_malicious_names(diagnosis):
    named = replace(
        diagnosis,
        source=MALICIOUS,
        target=MALICIOUS,
        kernel=MALICIOUS,
        recommendation=MALICIOUS,
        notes=[MALICIOUS],
        requirements=[replace(each, map_name=MALICIOUS) for each in diagnosis.requirements],
    )
    assert "<script" not in render_diagnosis(named)


def test_nothing_reaches_the_tolerance(diagnosis):
    failed = [
        replace(
            each,
            measured=None,
            low=None,
            high=None,
            n_components=None,
            seconds=None,
            map_bytes=None,
            stored_bytes=None,
            sizes=[],
            errors=[],
        )
        for each in diagnosis.requirements
    ]
    none = replace(
        diagnosis,
        requirements=failed,
        recommended=None,
        errors={},
        ranges=[],
        kernel_check=None,
        gram=[],
    )
    text = render_diagnosis(none)
    assert "<svg" not in text
    assert "fastfood" in text
    for plot in (kernel_error_by_features_plot, error_over_range_plot, gram_error_plot):
        with pytest.raises(ArgumentError, match="diagnosis must hold"):
            plot(none)
