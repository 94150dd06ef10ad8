"""Ties between chunks where evidence is judged, through `score`, against plain Python."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.dialects import DIALECTS, RANKBEAM
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Source
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.score import score

Span = tuple[str, int, int]
Row = tuple[Span | str, float]
METRICS = ("RR", "R@2", "SpanPrecision@2", "SpanRecall@3t", "nDCG@3")

_SPANS = st.tuples(st.sampled_from(["a", "b", "unjudged"]), st.integers(0, 12), st.integers(1, 12)).map(
    lambda span: (span[0], span[1], span[1] + span[2])
)
_ROWS = st.lists(
    st.tuples(_SPANS | st.sampled_from(["a", "no place"]), st.sampled_from([1.0, 2.0])),
    max_size=7,
    unique_by=lambda x: x[0],
)
_EVIDENCE = st.lists(_SPANS.filter(lambda span: span[0] != "unjudged"), min_size=1, max_size=3, unique=True)
_QUERIES = st.lists(st.tuples(_ROWS, _EVIDENCE), min_size=1, max_size=4)


def name_of(chunk: Span | str) -> str:
    return chunk if isinstance(chunk, str) else f"{chunk[0]}#{chunk[1]}-{chunk[2]}"


def characters(span: Span | str) -> set[tuple[str, int]]:
    return set() if isinstance(span, str) else {(span[0], place) for place in range(span[1], span[2])}


def plain(rows: Sequence[Row], evidence: Sequence[Span]) -> list[float]:
    """`METRICS`; equal scores are ordered by id, from last to first byte by byte, as trec_eval orders documents."""
    by_id = sorted(rows, key=lambda row: name_of(row[0]).encode(), reverse=True)
    chunks = [characters(chunk) for chunk, _ in sorted(by_id, key=lambda row: -row[1])]
    spans = [characters(item) for item in evidence]
    shared = [[len(chunk & item) for chunk in chunks] for item in spans]
    ranks = [
        next((r + 1 for r, both in enumerate(of) if both and 2 * both >= min(len(chunks[r]), len(item))), None)
        for item, of in zip(spans, shared, strict=True)
    ]
    credited = sorted(rank for rank in ranks if rank is not None)
    first_two, everything = set().union(*chunks[:2]), set().union(*spans)
    budgeted, left = set[tuple[str, int]](), 3
    for chunk in chunks:
        budgeted |= set(sorted(chunk)[: 4 * left])
        left -= min(left, -(-len(chunk) // 4))
    gains = [_discount(max(rank, place)) for place, rank in enumerate(credited, 1) if max(rank, place) <= 3]
    return [
        1 / credited[0] if credited else 0.0,
        sum(rank <= 2 for rank in credited) / len(spans),
        len(first_two & everything) / len(first_two) if first_two else 0.0,
        len(budgeted & everything) / len(everything),
        sum(gains) / sum(_discount(place) for place in range(1, min(3, len(spans)) + 1)),
    ]


def _discount(rank: int) -> float:
    return {1: 1.0, 2: 0.6309297535714574, 3: 0.5}[rank]


def scored(
    queries: Mapping[str, tuple[Sequence[Row], Sequence[Span]]],
    source: Source,
    dialect: str | None = None,
    batches: int = 1,
    buckets: int = 1,
) -> dict[str, list[float]]:
    """The values of each query; rows in the order that they have, in some batches, and queries in some buckets."""
    by = RANKBEAM if dialect is None else DIALECTS[dialect]
    configuration = Configuration("c", "system", 0, "x", "{}", None, None, dialect=by)
    evaluation = Evaluation((configuration,), tuple(map(parse_metric, METRICS)), (source,), spans=True)
    values: dict[str, list[float]] = {}
    for bucket in range(buckets):
        here = [name for name in queries if hashing.hash_string(name) % buckets == bucket]
        judged = [
            {
                "query_id": name,
                "judgements": [{"doc_id": name_of(document), "grade": 1.0} for document in queries[name][1]],
            }
            for name in here
        ]
        parts = [_rankings({name: queries[name][0][part::batches] for name in here}, source) for part in range(batches)]
        pool = pa.RecordBatch.from_pylist(judged, schema=columns.JUDGED_QUERIES)
        partition = score([pool], {0: parts}, {}, evaluation)
        values |= zip(here, partition.configurations[0].retrieval.values.tolist(), strict=True)
    return values


def _rankings(rows: Mapping[str, Sequence[Row]], source: Source) -> pa.RecordBatch:
    listed: list[dict[str, Any]] = [
        {"query_id": name, "documents": [{"doc_id": name_of(chunk), "score": points} for chunk, points in some]}
        for name, some in rows.items()
    ]
    return pa.RecordBatch.from_pylist(listed, columns.RANKINGS if source.path else columns.RETRIEVED)


@pytest.mark.long
@pytest.mark.parametrize("keep_rankings", [True, False])
@pytest.mark.parametrize("path", ["a.run", None])
@given(_QUERIES, st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_ties_between_chunks_are_ordered_by_id(
    path: str | None,
    keep_rankings: bool,
    queries: list[tuple[list[Row], list[Span]]],
    batches: int,
    buckets: int,
    draw: random.Random,
) -> None:
    """In a run, and in answers that a tool orders by score; whether rankings are written changes nothing."""
    mixed = {f"q{place}": (draw.sample(rows, len(rows)), evidence) for place, (rows, evidence) in enumerate(queries)}
    source = Source(path, None, False, keep_rankings)
    values = scored(mixed, source, None if path else "trec_eval", batches, buckets)
    for name, (rows, evidence) in mixed.items():
        assert values[name] == pytest.approx(plain(rows, evidence), abs=1e-12)


@pytest.mark.parametrize("keep_rankings", [True, False])
@given(_QUERIES, st.integers(1, 3))
def test_answers_of_a_service_and_of_a_replay_keep_their_order(
    keep_rankings: bool, queries: list[tuple[list[Row], list[Span]]], buckets: int
) -> None:
    by_name = {f"q{place}": query for place, query in enumerate(queries)}
    ordered = {
        name: ([(chunk, -float(rank)) for rank, (chunk, _) in enumerate(rows)], evidence)
        for name, (rows, evidence) in by_name.items()
    }
    values = scored(by_name, Source(None, None, False, keep_rankings, replayed=True), buckets=buckets)
    for name, (rows, evidence) in ordered.items():
        assert values[name] == pytest.approx(plain(rows, evidence), abs=1e-12)


def test_a_long_number_in_an_id_changes_no_value_of_other_queries() -> None:
    chunk = ("a", 0, 4)
    queries: dict[str, tuple[list[Row], list[Span]]] = {f"q{n}": ([(chunk, 1.0)], [chunk]) for n in range(600)}
    queries["q0"] = ([(("log", 1, 20_261_128_013_741_000), 2.0), (chunk, 1.0)], [chunk])
    values = scored(queries, Source("a.run", None, False))
    assert {tuple(values[name]) for name in queries if name != "q0"} == {(1.0, 1.0, 1.0, 1.0, 1.0)}
