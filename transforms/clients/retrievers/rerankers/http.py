"""Rerankers behind HTTP: any service that takes a query and texts, and Cohere's API, which several others imitate."""

from typing import Annotated, ClassVar

from pydantic import Field, JsonValue, model_validator

from rankbeam.transforms.clients.http.template import texts_in
from rankbeam.transforms.clients.retrievers.base import Route
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.retrievers.rerankers import Reranker

_Path = Annotated[str, Field(min_length=1)]
_KEY = "Bearer ${env:COHERE_API_KEY}"


class HttpReranker(Http, Reranker):
    """The request, and the places of positions and scores in the answer.

    In `url`, `params` and `body`, `{query}` is replaced by the query's text, and in `body` a string that consists of
    `{documents}` by the list of texts. References such as `${env:NAME}` are replaced there and in `headers`.

    Attributes:
        body: JSON body, in which "{documents}" is replaced by the list of texts. By default the query is sent as
            "query" and the texts as "documents".
        results: JMESPath to the list of scored texts in the answer.
        id: JMESPath to the position of a scored text in the request, from 0.
        score: JMESPath to the score; higher is better.
        pointwise: if true, the score of a text does not depend on the other texts of the request. Then a smaller
            `depth` of another configuration in the same run costs no call.
        depth: number of results to request from the retriever and to score.
    """

    results: _Path = "results"
    id: _Path = "index"
    score: _Path = "relevance_score"
    pointwise: bool = False
    text: ClassVar[None] = None  # type: ignore[misc]  # a reranker returns no texts
    embedding_model: ClassVar[None] = None  # type: ignore[misc]
    lower_is_better: ClassVar[bool] = False  # type: ignore[misc]
    derive: ClassVar[bool] = True  # type: ignore[misc]
    results_required: ClassVar[bool] = True  # type: ignore[misc]

    route: ClassVar[Route] = Route.RERANKED
    service: ClassVar[str | None] = None
    reading: ClassVar[frozenset[str]] = Reranker.reading | {"results", "id", "score", "pointwise"}
    added: ClassVar[frozenset[str]] = Reranker.added

    @model_validator(mode="after")
    def _holds_the_documents(self) -> "HttpReranker":
        if not any(text == "{documents}" for _, text in texts_in(self.template)):
            raise ValueError('body lacks "{documents}", which is replaced by the list of texts')
        return self

    @property
    def template(self) -> JsonValue:
        return {"query": "{query}", "documents": "{documents}"} if self.body is None else self.body

    @property
    def is_pointwise(self) -> bool:
        return self.pointwise


class Cohere(HttpReranker):
    """Cohere's rerank API, and services that imitate it, such as Jina's and vLLM's.

    Attributes:
        url: address of the API.
        model: name of the reranking model.
        headers: HTTP headers; by default the key in the environment variable COHERE_API_KEY.
    """

    url: str = "https://api.cohere.com/v2/rerank"
    model: Annotated[str, Field(min_length=1)]
    headers: dict[str, str] = Field(default_factory=lambda: {"Authorization": _KEY})
    pointwise: bool = True

    @property
    def template(self) -> JsonValue:
        own: dict[str, JsonValue] = {"model": self.model, "query": "{query}", "documents": "{documents}"}
        return own if self.body is None else self.body
