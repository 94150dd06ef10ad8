"""Retrieval of chunks: a chunk is ranked as a document with its text would be."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.kernels.chunks import chunk_spans
from rankbeam.transforms.records.chunking import Chunking, chunk_id
from rankbeam.transforms.records.queries import Documents, Query

WORDS = st.sampled_from(["cat", "dog", "Mouse.", "the", "bird!", "İstanbul", "a", "x-y"])
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)
CORPORA = st.dictionaries(st.sampled_from(["a", "b#1", "c", "ü"]), TEXTS, min_size=1).filter(
    lambda corpus: any("cat" in text for text in corpus.values())
)


@settings(max_examples=examples(40))
@given(corpus=CORPORA, by=st.sampled_from(["words", "characters", "sentences"]), size=st.integers(2, 12))
def test_a_chunk_is_ranked_as_a_document_with_its_text(
    corpus: dict[str, str], by: str, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    chunking = Chunking(by, size if by != "characters" else 4 * size, 1)
    chunks = {
        chunk_id(name, *span): text[slice(*span)]
        for name, text in corpus.items()
        for span in chunk_spans(text, chunking.by, chunking.size, chunking.overlap)
    }
    cut = Documents(write(folder / "corpus.jsonl", json_texts(corpus.items())), chunking, False, True)
    whole = write(folder / "chunks.jsonl", json_texts(chunks.items()))
    query = Query("q", "cat mouse")

    ranking = Bm25().search(cut).retrieve(query, 100)
    expected = Bm25().open(whole).retrieve(query, 100)
    assert dict(zip(ranking.doc_ids, ranking.scores, strict=True)) == dict(
        zip(expected.doc_ids, expected.scores, strict=True)
    )
    assert ranking.scores == expected.scores
    assert ranking.texts == tuple(chunks[name] for name in ranking.doc_ids)


def test_a_chunk_stands_for_its_document_where_documents_are_judged(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.jsonl", json_texts([("d1", "cat one two cat"), ("d2", "dog three four five")]))
    ranking = Bm25().search(Documents(path, Chunking("words", 2, 0))).retrieve(Query("q", "cat"), 10)

    assert ranking.doc_ids == ("d1", "d1")
    assert ranking.texts == ()


def test_chunks_are_indexed_with_the_title_of_their_document(tmp_path: Path) -> None:
    rows = (
        '{"_id": "d1", "title": "Cats", "text": "one two three four"}\n{"_id": "d2", "title": "", "text": "five six"}\n'
    )
    documents = Documents(write(tmp_path / "corpus.jsonl", rows), Chunking("words", 2, 0), as_documents=False)

    assert set(Bm25().search(documents).retrieve(Query("q", "cat"), 10).doc_ids) == {"d1#0-7", "d1#8-18"}
    assert Bm25(fields=("text",)).search(documents).retrieve(Query("q", "cat"), 10).doc_ids == ()
