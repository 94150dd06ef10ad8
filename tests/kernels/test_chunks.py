"""Chunks of texts: laws that hold for every text, every unit, size and overlap; and what the units are."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.blocks import Span, is_inside
from rankbeam.transforms.kernels.chunks import CHUNKERS, By, chunk_spans, sections, words
from rankbeam.transforms.kernels.sentences import sentences

WORDS = st.sampled_from(
    ["a", "be", "sea.", "# h", "#x", "longer-word", "日本語", "é", "Why?", "---", "===", "```", "don't"]
)
BLANKS = st.sampled_from([" ", "\n", "\n\n", "\t", "\r\n\r\n", " \n \n", "\u3000", ""])
TEXTS = st.one_of(
    st.text(),
    st.lists(st.tuples(WORDS, BLANKS), max_size=40).map(lambda parts: "".join(word + blank for word, blank in parts)),
)
UNITS = st.sampled_from(CHUNKERS)
SIZES = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def is_ideograph(character: str) -> bool:
    blocks = ("\u3041\u30ff", "\u3400\u4dbf", "\u4e00\u9fff", "\uf900\ufaff", "\U00020000\U0003ffff")
    return any(first <= character <= last for first, last in blocks)


def count_words(text: str) -> int:
    """One for each ideograph, and one for each run of other characters that are not white space."""
    spaced = "".join(f" {character} " if is_ideograph(character) else character for character in text)
    return len(spaced.split())


def extent(text: str, by: By) -> int:
    if by == "characters":
        return len(text)
    return -(-len(text) // 4) if by in ("tokens", "recursive") else count_words(text)


def shared(text: str, one: Span, other: Span, by: By) -> int:
    return extent(text[other[0] : one[1]], by) if other[0] < one[1] else 0


@given(TEXTS, UNITS, SIZES)
def test_chunks_stand_in_order_within_the_text_without_blanks_around_them(
    text: str, by: By, sizes: tuple[int, int]
) -> None:
    spans = chunk_spans(text, by, *sizes)

    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(text[start:end].strip() == text[start:end] for start, end in spans)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(spans))


@given(TEXTS, UNITS, SIZES)
def test_every_character_of_a_word_stands_in_a_chunk(text: str, by: By, sizes: tuple[int, int]) -> None:
    covered = {position for start, end in chunk_spans(text, by, *sizes) for position in range(start, end)}

    assert all(position in covered for position, character in enumerate(text) if not character.isspace())


@given(TEXTS, st.sampled_from(["words", "tokens", "characters", "recursive"]), SIZES)
@example("0𠀀0", "words", (1, 0))
def test_no_chunk_is_larger_than_asked(text: str, by: By, sizes: tuple[int, int]) -> None:
    for start, end in chunk_spans(text, by, *sizes):
        is_one_grapheme = all(is_inside(text, at) for at in range(start + 1, end))
        assert extent(text[start:end], by) <= sizes[0] or is_one_grapheme


@given(TEXTS, st.sampled_from(["sentences", "paragraphs", "headings"]), SIZES)
@example("One two three. Four.", "sentences", (2, 0))
def test_a_chunk_of_whole_units_is_larger_than_asked_only_where_it_is_one_unit(
    text: str, by: By, sizes: tuple[int, int]
) -> None:
    units = set(chunk_spans(text, by, 1, 0))  # every unit has a word, so no two fit

    for span in chunk_spans(text, by, *sizes):
        if extent(text[span[0] : span[1]], by) > sizes[0]:
            assert span in units


@given(TEXTS, st.sampled_from(["sentences", "paragraphs", "headings"]), SIZES)
def test_no_chunk_is_larger_than_asked_where_longer_units_are_split(text: str, by: By, sizes: tuple[int, int]) -> None:
    spans = chunk_spans(text, by, *sizes, splits=True)

    assert all(count_words(text[start:end]) <= sizes[0] for start, end in spans)
    covered = {position for start, end in spans for position in range(start, end)}
    assert all(position in covered for position, character in enumerate(text) if not character.isspace())
    unsplit = chunk_spans(text, by, *sizes)
    if all(count_words(text[start:end]) <= sizes[0] for start, end in unsplit):
        assert spans == unsplit


@given(TEXTS, UNITS, SIZES)
def test_neighbours_share_at_most_the_overlap(text: str, by: By, sizes: tuple[int, int]) -> None:
    spans = chunk_spans(text, by, *sizes)

    assert all(shared(text, one, other, by) <= sizes[1] for one, other in pairwise(spans))


@given(TEXTS, SIZES)
@example("0𠀀0", (1, 0))
@example("0\uf900\U0003134a0", (2, 1))
def test_neighbours_of_words_share_the_overlap_exactly(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    spans = chunk_spans(text, "words", size, overlap)

    assert all(shared(text, one, other, "words") == overlap for one, other in pairwise(spans))
    assert all(count_words(text[start:end]) == size for start, end in spans[:-1])


@given(st.text("ab", max_size=60), SIZES)
def test_a_word_that_is_longer_than_a_chunk_is_cut_as_characters_are(word: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    if len(word) <= size:
        expected = [(0, len(word))] if word else []
    else:
        count = -(-(len(word) - overlap) // (size - overlap))
        starts = [position * (size - overlap) for position in range(count)]
        expected = [(start, min(start + size, len(word))) for start in starts]

    assert chunk_spans(word, "characters", size, overlap) == expected


@given(TEXTS, UNITS, SIZES)
def test_the_same_text_has_the_same_chunks(text: str, by: By, sizes: tuple[int, int]) -> None:
    assert chunk_spans(text, by, *sizes) == chunk_spans(text, by, *sizes)


@given(TEXTS, UNITS)
def test_a_text_that_fits_is_one_chunk(text: str, by: By) -> None:
    spans = chunk_spans(text, by, 10_000, 5_000)

    assert [text[start:end] for start, end in spans] == ([text.strip()] if text.strip() else [])


def pieces(text: str, by: By, size: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end in chunk_spans(text, by, size, overlap)]


def test_paragraphs_are_separated_by_blank_lines() -> None:
    text = "one two\nthree\r\n\r\nfour five\n \t\nsix"

    assert pieces(text, "paragraphs", 2) == ["one two\nthree", "four five", "six"]
    assert pieces(text, "paragraphs", 5) == ["one two\nthree\r\n\r\nfour five", "six"]


def test_sections_begin_at_headings_but_not_in_code() -> None:
    text = "intro\n\n# One\na\n```sh\n# a comment\n```\n#tag\nTwo\n---\nb\n\n---\nc"

    assert pieces(text, "headings", 1) == ["intro", "# One\na\n```sh\n# a comment\n```\n#tag", "Two\n---\nb\n\n---\nc"]


def level(text: str, position: int) -> int:
    """The boundary before a position: of a paragraph, a line, a sentence, a word or a character."""
    before = text[:position]
    blank = before[len(before.rstrip()) :]
    if blank.count("\n") > 1:
        return 0
    if "\n" in blank:
        return 1
    if any(start == position for start, _ in sentences(text)):
        return 2
    return 3 if any(start == position for start, _ in words(text)) else 4


@given(TEXTS.filter(lambda text: not any(map(is_cluster, text))), SIZES)
def test_recursive_chunks_end_at_the_highest_boundary_that_fits(text: str, sizes: tuple[int, int]) -> None:
    size = sizes[0] * 4
    spans = chunk_spans(text, "recursive", *sizes)
    for (start, end), following in pairwise([*spans, (len(text), len(text))]):
        rest = end + len(text[end:]) - len(text[end:].lstrip())
        if rest == len(text):
            assert following[0] == len(text)
            continue
        done = max((other for _, other in spans if other < end), default=start)
        fitting = [
            at for at in range(done + 1, len(text)) if not text[at].isspace() and len(text[start:at].rstrip()) <= size
        ]
        assert level(text, rest) == min(level(text, at) for at in fitting)
        assert rest == max(at for at in fitting if level(text, at) == level(text, rest))


@given(TEXTS, SIZES)
def test_recursive_chunks_cut_only_sentences_that_are_longer_than_a_chunk(text: str, sizes: tuple[int, int]) -> None:
    inside = [
        (start, end)
        for start, end in sentences(text)
        if any(start < begin < end or start < stop < end for begin, stop in chunk_spans(text, "recursive", *sizes))
    ]
    assert all(end - start > sizes[0] * 4 for start, end in inside)


def is_cluster(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in "\u200d\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    )


def test_recursive_chunks_prefer_paragraphs_and_keep_characters_whole() -> None:
    text = "One two.\n\nThree four five six. Seven eight.\nNine"
    assert pieces(text, "recursive", 6) == ["One two.", "Three four five six.", "Seven eight.\nNine"]
    assert pieces(text, "recursive", 11) == ["One two.", "Three four five six. Seven eight.\nNine"]
    assert pieces("Be it. Do so. Go on.", "recursive", 2, 1) == ["Be it.", "Do so.", "Go on."]
    assert pieces("Be it. Do so. Go on.", "recursive", 4, 2) == ["Be it. Do so.", "Do so. Go on."]
    assert pieces("aa bb cc dd", "recursive", 2, 1) == ["aa bb cc", "cc dd"]
    assert pieces("e\u0301" * 6, "recursive", 1) == ["e\u0301" * 2] * 3
    assert pieces("👩\u200d🚀👍🏽", "recursive", 1) == ["👩\u200d🚀", "👍🏽"]


def test_sentences_are_packed_whole() -> None:
    text = "One two. Three four five. Six? Seven eight nine ten eleven."

    assert pieces(text, "sentences", 4, 1) == ["One two.", "Three four five. Six?", "Seven eight nine ten eleven."]


def test_longer_units_are_split_at_the_boundaries_of_smaller_ones() -> None:
    text = "# A\n\nOne two three. Four five.\n\nSix seven eight nine ten eleven."

    spans = chunk_spans(text, "headings", 5, 0, splits=True)
    assert [text[start:end] for start, end in spans] == [
        "# A",
        "One two three. Four five.",
        "Six seven eight nine ten",
        "eleven.",
    ]


def test_an_overlap_that_leaves_no_progress_is_refused() -> None:
    with pytest.raises(ValueError, match="an overlap of 4 is not less than a size of 4"):
        chunk_spans("a", "words", 4, 4)


@pytest.mark.parametrize(
    ("code", "sections_there"),
    [
        ("```\n# a\n~~~\n# b\n```\n", 1),
        ("~~~\n# a\n```\n# b\n~~~\n", 1),
        ("````md\n```\n# a\n```\n# b\n````\n", 1),
        ("```python\n# a\n```bash\n# b\n```\n", 1),
        ("``` not `code`\n# a\n", 2),
        ("```\n# a\n", 1),
        ("```\n# a\n```\n# b\n", 2),
    ],
)
def test_only_its_own_fence_ends_code(code: str, sections_there: int) -> None:
    assert len(sections(f"# Title\n{code}")) == sections_there


def test_a_long_row_of_marks_is_read_once() -> None:  # trying each way to divide them would take hours
    text = f"Go{'.' * 100_000}{chr(39) * 100_000}x"
    assert sentences(text) == [(0, len(text))]
