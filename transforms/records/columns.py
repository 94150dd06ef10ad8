"""The columns of batches inside a pipeline, and the first columns of every table; `tables` has the others."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from rankbeam.transforms.records.reply import NO_TOKENS
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, STEP

COMMON = (
    pa.field("run_id", pa.string(), nullable=False),
    pa.field("experiment", pa.string(), nullable=False),
    pa.field("started_at", pa.timestamp("us", "UTC"), nullable=False),
)
"""Columns of every table, so that each can be partitioned and clustered without a join."""

TOKENS = tuple(pa.field(name, pa.int64()) for name in NO_TOKENS.by_column())

ATTRIBUTES = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))

QUERIES = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("attributes", ATTRIBUTES)])
"""One row per query; `attributes` are its metadata, as text, sorted by name."""

QRELS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("grade", pa.float64())])
"""One row per judgement."""

SUBTOPIC_QRELS = QRELS.append(pa.field("subtopic", pa.string()))
"""One row per judgement of a document for a subtopic of a query."""

RUN = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
"""One row per retrieved document of a run file; the score gives the order."""

RANKINGS = pa.schema(
    [
        ("query_id", pa.string()),
        ("documents", pa.list_(pa.struct([("doc_id", pa.string()), ("score", pa.float64())]))),
    ]
)
"""One row per query of a run file, or per part of its rows that was read at once; the score gives the order."""

RETRIEVED = pa.schema(
    [
        ("query_id", pa.string()),
        ("documents", pa.list_(pa.struct([("doc_id", pa.string()), ("score", pa.float64()), ("text", pa.string())]))),
    ]
)
"""One row per query that a retriever answered; documents in the retriever's order, best first; texts may be null.

Documents are null if there is an answer without the ranking that it rests on.
"""

REPLAYED = pa.schema(
    [
        ("query_id", pa.string()),
        ("answer", pa.large_string()),
        ("contexts", pa.list_(pa.struct([("doc_id", pa.string()), ("text", pa.large_string())]))),
        *TOKENS,
        ("seconds", pa.float64()),
        ("first_token_s", pa.float64()),
        ("attempts", pa.int64()),
        ("steps", pa.list_(STEP)),
        ("citations", pa.list_(pa.int32())),
        ("config", pa.string()),
    ]
)
"""One row per query that a system has answered; contexts best first, null if the system does not report them.

A context may have no document id, or no text. Tokens, durations, attempts, steps and citations are null if the system
does not report them. `config` is the name of the system in a file with answers of several.
"""

JUDGED_QUERIES = pa.schema(
    [
        *QUERIES,
        ("judgements", pa.list_(pa.struct([("doc_id", pa.string()), ("grade", pa.float64())]))),
    ]
)
"""One row per query that is evaluated, sorted by id, with its pool; the text is null without a file of queries.

Judgements are null for a query without any, which is evaluated because a metric is judged.
"""

SUBTOPICS = pa.field(
    "subtopics", pa.list_(pa.struct([("judgement", pa.int32()), ("subtopic", pa.int32()), ("grade", pa.float64())]))
)
"""A further column of `JUDGED_QUERIES` if a metric needs subtopics: those that the documents are judged for.

The judgement is a position in the list of judgements; subtopics are numbered from 0 in every query.
"""

REFERENCE = pa.struct(
    [
        ("answer", pa.large_string()),
        ("answerable", pa.bool_()),
        ("nuggets", pa.list_(pa.struct([("text", pa.string()), ("vital", pa.bool_())]))),
        (EXPECTED_STEPS, pa.list_(STEP)),
    ]
)
"""The reference answer to a query; `answerable` is null if it is not known whether the corpus has an answer.

`expected_steps` are those of an agent; null if they are not known.
"""

REFERENCES = pa.schema([("query_id", pa.string()), ("reference", REFERENCE)])
"""One row per query with a reference answer."""

REFERENCED_QUERIES = JUDGED_QUERIES.append(pa.field("reference", REFERENCE))
"""`JUDGED_QUERIES` of a dataset with reference answers; null for a query without one."""

LINE = pa.field("line", pa.int64())
"""The line of a row in its file, from 1; readers add it, so that error messages can name the line."""


def required(name: str, kind: pa.DataType) -> pa.Field:
    """A column that is never null."""
    return pa.field(name, kind, nullable=False)


def with_line(schema: pa.Schema) -> pa.Schema:
    """The schema of the batches that a reader yields.

    >>> with_line(QRELS).names
    ['query_id', 'doc_id', 'grade', 'line']
    """
    return schema.append(LINE)


def attributes_in(pairs: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """The attributes in one value of `ATTRIBUTES`; empty if it is null."""
    return {pair["name"]: pair["value"] for pair in pairs or ()}
