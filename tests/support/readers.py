"""The readers of every format, as plain rows; and what they say when they refuse."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest

from rankbeam.transforms.clients.formats.rows import read_qrels, read_run
from rankbeam.transforms.clients.formats.texts import read_entries, read_queries
from rankbeam.transforms.records.errors import InputError

Reader = Callable[[str], Iterator[object]]
Row = tuple[str, str, float, int]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEADER = "query-id\tcorpus-id\tscore\n"
read_corpus = partial(read_entries, role="corpus")


def qrels(path: str) -> list[Row]:
    return _rows(read_qrels(path), "grade")


def run(path: str) -> list[Row]:
    return _rows(read_run(path), "score")


def queries(path: str) -> list[tuple[str, str, int]]:
    return [(row["query_id"], row["text"], row["line"]) for batch in read_queries(path) for row in batch.to_pylist()]


def attributes(path: str) -> list[dict[str, str]]:
    lists = [attribute for batch in read_queries(path) for attribute in batch["attributes"].to_pylist()]
    return [{item["name"]: item["value"] for item in attribute} for attribute in lists]


def _rows(batches: Iterator[pa.RecordBatch], number: str) -> list[Row]:
    names = ("query_id", "doc_id", number, "line")
    return [tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist()]


def refusal(reader: Reader, path: str) -> InputError:
    with pytest.raises(InputError) as caught:
        list(reader(path))
    assert caught.value.path == path
    return caught.value
