"""Fusions, distance cuts and missing scores through `score`, against plain Python."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.campaigns import examples

from rankbeam.transforms.clients.retrievers.fusion import Fusion
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import Failure, FailureKind, InputError
from rankbeam.transforms.records.metrics.dialects import DIALECTS
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.scores.scored import ScoredPartition, Status
from rankbeam.transforms.records.stages import FusionMethod, FusionPart, FusionPlan, Normalisation
from rankbeam.transforms.score import score

Document = tuple[str, float | None, str | None]
Rankings = Mapping[str, Sequence[Document]]
QUERIES = ["q1", "q10", "q2"]
CALLED, RUN = Source(None, None, False), Source("run.trec", None, False)
RRF = FusionPlan((FusionPart(0, None), FusionPart(1, None)))
WEIGHTED = replace(RRF, method=FusionMethod.WEIGHTED)


def scored(
    sources: Sequence[Source],
    rankings: Mapping[int, Rankings],
    failed: Mapping[int, Sequence[str]] = {},
    queries: Sequence[str] = QUERIES,
    configurations: Sequence[Configuration] | None = None,
    **options: Any,
) -> ScoredPartition:
    """The result of `score` for these rankings, with one configuration a source by default."""
    if configurations is None:
        configurations = [configuration(place) for place in range(len(sources))]
    evaluation = Evaluation(tuple(configurations), (parse_metric("P@1"),), tuple(sources), **options)
    judged = [
        {"query_id": query, "text": None, "attributes": [], "judgements": [{"doc_id": "a", "grade": 1.0}]}
        for query in queries
    ]
    rows = {source: [batch(ranking)] for source, ranking in rankings.items()}
    failures = {
        source: [Failure("retrieve", FailureKind.TIMEOUT, query, 3, "too late") for query in names]
        for source, names in failed.items()
    }
    return score([pa.RecordBatch.from_pylist(judged, schema=columns.JUDGED_QUERIES)], rows, failures, evaluation)


def configuration(source: int, **options: Any) -> Configuration:
    values = {"config_id": "c", "name": f"system{source}", "retriever": "x", "parameters": "{}", "top_k": None}
    return Configuration(**{**values, "source": source, "derived_from": None, **options})


def batch(rankings: Rankings) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "query_id": query,
                "documents": [dict(zip(("doc_id", "score", "text"), document, strict=True)) for document in ranking],
            }
            for query, ranking in rankings.items()
        ],
        schema=columns.RETRIEVED,
    )


def documents_of(partition: ScoredPartition, place: int = -1) -> dict[str, list[Document]]:
    """The rankings that are written for a configuration."""
    lists = partition.configurations[place].documents
    assert lists is not None
    rankings = {}
    for query, documents in zip(partition.queries["query_id"].to_pylist(), lists.to_pylist(), strict=True):
        assert [document["rank"] for document in documents] == list(range(1, len(documents) + 1))
        rankings[query] = [(document["doc_id"], document["score"], document["text"]) for document in documents]
    return rankings


def untold(*names: str) -> list[Document]:
    return [(name, None, None) for name in names]


# --- Fusion ------------------------------------------------------------------------------------------------------


def fusion_of(plan: FusionPlan) -> Source:
    return Source(None, None, False, fusion=plan)


def test_reciprocal_rank_fusion_by_hand() -> None:
    first = {"q1": [("a", 9.0, None), ("b", 8.0, "first b"), ("a", 7.0, None), ("c", 6.0, None)]}
    second = {"q1": [("c", 0.1, "c"), ("b", 0.2, "second b")], "q2": untold("d")}
    partition = scored([CALLED, CALLED, fusion_of(RRF)], {0: first, 1: second})
    assert documents_of(partition) == {
        "q1": [("c", 1 / 63 + 1 / 61, "c"), ("b", 1 / 62 + 1 / 62, "first b"), ("a", 1 / 61, None)],
        "q10": [],
        "q2": [("d", 1 / 61, None)],
    }
    assert partition.configurations[2].retrieval.status.tolist() == [Status.OK, Status.EMPTY, Status.OK]


def test_weighted_fusion_by_hand() -> None:
    plan = Fusion(parts=("x", "y"), weights=(2.0, 0.5), method=FusionMethod.WEIGHTED).plan(
        (FusionPart(0, None), FusionPart(1, None, lower_is_better=True))
    )
    first, second = (
        {"q1": [("a", 3.0, None), ("b", 2.0, None), ("c", 1.0, None)]},
        {"q1": [("c", 0.2, None), ("b", 0.6, None)]},
    )
    partition = scored([CALLED, CALLED, fusion_of(plan)], {0: first, 1: second})
    assert documents_of(partition)["q1"] == [("a", 2.0, None), ("b", 1.0, None), ("c", 0.5, None)]


@pytest.mark.parametrize("how", [Normalisation.Z_SCORE, Normalisation.NONE])
def test_no_document_gains_by_not_being_found(how: Normalisation) -> None:
    plan = replace(WEIGHTED, normalisation=how, parts=(FusionPart(0, None), FusionPart(1, None, lower_is_better=True)))
    one = {"q1": [("a", 1.0, None), ("b", 1.0, None)]}
    partition = scored([CALLED, CALLED, fusion_of(plan)], {0: one, 1: {"q1": [("x", 0.1, None), ("a", 0.9, None)]}})
    documents = [(doc, score) for doc, score, _ in documents_of(partition)["q1"] if doc != "x"]
    assert documents[0][1] == documents[1][1], "b, which the second part lacks, counts as its worst and no better"


def test_a_query_of_which_a_part_failed_has_failed() -> None:
    rows = {0: {"q1": untold("a"), "q2": untold("a")}, 1: {"q1": untold("b")}}
    partition = scored([CALLED, CALLED, fusion_of(RRF)], rows, {1: ["q2"]})
    assert partition.configurations[2].retrieval.status.tolist() == [Status.OK, Status.EMPTY, Status.FAILED]
    assert math.isnan(partition.configurations[2].retrieval.values[2, 0])
    assert documents_of(partition)["q2"] == []
    assert partition.failures == 1


def test_parts_may_come_later_be_fusions_and_have_no_configuration() -> None:
    whole = fusion_of(FusionPlan((FusionPart(3, None), FusionPart(1, 1))))
    rows = {2: {"q1": untold("b", "a")}, 1: {"q1": untold("a", "c")}}
    inner = fusion_of(FusionPlan((FusionPart(1, 1), FusionPart(2, None))))
    partition = scored([whole, CALLED, CALLED, inner], rows, configurations=[configuration(0)])
    assert [doc for doc, _, _ in documents_of(partition)["q1"]] == ["a", "b"]


def test_a_part_that_refuses_repeats_refuses_them_without_a_configuration() -> None:
    sources = [replace(CALLED, refuse_repeats=True), CALLED, fusion_of(RRF)]
    with pytest.raises(InputError, match="document 'a' occurs more than once in the ranking of query 'q1'"):
        scored(sources, {0: {"q1": untold("a", "a")}}, configurations=[configuration(2)])


def test_weighted_fusion_needs_scores() -> None:
    rows = {0: {"q1": [("a", 1.0, None)]}, 1: {"q10": [("b", 2.0, None), ("c", None, None)]}}
    with pytest.raises(InputError, match=r"^configuration 'system1': document 'c' of query 'q10' has no score.*rrf"):
        scored([CALLED, CALLED, fusion_of(WEIGHTED)], rows)
    assert documents_of(scored([CALLED, CALLED, fusion_of(RRF)], rows))["q10"][1] == ("c", 1 / 62, None)


def test_a_sum_that_is_no_number_is_refused() -> None:
    rows = {place: {"q2": [("a", 1.5e308, None), ("b", 0.0, None)]} for place in (0, 1)}
    with pytest.raises(
        InputError, match=r"^configuration 'system2': the scores of document 'a' for query 'q2' are too"
    ):
        scored([CALLED, CALLED, fusion_of(replace(WEIGHTED, normalisation=Normalisation.NONE))], rows)


def test_ties_of_a_fusion_are_known() -> None:
    rows = {0: {"q1": untold("a", "b")}, 1: {"q1": untold("b", "a")}}
    partition = scored([CALLED, CALLED, fusion_of(RRF)], rows, ties=True)
    bounds = partition.configurations[2].retrieval.tie_bounds
    assert bounds is not None
    assert bounds[:, 0, 0].tolist() == [0.0, 1.0]
    assert [doc for doc, _, _ in documents_of(partition)["q1"]] == ["b", "a"]


RANKED = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "é", "\uffee", "😀"]),
        st.integers(-4, 4).map(float),
        st.sampled_from([None, "t", "u"]),
    ),
    max_size=7,
)
RANKINGS = st.dictionaries(st.sampled_from(QUERIES), RANKED)
CUTS = {"top_k": st.none() | st.integers(1, 4), "distance": st.none() | st.sampled_from([-1.0, 0.0, 2.5])}
PLANS = st.builds(
    FusionPlan,
    parts=st.tuples(
        *(
            st.builds(
                FusionPart,
                st.just(place),
                weight=st.sampled_from([0.0, 1.0, 0.3]),
                lower_is_better=st.booleans(),
                **CUTS,
            )
            for place in range(3)
        )
    ),
    method=st.sampled_from(FusionMethod),
    c=st.sampled_from([0.0, 1.0, 60.0]),
    normalisation=st.sampled_from(Normalisation),
)


def is_within(distance: float, value: float, part: FusionPart) -> bool:
    return value < distance if part.lower_is_better else value >= -distance


def plain_votes(plan: FusionPlan, part: FusionPart, documents: Sequence[Document]) -> dict[str, float]:
    """The votes of one part for one query's documents, from the formulas."""
    if part.source == 2:  # the run
        documents = sorted(
            sorted(documents, key=lambda row: row[0].encode(), reverse=True), key=lambda row: -(row[1] or 0.0)
        )
    best: dict[str, float] = {}
    near = [row for row in documents if part.distance is None or is_within(part.distance, row[1] or 0.0, part)]
    for doc, value, _ in near[: part.top_k]:
        best.setdefault(doc, (-1 if part.lower_is_better else 1) * (value or 0.0))
    if plan.method == FusionMethod.RRF:
        return {doc: part.weight / (plan.c + rank) for rank, doc in enumerate(best, start=1)}
    scores = list(best.values())
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    rule = {
        Normalisation.MIN_MAX: lambda s: (s - low) / (high - low) if high > low else 1.0,
        Normalisation.Z_SCORE: lambda s: (
            (s - statistics.fmean(scores)) / statistics.pstdev(scores) if high > low else 0.0
        ),
        Normalisation.SUM: lambda s: (s - low) / (sum(scores) - low * len(scores)) if high > low else 1 / len(scores),
        Normalisation.NONE: lambda s: s,
    }[plan.normalisation]
    return {doc: part.weight * rule(score) for doc, score in best.items()}


