"""The page of a diagnosis: the features that maps need, and errors of the recommended one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernelmill.files.atomic_file import atomic_write
from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.findings import Tile, file_name
from kernelmill.report.page import Section, render_sections
from kernelmill.report.plots.diagnosis import diagnosis_panels
from kernelmill.report.plots.panel import PageTable
from kernelmill.report.usage import fit_lines

if TYPE_CHECKING:
    from kernelmill.diagnostics import Measured
    from kernelmill.workflows.diagnosis import Diagnosis

__all__ = ["render_diagnosis", "write_diagnosis"]


def write_diagnosis(
    path: str | os.PathLike[str], diagnosis: Diagnosis, *, title: str | None = None
) -> Path:
    """Write a self-contained HTML file about a diagnosis, atomically.

    Parameters
    ----------
    path : str or path-like
    diagnosis : Diagnosis
        From `kernelmill.diagnose_table`.
    title : str, optional
        The heading; by default it names the data.

    Returns
    -------
    pathlib.Path
    """
    path = Path(path)
    atomic_write(path, [render_diagnosis(diagnosis, title=title).encode()])
    return path


def render_diagnosis(diagnosis: Diagnosis, *, title: str | None = None) -> str:
    """Return the page as text; the parameters are those of `write_diagnosis`."""
    errors = _error_table(diagnosis)
    sections = [
        Section(
            "Features that each map needs",
            panels=diagnosis_panels(diagnosis),
            cards=[errors] if errors else [],
            tables=[_requirement_table(diagnosis)],
            notes=[clean_text(note) for note in diagnosis.notes],
        )
    ]
    if diagnosis.target and diagnosis.recommended is not None:
        shell, python = fit_lines(diagnosis, "model.kmill")
        lines = (("Command line", shell), ("Python", python))
        code = [(name, text) for name, text in lines if text]
        sections.append(Section("Fitting a model", code=code))
    return render_sections(
        title or f"Number of features for {file_name(diagnosis.source)}",
        f"A sample of {html.count(diagnosis.n_sample)} of {html.count(diagnosis.n_rows, 'row')}, "
        f"seed {diagnosis.seed}",
        sections,
        findings=[_finding(diagnosis)],
        tiles=_tiles(diagnosis),
    )


def _finding(diagnosis: Diagnosis) -> str:
    scale = diagnosis.length_scale
    length_scale = "" if scale is None else f" at length scale {html.number(scale)}"
    return (
        f"{clean_text(diagnosis.recommendation)} Measured with the kernel "
        f"{clean_text(diagnosis.kernel)}{length_scale}."
    )


def _tiles(diagnosis: Diagnosis) -> list[Tile]:
    if diagnosis.recommended is None:
        return []
    best = diagnosis.requirements[diagnosis.recommended]
    rows = html.count(best.n_rows, "row")
    return [
        Tile("features", html.count(best.n_components), clean_text(best.label)),
        Tile("time", html.duration(best.seconds), f"for {rows}"),
        Tile("memory", html.size(best.map_bytes), "coefficients of the map"),
        Tile("tolerance", html.number(diagnosis.tolerance), _share(diagnosis) + " of the pairs"),
    ]


def _share(diagnosis: Diagnosis) -> str:
    return html.percent(diagnosis.probability).replace(".0", "")


def _requirement_table(diagnosis: Diagnosis) -> PageTable:
    """Return the number of features of each map, and their cost."""
    rows = [
        [
            clean_text(each.label),
            clean_text(each.construction),
            html.count(each.from_bound),
            ("~" if each.from_variance is not None and not each.variance_is_exact else "")
            + html.count(each.from_variance),
            (">" if each.is_extrapolated else "") + html.count(each.measured),
            f"{html.count(each.low)}{html.range_dash}{html.count(each.high)}",
            html.duration(each.seconds),
            html.size(each.map_bytes),
            html.size(each.stored_bytes),
        ]
        for each in diagnosis.requirements
    ]
    best = diagnosis.recommended
    return PageTable(
        [
            *("map", "construction", "by a bound", "by the variance", "measured", "95 % interval"),
            *("time", "coefficients", "features, if stored"),
        ],
        rows,
        f"Features for an error of at most {html.number(diagnosis.tolerance)} in "
        f"{_share(diagnosis)} of the pairs of rows; time and memory for "
        f"{html.count(diagnosis.n_rows, 'row')}. ~: from the variance of a similar construction; "
        ">: extrapolated from the largest measured number of features",
        2,
        prose=(1,),
        marked=frozenset() if best is None else frozenset({(best, 4)}),
    )


def _error_table(diagnosis: Diagnosis) -> PageTable | None:
    """Return the errors of the recommended map; None if there is none."""
    errors = diagnosis.errors
    if not errors or not diagnosis.gram:
        return None
    gram = diagnosis.gram[-1]
    rows = [
        ["mean absolute error", *_numbers(errors["absolute"])],
        ["root mean squared error", *_numbers(errors["rms"])],
        [
            "mean relative error of the pairs whose error is at most 100 %",
            *_numbers(errors["capped_relative"]),
        ],
        ["share of pairs whose relative error is at most 100 %", *_numbers(errors["share_capped"])],
        ["spectral error of the Gram matrix", *_numbers(gram.spectral)],
        ["its Frobenius error", *_numbers(gram.frobenius)],
        ["its spectral distance Δ at the penalty", *_numbers(gram.distance)],
        ["spectral norm of the Gram matrix", html.number(gram.kernel_spectral), ""],
        ["effective dimension at the penalty", *_numbers(gram.effective_dimension)],
    ]
    if gram.fit_change is not None:
        rows.append(["relative change of a ridge regression", *_numbers(gram.fit_change)])
    best = diagnosis.requirements[diagnosis.recommended or 0].label
    return PageTable(
        ["quantity", "mean", "95 % interval"],
        rows,
        f"{clean_text(best)} with {html.count(diagnosis.n_components)} features; Gram matrix of "
        f"{html.count(gram.n_rows, 'row')}, penalty {html.number(gram.alpha, 3)}; the mean of "
        f"k(x, x), the unit of the tolerance, is {html.number(diagnosis.requirements[0].unit, 3)}",
    )


def _numbers(measured: Measured) -> tuple[str, str]:
    ends = f"{html.number(measured.low, 3)}{html.range_dash}{html.number(measured.high, 3)}"
    return html.number(measured.value, 3), ends if is_number(measured.low) else ""
