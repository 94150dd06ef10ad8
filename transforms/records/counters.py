"""Everything that is counted while a pipeline runs, named once.

A count goes to Beam's metrics, which every runner reports at the end, and to a tally that the progress display
of a local run reads while the pipeline runs.
"""

import json
import os
import tempfile
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from apache_beam.metrics import Metrics

NAMESPACE = "rankbeam"
_FOLDER_VARIABLE = "RANKBEAM_TALLY_FOLDER"


class Counter(StrEnum):
    """What is counted."""

    JUDGED_QUERIES = "judged_queries"
    ROWS_READ = "rows_read"
    QUERIES_ASKED = "queries_asked"
    QUERIES_SCORED = "queries_scored"
    FAILURES = "failures"
    CALLS_PLANNED = "calls_planned"
    LEDGER_HITS = "ledger_hits"
    CALLS_MADE = "calls_made"
    RETRIES = "retries"
    CALLS_DONE = "calls_done"
    CALLS_FAILED = "calls_failed"
    RUNS_MISSED = "runs_that_miss_a_limit"
    # Dataflow knows this very name: whoever waits on purpose does not get more workers.
    THROTTLED_S = "cumulativeThrottlingSeconds"


Counts = Tally[tuple[Counter, str]]
"""How much was counted, by counter and quota pool ("" for what belongs to none)."""

_COUNTERS = {counter: Metrics.counter(NAMESPACE, counter.value) for counter in Counter}
_tally: Tally[str] = Tally()
_lock = threading.Lock()


def count(counter: Counter, number: int, pool: str = "") -> None:
    """Add to a counter; called once a batch, not once a row.

    Args:
        counter: which one.
        number: how much.
        pool: the quota pool that it belongs to, for counters of calls.
    """
    _COUNTERS[counter].inc(number)
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return
    with _lock, suppress(FileNotFoundError):  # the folder is gone once nobody reads it
        _tally[f"{counter.value} {pool}"] += number
        beside = Path(folder) / f"{os.getpid()}.part"
        beside.write_text(json.dumps(_tally))
        beside.replace(beside.with_suffix(".json"))


@contextmanager
def tallying() -> Iterator[Callable[[], Counts]]:
    """Tally what this process and the worker processes it starts count; yields how to read the tally.

    Workers of a local run inherit the environment, and each leaves its counts in a folder of this machine.
    """
    _tally.clear()
    with tempfile.TemporaryDirectory(prefix="rankbeam-tally-", ignore_cleanup_errors=True) as folder:
        os.environ[_FOLDER_VARIABLE] = folder

        def read() -> Counts:
            total: Counts = Tally()
            for part in Path(folder).glob("*.json"):
                for name, number in json.loads(part.read_text()).items():
                    counter, _, pool = name.partition(" ")
                    total[Counter(counter), pool] += number
            return total

        try:
            yield read
        finally:
            del os.environ[_FOLDER_VARIABLE]
