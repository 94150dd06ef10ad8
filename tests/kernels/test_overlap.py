"""Words that an answer shares with its reference: against sacrebleu, values of rouge-score, and laws."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels import overlap

WORDS = ["a", "the", "cat", "Cat", "sat.", "on", "3.5", "1-2", "&amp;", "mat,", "ß", "猫", "-\n", "(x)", " "]
TEXTS = st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text("ab ", max_size=20) | st.text(max_size=20)
FORMULAS = (overlap.exact_match, overlap.token_f1, overlap.rouge_l, overlap.bleu, overlap.chrf)


@given(answer=TEXTS, reference=TEXTS)
def test_bleu_and_chrf_are_those_of_sacrebleu(answer: str, reference: str) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    bleu = sacrebleu.sentence_bleu(answer, [reference]).score / 100
    assert overlap.bleu(answer, reference) == pytest.approx(bleu, rel=1e-12, abs=1e-15)
    chrf = sacrebleu.sentence_chrf(answer, [reference]).score / 100
    assert overlap.chrf(answer, reference) == pytest.approx(chrf, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("answer", "reference", "fmeasure"),
    [  # rouge_scorer.RougeScorer(["rougeL"]) of rouge-score 0.1.2
        ("Open Billing, then choose Export.", "Choose Export in Billing.", 0.4444444444444445),
        ("a b c d e f", "f e d c b a", 0.16666666666666666),
        ("The cat sat on the mat.", "the cat sat on the mat", 1.0),
        ("Invoices are sent on the 1st of each month.", "Each month, on the 1st, invoices are e-mailed.", 1 / 3),
        ("", "something", 0),
        ("Ünïcode wörds", "unicode words", 0.0),
        ("x", "y", 0.0),
        ("one two two three three three", "three two one two three one", 0.5),
        ("2.5 per cent of 1,000", "2.5% of 1000", 0.5454545454545454),
        ("a a a a b", "b a a", 0.5),
    ],
)
def test_rouge_l_is_that_of_rouge_score(answer: str, reference: str, fmeasure: float) -> None:
    assert overlap.rouge_l(answer, reference) == pytest.approx(fmeasure, rel=1e-15)


@given(ours=st.text("abc", max_size=8), theirs=st.text("abc", max_size=8))
def test_the_longest_common_subsequence_by_trial(ours: str, theirs: str) -> None:
    lengths = [length for length in range(len(theirs) + 1) if is_common(ours, theirs, length)]
    assert overlap.longest_common(ours, theirs) == max(lengths)


def is_common(ours: str, theirs: str, length: int) -> bool:
    return not set(itertools.combinations(theirs, length)).isdisjoint(itertools.combinations(ours, length))


@pytest.mark.parametrize(
    ("answer", "reference", "exact", "f1"),
    [  # by hand, from the rules of SQuAD's evaluate-v1.1.py
        ("The Nile.", "nile", 1.0, 1.0),
        ("Denver Broncos", "the Broncos", 0.0, 2 / 3),
        ("a", "", 1.0, 1.0),
        ("", "Nile", 0.0, 0.0),
        ("an anthem", "anthem", 1.0, 1.0),
        ("U.S.A", "USA", 1.0, 1.0),
        ("one two two", "two two three", 0.0, 2 / 3),
    ],
)
def test_exact_match_and_f1_are_those_of_squad(answer: str, reference: str, exact: float, f1: float) -> None:
    assert overlap.exact_match(answer, reference) == exact
    assert overlap.token_f1(answer, reference) == pytest.approx(f1, rel=1e-15)


@given(answer=TEXTS, reference=TEXTS)
def test_laws_of_overlap(answer: str, reference: str) -> None:
    for formula in FORMULAS:
        assert 0 <= formula(answer, reference) <= 1 + 1e-12
    for formula in (overlap.exact_match, overlap.token_f1, overlap.rouge_l):
        assert formula(answer, reference) == formula(reference, answer)
    assert overlap.exact_match(answer, reference) <= overlap.token_f1(answer, reference)
    assert overlap.exact_match(answer, answer) == overlap.token_f1(answer, answer) == 1


def test_blanks_without_a_citation_are_read_once() -> None:  # trying each of them would take hours
    text = f"{' ' * 1_000_000}x"
    assert overlap.without_citations(f"{text} [1]") == text
