"""Peak memory and CPU of judging answers: queries, configurations and five judged metrics on the local runner.

    python tests/benchmarks/judged_answers.py --queries 1000,2500,5000 --configurations 10

Every answer has three contexts and a reference. A judge without a language model decides by shared words, so what is
measured is rankbeam: the ledger, the lanes, the values, the tables, and what the submitting process keeps. A second run
of each size finds all verdicts in the ledger. Memory is that of the largest process: anonymous memory, which the kernel
must keep, apart from pages of files, which it can drop. From all sizes but the last, lines are fitted to the first
runs, and compared with that of the last size.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
from judged import text
from measure import Usage, measure
from processes import Peaks, Sampled

CONTEXTS = 3
METRICS = ("Faithfulness", "ClaimPrecision", "ClaimRecall", "ContextRecall", f"ContextRelevance@{CONTEXTS}")
TABLES = ("query_metrics", "answers", "verdicts", "configuration_metrics", "comparisons")

_HEADER = """\
| queries | run | verdicts | anonymous MB | at s | mapped MB | CPU s | wall s |
|---:|---|---:|---:|---:|---:|---:|---:|"""


def main() -> None:
    """Judge every number of queries twice, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default="2500", help="numbers of queries, separated by commas")
    parser.add_argument("--configurations", type=int, default=10, help="number of configurations")
    parser.add_argument("--folder", help="where data and output go; without it, a temporary folder")
    parser.add_argument("options", nargs="*", help="options of Beam, after --")
    parsed = parser.parse_args()
    sys.stdout.write(f"{_HEADER}\n")
    first: list[tuple[int, Usage, Peaks]] = []
    for queries in map(int, parsed.queries.split(",")):
        with tempfile.TemporaryDirectory(prefix="rankbeam-judged-", dir=parsed.folder) as folder:
            experiment = write(Path(folder), queries, parsed.configurations)
            for run_id in ("first", "second"):
                command = [
                    sys.executable,
                    "-m",
                    "rankbeam",
                    "evaluate",
                    experiment,
                    "--run-id",
                    run_id,
                    *parsed.options,
                ]
                with Sampled() as sampled:
                    used = measure(command, Path(folder, "printed"))
                counts, peaks = rows(Path(folder, "out"), run_id), sampled.peaks[0]
                sizes = f"{peaks.anonymous / 1e6:,.0f} | {peaks.anonymous_at_s:,.0f} | {peaks.mapped / 1e6:,.0f}"
                figures = f"{sizes} | {used.cpu_s:,.1f} | {used.wall_s:,.0f}"
                sys.stdout.write(f"| {queries:,} | {run_id} | {counts['verdicts']:,} | {figures} |\n")
                sys.stdout.flush()
                first += [(queries * parsed.configurations, used, peaks)] if run_id == "first" else []
            check(counts, queries, parsed.configurations)
    if len(first) > 2:
        sys.stdout.write("\n".join(["", *model(first), ""]))


def model(runs: Sequence[tuple[int, Usage, Peaks]]) -> Iterator[str]:
    """Lines through all runs but the last, by number of answers, beside the last run."""
    *fitted, (answers, used, peaks) = runs
    measured = {"CPU s": [run.cpu_s for _, run, _ in fitted], "anonymous MB": [at.anonymous / 1e6 for *_, at in fitted]}
    for (name, values), last in zip(measured.items(), (used.cpu_s, peaks.anonymous / 1e6), strict=True):
        slope, start = np.polyfit([number for number, *_ in fitted], values, 1)
        line = f"{name}: {start:,.1f} and {1000 * slope:,.2f} for 1,000 answers"
        predicted = start + slope * answers
        yield f"{line}; {answers:,} answers: measured {last:,.1f}, model {predicted:,.1f}, {predicted / last - 1:+.0%}"


def write(folder: Path, queries: int, configurations: int) -> str:
    """Write texts, judgements, one file of answers for each configuration, and the experiment."""
    with (folder / "queries.jsonl").open("w") as lines:
        for number in range(queries):
            row = {"query_id": f"q{number}", "text": text(number, 60), "metadata": {"answer": text(-number - 1, 150)}}
            lines.write(json.dumps(row) + "\n")
    for configuration in range(configurations):
        with (folder / f"answers-{configuration}.jsonl").open("w") as lines:
            for number in range(queries):
                lines.write(json.dumps(_answer(number, configuration)) + "\n")
    names = [f"system-{number}" for number in range(configurations)]
    experiment = {
        "name": "judged-answers",
        "dataset": {"queries": "queries.jsonl", "answers": "answer"},
        "services": {"overlap": {"type": "lexical"}},
        "configurations": [
            {"name": name, "answers": {"type": "replay", "path": f"answers-{number}.jsonl"}}
            for number, name in enumerate(names)
        ],
        "judge": {"service": "overlap", "repeat_share": 0},
        "metrics": list(METRICS),
        "baseline": names[0],
        "output": {"path": "out"},
    }
    path = folder / "experiment.yaml"
    path.write_text(json.dumps(experiment))
    return str(path)


def _answer(number: int, configuration: int) -> dict[str, object]:
    """An answer of two sentences from its contexts or not, by chance."""
    chosen = random.Random(number * 1000 + configuration)
    contexts = [text(number * 10 + chosen.randrange(10), 400) for _ in range(CONTEXTS)]
    source = (
        chosen.choice(contexts)
        if chosen.random() < 0.5 + 0.04 * configuration
        else text(chosen.randrange(1 << 30), 200)
    )
    return {
        "query_id": f"q{number}",
        "answer": source[:150],
        "contexts": [{"text": context} for context in contexts],
    }


def rows(output: Path, run_id: str) -> dict[str, int]:
    """The number of rows of each table of a run."""
    folders = {name: output / name / run_id for name in TABLES}
    return {
        name: ds.dataset(folder, format="parquet").count_rows() if folder.exists() else 0
        for name, folder in folders.items()
    }


def check(counts: dict[str, int], queries: int, configurations: int) -> None:
    """Refuse a run that lost rows."""
    expected = queries * configurations
    if counts["query_metrics"] != expected or counts["answers"] != expected:
        raise SystemExit(f"expected {expected} rows, found {counts}")


if __name__ == "__main__":
    main()
