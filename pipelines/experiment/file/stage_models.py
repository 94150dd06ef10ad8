"""The schema of `rewrite:`, and of `rerank:` where a model reranks; other rerankers have a type."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from rankbeam.pipelines.experiment.file.keys import MOST, Count, Word
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.rerankers.base import Depth
from rankbeam.transforms.records.reranking import DEFAULT_DEPTH
from rankbeam.transforms.records.rewriting import RewriteKind

MOST_TEXTS = 20
_N = {RewriteKind.HYDE: 1, RewriteKind.MULTI_QUERY: 3, RewriteKind.STANDALONE: 1}


def _kind(value: object) -> object:
    """A kind by its name; other values are reported by pydantic."""
    return RewriteKind(value) if isinstance(value, str) and value in {*RewriteKind} else value


class RewriteParameters(Parameters):
    """`rewrite:` of a configuration.

    Attributes:
        service: name of the model under `services:`.
        kind: "hyde" searches with a passage that could answer the query, "multi_query" also with `n` further queries,
            and "standalone" with a query that needs no conversation before it.
        n: number of passages or further queries; 1 for "hyde", 3 for "multi_query". Several rankings of one query are
            fused by reciprocal ranks.
        template: prompt file in which `{query}`, `{history}`, `{n}` and query attributes are replaced. By default
            rankbeam's own prompt.
        temperature: sampling temperature.
        seed: sampling seed.
        max_output_tokens: maximum tokens in one reply.
        thinking: thinking-token budget; by default the model decides.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    service: Word
    kind: Annotated[RewriteKind, BeforeValidator(_kind)]
    n: Annotated[int, Field(ge=1, le=MOST_TEXTS)] | None = None
    template: Word | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.0
    seed: Annotated[int, Field(ge=0, le=MOST)] = 0
    max_output_tokens: Count = 512
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None

    added: ClassVar[frozenset[str]] = frozenset({"thinking"})

    @model_validator(mode="after")
    def _one_standalone(self) -> "RewriteParameters":
        if self.kind is RewriteKind.STANDALONE and self.n not in (None, 1):
            raise ValueError("kind: standalone writes one query; leave out n")
        return self

    @property
    def texts(self) -> int:
        """Number of texts for each query."""
        return _N[self.kind] if self.n is None else self.n


class ModelRerankParameters(Parameters):
    """A model under `services:` that rates each document from 0 to 10, or a cross-encoder of type `onnx`.

    Attributes:
        service: name of the model under `services:`.
        depth: number of results to request from the retriever and to rate.
        max_output_tokens: maximum tokens in one reply; not for cross-encoders.
        thinking: thinking-token budget; by default the model decides. Not for cross-encoders.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    service: Word
    depth: Depth = DEFAULT_DEPTH
    max_output_tokens: Count = 256
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None
