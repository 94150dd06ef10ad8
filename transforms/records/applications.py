"""The answer of a deployed application, with its contexts, tokens and durations."""

from dataclasses import dataclass

from rankbeam.transforms.records.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.trajectories import AgentSteps


@dataclass(frozen=True)
class Consumption:
    """Tokens and durations of the attempt that answered."""

    tokens: Tokens = NO_TOKENS
    seconds: float | None = None  # duration of the attempt; None if it was not measured
    first_token_s: float | None = None  # time to the first token of a stream; None without a stream


NO_CONSUMPTION = Consumption()
INVENTED = -1
"""The position of a cited context that the answer does not have."""


@dataclass(frozen=True)
class ApplicationAnswer:
    """The answer of an application to one query."""

    text: str  # the answer
    # Id and text of each context, best first; None if the application does not say them.
    contexts: tuple[tuple[str | None, str | None], ...] | None
    consumption: Consumption = NO_CONSUMPTION  # tokens and durations
    steps: AgentSteps | None = None  # calls of tools; None if the application does not say them
    # Positions of the contexts that the application says it cites, and `INVENTED` for each citation of something else;
    # None for the numbers in the text.
    citations: tuple[int, ...] | None = None
