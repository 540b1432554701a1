"""The papers' experiments as one HTML page, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernelmill.files.atomic_file import atomic_write
from kernelmill.formatting import clean_text, html, join_words
from kernelmill.report.findings import Tile
from kernelmill.report.page import Section, render_sections
from kernelmill.report.plots.panel import PageTable, Panel
from reproduce import Outcome
from reproduce.plots import (
    INTERVAL,
    outcome_panels,
    save_plots,
    show_value,
    values_tables,
)

__all__ = ["render_experiments", "write_experiments"]

_EXPLANATION = (
    f"Each value is a mean over runs with its {INTERVAL}, by Student's t. A value is the same as "
    "the paper's if they differ by no more than both intervals and rounding allow, better or worse "
    "otherwise. Values with other settings than the paper's are not judged, and times of another "
    "machine are not compared. A statement is confirmed if its whole interval satisfies it."
)
_SCALES = {
    "full": "with the paper's sizes",
    "quick": "at quick scale: smaller sizes than the papers'",
    "test": "at the scale of the tests: sizes are too small for conclusions",
}


def write_experiments(folder: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """Write index.html, results.md, results.json and the plots of experiments.

    Parameters
    ----------
    folder : path
        An existing folder.
    outcomes : sequence of Outcome

    Returns
    -------
    list of path
        The first is the page.
    """
    panels = {each.experiment.name: outcome_panels(each) for each in outcomes}
    texts = {
        "index.html": render_experiments(outcomes, panels),
        "results.md": render_markdown(outcomes),
        "results.json": json.dumps([each.to_json() for each in outcomes], indent=1) + "\n",
    }
    for name, text in texts.items():
        atomic_write(folder / name, [text.encode()])
    plots = [file for name, each in panels.items() for file in save_plots(each, folder, name)]
    return [folder / name for name in (*texts, *plots)]


def render_experiments(
    outcomes: Sequence[Outcome], panels: dict[str, list[Panel]] | None = None
) -> str:
    """The page: for each paper its experiments, with settings, plots, tables and verdicts."""
    if panels is None:
        panels = {each.experiment.name: outcome_panels(each) for each in outcomes}
    sections: list[Section] = []
    paper = None
    for outcome in outcomes:
        experiment = outcome.experiment
        if experiment.paper != paper:
            paper = experiment.paper
            sections.append(
                Section(
                    f"{paper.authors}: {paper.title}",
                    paragraphs=[paper.introduction],
                )
            )
        sections.append(_section(outcome, panels[experiment.name]))
    sections.append(_provenance(outcomes))
    verdicts = sum((each.count_verdicts() for each in outcomes), Counter[str]())
    return render_sections(
        "The papers' experiments, rerun",
        join_words(dict.fromkeys(each.experiment.paper.authors for each in outcomes)),
        sections,
        findings=[summarize_verdicts(verdicts), *_missing_findings(outcomes), _EXPLANATION],
        tiles=_tiles(verdicts, outcomes),
        version=outcomes[0].record.version if outcomes else "",
    )


def summarize_verdicts(verdicts: Counter[str]) -> str:
    """Return the verdicts in a sentence."""
    judged = sum(verdicts[word] for word in ("better", "same", "worse"))
    claims = sum(verdicts[word] for word in ("confirmed", "within chance", "not confirmed"))
    parts = []
    if judged:
        parts.append(
            f"Of {html.count(judged, 'value')} that can be compared with the papers: "
            f"{verdicts['better']} better, {verdicts['same']} the same within chance, "
            f"{verdicts['worse']} worse."
        )
    if verdicts["other settings"]:
        others = html.count(verdicts["other settings"], "value has", "values have")
        parts.append(f"{others} other settings.")
    if claims:
        parts.append(
            f"Of {html.count(claims, 'statement')} of the papers: {verdicts['confirmed']} "
            f"confirmed, {verdicts['within chance']} within chance, "
            f"{verdicts['not confirmed']} not confirmed."
        )
    return " ".join(parts) or "Nothing was measured."


def _missing_findings(outcomes: Sequence[Outcome]) -> list[str]:
    missing = [each.missing_parts for each in outcomes if each.missing]
    return [f"Not run: {', '.join(missing)}."] if missing else []


def _tiles(verdicts: Counter[str], outcomes: Sequence[Outcome]) -> list[Tile]:
    tiles = [
        Tile(word, html.count(verdicts[word]), "values")
        for word in ("better", "same", "worse")
        if verdicts[word]
    ]
    if verdicts["confirmed"]:
        tiles.append(Tile("confirmed", html.count(verdicts["confirmed"]), "statements"))
    seconds = sum(each.record.seconds for each in outcomes)
    return [*tiles, Tile("time", html.duration(seconds), "all experiments")]


def _section(outcome: Outcome, panels: Sequence[Panel]) -> Section:
    experiment, record = outcome.experiment, outcome.record
    tables = []
    if outcome.results.cells:
        if any(isinstance(cell.row, str) for cell in outcome.results.cells):
            tables += values_tables(outcome)
        tables += [_verdict_table(outcome)] if any(each.published for each in outcome.lines) else []
    tables += [_claim_table(outcome)] if outcome.checks and outcome.results.cells else []
    notes = [
        f"{parts}: {clean_text(reason)}" for reason, parts in outcome.missing_by_reason.items()
    ]
    scale = f"Run {_SCALES[record.scale]}, in {html.duration(record.seconds)}, seed {record.seed}"
    scale += f"; {outcome.n_runs}." if outcome.n_runs else "."
    return Section(
        f"{experiment.place}. {experiment.title}",
        paragraphs=[experiment.settings, scale],
        panels=panels,
        tables=tables,
        notes=notes,
    )


def _verdict_table(outcome: Outcome) -> PageTable:
    rows = [
        [
            f"{line.row}" if isinstance(line.row, str) else html.number(line.row),
            line.column,
            f"{line.published}{html.space}{line.unit}".strip(),
            show_value(line.cell, line.unit),
            html.number(line.verdict.ratio, 3),
            line.verdict.word,
            line.verdict.reason,
        ]
        for line in outcome.lines
        if line.published
    ]
    return PageTable(
        [outcome.experiment.row, "what", "paper", "here", "ratio", "verdict", "why"],
        rows,
        f"{outcome.experiment.place} and the values measured here",
        2,
        prose=(5, 6),
    )


def _claim_table(outcome: Outcome) -> PageTable:
    return PageTable(
        ["what the paper says", "measured", "verdict"],
        [[text, check.explained, check.word] for text, check in outcome.checks],
        "Statements about the results",
        0,
        prose=(0, 1, 2),
    )


def _provenance(outcomes: Sequence[Outcome]) -> Section:
    facts: dict[str, str] = {}
    for name in ("version", "commit", "scale", "created"):
        values = dict.fromkeys(str(getattr(each.record, name)) for each in outcomes)
        shown = sorted(each for each in values if each)
        if shown:
            between = " to " if name == "created" else ", "
            facts[name] = between.join(dict.fromkeys((shown[0], shown[-1])))
    for outcome in outcomes:
        facts |= outcome.record.machine
    return Section("Origin of the results", facts=list(facts.items()))


def render_markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the same as Markdown: settings, tables, statements."""
    lines = ["# The papers' experiments, rerun", ""]
    verdicts = sum((each.count_verdicts() for each in outcomes), Counter[str]())
    lines += [summarize_verdicts(verdicts), "", _EXPLANATION, ""]
    lines += [line for each in _missing_findings(outcomes) for line in (each, "")]
    for outcome in outcomes:
        experiment, record = outcome.experiment, outcome.record
        lines += [f"## {experiment.paper.authors}, {experiment.place}: {experiment.title}", ""]
        lines += [experiment.settings, ""]
        made = f"`{experiment.name}` {_SCALES[record.scale]}, seed {record.seed}"
        made += f", kernelmill {record.version}" if record.version else ""
        made += f" at {' and '.join(record.commits)}" if record.commits else ""
        made += f", {record.created[:10]}, {html.duration(record.seconds)}"
        lines += [f"{made}; {outcome.n_runs}." if outcome.n_runs else f"{made}.", ""]
        missing = outcome.missing_by_reason
        lines += [f"- Not run: {parts}: {why}" for why, parts in missing.items()]
        lines += [""] if outcome.missing else []
        if outcome.results.cells:
            for table in values_tables(outcome):
                lines += [f"{table.caption}:", "", *_markdown_table(table), ""]
            if any(each.published for each in outcome.lines):
                lines += [*_markdown_table(_verdict_table(outcome)), ""]
            lines += [*_markdown_table(_claim_table(outcome)), ""] if outcome.checks else []
    return "\n".join(lines).replace(html.space, " ").rstrip() + "\n"


def _markdown_table(table: PageTable) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [row(table.headings), row(["---"] * len(table.headings)), *map(row, table.rows)]
