"""Remote retrievers: their parameters say what a call requests, which quota pool pays, and how an answer is read.

A new one is a subclass of `RemoteRetriever` with `connect` and `read`. rankbeam adds pacing, retries and the ledger.
`Retrieve` is the remote work: one call a query.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters, Route
from rankbeam.transforms.clients.storage.json_paths import refuse_invalid
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, SearchDepth, Steps, accepted
from rankbeam.transforms.records.content_keys import content_key, content_keys
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.rankings.retrieved import documents_of, is_even
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_JSON = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` would make one for each text


class RemoteRetriever(RetrieverParameters):
    """The parameters that all remote retrievers have; a subclass adds its own.

    Attributes:
        quota: name of the pool under `quotas:` that pays for the calls; by default the service's own pool in this
            project and region, or host.
        version: version of the data the service searches. Answers of another version are not reused.
        default_quota: the budget where `quotas:` gives none.
        reading: parameters that only affect how an answer is read: stored answers stay valid when they change.
    """

    quota: Annotated[str, Field(min_length=1)] | None = None
    version: str | None = None

    route: ClassVar[Route] = Route.CALLED
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=300, timeout_s=60.0)
    operational: ClassVar[frozenset[str]] = frozenset({"quota"})
    reading: ClassVar[frozenset[str]] = frozenset()

    def scope(self) -> str:
        """The part of the service that shares one budget: a project and region, or a host."""
        return ""

    async def connect(self) -> Connection:
        """Connect to the service; see `services.Service.connect`. `payload_of` says what its calls are given."""
        raise NotImplementedError(f"{type(self).__name__} has no connect()")

    def read(self, answer: str) -> Ranking:
        """The ranking that an answer holds; see `services.Service.read`."""
        raise NotImplementedError(f"{type(self).__name__} has no read()")

    def recall(self, answers: Sequence[bytes]) -> pa.ListArray:
        """The rankings that answers of the ledger hold, by `documents_of`; null where `read` has to say why."""
        return documents_of(list(map(self._recalled, answers)))

    def _recalled(self, answer: bytes) -> Ranking | None:
        try:
            refuse_invalid(answer)
            ranking = self.read(answer.decode("utf-8", "surrogatepass"))
        except (ValueError, CallError):
            return None
        return ranking if is_even(ranking) else None

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  retrievers are charged by the call
        """None: a retriever's calls cost no tokens."""
        return NO_TOKENS

    def identity(self, kind: str) -> dict[str, Any]:
        """All that decides the answer besides query and depth, as JSON values.

        Parameters at their default are left out, so that a parameter added in a later version changes no key.
        """
        parameters = self.model_dump(
            mode="json", exclude={*self.operational, *self.reading, "query"}, exclude_defaults=True
        )
        return {"stage": "retrieve", "type": kind, **parameters}

    def keys(self, kind: str, texts: Iterable[str], depth: SearchDepth) -> list[str]:
        """The `content_key` of the call that asks for a query's ranking, for each query.

        Args:
            kind: the retriever's type.
            texts: texts of the queries.
            depth: it counts only if fewer results are not the first of more.
        """
        identity = self.identity(kind)
        if not self.is_prefix():
            identity |= {"top_k": depth.results, "distance": depth.distance}
        return content_keys(identity, "query", texts)


def payload_of(text: str, depth: SearchDepth) -> str:
    """The payload that `Connection.call` of a retriever takes.

    >>> payload_of("who?", SearchDepth(10, None))
    '{"query": "who?", "top_k": 10, "distance": null}'
    """
    return _JSON.encode({"query": text, "top_k": depth.results, "distance": depth.distance})


STAGE, PANEL = "retrieve", "retrieval"


Question = tuple[str, str]
"""The key of the call that asks a retriever a query, and the query's text."""


@dataclass(frozen=True)
class Retrieve:
    """Asks a remote retriever for the ranking of a query."""

    service: str
    kind: str
    retriever: RemoteRetriever
    depth: SearchDepth

    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> tuple[str]:
        return (self.service,)

    def of_queries(self, queries: pa.RecordBatch) -> list[Question]:
        return self.questions(queries["text"].to_pylist())

    def questions(self, texts: Sequence[str]) -> list[Question]:
        return list(zip(self.retriever.keys(self.kind, texts, self.depth), texts, strict=True))

    def steps(self, item: Question) -> Steps[Ranking]:
        key, text = item
        call = Call(self.service, key, payload_of(text, self.depth), self.depth)
        ranking: Ranking
        (ranking,) = accepted((yield [call]))
        return ranking

    def read(self, call: Call, reply: Reply) -> Ranking:  # noqa: ARG002  every answer is read alike
        return self.retriever.read(reply.answer)

    def recall(self, answers: Sequence[bytes]) -> pa.ListArray:
        return self.retriever.recall(answers)


def with_common_depth(works: Mapping[int, Retrieve]) -> dict[int, Retrieve]:
    """Works that go as far into a ranking as any of those that ask the same: one call answers them all."""
    return {source: replace(work, depth=_widest(work, works.values())) for source, work in works.items()}


def _widest(work: Retrieve, works: Iterable[Retrieve]) -> SearchDepth:
    key = _request_key(work)
    return reduce(SearchDepth.joined, (other.depth for other in works if _request_key(other) == key), work.depth)


def _request_key(work: Retrieve) -> str:
    """The key of a request, apart from its query."""
    retriever, depth = work.retriever, work.depth
    cut = None if retriever.is_prefix() else (depth.results, depth.distance)
    return content_key({"retriever": retriever.identity(work.kind), "cut": cut})
