"""Tables, code and graphemes in one chunk: laws for every text; the oracle of graphemes is the library `regex`."""

from collections.abc import Iterator
from itertools import pairwise

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.blocks import blocks, is_inside, whole_graphemes
from rankbeam.transforms.kernels.chunks import CHUNKERS, By, chunk_spans, words

TABLE = "| a | b |\n|---|:-:|\n| 1 | two three |\n| 4 | 5 |"
CODE = "```python\nx = 1\n\n\ny = call(x)  # no end.\n```"
PARTS = st.sampled_from(
    [TABLE, CODE, "~~~\na b\n~~~", "A sentence. Another one!", "# Heading", "word", "a | b", "```", ""]
)
MARKDOWN = st.lists(PARTS, max_size=8).map("\n\n".join)
GRAPHEMES = ["e\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd",
             "\u1112\u1161\u11ab", "\u0e01\u0e33", "\u0915\u094d\u0937", "a", "\u65e5", "\u845b\U000e0100"]  # fmt: skip
CLUSTERS = st.lists(st.sampled_from(GRAPHEMES), max_size=30).map("".join)
UNITS = st.sampled_from(CHUNKERS)
SIZES = st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
SCALE = {"tokens": 4, "recursive": 4, "characters": 1}


def extent(text: str, by: By) -> int:
    return -(-len(text) // SCALE[by]) if by in SCALE else len(words(text))


def whole_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Span of each block, without blanks at its ends."""
    for lines in blocks(text):
        start, end = lines[0][0], lines[-1][1]
        yield start + len(text[start:end]) - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())


@given(MARKDOWN, UNITS, SIZES)
@example(f"One.\n\n{TABLE}\n\nTwo.", "words", (14, 0))
def test_a_block_that_fits_is_whole_in_a_chunk_and_cut_by_none(text: str, by: By, sizes: tuple[int, int]) -> None:
    spans = chunk_spans(text, by, *sizes, intact=True)
    for start, end in whole_blocks(text):
        if by in ("words", "tokens", "characters", "recursive") and extent(text[start:end], by) <= sizes[0]:
            assert any(first <= start and end <= last for first, last in spans)
            assert not any(start < cut < end for span in spans for cut in span)


@given(MARKDOWN | CLUSTERS | st.text(), UNITS, SIZES)
@example("\u845b\U000e0100a", "words", (1, 0))
def test_laws_of_chunks_hold_with_whole_blocks(text: str, by: By, sizes: tuple[int, int]) -> None:
    spans = chunk_spans(text, by, *sizes, intact=True, splits=True)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(spans))
    covered = {position for start, end in spans for position in range(start, end)}
    assert covered >= {position for position, character in enumerate(text) if not character.isspace()}
    for start, end in spans:
        is_one = all(is_inside(text, at) for at in range(start + 1, end))
        # A word may begin within a grapheme, such as an ideograph with a variation selector, and is not cut off there.
        joined = 0 if by in SCALE else sum(is_inside(text, start + first) for first, _ in words(text[start:end]))
        assert extent(text[start:end], by) - joined <= sizes[0] or is_one


@given(
    CLUSTERS | st.lists(st.sampled_from([*GRAPHEMES, " ", "。"]), max_size=30).map("".join), UNITS, SIZES, st.booleans()
)
def test_no_cut_is_inside_a_grapheme(text: str, by: By, sizes: tuple[int, int], intact: bool) -> None:
    boundaries = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    cuts = {cut for span in chunk_spans(text, by, *sizes, intact=intact, splits=True) for cut in span}
    assert cuts <= boundaries


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=12) | CLUSTERS)
def test_what_the_library_calls_the_inside_of_a_grapheme_is_one_here(text: str) -> None:
    boundaries = {match.end() for match in regex.finditer(r"\X", text)}
    inside = {at for at in range(1, len(text)) if at not in boundaries}
    assert {at for at in inside if not is_inside(text, at)} == set()
    characters = [(at, at + 1) for at in range(len(text))]
    assert [end for _, end in whole_graphemes(text, characters)[:-1]] == [
        at for at in range(1, len(text)) if not is_inside(text, at)
    ]


@given(st.text(st.characters(codec="ascii"), max_size=200).filter(lambda text: "|" not in text and "~" not in text),
       UNITS, SIZES)  # fmt: skip
def test_a_text_without_blocks_is_cut_as_before(text: str, by: By, sizes: tuple[int, int]) -> None:
    text = text.replace("`", "")
    assert chunk_spans(text, by, *sizes, intact=True) == chunk_spans(text, by, *sizes)


def test_of_a_table_that_does_not_fit_lines_are_kept() -> None:
    text = f"Before.\n\n{TABLE}"
    spans = chunk_spans(text, "words", 8, 0, intact=True)
    assert [text[start:end] for start, end in spans][1:] == ["| 1 | two three |", "| 4 | 5 |"]


def test_a_long_line_below_a_row_is_read_once() -> None:  # trying each way to divide its blanks would take hours
    assert not list(blocks(f"a | b\n{' ' * 1_000_000}x |"))
