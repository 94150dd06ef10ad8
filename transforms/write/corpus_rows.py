"""Rows about the corpora that a service built."""

import json
from collections.abc import Sequence

import pyarrow as pa

from rankbeam.transforms.records import tables
from rankbeam.transforms.records.corpora import BuiltCorpus


def corpora(built: Sequence[BuiltCorpus]) -> pa.Table:
    """Rows of `tables.CORPORA`, without the common columns."""
    rows = [
        {
            "name": corpus.name,
            "type": corpus.kind,
            "identity": corpus.identity,
            "specification": json.dumps(corpus.specification, sort_keys=True),
            "documents": corpus.documents,
            "resource": corpus.resource,
            "state": corpus.state,
            "files": corpus.files,
            "failed_files": corpus.failed,
            "imported_files": corpus.imported,
            "keep": corpus.keep,
            "expires": corpus.expires,
        }
        for corpus in built
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.CORPORA))


def failed_documents(built: Sequence[BuiltCorpus]) -> pa.Table:
    """Rows of `tables.FAILURES`, without the common columns: one for each document that could not be imported."""
    rows = [
        {
            "stage": failure.stage,
            "kind": str(failure.kind),
            "attempts": failure.attempts,
            "message": failure.message,
            "corpus": corpus.name,
            "doc_id": failure.query_id,
        }
        for corpus in built
        for failure in corpus.failures
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.FAILURES))
