"""Peak memory and CPU of judging answers: queries, configurations and judged metrics on the local runner, and a model.

    python tests/benchmarks/judged_answers.py 1000x10 2500x10,contexts=6   queries x configurations, and terms
    python tests/benchmarks/judged_answers.py --model 2500x10,lanes=2    fit the model, and compare it with runs

Every answer has contexts and a reference. A judge without a language model decides by shared words, so what is measured
is rankbeam: the ledger, the lanes, the values, the tables, and what the submitting process keeps. Memory is that of the
largest process: anonymous memory, which the kernel must keep, apart from pages of files, which it can drop. `--again`
runs each a second time, which finds all verdicts in the ledger.

The model is linear: what a start takes, an answer, a judged value, a context, a mean of a slice, a tested pair of
configurations, and a lane. `--model` fits it to small runs that differ in one of them.
"""

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
from judged import text
from measure import Usage, measure
from processes import Peaks, Sampled

METRICS = ("Faithfulness", "ContextRelevance", "ClaimPrecision", "ClaimRecall", "ContextRecall")
TABLES = ("query_metrics", "answers", "verdicts", "configuration_metrics", "comparisons")
_BASE = "1000x10"
FITTED = (
    "250x10",
    _BASE,
    *(f"{_BASE},{term}" for term in ("metrics=2", "contexts=8", "slices=40", "slices=40,all_pairs=1", "lanes=4")),
)
MEANS, PAIRS = 1_000, 1_000
"""Slices, metrics and configurations, or pairs of them, that one unit of a term has."""
POWERS = {"CPU s": 1.0, "anonymous MB": 0.3}
"""CPU time is proportional to size. Memory hardly grows; the power was chosen by runs up to 100000x10."""
_QUOTA = 60_000_000

_HEADER = """\
| run | | verdicts | anonymous MB | at s | mapped MB | CPU s | wall s |
|---|---|---:|---:|---:|---:|---:|---:|"""


@dataclass(frozen=True)
class Shape:
    """The size of a run, and what is not the default.

    Attributes:
        metrics: number of judged metrics, of METRICS.
        slices: number of slices beside that of all queries.
        all_pairs: 1 if every two configurations are compared, otherwise each with the baseline.
    """

    queries: int
    configurations: int
    contexts: int = 3
    metrics: int = 5
    slices: int = 0
    all_pairs: int = 0
    lanes: int = 1

    @classmethod
    def parse(cls, stated: str) -> "Shape":
        """A shape such as `1000x10,contexts=6`."""
        size, *terms = stated.split(",")
        queries, configurations = map(int, size.split("x"))
        named = {name: int(value) for name, value in (term.split("=") for term in terms)}
        return cls(queries, configurations, **named)

    def __str__(self) -> str:
        terms = [f"{field.name}={getattr(self, field.name)}" for field in fields(self) if field.name not in _SIZE]
        defaults = {f"{field.name}={field.default}" for field in fields(self)}
        return ",".join([f"{self.queries}x{self.configurations}", *(term for term in terms if term not in defaults)])

    def terms(self, power: float) -> dict[str, float]:
        """The units that the model counts; those of size are raised to a power."""
        thousands = (self.queries * self.configurations / 1_000) ** power
        means = (1 + self.slices) * self.metrics
        pairs = math.comb(self.configurations, 2) if self.all_pairs else self.configurations - 1
        return {
            "start-up": 1,
            "1,000 answers": thousands,
            "1,000 judged values": thousands * self.metrics,
            "1,000 contexts": thousands * self.contexts,
            "1,000 means of slices": means * self.configurations / MEANS,
            "1,000 tests of pairs": means * pairs / PAIRS,
            "additional lane": self.lanes - 1,
        }


_SIZE = ("queries", "configurations")


