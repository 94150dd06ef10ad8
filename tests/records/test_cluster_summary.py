"""Clusters of a dataset: their hashes, and the facts that refuse or warn before anything is called."""

from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import (
    SOURCE_DOCUMENT,
    ClusterSummary,
    DatasetSummary,
    cluster_hashes,
    values_of,
)
from rankbeam.transforms.records.errors import InputError


def queries(*values: str | None, name: str = "doc") -> pa.RecordBatch:
    rows = [
        {"query_id": f"q{i}", "text": None, "attributes": [] if value is None else [{"name": name, "value": value}]}
        for i, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows, columns.QUERIES)


def test_a_query_without_the_attribute_is_its_own_cluster() -> None:
    some = queries("a", None, "a", "", "(none)", "q1")
    hashes = cluster_hashes(some, "doc").tolist()
    assert hashes[0] == hashes[2]
    assert len(set(hashes)) == 5
    row, values = values_of(some, "doc")
    assert (row.tolist(), values.to_pylist()) == ([0, 2, 5], ["a", "a", "q1"])
    nulls = pa.RecordBatch.from_arrays(
        [some["query_id"], some["text"], pa.nulls(6, columns.ATTRIBUTES)], some.schema.names
    )
    assert len(set(cluster_hashes(nulls, "doc").tolist())) == 6


@settings(max_examples=examples(50))
@given(st.lists(st.sampled_from(["a", "b", "", None])), st.sampled_from([None, "doc"]), st.integers(1, 3))
def test_summaries_merge(values: list[str | None], attribute: str | None, parts: int) -> None:
    name = attribute or SOURCE_DOCUMENT
    some = queries(*values, name=name)
    split = [
        ClusterSummary.of(some.take(pa.array(range(i, len(values), parts), pa.int64())), attribute)
        for i in range(parts)
    ]
    assert reduce(ClusterSummary.merge, split, ClusterSummary()) == ClusterSummary.of(some, attribute)
    if attribute is None:
        known = [value for value in values if value]
        assert ClusterSummary.of(some, None).largest == max(map(known.count, known), default=0)
    else:
        assert ClusterSummary.of(some, "doc").is_one == (len(values) == 1 or set(values) in ({"a"}, {"b"}))


def test_one_cluster_is_refused() -> None:
    summary = DatasetSummary(
        queries=3, judged=3, attributes=("doc",), clusters=ClusterSummary.of(queries("a", "a"), "doc")
    )
    with pytest.raises(
        InputError, match=r"all queries have the doc 'a', and a single cluster has no interval; remove stat"
    ):
        summary.check("q.jsonl", None, ("doc",), cluster="doc")
    summary.check("q.jsonl", None, ("doc",))


def test_queries_about_one_document_are_warned_of() -> None:
    def warnings(*values: str | None) -> list[str]:
        of = ClusterSummary.of(queries(*values, name=SOURCE_DOCUMENT), None)
        return list(DatasetSummary(judged=len(values), clusters=of).warnings())

    (warning,) = warnings(*["a"] * 3, *"bcdefgh")
    assert warning == (
        "about 30% of the queries are about one document (source_document), so intervals are too short; "
        "set statistics: {cluster: source_document}"
    )
    assert warnings(*["a"] * 2, *"bcdefghi") == []
    assert warnings("a", "b", "c") == []
