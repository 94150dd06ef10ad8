"""The `vertex_ranking` reranker: Vertex AI's Ranking API (Discovery Engine), over REST."""

import re
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from rankbeam.transforms.clients.calls.services import Access, Connection, open_connection
from rankbeam.transforms.clients.google.channels import CREDENTIALS, Endpoint
from rankbeam.transforms.clients.parameters import is_alias
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.retrievers.rerankers import Reranker
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.queries import Ranking

_NAME = Annotated[str, Field(pattern=re.compile(r"^[\w.:-]+$"))]
_HOST = "discoveryengine.googleapis.com"


def _checked_model(value: str) -> str:
    if is_alias(value):
        raise ValueError("may refer to another model tomorrow, and scores would mix; name a version")
    return value


class VertexRanking(Reranker):
    """Scores of a query and up to 200 texts a call; more texts of one query take several calls.

    The default budget is the documented quota of ranking requests per project:
    https://cloud.google.com/generative-ai-app-builder/quotas

    Attributes:
        project: project that pays for the calls.
        location: location of the API.
        model: name of the ranking model. An alias such as `semantic-ranker-default@latest` is refused, because it may
            name another model later.
        ranking_config: name of the ranking configuration.
        api_endpoint: address of the service; by default its public address.
    """

    project: _NAME
    location: _NAME = "global"
    model: Annotated[str, Field(min_length=1), AfterValidator(_checked_model)] = "semantic-ranker-default-004"
    ranking_config: _NAME = "default_ranking_config"
    api_endpoint: Endpoint | None = None

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=500, timeout_s=60.0)
    operational: ClassVar[frozenset[str]] = Reranker.operational | {"project", "api_endpoint"}
    most_texts: ClassVar[int | None] = 200

    def scope(self) -> str:
        """The project: all ranking requests in it share a quota."""
        return self.project

    def identity(self, kind: str) -> dict[str, Any]:
        """The identity as for every reranker, and always the model: the default may change."""
        return super().identity(kind) | {"model": self.model}

    @property
    def resource(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/rankingConfigs/{self.ranking_config}"

    @property
    def access(self) -> Access:
        return Access(f"{self.endpoint}/v1/{self.resource}:rank", (CREDENTIALS,))

    @property
    def endpoint(self) -> str:
        return self.api_endpoint or _HOST

    async def connect(self) -> Connection:
        return await open_connection("rankbeam.transforms.clients.retrievers.rerankers.vertex_connection", self)

    @cached_property
    def form(self) -> Http:
        return Http(
            url=f"https://{_HOST}/v1/{self.resource}:rank",
            body={
                "model": self.model,
                "query": "{query}",
                "records": "{records}",
                "ignoreRecordDetailsInResponse": True,
            },
            results="records",
            id="id",
            score="score",
            results_required=True,
        )

    def read(self, answer: str) -> Ranking:
        return self.form.read(answer)
