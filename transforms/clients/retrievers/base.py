"""Retrievers: the two classes that a type of retriever consists of, and how to add a type.

A retriever is two small things in one file: its parameters, a `RetrieverParameters` that an experiment's YAML
fills in, and what `open` returns, a `Retriever` that answers queries. One line registers it: the entry point
group `rankbeam.retrievers`, in this package's pyproject.toml or in that of any other installed package.

The parameters of a remote retriever define what a call requests, which quota pool pays for it, and how an answer is
read. They are a subclass of `RemoteRetriever` with `connect` and `read`; rankbeam adds pacing, retries and the ledger.
`Retrieve` is the remote work: one call per query.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

import pyarrow as pa
from pydantic import Field, PrivateAttr

from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.parameters import Kind, Parameters
from rankbeam.transforms.clients.storage.json_paths import refuse_invalid
from rankbeam.transforms.kernels.arrays import SingleArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, SearchDepth, ServiceWork, Steps, results_or_raise
from rankbeam.transforms.records.content_keys import content_key, content_keys
from rankbeam.transforms.records.corpora import SearchedCorpus
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.plug_ins import class_name
from rankbeam.transforms.records.queries import Documents, Embeddings, Query, Ranking
from rankbeam.transforms.records.rankings.retrieved import documents_of, is_whole
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens


class Route(Enum):
    """Origin of a retriever's rankings."""

    READ = "read"  # the rankings exist already, in a file or a table
    OPENED = "opened"  # in process, by the object that `open` returns
    CALLED = "called"  # by calls to a service, each of which a quota pool pays for
    REPLAYED = "replayed"  # the rankings come with a system's earlier answers
    FUSED = "fused"  # from the rankings of other configurations
    RERANKED = "reranked"  # from the ranking of a retriever, by calls that score its texts


class Retriever(Protocol):
    """Answers queries, and is used from one thread.

    Where several workers share the queries of a configuration, each opens one of its own. A retriever may also have
    `warnings`, a sequence of texts for users, which the `runs` table stores, and `retrieve_all`, which is called
    instead of `retrieve`, with a list of queries, and returns a list of rankings and of such errors.
    """

    def retrieve(self, query: Query, top_k: int) -> Ranking:
        """The best results for a query, best first, at most `top_k` of them.

        Raises:
            CallError: there is no answer, after any retries; becomes a row of `failures`.
        """

    def close(self) -> None:
        """Release what `open` acquired."""


class RetrieverParameters(Parameters):
    """The parameters of one type of retriever, as an experiment gives them under `retriever:`.

    Attributes:
        query: text to search for: "last" is the query alone; "history" also includes the earlier messages of a
            conversation.
        needs: the files of the dataset that it requires: "queries", "corpus".
        input_role: role of its own input files, if rankbeam knows the format: "run".
        default_top_k: default of `top_k`; None means all results.
        route: origin of its rankings.
        has_distances: True if scores are distances, and a request takes the `vector_distance_threshold`. The ranking
            for a tighter one is derived from the answer to a looser one.
        most_results: the most results that one call returns; None where no limit is known.
        searches: the types of `corpora:` that `corpus` may name.
        appends_passages: whether a passage that a model writes for a query follows the query, as it should where words
            are compared, and does not replace it.
        service: the parameter that names the embedding model under `services:`; None if the type embeds nothing. A
            remote type gets the query's vector in the payload of its calls.
        unused: inherited parameters without an effect, which are refused.
    """

    query: Literal["last", "history"] = "last"

    needs: ClassVar[tuple[str, ...]] = ("queries",)
    input_role: ClassVar[str | None] = None
    default_top_k: ClassVar[int | None] = 100
    route: ClassVar[Route] = Route.OPENED
    has_distances: ClassVar[bool] = False
    most_results: ClassVar[int | None] = None
    searches: ClassVar[frozenset[str]] = frozenset()
    service: ClassVar[str | None] = None
    appends_passages: ClassVar[bool] = False
    unused: ClassVar[frozenset[str]] = frozenset()

    def decisive(self) -> dict[str, Any]:
        """The parameters that identify a configuration, as JSON values."""
        return {name: value for name, value in super().decisive().items() if (name, value) != ("query", "last")}

    @property
    def gives_distances(self) -> bool:
        """True if its scores are distances; some types have a parameter `lower_is_better` for it."""
        return bool(getattr(self, "lower_is_better", self.has_distances))

    @property
    def keeps_samples(self) -> bool:
        """True if several answers to one query are samples."""
        return False

    def open(self, corpus: str | None) -> Retriever:
        """Prepare to answer queries; called once per process, on the machine that does the work.

        Args:
            corpus: path of the dataset's corpus.
        """
        raise NotImplementedError(f"{type(self).__name__} has no open()")

    def search(self, documents: Documents) -> Retriever:
        """As `open`, for types that search what an experiment describes under `corpora:`."""
        return self.open(documents.path)

    def prepare(self, documents: Documents) -> None:
        """Build and store what `search` needs, if that is slow; called once, before several processes search."""

    def searching(self, corpus: SearchedCorpus) -> Self:  # noqa: ARG002  for types that search what a service built
        """The same parameters, for a corpus of a service that an experiment describes under `corpora:`."""
        return self

    @property
    def lacks_corpus(self) -> bool:
        """True if there is nothing to search, because no corpus is named."""
        return False

    def embedded(self, documents: Documents) -> Iterable[str]:  # noqa: ARG002  for types that embed texts
        """The texts of documents that the model embeds, for types that name one."""
        return ()

    def is_prefix(self) -> bool:
        """Return whether a shorter ranking is the beginning of a longer one, so that the largest top_k serves all."""
        return True

    def refuses_repeats(self, unit: str) -> bool:
        """Return whether a document that occurs twice in a ranking is an error, for this unit of the dataset."""
        return unit == "chunk"


