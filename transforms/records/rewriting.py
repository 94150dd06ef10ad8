"""Rewriting of queries before they are retrieved for."""

from dataclasses import dataclass
from enum import StrEnum

STAGE = "rewrite"


class RewriteKind(StrEnum):
    """The kind of text that a query is rewritten as."""

    HYDE = "hyde"
    MULTI_QUERY = "multi_query"
    STANDALONE = "standalone"


@dataclass(frozen=True)
class Rewriting:
    """The settings of a model that rewrites queries."""

    service: str
    kind: RewriteKind
    template: str
    n: int = 1  # texts of one reply
    temperature: float = 0.0
    seed: int = 0
    max_output_tokens: int = 512
    thinking: int | None = None  # tokens that the model may think; None for as many as it has by default
    sample: int = 0  # number of this reply among several to one prompt


@dataclass(frozen=True)
class RewrittenQuery:
    """The text that a source is asked instead of the query."""

    rewriting: Rewriting
    number: int  # which text of the reply
    appended: bool = False  # whether the text follows the query, and does not replace it
