"""Retrieving, as remote work: one call a query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import pyarrow as pa

from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever, payload_of
from rankbeam.transforms.records.calls.call import Call, Reach
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.reply import Reply

STAGE, PANEL = "retrieve", "retrieval"


Question = tuple[str, str]
"""The key of the call that asks a retriever a query, and the query's text."""


@dataclass(frozen=True)
class Retrieve:
    """Asks a remote retriever for the ranking of a query."""

    service: str
    kind: str
    retriever: RemoteRetriever
    reach: Reach

    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> tuple[str]:
        return (self.service,)

    def of_queries(self, queries: pa.RecordBatch) -> list[Question]:
        return self.questions(queries["text"].to_pylist())

    def questions(self, texts: Sequence[str]) -> list[Question]:
        return list(zip(self.retriever.keys(self.kind, texts, self.reach), texts, strict=True))

    def steps(self, item: Question) -> Steps[Ranking]:
        key, text = item
        call = Call(self.service, key, payload_of(text, self.reach), self.reach)
        ranking: Ranking
        (ranking,) = accepted((yield [call]))
        return ranking

    def read(self, call: Call, reply: Reply) -> Ranking:  # noqa: ARG002  every answer is read alike
        return self.retriever.read(reply.answer)

    def recall(self, answers: Sequence[bytes]) -> pa.ListArray:
        return self.retriever.recall(answers)


def reaching_alike(works: Mapping[int, Retrieve]) -> dict[int, Retrieve]:
    """Works that go as far into a ranking as any of those that ask the same: one call answers them all."""
    return {source: replace(work, reach=_widest(work, works.values())) for source, work in works.items()}


def _widest(work: Retrieve, works: Iterable[Retrieve]) -> Reach:
    key = _request_key(work)
    return reduce(Reach.joined, (other.reach for other in works if _request_key(other) == key), work.reach)


def _request_key(work: Retrieve) -> str:
    """The key of a request, apart from its query."""
    retriever, reach = work.retriever, work.reach
    cut = None if retriever.is_prefix() else (reach.results, reach.distance)
    return content_key({"retriever": retriever.identity(work.kind), "cut": cut})
