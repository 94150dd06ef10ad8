"""Calls besides writing and checking: embeddings of texts, and rankings for questions."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.retrievers.remote import Retrieve, payload_of
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.reply import Reply

EMBED, SEARCH = "embed", "search"


@dataclass(frozen=True)
class Missing:
    """A call without an answer."""

    failure: FailureKind
    message: str


@dataclass(frozen=True)
class TextEmbedding:
    """A text whose embedding is in the ledger, or will never be."""

    name: str
    missing: Missing | None = None  # why there is no embedding; None if there is one


@dataclass(frozen=True)
class EmbedTexts:
    """Embed texts; a `Work` whose items are texts."""

    embed: Embed
    stage: str = EMBED

    @property
    def services(self) -> Sequence[str]:
        return self.embed.services

    def steps(self, item: str) -> Steps[TextEmbedding]:
        """Ask once; the answer stays in the ledger."""
        (outcome,) = yield [self.embed.call(item)]
        return TextEmbedding(text_name(item), _missing(outcome))

    def read(self, call: Call, reply: Reply) -> Any:
        return self.embed.read(call, reply)


@dataclass(frozen=True)
class Sought:
    """A question that services are asked."""

    item_id: str
    question: str


@dataclass(frozen=True)
class Rankings:
    """The rankings of services for a question."""

    item_id: str
    doc_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Missing | None = None  # why there is none of some retriever; None if there are all


@dataclass(frozen=True)
class SearchServices:
    """Ask retrievers that are services; a `Work` whose items are `Sought`."""

    retrieve: Mapping[str, Retrieve]
    stage: str = SEARCH

    @property
    def services(self) -> Sequence[str]:
        return list(self.retrieve)

    def steps(self, item: Sought) -> Steps[Rankings]:
        calls = []
        for name, one in self.retrieve.items():
            ((key, text),) = one.questions([item.question])
            calls.append(Call(name, key, payload_of(text, one.reach), one.reach))
        outcomes = yield calls
        by_search = dict(zip(self.retrieve, outcomes, strict=True))
        missing = next(filter(None, map(_missing, outcomes)), None)
        rankings = {name: ranking.doc_ids for name, ranking in by_search.items() if not isinstance(ranking, CallError)}
        return Rankings(item.item_id, rankings, missing)

    def read(self, call: Call, reply: Reply) -> Any:
        return self.retrieve[call.service].read(call, reply)


def text_name(text: str) -> str:
    """The name of a text as a task: equal texts have one."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _missing(outcome: Any) -> Missing | None:
    return Missing(outcome.kind, outcome.message) if isinstance(outcome, CallError) else None