@pytest.mark.long
@settings(max_examples=examples(300))
@given(plan=PLANS, replies=st.tuples(RANKINGS, RANKINGS, RANKINGS), top_k=st.integers(1, 4))
def test_fusions_are_what_plain_python_makes_of_them(
    plan: FusionPlan, replies: tuple[Rankings, Rankings, Rankings], top_k: int
) -> None:
    origins = zip([CALLED, CALLED, RUN], plan.parts, strict=True)
    sources = [replace(source, lower_is_better=part.lower_is_better) for source, part in origins] + [fusion_of(plan)]
    rows = dict(enumerate(replies))
    cells = [configuration(3), configuration(3, top_k=top_k), configuration(3, dialect=DIALECTS["trec_eval"])]
    partition = scored(sources, rows, configurations=cells)
    actual = documents_of(partition, 0)
    for query in QUERIES:
        votes = [
            plain_votes(plan, part, ranking.get(query, [])) for part, ranking in zip(plan.parts, replies, strict=True)
        ]
        expected = {
            doc: sum(of_part.get(doc, min([0.0, *of_part.values()])) for of_part in votes)
            * (sum(doc in of_part for of_part in votes) if plan.method == FusionMethod.MNZ else 1)
            for doc in set().union(*votes)
        }
        assert {doc: value for doc, value, _ in actual[query]} == pytest.approx(expected, rel=1e-9, abs=1e-9)
        by_id = sorted(actual[query], key=lambda row: row[0].encode(), reverse=True)
        assert actual[query] == sorted(by_id, key=lambda row: -(row[1] or 0.0))
        assert documents_of(partition, 1)[query] == actual[query][:top_k]
    assert documents_of(partition, 2) == actual
    alone = [documents_of(scored(sources, rows, queries=[query], configurations=cells), 0) for query in QUERIES]
    assert {query: documents for part in alone for query, documents in part.items()} == actual


