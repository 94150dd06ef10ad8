"""Collect nuggets from a finished run: forecast, calls, and a file of reference answers for people to review."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.goldens.stages import run_alone
from rankbeam.pipelines.holes import JudgeGrades, judge_grades
from rankbeam.pipelines.plan.counting import counted_tasks
from rankbeam.pipelines.plan.limits import refuse_cost
from rankbeam.pipelines.plan.pools import PoolPlan, lines_of, pool_plans, total_cost
from rankbeam.pipelines.plan.simulation import LEAST, MOST
from rankbeam.pipelines.results.audit import Pair
from rankbeam.pipelines.results.corpus import corpus_texts, stored_texts, texts_of_queries
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.answers import judge_of
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.formats import texts
from rankbeam.transforms.clients.formats.references import read_references, reference_rows
from rankbeam.transforms.clients.formats.syntax.json_lines import numbered_lines, parse_line
from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.judge.nuggets import STAGE, CollectNuggets, NuggetPool, PooledNuggets, as_reference
from rankbeam.transforms.records.errors import InputError, pluralize
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.labels import text_hash

FOLDER, FILE = "nuggets", "answers.jsonl"
Row = Mapping[str, Any]
_LEAST_OF_PEOPLE, _LEAST_OF_JUDGE = 1, 2
"""The lowest relevant grades: a judge's 1 means on the subject, but without an answer."""


@dataclass(frozen=True)
class ContextPools:
    """A run's queries with their relevant contexts."""

    pools: tuple[NuggetPool, ...]
    doc_ids: Mapping[str, tuple[tuple[str, ...], ...]]  # each pool's documents, by position of the context
    without: tuple[str, ...]  # queries without a relevant context


@dataclass(frozen=True)
class PooledCollection:
    """Nuggets to collect."""

    experiment: Experiment
    run: Results  # finished run whose contexts are pooled
    path: str  # the file to write
    pools: ContextPools
    references: Mapping[str, Row]  # the dataset's reference answers, by query
    finished: Mapping[str, Row]  # rows in the file that already have nuggets, by query
    todo: tuple[NuggetPool, ...]  # pools of queries whose nuggets are not known

    @property
    def work(self) -> CollectNuggets:
        assert self.experiment.judging is not None  # noqa: S101  `collection_of` refuses others
        return CollectNuggets(judge_of(self.experiment, self.experiment.judging))


@dataclass(frozen=True)
class CollectedNuggets:
    """Result of collecting nuggets."""

    path: str
    queries: int
    nuggets: int
    finished: int
    without: int
    empty: int
    dropped: int
    failures: Mapping[str, str]
    calls: int
    hits: int
    warnings: tuple[str, ...]

    def as_text(self) -> str:
        parts = [f"{self.path}: {pluralize(self.nuggets, 'nugget')} of {pluralize(self.queries, 'query', 'queries')}"]
        finished = pluralize(self.finished, "query", "queries")
        parts += [f"{finished} with nuggets already, or unanswerable"] if self.finished else []
        parts += [f"{self.without:,} have no relevant context, and so no nuggets"] if self.without else []
        parts += [f"for {self.empty:,} the contexts contain no nugget"] if self.empty else []
        parts += [f"{pluralize(self.dropped, 'nugget')} left out of full or newer lists"] if self.dropped else []
        return "; ".join([*parts, f"{pluralize(self.calls, 'call')}, {self.hits:,} more from the ledger"])


def collection_of(experiment: Experiment, run_id: str | None, depth: int) -> PooledCollection:
    """Check everything that can be checked before paying for anything."""
    if experiment.judging is None:
        raise InputError("names no judge; nuggets are collected by the model of `judge: {service: …}`")
    if experiment.dataset.queries is None:
        raise InputError("names no dataset.queries, so it is unknown which question the contexts answer")
    if is_table(experiment.output):
        raise InputError("nuggets are collected from runs in folders only", path=experiment.output)
    run = find_run(experiment.output, run_id, experiment.name)
    target = files.join(experiment.output, FOLDER, FILE)
    pools = pools_of(run, depth)
    references = _references(experiment)
    finished = {query_id: row for query_id, row in rows_of(target).items() if row.get("nuggets")}
    known = {*finished, *(query_id for query_id, row in references.items() if _is_done(row))}
    todo = tuple(pool for pool in pools.pools if pool.query_id not in known)
    return PooledCollection(experiment, run, target, pools, references, finished, todo)


