"""Peak memory of many tasks with large payloads on the local runner: payloads are made lazily, from references.

python tests/benchmarks/tasks.py --tasks 1000000 --payload 10000
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from measure import MAXRSS_BYTES

from rankbeam.transforms.call import CallServices
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, batches_of
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, Steps, Subject, Task, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.reply import Reply, Tokens

_PIECES = 100


@dataclass(frozen=True)
class Long:
    """Work of one call with a long payload, of which an item is only the number.

    Attributes:
        payload: characters of a payload.
    """

    payload: int

    stage: ClassVar[str] = "judge"
    services: ClassVar[tuple[str, ...]] = ("model",)

    def steps(self, item: int) -> Steps[int]:
        """Make the payload when it is needed."""
        text = f"{item} ".ljust(self.payload, "x")
        (length,) = results_or_raise((yield [Call("model", content_key({"item": item}), json.dumps({"text": text}))]))
        return int(length)

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every reply is read alike
        """The number that was replied."""
        return json.loads(reply.answer)


@dataclass(frozen=True)
class Model:
    """A service of this process, which answers at once."""

    async def connect(self) -> "Model":
        """Nothing is to be connected."""
        return self

    async def close(self) -> None:
        """Nothing is open."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt alike
        """Answer with the length of what was asked."""
        await asyncio.sleep(0)
        return Reply(str(len(payload)), Tokens(len(payload) // 4, 0, 1))

    def read(self, answer: str) -> int:
        """The length."""
        return int(answer)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  tokens are not limited here
        """None is reserved."""
        return Tokens()


def main() -> None:
    """Do all tasks in one pipeline, and say what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--payload", type=int, default=10_000)
    parser.add_argument("--per-minute", type=float, default=600_000)
    options = parser.parse_args()
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="rankbeam-tasks-") as folder, spill.spilling():
        run(options.tasks, options.payload, options.per_minute, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES
    cpu_s = time.process_time() - began
    sys.stdout.write(
        f"{options.tasks:,} tasks of {options.payload:,} B: peak {peak / 1e6:,.0f} MB, {cpu_s:,.0f} CPU s\n"
    )


def run(tasks: int, payload: int, per_minute: float, folder: str) -> None:
    """The pipeline: tasks that are made, done and counted."""
    quota = {"pool": Quota(per_minute)}
    stage = Stage("judge", {"long": Long(payload)}, {"model": Model()}, {"model": "pool"}, quota, {})
    pieces = [range(first, tasks, _PIECES) for first in range(_PIECES)]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        summary = pipeline | "Summary" >> beam.Create([DatasetSummary()])
        elements = pipeline | "Pieces" >> beam.Create(pieces) | "Spread" >> beam.Reshuffle()
        batches = elements | "Tasks" >> beam.FlatMap(batches_in).with_output_types(TaskBatch)
        called = batches | CallServices(stage, Ledger(folder), summary)
        counted = called.answers | "Count" >> beam.combiners.Count.Globally()
        _ = counted | beam.Map(_check, tasks)


def batches_in(numbers: range) -> Iterator[TaskBatch]:
    """Some of the tasks."""
    tasks = (Task(content_key({"task": n}), "long", n, (Subject("judged", f"q{n}", 0, (0,)),)) for n in numbers)
    for batch in batches_of(tasks):
        yield "long", batch


def _check(count: int, tasks: int) -> None:
    if count != tasks:
        raise ValueError(f"{count:,} of {tasks:,} tasks have an answer")


if __name__ == "__main__":
    main()
