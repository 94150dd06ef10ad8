"""Answers of applications: by bucket and source, as those that exist already."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.storage.batches import SourceRows
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.applications import ApplicationAnswer
from rankbeam.transforms.records.calls.outcomes import CallAnswer
from rankbeam.transforms.records.trajectories import rows_of
from rankbeam.transforms.retrieve.local import ROWS_AT_ONCE
from rankbeam.transforms.retrieve.replay import rankings_in


class CollectedAnswers(NamedTuple):
    """Answers and rankings of applications."""

    answers: beam.PCollection[SourceRows]
    """Per bucket and source batches of `columns.REPLAYED`."""
    rankings: beam.PCollection[SourceRows]
    """The same as `columns.RETRIEVED`; documents are null where a context has no id."""


@dataclass
class CollectAnswers(beam.PTransform):
    """Make batches of the answers of applications."""

    def expand(self, answers: beam.PCollection[CallAnswer]) -> Any:  # CollectedAnswers; Beam warns of named results
        rows = answers | "Collect" >> beam.ParDo(CollectAnswersFn()).with_output_types(SourceRows)
        return CollectedAnswers(rows, rows | "Rank" >> beam.Map(_ranked).with_output_types(SourceRows))


def is_application(answer: CallAnswer) -> bool:
    """Return whether an application has given an answer, and no retriever a ranking."""
    return isinstance(answer.value, ApplicationAnswer)


class CollectAnswersFn(beam.DoFn):
    """Collects answers, some at a time."""

    def start_bundle(self) -> None:
        """Start a bundle without answers."""
        self._rows: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)

    def process(self, element: CallAnswer) -> Iterator[SourceRows]:
        """Add an answer for all its subjects; yield full batches."""
        for subject in element.subjects:
            for source in subject.positions:
                rows = self._rows[subject.bucket, source]
                rows.append(_row(subject.query_id, element.value))
                if len(rows) >= ROWS_AT_ONCE:
                    yield _batch((subject.bucket, source), self._rows.pop((subject.bucket, source)))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield the remaining batches."""
        for key, rows in self._rows.items():
            yield GlobalWindows.windowed_value(_batch(key, rows))


def _row(query_id: str, answer: ApplicationAnswer) -> dict[str, Any]:
    contexts = None if answer.contexts is None else [{"doc_id": name, "text": text} for name, text in answer.contexts]
    used = answer.consumption
    return {
        "query_id": query_id,
        "answer": answer.text,
        "contexts": contexts,
        "input_tokens": used.tokens.input,
        "cached_tokens": used.tokens.cached,
        "output_tokens": used.tokens.output,
        "seconds": used.seconds,
        "first_token_s": used.first_token_s,
        "steps": rows_of(answer.steps),
        "citations": answer.citations,
    }


def _batch(key: tuple[int, int], rows: list[dict[str, Any]]) -> SourceRows:
    bucket, source = key
    return bucket, (source, pa.RecordBatch.from_pylist(rows, schema=columns.REPLAYED))


def _ranked(element: SourceRows) -> SourceRows:
    bucket, (source, batch) = element
    return bucket, (source, rankings_in(batch))
