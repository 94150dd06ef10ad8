"""The counts of a run: of this process, and of the worker processes that it starts."""

import subprocess
import sys
import time

from rankbeam.transforms.clients.calls.tally import count, tallying
from rankbeam.transforms.records.counters import Counter

WORKER = """
import time
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.records.counters import Counter

for _ in range(3):
    count(Counter.CALLS_DONE, 2, "rag")
print("counted", flush=True)
input()
"""


def test_counts_of_this_process_and_of_its_workers_add_up() -> None:
    with tallying() as read:
        count(Counter.CALLS_DONE, 1, "rag")
        count(Counter.CALLS_DONE, 10, "judge")
        assert read() == {(Counter.CALLS_DONE, "rag"): 1, (Counter.CALLS_DONE, "judge"): 10}
        command = [sys.executable, "-c", WORKER]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "counted\n"
            ends = time.monotonic() + 30
            while read()[Counter.CALLS_DONE, "rag"] < 7 and time.monotonic() < ends:
                time.sleep(0.05)
            assert read() == {(Counter.CALLS_DONE, "rag"): 7, (Counter.CALLS_DONE, "judge"): 10}
            worker.communicate("\n")
    count(Counter.CALLS_DONE, 1, "rag")
    with tallying() as read:
        assert not read()