# --- Distances ---------------------------------------------------------------------------------------------------


def test_a_distance_cuts_before_top_k_and_keeps_the_order() -> None:
    rows = {0: {"q1": [("far", 0.9, None), ("a", 0.5, None), ("b", 0.1, None), ("c", 0.4999, None), ("d", 0.3, None)]}}
    cells = [
        configuration(0),
        configuration(0, distance=0.5, top_k=2, derived_from="c"),
        configuration(0, distance=0.2, derived_from="c"),
        configuration(0, distance=0.5, dialect=DIALECTS["trec_eval"], derived_from="c"),
        configuration(0, distance=0.1, derived_from="c"),
    ]
    partition = scored([replace(CALLED, lower_is_better=True)], rows, configurations=cells)
    names = [[doc for doc, _, _ in documents_of(partition, place)["q1"]] for place in range(len(cells))]
    assert names == [["far", "a", "b", "c", "d"], ["b", "c"], ["b"], ["b", "d", "c"], []]
    assert partition.configurations[4].retrieval.status.tolist() == [Status.EMPTY] * 3


def test_a_score_that_is_the_minimum_is_kept() -> None:
    rows = {0: {"q1": [("a", 0.9, None), ("b", 0.5, None), ("c", 0.4999, None), ("d", -0.5, None)]}}
    cells = [configuration(0), *(configuration(0, distance=-low, derived_from="c") for low in (0.5, 0.95, -0.5, 0.0))]
    partition = scored([CALLED], rows, configurations=cells)
    names = ["".join(doc for doc, _, _ in documents_of(partition, place)["q1"]) for place in range(len(cells))]
    assert names == ["abcd", "ab", "", "abcd", "abc"]


