"""Run the models that are missing on each split, and print the tables.

``python -m benchmarks tables --tables adult,kegg --models kernelmill,hgb --splits 2``
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables.contenders import CONTENDERS, list_contenders
from benchmarks.tables.results import (
    OURS,
    Result,
    append_result,
    classification_error,
    describe_ratios,
    log_loss,
    markdown_errors,
    markdown_times,
    read_results,
    regression_error,
    with_fewer_rows,
)
from benchmarks.tables.sources import Table, count_splits, find_tables, split_table
from benchmarks.timing import heading, load

RESULTS = Path(__file__).resolve().parents[2] / "build" / "tables.jsonl"


def main(arguments: Sequence[str] = ()) -> None:
    """Measure what the file of results does not have yet, and print the summary."""
    options = parse(arguments)
    done = {(r.table, r.split, r.model) for r in read_results([options.results, *options.beside])}
    loaders = find_tables()
    for model in options.models:
        for name in options.tables:
            seeds = range(count_splits(name, options.splits))
            missing = [seed for seed in seeds if (name, seed, model) not in done]
            table = loaders[name]() if missing else None
            for seed in missing:
                assert table is not None
                result = measure(table, seed, model)
                append_result(options.results, result)
                print(f"{model} {name} {seed}: {result.error:.4g}, {result.cpu_seconds:.1f} s")
    report(read_results([*options.beside, options.results]), options.tables)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options of the command line."""
    available = list(find_tables())
    parser = argparse.ArgumentParser(prog="python -m benchmarks tables", description=__doc__)
    parser.add_argument("--tables", default=",".join(available), help="names, with commas")
    parser.add_argument("--models", default=",".join(list_contenders()), help="names, with commas")
    parser.add_argument("--splits", type=int, default=5, help="seeds 0, 1, ... (default: 5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines, added to")
    parser.add_argument(
        "--beside", type=Path, action="append", default=[], help="JSON lines to read besides"
    )
    options = parser.parse_args(arguments)
    for choice, known in (("tables", available), ("models", list_contenders())):
        chosen = getattr(options, choice).split(",")
        setattr(options, choice, chosen)
        unknown = [name for name in chosen if name not in known]
        if unknown:
            sys.exit(f"Unknown {choice}: {', '.join(unknown)}; choose from: {', '.join(known)}.")
    return options


def measure(table: Table, seed: int, model: str) -> Result:
    """Fit a model to a split, and compute its error on the test rows."""
    split = split_table(table, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop before they converge
        made = CONTENDERS[model](split)
    y = split.test[split.target].to_numpy()
    loss = None
    if split.task == "regression":
        error = regression_error(made.predictions, y)
    else:
        error = classification_error(made.predictions, y)
        if made.probabilities is not None and made.classes is not None:
            loss = log_loss(made.probabilities, made.classes, y)
    return Result(
        table=table.name,
        task=table.task,
        split=seed,
        model=model,
        error=error,
        log_loss=loss,
        seconds=round(made.seconds, 3),
        cpu_seconds=round(made.cpu_seconds, 3),
        predict_seconds=round(made.predict_seconds, 3),
        n_train=made.n_train,
        n_test=len(split.test),
        tuning_share=made.tuning_share,
    )


def report(results: Sequence[Result], tables: Sequence[str]) -> None:
    """Print errors, ratios and times of the tables, for every model that has results."""
    order = {name: i for i, name in enumerate(tables)}
    results = sorted((r for r in results if r.table in order), key=lambda r: order[r.table])
    models = [name for name in CONTENDERS if any(r.model == name for r in results)]
    heading("Error on held-out rows (RMSE, or misclassified rows), defaults on all sides")
    print(f"mean over splits\n\n{markdown_errors(results, models)}")
    heading("CPU seconds of a fit")
    print(f"mean over splits; {load()}\n\n{markdown_times(results, models)}\n")
    for other in models:
        if other != OURS and (text := describe_ratios(results, OURS, other)):
            print(f"- {text}")
    if text := describe_ratios(with_fewer_rows(results, "svm"), OURS, "svm"):
        print(f"- where the SVM has fewer rows: {text}")
