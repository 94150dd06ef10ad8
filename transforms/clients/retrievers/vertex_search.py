"""The `vertex_search` retriever: documents or chunks from Vertex AI Search (Discovery Engine), over gRPC.

One call fetches one page, which is the ranking: the library's iterator would fetch, and pay for, every further page.
"""

import html
import json
import math
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from rankbeam.transforms.clients.calls.answers import encode_answer, parse_answer, validate_reply
from rankbeam.transforms.clients.calls.services import Access
from rankbeam.transforms.clients.extras import MISSING, SEARCH, missing_extra
from rankbeam.transforms.clients.google.channels import CREDENTIALS, ChannelConnection, Endpoint, open_channels
from rankbeam.transforms.clients.google.errors import build_request
from rankbeam.transforms.clients.parameters import matching
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.clients.retrievers.document_ids import IdRule
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.reply import Reply

Neighbours = Annotated[int, Field(ge=0, le=3)]
_SERVING_CONFIG = re.compile(
    r"(?P<project>projects/[^/\s]+)/locations/(?P<location>[a-z0-9-]+)/collections/[^/\s]+"
    r"/(?:engines|dataStores)/[^/\s]+/servingConfigs/[^/\s]+"
)
_NO_SERVING_CONFIG = (
    "is not a serving config; give its full name: projects/PROJECT/locations/LOCATION/collections/COLLECTION/"
    "(engines or dataStores)/NAME/servingConfigs/CONFIG"
)
_CHUNK_NAME = re.compile(r".*/documents/([^/]+)/chunks/([^/]+)", re.DOTALL)
_BOLD = re.compile("</?b>")
_NUMBER_IN_DOCUMENT = re.compile(r"\D*(\d+)")


@dataclass(frozen=True)
class SearchResult:
    """One result, in the form that the ledger stores."""

    id: Annotated[str, Field(min_length=1)]
    chunk: str  # id of the chunk in the document; empty for a whole document
    uri: str  # empty where the service gives none
    score: FiniteFloat | None  # relevance, higher is better; None if the service gives none
    texts: tuple[str, ...]
    has_more: bool = False  # True for the last result of a page that is shorter than requested, and not the last one


_ANSWER = TypeAdapter(tuple[SearchResult, ...])
_HAS_MORE = b'"has_more":true'


@dataclass(frozen=True)
class _Derived:
    """The data that the service derived from a document; other keys are ignored."""

    link: str | None = None
    title: str | None = None
    snippets: tuple[dict[str, Any], ...] = ()
    extractive_segments: tuple[dict[str, Any], ...] = ()

    def texts(self) -> list[Any]:
        segments = [segment.get("content") for segment in self.extractive_segments]
        snippets = [snippet.get("snippet") for snippet in self.snippets if snippet.get("snippet_status") == "SUCCESS"]
        return [text for text in segments or list(map(_plain, snippets)) or [self.title] if text]


_DERIVED = TypeAdapter(_Derived)


def _plain(snippet: Any) -> Any:
    """The text of a snippet, which is HTML with the words of the query in bold."""
    if not isinstance(snippet, str):
        return snippet
    return html.unescape(_BOLD.sub("", snippet)).replace("\N{NO-BREAK SPACE}", " ")


class ResultIds(IdRule):
    """Rule for the id of a result: the service's own id, or the file name in the URI.

    Attributes:
        field: source of the id: "id" (of the document), "uri" (of the document), or, for `unit: chunk`, "chunk": the
            document's id, a slash, and the chunk's id.
    """

    field: Literal["id", "uri", "chunk"] = "id"

    def of(self, result: SearchResult) -> str:
        if self.field == "uri":
            return self.cut(result.uri)
        return self.cut(f"{result.id}/{result.chunk}" if self.field == "chunk" else result.id, is_path=False)


