"""Tasks for people, and the rows of a run's tables that make them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.corpus import histories
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.steps import step_named

Row = Mapping[str, Any]


@dataclass(frozen=True)
class LabelTask:
    """One decision to make, for one of the texts that its claim is of.

    `probability` is None where somebody chose the query. Tasks that an older release wrote have no question and no
    decisions: they are those of the step.
    """

    item_id: str
    step: str
    query_id: str
    query: str
    owner_hash: str | None
    position: int | None
    left_hash: str | None
    left_text: str | None
    right_hash: str
    right_text: str
    probability: float | None
    question: str | None = None
    decisions: tuple[str, ...] = ()
    doc_id: str | None = None
    history: str | None = None
    drawn_by: str | None = None

    @property
    def instruction(self) -> str:
        """The question to people."""
        return self.question or step_named(self.step).people_question

    @property
    def choices(self) -> tuple[str, ...]:
        """The words to choose from."""
        return tuple(self.decisions or step_named(self.step).decisions)


def with_histories(run: Results, tasks: Sequence[LabelTask]) -> list[LabelTask]:
    """The tasks with the earlier turns of their queries' conversations, wherever the query is shown."""
    known = dict(histories(run, {task.query_id for task in tasks}))
    return [replace(task, history=known.get(task.query_id) if task.query else None) for task in tasks]


def rows_of(
    run: Results, name: str, columns: Sequence[str], keys: Collection[str | None], by: str = "query_id"
) -> Iterator[Row]:
    """The rows of a table whose column `by` is one of the keys."""
    for batch in run.batches(name, columns):
        yield from chosen_rows(batch, by, keys).to_pylist()


def chosen_rows(batch: pa.RecordBatch, column: str, keys: Collection[str | None]) -> pa.RecordBatch:
    """The rows of a batch whose column is one of the keys."""
    return batch.filter(pc.is_in(batch[column], value_set=pa.array([key for key in keys if key], pa.string())))
