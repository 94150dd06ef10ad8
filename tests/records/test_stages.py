"""Pairs of configurations that differ by one stage, against a comparison of every two of them."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.records.stages import ADDED, RETRIEVER, added_pairs, stage_between

RETRIEVERS: list[dict[str, Any]] = [{"type": "bm25"}, {"type": "bm25", "k1": 1}, {"type": "dense"}]
PARTS = st.fixed_dictionaries(
    {
        "retriever": st.sampled_from([{"type": "bm25"}, {"type": "bm25", "k1": 1}, {"type": "dense"}]),
        "top_k": st.integers(5, 6),
    },
    optional={
        "corpus": st.sampled_from([{"type": "chunks", "chunk_size": size} for size in (9, 18)] + [{"type": "served"}]),
        "rewrite": st.sampled_from([{"kind": "hyde"}, {"kind": "multi_query"}]),
        "rerank": st.sampled_from([{"depth": 5}, {"depth": 9}]),
        "generate": st.just({"service": "ü"}),
    },
)


def canonical(parts: dict[str, Any]) -> str:
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.lists(PARTS, max_size=8, unique_by=canonical))
def test_every_pair_that_differs_by_one_stage_is_found_once(configurations: list[dict[str, Any]]) -> None:
    expected = {
        (i, j)
        for i, one in enumerate(configurations)
        for j, other in enumerate(configurations)
        for stage in ADDED
        if stage in one and stage not in other and {**one, stage: None} == {**other, stage: None}
    }
    pairs = added_pairs(tuple(map(canonical, configurations)))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    for i, j in pairs:
        assert stage_between(canonical(configurations[i]), canonical(configurations[j])) in ADDED
        assert stage_between(canonical(configurations[j]), canonical(configurations[i])) is None


@given(PARTS, PARTS)
@example(
    {"retriever": {"type": "bm25"}, "corpus": {"type": "chunks", "chunk_size": 9}},
    {"retriever": {"type": "dense"}, "corpus": {"type": "chunks", "chunk_size": 18}},
)
def test_retrievers_differ_in_their_type_and_the_corpus_that_only_one_can_search(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    rest = [
        {name: value for name, value in parts.items() if name not in ("retriever", "corpus")} for parts in (one, other)
    ]
    is_pair = rest[0] == rest[1] and one["retriever"]["type"] != other["retriever"]["type"]
    corpora = [parts.get("corpus", {}) for parts in (one, other)]
    is_pair &= corpora[0] == corpora[1] or corpora[0].get("type") != corpora[1].get("type")
    assert (stage_between(canonical(one), canonical(other)) == RETRIEVER) == is_pair
