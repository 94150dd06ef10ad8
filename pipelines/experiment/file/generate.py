"""The schema of `generate:`, `rewrite:` and `rerank:` by a model, and their template files."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from rankbeam.pipelines.config.sections import MOST, Count, Samples, Word
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.rerankers import Depth
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.prompt import FENCE, check_template, variables_of
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.stages import DEFAULT_DEPTH, RewriteKind

MOST_TEXTS = 20
_N = {RewriteKind.HYDE: 1, RewriteKind.MULTI_QUERY: 3, RewriteKind.STANDALONE: 1}


class GenerateParameters(Parameters):
    """`generate:` of a configuration.

    Attributes:
        service: name of the model under `services:`.
        template: prompt file in which `{query}`, `{contexts}` and query attributes such as `{language}` are replaced.
            `{{` is a literal `{`, `}` needs no doubling, and a line `---` separates the system prompt from the user
            prompt. By default rankbeam's own prompt.
        contexts: maximum number of results that the model receives, best first.
        max_context_tokens: maximum tokens of all contexts together. Contexts that do not fit are left out completely,
            the last ones first.
        temperature: sampling temperature.
        seed: sampling seed.
        max_output_tokens: maximum tokens in an answer.
        thinking: thinking-token budget of Gemini models; by default the model decides. Other services ignore it.
        samples: number of answers generated for each query.
        without_contexts: if true, the model also answers queries for which nothing was retrieved.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    service: Word
    template: Word | None = None
    contexts: Count = 5
    max_context_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.0
    seed: Annotated[int, Field(ge=0, le=MOST)] = 0
    max_output_tokens: Count = 1024
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None
    samples: Samples = 1
    without_contexts: bool = False


def _kind(value: object) -> object:
    """A kind by its name; pydantic reports other values."""
    return RewriteKind(value) if isinstance(value, str) and value in {*RewriteKind} else value


class RewriteParameters(Parameters):
    """`rewrite:` of a configuration.

    Attributes:
        service: name of the model under `services:`.
        kind: "hyde" searches with a passage that could answer the query, "multi_query" also with `n` further queries,
            and "standalone" with a query that is complete without the conversation.
        n: number of passages or further queries; 1 for "hyde", 3 for "multi_query". Several rankings of one query are
            fused by reciprocal ranks.
        template: prompt file in which `{query}`, `{history}`, `{n}` and query attributes are replaced. By default
            rankbeam's own prompt.
        temperature: sampling temperature.
        seed: sampling seed.
        max_output_tokens: maximum tokens in one reply.
        thinking: thinking-token budget of Gemini models; by default the model decides. Other services ignore it.
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
        return _N[self.kind] if self.n is None else self.n


class ModelRerankParameters(Parameters):
    """A model under `services:` that rates each document from 0 to 10, or a cross-encoder of type `onnx`.

    Attributes:
        service: name of the model under `services:`.
        depth: number of results to request from the retriever and to rate.
        min_score: minimum score by the model. Results with a lower score, or without one, are left out.
        max_output_tokens: maximum tokens in one reply; not for cross-encoders.
        thinking: thinking-token budget of Gemini models; by default the model decides. Other services ignore it. Not
            for cross-encoders.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    added: ClassVar[frozenset[str]] = frozenset({"min_score"})

    service: Word
    depth: Depth = DEFAULT_DEPTH
    min_score: FiniteFloat | None = None
    max_output_tokens: Count = 256
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None


QUERY, CONTEXTS = "query", "contexts"
OWN = frozenset({QUERY, CONTEXTS, FENCE})  # the variables that are not attributes of queries


@dataclass(frozen=True)
class TemplateFile:
    """The template of a prompt."""

    path: str | None  # the file; None for the template that comes with rankbeam
    text: str
    own: frozenset[str] = OWN  # variables that are not attributes of queries

    @property
    def attributes(self) -> frozenset[str]:
        return variables_of(self.text) - self.own

    def problems(self, attributes: Collection[str] | None, without_contexts: bool) -> Iterator[InputError]:
        known = self.attributes if attributes is None else attributes
        try:
            check_template(self.text, (*sorted(self.own), *known), self.path)
        except InputError as error:
            yield error
            return
        names = variables_of(self.text)
        if QUERY not in names:
            yield InputError("has no {query}: the model would not see the question", path=self.path)
        if CONTEXTS in self.own - names and not without_contexts:
            problem = "has no {contexts}; add them, or set without_contexts: true under generate:"
            yield InputError(problem, path=self.path)


@cache
def answer_template() -> TemplateFile:
    file = package_files("rankbeam.pipelines.experiment.file").joinpath("templates", "answer.txt")
    return TemplateFile(None, file.read_text("utf-8"))


def read_template(folder: str, place: str) -> TemplateFile:
    (path, *_) = sources.expand(files.below(folder, place))
    return TemplateFile(path, files.read_text(path, "a template is a text file"))
