"""Pairs of configurations that differ by one stage only."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

ADDED = ("rewrite", "rerank")
"""Stages that a configuration may have or lack."""

RETRIEVER = "retriever"
"""The stage in which configurations differ that have other types of retrievers."""

_SEARCH = frozenset({RETRIEVER, "corpus"})


def stage_between(parameters: str, other: str) -> str | None:
    """The only stage that a configuration has and another lacks, or `RETRIEVER`; None if they differ otherwise.

    >>> plain, reranked = '{"retriever":{"type":"bm25"}}', '{"rerank":{"depth":9},"retriever":{"type":"bm25"}}'
    >>> stage_between(reranked, plain), stage_between(plain, reranked)
    ('rerank', None)
    """
    one, two = _parts(parameters), _parts(other)
    differing = {name for name in {*one, *two} if one.get(name) != two.get(name)}
    for stage in ADDED:
        if differing == {stage}:
            return stage if stage not in two else None
    is_other_type = one.get(RETRIEVER, {}).get("type") != two.get(RETRIEVER, {}).get("type")
    return RETRIEVER if differing and differing <= _SEARCH and is_other_type else None


@lru_cache(maxsize=16)
def added_pairs(parameters: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Positions of every configuration with a stage, and of the one that lacks this stage alone.

    Args:
        parameters: canonical parameters of the configurations.
    """
    places = {text: place for place, text in enumerate(parameters)}
    return tuple(
        (place, places[without])
        for place, text in enumerate(parameters)
        for _, without in lacking(text)
        if without in places
    )


def lacking(parameters: str) -> Iterator[tuple[str, str]]:
    """Stages of a configuration, each with the parameters of the configuration that lacks it."""
    parts = _parts(parameters)
    for stage in ADDED:
        if stage in parts:
            rest = {name: value for name, value in parts.items() if name != stage}
            yield stage, json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=16_384)
def _parts(parameters: str) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(parameters or "{}")
    return parts
