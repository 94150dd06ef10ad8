"""Stages of configurations: rewriting, reranking, fusion, generation; and configurations that differ by one stage."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

RERANK = "rerank"
MOST_DEPTH, DEFAULT_DEPTH = 1000, 50
Texts = tuple[str, tuple[str, ...]]  # a query, and the texts that are scored for it in one call
Scores = tuple[tuple[str, float | None], ...]  # hashes of texts with their scores; None for a text that got none
HIGHEST_RATING = 10  # the highest rating that a reranking model may give a text; the lowest is 0
REWRITE = "rewrite"
ADDED = (REWRITE, RERANK)  # stages that a configuration may have or lack
RETRIEVER = "retriever"  # the stage in which configurations with different types of retrievers differ
_SEARCH = frozenset({RETRIEVER, "corpus"})


class FusionMethod(StrEnum):
    """The way of combining several rankings into one."""

    RRF = "rrf"
    WEIGHTED = "weighted"
    MNZ = "mnz"


class Normalisation(StrEnum):
    """The normalization of scores, which makes rankings comparable."""

    MIN_MAX = "min_max"
    Z_SCORE = "z_score"
    SUM = "sum"
    NONE = "none"


@dataclass(frozen=True)
class FusionPart:
    """One of the rankings that are combined."""

    source: int
    top_k: int | None  # maximum results per query; None for all
    distance: float | None = None  # only results nearer than this; None for all
    weight: float = 1.0
    lower_is_better: bool = False


@dataclass(frozen=True)
class FusionPlan:
    """The recipe of a fused ranking."""

    parts: tuple[FusionPart, ...]  # the rankings that are combined, at least two
    method: FusionMethod = FusionMethod.RRF
    c: float = 60.0  # the constant of reciprocal rank fusion: a result at rank r (from 1) gets weight / (c + r)
    normalisation: Normalisation = Normalisation.MIN_MAX


@dataclass(frozen=True)
class RerankPlan:
    """The ranking that is reranked."""

    source: int
    depth: int  # results that are scored
    distance: float | None = None  # only results nearer than this; None for all


def by_score(scores: Sequence[float | None]) -> list[int]:
    """The positions of results, best first: equal scores in the retriever's order, results without a score last.

    >>> by_score([0.5, None, 0.9, 0.5])
    [2, 0, 3, 1]
    """
    values = [0.0 if score is None else score for score in scores]
    return sorted(range(len(scores)), key=lambda place: (scores[place] is None, -values[place]))


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
    thinking: int | None = None  # budget of thinking tokens; None for the model's default
    sample: int = 0  # number of this reply among several to one prompt


@dataclass(frozen=True)
class RewrittenQuery:
    """The text that is sent to a source instead of the query."""

    rewriting: Rewriting
    number: int  # which text of the reply
    appended: bool = False  # whether the text follows the query instead of replacing it


def stage_between(parameters: str, other: str) -> str | None:
    """The only stage that a configuration has and another lacks, or `RETRIEVER`; None if they differ otherwise.

    >>> plain, reranked = '{"retriever":{"type":"bm25"}}', '{"rerank":{"depth":9},"retriever":{"type":"bm25"}}'
    >>> stage_between(reranked, plain), stage_between(plain, reranked)
    ('rerank', None)
    """
    ours, theirs = _parts(parameters), _parts(other)
    differing = {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
    for stage in ADDED:
        if differing == {stage}:
            return stage if stage not in theirs else None
    is_other_type = ours.get(RETRIEVER, {}).get("type") != theirs.get(RETRIEVER, {}).get("type")
    corpora = [parts.get("corpus") or {"type": None} for parts in (ours, theirs)]
    is_other_size = corpora[0] != corpora[1] and corpora[0].get("type") == corpora[1].get("type")
    return RETRIEVER if differing and differing <= _SEARCH and is_other_type and not is_other_size else None


@lru_cache(maxsize=16)
def added_pairs(parameters: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Positions of every configuration with a stage, and of the configuration that lacks only this stage."""
    places = {text: place for place, text in enumerate(parameters)}
    return tuple(
        (place, places[without])
        for place, text in enumerate(parameters)
        for _, without in ablations(text)
        if without in places
    )


def ablations(parameters: str) -> Iterator[tuple[str, str]]:
    """Stages of a configuration, each with the parameters of the configuration that lacks only it."""
    parts = _parts(parameters)
    for stage in ADDED:
        if stage in parts:
            rest = {name: value for name, value in parts.items() if name != stage}
            yield stage, json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=16_384)
def _parts(parameters: str) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(parameters or "{}")
    return parts


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
    thinking: int | None = None  # budget of thinking tokens; None for the model's default
    samples: int = 1
    without_contexts: bool = False


@dataclass(frozen=True)
class Judging:
    """The settings of the judge, or of several."""

    services: tuple[str, ...]  # the first one writes the claims that all of them judge
    embeddings: str | None = None
    samples: int = 1
    repeat_share: float = 0.1
    prompts: str = "v2"  # a version of rankbeam's prompts, or the folder of prompts that replace them
    examples: str | None = None  # the folder of examples that the judge is shown; None for the version's
    max_output_tokens: int = 4096
    strict_version: bool = False
    labels: str | None = None  # the file, folder or table of labels, if any
    strata: str | None = None  # attribute by which the labelled queries were drawn
    max_context_tokens: int | None = None  # most tokens of a text that is judged at once; None for all
    in_windows: bool = True  # whether many items or sentences are judged in parts
