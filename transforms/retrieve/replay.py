"""Join existing answers with their queries.

files ─► rows by bucket ─┐            ┌─► answers, and rankings if every context has an id
                         ├─► replay ──┼─► failures: queries without an answer
dataset ─► queries ──────┘            └─► warnings for users, counted over all buckets
"""

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats.judged import Conflict, repeated_id
from rankbeam.transforms.clients.formats.replay import ReplayReader
from rankbeam.transforms.clients.retrievers.replay import Replay
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import JUDGED, Bucketed, SourceRows
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.merge import MergeFn
from rankbeam.transforms.read_files import ReadSources
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.calls.steps import CallAnswer
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import Failure, FailureKind, pluralize, shortened
from rankbeam.transforms.records.trajectories import AgentSteps, ApplicationAnswer, documents_of, in_rows, rows_of
from rankbeam.transforms.retrieve.local import ROWS_AT_ONCE, BucketFailures

STAGE = "replay"
_ROWS, _RANKINGS, _FAILURES, _TALLIES = "rows", "rankings", "failures", "tallies"
_CONTEXTS = "contexts"

batches.register()


@dataclass(frozen=True)
class ReplayTally:
    """Counts of a source's answers, for warnings."""

    foreign: int = 0
    example: str | None = None  # the smallest id of a query that is not evaluated
    without_contexts: int = 0
    without_ids: int = 0
    empty_samples: int = 0
    sampled: int = 0

    def merge(self, other: "ReplayTally") -> "ReplayTally":
        return ReplayTally(
            self.foreign + other.foreign,
            min((entry for entry in (self.example, other.example) if entry is not None), default=None),
            self.without_contexts + other.without_contexts,
            self.without_ids + other.without_ids,
            self.empty_samples + other.empty_samples,
            self.sampled + other.sampled,
        )

    def warnings(self, replay: Replay, *, is_ranked: bool) -> Iterator[str]:
        """Warnings for users; rankings only matter if there are metrics of rankings."""
        if self.foreign:
            query = shortened(repr(self.example))
            problem = f"{pluralize(self.foreign, 'answer')} to queries that are not evaluated, such as {query}"
            yield f"{replay.shown}: {problem}; left out"
        if self.empty_samples:
            yield f"{replay.shown}: {pluralize(self.empty_samples, 'empty answer')} to queries with others left out"
        if self.sampled and is_ranked:
            choice = "their rankings are those of one answer, the first by its text"
            yield f"{replay.shown}: {pluralize(self.sampled, 'query has', 'queries have')} several answers; {choice}"
        if self.without_contexts:
            missing = ", and metrics of rankings are missing" if is_ranked else ""
            problem = f"metrics that need contexts are undefined there{missing}"
            yield f"{replay.shown}: {pluralize(self.without_contexts, 'answer')} without a list of contexts; {problem}"
        if self.without_ids and is_ranked:
            problem = "metrics of rankings are missing there; give every context a doc_id"
            yield f"{replay.shown}: {pluralize(self.without_ids, 'answer')} with contexts without doc_id; {problem}"


@dataclass
class ReplayAnswers(beam.PTransform):
    """Read answers that exist already: answers, rankings, failures and warnings.

    For the evaluated queries, answers are a batch of `columns.REPLAYED` per bucket and source, and rankings a batch of
    `columns.RETRIEVED`; a failure belongs to a query without an answer.
    """

    replays: Mapping[int, Replay]
    buckets: int
    is_ranked: bool = True  # whether there are metrics of rankings

    def expand(self, judged: beam.PCollection[Bucketed]) -> Any:  # Beam warns about tuples
        shared = _sharing(self.replays).values()
        readers = {sources[0]: _reader([self.replays[source] for source in sources]) for sources in shared}
        paths = {source: self.replays[source].path for source in readers}
        answers = ReadSources(paths, readers, "replay", columns.REPLAYED, self.buckets)
        outputs = (
            {JUDGED: judged, _ROWS: judged.pipeline | "ReadAnswers" >> answers}
            | "GroupByBucket" >> beam.CoGroupByKey()
            | "Replay"
            >> beam.FlatMap(replay_bucket, self.replays)
            .with_output_types(
                SourceRows, rankings=SourceRows, failures=BucketFailures, tallies=tuple[int, ReplayTally]
            )
            .with_outputs(_RANKINGS, _FAILURES, _TALLIES, main="answers")
        )
        warnings = (
            outputs[_TALLIES]
            | "Tally" >> beam.CombinePerKey(MergeFn(ReplayTally))
            | "Warn" >> beam.FlatMap(tally_warnings, self.replays, self.is_ranked)
        )
        return outputs.answers, outputs[_RANKINGS], outputs[_FAILURES], warnings


