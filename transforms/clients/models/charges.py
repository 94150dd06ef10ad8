"""Tokens of a model's calls: counted by the service, and estimated where it does not count or cannot be believed."""

from dataclasses import dataclass, field, replace
from typing import Any

from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN, estimated_tokens
from rankbeam.transforms.records.reply import Tokens

_MOST = 10_000_000  # more than the window of any model


@dataclass(frozen=True)
class ReportedUsage:
    """Token counts of a reply, as a service reports them: any JSON values."""

    input: Any = None  # tokens of the request, cached ones included
    cached: Any = None  # tokens of the request that the service had cached
    output: Any = None  # tokens of the answer, thinking included

    @property
    def is_empty(self) -> bool:
        """True if the service counts nothing."""
        return not (self.input or self.cached or self.output)

    def tokens(self) -> Tokens | None:
        """The tokens; None where no call can have used so many.

        >>> ReportedUsage(7, None, 2.0).tokens(), ReportedUsage(-7, 0, 2).tokens(), ReportedUsage(7, 8).tokens()
        (Tokens(input=7, cached=0, output=2), None, None)
        """
        counts = [_count(value) for value in (self.input, self.cached, self.output)]
        if any(count is None for count in counts):
            return None
        tokens = Tokens(*(count or 0 for count in counts))
        return tokens if tokens.cached <= tokens.input else None


@dataclass
class Charges:
    """Counts the tokens of a connection's calls."""

    service: str
    warnings: list[str] = field(default_factory=list)

    def of(self, usage: ReportedUsage, request: str, answer: str = "", limit: int | None = None) -> Tokens:
        """The tokens of a call.

        >>> Charges("m").of(ReportedUsage(7, 0, 2), "eight ch"), Charges("m").of(ReportedUsage(), "eight ch", "four")
        (Tokens(input=7, cached=0, output=2), Tokens(input=2, cached=0, output=1))
        """
        estimate = Tokens(estimated_tokens(request), 0, estimated_tokens(answer) if limit is None else limit)
        tokens = usage.tokens()
        if tokens is None:
            self._warn("reports numbers of tokens that no call can use")
            return estimate
        if usage.is_empty or (estimate.output and not tokens.output):
            self._warn("does not say how many tokens its calls take")
            return estimate if usage.is_empty else replace(tokens, output=estimate.output)
        return tokens

    def _warn(self, problem: str) -> None:
        warning = (
            f"{self.service} {problem}: they, and what they cost, are estimated, "
            f"at {CHARACTERS_PER_TOKEN} characters a token"
        )
        if warning not in self.warnings:
            self.warnings.append(warning)


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    if value is None:
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= _MOST and value == int(value) else None
