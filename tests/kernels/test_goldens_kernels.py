"""Laws of the kernels that plan and screen generated items, against brute force."""

import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.minhash import first_alike, jaccard, shingles
from rankbeam.transforms.kernels.sampling import apportion, apportion_by_root, in_turn, proportional_table, shuffled
from rankbeam.transforms.kernels.topics import profiles, topics
from rankbeam.transforms.kernels.wording import length, longest_common_run, words

WEIGHTS = st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any)
TEXT = st.text("ab c", min_size=1, max_size=40).filter(str.strip)


@given(WEIGHTS, st.integers(0, 500))
def test_allotted_numbers_have_the_total_and_are_within_one_of_proportion(weights: list[int], total: int) -> None:
    numbers = apportion(weights, total)
    assert sum(numbers) == total
    for number, weight in zip(numbers, weights, strict=True):
        assert abs(number - Fraction(weight * total, sum(weights))) < 1


def test_roots_of_sizes_are_those_of_floating_point() -> None:
    sizes = [3, 17, 90, 1000]
    exact = np.sqrt(sizes) * 100 / np.sqrt(sizes).sum()
    assert np.abs(np.array(apportion_by_root(sizes, 100)) - exact).max() < 1


@given(WEIGHTS, WEIGHTS, st.integers(0, 300))
def test_a_crossed_table_keeps_both_margins_and_every_cell_within_one(
    rows: list[int], columns: list[int], total: int
) -> None:
    of_rows, of_columns = apportion(rows, total), apportion(columns, total)
    table = proportional_table(of_rows, of_columns)
    assert [sum(row) for row in table] == of_rows
    assert [sum(column) for column in zip(*table, strict=True)] == of_columns
    for (row, own), (column, other) in product(enumerate(of_rows), enumerate(of_columns)):
        assert abs(table[row][column] * total - own * other) < max(1, total)


@given(TEXT, TEXT)
def test_jaccard_is_that_of_sets_of_substrings(first: str, second: str) -> None:
    def grams(text: str) -> set[str]:
        folded = " ".join(text.casefold().split())
        return {folded[start : start + 5] for start in range(max(1, len(folded) - 4))}

    own, other = grams(first), grams(second)
    assert jaccard(shingles(first), shingles(second)) == len(own & other) / len(own | other)


@given(st.lists(TEXT, max_size=8))
def test_what_is_kept_has_no_near_duplicate_and_what_is_not_has_one(texts: list[str]) -> None:
    same = first_alike(texts)
    for place, first in enumerate(same):
        assert same[first] == first <= place
        assert first == place or jaccard(shingles(texts[first]), shingles(texts[place])) >= 0.7


def test_rewordings_of_a_long_question_are_near_duplicates_and_other_questions_are_not() -> None:
    questions = [
        "How can a billing manager download all invoices of the last year as one archive?",
        "How can a billing manager download all invoices of the last year as an archive?",
        "Which plan includes single sign-on with an identity provider?",
    ]
    assert first_alike(questions) == [0, 0, 2]


@pytest.mark.long
def test_the_grams_of_texts_without_a_near_duplicate_are_not_kept() -> None:
    texts = [" ".join(f"{place * word:x}" for word in range(1, 400)) for place in range(1, 200)]
    tracemalloc.start()
    try:
        first_alike(texts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < sum(map(len, texts)) * 4  # the hash of a 5-gram has 8 bytes


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=5), min_size=1, max_size=12), st.integers(1, 5))
def test_topics_are_numbered_without_gaps_and_equal_documents_share_one(documents: list[set[str]], count: int) -> None:
    given_profiles = profiles([sorted(words) for words in documents])
    assigned = topics(given_profiles, count)
    assert set(assigned) == set(range(max(assigned) + 1))
    assert len(set(assigned)) <= count
    of_profile = {tuple(sorted(own.items())): topic for own, topic in zip(given_profiles, assigned, strict=True)}
    assert all(
        of_profile[tuple(sorted(own.items()))] == topic for own, topic in zip(given_profiles, assigned, strict=True)
    )


@given(st.permutations(range(9)), st.sampled_from([3, 4]))
def test_topics_part_what_has_no_word_in_common(order: list[int], count: int) -> None:
    cats = [["cat", "paw", "purr"], ["cat", "purr"], ["paw", "cat"]]
    planes = [["wing", "jet"], ["jet", "wing", "pilot"], ["pilot", "jet"]]
    seas = [["fin", "sea"], ["sea", "fin", "reef"], ["reef", "sea"]]
    assigned = topics(profiles([(cats + planes + seas)[place] for place in order]), count)
    assert len(set(assigned)) == len({(topic, place // 3) for topic, place in zip(assigned, order, strict=True)}) == 3


def test_a_document_alone_joins_the_topic_that_shares_most_with_it() -> None:
    assert topics(profiles([["a", "b"], ["a", "b"], ["d", "f"], ["d", "e"], ["e", "f"]]), 3) == [0, 0, 1, 1, 1]


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_the_longest_common_run_is_that_of_all_substrings(first: list[str], second: list[str]) -> None:
    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[i:j]) for i in range(len(words)) for j in range(i, len(words) + 1)}

    assert longest_common_run(first, second) == max(map(len, runs(first) & runs(second)), default=0)


def test_names_come_in_turn_and_in_another_order_for_another_seed() -> None:
    names = [f"n{number}" for number in range(6)]
    assert [sorted(in_turn(6 * block + place, names, 1) for place in range(6)) for block in range(3)] == [names] * 3
    assert shuffled(names, 1) != shuffled(names, 2)


def test_words_keep_their_marks_and_two_characters_of_scripts_without_blanks_are_a_word() -> None:
    assert words("हिन्दी में भुगतान") == ["हिन्दी", "में", "भुगतान"]
    assert words("பணம் مَرْحَبًا don't ❤\ufe0f Café") == ["பணம்", "مَرْحَبًا", "don", "t", "café"]
    assert words("北京がCD買う ที่นี่") == ["北", "京", "が", "cd", "買", "う", "ที่", "นี่"]
    assert words("결제 페이지에서") == ["결제", "페이지에서"]
    text = "用户可以在结算页面下载发票。"
    assert length(words(text)) == 6.5
    assert longest_common_run(words("如何在结算页面下载发票?"), words(text)) == 5