def _sharing(replays: Mapping[int, Replay]) -> dict[Any, list[int]]:
    """The sources whose answers are in one file; its rows are read once, for the first of them."""
    return grouped((replay.file, source) for source, replay in replays.items())


def _reader(replays: Sequence[Replay]) -> ReplayReader:
    configs = {replay.config for replay in replays if replay.config is not None}
    reads_all = any(replay.config is None for replay in replays)
    return ReplayReader(None if reads_all else configs, replays[0].columns)


def replay_bucket(element: tuple[int, Mapping[str, Iterable[Any]]], replays: Mapping[int, Replay]) -> Iterator[object]:
    """Join the answers and the queries of a bucket."""
    bucket, parts = element
    queries = pa.concat_arrays([pa.array([], pa.string()), *(batch["query_id"] for batch in parts[JUDGED])])
    answers = grouped(parts[_ROWS])
    sharing = _sharing(replays)
    for source, replay in replays.items():
        rows = answers.get(sharing[replay.file][0], [])
        if replay.config is not None:
            rows = [batch.filter(pc.equal(batch["config"], replay.config)) for batch in rows]
        try:
            known, lacking, empty, tally = match_answers(queries, rows, keeps_samples=replay.keeps_samples)
        except Conflict as conflict:
            several = "; if several systems gave them, name one: answers: {config: …}, and the key that"
            several += " holds their names, if it is another one: columns: {config: KEY}"
            raise conflict.located(replay.path, replay.reader, several if replay.config is None else "") from None
        count(Counter.FAILURES, len(lacking) + len(empty))
        yield bucket, (source, known)
        yield beam.pvalue.TaggedOutput(_RANKINGS, (bucket, (source, rankings_in(_first(known)))))
        yield beam.pvalue.TaggedOutput(_TALLIES, (source, tally))
        problems = [(query_id, "no answer") for query_id in lacking] + [
            (query_id, "an empty answer") for query_id in empty
        ]
        for query_id, lack in problems:
            failure = Failure(STAGE, FailureKind.NOT_FOUND, query_id, 0, f"{replay.shown} has {lack} to the query")
            yield beam.pvalue.TaggedOutput(_FAILURES, (bucket, (source, failure)))


def match_answers(
    queries: pa.StringArray, rows: Iterable[pa.RecordBatch], *, keeps_samples: bool = False
) -> tuple[pa.RecordBatch, list[str], list[str], ReplayTally]:
    """The answers to the queries, the queries without a row, and the queries with an empty answer."""
    table = pa.concat_batches([pa.RecordBatch.from_pylist([], columns.REPLAYED), *rows])
    name = repeated_id(table["query_id"].filter(table["answer"].is_valid()))
    if name is not None and not keeps_samples:
        advice = "keep one, or take all as samples: answers: {samples: keep}"
        raise Conflict(f"query {shortened(repr(name))} has two answers", {"query_id": name}, advice)
    is_known = pc.is_in(table["query_id"], value_set=queries)
    foreign = table["query_id"].filter(pc.invert(is_known)).to_pylist()
    known = table.filter(is_known)
    lacking = queries.filter(pc.invert(pc.is_in(queries, value_set=known["query_id"]))).to_pylist()
    are_empty = known["query_id"].filter(known["answer"].is_null())
    known = known.filter(known["answer"].is_valid())
    have_others = pc.is_in(are_empty, value_set=known["query_id"])
    empty = are_empty.filter(pc.invert(have_others)).unique().to_pylist()
    known, sampled = (known, 0) if name is None else _by_text(known)
    is_unranked = rankings_in(known)["documents"].is_null()
    unknown = pc.sum(pc.and_(known["contexts"].is_null(), is_unranked)).as_py() or 0
    without_ids = is_unranked.true_count - unknown
    return (
        known,
        lacking,
        empty,
        ReplayTally(len(foreign), min(foreign, default=None), unknown, without_ids, have_others.true_count, sampled),
    )


