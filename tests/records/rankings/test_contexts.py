"""The contexts that a model is given, against plain Python."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import Failure, FailureKind
from rankbeam.transforms.records.metrics.dialects import DIALECTS
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.rankings.contexts import Contexts, Passage, contexts_of
from rankbeam.transforms.records.stages import FusionPart, FusionPlan

Document = tuple[str, float, str | None]
QUERIES = ["q1", "q2", "q3"]
SOURCE = Source(None, 10, False)
READ = Source("run.trec", None, True)
ANSWERS: Mapping[str, Sequence[Document]] = {
    "q1": [("b", 0.1, "text of b"), ("a", 0.3, "text of a"), ("b", 0.5, "another chunk of b"), ("c", 0.7, None)],
    "q2": [("d", 0.2, "text of d")],
}


def test_a_service_s_order_is_kept_and_every_chunk_is_a_context() -> None:
    first, second, third = contexts(SOURCE, ANSWERS, {0: 3})
    assert first == [Contexts(0, passages("q1", 0, 1, 2))]
    assert second == [Contexts(0, passages("q2", 0))]
    assert third == [Contexts(0, ())]


def test_the_documents_of_a_run_stand_in_the_order_of_trec_eval() -> None:
    run = {"q1": [("a", 1.0, None), ("c", 2.0, None), ("b", 1.0, None)]}
    assert names(contexts(READ, run, {0: None})[0][0]) == ["c", "b", "a"]


def test_the_smaller_one_of_top_k_and_the_number_of_contexts_counts() -> None:
    for top_k, count, expected in ((1, 3, 1), (4, 2, 2), (None, None, 4), (3, None, 3), (None, 1, 1)):
        got = contexts(SOURCE, ANSWERS, {0: count}, top_k=top_k)[0][0]
        assert len(got.passages) == expected


def test_only_what_is_nearer_than_the_threshold_is_a_context() -> None:
    distances = replace(SOURCE, lower_is_better=True)
    assert names(contexts(distances, ANSWERS, {0: 5}, distance=0.5)[0][0]) == ["b", "a"]
    assert names(contexts(SOURCE, ANSWERS, {0: 5}, distance=-0.5)[0][0]) == ["b", "c"]


def test_a_dialect_changes_no_context() -> None:
    orders_by_score = next(dialect for dialect in DIALECTS.values() if dialect.by_score)
    assert contexts(SOURCE, ANSWERS, {0: 4}, dialect=orders_by_score) == contexts(SOURCE, ANSWERS, {0: 4})


def test_a_query_whose_call_failed_has_no_contexts() -> None:
    failed = [Failure("retrieve", FailureKind.TIMEOUT, "q2", 3, "too late")]
    got = contexts(SOURCE, {"q1": ANSWERS["q1"]}, {0: 2}, failed=failed)
    assert [item[0].failed for item in got] == [False, True, False]
    assert got[1][0].passages == ()


def test_a_fusion_has_the_texts_of_its_parts() -> None:
    sources = (SOURCE, Source(None, 10, False), Source(None, None, False, fusion=RRF))
    evaluation = Evaluation((configuration(2),), (parse_metric("P@1"),), sources)
    rows = {0: [batch({"q1": [("a", 1.0, None), ("b", 0.5, "b of the first")]})]}
    rows[1] = [batch({"q1": [("b", 1.0, "b of the second"), ("a", 0.5, "a of the second")]})]
    got = contexts_of(queries(), rows, {}, evaluation, {0: 2})
    assert set(got[0][0].passages) == {Passage("a", "a of the second"), Passage("b", "b of the first")}


def test_configurations_that_are_not_asked_for_have_none() -> None:
    evaluation = Evaluation((configuration(0), configuration(0, top_k=1)), (parse_metric("P@1"),), (SOURCE,))
    got = contexts_of(queries(), {0: [batch(ANSWERS)]}, {}, evaluation, {1: 5})
    assert got[0] == [Contexts(1, passages("q1", 0))]


RRF = FusionPlan((FusionPart(0, None), FusionPart(1, None)))


def contexts(
    source: Source,
    answers: Mapping[str, Sequence[Document]],
    counts: Mapping[int, int | None],
    failed: Sequence[Failure] = (),
    **options: Any,
) -> list[list[Contexts]]:
    evaluation = Evaluation((configuration(0, **options),), (parse_metric("P@1"),), (source,))
    return contexts_of(queries(), {0: [batch(answers)]}, {0: failed}, evaluation, counts)


def configuration(source: int, **options: Any) -> Configuration:
    values = {"config_id": "c", "name": f"system{source}", "retriever": "x", "parameters": "{}", "top_k": None}
    return Configuration(**{**values, "source": source, "derived_from": None, **options})


def passages(query: str, *places: int) -> tuple[Passage, ...]:
    return tuple(Passage(ANSWERS[query][place][0], ANSWERS[query][place][2]) for place in places)


def names(contexts: Contexts) -> list[str]:
    return [passage.doc_id for passage in contexts.passages]


def queries() -> pa.RecordBatch:
    rows = [{"query_id": query, "text": query, "attributes": [], "judgements": []} for query in QUERIES]
    return pa.RecordBatch.from_pylist(rows, schema=columns.JUDGED_QUERIES)


def batch(answers: Mapping[str, Sequence[Document]]) -> pa.RecordBatch:
    fields = ("doc_id", "score", "text")
    rows = [
        {"query_id": query, "documents": [dict(zip(fields, document, strict=True)) for document in documents]}
        for query, documents in answers.items()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED)
