"""The reply of a service to one call, and the tokens that it charges."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Tokens that a call used.

    Attributes:
        input: tokens of the request, cached ones included.
        cached: tokens of the request that the service had cached.
        output: tokens of the answer, thinking included.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        """The sum of both.

        >>> Tokens(10, 2, 5) + Tokens(1, 1, 1)
        Tokens(input=11, cached=3, output=6)
        """
        return Tokens(self.input + other.input, self.cached + other.cached, self.output + other.output)

    @property
    def total(self) -> int:
        """Input plus output, as quotas count them."""
        return self.input + self.output


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Reply:
    """The result of one attempt: a connection returns it, and the ledger keeps it.

    Attributes:
        answer: JSON that the service's `read` understands, without secrets.
        tokens: tokens of the attempt; zero where the service does not charge by the token.
        parts: where one request makes several calls, the reply to each of them; their tokens add up to these.
    """

    answer: str
    tokens: Tokens = NO_TOKENS
    parts: tuple["Reply", ...] = ()
