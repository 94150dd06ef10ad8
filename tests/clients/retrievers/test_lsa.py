"""The tfidf and lsa retrievers, through the command line and by what latent semantics are for."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.lexical import LexicalParameters, TfIdf
from rankbeam.transforms.clients.retrievers.lsa import Lsa
from rankbeam.transforms.records.queries import Query, Ranking

PLAIN = {"stemming": "none", "stop_words": "none"}
CORPUS = {
    "d1": "car engine wheel",
    "d2": "automobile engine wheel",
    "d3": "car engine",
    "d4": "flower garden rose",
    "d5": "garden rose tulip",
    "d6": "",
}


def ask(folder: Path, retriever: LexicalParameters, text: str, corpus: dict[str, str] = CORPUS) -> Ranking:
    path = write(folder / "corpus.jsonl", json_texts(corpus.items()))
    return retriever.open(path).retrieve(Query("q", text), 10)


def test_latent_semantics_find_a_synonym_that_shares_no_word_with_the_query(tmp_path: Path) -> None:
    ranking = ask(tmp_path, Lsa(dimension=2, **PLAIN), "automobile")

    assert set(ranking.doc_ids[:3]) == {"d1", "d2", "d3"}
    assert min(ranking.scores[:3]) > 0.9 > max(ranking.scores[3:])
    assert "d6" not in ranking.doc_ids
    assert set(ask(tmp_path, TfIdf(**PLAIN), "automobile").doc_ids) == {"d2"}


@pytest.mark.parametrize("retriever", [Lsa(**PLAIN), TfIdf(**PLAIN)])
@pytest.mark.parametrize("text", ["", "unheard of"])
def test_a_query_without_a_known_word_has_no_result(tmp_path: Path, retriever: LexicalParameters, text: str) -> None:
    assert ask(tmp_path, retriever, text) == Ranking((), ())


@settings(max_examples=examples(15))
@given(order=st.permutations(sorted(CORPUS)), kind=st.sampled_from([Lsa, TfIdf]))
def test_the_order_of_the_corpus_does_not_matter(
    order: list[str], kind: type[LexicalParameters], tmp_path_factory: pytest.TempPathFactory
) -> None:
    shuffled = {name: CORPUS[name] for name in order}
    folder = tmp_path_factory.mktemp("corpus")
    retriever = kind.model_validate(PLAIN)

    assert ask(folder, retriever, "car rose", shuffled) == ask(folder, retriever, "car rose")


def test_more_dimensions_than_documents_are_those_of_the_documents(tmp_path: Path) -> None:
    assert ask(tmp_path, Lsa(dimension=500, **PLAIN), "tulip").doc_ids[0] == "d5"