def test_a_threshold_that_would_keep_the_worst_is_refused() -> None:
    distances = replace(CALLED, lower_is_better=True)
    many = [(f"d{place:02}", place / 100, None) for place in range(30)]
    with pytest.raises(InputError, match=r"scores increase along its rankings.*set lower_is_better: true"):
        scored([CALLED], {0: {"q1": many}}, configurations=[configuration(0, distance=-0.1)])
    with pytest.raises(InputError, match=r"scores decrease along its rankings.*set lower_is_better: false"):
        scored([distances], {0: {"q1": many[::-1]}}, configurations=[configuration(0, distance=0.1)])


def test_a_distance_needs_scores() -> None:
    rows = {0: {"q1": [("a", 0.1, None)], "q2": [("b", 0.1, None), ("c", None, None)]}}
    with pytest.raises(
        InputError, match=r"^configuration 'system0': document 'c' of query 'q2' has no score.*0\.5.*remove"
    ):
        scored([CALLED], rows, configurations=[configuration(0, distance=-0.5)])
    plan = FusionPlan((FusionPart(0, None, distance=0.5), FusionPart(1, None)))
    with pytest.raises(InputError, match=r"^a part of configuration 'system2': document 'c' of query 'q2'"):
        scored([CALLED, CALLED, fusion_of(plan)], rows, configurations=[configuration(2)])


# --- Answers without scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_answers_without_scores_keep_their_order(dialect: Any) -> None:
    mixed: list[Document] = [("x", 0.5, "t"), ("a", None, "u"), ("b", 0.5, None), ("c", 0.9, None)]
    rows = {0: {"q1": untold("b", "a", "c", "a"), "q2": mixed, "q10": [("d", 1.0, None), ("e", 2.0, None)]}}
    partition = scored([CALLED], rows, configurations=[configuration(0, dialect=dialect)], ties=True)
    rankings = documents_of(partition)
    assert rankings["q1"] == untold("b", "a", "c", "a")
    assert rankings["q2"] == mixed, "written as null, not as NaN"
    assert [doc for doc, _, _ in rankings["q10"]] == (["e", "d"] if dialect.by_score else ["d", "e"])
    bounds = partition.configurations[0].retrieval.tie_bounds
    if bounds is not None:
        assert (bounds[0] == bounds[1]).all(), "an order that was given is no tie"


def test_repeats_are_found_without_scores() -> None:
    with pytest.raises(InputError, match="document 'a' occurs more than once"):
        scored([replace(CALLED, refuse_repeats=True)], {0: {"q1": untold("a", "b", "a")}})


# --- Parameters --------------------------------------------------------------------------------------------------


def test_parameters_become_a_plan() -> None:
    parts = (FusionPart(4, 10), FusionPart(2, None, lower_is_better=True))
    assert Fusion(parts=("x", "y")).plan(parts) == FusionPlan(parts)
    given_all = Fusion.model_validate(
        {"parts": ["x", "y"], "weights": [0.25, 0], "method": "weighted", "c": 10, "normalisation": "z_score"}
    )
    weighted = (replace(parts[0], weight=0.25), replace(parts[1], weight=0.0))
    assert given_all.plan(parts) == FusionPlan(weighted, FusionMethod.WEIGHTED, 10.0, Normalisation.Z_SCORE)
    assert given_all.model_dump(mode="json")["normalisation"] == "z_score"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"parts": ["x"]}, "at least 2"),
        ({"parts": ["x", "x"]}, "is named twice"),
        ({"parts": ["x", "y"], "weights": [1]}, "1 weights for 2 parts"),
        ({"parts": ["x", "y"], "weights": [0, 0]}, "all weights are 0"),
        ({"parts": ["x", "y"], "weights": [1, -1]}, "greater than or equal to 0"),
        ({"parts": ["x", "y"], "weights": [1, math.inf]}, "finite"),
        ({"parts": ["x", "y"], "c": -1}, "greater than or equal to 0"),
        ({"parts": ["x", "y"], "c": math.nan}, "finite|greater"),
        ({"parts": ["x", "y"], "method": "borda"}, "'rrf', 'weighted' or 'mnz'"),
        ({"parts": ["x", "y"], "method": "mnz", "normalisation": "z_score"}, "use normalisation min_max or sum"),
        ({"parts": ["x", "y"], "k": 60}, "Extra inputs"),
    ],
)
def test_parameters_that_cannot_work_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Fusion.model_validate(parameters)
