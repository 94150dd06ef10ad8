"""Postings and weights, against counts in plain Python and against the bm25s library."""

from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.search.postings import Postings, build, within
from rankbeam.transforms.kernels.search.weights import Bm25Formula, Bm25Scorer, TfIdfScorer

UNITS = st.lists(st.lists(st.integers(0, 6), max_size=9), min_size=1, max_size=8).filter(any)
METHODS = ("lucene", "robertson", "atire", "bm25l", "bm25+")


def postings_of(units: list[list[int]], at_once: int = 1 << 20, terms: int = 7) -> Postings:
    stream = np.array([term for unit in units for term in unit], np.int64)
    length = np.array([len(unit) for unit in units])
    ends = np.concatenate([[0], np.cumsum(length)])
    return build(terms, length, lambda first, last: stream[ends[first] : ends[last]], at_once)


@given(UNITS, st.integers(1, 20))
def test_postings_count_the_terms_of_every_unit_in_any_number_of_blocks(units: list[list[int]], at_once: int) -> None:
    postings = postings_of(units, at_once)

    for term in range(7):
        unit, count = postings.of(term)
        expected = [(place, Counter(words)[term]) for place, words in enumerate(units) if term in words]
        assert list(zip(unit.tolist(), count.tolist(), strict=True)) == expected
    assert postings.length.tolist() == [len(unit) for unit in units]


@given(
    UNITS,
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.sampled_from(METHODS),
    st.sampled_from([0.4, 1.2]),
    st.sampled_from([0.0, 0.75, 1.0]),
)
def test_scores_are_those_of_the_library_to_the_last_bit(
    units: list[list[int]], query: list[int], method: str, k1: float, b: float
) -> None:
    known = [term for term in query if any(term in unit for unit in units)]
    library = bm25s.BM25(k1=k1, b=b, delta=0.7, method=method)
    library.index([[str(term) for term in unit] for unit in units], show_progress=False)
    scores, _ = Bm25Scorer.of(Bm25Formula(method, k1, b, 0.7), postings_of(units)).scores(known)

    expected = library.get_scores([str(term) for term in known]) if known else np.zeros(len(units), np.float32)
    assert (scores == expected).all() or not known


@given(UNITS, st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_tf_idf_is_the_cosine_of_vectors(units: list[list[int]], query: list[int]) -> None:
    known = [term for term in query if any(term in unit for unit in units)]
    if not known:
        return
    idf = [np.log((1 + len(units)) / (1 + sum(term in unit for unit in units))) + 1 for term in range(7)]

    def vector(terms: list[int]) -> np.ndarray:
        counts = Counter(terms)
        return np.array([(1 + np.log(counts[term])) * idf[term] if counts[term] else 0.0 for term in range(7)])

    reference = vector(known)
    lengths = [np.linalg.norm(vector(unit)) or 1.0 for unit in units]
    expected = [
        vector(unit) @ reference / np.linalg.norm(reference) / length
        for unit, length in zip(units, lengths, strict=True)
    ]
    assert TfIdfScorer.of(postings_of(units)).scores(known) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 50), max_size=8, unique=True).map(sorted), min_size=1, max_size=5), st.data())
def test_tokens_of_a_span_are_those_that_begin_in_it(documents: list[list[int]], data: st.DataObject) -> None:
    spans = data.draw(
        st.lists(st.tuples(st.integers(0, len(documents) - 1), st.integers(0, 60), st.integers(0, 60)), max_size=6)
    )
    ends = np.concatenate([[0], np.cumsum([len(document) for document in documents])])
    start = np.array([offset for document in documents for offset in document], np.int64)
    columns = np.array([(of, min(a, b), max(a, b)) for of, a, b in spans], np.int64).reshape(-1, 3)
    begin, count = within(start, ends, columns[:, 1], columns[:, 2], columns[:, 0])

    for (of, first, last), at, number in zip(columns.tolist(), begin.tolist(), count.tolist(), strict=True):
        assert start[at : at + number].tolist() == [offset for offset in documents[of] if first <= offset < last]
