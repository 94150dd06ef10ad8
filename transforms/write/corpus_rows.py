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
            "name": each.name,
            "type": each.kind,
            "identity": each.identity,
            "specification": json.dumps(each.specification, sort_keys=True),
            "documents": each.documents,
            "resource": each.resource,
            "state": each.state,
            "files": each.files,
            "failed_files": each.failed,
            "imported_files": each.imported,
            "keep": each.keep,
            "expires": each.expires,
        }
        for each in built
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
            "corpus": each.name,
            "doc_id": failure.query_id,
        }
        for each in built
        for failure in each.failures
    ]
    return pa.Table.from_pylist(rows, tables.own_columns(tables.FAILURES))
