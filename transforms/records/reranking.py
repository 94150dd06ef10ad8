"""Reranking: which ranking is reranked and how deep, and the texts that one call scores."""

from collections.abc import Sequence
from dataclasses import dataclass

STAGE = "rerank"
MOST_DEPTH, DEFAULT_DEPTH = 1000, 50

Texts = tuple[str, tuple[str, ...]]
"""A query, and the texts that are scored for it in one call."""

Scores = tuple[tuple[str, float | None], ...]
"""Hashes of texts with their scores; None for a text that got none."""


@dataclass(frozen=True)
class RerankPlan:
    """The ranking that is reranked."""

    source: int
    depth: int  # results that are scored
    distance: float | None = None  # only results nearer than this; None for all


def by_score(scores: Sequence[float | None]) -> list[int]:
    """The places of results, best first: equal scores in the retriever's order, results without a score last.

    >>> by_score([0.5, None, 0.9, 0.5])
    [2, 0, 3, 1]
    """
    known = [0.0 if score is None else score for score in scores]
    return sorted(range(len(scores)), key=lambda place: (scores[place] is None, -known[place]))
