"""The Arrow schemas of a benchmark's tables; each row names its benchmark, so that one table may hold several."""

import pyarrow as pa

from rankbeam.transforms.records.common_columns import required

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
