"""Counters of a process, for progress and for Beam's metrics."""

import json
import os
import tempfile
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.sharing import shared
from rankbeam.transforms.records.counters import NAMESPACE, Counter, Counts

if TYPE_CHECKING:
    from apache_beam.metrics.metric import Metrics as BeamMetrics

_FOLDER_VARIABLE = "RANKBEAM_TALLY_FOLDER"

_WRITTEN_AFTER_S = 0.2

_tally: Tally[str] = Tally()
_lock = threading.Lock()
_is_read_here = False
_will_be_written = False


def count(counter: Counter, number: int, pool: str = "") -> None:
    """Add to a counter; called once per batch, not once per row."""
    global _will_be_written
    _beam_counter(counter).inc(number)
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return
    with _lock:
        _tally[f"{counter.value} {pool}"] += number
        if _is_read_here or _will_be_written:
            return
        _will_be_written = True
    timer = threading.Timer(_WRITTEN_AFTER_S, _write, [folder])
    timer.daemon = True
    timer.start()


@cache
def _beam_counter(counter: Counter) -> "BeamMetrics.DelegatingCounter":
    from apache_beam.metrics import Metrics  # commands that only read a tally start without Beam

    return Metrics.counter(NAMESPACE, counter.value)


def _write(folder: str) -> None:
    """Write the tally of a worker process, for the process that reads it."""
    global _will_be_written
    with _lock, suppress(FileNotFoundError):  # the folder is deleted once the reader has ended
        _will_be_written = False
        part_file = Path(folder) / f"{os.getpid()}.part"
        part_file.write_text(json.dumps(_tally))
        part_file.replace(part_file.with_suffix(".json"))


@shared
@contextmanager
def tallying() -> Iterator[Callable[[], Counts]]:
    """Tally the counts of this process and of the worker processes it starts; yields a function that reads the tally.

    Runs in several threads share one tally. Workers of a local run inherit the environment, and each writes its counts
    to a folder on this machine.
    """
    global _is_read_here
    _tally.clear()
    _is_read_here = True
    with tempfile.TemporaryDirectory(prefix="rankbeam-tally-", ignore_cleanup_errors=True) as folder:
        os.environ[_FOLDER_VARIABLE] = folder

        def read() -> Counts:
            with _lock:
                own_counts = dict(_tally)
            total: Counts = Tally()
            for tally in (own_counts, *(json.loads(part.read_text()) for part in Path(folder).glob("*.json"))):
                for name, number in tally.items():
                    counter, _, pool = name.partition(" ")
                    total[Counter(counter), pool] += number
            return total

        try:
            yield read
        finally:
            del os.environ[_FOLDER_VARIABLE]
            _is_read_here = False
