"""The pool of each query: relevant contexts that some configuration of a finished run retrieved."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.holes.grades import JudgeGrades, judge_grades
from rankbeam.pipelines.results.audit import Pair
from rankbeam.pipelines.results.corpus import corpus_texts
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.nuggets import NuggetPool
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.labels import text_hash

_LEAST_OF_PEOPLE, _LEAST_OF_JUDGE = 1, 2
"""The lowest relevant grades: a judge's 1 is on the subject, and does not answer."""


@dataclass(frozen=True)
class ContextPools:
    """The queries of a run with their relevant contexts.

    Attributes:
        pools: those of queries that have some.
        doc_ids: for each pool, by position of a context its documents.
        without: queries without a relevant context.
    """

    pools: tuple[NuggetPool, ...]
    doc_ids: Mapping[str, tuple[tuple[str, ...], ...]]
    without: tuple[str, ...]


def pools_of(run: Results, depth: int) -> ContextPools:
    """The relevant contexts of every query, from all configurations; grades of people come before those of a judge.

    Args:
        run: finished run, whose judge graded contexts (`ContextRelevance@k`), or whose documents people judged.
        depth: number of documents of each ranking whose judgements by people are used.

    Raises:
        InputError: neither people nor a judge graded anything that was retrieved.
    """
    by_people, texts = _by_people(run, depth)
    judge = judge_grades(run)
    if not by_people and not judge.by_text:
        problem = "has no contexts that people or a judge graded; add ContextRelevance@10 to the metrics"
        raise InputError(problem, path=run.output)
    known = _texts(run, {doc_id for (_, doc_id), grade in by_people.items() if grade >= _LEAST_OF_PEOPLE}, texts)
    relevant: defaultdict[str, dict[str, tuple[float, set[str]]]] = defaultdict(dict)
    for (query_id, doc_id), grade in by_people.items():
        if grade >= _LEAST_OF_PEOPLE and doc_id in known:
            _, documents = relevant[query_id].setdefault(text_hash(known[doc_id]), (grade, set()))
            documents.add(doc_id)
    for (query_id, digest), documents in _by_judge(judge, by_people):
        relevant[query_id].setdefault(digest, (judge.by_text[query_id, digest], documents))
    digests = {digest for of_query in relevant.values() for digest in of_query}
    by_digest = {text_hash(text): text for text in known.values()}
    by_digest |= {
        row["text_hash"]: row["text"]
        for row in _rows(run, "texts", ("text_hash", "text"))
        if row["text_hash"] in digests
    }
    queries = {row["query_id"]: row["text"] or "" for row in _rows(run, "query_metrics", ("query_id", "text"))}
    pooled = [
        _pool(query_id, queries[query_id], relevant[query_id], by_digest) for query_id in queries if relevant[query_id]
    ]
    return ContextPools(
        tuple(pool for pool, _ in pooled),
        {pool.query_id: documents for pool, documents in pooled},
        tuple(query_id for query_id in queries if not relevant[query_id]),
    )


def _pool(
    query_id: str, query: str, relevant: Mapping[str, tuple[float, set[str]]], texts: Mapping[str, str]
) -> tuple[NuggetPool, tuple[tuple[str, ...], ...]]:
    """The contexts with the highest grade first, those of one grade in the order of a hash: never by configuration."""
    order = sorted(relevant, key=lambda digest: (-relevant[digest][0], text_hash(f"{query_id} {digest}")))
    documents = tuple(tuple(sorted(relevant[digest][1])) for digest in order)
    return NuggetPool(query_id, query, tuple(texts[digest] for digest in order)), documents


def _by_people(run: Results, depth: int) -> tuple[dict[Pair, float], dict[str, str]]:
    """Grades of retrieved documents by people, and the texts of documents that the run stored."""
    grades: dict[Pair, float] = {}
    texts: dict[str, str] = {}
    for row in _rows(run, "rankings", ("query_id", "documents")):
        for document in row["documents"][:depth]:
            if document["grade"] is not None and document.get("grade_source") != LLM:
                grades[row["query_id"], document["doc_id"]] = document["grade"]
                if document.get("text") is not None:
                    texts[document["doc_id"]] = document["text"]
    return grades, texts


def _by_judge(judge: JudgeGrades, by_people: Mapping[Pair, float]) -> Iterator[tuple[Pair, set[str]]]:
    """The texts that the judge finds relevant, and of which people judged no document."""
    for (query_id, digest), grade in judge.by_text.items():
        documents = judge.places.get((query_id, digest), set())
        if grade >= _LEAST_OF_JUDGE and not any((query_id, doc_id) in by_people for doc_id in documents):
            yield (query_id, digest), documents


def _texts(run: Results, doc_ids: Collection[str], stored: Mapping[str, str]) -> dict[str, str]:
    """The texts of documents; those that are neither stored nor in the corpus are missing."""
    known = {doc_id: stored[doc_id] for doc_id in doc_ids if doc_id in stored}
    if len(known) < len(doc_ids):
        known |= {doc_id: text for doc_id, text in corpus_texts(run) if doc_id in doc_ids and doc_id not in known}
    return known


def _rows(run: Results, name: str, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for batch in run.batches(name, columns):
        yield from batch.to_pylist()