def forecast(collection: PooledCollection) -> list[PoolPlan]:
    """The calls, tokens and cost of the remaining work; makes no call."""
    items = {pool.query_id: pool for pool in collection.todo}
    counted = counted_tasks(collection.work, items, collection.experiment.ledger, LEAST, MOST)
    return pool_plans(counted.with_totals(), collection.experiment.calls)


def forecast_text(collection: PooledCollection, plans: Sequence[PoolPlan]) -> str:
    contexts = sum(len(pool.contexts) for pool in collection.todo)
    head = f"{pluralize(len(collection.todo), 'query', 'queries')} with {pluralize(contexts, 'relevant context')}"
    return "\n".join([head, *(line for plan in plans for line in lines_of(plan))] if plans else [head, "no calls"])


def refuse_above_budget(experiment: Experiment, plans: Sequence[PoolPlan], path: str) -> None:
    """Refuse calls whose lowest forecast is above `max_cost`."""
    refuse_cost(experiment.calls.max_cost, total_cost(plans), experiment.text, path)


def collect(collection: PooledCollection, options: PipelineOptions) -> CollectedNuggets:
    """Collect nuggets and write the file; a query whose call failed is left for the next run."""
    experiment, work = collection.experiment, collection.work
    items = [(pool.query_id, pool) for pool in collection.todo]
    stage = experiment.calls.stage(STAGE, {STAGE: work})
    results = run_alone(stage, experiment.calls, experiment.output, items, PooledNuggets, options, batches=True)
    records = {record.query_id: record for record in results.records}
    lacking = {pool.query_id: "no answer" for pool in collection.todo if pool.query_id not in records}
    failures = lacking | {name: record.problem for name, record in records.items() if record.problem is not None}
    _write(collection, records)
    with_nuggets = [record for record in records.values() if record.nuggets]
    return CollectedNuggets(
        collection.path,
        len(with_nuggets),
        sum(len(record.nuggets) for record in with_nuggets),
        len(collection.pools.pools) - len(collection.todo),
        len(collection.pools.without),
        sum(record.problem is None and not record.nuggets for record in records.values()),
        sum(record.dropped for record in records.values()),
        failures,
        sum(use.calls for use in results.usage),
        sum(use.ledger_hits for use in results.usage),
        tuple(results.warnings),
    )


def _write(collection: PooledCollection, records: Mapping[str, PooledNuggets]) -> None:
    """Write the dataset's reference answers with the nuggets; rows that already had nuggets stay unchanged."""
    new = {
        pool.query_id: as_reference(pool, records[pool.query_id], collection.pools.doc_ids[pool.query_id])
        for pool in collection.todo
        if pool.query_id in records and records[pool.query_id].nuggets
    }
    rows = []
    for query_id in sorted({*collection.references, *collection.finished, *new}):
        row = {"query_id": query_id, **collection.references.get(query_id, {}), **new.get(query_id, {})}
        rows.append(collection.finished.get(query_id, row))
    whole_files.put(collection.path, json_lines(rows))


def _references(experiment: Experiment) -> dict[str, Row]:
    """The dataset's reference answers by query, without empty fields."""
    if experiment.dataset.references is None:
        return {}
    if experiment.dataset.references.path is None:
        name = experiment.dataset.references.attribute
        return {
            entry.id: {"answer": entry.attributes[name]}
            for _, entry in texts.entries_in(experiment.dataset.queries or "", "queries")
            if entry.attributes.get(name, "").strip()
        }
    rows = reference_rows(experiment.dataset.references.path)
    return {
        row["query_id"]: {key: value for key, value in row["reference"].items() if value is not None} for row in rows
    }


def _is_done(reference: Row) -> bool:
    return bool(reference.get("nuggets")) or reference.get("answerable") is False


