"""Folders of benchmarks that were damaged are refused with file, line and what to do."""

from pathlib import Path

import pytest
from support.inputs import write

from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.records.errors import InputError


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("items.jsonl", b"", "items.jsonl: has fewer questions than manifest.json counts; copy it again"),
        ("items.jsonl", b"\n\xff\n", "items.jsonl:2: is not UTF-8; copy it again"),
        ("manifest.json", b'{"items": 1', "manifest.json:1: is not valid JSON"),
    ],
)
def test_damaged_questions(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    for file, text in {"items.jsonl": b"", "manifest.json": b'{"items": 1}', name: content}.items():
        write(tmp_path / file, text)
    with pytest.raises(InputError) as caught:
        GoldensFolder(str(tmp_path)).items()
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"_id": "a", "text": "b"}\n{"_id": "c', "corpus.jsonl:2: is not valid JSON"),
        (b'{"text": "b"}\n', "corpus.jsonl:1: is damaged; copy it again"),
        (b"\xff", "corpus.jsonl:1: is not UTF-8; copy it again"),
    ],
)
def test_damaged_documents(tmp_path: Path, content: bytes, problem: str) -> None:
    write(tmp_path / "corpus.jsonl", content)
    with pytest.raises(InputError) as caught:
        GoldensFolder(str(tmp_path)).documents()
    assert problem in str(caught.value)
