"""JSON lines whose ids are invalid, or that Python cannot read."""

import json
from pathlib import Path

import pytest
from support.inputs import write
from support.readers import Reader, queries, read_corpus, refusal

from rankbeam.transforms.clients.formats.texts import read_queries

READERS = pytest.mark.parametrize("reader", [read_queries, read_corpus])


@READERS
@pytest.mark.parametrize("name", ["_id", "id", "query_id", "docno"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('["q1"]', '["q1"]'),
        ("[]", "[]"),
        ('{"oid": "5f"}', '{"oid": "5f"}'),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-1e999", "-Infinity"),
        ("true", "true"),
        ("false", "false"),
        ("[" + "1, " * 100 + "1]", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1…"),
    ],
)
def test_an_id_is_a_text_or_a_number(tmp_path: Path, reader: Reader, name: str, value: str, shown: str) -> None:
    path = write(tmp_path / "file", f'{{"_id": "1", "text": "a"}}\n{{"{name}": {value}, "text": "b"}}\n')
    error = refusal(reader, path)
    assert str(error) == f"{path}:2: the id is {shown}; an id is a text or a number"


def test_numbers_are_ids(tmp_path: Path) -> None:
    lines = "".join(f'{{"_id": {value}, "text": "a"}}\n' for value in ("7", "-1", "2.5", "12345678901234567890"))
    assert [name for name, _, _ in queries(write(tmp_path / "file", lines))] == [
        "7",
        "-1",
        "2.5",
        "12345678901234567890",
    ]


@READERS
@pytest.mark.parametrize("depth", [500, 100_000])  # Python 3.13 reads 2,000, earlier ones do not
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")])
def test_what_is_nested_deeply_is_read_or_refused(tmp_path: Path, reader: Reader, depth: int, brackets: str) -> None:
    nested = brackets[0] * depth + "1" + brackets[1] * depth
    path = write(tmp_path / "file", f'{{"_id": "1", "text": "a"}}\n{{"_id": "2", "text": "b", "more": {nested}}}\n')
    if depth == 500:
        assert len(list(reader(path))) in (1, 2)  # one batch of queries, or two documents
        return
    assert str(refusal(reader, path)) == f"{path}:2: is not valid JSON: it is nested too deeply"


@READERS
@pytest.mark.parametrize("name", ["_id", "text", "more"])
def test_a_number_of_very_many_digits_is_refused(tmp_path: Path, reader: Reader, name: str) -> None:
    entry = json.dumps({"_id": "1", "text": "a", "more": "b"})
    path = write(tmp_path / "file", entry + "\n" + entry[:-1] + f', "{name}": {"9" * 5000}}}\n')
    assert "2: is not valid JSON: it holds a number of more than 4,300 digits" in str(refusal(reader, path))


@READERS
def test_two_objects_on_a_line_are_refused(tmp_path: Path, reader: Reader) -> None:
    path = write(tmp_path / "file", '{"_id": "1", "text": "a"} {"_id": "2", "text": "b"}\n')
    assert "1: is not valid JSON: Extra data at column 27; write one object per line" in str(refusal(reader, path))


@pytest.mark.parametrize(
    ("escapes", "is_refused"),
    [
        ("\\ud83d\\ude00", False),
        ("\\uD83D\\uDE00 \\ud55c", False),
        ("\\\\ud83d", False),  # an escaped backslash, and letters
        ("\\\\ud83d\\ude00", True),
        ("\\\\\\ud83d", True),
        ("\\ude00\\ud83d", True),
        ("\\ud83d\\ud83d\\ude00", True),
    ],
)
def test_only_surrogates_without_their_other_half_are_refused(
    tmp_path: Path, escapes: str, *, is_refused: bool
) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(f'{{"_id": "1", "text": "{escapes}"}}\n')
    if is_refused:
        assert "holds half a character" in str(refusal(read_queries, str(path)))
    else:
        (batch,) = read_queries(str(path))
        assert batch["text"].to_pylist() == [json.loads(f'"{escapes}"')]
