"""Search all passages: for the difficulty of a question, and for other documents that may answer it, to be graded.

A pool holds the documents that several retrievers return for a question, best first, to be graded. Embeddings and
rankings of services are requested beforehand.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.retrievers.base import (
    RemoteRetriever,
    Retrieve,
    Retriever,
    RetrieverParameters,
    payload_of,
)
from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.clients.search.analysis import STOP_WORDS
from rankbeam.transforms.goldens.asking import FINAL, AskingWork, ParsedReply
from rankbeam.transforms.goldens.records.items import PooledPassages, PoolGrade, SourceSpan, WrittenItem
from rankbeam.transforms.kernels.search.words import has_pairs
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.queries import Query
from rankbeam.transforms.records.reply import Reply

STAGE = "grade"


@dataclass(frozen=True)
class GradingPool:
    """A question and the passages to grade for it."""

    item_id: str
    question: str
    passages: tuple[SourceSpan, ...]
    rank: int | None = None  # worst rank of the question's own documents; None if bm25 misses one


@dataclass(frozen=True)
class GradePassages(AskingWork):
    """Grade passages for a question; a `Work` whose items are `GradingPool`s."""

    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> Sequence[str]:
        return [self.asking.checker.name]

    def steps(self, item: GradingPool) -> Steps[PooledPassages]:
        """Grade all passages; a passage whose call fails has no grade."""
        calls = [
            self.asking.call("grade", {"query": item.question, "context": passage.text}) for passage in item.passages
        ]
        outcomes = yield calls
        grades = (_pool_grade(passage, outcome) for passage, outcome in zip(item.passages, outcomes, strict=True))
        spent = (outcome.call for outcome in outcomes if isinstance(outcome, ParsedReply))
        return PooledPassages(item.item_id, tuple(grades), tuple(spent))


def _pool_grade(passage: SourceSpan, outcome: Any) -> PoolGrade:
    if isinstance(outcome, CallError):
        failure = None if outcome.kind in FINAL else outcome.kind
        return PoolGrade(passage.id, passage.doc_id, None, outcome.message, failure)
    return PoolGrade(passage.id, passage.doc_id, outcome.value.grade, outcome.value.reason)


_PASSAGES = 1000  # depth of a ranking: enough for a hundred documents


@dataclass(frozen=True)
class PoolRetriever:
    """A retriever for pools."""

    name: str
    kind: str
    parameters: RetrieverParameters
    embedder: Embed | None = None
    pool: str | None = None

    @property
    def remote(self) -> RemoteRetriever | None:
        return self.parameters if isinstance(self.parameters, RemoteRetriever) else None


def interleaved(rankings: Sequence[Sequence[SourceSpan]], depth: int) -> list[SourceSpan]:
    """The first `depth` documents of several rankings in turn: all first results, then all second results, and so on.

    >>> a, b, c = (SourceSpan(name, 0, 1, "x") for name in "abc")
    >>> [span.doc_id for span in interleaved([[a, b], [c, a]], 3)]
    ['a', 'c', 'b']
    """
    chosen: dict[str, SourceSpan] = {}
    for rank in range(max(map(len, rankings), default=0)):
        for ranking in rankings:
            if rank < len(ranking):
                chosen.setdefault(ranking[rank].doc_id, ranking[rank])
    return list(chosen.values())[:depth]


def words_of(language: str) -> dict[str, str]:
    return {"stemming": language, "stop_words": language if language in STOP_WORDS else "none"}


@dataclass(frozen=True)
class PassageSearch:
    """bm25 over passages, and the retrievers for pools."""

    index: Retriever
    passages: dict[str, SourceSpan]
    retrievers: Mapping[str, Retriever]  # those that answer in process, by name

    @classmethod
    def of(
        cls, path: str, passages: Sequence[SourceSpan], language: str, retrievers: Mapping[str, Retriever]
    ) -> "PassageSearch":
        pairs = sum(has_pairs(span.text) for span in passages)
        index = Bm25(**words_of(language), tokenizer="bigrams" if 2 * pairs > len(passages) else "words").open(path)
        return cls(index, {span.id: span for span in passages}, retrievers)

    def best(self, question: str) -> list[SourceSpan]:
        """The best passage of every document, best first."""
        return self._ranked(self.index, question)

    def grading_pool(
        self, item: WrittenItem, depth: int, services: Mapping[str, Sequence[str]], order: Sequence[str]
    ) -> GradingPool:
        best = self.best(item.question)
        pooled = self.pooled(item.question, best, depth, services, order)
        others = tuple(span for span in pooled if span.doc_id not in item.doc_ids)
        return GradingPool(item.item_id, item.question, others, self.rank(best, item.doc_ids))

    def pooled(
        self,
        question: str,
        best: list[SourceSpan],
        depth: int,
        services: Mapping[str, Sequence[str]],
        order: Sequence[str],
    ) -> list[SourceSpan]:
        """The best passages by several retrievers in turn; `best` are bm25's."""
        return interleaved([self._ranking(name, question, best, services) for name in order], depth)

    def rank(self, best: Sequence[SourceSpan], doc_ids: Collection[str]) -> int | None:
        """The worst rank of the documents, from 1; None if any is missing."""
        ranks = {span.doc_id: rank for rank, span in enumerate(best, start=1)}
        places = [ranks.get(doc_id) for doc_id in doc_ids]
        known = [rank for rank in places if rank is not None]
        return max(known) if known and len(known) == len(places) else None

    @cached_property
    def _first(self) -> Mapping[str, SourceSpan]:
        """The first passage of every document."""
        return {span.doc_id: span for span in reversed(self.passages.values())}

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """The retrieved ids that no passage or document has."""
        return [name for name in ids if name not in self.passages and name not in self._first]

    def _best_of(self, ids: Iterable[str], known: Iterable[SourceSpan] = ()) -> list[SourceSpan]:
        """The best passage of every document, best first; unknown ids are left out."""
        chosen = {span.doc_id: span for span in known}
        best: dict[str, SourceSpan] = {}
        for name in ids:
            span = self.passages.get(name) or chosen.get(name) or self._first.get(name)
            if span is not None:
                best.setdefault(span.doc_id, span)
        return list(best.values())

    def _ranking(
        self, name: str, question: str, best: list[SourceSpan], services: Mapping[str, Sequence[str]]
    ) -> list[SourceSpan]:
        if name in services:
            return self._best_of(services[name], best)
        retriever = self.retrievers[name]
        if retriever is self.index:
            return best
        try:
            return self._ranked(retriever, question)
        except CallError:  # the model refuses to embed this question; temporary failures were handled before
            return []

    def _ranked(self, retriever: Retriever, question: str) -> list[SourceSpan]:
        return self._best_of(retriever.retrieve(Query("", question), _PASSAGES).doc_ids)


