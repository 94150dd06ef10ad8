"""The place of a chunk in its document, against a search through all pieces of both."""

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.locating import folded, located

_WORDS = st.text("ab \n", max_size=16)


def longest_shared(piece: str, text: str) -> int:
    pieces = [piece[i:j] for i in range(len(piece)) for j in range(i + 1, len(piece) + 1)]
    return max((len(each) for each in pieces if each in text), default=0)


@given(st.text("abü😀 ", min_size=1, max_size=12), st.text(max_size=5), st.text(max_size=5))
def test_a_chunk_is_located_where_it_stands(chunk: str, before: str, after: str) -> None:
    document = before + chunk + after
    place = located(chunk, document)
    assert place is None if not chunk.strip() else place == (document.find(chunk), document.find(chunk) + len(chunk))


@given(_WORDS, st.text("ab \n", max_size=24))
def test_four_fifths_of_the_folded_chunk_are_enough_and_less_is_not(chunk: str, document: str) -> None:
    place, piece = located(chunk, document), " ".join(chunk.split())
    shared = longest_shared(piece, " ".join(document.split()))
    assert (place is not None) == bool(piece and (shared >= 0.8 * len(piece) or chunk in document))
    if place is not None and chunk not in document:
        there = document[place[0] : place[1]]
        assert len(" ".join(there.split())) >= 0.8 * len(piece) - 2  # blanks at its ends
        assert longest_shared(piece, " ".join(document.split())) == len(folded(f"x{there}x").text) - 2


def test_white_space_may_differ() -> None:
    document = "First line.\n\n  Second   line.\tEnd."
    start, end = located("First line. Second line.", document) or (0, 0)
    assert document[start:end] == "First line.\n\n  Second   line."


def test_a_chunk_that_was_cut_off_is_located() -> None:
    document = "The quick brown fox jumps over the lazy dog."
    assert located("… quick brown fox jumps over the lazy", document) == (3, 39)


def test_a_text_of_another_document_has_no_place() -> None:
    assert located("an altogether different sentence", "The quick brown fox.") is None
