"""CPU seconds that answers of the ledger cost: finding them, and reading them as the `http` retriever does.

python tests/benchmarks/hits.py --answers 100000 --results 20
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime

from rankbeam.transforms.clients.ledger import Entry, Ledger, store
from rankbeam.transforms.clients.ledger.parts import Encoder
from rankbeam.transforms.clients.ledger.rows import row_groups, table_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.reach import Reach

_PART = 10_000
_TEXT = "some words of the document that was found, as services return them. "


def main() -> None:
    """Write a ledger, find all of its answers, and read them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--results", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rankbeam-hits-") as folder:
        for first in range(0, given.answers, _PART):
            write_part(folder, range(first, min(given.answers, first + _PART)), given.results)
        sys.stdout.write(f"{measured(folder, given.answers, given.results)}\n")


def write_part(folder: str, numbers: range, results: int) -> None:
    """Write answers into a part of a ledger."""
    encoder = Encoder()
    entries = (Entry(key(i), Reach(results), answer(i, results), 1, 0.1, datetime.now(UTC)) for i in numbers)
    for group in row_groups(entries):
        encoder.add(table_of(group))
    store.put(folder, encoder.finish())


def measured(folder: str, answers: int, results: int) -> str:
    """What finding and reading all answers costs."""
    http = Http(url="http://none.invalid/", results="hits.hits", id="_id", score="_score", text="_source.text")
    reading_s, began_s = 0.0, time.process_time()
    for entry in Ledger(folder).find({key(i): Reach(results) for i in range(answers)}):
        before_s = time.process_time()
        http.read(entry.answer)
        reading_s += time.process_time() - before_s
    finding_s = time.process_time() - began_s - reading_s
    each = f"{reading_s / answers * 1e6:.0f} µs an answer"
    return f"{answers:,} answers of {results} results: found in {finding_s:.1f} CPU s, read in {reading_s:.1f} ({each})"


def key(number: int) -> str:
    """The key of a call."""
    return f"{number:032x}"


def answer(number: int, results: int) -> str:
    """What a search service says."""
    hits = [
        {"_id": f"doc-{number * 7 + rank}", "_score": 1.5 / (rank + 1), "_source": {"text": _TEXT, "title": "title"}}
        for rank in range(results)
    ]
    return json.dumps({"hits": {"hits": hits}}, separators=(",", ":"))


if __name__ == "__main__":
    main()