EMBED, SEARCH = "embed", "search"


@dataclass(frozen=True)
class UnansweredCall:
    """A call without an answer."""

    failure: FailureKind
    message: str


@dataclass(frozen=True)
class TextEmbedding:
    """A text whose embedding is in the ledger, or will never be."""

    name: str
    missing: UnansweredCall | None = None  # the reason for a missing embedding; None if there is one


@dataclass(frozen=True)
class EmbedTexts:
    """Embed texts; a `Work` whose items are texts."""

    embed: Embed
    stage: str = EMBED

    @property
    def services(self) -> Sequence[str]:
        return self.embed.services

    def steps(self, item: str) -> Steps[TextEmbedding]:
        """Make the call once; the ledger keeps the answer."""
        (outcome,) = yield [self.embed.call(item)]
        return TextEmbedding(text_hash(item), _unanswered_call(outcome))

    def read(self, call: Call, reply: Reply) -> Any:
        return self.embed.read(call, reply)


@dataclass(frozen=True)
class Rankings:
    """The rankings of services for a question."""

    item_id: str
    doc_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: UnansweredCall | None = None  # the reason for a missing ranking; None if there are all


@dataclass(frozen=True)
class SearchServices:
    """Search with retrievers that are services; a `Work` whose items are ids, each with its question."""

    retrieve: Mapping[str, Retrieve]
    stage: str = SEARCH

    @property
    def services(self) -> Sequence[str]:
        return list(self.retrieve)

    def steps(self, item: tuple[str, str]) -> Steps[Rankings]:
        item_id, question = item
        calls = []
        for name, retrieve in self.retrieve.items():
            ((key, text),) = retrieve.questions([question])
            calls.append(Call(name, key, payload_of(text, retrieve.depth), retrieve.depth))
        outcomes = yield calls
        by_search = dict(zip(self.retrieve, outcomes, strict=True))
        missing = next(filter(None, map(_unanswered_call, outcomes)), None)
        rankings = {name: ranking.doc_ids for name, ranking in by_search.items() if not isinstance(ranking, CallError)}
        return Rankings(item_id, rankings, missing)

    def read(self, call: Call, reply: Reply) -> Any:
        return self.retrieve[call.service].read(call, reply)


def _unanswered_call(outcome: Any) -> UnansweredCall | None:
    return UnansweredCall(outcome.kind, outcome.message) if isinstance(outcome, CallError) else None
