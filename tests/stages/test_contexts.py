"""Contexts through a pipeline: every passage has its text, from its ranking or from the corpus."""

import json
from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pytest
from support.pipeline import run

from rankbeam.transforms.contexts import GatherContexts, SieveFn, documents_of, requests_of
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.judging.items import Item, System, batch_of, items_in
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.rankings.contexts import Passage, SuppliedAnswer

QUERIES = {0: ["q1", "q2"], 1: ["q3"]}
RANKINGS = {
    0: {"q1": [("d1", None), ("d2", "said by the service")], "q2": [("d3", None)]},
    1: {"q3": [("d1", None), ("gone", None), ("d3#5-7", None), ("d3#8-99", None), ("gone#0-4", None)]},
}
CORPUS = [("d1", "", "text of d1"), ("d2", "", "never looked at"), ("d3", "Title", "text of d3"), ("d4", "", "no")]


@pytest.mark.long
@pytest.mark.parametrize("buckets", [1, 3])
def test_texts_come_from_the_ranking_or_else_from_the_corpus(tmp_path: Path, buckets: int) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"_id": name, "title": title, "text": text} for name, title, text in CORPUS]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert gathered(tmp_path, str(corpus), buckets) == [
        item("q1", [("d1", "text of d1"), ("d2", "said by the service")]),
        item("q2", [("d3", "Title\ntext of d3")]),
        item("q3", [("d1", "text of d1"), ("gone", None), ("d3#5-7", "of"), ("d3#8-99", None), ("gone#0-4", None)]),
    ]


def test_without_a_corpus_texts_that_a_retriever_does_not_give_are_missing(tmp_path: Path) -> None:
    assert gathered(tmp_path, None, 2)[1] == item("q2", [("d3", None)])


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_the_sieve_lets_all_requested_documents_pass_and_does_not_grow(parts: int, tmp_path: Path) -> None:
    names = [f"doc {number}" for number in range(40_000)]
    batches = [requests_of(part, pa.array(names[: 3_000 * part : 2]), 7) for part in range(parts)]
    sieve, fn = SieveFn().create_accumulator(), SieveFn()
    for some in batches:
        accumulator = fn.create_accumulator()
        for request in some:
            accumulator = fn.add_input(accumulator, request)
        sieve = fn.merge_accumulators([sieve, accumulator])
    assert sieve.nbytes == SieveFn().create_accumulator().nbytes
    rows = "".join(json.dumps({"_id": name, "text": "t"}) + "\n" for name in names)
    (tmp_path / "corpus.jsonl").write_text(rows)
    read = documents_of(str(tmp_path / "corpus.jsonl"), sieve, 7)
    passed = {name for _, batch in read for name in batch["doc_id"].to_pylist()}
    requested = set(names[: 3_000 * (parts - 1) : 2])
    assert requested <= passed
    assert len(passed - requested) < 100, "one bit in thousands is shared"


def test_a_request_names_each_document_once_in_its_bucket() -> None:
    names = [f"doc {number}" for number in range(100)]
    requests = [(part, bucket, name) for part, (bucket, some) in requests_of(3, pa.array(names), 7) for name in some]
    assert sorted(requests) == sorted((hashing.hash_string(name) % 7, 3, name) for name in names)
    assert list(requests_of(3, pa.array([], pa.string()), 7)) == []


def test_an_item_survives_the_way_through_a_batch() -> None:
    systems = (System(0, (0, 1, 0)), System(3, (), failed=True), System(4, (1,), supplied=SuppliedAnswer("given")))
    whole = Item("q", "who?", {"language": "de"}, (Passage("a", "x\u2028y"), Passage("b", None)), systems)
    assert list(items_in(batch_of([whole, whole]))) == [whole, whole]


def gathered(folder: Path, corpus: str | None, buckets: int) -> list[Item]:
    evaluation = Evaluation(
        (Configuration("c", "system", 0, "x", "{}", 10, None),), (parse_metric("P@1"),), (Source(None, 10, False),)
    )

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        judged = [(bucket, queries(names)) for bucket, names in QUERIES.items()]
        retrieved = [(bucket, (0, rankings(bucket))) for bucket in RANKINGS]
        parts = {
            "judged": pipeline | "Judged" >> beam.Create(judged),
            "rankings": pipeline | "Rankings" >> beam.Create(retrieved),
        }
        return [parts | GatherContexts(evaluation, {0: None}, corpus, buckets)]

    (batches,) = run(folder, build)
    return sorted((item for _, batch in batches for item in items_in(batch)), key=lambda item: item.query_id)


def item(query_id: str, passages: Sequence[tuple[str, str | None]]) -> Item:
    system = System(0, tuple(range(len(passages))))
    return Item(query_id, f"text of {query_id}", {}, tuple(Passage(*passage) for passage in passages), (system,))


def queries(names: Sequence[str]) -> pa.RecordBatch:
    rows = [{"query_id": name, "text": f"text of {name}", "attributes": [], "judgements": []} for name in names]
    return pa.RecordBatch.from_pylist(rows, schema=columns.JUDGED_QUERIES)


def rankings(bucket: int) -> pa.RecordBatch:
    rows = [
        {"query_id": query, "documents": [{"doc_id": name, "score": 1.0, "text": text} for name, text in documents]}
        for query, documents in RANKINGS[bucket].items()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED)
