"""The schema of `generate:` and `judge:`: the models that answer and judge, and their input."""

from typing import Annotated

from pydantic import ConfigDict, Field

from rankbeam.pipelines.experiment.keys import MOST, Count, Section, Word
from rankbeam.transforms.clients.parameters import Parameters

Samples = Annotated[int, Field(ge=1, le=100)]


class GenerateParameters(Parameters):
    """`generate:` of a configuration.

    Attributes:
        service: name of the model, under `services:`.
        template: a text file in which `{query}`, `{contexts}` and attributes of the query, such as `{language}`, are
            replaced; `{{` is a brace, and a line `---` parts system from user text. By default rankbeam's own.
        contexts: so many of the first results are given to the model, at most.
        max_context_tokens: of all contexts together; whole ones are left out from the end.
        temperature: of sampling.
        seed: of sampling.
        max_output_tokens: of an answer.
        thinking: tokens that the model may think; by default as many as it does.
        samples: answers for each query.
        without_contexts: queries for which nothing was retrieved are asked, too.
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
    """`judge:`, how answers and contexts are judged.

    Attributes:
        service: name of the model that judges, under `services:`.
        embeddings: name of the model that embeds texts, for metrics by similarity.
        samples: verdicts for each item.
        repeat_share: the share of items that are judged three times, to show how far verdicts repeat.
        prompts: a folder with prompts that replace those of rankbeam.
        max_output_tokens: of a verdict, or of all that one call asks for.
        strict_version: a run with verdicts of more than one version of the model ends with status 3; else it warns.
    """

    service: Word
    embeddings: Word | None = None
    samples: Samples = 1
    repeat_share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    prompts: Word | None = None
    max_output_tokens: Count = 4096
    strict_version: bool = False
