"""Ids of chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.records.chunking import chunk_id, parse_chunk_id

SPANS = st.tuples(st.integers(0, 10**9), st.integers(1, 10**9)).map(lambda span: (span[0], span[0] + span[1]))


@given(st.text(min_size=1), SPANS)
def test_an_id_is_read_as_it_was_written(doc_id: str, span: tuple[int, int]) -> None:
    assert parse_chunk_id(chunk_id(doc_id, *span)) == (doc_id, *span)


@given(st.text(min_size=1), SPANS, SPANS)
def test_the_last_number_sign_separates_document_and_span(
    doc_id: str, inner: tuple[int, int], outer: tuple[int, int]
) -> None:
    name = chunk_id(doc_id, *inner)

    assert parse_chunk_id(chunk_id(name, *outer)) == (name, *outer)


@pytest.mark.parametrize(
    "name",
    ["doc", "doc#", "doc#1", "doc#1-", "doc#5-5", "doc#5-4", "#0-4", "doc#01-4", "doc#0-4 ", "doc#0-" + "9" * 5000],
)
def test_other_ids_are_no_chunks(name: str) -> None:
    assert parse_chunk_id(name) is None
