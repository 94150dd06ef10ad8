"""What a service replies to one call, and what it charges for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Tokens that a call took.

    Attributes:
        input: of the request, cached ones among them.
        cached: of the request, those that the service had in a cache.
        output: of the answer, thinking among them.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        """Both together.

        >>> Tokens(10, 2, 5) + Tokens(1, 1, 1)
        Tokens(input=11, cached=3, output=6)
        """
        return Tokens(self.input + other.input, self.cached + other.cached, self.output + other.output)

    @property
    def total(self) -> int:
        """Input and output, as quotas count them."""
        return self.input + self.output


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Reply:
    """What a connection returns for one attempt, and the ledger keeps.

    Attributes:
        answer: JSON that the service's `read` understands, without secrets.
        tokens: that the attempt took; zero where the service does not charge by the token.
    """

    answer: str
    tokens: Tokens = NO_TOKENS