def _by_text(known: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
    """The answers in an order that does not depend on the runner, and the number of queries with several answers."""
    rows = sorted(known.to_pylist(), key=lambda row: (row["query_id"], row["answer"], repr(row)))
    counts = Tally(row["query_id"] for row in rows)
    return pa.RecordBatch.from_pylist(rows, schema=known.schema), sum(count > 1 for count in counts.values())


def _first(known: pa.RecordBatch) -> pa.RecordBatch:
    places = {query_id: place for place, query_id in reversed([*enumerate(known["query_id"].to_pylist())])}
    return known.take(pa.array(sorted(places.values()), pa.int64()))


def rankings_in(known: pa.RecordBatch) -> pa.RecordBatch:
    """Documents of all an agent's steps as `columns.RETRIEVED`; without any, the contexts, if all have ids."""
    rows = [
        {"query_id": row["query_id"], "documents": _documents(row["contexts"], in_rows(row["steps"]))}
        for row in known.select(["query_id", "contexts", "steps"]).to_pylist()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED)


def _documents(contexts: list[dict[str, Any]] | None, steps: AgentSteps | None) -> list[dict[str, Any]] | None:
    retrieved = documents_of(steps)
    if retrieved or (retrieved is not None and not contexts):
        texts = {context["doc_id"]: context["text"] for context in contexts or ()}
        return [{"doc_id": doc_id, "score": None, "text": texts.get(doc_id)} for doc_id in retrieved]
    if contexts is None or any(context["doc_id"] is None for context in contexts):
        return None
    return [{"doc_id": context["doc_id"], "score": None, "text": context["text"]} for context in contexts]


def tally_warnings(element: tuple[int, ReplayTally], replays: Mapping[int, Replay], is_ranked: bool) -> Iterator[str]:
    source, tally = element
    yield from tally.warnings(replays[source], is_ranked=is_ranked)


def is_application(answer: CallAnswer) -> bool:
    """Return whether an answer is from an application, and not a retriever's ranking."""
    return isinstance(answer.value, ApplicationAnswer)


class CollectAnswersFn(beam.DoFn):
    """Collects answers of applications in batches of `columns.REPLAYED`."""

    def start_bundle(self) -> None:
        self._rows: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)

    def process(self, element: CallAnswer) -> Iterator[SourceRows]:
        for subject in element.subjects:
            for source in subject.positions:
                rows = self._rows[subject.bucket, source]
                rows.append(_row(subject.query_id, element.value))
                if len(rows) >= ROWS_AT_ONCE:
                    yield _batch((subject.bucket, source), self._rows.pop((subject.bucket, source)))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for key, rows in self._rows.items():
            yield GlobalWindows.windowed_value(_batch(key, rows))


def _row(query_id: str, answer: ApplicationAnswer) -> dict[str, Any]:
    contexts = None if answer.contexts is None else [{"doc_id": name, "text": text} for name, text in answer.contexts]
    used = answer.consumption
    return {
        "query_id": query_id,
        "answer": answer.text,
        "contexts": contexts,
        **used.tokens.by_column(),
        "seconds": used.seconds,
        "first_token_s": used.first_token_s,
        "attempts": used.attempts,
        "steps": rows_of(answer.steps),
        "citations": answer.citations,
    }


def _batch(key: tuple[int, int], rows: list[dict[str, Any]]) -> SourceRows:
    bucket, source = key
    return bucket, (source, pa.RecordBatch.from_pylist(rows, schema=columns.REPLAYED))


def ranked_answers(element: SourceRows) -> SourceRows:
    """The answers as `columns.RETRIEVED`; documents are null if a context has no id."""
    bucket, (source, batch) = element
    return bucket, (source, rankings_in(batch))


def count_parts(element: CallAnswer) -> Iterator[tuple[tuple[int, str], int]]:
    """The number of an answer's contexts by source, if they are known, and 1 if it ended early."""
    answer: ApplicationAnswer = element.value
    for source in (source for subject in element.subjects for source in subject.positions):
        if answer.contexts is not None:
            yield (source, _CONTEXTS), len(answer.contexts)
        if answer.cut is not None:
            yield (source, answer.cut), 1


def part_warnings(
    element: tuple[tuple[int, str], int], names: Mapping[int, str], without_contexts: Mapping[int, str]
) -> Iterator[str]:
    """The warnings of sources whose answers all lack contexts, or some of whose answers ended early."""
    (source, part), total = element
    if part != _CONTEXTS:
        ended = f"{pluralize(total, 'answer')} ended early (finish reason: {part})"
        yield f"{names[source]}: {ended}; judges and metrics take what there is as the whole answer"
    elif not total and source in without_contexts:
        yield without_contexts[source]
