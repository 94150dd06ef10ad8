"""Rerankers: services that score the texts of a ranking for its query. This module has their base and their work."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, FiniteFloat

from rankbeam.transforms.clients.parameters import Kind
from rankbeam.transforms.clients.retrievers.base import RemoteRetriever, RetrieverParameters, Route
from rankbeam.transforms.records.calls.steps import Call, ServiceWork, Steps, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import DEFAULT_DEPTH, MOST_DEPTH, RERANK, Scores, Texts

Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH)]


class Reranker(RemoteRetriever):
    """The parameters that all remote rerankers have; a subclass adds its own.

    Attributes:
        depth: number of results to request from the retriever and to score.
        min_score: minimum score by the reranker. Results with a lower score, or without one, are left out.
        most_texts: the most texts of one call; None where no limit is known.
    """

    depth: Depth = DEFAULT_DEPTH
    min_score: FiniteFloat | None = None

    route: ClassVar[Route] = Route.RERANKED
    reading: ClassVar[frozenset[str]] = frozenset({"depth", "min_score"})
    added: ClassVar[frozenset[str]] = frozenset({"min_score"})
    most_texts: ClassVar[int | None] = None

    @property
    def is_pointwise(self) -> bool:
        """True if the score of a text does not depend on the other texts of the call."""
        return True

    def key(self, kind: str, texts: Texts) -> str:
        query, documents = texts
        request = {**self.identity(kind), "stage": RERANK, "query": query, "documents": list(documents)}
        return content_key(request)

    def payload(self, texts: Texts) -> str:
        query, documents = texts
        return json.dumps({"query": query, "documents": list(documents)}, ensure_ascii=False)

    def scores(self, answer: str, number: int) -> tuple[float | None, ...]:
        """The score of each of the texts of a call; None for a text that the answer leaves out.

        Raises:
            CallError: the answer scores a text twice or one that was not sent, or a score is not a finite number.
        """
        ranking = self.read(answer)
        scores: list[float | None] = [None] * number
        for name, score in zip(ranking.doc_ids, ranking.scores, strict=True):
            place = int(name) if name.isascii() and name.isdecimal() else number
            if place >= number:
                raise _malformed(f"scores text {name!r}, but texts 0 to {number - 1} were sent")
            if scores[place] is not None:
                raise _malformed(f"scores text {place} twice")
            if not math.isfinite(score):
                raise _malformed(f"has no finite score for text {place}")
            scores[place] = score
        if number and not ranking.doc_ids:
            raise _malformed("returns no scores")
        return tuple(scores)


RERANKERS = Kind("reranker", "rankbeam.rerankers", Reranker, methods=("connect",))  # the types of rerankers


class ByService(RetrieverParameters):
    """Rankings that a model under `services:` reranks."""

    route: ClassVar[Route] = Route.RERANKED
    needs: ClassVar[tuple[str, ...]] = ()


class FusedLists(RetrieverParameters):
    """Rankings of one retriever for several texts of a query, which are fused."""

    route: ClassVar[Route] = Route.FUSED
    needs: ClassVar[tuple[str, ...]] = ()


def _malformed(problem: str) -> CallError:
    return CallError(FailureKind.MALFORMED, f"the reranker {problem}")


@dataclass(frozen=True)
class Rerank(ServiceWork):
    """Asks a reranker for the scores of texts."""

    kind: str
    reranker: Reranker

    stage: ClassVar[str] = RERANK

    @property
    def most_texts(self) -> int | None:
        return self.reranker.most_texts

    @property
    def is_pointwise(self) -> bool:
        return self.reranker.is_pointwise

    def call(self, item: Texts) -> Call:
        return Call(self.service, self.reranker.key(self.kind, item), self.reranker.payload(item), step=RERANK)

    def steps(self, item: Texts) -> Steps[Scores]:
        (scores,) = results_or_raise((yield [self.call(item)]))
        return tuple(zip(map(text_hash, item[1]), scores, strict=True))

    def read(self, call: Call, reply: Reply) -> tuple[float | None, ...]:
        return self.reranker.scores(reply.answer, len(json.loads(call.payload)["documents"]))
