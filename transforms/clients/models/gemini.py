"""The `gemini` model: Google's models, on Vertex AI (project and location) or on the Developer API (a key).

`gemini_connection` makes the calls; only there is Google's library imported.
"""

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from rankbeam.transforms.clients.calls.services import Access, Connection, open_connection
from rankbeam.transforms.clients.google.channels import CREDENTIALS, Endpoint
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.remote import RemoteModel
from rankbeam.transforms.records.calls.prompt import Prompt

_TAKES_SEVERAL = re.compile(r"text-(?:multilingual-)?embedding-00\d")
_QUERY_TASKS = ("RETRIEVAL_QUERY", "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY")
_DOCUMENT_TASK = "RETRIEVAL_DOCUMENT"

Name = Annotated[str, Field(min_length=1, pattern=r"^[\w.@/-]+$")]


class Gemini(RemoteModel):
    """A model of Google's, for text or for embeddings.

    Attributes:
        model: name of a text model, such as "gemini-x-001", or of an embedding model.
        project: Google Cloud project, for Vertex AI.
        location: region for Vertex AI, such as "us-central1" or "global".
        api_key: key for the Developer API, as `${env:NAME}` or `${secret:…}`.
        api_endpoint: address of the service, if it is not the public one.
        thinking: thinking-token budget for prompts that do not set one. By default the model decides; some models
            refuse 0.
        dimensions: embedding dimensions; by default the model's own.
        task_type: purpose of query embeddings, such as RETRIEVAL_QUERY; documents are then embedded as
            RETRIEVAL_DOCUMENT. SEMANTIC_SIMILARITY, CLASSIFICATION and CLUSTERING apply to all texts, including those
            that a judge compares. By default no purpose is sent.
    """

    model: Name
    project: Name | None = None
    location: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    api_endpoint: Endpoint | None = None
    thinking: Annotated[int, Field(ge=-1, le=1_000_000)] | None = None
    dimensions: Annotated[int, Field(ge=1, le=65_536)] | None = None
    task_type: (
        Literal[
            "RETRIEVAL_QUERY",
            "QUESTION_ANSWERING",
            "FACT_VERIFICATION",
            "CODE_RETRIEVAL_QUERY",
            "SEMANTIC_SIMILARITY",
            "CLASSIFICATION",
            "CLUSTERING",
        ]
        | None
    ) = None

    # Another address reaches the same models, while a tuned model belongs to a project and location.
    operational: ClassVar[frozenset[str]] = RemoteModel.operational | {"api_endpoint"}
    added: ClassVar[frozenset[str]] = RemoteModel.added | {"task_type"}
    of_roles: ClassVar[frozenset[str]] = RemoteModel.of_roles | {"task_type"}
    jobs_module: ClassVar[str | None] = "rankbeam.transforms.clients.models.batches.gemini_jobs"

    @model_validator(mode="after")
    def _one_service(self) -> "Gemini":
        on_vertex = self.project is not None and self.location is not None
        some_vertex = self.project is not None or self.location is not None
        if on_vertex == (self.api_key is not None) or (some_vertex and not on_vertex):
            raise ValueError("give project and location for Vertex AI, or api_key for the Developer API")
        return self

    @property
    def on_vertex(self) -> bool:
        return self.project is not None

    @property
    def most_texts(self) -> int:
        """The most texts that one request embeds: 100 for older models on Vertex AI, else one: quotas count texts."""
        several = 100 if self.on_vertex and _TAKES_SEVERAL.fullmatch(self.model) else 1
        return self.texts_per_request or several

    @property
    def url(self) -> str:
        return self.api_endpoint or ""

    @property
    def access(self) -> Access:
        place = f"projects/{self.project}/locations/{self.location}" if self.on_vertex else "the Gemini API"
        keys = (CREDENTIALS,) if self.on_vertex else tuple(self.secret_places())
        return Access(f"{self.url or place}, model {self.model!r}", keys)

    def embedding(self, text: str, role: Role) -> Prompt:
        """The prompt to embed a text in a role.

        >>> model = Gemini(model="m", project="p", location="l", task_type="RETRIEVAL_QUERY")
        >>> [model.embedding("", role).values.get("task_type") for role in Role]
        ['RETRIEVAL_QUERY', 'RETRIEVAL_DOCUMENT', None]
        """
        prompt = super().embedding(text, role)
        by_role = {Role.QUERY: self.task_type, Role.DOCUMENT: _DOCUMENT_TASK}
        task = by_role.get(role) if self.task_type in _QUERY_TASKS else self.task_type
        return prompt if task is None else replace(prompt, values={"task_type": task, **prompt.values})

    def scope(self) -> str:
        """Project, region and model on Vertex AI; the key's reference and the model on the Developer API."""
        place = f"projects/{self.project}/locations/{self.location}" if self.on_vertex else f"{self.api_key}"
        return f"{place} {self.model}"

    @property
    def embeds_in_batches(self) -> bool:
        return not self.on_vertex

    def unbatchable(self) -> str | None:
        if not self.on_vertex:
            return super().unbatchable()
        if self.batch is not None and self.batch.staging is not None:
            return None
        return "jobs of Vertex AI read and write files in Cloud Storage: add staging: gs://BUCKET/FOLDER"

    async def connect(self) -> Connection:
        return await open_connection("rankbeam.transforms.clients.models.gemini_connection", self)
