"""The bm25 retriever, against the formula in plain Python."""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import json_texts, tab_texts, texts_table, write, write_table

from rankbeam.transforms.clients.retrievers.base import Retriever
from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.kernels.search.top import top
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.queries import Query, Ranking

METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")
PLAIN = {"stemming": "none", "stop_words": "none"}
WORDS = ("alpha", "beta", "gamma", "delta", "omega", "unheard")

CORPUS = {
    "d1": "the cat sat on the mat",
    "d2": "the cat and the other cat were running",
    "d10": "dogs run in the park",
    "é": "a dog is running after the cat",
    "empty": "",
    "z": "nothing of interest here",
}


def opened(folder: Path, corpus: Mapping[str, str], **parameters: object) -> Retriever:
    path = write(folder / "corpus.jsonl", json_texts(corpus.items()))
    return Bm25.model_validate({**PLAIN, **parameters}).open(path)


def ask(retriever: Retriever, text: str, top_k: int = 100) -> Ranking:
    return retriever.retrieve(Query("q", text), top_k)


def lucene(corpus: Mapping[str, str], query: str, k1: float, b: float) -> list[tuple[str, float]]:
    """BM25 as Lucene has it (Kamphuis et al., ECIR 2020), without the constant factor k1 + 1."""
    counts = {name: Counter(text.split()) for name, text in corpus.items()}
    lengths = {name: sum(words.values()) for name, words in counts.items()}
    average = sum(lengths.values()) / len(corpus)
    scores = {}
    for name, words in counts.items():
        score = 0.0
        for word in (word for word in query.split() if words[word]):
            holding = sum(word in counter for counter in counts.values())
            idf = math.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
            score += idf * words[word] / (words[word] + k1 * (1 - b + b * lengths[name] / average))
        if score:
            scores[name] = score
    return sorted(scores.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)