RETRIEVERS = Kind("retriever", "rankbeam.retrievers", RetrieverParameters, methods=("open", "search", "route"))
"""The types of retrievers."""


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
    _embedding: str = PrivateAttr(default="")

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
        return documents_of(list(map(self._recall_ranking, answers)))

    def warning(self, answers: Sequence[bytes], top_k: int) -> str | None:  # noqa: ARG002  few services have one
        """A warning about answers of the ledger to calls for `top_k` results."""
        return None

    def _recall_ranking(self, answer: bytes) -> Ranking | None:
        try:
            refuse_invalid(answer)
            ranking = self.read(answer.decode("utf-8", "surrogatepass"))
            return ranking if is_whole(ranking) else None
        except Exception:  # `read` says why, with the place in a plug-in
            return None

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  retrievers are charged by the call
        """None: a retriever's calls cost no tokens."""
        return NO_TOKENS

    @property
    def reports_tokens(self) -> bool:
        """True if replies may have token counts."""
        return False

    def identity(self, kind: str) -> dict[str, Any]:
        """All that decides the answer besides query and depth, as JSON values.

        Parameters at their default are left out, so that a parameter added in a later version changes no key.
        """
        left_out = {*self.operational, *self.reading, "query", self.service or ""}  # a service's name decides nothing
        parameters = self.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
        embedding = {"embedding": self._embedding} if self._embedding else {}
        return {"stage": "retrieve", "type": kind, **parameters, **embedding}

    def embedded_by(self, identity: str) -> Self:
        """The same parameters, for queries whose vectors come from the model with this identity."""
        embedded = self.model_copy()
        embedded._embedding = identity
        return embedded

    def keys(self, kind: str, texts: Iterable[str], depth: SearchDepth) -> list[str]:
        """The `content_key` of each query's call; the depth counts only if fewer results are not the first of more."""
        identity = self.identity(kind)
        if not self.is_prefix():
            identity |= {"top_k": depth.results, "distance": depth.distance}
        return content_keys(identity, "query", texts)


def payload_of(text: str, depth: SearchDepth, vector: SingleArray | None = None) -> str:
    """The payload that `Connection.call` of a retriever takes; with the query's vector if the type embeds queries.

    >>> payload_of("who?", SearchDepth(10, None))
    '{"query": "who?", "top_k": 10, "distance": null}'
    """
    embedded = {} if vector is None else {"vector": [float(str(number)) for number in vector]}  # the shortest digits
    return _JSON.encode({"query": text, "top_k": depth.results, "distance": depth.distance, **embedded})


STAGE, PANEL = "retrieve", "retrieval"


Question = tuple[str, str] | tuple[str, str, SingleArray | None]
"""The key of the call that asks a retriever a query, and the query's text; with the query's vector if it is sent."""


@dataclass(frozen=True)
class Retrieve(ServiceWork):
    """Asks a remote retriever for the ranking of a query."""

    kind: str
    retriever: RemoteRetriever
    depth: SearchDepth
    embeddings: Embeddings | None = None  # None if no vector is sent, as in a plan

    stage: ClassVar[str] = STAGE

    def of_queries(self, queries: pa.RecordBatch, cut: list[int]) -> Sequence[Question]:
        """The questions; `cut` gets the number of queries that a model in this process sees only in part."""
        texts = queries["text"].to_pylist()
        questions = self.questions(texts)
        if self.embeddings is None:
            return questions
        vectors = self.embeddings.of_queries().vectors(texts, cut)
        return [(key, text, vector) for (key, text), vector in zip(questions, vectors, strict=True)]

    def questions(self, texts: Sequence[str]) -> list[tuple[str, str]]:
        return list(zip(self.retriever.keys(self.kind, texts, self.depth), texts, strict=True))

    def steps(self, item: Question) -> Steps[Ranking]:
        key, text, *vectors = item
        if any(vector is None for vector in vectors):
            raise CallError(FailureKind.UNAVAILABLE, "the query has no embedding")
        call = Call(self.service, key, payload_of(text, self.depth, *vectors), self.depth)
        ranking: Ranking
        (ranking,) = results_or_raise((yield [call]))
        return ranking

    def read(self, call: Call, reply: Reply) -> Ranking:  # noqa: ARG002  every answer is read alike
        ranking = self.retriever.read(reply.answer)
        if not is_whole(ranking):
            problem = f"{class_name(self.retriever)}.read must return a Ranking with a score for each id, a str"
            raise CallError(FailureKind.MALFORMED, problem)
        return ranking

    def recall(self, answers: Sequence[bytes]) -> pa.ListArray:
        return self.retriever.recall(answers)

    def warning(self, answers: Sequence[bytes]) -> str | None:
        return self.retriever.warning(answers, self.depth.results)


def with_common_depth(works: Mapping[int, Retrieve]) -> dict[int, Retrieve]:
    """Give works that send the same request the largest depth of them all, so that one call answers all."""
    keys = {source: _request_key(work) for source, work in works.items()}
    depths = grouped((keys[source], work.depth) for source, work in works.items())
    return {
        source: replace(work, depth=reduce(SearchDepth.joined, depths[keys[source]])) for source, work in works.items()
    }


def _request_key(work: Retrieve) -> str:
    """The key of a request, apart from its query."""
    retriever, depth = work.retriever, work.depth
    cut = None if retriever.is_prefix() else (depth.results, depth.distance)
    return content_key({"retriever": retriever.identity(work.kind), "cut": cut})
