"""The columns of batches on their way through a pipeline; `tables` holds those that are written."""

import pyarrow as pa

ATTRIBUTES = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))

QUERIES = pa.schema([("query_id", pa.string()), ("text", pa.string()), ("attributes", ATTRIBUTES)])
"""One row a query; `attributes` are its metadata, as text, sorted by name."""

QRELS = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("grade", pa.float64())])
"""One row a judgement."""

RUN = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
"""One row a retrieved document of a run file; the score gives the order."""

RANKINGS = pa.schema(
    [
        ("query_id", pa.string()),
        ("documents", pa.list_(pa.struct([("doc_id", pa.string()), ("score", pa.float64())]))),
    ]
)
"""One row a query of a run file, or the part of it that was read at once; the score gives the order."""

RETRIEVED = pa.schema(
    [
        ("query_id", pa.string()),
        ("documents", pa.list_(pa.struct([("doc_id", pa.string()), ("score", pa.float64()), ("text", pa.string())]))),
    ]
)
"""One row a query that a retriever answered; the documents stand in its order, best first, and texts may be null."""

JUDGED_QUERIES = pa.schema(
    [
        *QUERIES,
        ("judgements", pa.list_(pa.struct([("doc_id", pa.string()), ("grade", pa.float64())]))),
    ]
)
"""One row a query that is asked, sorted by id, with its pool; the text is null where no queries were given.

Judgements are null for a query that has none, and is asked because a metric is judged.
"""

REFERENCE = pa.struct(
    [
        ("answer", pa.large_string()),
        ("answerable", pa.bool_()),
        ("nuggets", pa.list_(pa.struct([("text", pa.string()), ("vital", pa.bool_())]))),
    ]
)
"""The reference answer to a query; `answerable` is null where nothing says whether the corpus has an answer."""

REFERENCES = pa.schema([("query_id", pa.string()), ("reference", REFERENCE)])
"""One row a query with a reference answer."""

REFERENCED_QUERIES = JUDGED_QUERIES.append(pa.field("reference", REFERENCE))
"""`JUDGED_QUERIES` where the dataset has reference answers; null for a query without one."""

LINE = pa.field("line", pa.int64())
"""Where a row stood in its file, from 1; readers add it, so that a refusal can say where."""


def with_line(schema: pa.Schema) -> pa.Schema:
    """The schema of what a reader yields.

    >>> with_line(QRELS).names
    ['query_id', 'doc_id', 'grade', 'line']
    """
    return schema.append(LINE)