TEXTS = st.lists(st.sampled_from(WORDS[:-1]), max_size=8).map(" ".join)
CORPORA = st.dictionaries(st.sampled_from(["a", "b", "a1", "a10", "a2", "ü", "日", "😀"]), TEXTS, min_size=1).filter(
    lambda corpus: any(corpus.values())
)
QUESTIONS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@settings(max_examples=examples(100))
@given(corpus=CORPORA, text=QUESTIONS, k1=st.sampled_from([0.1, 0.9, 1.2, 3.0]), b=st.sampled_from([0.0, 0.4, 1.0]))
def test_it_is_the_formula(
    corpus: dict[str, str], text: str, k1: float, b: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ranking = ask(opened(tmp_path_factory.mktemp("corpus"), corpus, k1=k1, b=b), text)
    expected = dict(lucene(corpus, text, k1, b))
    assert dict(zip(ranking.doc_ids, ranking.scores, strict=True)) == pytest.approx(expected, abs=1e-5)
    order = [(score, doc_id.encode()) for doc_id, score in zip(ranking.doc_ids, ranking.scores, strict=True)]
    assert order == sorted(order, reverse=True)


def test_the_formula_on_sentences(tmp_path: Path) -> None:
    ranking = ask(opened(tmp_path, CORPUS, k1=0.9, b=0.4, stop_words=["a"]), "the cat running")
    expected = lucene({name: text.removeprefix("a ") for name, text in CORPUS.items()}, "the cat running", 0.9, 0.4)
    assert list(ranking.doc_ids) == [name for name, _ in expected]
    assert list(ranking.scores) == pytest.approx([score for _, score in expected], abs=1e-5)


def test_ties_are_broken_by_descending_bytes_of_the_id(tmp_path: Path) -> None:
    names = ["a", "B", "b", "10", "9", "é", "z", "\uffee", "😀"]
    retriever = opened(tmp_path, {**dict.fromkeys(names, "alpha beta"), "other": "gamma delta"})
    ranking = ask(retriever, "alpha")
    assert list(ranking.doc_ids) == sorted(names, key=str.encode, reverse=True)
    assert len(set(ranking.scores)) == 1
    assert ask(retriever, "alpha", top_k=3).doc_ids == ranking.doc_ids[:3]


@settings(max_examples=examples(50))
@given(corpus=CORPORA, text=QUESTIONS, method=st.sampled_from(METHODS), data=st.data())
def test_the_order_and_the_format_of_the_corpus_do_not_matter(
    corpus: dict[str, str], text: str, method: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    rows = data.draw(st.permutations(sorted(corpus.items())))
    shuffled = Bm25(method=method, **PLAIN).open(write_table(folder / "corpus.parquet", texts_table(rows)))
    assert ask(shuffled, text) == ask(opened(folder, corpus, method=method), text)


@settings(max_examples=examples(200))
@given(corpus=CORPORA, text=QUESTIONS, method=st.sampled_from(METHODS), delta=st.sampled_from([0.3, 0.5, 1.0]))
def test_what_shares_no_word_is_not_returned(
    corpus: dict[str, str], text: str, method: str, delta: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    retriever = opened(tmp_path_factory.mktemp("corpus"), corpus, method=method, delta=delta)
    doc_ids = ask(retriever, text).doc_ids
    sharing = {name for name, words in corpus.items() if set(words.split()) & set(text.split())}
    assert set(doc_ids) <= sharing
    if method in ("lucene", "bm25l", "bm25+"):  # the other two give a word that most documents have no weight
        assert set(doc_ids) == sharing


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_long_queries_do_not_bring_documents_without_their_words(tmp_path: Path, method: str) -> None:
    # The sum over many words rounds differently in every order of adding them.
    draw = np.random.default_rng(7)
    vocabulary = [f"word{number}" for number in range(400)]
    corpus = {f"d{number}": " ".join(draw.choice(vocabulary, 30)) for number in range(200)}
    retriever = opened(tmp_path, corpus, method=method, delta=0.3)
    for _ in range(50):
        words = set(draw.choice(vocabulary, 25).tolist())
        doc_ids = ask(retriever, " ".join(sorted(words)), top_k=200).doc_ids
        assert set(doc_ids) == {name for name, text in corpus.items() if words & set(text.split())}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["", "  ", "?!", "unheard of", "the"])
def test_a_query_without_a_known_word_has_no_result(tmp_path: Path, method: str, text: str) -> None:
    retriever = opened(tmp_path, CORPUS, method=method, stop_words="english")
    assert ask(retriever, text) == Ranking((), ())


@pytest.mark.parametrize(("top_k", "expected"), [(1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)])
def test_at_most_top_k_documents_are_returned(tmp_path: Path, top_k: int, expected: int) -> None:
    retriever = opened(tmp_path, CORPUS)
    whole = ask(retriever, "cat")
    ranking = ask(retriever, "cat", top_k)
    assert (ranking.doc_ids, ranking.scores) == (whole.doc_ids[:expected], whole.scores[:expected])
    assert set(whole.doc_ids) == {"d1", "d2", "é"}


@pytest.mark.parametrize(
    ("parameters", "text", "expected"),
    [
        ({}, "runs", set()),
        ({"stemming": "english"}, "runs", {"d2", "d10", "é"}),
        ({"stemming": "english"}, "DOG", {"d10", "é"}),
        ({"stemming": "porter"}, "cats", {"d1", "d2", "é"}),
        ({}, "on", {"d1"}),
        ({"stop_words": "english"}, "on", set()),
        ({"stop_words": ["cat", "park"]}, "on cat", {"d1"}),
    ],
)
def test_stemming_and_stop_words(tmp_path: Path, parameters: dict[str, object], text: str, expected: set[str]) -> None:
    assert set(ask(opened(tmp_path, CORPUS, **parameters), text).doc_ids) == expected


@pytest.mark.parametrize(
    ("fields", "expected"), [(["title"], {"a"}), (["text"], {"b"}), (["title", "text"], {"a", "b"})]
)
def test_fields_are_what_is_indexed(tmp_path: Path, fields: list[str], expected: set[str]) -> None:
    columns = {"_id": ["a", "b", "c"], "title": ["alpha", "beta", None], "text": ["beta", "alpha", "gamma"]}
    retriever = Bm25.model_validate({**PLAIN, "fields": fields}).open(write_table(tmp_path / "corpus", columns))
    assert set(ask(retriever, "alpha").doc_ids) == expected


def test_the_index_is_built_once(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.jsonl", json_texts(CORPUS.items()))
    first = Bm25(k1=0.9).open(path)
    assert Bm25(k1=0.9).open(path) is first
    first.close()
    assert ask(Bm25(k1=0.9).open(path), "cat") == ask(first, "cat")
    assert Bm25(k1=0.8).open(path) is not first


def test_a_corpus_in_several_files_is_one(tmp_path: Path) -> None:
    rows = list(CORPUS.items())
    write(tmp_path / "part.1.gz", json_texts(rows[:2]))
    write(tmp_path / "part.2", tab_texts(rows[2:]))
    split = Bm25(**PLAIN).open(str(tmp_path / "part.*"))
    assert ask(split, "the cat running") == ask(opened(tmp_path, CORPUS), "the cat running")


def test_a_document_given_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.tsv", "\n" + tab_texts([("a", "alpha"), ("b", "beta"), ("a", "alpha")]))
    with pytest.raises(InputError, match=f"^{path}:4: document 'a' .* line 2"):
        Bm25().open(path)


def test_a_document_given_in_two_files_is_refused_with_both(tmp_path: Path) -> None:
    first = write(tmp_path / "part.1", tab_texts([("b", "beta"), ("a", "alpha")]))
    second = write(tmp_path / "part.2", tab_texts([("a", "alpha")]))
    with pytest.raises(InputError, match=f"^{second}:1: document 'a' .*{first}:2"):
        Bm25().open(str(tmp_path / "part.*"))


@pytest.mark.parametrize("texts", [["", " "], ["the", "a"]])
def test_a_corpus_without_a_word_is_refused(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(InputError, match="word to index"):
        opened(tmp_path, {f"d{place}": text for place, text in enumerate(texts)}, stop_words="english")


def test_no_corpus_is_refused() -> None:
    with pytest.raises(InputError, match=r"dataset\.corpus"):
        Bm25().open(None)


SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30)


@given(scores=SCORES, count=st.integers(1, 40), baseline=st.sampled_from([0.0, 0.5]))
def test_top_is_the_head_of_the_whole_order(scores: list[float], count: int, baseline: float) -> None:
    expected = sorted((-score, place) for place, score in enumerate(scores) if score != baseline)
    assert top(np.array(scores), count, baseline).tolist() == [place for _, place in expected[:count]]
