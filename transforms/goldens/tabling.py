"""The tables of a benchmark: the same questions as its JSON lines, in Parquet with known types."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.goldens import publishing
from rankbeam.transforms.goldens.records.items import Golden, Made, Review
from rankbeam.transforms.goldens.records.types import UNANSWERABLE
from rankbeam.transforms.records.columns import required

_OF_QUESTION = [required("benchmark", pa.string()), required("query_id", pa.string())]
_NAME_AND_VALUE = pa.struct([required("name", pa.string()), required("value", pa.string())])

ITEMS = pa.schema(
    [
        *_OF_QUESTION,
        required("question", pa.string()),
        pa.field("answer", pa.string()),
        required("answerable", pa.bool_()),
        required("type", pa.string()),
        required("topic", pa.string()),
        required("split", pa.string()),
        pa.field("difficulty", pa.string()),
        pa.field("bm25_rank", pa.int64()),
        pa.field("agreement", pa.float64()),
        pa.field("closed_book", pa.float64()),
        required("reviewed", pa.bool_()),
        pa.field("profile", pa.list_(_NAME_AND_VALUE), nullable=False),
        pa.field("flags", pa.list_(pa.string()), nullable=False),
        pa.field("spans", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row a question."""

EVIDENCE = pa.schema(
    [
        *_OF_QUESTION,
        required("doc_id", pa.string()),
        required("start", pa.int64()),
        required("end", pa.int64()),
        required("quote", pa.string()),
    ]
)
"""One row a quote that an answer rests on, as [start, end) in code points of the document."""

JUDGEMENTS = pa.schema(
    [
        *_OF_QUESTION,
        required("doc_id", pa.string()),
        required("grade", pa.int64()),
        required("source", pa.string()),
    ]
)
"""One row a judged document."""

VOTES = pa.schema(
    [
        *_OF_QUESTION,
        required("step", pa.string()),
        required("criterion", pa.string()),
        required("critic", pa.string()),
        required("verdict", pa.string()),
        required("reason", pa.string()),
    ]
)
"""One row a verdict of the checking model, also about questions that were rejected."""

REJECTED = pa.schema(
    [
        *_OF_QUESTION,
        required("type", pa.string()),
        required("topic", pa.string()),
        required("state", pa.string()),
        pa.field("reason", pa.string()),
        required("detail", pa.string()),
        pa.field("question", pa.string()),
    ]
)
"""One row a candidate that is not in, with the stage that rejected it."""

TABLES = {"items": ITEMS, "evidence": EVIDENCE, "judgements": JUDGEMENTS, "votes": VOTES, "rejected": REJECTED}
"""By name, all tables."""


Row = dict[str, Any]


def files_of(
    benchmark: str, items: Sequence[Golden], rejected: Sequence[Made], reviews: Mapping[str, Review]
) -> dict[str, bytes]:
    """By name of the table, its file."""
    rows: Mapping[str, Iterator[Row]] = {
        "items": (_item(item, reviews) for item in items),
        "evidence": (_evidence(row) for item in items for row in publishing.evidence(item)),
        "judgements": (_judgement(row) for item in items for row in publishing.judgements(item)),
        "votes": (row for record in (*(item.made for item in items), *rejected) for row in _votes(record)),
        "rejected": (_rejected(record) for record in rejected),
    }
    return {name: _parquet(benchmark, list(rows[name]), schema) for name, schema in TABLES.items()}


def _item(item: Golden, reviews: Mapping[str, Review]) -> Row:
    candidate = item.made
    answerable = candidate.type != UNANSWERABLE
    return {
        "query_id": candidate.item_id,
        "question": candidate.question,
        "answer": candidate.answer if answerable else None,
        "answerable": answerable,
        "type": candidate.type,
        "topic": f"{candidate.topic:02}",
        "split": item.split,
        "difficulty": item.difficulty or None,
        "bm25_rank": item.rank,
        "agreement": candidate.agreement,
        "closed_book": candidate.closed_book,
        "reviewed": candidate.item_id in reviews,
        "profile": [{"name": name, "value": value} for name, value in candidate.profile],
        "flags": list(item.flags),
        "spans": list(candidate.spans),
    }


def _evidence(row: Mapping[str, Any]) -> Row:
    return {name: row[name] for name in ("query_id", "doc_id", "start", "end", "quote")}


def _judgement(row: tuple[str, str, int, str]) -> Row:
    return dict(zip(("query_id", "doc_id", "grade", "source"), row, strict=True))


def _votes(item: Made) -> Iterator[Row]:
    for vote in item.votes:
        yield {"query_id": item.item_id, **{name: str(value) for name, value in asdict(vote).items()}}


def _rejected(item: Made) -> Row:
    return {
        "query_id": item.item_id,
        "type": item.type,
        "topic": f"{item.topic:02}",
        "state": str(item.state),
        "reason": None if item.reason is None else str(item.reason),
        "detail": item.detail,
        "question": item.question or None,
    }


def _parquet(benchmark: str, rows: list[Row], schema: pa.Schema) -> bytes:
    table = pa.Table.from_pylist([_storable({"benchmark": benchmark, **row}) for row in rows], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _storable(row: Row) -> Row:
    """The row without halves of characters, which models may write and no file can hold."""
    texts = {name: value.encode("utf-8", "replace").decode() for name, value in row.items() if isinstance(value, str)}
    return {**row, **texts}
