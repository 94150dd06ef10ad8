"""Make a benchmark's files from its items and people's decisions: equal items and decisions give equal bytes."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.goldens.records.items import (
    UNANSWERABLE,
    Golden,
    Review,
    ReviewDecision,
    WrittenItem,
    column_of,
)
from rankbeam.transforms.kernels.grouping import connected, grouped
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE, USEFUL_GRADE
from rankbeam.transforms.records.columns import required
from rankbeam.transforms.records.dataset import SOURCE_DOCUMENT

EVIDENCE, POOLED = "evidence", "pooled"
"""Sources of judgements: a question was made from the document; or a search returned it, and a model graded it."""

Row = dict[str, Any]


def apply_reviews(items: Iterable[Golden], reviews: Mapping[str, Review]) -> list[Golden]:
    """The items that people did not reject, with their edits, sorted by id."""
    items_left = []
    for item in sorted(items, key=lambda item: item.made.item_id):
        review = reviews.get(item.made.item_id)
        if review is None:
            items_left.append(item)
        elif review.decision is not ReviewDecision.REJECT:
            items_left.append(replace(item, made=_apply_edits(item.made, review)))
    return items_left


def _apply_edits(item: WrittenItem, review: Review) -> WrittenItem:
    return replace(
        item,
        question=item.question if review.question is None else review.question,
        answer=item.answer if review.answer is None else review.answer,
        nuggets=item.nuggets if review.answer is None else (),  # nuggets are parts of the old answer
        evidence=item.evidence if review.evidence is None else review.evidence,
    )


def query(item: Golden, reviews: Mapping[str, Review]) -> Row:
    candidate = item.made
    profile = {f"profile_{column_of(name)}": value for name, value in candidate.profile}
    metadata = {
        "answer": candidate.answer,
        "answerable": candidate.type != UNANSWERABLE,
        "type": candidate.type,
        "topic": f"{candidate.topic:02}",
        "difficulty": item.difficulty,
        "bm25_rank": item.rank,
        **profile,
        "flags": " ".join(item.flags),
        "reviewed": candidate.item_id in reviews,
        "split": item.split,
        SOURCE_DOCUMENT: candidate.source_document,
    }
    return {"_id": candidate.item_id, "text": candidate.question, "metadata": metadata}


def sliced_query(item: Golden, reviews: Mapping[str, Review]) -> Row:
    """A query without its answer, so that all attributes are suitable for slices."""
    line = query(item, reviews)
    names = {name: value for name, value in line["metadata"].items() if name not in ("answer", "split")}
    return {**line, "metadata": names}


def judgements(item: Golden) -> Iterator[tuple[str, str, int, str]]:
    """Lines of `qrels/SPLIT.tsv`; no lines for an unanswerable question.

    A passage that is related but has no answer (grade 1) is judged as not relevant.
    """
    candidate = item.made
    if candidate.type == UNANSWERABLE:
        return
    for doc_id in candidate.doc_ids:
        yield candidate.item_id, doc_id, HIGHEST_GRADE, EVIDENCE
    best: dict[str, int] = {}
    for pooled in item.grades:
        if pooled.grade is not None and pooled.doc_id not in candidate.doc_ids:
            best[pooled.doc_id] = max(best.get(pooled.doc_id, 0), pooled.grade)
    for doc_id, grade in sorted(best.items()):
        yield candidate.item_id, doc_id, grade if grade >= USEFUL_GRADE else 0, POOLED


def evidence(item: Golden) -> Iterator[Row]:
    """Lines of `evidence.jsonl`; each quote is needed, so each has its own group."""
    for number, piece in enumerate(item.made.evidence):
        yield {"query_id": item.made.item_id, **asdict(piece), "group": str(number), "grade": HIGHEST_GRADE}


def reference(item: Golden) -> Row:
    """A line of `nuggets.jsonl`, which `dataset.answers` reads."""
    candidate = item.made
    nuggets = {"nuggets": [asdict(nugget) for nugget in candidate.nuggets]} if candidate.nuggets else {}
    answerable = candidate.type != UNANSWERABLE
    answer = {"answer": candidate.answer} if answerable else {}
    return {"query_id": candidate.item_id, **answer, "answerable": answerable, **nuggets}


def provenance(item: Golden, prompts: Mapping[str, str]) -> Row:
    """A line of `provenance.jsonl`: everything that an item rests on, except tokens, which depend on retries."""
    candidate = item.made
    return {
        "query_id": candidate.item_id,
        "round": candidate.round,
        "spans": candidate.spans,
        "calls": [
            {
                "step": call.step,
                "service": call.service,
                "model_version": call.model_version,
                "prompt": prompts.get(call.step),
                "content_key": call.key,
            }
            for call in candidate.asked
        ],
        "votes": [asdict(vote) for vote in candidate.votes],
        "agreement": candidate.agreement,
        "closed_book": candidate.closed_book,
        "common_run": candidate.common_run,
        "overlap": candidate.overlap,
        "dropped_quotes": candidate.dropped_quotes,
        "pool": [asdict(grade) for grade in item.grades],
    }


def splits(
    quotas: Mapping[int, int], shares: Mapping[str, float], order: Sequence[int], present: Mapping[str, int]
) -> dict[int, str]:
    """Assign every topic to a split, the one that lacks most questions; so no topic is in two splits.

    `quotas` has the number of questions of each topic, `shares` the relative sizes of the splits, `present` the number
    of other questions that a split has already.

    >>> splits({0: 6, 1: 3, 2: 1}, {"dev": 1, "test": 2}, [0, 1, 2], {})
    {0: 'test', 1: 'dev', 2: 'test'}
    """
    whole, total = sum(shares.values()), sum(quotas.values()) + sum(present.values())
    lacking = {name: share / whole * total - present.get(name, 0) for name, share in shares.items()}
    chosen = {}
    for topic in sorted(order, key=lambda topic: -quotas[topic]):
        name = max(lacking, key=lambda name: lacking[name])
        chosen[topic] = name
        lacking[name] -= quotas[topic]
    return chosen


def separate_splits(
    items: Sequence[Golden], shares: Mapping[str, float], previous: Collection[str] = ()
) -> list[Golden]:
    """The items in their order, with splits such that no document is relevant in two splits.

    Questions that share relevant documents belong together, even if only through other questions. If such questions are
    in two splits, all items are divided anew: groups over several topics, and the rest of each topic, stay whole.
    With questions of a previous benchmark, each group goes where most of its previous questions are.
    """
    relevant = ([doc_id for _, doc_id, grade, _ in judgements(item) if grade] for item in items)
    groups = connected(list(relevant))
    if all(len({items[place].split for place in places}) == 1 for places in groups):
        return list(items)
    if previous:
        common = {
            place: _common_split([items[one] for one in places], previous) for places in groups for place in places
        }
        return [replace(item, split=common[place]) for place, item in enumerate(items)]
    units = grouped((frozenset(items[place].made.topic for place in places), places) for places in groups)
    whole = [
        places
        for topics, members in units.items()
        for places in ([list(chain(*members))] if len(topics) == 1 else members)
    ]
    chosen = splits({number: len(places) for number, places in enumerate(whole)}, shares, range(len(whole)), {})
    split = {place: chosen[number] for number, places in enumerate(whole) for place in places}
    return [replace(item, split=split[place]) for place, item in enumerate(items)]


def _common_split(items: Sequence[Golden], previous: Collection[str]) -> str:
    decisive = [item for item in items if item.made.item_id in previous] or items
    return Counter(item.split for item in decisive).most_common(1)[0][0]


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
"""One row for each question."""

EVIDENCE_ROWS = pa.schema(
    [
        *_OF_QUESTION,
        required("doc_id", pa.string()),
        required("start", pa.int64()),
        required("end", pa.int64()),
        required("quote", pa.string()),
    ]
)
"""One row for each quote that an answer rests on, as [start, end) in code points of the document."""

JUDGEMENTS = pa.schema(
    [
        *_OF_QUESTION,
        required("doc_id", pa.string()),
        required("grade", pa.int64()),
        required("source", pa.string()),
    ]
)
"""One row for each judged document."""

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
"""One row for each verdict of the checking model, including verdicts about rejected questions."""

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
"""One row for each candidate that is not in the benchmark, with the stage that rejected it."""

TABLES = {"items": ITEMS, "evidence": EVIDENCE_ROWS, "judgements": JUDGEMENTS, "votes": VOTES, "rejected": REJECTED}
"""All tables by name."""


def tables_of(
    benchmark: str, items: Sequence[Golden], rejected: Sequence[WrittenItem], reviews: Mapping[str, Review]
) -> dict[str, bytes]:
    rows: Mapping[str, Iterator[Row]] = {
        "items": (_item(item, reviews) for item in items),
        "evidence": (row for item in items for row in evidence(item)),
        "judgements": (dict(zip(JUDGEMENTS.names[1:], row, strict=True)) for item in items for row in judgements(item)),
        "votes": (row for record in (*(item.made for item in items), *rejected) for row in _votes(record)),
        "rejected": (_rejected_row(record) for record in rejected),
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


def _votes(item: WrittenItem) -> Iterator[Row]:
    for vote in item.votes:
        yield {"query_id": item.item_id, **{name: str(value) for name, value in asdict(vote).items()}}


def _rejected_row(item: WrittenItem) -> Row:
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
    """The row without lone surrogates, which models may write, but which files cannot hold."""
    texts = {name: value.encode("utf-8", "replace").decode() for name, value in row.items() if isinstance(value, str)}
    return {**row, **texts}
