"""The place of a chunk in its document, against a search through all pieces of both."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.strategies import lists_up_to

from rankbeam.transforms.kernels.locating import fold_whitespace, locate_after, locate_chunk

_WORDS = lists_up_to(16, st.sampled_from("ab \n")).map("".join)
_CUTS = st.sampled_from([None, 1, 2, 3])


def longest_shared(piece: str, text: str) -> int:
    pieces = [piece[i:j] for i in range(len(piece)) for j in range(i + 1, len(piece) + 1)]
    return max((len(part) for part in pieces if part in text), default=0)


@given(st.text("abü😀 ", min_size=1, max_size=12), st.text(max_size=5), st.text(max_size=5))
def test_a_chunk_is_located_where_it_stands(chunk: str, before: str, after: str) -> None:
    document = before + chunk + after
    place = locate_chunk(chunk, document)
    assert place is None if not chunk.strip() else place == (document.find(chunk), document.find(chunk) + len(chunk))


@settings(max_examples=examples(400))
@given(_WORDS, st.tuples(_CUTS, _CUTS), st.tuples(st.just("") | _WORDS, st.just("") | _WORDS))
def test_four_fifths_of_the_folded_chunk_are_enough_and_less_is_not(
    chunk: str, cuts: tuple[int | None, int | None], around: tuple[str, str]
) -> None:
    first, last = cuts
    document = chunk[first : last and -last].join(around)
    place, piece = locate_chunk(chunk, document), " ".join(chunk.split())
    shared = longest_shared(piece, " ".join(document.split()))
    assert (place is not None) == bool(piece and (shared >= 0.8 * len(piece) or chunk in document))
    if place is not None and chunk not in document:
        there = document[place[0] : place[1]]
        assert len(" ".join(there.split())) >= 0.8 * len(piece) - 2  # blanks at its ends
        assert longest_shared(piece, " ".join(document.split())) == len(fold_whitespace(f"x{there}x").text) - 2


def test_white_space_may_differ() -> None:
    document = "First line.\n\n  Second   line.\tEnd."
    start, end = locate_chunk("First line. Second line.", document) or (0, 0)
    assert document[start:end] == "First line.\n\n  Second   line."


def test_a_chunk_that_was_cut_off_is_located() -> None:
    document = "The quick brown fox jumps over the lazy dog."
    assert locate_chunk("… quick brown fox jumps over the lazy", document) == (3, 39)


def test_a_text_of_another_document_has_no_place() -> None:
    assert locate_chunk("an altogether different sentence", "The quick brown fox.") is None


@given(st.text("ab \n", max_size=6), st.text("abc \n", max_size=30), st.data())
def test_a_chunk_that_begins_with_the_title_has_its_place_in_the_text(
    title: str, text: str, data: st.DataObject
) -> None:
    document = "\n".join(filter(None, [title, text]))
    prefix = len(document) - len(text)
    start = data.draw(st.integers(0, len(document)))
    chunk = document[start : data.draw(st.integers(start, len(document)))]
    place = locate_after(prefix, chunk, document)
    if not chunk.strip():
        assert place is None
    elif chunk in text:
        assert place == (text.find(chunk), text.find(chunk) + len(chunk))
    else:
        first = document.find(chunk)
        assert place == (max(0, first - prefix), max(0, first + len(chunk) - prefix))


def test_a_long_title_hides_no_evidence() -> None:
    title, text = "A title that is longer than the text which follows it", "Fees are due."
    assert locate_after(len(title) + 1, f"{title} {text}", f"{title}\n{text}") == (0, len(text))
    assert locate_chunk(f"{title} {text}", text) is None
