"""The branch of a plan that counts the calls of models that embed texts."""

from collections.abc import Iterator

import apache_beam as beam

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.embeddings import embed_stage, tasks_to_embed
from rankbeam.pipelines.run.rehearse import join_counts
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import TaskBatch, groups_in
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.judge.counting import Counted, counted_calls
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.call import Call


def count_texts(pipeline: beam.Pipeline, experiment: Experiment, dataset: Dataset, file: str) -> None:
    """Count the calls that embedding takes, in a file, for `rehearse.read_counted`."""
    _ = (
        tasks_to_embed(pipeline, experiment, dataset)
        | "CountTexts" >> beam.ParDo(CountTextsFn(embed_stage(experiment), experiment.ledger))
        | "TextsTogether" >> beam.combiners.ToList()
        | "JoinTexts" >> beam.Map(join_counts, None, "", file)
    )


class CountTextsFn(beam.DoFn):
    """Counts texts to embed, and those whose embedding the ledger has."""

    def __init__(self, stage: Stage, ledger: str) -> None:
        self._stage, self._folder = stage, ledger

    def setup(self) -> None:
        """Read the index of the ledger."""
        self._lookup = Ledger(self._folder).lookup()
        self._lookup.refresh()

    def process(self, element: TaskBatch) -> Iterator[Counted]:
        """Yield the counts of a batch of tasks."""
        name, batch = element
        tasks = [task for group in groups_in([batch]) for task in group]
        calls = (call for task in tasks for call in next(self._stage.works[name].steps(task.item)))
        yield counted_calls(calls, self._lookup, self._most_tokens)

    def _most_tokens(self, call: Call) -> int:
        return self._stage.services[call.service].most_tokens(call.payload).total
