"""The `rag_engine` retriever: contexts from a corpus of Vertex AI RAG Engine, over gRPC.

It uses `aiplatform_v1`'s async client: the higher-level library opens a channel per call and drops filters.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, FiniteFloat, PrivateAttr, TypeAdapter, model_validator

from rankbeam.transforms.clients.calls.answers import encode_answer, parse_answer
from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.google.channels import CREDENTIALS, ChannelConnection, Endpoint, open_channels
from rankbeam.transforms.clients.parameters import matching
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.clients.retrievers.document_ids import DocumentIds
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.corpora import SearchedCorpus, document_of
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.reply import Reply

Text = Annotated[str, Field(min_length=1)]
_CORPUS = re.compile(r"(?P<parent>projects/[^/\s]+/locations/(?P<location>[a-z0-9-]+))/ragCorpora/[^/\s]+")
_NO_CORPUS = "is not a corpus; give its full name: projects/PROJECT/locations/LOCATION/ragCorpora/CORPUS"


@dataclass(frozen=True)
class Context:
    """One context, in the form that the ledger stores."""

    uri: str
    name: str
    text: str
    score: FiniteFloat | None  # usually the distance from the query; None if the service gives none


_ANSWER = TypeAdapter(tuple[Context, ...])


class RagEngine(RemoteRetriever):
    """Contexts from a corpus, in the service's order; scores are distances from the query, usually cosine distances.

    The default budget is the documented quota of retrievals per project and region:
    https://cloud.google.com/vertex-ai/generative-ai/docs/quotas

    Attributes:
        corpus: name of an entry under `corpora:`, or the full name of a corpus: projects/P/locations/L/ragCorpora/C.
        rag_file_ids: files of the corpus to search; by default all of them.
        vector_similarity_threshold: minimum similarity of a context; it cannot be combined with a distance threshold.
        metadata_filter: filter on file metadata, in the service's own language.
        rank_service: model of the ranking service that reorders the contexts, such as "semantic-ranker-default@latest".
        llm_ranker: language model that reorders the contexts, instead of a ranking service.
        api_endpoint: address of the service; by default the public address of the corpus's location.
        doc_id: rules for extracting a document's id.
        lower_is_better: if true, scores are distances; set it to false if the corpus's vector database returns
            similarities.
    """

    corpus: Annotated[str, matching(_CORPUS, _NO_CORPUS)] | None = None
    rag_file_ids: tuple[Text, ...] = ()
    vector_similarity_threshold: FiniteFloat | None = None
    metadata_filter: Text | None = None
    rank_service: Text | None = None
    llm_ranker: Text | None = None
    api_endpoint: Endpoint | None = None
    doc_id: DocumentIds = DocumentIds()
    lower_is_better: bool = True

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=1500, timeout_s=60.0)
    reading: ClassVar[frozenset[str]] = frozenset({"doc_id", "lower_is_better"})
    has_distances: ClassVar[bool] = True
    searches: ClassVar[frozenset[str]] = frozenset({"rag_engine"})
    added: ClassVar[frozenset[str]] = frozenset({"corpus"})  # None where the corpus is a component of its own

    _searched: SearchedCorpus | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _one_ranker(self) -> "RagEngine":
        if self.rank_service is not None and self.llm_ranker is not None:
            raise ValueError("rank_service and llm_ranker exclude each other; remove one")
        return self

    def searching(self, corpus: SearchedCorpus) -> "RagEngine":
        bound = self.model_copy()
        bound._searched = corpus
        return bound

    @property
    def lacks_corpus(self) -> bool:
        return self.corpus is None and self._searched is None

    def identity(self, kind: str) -> dict[str, Any]:
        """As in `RemoteRetriever`; a corpus that rankbeam builds is identified by its content, not by its name."""
        built = {} if self._searched is None else {"corpus": {"identity": self._searched.identity}}
        return {**super().identity(kind), **built}

    def scope(self) -> str:
        """Project and region: all calls in them share a quota."""
        return self._part("parent") if self._searched is None else self._searched.scope

    @property
    def access(self) -> Access:
        corpus = self.corpus if self._searched is None else self._searched.resource
        return Access(f"{corpus or self.scope()} at {self._endpoint}", (CREDENTIALS,))

    @property
    def _endpoint(self) -> str:
        configured = self.api_endpoint or (None if self._searched is None else self._searched.endpoint)
        return configured or f"{self.scope().rpartition('/')[2]}-aiplatform.googleapis.com"

    def is_prefix(self) -> bool:
        """False where a model reorders the contexts: it sees only the retrieved ones, so a smaller top_k differs."""
        return self.rank_service is None and self.llm_ranker is None

    def refuses_repeats(self, unit: str) -> bool:
        """As for other retrievers; with hashes as ids, equal chunks of a file are one, whose best rank counts."""
        return super().refuses_repeats(unit) and self.doc_id.field != "chunk"

    async def connect(self) -> "RagConnection":
        channels = await open_channels(self._endpoint, "google.cloud.aiplatform_v1", "VertexRagService")
        return RagConnection(channels, self)

    def read(self, answer: str) -> Ranking:
        contexts = parse_answer(_ANSWER, answer)
        return Ranking(
            tuple(self._document_id(context) for context in contexts),
            tuple(math.nan if context.score is None else context.score for context in contexts),
            tuple(context.text for context in contexts),
        )

    def fields(self, query: str, top_k: int, distance: float | None) -> dict[str, Any]:
        if distance is not None and self.vector_similarity_threshold is not None:
            both = "vector_distance_threshold and vector_similarity_threshold exclude each other; remove one"
            raise CallError(FailureKind.INVALID, both)
        limits = {
            "vector_distance_threshold": distance,
            "vector_similarity_threshold": self.vector_similarity_threshold,
            "metadata_filter": self.metadata_filter,
        }
        models = _without_none({"rank_service": self.rank_service, "llm_ranker": self.llm_ranker})
        ranking = {name: {"model_name": model} for name, model in models.items()}
        retrieval = {"top_k": top_k, "filter": _without_none(limits) or None, "ranking": ranking or None}
        corpus = self.corpus if self._searched is None else self._searched.resource
        resource = {"rag_corpus": corpus, "rag_file_ids": self.rag_file_ids}
        return {
            "parent": self.scope(),
            "vertex_rag_store": {"rag_resources": [resource]},
            "query": {"text": query, "rag_retrieval_config": _without_none(retrieval)},
        }

    def _document_id(self, context: Context) -> str:
        if self._searched is not None and self.doc_id == DocumentIds():
            return _imported_id(context, self._searched.root)
        return self.doc_id.of(context.uri, context.name, context.text)

    def _part(self, name: str) -> str:
        match = _CORPUS.fullmatch(self.corpus or "")
        return match[name] if match else ""


@dataclass(frozen=True)
class RagConnection(ChannelConnection):
    """Open connections to RAG Engine."""

    parameters: RagEngine

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        from google.cloud.aiplatform_v1.types import RetrieveContextsRequest, RetrieveContextsResponse

        fields = self.parameters.fields(**json.loads(payload))
        response = await self.channels.call("retrieve_contexts", lambda: RetrieveContextsRequest(fields), timeout_s)
        return Reply(encode_answer(_ANSWER, _contexts(RetrieveContextsResponse.pb(response))))


def _imported_id(context: Context, root: str | None) -> str:
    """The id of the document that rankbeam imported, which is never guessed."""
    if root and not context.uri.startswith(f"{root}/"):
        where = context.uri or context.name
        raise CallError(FailureKind.MALFORMED, f"a context is from {where}, which is not in the folder {root}")
    return document_of(context.uri or context.name, root)


def _contexts(response: Any) -> list[dict[str, Any]]:
    contexts = response.contexts.contexts
    if not all(context.source_uri or context.source_display_name for context in contexts):
        raise CallError(FailureKind.MALFORMED, "a context of the answer has neither URI nor name")
    return [
        {
            "uri": context.source_uri,
            "name": context.source_display_name,
            "text": context.text,
            "score": context.score if context.HasField("score") else None,
        }
        for context in contexts
    ]


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
