"""Entries of some ids are those that a reader of all entries finds, in every format and under every name of an id."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import tab_texts, texts_table, write, write_table

from rankbeam.transforms.clients.formats.texts import read_chosen, read_entries
from rankbeam.transforms.records.errors import InputError

NAMES = st.sampled_from(["_id", "id", "query_id", "docno"])
IDS = st.one_of(st.sampled_from(["1", "2", "2.5", "a b", "é"]), st.integers(0, 3), st.sampled_from([1.0, 2.5]))
OTHERS = st.dictionaries(st.sampled_from(["lang", "_id", "id", "metadata"]), st.sampled_from([None, "", "7", {"a": 1}]))


@settings(max_examples=examples(100))
@given(
    rows=st.lists(st.tuples(NAMES, IDS, OTHERS), min_size=1, max_size=8),
    ids=st.sets(st.sampled_from(["1", "2", "2.5", "7", "é", "absent"])),
    role=st.sampled_from(["queries", "corpus"]),
)
def test_chosen_entries_of_json_lines(
    rows: list[tuple[str, str | int | float, dict[str, object]]],
    ids: set[str],
    role: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    objects = [{**others, name: value, "text": "words"} for name, value, others in rows]
    path = write(tmp_path_factory.mktemp("json") / "file", "".join(json.dumps(row) + "\n" for row in objects))
    try:
        entries = list(read_entries(path, role))
    except InputError:
        return  # an id that is an object
    assert list(read_chosen(path, role, ids)) == [entry for entry in entries if entry.id in ids]


def test_chosen_entries_of_other_formats(tmp_path: Path) -> None:
    rows = [("q1", "first"), ("q2", "second"), ("q3", "third")]
    for path in (write(tmp_path / "tab", tab_texts(rows)), write_table(tmp_path / "parquet", texts_table(rows))):
        chosen = [(entry.id, entry.text, entry.line) for entry in read_chosen(path, "queries", {"q3", "q1"})]
        assert chosen == [("q1", "first", 1), ("q3", "third", 3)]
