"""Asking an application, as remote work: one call a query, which answers it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rankbeam.transforms.clients.retrievers.applications.adk import AdkApplication
from rankbeam.transforms.clients.retrievers.applications.chat import ChatApplication
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.retrieve import Question, Retrieve
from rankbeam.transforms.records.applications import ApplicationAnswer
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.reply import Reply

APPLICATIONS: Mapping[str, type[HttpApplication]] = {
    "http": HttpApplication,
    "openai_chat": ChatApplication,
    "adk": AdkApplication,
}
"""Types of `answers:` that are asked."""


@dataclass(frozen=True)
class Ask(Retrieve):
    """Asks an application for the answer to a query."""

    retriever: HttpApplication

    def of_queries(self, queries: pa.RecordBatch) -> list[Question]:
        """Key and payload for each query."""
        return self.retriever.requests(self.kind, queries)

    def steps(self, item: Question) -> Steps[ApplicationAnswer]:  # type: ignore[override]
        key, payload = item
        answer: ApplicationAnswer
        (answer,) = accepted((yield [Call(self.service, key, payload, self.reach)]))
        return answer

    def read(self, call: Call, reply: Reply) -> ApplicationAnswer:  # type: ignore[override]  # noqa: ARG002
        """The answer that a reply holds."""
        return self.retriever.read(reply.answer)
