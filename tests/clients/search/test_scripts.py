"""Scripts without blanks between words, single letters, digits and accents: what is found, and what is warned of."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import json_texts, write

from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.clients.search.analysis import Analysis
from rankbeam.transforms.kernels.search.words import pairs_of, words_of
from rankbeam.transforms.records.queries import Query

PLAIN = {"stemming": "none", "stop_words": "none"}
SENTENCES = {
    "zh": ("我们今天下午去图书馆借书。", "图书馆"),
    "ja": ("東京都の図書館は午後九時に閉まります。", "図書館"),
    "ko": ("서울도서관에서는 오후에 책을 빌립니다.", "도서관"),
    "th": ("ห้องสมุดปิดเวลาสามทุ่ม", "ห้องสมุด"),
}


def corpus(folder: Path, texts: dict[str, str]) -> str:
    return write(folder / "corpus.jsonl", json_texts(list(texts.items())))


@pytest.mark.parametrize("language", SENTENCES)
def test_bigrams_find_a_word_inside_a_sentence_and_words_warn(tmp_path: Path, language: str) -> None:
    sentence, word = SENTENCES[language]
    path = corpus(tmp_path, {"right": sentence, "wrong": "an entirely different document"})
    query = Query("q", word)
    by_pairs = Bm25(**PLAIN, tokenizer="bigrams").open(path)
    assert by_pairs.retrieve(query, 5).doc_ids == ("right",)
    assert by_pairs.warnings == ()
    (warning,) = Bm25(**PLAIN).open(path).warnings
    assert warning.endswith("set tokenizer: bigrams")


def test_a_latin_corpus_is_not_warned_of(tmp_path: Path) -> None:
    texts = {str(number): f"plain words number{number} of a language with blanks" for number in range(20)}
    assert Bm25(**PLAIN).open(corpus(tmp_path, texts | {"x": "東京"})).warnings == ()


def test_single_letters_and_digits_are_no_words_and_accents_stay() -> None:
    analysis = Analysis("none", "none")
    assert analysis.of_text("C and C++, version 5 or 5.1, Café cafe") == ["and", "version", "or", "café", "cafe"]


@pytest.mark.parametrize("tokenizer", ["words", "bigrams"])
@pytest.mark.parametrize(("stored", "query"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_match_however_files_spell_them(tmp_path: Path, tokenizer: str, stored: str, query: str) -> None:
    texts = {"right": "Das Café öffnet früh, 부산.", "wrong": "Cafe offnet fruh"}
    path = corpus(tmp_path, {name: unicodedata.normalize(stored, text) for name, text in texts.items()})
    index = Bm25(**PLAIN, tokenizer=tokenizer).open(path)
    for word in ("Café", "öffnet", "früh", "부산"):
        assert index.retrieve(Query("q", unicodedata.normalize(query, word)), 5).doc_ids == ("right",)


TEXTS = st.lists(st.text(st.sampled_from("abİß é_1东京ーกำ가나。、 "), max_size=20), max_size=4)


@given(TEXTS)
def test_pairs_are_those_of_plain_python_and_lie_where_they_say(texts: list[str]) -> None:
    own = "东京ーกำ가나"
    expected = []
    for place, text in enumerate(texts):
        for run in re.findall(rf"[{own}]+|(?:(?![{own}])\w){{2,}}", text.lower()):
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] if run[0] in own and len(run) > 1 else [run]
            expected += [(place, pair) for pair in pairs]
    actual = pairs_of(texts)
    assert [(place, actual.vocabulary[word]) for place, word in zip(actual.text, actual.word, strict=True)] == expected
    for place, word, start in zip(actual.text, actual.word, actual.start, strict=True):
        assert actual.vocabulary[word][0] in texts[place][start : start + 1].lower()


@given(st.lists(st.text(st.sampled_from("abİß é_1."), max_size=20), max_size=4))
def test_without_such_scripts_both_tokenizers_find_the_same(texts: list[str]) -> None:
    one, other = words_of(texts), pairs_of(texts)
    assert [one.vocabulary[word] for word in one.word] == [other.vocabulary[word] for word in other.word]
    assert one.start.tolist() == other.start.tolist()
    assert one.text.tolist() == other.text.tolist()
