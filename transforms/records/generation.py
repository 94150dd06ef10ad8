"""The settings of generation and judging, as the stages see them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Generation:
    """The settings of a model that answers a query from the first contexts of a ranking."""

    service: str
    template: str
    contexts: int = 5
    max_context_tokens: int | None = None
    temperature: float = 0.0
    seed: int = 0
    max_output_tokens: int = 1024
    thinking: int | None = None  # tokens that the model may think; None for as many as it has by default
    samples: int = 1
    without_contexts: bool = False


@dataclass(frozen=True)
class Judging:
    """The settings of the judge, or of several."""

    service: str  # the only one, or the first
    embeddings: str | None = None
    samples: int = 1
    repeat_share: float = 0.1
    prompts: str = "v2"  # a version of rankbeam's prompts, or the folder of those that replace them
    examples: str | None = None  # the folder of examples that the judge is shown; None for those of the version
    max_output_tokens: int = 4096
    strict_version: bool = False
    labels: str | None = None  # the file, folder or table of labels; None for none
    strata: str | None = None  # attribute by which the labelled queries were drawn
    others: tuple[str, ...] = ()
    max_context_tokens: int | None = None  # of a text that is judged at once; None for all
    in_windows: bool = True  # many items or sentences are judged in parts

    @property
    def services(self) -> tuple[str, ...]:
        return (self.service, *self.others)