class VertexSearch(RemoteRetriever):
    """Documents or chunks that a search app or data store returns, in the service's order.

    The default budget is the documented quota of search requests per project:
    https://cloud.google.com/generative-ai-app-builder/quotas

    Attributes:
        serving_config: full name: projects/P/locations/L/collections/C/engines/E/servingConfigs/S, or the same with
            dataStores.
        mode: kind of result: "documents", or "chunks" from a data store with chunking.
        previous_chunks: number of preceding chunks whose texts are added to each chunk's text.
        next_chunks: number of following chunks whose texts are added to each chunk's text.
        texts: source of a document's text: its "titles", its "snippets", or its "segments" (for apps of the Enterprise
            edition).
        filter: filter on documents, in the service's own language.
        relevance_scores: if true, results have the service's relevance score, which `min_score` needs; chunks always
            have it, and websites never.
        api_endpoint: address of the service; by default the public address of the location.
        doc_id: rules for extracting a document's id.
    """

    serving_config: Annotated[str, matching(_SERVING_CONFIG, _NO_SERVING_CONFIG)]
    mode: Literal["documents", "chunks"] = "documents"
    previous_chunks: Neighbours = 0
    next_chunks: Neighbours = 0
    texts: Literal["titles", "snippets", "segments"] = "titles"
    filter: Annotated[str, Field(min_length=1)] | None = None
    relevance_scores: bool = False
    api_endpoint: Endpoint | None = None
    doc_id: ResultIds = ResultIds()

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=300, timeout_s=60.0)
    reading: ClassVar[frozenset[str]] = frozenset({"doc_id"})
    added: ClassVar[frozenset[str]] = frozenset({"relevance_scores"})
    most_results: ClassVar[int | None] = 100

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "VertexSearch":
        if self.mode == "chunks" and self.texts != "titles":
            raise ValueError("texts is for documents: a chunk always comes with its own text; remove one")
        if self.mode == "chunks" and self.relevance_scores:
            raise ValueError("relevance_scores is for documents: a chunk always comes with its score; remove it")
        if self.mode == "documents" and (self.previous_chunks or self.next_chunks):
            raise ValueError("previous_chunks and next_chunks need mode: chunks")
        if self.mode == "documents" and self.doc_id.field == "chunk":
            raise ValueError("doc_id.field: chunk needs mode: chunks")
        return self

    @model_validator(mode="after")
    def _has_its_library(self) -> "VertexSearch":
        if problem := missing_extra("google.cloud.discoveryengine_v1", SEARCH, "Vertex AI Search"):
            raise PydanticCustomError(MISSING, "{problem}", {"problem": problem})
        return self

    def scope(self) -> str:
        """The project: all searches in it share a quota."""
        return self._part("project")

    @property
    def access(self) -> Access:
        return Access(f"{self.serving_config} at {self._endpoint}", (CREDENTIALS,))

    @property
    def _endpoint(self) -> str:
        location = self._part("location")
        prefix = "" if location == "global" else f"{location}-"
        return self.api_endpoint or f"{prefix}discoveryengine.googleapis.com"

    async def connect(self) -> "SearchConnection":
        channels = await open_channels(self._endpoint, "google.cloud.discoveryengine_v1", "SearchService")
        return SearchConnection(channels, self)

    def read(self, answer: str) -> Ranking:
        results = parse_answer(_ANSWER, answer)
        return Ranking(
            tuple(self.doc_id.of(result) for result in results),
            tuple(math.nan if result.score is None else result.score for result in results),
            tuple("\n".join(result.texts) for result in results),
        )

    def warning(self, answers: Sequence[bytes], top_k: int) -> str | None:
        counts = (len(_ANSWER.validate_json(answer)) for answer in answers if _HAS_MORE in answer)
        return next((self.short_page(count, top_k) for count in counts if count < top_k), None)

    def short_page(self, count: int, top_k: int) -> str:
        return (
            f"{self.serving_config} returned only {count} results for top_k: {top_k}, although it has more: it limits "
            "the size of a page (for websites, to 25 or 50); set a lower top_k"
        )

    def fields(self, query: str, top_k: int, distance: float | None) -> dict[str, Any]:
        if self.most_results is not None and top_k > self.most_results:
            raise CallError(
                FailureKind.INVALID, f"top_k is {top_k}, but vertex_search returns at most {self.most_results} results"
            )
        if distance is not None:
            raise CallError(FailureKind.INVALID, "vertex_search has no distances; remove vector_distance_threshold")
        return {
            "serving_config": self.serving_config,
            "query": query,
            "page_size": top_k,
            "filter": self.filter or "",
            "content_search_spec": self._contents(),
            **({"relevance_score_spec": {"return_relevance_score": True}} if self.relevance_scores else {}),
        }

    def _contents(self) -> dict[str, Any]:
        if self.mode == "chunks":
            neighbours = {"num_previous_chunks": self.previous_chunks, "num_next_chunks": self.next_chunks}
            return {"search_result_mode": "CHUNKS", "chunk_spec": neighbours}
        specs: dict[str, dict[str, Any]] = {
            "titles": {},
            "snippets": {"snippet_spec": {"return_snippet": True}},
            "segments": {"extractive_content_spec": {"max_extractive_segment_count": 1}},
        }
        return {"search_result_mode": "DOCUMENTS", **specs[self.texts]}

    def _part(self, name: str) -> str:
        match = _SERVING_CONFIG.fullmatch(self.serving_config)
        return match[name] if match else ""