def main() -> None:
    """Measure runs, and print a table; with a model, also its terms and what it predicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", type=Shape.parse, help="such as 1000x10,contexts=6,slices=10")
    parser.add_argument("--model", action="store_true", help="fit the model first, and compare it with the runs")
    parser.add_argument("--again", action="store_true", help="make every run a second time")
    parser.add_argument("--folder", help="where data and output go; without it, a temporary folder")
    parser.add_argument("--option", action="append", default=[], help="an option of Beam")
    parsed = parser.parse_args()
    sys.stdout.write(f"{_HEADER}\n")
    fitted = list(map(Shape.parse, FITTED)) if parsed.model else []
    runs = {shape: measured(shape, parsed) for shape in [*fitted, *parsed.shapes]}
    if fitted:
        sys.stdout.writelines(f"{line}\n" for line in model(fitted, runs))


def measured(shape: Shape, parsed: argparse.Namespace) -> tuple[Usage, Peaks]:
    """Run a shape, and print its row, and that of a second run."""
    first: list[tuple[Usage, Peaks]] = []
    with tempfile.TemporaryDirectory(prefix="rankbeam-judged-", dir=parsed.folder) as folder:
        experiment = write(Path(folder), shape)
        for run_id in ("first", "second") if parsed.again else ("first",):
            command = [sys.executable, "-m", "rankbeam", "evaluate", experiment, "--run-id", run_id, *parsed.option]
            with Sampled() as sampled:
                used = measure(command, Path(folder, "printed"))
            counts, peaks = rows(Path(folder, "out"), run_id), sampled.peaks[0]
            sizes = f"{peaks.anonymous / 1e6:,.0f} | {peaks.anonymous_at_s:,.0f} | {peaks.mapped / 1e6:,.0f}"
            figures = f"{sizes} | {used.cpu_s:,.1f} | {used.wall_s:,.0f}"
            sys.stdout.write(f"| {shape} | {run_id} | {counts['verdicts']:,} | {figures} |\n")
            sys.stdout.flush()
            first.append((used, peaks))
            check(counts, shape)
    return first[0]


def model(fitted: Sequence[Shape], runs: dict[Shape, tuple[Usage, Peaks]]) -> Iterator[str]:
    """The terms of the model, and what it predicts of the runs that it was not fitted to."""
    kinds = {
        "CPU s": {shape: used.cpu_s for shape, (used, _) in runs.items()},
        "anonymous MB": {shape: peaks.anonymous / 1e6 for shape, (_, peaks) in runs.items()},
    }
    for kind, measured in kinds.items():
        units = {shape: shape.terms(POWERS[kind]) for shape in runs}
        terms = np.array([list(units[shape].values()) for shape in fitted])
        costs, *_ = np.linalg.lstsq(terms, np.array([measured[shape] for shape in fitted]), rcond=None)
        yield from ["", f"| | {kind} |", "|---|---:|"]
        yield from (f"| {name} | {cost:,.2f} |" for name, cost in zip(units[fitted[0]], costs, strict=True))
        yield from ["", f"| run | {kind} | model | |", "|---|---:|---:|---:|"]
        for shape in [shape for shape in runs if shape not in fitted]:
            predicted = float(np.array(list(units[shape].values())) @ costs)
            yield (f"| {shape} | {measured[shape]:,.1f} | {predicted:,.1f} | {predicted / measured[shape] - 1:+.0%} |")


def write(folder: Path, shape: Shape) -> str:
    """Write texts, judgements, one file of answers for each configuration, and the experiment."""
    with (folder / "queries.jsonl").open("w") as lines:
        for number in range(shape.queries):
            metadata = {"answer": text(-number - 1, 150), "slice": f"s{number % max(1, shape.slices)}"}
            row = {"query_id": f"q{number}", "text": text(number, 60), "metadata": metadata}
            lines.write(json.dumps(row) + "\n")
    for configuration in range(shape.configurations):
        with (folder / f"answers-{configuration}.jsonl").open("w") as lines:
            for number in range(shape.queries):
                lines.write(json.dumps(_answer(number, configuration, shape.contexts)) + "\n")
    names = [f"system-{number}" for number in range(shape.configurations)]
    experiment = {
        "name": "judged-answers",
        "dataset": {"queries": "queries.jsonl", "answers": "answer"},
        "services": {"overlap": {"type": "lexical"}},
        "configurations": [
            {"name": name, "answers": {"type": "replay", "path": f"answers-{number}.jsonl"}}
            for number, name in enumerate(names)
        ],
        "judge": {"service": "overlap", "repeat_share": 0},
        "metrics": [f"{name}@{shape.contexts}" if name == "ContextRelevance" else name for name in METRICS][
            : shape.metrics
        ],
        "slices": ["slice"] if shape.slices else [],
        "statistics": {"pairs": "all" if shape.all_pairs else "baseline"},
        "baseline": names[0],
        "output": {"path": "out"},
    }
    if shape.lanes > 1:
        experiment["quotas"] = {"lexical": {"requests_per_minute": _QUOTA, "lanes": shape.lanes}}
    path = folder / "experiment.yaml"
    path.write_text(json.dumps(experiment))
    return str(path)


def _answer(number: int, configuration: int, count: int) -> dict[str, object]:
    """An answer of two sentences from its contexts or not, by chance."""
    chosen = random.Random(number * 1000 + configuration)
    contexts = [text(number * 10 + chosen.randrange(10), 400) for _ in range(count)]
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


def check(counts: dict[str, int], shape: Shape) -> None:
    """Refuse a run that lost rows."""
    expected = shape.queries * shape.configurations
    if counts["query_metrics"] != expected or counts["answers"] != expected:
        raise SystemExit(f"expected {expected} rows, found {counts}")


if __name__ == "__main__":
    main()
