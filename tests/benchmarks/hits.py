"""CPU seconds and peak memory that answers of the ledger cost: found, read, and in a whole run that makes no call.

python tests/benchmarks/hits.py --answers 100000 --results 20
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from measure import measure

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, store
from rankbeam.transforms.clients.ledger.parts import Encoder
from rankbeam.transforms.clients.ledger.rows import row_groups, table_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth

_PART = 10_000
_TEXT = "some words of the document that was found, as services return them. "
_SERVICE = {
    "url": "http://127.0.0.1:9/search",
    "results": "hits.hits",
    "id": "_id",
    "score": "_score",
    "text": "_source.text",
}


def main() -> None:
    """Write a ledger, find all of its answers, read them, and evaluate an experiment that needs them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--results", type=int, default=20)
    parser.add_argument("--whole-run", action="store_true", help="only the whole run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankbeam-hits-") as folder:
        depth = SearchDepth(options.results)
        keys = Http(**_SERVICE).keys("http", map(question, range(options.answers)), depth)
        for first in range(0, options.answers, _PART):
            write_part(str(Path(folder, "ledger")), range(first, min(options.answers, first + _PART)), keys, depth)
        if not options.whole_run:
            sys.stdout.write(f"{measured(str(Path(folder, 'ledger')), keys, depth)}\n")
            sys.stdout.flush()
        used = measure(command(Path(folder), options.answers, options.results), Path(folder, "printed"))
        took = f"{used.cpu_s:.1f} CPU s, peak {used.peak_bytes / 1e6:,.0f} MB"
        sys.stdout.write(f"{options.answers:,} answers of {options.results} results in `evaluate`: {took}\n")


def write_part(folder: str, numbers: range, keys: list[str], depth: SearchDepth) -> None:
    """Write answers into a part of a ledger."""
    encoder = Encoder()
    entries = (LedgerEntry(keys[i], depth, answer(i, depth.results), 1, 0.1, datetime.now(UTC)) for i in numbers)
    for group in row_groups(entries):
        encoder.add(table_of(group))
    store.put(folder, encoder.finish())


def measured(folder: str, keys: list[str], depth: SearchDepth) -> str:
    """The cost of finding and reading all answers."""
    http = Http(**_SERVICE)
    reading_s, began_s = 0.0, time.process_time()
    for entry in Ledger(folder).find(dict.fromkeys(keys, depth)):
        before_s = time.process_time()
        http.read(entry.answer)
        reading_s += time.process_time() - before_s
    finding_s = time.process_time() - began_s - reading_s
    latency = f"{reading_s / len(keys) * 1e6:.0f} µs an answer"
    shown = f"found in {finding_s:.1f} CPU s, read in {reading_s:.1f} ({latency})"
    return f"{len(keys):,} answers of {depth.results} results: {shown}"


def command(folder: Path, queries: int, results: int) -> list[str]:
    """The run of an experiment whose every call is in the ledger."""
    texts = (json.dumps({"_id": f"q{number}", "text": question(number)}) for number in range(queries))
    (folder / "queries.jsonl").write_text("\n".join(texts))
    (folder / "qrels").write_text("".join(f"q{number} 0 doc-{number * 7 + 1} 1\n" for number in range(queries)))
    experiment = {
        "name": "hits",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels"},
        "configurations": [{"name": "search", "retriever": {"type": "http", **_SERVICE}, "top_k": results}],
        "metrics": ["nDCG@10", "R@20"],
        "output": {"path": "out", "ledger": "ledger"},
    }
    path = folder / "hits.yaml"
    path.write_text(json.dumps(experiment))
    return [sys.executable, "-m", "rankbeam", "evaluate", str(path)]


def question(number: int) -> str:
    """The text of a query."""
    return f"question number {number}, of some words"


def answer(number: int, results: int) -> str:
    """An answer of a search service."""
    hits = [
        {"_id": f"doc-{number * 7 + rank}", "_score": 1.5 / (rank + 1), "_source": {"text": _TEXT, "title": "title"}}
        for rank in range(results)
    ]
    return json.dumps({"hits": {"hits": hits}}, separators=(",", ":"))


if __name__ == "__main__":
    main()
