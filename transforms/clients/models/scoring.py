"""Reranking by a model: as remote work, in which one call rates one text for a query, or in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from rankbeam.transforms.clients.models.base import Completion, ModelParameters
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.records.calls.prompt import Template, newest
from rankbeam.transforms.records.calls.steps import Call, ServiceWork, Steps, unless_blocked
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.forms import Form, parse_form, schema_of
from rankbeam.transforms.records.labels import text_hash
from rankbeam.transforms.records.reply import Reply
from rankbeam.transforms.records.stages import HIGHEST_RATING, RERANK, Scores, Texts

if TYPE_CHECKING:
    from rankbeam.transforms.clients.models.onnx_session import ScoredPair


class Rating(Form):
    """The reply of a model that rates a text."""

    score: Annotated[int, Field(ge=0, le=HIGHEST_RATING)]


@cache
def _template() -> Template:
    return newest("rankbeam.transforms.clients.models", lambda _step, _values: schema_of(Rating))[RERANK]


@dataclass(frozen=True)
class Rate(ServiceWork):
    """Asks a model to rate a text from 0 to 10."""

    kind: str
    parameters: ModelParameters
    max_output_tokens: int
    thinking: int | None = None

    stage: ClassVar[str] = RERANK
    most_texts: ClassVar[int | None] = 1
    is_pointwise: ClassVar[bool] = True

    def call(self, item: Texts) -> Call:
        query, (text,) = item
        settings = {"max_output_tokens": self.max_output_tokens, "thinking": self.thinking}
        prompt = _template().prompt({"query": query, "document": text}, **settings)
        return Call(self.service, self.parameters.key(self.kind, prompt), prompt.payload(), step=prompt.step)

    def steps(self, item: Texts) -> Steps[Scores]:
        """Ask once; a text that the model refuses to rate has no score."""
        (outcome,) = yield [self.call(item)]
        (text,) = item[1]
        return ((text_hash(text), unless_blocked(outcome)),)

    def read(self, call: Call, reply: Reply) -> float:  # noqa: ARG002  every answer is read alike
        answer = self.parameters.read(reply.answer)
        if not isinstance(answer, Completion):
            raise CallError(FailureKind.INVALID, f"{self.service} embeds texts and cannot rate them")
        return float(parse_form(Rating, answer.text).score)


@dataclass(frozen=True)
class CrossEncode:
    """Scores texts for a query in this process, without calls."""

    service: str
    parameters: Onnx

    most_texts: ClassVar[int | None] = None
    is_pointwise: ClassVar[bool] = True

    def scored(self, query: str, texts: Sequence[str]) -> "Mapping[str, ScoredPair]":
        return dict(zip(map(text_hash, texts), self.parameters.scored(query, texts), strict=True))

    def cut_warning(self, cut: int, pairs: int) -> str:
        have = "has" if cut == 1 else "have"
        what = f"{cut:,} of {pairs:,} pairs of query and text {have} more than {self.parameters.limit:,} tokens"
        advice = "raise max_tokens if the model takes more, or search chunks"
        return f"{self.service}: {what}, and the end of the longer one is not scored; {advice}"