def rows_of(path: str) -> dict[str, Row]:
    """The rows of a file that was written earlier, checked like `dataset.answers`; empty if there is no file."""
    if not files.exists(path):
        return {}
    for _ in read_references(path):
        pass
    rows = (parse_line(path, line, text) for line, text in numbered_lines(path))
    return {str(row["query_id"]): row for row in rows}


def pools_of(run: Results, depth: int) -> ContextPools:
    """The relevant contexts of every query, from all configurations; people's grades take precedence over a judge's.

    People's judgements count for the first `depth` documents of each ranking.
    """
    by_people, stored = _by_people(run, depth)
    judge = judge_grades(run)
    if not by_people and not judge.by_text:
        problem = "has no contexts that people or a judge graded; add ContextRelevance@10 to the metrics"
        raise InputError(problem, path=run.output)
    useful = {pair: grade for pair, grade in by_people.items() if grade >= _LEAST_OF_PEOPLE}
    corpus = _corpus(run, {doc_id for query_id, doc_id in useful if (query_id, doc_id) not in stored})
    relevant: defaultdict[str, dict[str, tuple[float, set[str]]]] = defaultdict(dict)
    by_digest: dict[str, str] = {}
    for (query_id, doc_id), grade in useful.items():
        for text in stored.get((query_id, doc_id), {}) or filter(None, [corpus.get(doc_id)]):
            digest = text_hash(text)
            by_digest[digest] = text
            _, documents = relevant[query_id].setdefault(digest, (grade, set()))
            documents.add(doc_id)
    for (query_id, digest), documents in _by_judge(judge, by_people):
        relevant[query_id].setdefault(digest, (judge.by_text[query_id, digest], documents))
    digests = {digest for query_texts in relevant.values() for digest in query_texts}
    by_digest |= stored_texts(run, digests)
    queries = texts_of_queries(run)
    pooled = [
        _pool(query_id, text or "", relevant[query_id], by_digest)
        for query_id, text in queries.items()
        if relevant[query_id]
    ]
    return ContextPools(
        tuple(pool for pool, _ in pooled),
        {pool.query_id: documents for pool, documents in pooled},
        tuple(query_id for query_id in queries if not relevant[query_id]),
    )


def _pool(
    query_id: str, query: str, relevant: Mapping[str, tuple[float, set[str]]], texts: Mapping[str, str]
) -> tuple[NuggetPool, tuple[tuple[str, ...], ...]]:
    """The contexts, highest grade first, and in the order of a hash within a grade: never by configuration."""
    order = sorted(relevant, key=lambda digest: (-relevant[digest][0], text_hash(f"{query_id} {digest}")))
    documents = tuple(tuple(sorted(relevant[digest][1])) for digest in order)
    return NuggetPool(query_id, query, tuple(texts[digest] for digest in order)), documents


def _by_people(run: Results, depth: int) -> tuple[dict[Pair, float], Mapping[Pair, Mapping[str, None]]]:
    """People's grades of retrieved documents, and the stored texts of relevant ones: passages for the query."""
    grades: dict[Pair, float] = {}
    texts: defaultdict[Pair, dict[str, None]] = defaultdict(dict)
    for row in run.stream("rankings", ("query_id", "documents")):
        for document in row["documents"][:depth]:
            if document["grade"] is not None and document.get("grade_source") != LLM:
                pair = row["query_id"], document["doc_id"]
                grades[pair] = document["grade"]
                if document.get("text") is not None and document["grade"] >= _LEAST_OF_PEOPLE:
                    texts[pair][document["text"]] = None
    return grades, texts


def _by_judge(judge: JudgeGrades, by_people: Mapping[Pair, float]) -> Iterator[tuple[Pair, set[str]]]:
    """The texts that the judge finds relevant, without documents that people judged."""
    for (query_id, digest), grade in judge.by_text.items():
        documents = judge.places.get((query_id, digest), set())
        if grade >= _LEAST_OF_JUDGE and not any((query_id, doc_id) in by_people for doc_id in documents):
            yield (query_id, digest), documents


def _corpus(run: Results, doc_ids: Collection[str]) -> dict[str, str]:
    return {doc_id: text for doc_id, text in corpus_texts(run) if doc_id in doc_ids} if doc_ids else {}
