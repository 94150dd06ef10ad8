"""YAML beside PyYAML's own reading of it, and documents that are made to hold more than they seem to."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.transforms.records.errors import InputError

WORDS = st.text(st.sampled_from("ab:-0123456789.e_+x~ '\"#é"), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))


@given(value=st.dictionaries(WORDS, VALUES, max_size=4), shared=VALUES, is_flow=st.booleans())
def test_what_pyyaml_writes_is_read_as_it_was(value: dict[str, object], shared: object, is_flow: bool) -> None:
    whole = {**value, "first": shared, "second": [shared]}  # written with an anchor and an alias
    text = yaml.safe_dump(whole, default_flow_style=is_flow, allow_unicode=True)
    assert load(text, "e.yaml").value == whole


@given(
    mappings=st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=3),
            st.lists(st.integers(0, 4), max_size=3),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_mappings_are_merged_as_yaml_says(mappings: list[tuple[dict[str, int], list[int]]]) -> None:
    """A mapping's own keys win, then the first of those that it merges. PyYAML 6.0.4 lets nested merges win."""
    lines: list[str] = []
    expected: list[dict[str, int]] = []
    for position, (own, others) in enumerate(mappings):
        known = [other for other in others if other < position]
        pairs = [f"{key}: {value}" for key, value in own.items()]
        pairs += [f"<<: [{', '.join(f'*m{other}' for other in known)}]"] * bool(known)
        lines.append(f"k{position}: &m{position} {{{', '.join(pairs)}}}\n")
        merged: dict[str, int] = {}
        for other in reversed(known):
            merged |= expected[other]
        expected.append(merged | own)
    actual = list(load("".join(lines), "e.yaml").value.values())
    assert actual == expected
    assert [list(mapping) for mapping in actual] == [list(mapping) for mapping in expected]


@pytest.mark.parametrize("word", ["1:30", "-1:30", "1:30.5", "23:59:59", "010", "00", "-007"])
def test_a_number_that_only_yaml_1_1_has_is_a_text(word: str) -> None:
    assert load(f"top_k: {word}", "e.yaml").value == {"top_k": word}


@pytest.mark.parametrize("word", ["0", "-1", "+7", "1_000", "0x1F", "0b11", "1.5", "-0.5e-3", "1.", ".5", "-.inf"])
def test_other_numbers_are_those_of_pyyaml(word: str) -> None:
    actual, expected = load(word, "e.yaml").value, yaml.safe_load(word)
    assert (actual, type(actual)) == (expected, type(expected))


def bomb(levels: int, item: str) -> str:
    """Aliases of aliases: ten times as many values in each line; `item` makes one of ten aliases."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels):
        inside = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + item.format(inside))
    return "\n".join(lines) + "\n"


def test_aliases_that_stand_for_very_many_values_are_refused() -> None:
    with pytest.raises(InputError, match=r"e\.yaml:\d+: is not valid YAML: aliases expand to more than 100,000 values"):
        load(bomb(12, "[{}]"), "e.yaml")


def test_merging_takes_no_longer_for_many_levels() -> None:
    value = load(bomb(100, "{{<<: [{}]}}"), "e.yaml").value  # 10^99 merges, one by one
    assert value == {f"a{level}": {"x": 1} for level in range(100)}


def test_aliases_may_repeat_what_people_write() -> None:
    parts = "".join(f"  - {{<<: *base, name: c{number}}}\n" for number in range(500))
    value = load(f"base: &base {{type: bm25, k1: 0.9, b: 0.4}}\nconfigurations:\n{parts}", "e.yaml").value
    assert value["configurations"][499] == {"type": "bm25", "k1": 0.9, "b": 0.4, "name": "c499"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: &b {<<: *b}\n", "2: is not valid YAML: an anchor contains itself"),
        ("a: 1\nb: &b {<<: [*b]}\n", "2: is not valid YAML: an anchor contains itself"),
        ("a: 1\nb: {<<: 3}\n", "2: is not valid YAML: only mappings can be merged with <<"),
        ("a: &a [x]\n? *a\n: 1\n", "1: is not valid YAML: a key must be a single value"),
        ("a: 1\n{b: 2}: 1\n", "2: is not valid YAML: a key must be a single value"),
    ],
)
def test_what_cannot_be_merged_or_be_a_key(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load(text, "e.yaml")
    assert str(caught.value) == f"e.yaml:{problem}"


def test_halves_of_a_character_are_joined_as_in_json_and_a_lone_half_is_refused() -> None:
    assert load(r'{"name": "\ud83d\ude00"}', "e.json").value == {"name": "\U0001f600"}
    with pytest.raises(InputError, match=r"e.yaml:2: is not valid YAML: 'b\\udcff.run' is not valid Unicode"):
        load('a: 1\nb: "b\\udcff.run"\n', "e.yaml")
    with pytest.raises(InputError, match=r"^'b\\udcff.run' is not valid Unicode"):
        load('b: "b\\udcff.run"\n', None)
