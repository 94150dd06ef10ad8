"""YAML that remembers its lines, and is never a traceback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.pipelines.config.yaml_lines import format_place, load
from rankbeam.transforms.records.errors import InputError

TEXT = """\
# a comment
name: first
dataset:
  qrels: q.txt   # relative
  "queries":
    q.tsv
configurations:
  - name: a
    retriever: {type: bm25,
      k1: 0.9}
  -
    name: b
metrics: [AP,
  RR]
"""

PLACES = {
    (): 2,
    ("name",): 2,
    ("dataset",): 3,
    ("dataset", "qrels"): 4,
    ("dataset", "queries"): 5,
    ("configurations",): 7,
    ("configurations", 0): 8,
    ("configurations", 0, "name"): 8,
    ("configurations", 0, "retriever"): 9,
    ("configurations", 0, "retriever", "type"): 9,
    ("configurations", 0, "retriever", "k1"): 10,
    ("configurations", 1): 12,
    ("configurations", 1, "name"): 12,
    ("metrics",): 13,
    ("metrics", 0): 13,
    ("metrics", 1): 14,
}


def test_every_place_has_its_line() -> None:
    located = load(TEXT, "e.yaml")
    assert located.lines == PLACES
    assert located.value["configurations"][0] == {"name": "a", "retriever": {"type": "bm25", "k1": 0.9}}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("metrics", 1), "e.yaml:14: metrics[1]: is bad"),
        (("configurations", 0, "retriever", "b"), "e.yaml:9: configurations[0].retriever.b: is bad"),
        (("configurations", 7, "name"), "e.yaml:7: configurations[7].name: is bad"),
        (("output", "path"), "e.yaml:2: output.path: is bad"),
        ((), "e.yaml:2: is bad"),
    ],
)
def test_a_problem_is_at_the_nearest_place_there_is(place: tuple[str | int, ...], message: str) -> None:
    assert str(load(TEXT, "e.yaml").error(place, "is bad")) == message


def test_a_text_that_no_user_wrote_has_no_lines() -> None:
    error = load(TEXT, None).error(("metrics", 1), "is bad")
    assert (str(error), error.path, error.line) == ("is bad", None, None)


def test_keys_given_twice_are_found_at_every_level() -> None:
    located = load("a: 1\nb: {c: 1, c: 2}\na: 2\nd:\n  - e: 1\n    e: 1\n", "e.yaml")
    assert set(located.repeated) == {("a",), ("b", "c"), ("d", 0, "e")}
    assert str(located.error(("a",), "is given twice")).startswith("e.yaml:3: a: ")


def test_a_merged_mapping_may_be_overridden() -> None:
    located = load("base: &base {type: bm25, k1: 1.2}\nother: {<<: *base, k1: 0.9}\n", "e.yaml")
    assert located.value["other"] == {"type": "bm25", "k1": 0.9}
    assert located.repeated == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 1\n  b: 2\n", 2),
        ("a: 1\nb: {c: \n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 'open\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\nb: *nobody\n", 2),
        ("a: 1\nb: !!python/name:os.system x\n", 2),
        ("a: 1\nb: 2024-13-45\n", 2),
        ("a: 1\nb: !!int x\n", 2),
        ("a: 1\nb: &b [1, *b]\n", 2),
    ],
)
def test_what_is_not_valid_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InputError, match="is not valid YAML") as caught:
        load(text, "e.yaml")
    assert (caught.value.path, caught.value.line) == ("e.yaml", line)


@pytest.mark.parametrize("text", ["a: Is it: so?\n", "a: {b: Is it so?, c: 1}\n"])
def test_the_refusal_of_a_text_that_needs_quotes_names_them(text: str) -> None:
    with pytest.raises(InputError, match="put a text with a colon, comma or question mark in quotes"):
        load(text, "e.yaml")


@pytest.mark.parametrize("letter", ["\x00", "\x07", "\ufffe"])
def test_a_letter_that_yaml_forbids_is_refused(letter: str) -> None:
    with pytest.raises(InputError, match="is not valid YAML"):
        load(f"name: a{letter}b\n", "e.yaml")


@given(text=st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@ ,?\n1.\t"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        located = load(text, "e.yaml")
    except InputError as error:
        assert error.path == "e.yaml"  # noqa: PT017  either outcome is good
        return
    assert all(1 <= line <= text.count("\n") + 1 for line in located.lines.values())


def test_places_are_spelled_as_people_write_them() -> None:
    assert format_place(("a", 0, 1, "b")) == "a[0][1].b"
    assert format_place(()) == ""
