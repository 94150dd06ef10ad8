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
from contextlib import contextmanager
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


_COUNTERS = {counter: Metrics.counter(NAMESPACE, counter.value) for counter in Counter}
_tally: Tally[str] = Tally()
_lock = threading.Lock()


def count(counter: Counter, number: int) -> None:
    """Add to a counter; called once a batch, not once a row."""
    _COUNTERS[counter].inc(number)
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return
    with _lock:
        _tally[counter.value] += number
        beside = Path(folder) / f"{os.getpid()}.part"
        beside.write_text(json.dumps(_tally))
        beside.replace(beside.with_suffix(".json"))


@contextmanager
def tallying() -> Iterator[Callable[[], dict[Counter, int]]]:
    """Tally what this process and the worker processes it starts count; yields how to read the tally.

    Workers of a local run inherit the environment, and each leaves its counts in a folder of this machine.
    """
    _tally.clear()
    with tempfile.TemporaryDirectory(prefix="rankbeam-tally-", ignore_cleanup_errors=True) as folder:
        os.environ[_FOLDER_VARIABLE] = folder

        def read() -> dict[Counter, int]:
            total: Tally[str] = Tally()
            for part in Path(folder).glob("*.json"):
                total.update(json.loads(part.read_text()))
            return {Counter(name): number for name, number in total.items()}

        try:
            yield read
        finally:
            del os.environ[_FOLDER_VARIABLE]
