"""How the answers of a configuration are made, and how answers are judged, as the stages see it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Generation:
    """How a model answers a query from the first contexts of a ranking.

    Attributes:
        service: name of the service that answers.
        template: the text of the template, what the model is asked; see `Prompt`.
        contexts: so many of the first results are given to it, at most.
        max_context_tokens: of all contexts together; whole ones are left out from the end. None for no limit.
        temperature: of sampling.
        seed: of sampling.
        max_output_tokens: of an answer.
        thinking: tokens that the model may think; None for as many as it has by default.
        samples: answers for each query.
        without_contexts: queries for which nothing was retrieved are asked, too.
    """

    service: str
    template: str
    contexts: int = 5
    max_context_tokens: int | None = None
    temperature: float = 0.0
    seed: int = 0
    max_output_tokens: int = 1024
    thinking: int | None = None
    samples: int = 1
    without_contexts: bool = False


@dataclass(frozen=True)
class Judging:
    """How answers and contexts are judged.

    Attributes:
        service: name of the service that judges.
        embeddings: name of the service that embeds texts, for metrics by similarity; None where there is none.
        samples: verdicts for each item.
        repeat_share: the share of items that are judged three times, to show how far verdicts repeat.
        prompts: the folder with prompts that replace those of rankbeam; None for none.
        max_output_tokens: of a verdict, or of all that one call asks for.
        strict_version: verdicts of more than one version of the model are refused.
    """

    service: str
    embeddings: str | None = None
    samples: int = 1
    repeat_share: float = 0.1
    prompts: str | None = None
    max_output_tokens: int = 4096
    strict_version: bool = False
