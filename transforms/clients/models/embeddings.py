"""Embeddings of texts by a model: the calls, and the vectors that are then in the ledger."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.clients.models.base import Embedding, ModelParameters, Role
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.records.calls.steps import Call, ServiceWork, Steps, results_or_raise
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Embeddings, mixed_lengths
from rankbeam.transforms.records.reply import Reply

STAGE = "embed"
_AT_ONCE, _COMPUTED_AT_ONCE = 1000, 256

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embed(ServiceWork):
    """Asks a model to embed a text; the answer stays in the ledger."""

    kind: str
    parameters: ModelParameters
    role: Role = Role.DOCUMENT

    stage: ClassVar[str] = STAGE

    @property
    def is_called(self) -> bool:
        """True if a lane calls the model; False if it runs where its vectors are compared."""
        return not isinstance(self.parameters, Onnx)

    @property
    def name(self) -> str:
        """The name of the work; roles in which the model embeds texts differently have different names."""
        return self.service if self.role is Role.DOCUMENT else f"{self.service} {self.role}"

    def as_role(self, role: Role) -> "Embed":
        """The work that embeds texts in a role; this work if the model embeds them alike."""
        is_other = self.parameters.embedding("", role) != self.parameters.embedding("", self.role)
        return replace(self, role=role) if is_other else self

    def call(self, text: str) -> Call:
        prompt = self.parameters.embedding(text, self.role)
        return Call(self.service, self.parameters.key(self.kind, prompt), prompt.payload(), step=prompt.step)

    def steps(self, item: str) -> Steps[None]:
        results_or_raise((yield [self.call(item)]))

    def read(self, call: Call, reply: Reply) -> Embedding:  # noqa: ARG002  every answer is read alike
        answer = self.parameters.read(reply.answer)
        if not isinstance(answer, Embedding):
            raise CallError(FailureKind.INVALID, "the model answers with a text; name one that embeds texts")
        return answer


@dataclass(frozen=True)
class _ModelEmbeddings:
    """The embeddings of a model; see `records.queries.Embeddings`."""

    model: Embed
    role: Role = Role.QUERY  # the role that `of_queries` sets

    @property
    def identity(self) -> str:
        return self.model.call("").key or ""

    def of_queries(self) -> Self:
        return replace(self, model=self.model.as_role(self.role))


@dataclass(frozen=True)
class KeptEmbeddings(_ModelEmbeddings):
    """The embeddings in a ledger."""

    ledger: str = field(kw_only=True)
    is_kept: ClassVar[bool] = True

    def cut_warning(self, what: str, cut: int, total: int) -> str:
        """Not available: services do not report which texts they cut."""
        raise NotImplementedError

    def vectors(self, texts: Iterable[str], cut: list[int]) -> Iterator[Vector | None]:  # noqa: ARG002  not known
        from rankbeam.transforms.clients.ledger import Ledger  # few experiments embed texts

        lookup = Ledger(self.ledger).lookup()
        lookup.refresh()
        length = 0
        for batch in batched(texts, _AT_ONCE):
            calls = [self.model.call(text) for text in batch]
            keys = {call.key or "": None for call in calls}
            by_key = {entry.key: self._vector(entry.answer) for entry in lookup.read(keys)}
            for vector in (by_key.get(call.key or "") for call in calls):
                if vector is not None and len(vector) != (length := length or len(vector)):
                    raise mixed_lengths(length, len(vector), self.model.service, self.ledger)
                yield vector

    def _vector(self, answer: str) -> Vector | None:
        try:
            embedding = self.model.parameters.read(answer)
        except CallError:  # the refusal is final
            return None
        if not isinstance(embedding, Embedding) or not any(embedding.vector):  # zeros have no direction
            return None
        return np.array(embedding.vector, np.float32)


@dataclass(frozen=True)
class ComputedEmbeddings(_ModelEmbeddings):
    """The embeddings of a model in this process, computed where they are compared."""

    is_kept: ClassVar[bool] = False

    def vectors(self, texts: Iterable[str], cut: list[int]) -> Iterator[Vector | None]:
        from rankbeam.transforms.clients.calls.tally import count  # imports Beam

        session, number = self._onnx.session, 0
        for batch in batched(texts, _COMPUTED_AT_ONCE):
            full = [self._onnx.embedding(text, self.model.role).values["text"] for text in batch if text.strip()]
            embedded = iter(session.embed_all(full))
            count(Counter.TEXTS_EMBEDDED, len(full))
            for text in batch:
                embedding = next(embedded) if text.strip() else None
                number += embedding is not None and embedding.is_cut
                yield None if embedding is None else embedding.vector
        cut.append(number)

    @property
    def _onnx(self) -> Onnx:
        assert isinstance(self.model.parameters, Onnx)  # noqa: S101  others are called
        return self.model.parameters

    def cut_warning(self, what: str, cut: int, total: int) -> str:
        number = f"{cut:,} of {total:,} {what} {'has' if cut == 1 else 'have'} more than {self._onnx.limit:,} tokens"
        advice = "raise max_tokens if the model takes more, or make the texts shorter"
        return f"{self.model.service}: {number}, and the rest of the text is not embedded; {advice}"


def embeddings_of(model: Embed, ledger: str, role: Role = Role.QUERY, *, computes: bool = True) -> Embeddings:
    """The embeddings of a model: from a ledger, or computed in this process if that is possible and allowed."""
    is_computed = computes and not model.is_called
    return ComputedEmbeddings(model, role) if is_computed else KeptEmbeddings(model, role, ledger=ledger)


def batched(texts: Iterable[str], at_once: int) -> Iterator[list[str]]:
    remaining = iter(texts)
    while batch := list(islice(remaining, at_once)):
        yield batch
