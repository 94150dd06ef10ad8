"""The schema of `generate:`, `judge:` and `rewrite:`, and of `rerank:` where a model reranks."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from rankbeam.pipelines.experiment.file.criteria import CriterionModel
from rankbeam.pipelines.experiment.file.keys import MOST, Count, Section, Word
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.rerankers import Depth
from rankbeam.transforms.records.stages import DEFAULT_DEPTH, RewriteKind

Samples = Annotated[int, Field(ge=1, le=100)]
MOST_TEXTS = 20
_N = {RewriteKind.HYDE: 1, RewriteKind.MULTI_QUERY: 3, RewriteKind.STANDALONE: 1}


class GenerateParameters(Parameters):
    """`generate:` of a configuration.

    Attributes:
        service: name of the model under `services:`.
        template: prompt file in which `{query}`, `{contexts}` and query attributes such as `{language}` are replaced.
            `{{` is a literal brace, and a line `---` separates the system prompt from the user prompt. By default
            rankbeam's own prompt.
        contexts: maximum number of results that the model receives, best first.
        max_context_tokens: maximum tokens of all contexts together. Contexts that do not fit are left out completely,
            the last ones first.
        temperature: sampling temperature.
        seed: sampling seed.
        max_output_tokens: maximum tokens in an answer.
        thinking: thinking-token budget; by default the model decides.
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


class JudgeModel(Section):
    """`judge:`, the settings for judging answers and contexts. A list of services is short for `{service: LIST}`.

    Attributes:
        service: name of the judging model under `services:`, or a list of several. Each judged metric then has a value
            by each judge, `Faithfulness(judge=NAME)`, and by the majority, `Faithfulness`. The first judge writes the
            claims that all of them judge.
        embeddings: name of the embedding model, for metrics based on similarity.
        samples: number of verdicts for each item.
        repeat_share: share of items that are judged three times, to measure how consistent verdicts are.
        prompts: version of rankbeam's prompts, `v1` or `v2` (the default), or a folder of prompts that replace those of
            `v2`. `v2` is in plainer English, names the language of the reply, ignores citation marks and Markdown, and
            has examples. `v1` reuses all verdicts bought with version 1, and splits texts only at `max_context_tokens`.
            Verdicts of one version are not reused for another.
        examples: folder of correct replies to show the judge, one file `STEP.jsonl` per step, instead of the built-in
            examples.
        max_output_tokens: maximum tokens in the reply to one call, whether it holds one verdict or several.
        max_context_tokens: maximum tokens of a text that is judged at once; choose less than the model can read. Longer
            texts are judged in parts: a claim is supported if any part supports it, and a context gets the grade of its
            best part. By default no context is judged in parts.
        strict_version: if true, a run whose verdicts come from more than one version of the model ends with status 3;
            otherwise it only warns.
        labels: folder of human labels, `OUT/labels`, which `rankbeam label OUT --apply FILE` writes, or a table,
            `bigquery://project.dataset.table`, to which `--labels` writes them. With labels, the
            agreement of the judge with people is measured, and metrics can be `Faithfulness(labels=True)`.
        criteria: questions of your own, by name. Each is a metric of that name.
    """

    bare: ClassVar[tuple[str, type] | None] = ("service", list)

    service: Word | Annotated[list[Word], Field(min_length=1)]
    embeddings: Word | None = None
    samples: Samples = 1
    repeat_share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    prompts: Word | None = None
    examples: Word | None = None
    max_output_tokens: Count = 4096
    max_context_tokens: Count | None = None
    strict_version: bool = False
    labels: Word | None = None
    criteria: dict[str, CriterionModel] = Field(default={})

    @property
    def services(self) -> tuple[str, ...]:
        """The names of all judges; none where what is written is not valid."""
        return (self.service,) if isinstance(self.service, str) else tuple(self.service or ())


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
        return _N[self.kind] if self.n is None else self.n


class ModelRerankParameters(Parameters):
    """A model under `services:` that rates each document from 0 to 10, or a cross-encoder of type `onnx`.

    Attributes:
        service: name of the model under `services:`.
        depth: number of results to request from the retriever and to rate.
        min_score: minimum score by the model. Results with a lower score, or without one, are left out.
        max_output_tokens: maximum tokens in one reply; not for cross-encoders.
        thinking: thinking-token budget; by default the model decides. Not for cross-encoders.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    added: ClassVar[frozenset[str]] = frozenset({"min_score"})

    service: Word
    depth: Depth = DEFAULT_DEPTH
    min_score: FiniteFloat | None = None
    max_output_tokens: Count = 256
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None
