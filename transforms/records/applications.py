"""The answer of a deployed application, with its contexts, tokens and durations."""

from dataclasses import dataclass

from rankbeam.transforms.records.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.trajectories import AgentSteps


@dataclass(frozen=True)
class Consumption:
    """Tokens and durations of the attempt that answered.

    Attributes:
        tokens: tokens that the application reports.
        seconds: duration of the attempt; None if it was not measured.
        first_token_s: time to the first token of a stream; None without a stream.
    """

    tokens: Tokens = NO_TOKENS
    seconds: float | None = None
    first_token_s: float | None = None


NO_CONSUMPTION = Consumption()
INVENTED = -1
"""The position of a cited context that the answer does not have."""


@dataclass(frozen=True)
class ApplicationAnswer:
    """The answer of an application to one query.

    Attributes:
        text: the answer.
        contexts: id and text of each context, best first; None if the application does not say them.
        consumption: tokens and durations.
        steps: calls of tools; None if the application does not say them.
        citations: positions of the contexts that the application says it cites, and `INVENTED` for each citation of
            something else; None for the numbers in the text.
    """

    text: str
    contexts: tuple[tuple[str | None, str | None], ...] | None
    consumption: Consumption = NO_CONSUMPTION
    steps: AgentSteps | None = None
    citations: tuple[int, ...] | None = None