@dataclass(frozen=True)
class SearchConnection(ChannelConnection):
    """Open connections to Vertex AI Search."""

    parameters: VertexSearch
    warnings: list[str] = field(default_factory=list, init=False)

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        from google.cloud.discoveryengine_v1.types import SearchRequest, SearchResponse

        fields = self.parameters.fields(**json.loads(payload))
        request = build_request(lambda: SearchRequest(fields))

        async def first_page(client: Any) -> Any:
            pager = await client.search(request, retry=None, timeout=timeout_s)
            async with aclosing(pager.pages) as pages:
                return await anext(pages)

        page = SearchResponse.pb(await self.channels.attempt(first_page))
        as_row = _chunk if self.parameters.mode == "chunks" else _document
        rows = [as_row(result) for result in page.results]
        if page.next_page_token and len(rows) < request.page_size:
            self.warnings[:] = self.warnings or [self.parameters.short_page(len(rows), request.page_size)]
            rows[-1:] = [{**row, "has_more": True} for row in rows[-1:]]
        return Reply(encode_answer(_ANSWER, rows))


def _chunk(result: Any) -> dict[str, Any]:
    chunk, around = result.chunk, result.chunk.chunk_metadata
    name = _CHUNK_NAME.fullmatch(chunk.name)
    if name is None:
        raise CallError(FailureKind.MALFORMED, "a result of the answer is not a chunk of a document")
    pieces = _in_order([*around.previous_chunks, chunk, *around.next_chunks])
    return {
        "id": name[1],
        "chunk": name[2],
        "uri": chunk.document_metadata.uri,
        "score": chunk.relevance_score if chunk.HasField("relevance_score") else _score(result),
        "texts": [piece.content for piece in pieces],
    }


def _in_order(chunks: list[Any]) -> list[Any]:
    # The order of the neighbours is not documented; the ids, c1, c2, …, number the chunks of a document.
    if not all(_NUMBER_IN_DOCUMENT.fullmatch(chunk.id) for chunk in chunks):
        return chunks
    return sorted(chunks, key=lambda chunk: int(_NUMBER_IN_DOCUMENT.sub(r"\1", chunk.id)))


def _document(result: Any) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    document = result.document
    derived = validate_reply(_DERIVED, MessageToDict(document.derived_struct_data))
    return {
        "id": document.id or result.id,
        "chunk": "",
        "uri": document.content.uri or derived.link or "",
        "score": _score(result),
        "texts": derived.texts(),
    }


def _score(result: Any) -> float | None:
    # Reading an absent key of a protobuf map creates it, so test for the key first.
    values = result.model_scores["relevance_score"].values if "relevance_score" in result.model_scores else ()
    return values[0] if values else None
