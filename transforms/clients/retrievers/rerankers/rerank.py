"""Reranking by a remote reranker, as remote work: one call scores some texts for a query."""

import json
from dataclasses import dataclass
from typing import ClassVar

from rankbeam.transforms.clients.retrievers.rerankers.base import Reranker
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import RERANK, Scores, Texts


@dataclass(frozen=True)
class Rerank:
    """Asks a reranker for the scores of texts."""

    service: str
    kind: str
    reranker: Reranker

    stage: ClassVar[str] = RERANK

    @property
    def services(self) -> tuple[str]:
        """The reranker."""
        return (self.service,)

    @property
    def most_texts(self) -> int | None:
        """The most texts of one call; None for all of a query."""
        return self.reranker.most_texts

    @property
    def is_pointwise(self) -> bool:
        """True if the score of a text does not depend on the other texts of the call."""
        return self.reranker.is_pointwise

    def call(self, item: Texts) -> Call:
        """The call that asks for the scores of texts."""
        return Call(self.service, self.reranker.key(self.kind, item), self.reranker.payload(item), step=RERANK)

    def steps(self, item: Texts) -> Steps[Scores]:
        """Ask once."""
        (scores,) = accepted((yield [self.call(item)]))
        return tuple(zip(map(text_hash, item[1]), scores, strict=True))

    def read(self, call: Call, reply: Reply) -> tuple[float | None, ...]:
        """The scores in an answer."""
        return self.reranker.scores(reply.answer, len(json.loads(call.payload)["documents"]))
