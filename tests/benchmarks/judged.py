"""Peak memory of judging many long contexts on the local runner, and whether the values depend on the workers.

python tests/benchmarks/judged.py --items 100000 --length 10000

Every query has ten contexts that a judge without a language model grades; each grade is an item. Several sizes show how
memory grows; `--workers 1,2` runs each with so many worker processes.
"""

import argparse
import hashlib
import itertools
import json
import random
import sys
import tempfile
from pathlib import Path

import pyarrow.dataset as ds
from measure import measure

CONTEXTS, USES_OF_A_DOCUMENT = 10, 10
_WORDS = [f"{first}{middle}{last}" for first, middle, last in itertools.product("bcdfglmprst", "aeiou", "klmnrt")]
_WORKERS = ("--direct_running_mode=multi_processing", "--direct_num_workers")


def main() -> None:
    """Judge every number of items with every number of workers, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", default="100000", help="numbers of items, separated by commas")
    parser.add_argument("--length", type=int, default=10_000, help="bytes of a context")
    parser.add_argument("--workers", default="1", help="numbers of workers, separated by commas")
    parsed = parser.parse_args()
    sys.stdout.write("| items | workers | peak MB | CPU s | values |\n|---:|---:|---:|---:|---|\n")
    for items in map(int, parsed.items.split(",")):
        with tempfile.TemporaryDirectory(prefix="rankbeam-judged-") as folder:
            write(Path(folder), items // CONTEXTS, parsed.length)
            for workers in parsed.workers.split(","):
                run_id = f"w{workers}"
                experiment = write_experiment(Path(folder), run_id)
                options = [] if workers == "1" else [_WORKERS[0], f"{_WORKERS[1]}={workers}"]
                command = [sys.executable, "-m", "rankbeam", "evaluate", experiment, "--run-id", run_id, *options]
                used = measure(command, Path(folder, "printed"))
                values = digest(Path(folder, run_id, "query_metrics", run_id))
                shown = f"{used.peak_bytes / 1e6:,.0f} | {used.cpu_s:,.0f} | {values}"
                sys.stdout.write(f"| {items:,} | {workers} | {shown} |\n")
                sys.stdout.flush()


def write(folder: Path, queries: int, length: int) -> None:
    """Write a collection."""
    documents = max(CONTEXTS, queries * CONTEXTS // USES_OF_A_DOCUMENT)
    with (folder / "corpus.jsonl").open("w") as corpus:
        for number in range(documents):
            corpus.write(json.dumps({"_id": f"d{number}", "text": text(number, length)}) + "\n")
    with (folder / "queries.jsonl").open("w") as texts, (folder / "run").open("w") as run:
        for number in range(queries):
            texts.write(json.dumps({"_id": f"q{number}", "text": text(-number - 1, 60)}) + "\n")
            for rank in range(CONTEXTS):
                run.write(f"q{number} Q0 d{(number * 7 + rank * 13) % documents} {rank + 1} {-rank} tag\n")
    (folder / "qrels").write_text("".join(f"q{number} 0 d{number % documents} 1\n" for number in range(queries)))


def write_experiment(folder: Path, output: str) -> str:
    """Write an experiment with an output of its own, so that no run reads what another one answered."""
    experiment = {
        "name": "judged",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels", "corpus": "corpus.jsonl"},
        "services": {"overlap": {"type": "lexical"}},
        "configurations": [{"name": "run", "retriever": {"type": "run_file", "path": "run"}, "top_k": CONTEXTS}],
        "judge": {"service": "overlap", "repeat_share": 0},
        "metrics": [f"ContextRelevance@{CONTEXTS}"],
        "output": {"path": output},
    }
    path = folder / f"{output}.yaml"
    path.write_text(json.dumps(experiment))
    return str(path)


def text(seed: int, length: int) -> str:
    """Sentences of made-up words."""
    words = random.Random(seed).choices(_WORDS, k=length // 4)
    sentences = (" ".join(words[start : start + 12]) + "." for start in range(0, len(words), 12))
    return " ".join(sentences)[:length]


def digest(folder: Path) -> str:
    """A hash of all values of a run."""
    rows = ds.dataset(folder, format="parquet").to_table(["query_id", "metrics"]).to_pylist()
    ordered = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(ordered).encode()).hexdigest()[:12]


if __name__ == "__main__":
    main()
