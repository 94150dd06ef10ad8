"""Read queries, judgements and runs, and group all rows of a query in one bucket.

The bucket is a hash of the query's id, so rows in any order, from any number of files, end up in the same bucket.
Elements are Arrow batches: one element per row would cost Beam more than all other work.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import overlap, rows, sources, texts
from rankbeam.transforms.clients.formats.evidence import read_evidence, refuse_misquoted
from rankbeam.transforms.clients.formats.judged import Conflict, judge
from rankbeam.transforms.clients.formats.pieces import Reader
from rankbeam.transforms.clients.formats.references import join_references, read_references
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed
from rankbeam.transforms.clients.workers import Workers
from rankbeam.transforms.merge import MergeFn
from rankbeam.transforms.read_files import ReadFiles
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.dataset import ClusterSummary, DatasetSummary, References
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.holes import Holes

batches.register()


class Dataset(NamedTuple):
    """The outputs of `ReadDataset`."""

    judged: beam.PCollection[Bucketed]  # one batch of `columns.JUDGED_QUERIES` per bucket
    summary: beam.PCollection[DatasetSummary]
    """One element. A stage with this side input only begins once the whole dataset is checked."""


@dataclass
class ReadDataset(beam.PTransform):
    """Read judgements, and queries if there are any, and join them."""

    qrels: str | None
    queries: str | None  # None for the judged queries, without text
    buckets: int
    slices: tuple[str, ...] = ()
    highest: tuple[float, str] = (math.inf, "")
    compared: tuple[tuple[str, str], ...] = ()
    references: References | None = None
    everyone: bool = False
    spans: bool = False
    subtopics: bool = False
    cluster: str | None = None  # the attribute that names clusters; None without clusters
    holes: Holes | None = None  # rules for filling holes in the judgements; None to leave them
    max_rel: float = math.inf  # the lowest grade as which some metric counts higher grades
    quoted: str | None = None  # the corpus that the evidence quotes; None if quotes are not compared

    def expand(self, pbegin: beam.pvalue.PBegin) -> Any:  # a Dataset; Beam warns about named results
        parts = {name: pbegin | f"Read{name.capitalize()}" >> reading for name, reading in self._files()}
        joined = (
            parts
            | "GroupByBucket" >> beam.CoGroupByKey()
            | "JudgeQueries"
            >> beam.ParDo(JudgeQueriesFn(self))
            .with_output_types(Bucketed, summary=DatasetSummary)
            .with_outputs("summary", main="judged")
        )
        summary = (
            joined.summary
            | "Summarise" >> beam.CombineGlobally(MergeFn(DatasetSummary)).without_defaults()
            | "Check" >> beam.Map(check_dataset, self)
        )
        return Dataset(joined.judged, summary)

    def _files(self) -> Iterator[tuple[str, "ReadFiles"]]:
        if self.qrels is not None:
            role = "evidence" if self.spans else "subtopic_qrels" if self.subtopics else "qrels"
            schema = columns.SUBTOPIC_QRELS if self.subtopics else columns.QRELS
            yield "qrels", ReadFiles(self.qrels, role, self.read_judgements, schema, self.buckets)
        if self.queries is not None:
            yield "queries", ReadFiles(self.queries, "queries", texts.read_queries, columns.QUERIES, self.buckets)
        if self.references is not None and self.references.path is not None:
            path = self.references.path
            yield "references", ReadFiles(path, "answers", read_references, columns.REFERENCES, self.buckets)

    @property
    def read_judgements(self) -> Reader:
        return read_evidence if self.spans else rows.read_subtopic_qrels if self.subtopics else rows.read_qrels


class JudgeQueriesFn(beam.DoFn):
    """Joins the queries and the judgements of buckets, a few at once."""

    def __init__(self, dataset: ReadDataset) -> None:
        self._dataset = dataset

    def start_bundle(self) -> None:
        self._workers: Workers[tuple[int, pa.RecordBatch, DatasetSummary]] = Workers()

    def process(self, element: tuple[int, dict[str, Iterable[pa.RecordBatch]]]) -> Iterator[object]:
        """Begin to join a bucket; yield the judged queries, if any, and the summary of an earlier bucket."""
        bucket, parts = element
        batches = {name: list(part) for name, part in parts.items()}
        for done in self._workers.submit(self._judge, bucket, batches):
            yield from self._outputs(*done)

    def finish_bundle(self) -> Iterator[object]:
        for output in chain.from_iterable(self._outputs(*done) for done in self._workers.finish()):
            if isinstance(output, beam.pvalue.TaggedOutput):
                yield beam.pvalue.TaggedOutput(output.tag, GlobalWindows.windowed_value(output.value))
            else:
                yield GlobalWindows.windowed_value(output)

    def _judge(self, bucket: int, parts: dict[str, list[pa.RecordBatch]]) -> tuple[int, pa.RecordBatch, DatasetSummary]:
        dataset = self._dataset
        try:
            queries, summary = judge(
                parts.get("queries"),
                parts.get("qrels", ()),
                dataset.highest,
                everyone=dataset.everyone,
                spans=dataset.spans,
                subtopics=dataset.subtopics,
                max_rel=dataset.max_rel,
            )
            if dataset.references is not None:
                queries, summary = join_references(dataset.references, queries, parts, summary)
            summary = replace(summary, clusters=ClusterSummary.of(queries, dataset.cluster))
        except Conflict as conflict:
            if conflict.are_queries:
                raise conflict.located(dataset.queries or "", texts.read_queries) from None
            raise conflict.located(dataset.qrels or "", dataset.read_judgements) from None
        return bucket, queries, summary

    def _outputs(self, bucket: int, judged: pa.RecordBatch, summary: DatasetSummary) -> Iterator[object]:
        count(Counter.JUDGED_QUERIES, judged.num_rows)
        yield beam.pvalue.TaggedOutput("summary", summary)
        if judged.num_rows:
            yield bucket, judged


def check_dataset(summary: DatasetSummary, dataset: ReadDataset) -> DatasetSummary:
    """Check that a dataset can be evaluated; return its summary."""
    queries, qrels = (None if path is None else shown(path) for path in (dataset.queries, dataset.qrels))
    summary.check(queries, qrels, dataset.slices, dataset.references, dataset.cluster, dataset.holes)
    if dataset.qrels is None:
        return summary
    for path in [] if dataset.holes is None else sources.expand(dataset.qrels):
        rows.refuse_judge_lines(path)  # a judge must not audit itself
    if not dataset.spans:
        overlap.refuse_disjoint(dataset.qrels, dataset.compared)
    elif dataset.quoted is not None:
        refuse_misquoted(dataset.qrels, dataset.quoted)
    return summary


def of_a_judge(qrels: str) -> Iterator[str]:
    """A warning about a judge's grades in the file."""
    count = sum(map(rows.count_judge_lines, sources.expand(qrels)))
    if count:
        grades = pluralize(count, "grade")
        yield f"{shown(qrels)} has {grades} from a judge (source llm), not from people"


def above_max_rel(summary: DatasetSummary, max_rel: float, metric: str) -> Iterator[str]:
    """A warning about grades that a metric lowers."""
    if summary.above_max_rel:
        what = pluralize(summary.above_max_rel, "judgement has a grade", "judgements have grades")
        advice = f"set its option max_rel={summary.highest_grade:g} (60 at most), or lower the grades"
        yield f"{what} above {max_rel:g}, which {metric} counts as {max_rel:g}; {advice}"
