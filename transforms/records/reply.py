"""The reply of a service to one call, and the tokens that it charges."""

from dataclasses import astuple, dataclass, field, replace

_MOST = 10_000_000  # more than the window of any model


@dataclass(frozen=True)
class Tokens:
    """Tokens that a call used.

    Attributes:
        input: tokens of the request, cached ones included.
        cached: tokens of the request that the service had cached.
        output: tokens of the answer, thinking included.
        batch_input: the part of `input` that a batch job used, at half price.
        batch_output: the part of `output` that a batch job used, at half price.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    batch_input: int = field(default=0, repr=False)
    batch_output: int = field(default=0, repr=False)

    def __add__(self, other: "Tokens") -> "Tokens":
        """The sum of two usages.

        >>> Tokens(10, 2, 5) + Tokens(1, 1, 1)
        Tokens(input=11, cached=3, output=6)
        """
        return Tokens(
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.batch_input + other.batch_input,
            self.batch_output + other.batch_output,
        )

    def less(self, other: "Tokens") -> "Tokens":
        """The difference of two usages, none of its numbers below 0."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tokens(*(max(0, number - taken) for number, taken in pairs))

    def in_batch(self) -> "Tokens":
        """The same tokens as a batch job charges them: all at half price, without a discount for cached ones."""
        return replace(self, cached=0, batch_input=self.input, batch_output=self.output)

    def by_column(self) -> dict[str, int]:
        """The tokens by the columns of tables."""
        return {"input_tokens": self.input, "cached_tokens": self.cached, "output_tokens": self.output}

    @property
    def total(self) -> int:
        """Input plus output, as quotas count them."""
        return self.input + self.output

    @property
    def is_possible(self) -> bool:
        """True if one call can have used this many; a connection may pass on whatever a service reports.

        >>> Tokens(7, 7, 2).is_possible, Tokens(-5000).is_possible, Tokens(2**63).is_possible, Tokens(1, 2).is_possible
        (True, False, False, False)
        """
        counts = (self.input, self.cached, self.output)
        return all(type(count) is int and 0 <= count <= _MOST for count in counts) and self.cached <= self.input


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Reply:
    """The result of one attempt: a connection returns it, and the ledger stores it.

    Attributes:
        answer: JSON that the service's `read` understands, without secrets.
        tokens: tokens of the attempt; zero if the service does not charge by the token.
        parts: replies to the calls that share one request; their tokens add up to these.
        attempts: attempts at the call; 0 for all calls of a shared request but the first. Connections leave it out.
    """

    answer: str
    tokens: Tokens = NO_TOKENS
    parts: tuple["Reply", ...] = ()
    attempts: int = 1
