"""Documents as files: any id comes back from the name of its file, and folders change only where their content does."""

import json
from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.inputs import json_texts, write

from rankbeam.transforms.clients.corpora.rag_engine.importing import MOST_FILES, batches
from rankbeam.transforms.clients.corpora.rag_engine.objects import reasons
from rankbeam.transforms.clients.corpora.rag_engine.staging import (
    StagedDocuments,
    StagedFiles,
    contents,
    read_documents,
)
from rankbeam.transforms.records.corpora import DocumentsFingerprint, document_of, file_name
from rankbeam.transforms.records.errors import InputError

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
DOCUMENTS = st.lists(st.tuples(IDS, st.text(max_size=20)), max_size=8)


def fingerprint_of(documents: Iterable[tuple[str, str]]) -> DocumentsFingerprint:
    parts = (DocumentsFingerprint.of(doc_id, text) for doc_id, text in documents)
    return reduce(DocumentsFingerprint.merge, parts, DocumentsFingerprint())


@given(IDS)
def test_every_id_comes_back_from_the_name_and_from_the_uri_of_its_file(doc_id: str) -> None:
    name = file_name(doc_id)
    assert document_of(name) == document_of(f"gs://bucket/staging/documents/0f/{name}") == doc_id
    assert name.isascii()
    assert not {*name} & {*"/?#[]* \n\r"}


@given(st.sets(IDS, max_size=20))
def test_no_two_ids_have_one_name(ids: set[str]) -> None:
    assert len({file_name(doc_id) for doc_id in ids}) == len(ids)


@settings(max_examples=examples(30))
@given(DOCUMENTS, st.integers(0, 8), st.randoms(use_true_random=False))
def test_a_fingerprint_knows_no_order_and_merges_as_sets_do(documents, cut, random) -> None:  # type: ignore[no-untyped-def]
    whole = fingerprint_of(documents)
    shuffled = random.sample(documents, len(documents))
    assert fingerprint_of(shuffled) == whole
    assert fingerprint_of(documents[:cut]).merge(fingerprint_of(documents[cut:])) == whole
    assert whole.merge(DocumentsFingerprint()) == whole


def test_text_that_moves_from_the_id_is_another_document() -> None:
    assert DocumentsFingerprint.of("ab", "c") != DocumentsFingerprint.of("a", "bc")


def test_a_change_of_one_document_changes_one_folder(tmp_path: Path) -> None:
    texts = [(f"d{number}", f"text {number}") for number in range(5000)]
    before = read_documents(write(tmp_path / "a.jsonl", json_texts(texts)))
    after = read_documents(write(tmp_path / "b.jsonl", json_texts([("d7", "another"), *texts[:7], *texts[8:]])))

    unchanged = {folder.name for folder in before.folders} & {folder.name for folder in after.folders}
    assert (len(before.folders), len(after.folders), len(unchanged)) == (8, 8, 7)
    assert max(len(folder.names) for folder in before.folders) < MOST_FILES
    assert before.fingerprint != after.fingerprint


def test_documents_without_text_have_no_file_and_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    documents = read_documents(write(tmp_path / "a.jsonl", json_texts([("a", "x"), ("b", " \n"), ("c", "")])))
    assert documents.without_text == ("b", "c")
    assert documents.staged("gs://b/s").names() == {"a.txt"}
    assert documents.fingerprint.documents == 3


def test_equal_ids_and_ids_too_long_for_a_name_are_refused_with_their_line(tmp_path: Path) -> None:
    twice = write(tmp_path / "twice.jsonl", json_texts([("a", "x"), ("b", "y"), ("a", "z")]))
    with pytest.raises(InputError, match=r"twice\.jsonl:3: document 'a' is given twice \(also at line 1\)"):
        read_documents(twice)
    long = write(tmp_path / "long.jsonl", json_texts([("a", "x"), ("ü" * 200, "y")]))
    with pytest.raises(InputError, match=r"long\.jsonl:2: the id 'ü+…?'? makes a file name of 1204 bytes"):
        read_documents(long)


def test_missing_files_are_imported_by_folder_where_all_of_it_is_missing(tmp_path: Path) -> None:
    documents = read_documents(write(tmp_path / "a.jsonl", json_texts([(f"d{n}", "x") for n in range(30_000)])))
    staged: StagedFiles = documents.staged("gs://b/s")
    everything = list(batches(staged, staged.names()))
    first, second = staged.folders[:2]
    some = list(batches(staged, {*first.names, second.names[0]}))

    assert sum(files for _, files in everything) == 30_000
    assert max(files for _, files in everything) <= MOST_FILES
    assert {uri for uris, _ in everything for uri in uris} == {staged.uri(folder) for folder in staged.folders}
    assert some == [([staged.uri(first), f"{staged.uri(second)}/{second.names[0]}"], len(first.names) + 1)]


def test_reasons_are_found_in_any_form_of_results() -> None:
    lines = [
        {"ragFile": {"gcsSource": {"uris": ["gs://b/d/a.txt"]}, "fileStatus": {"errorStatus": "too large"}}},
        {"source_uri": "gs://b/d/b.txt", "status": "OK"},
        ["no", "mapping"],
    ]
    content = "".join(f"{json.dumps(line)}\n" for line in lines) + "no json\n"
    assert reasons(content.encode()) == {"gs://b/d/a.txt": "too large"}


def texts(documents: StagedDocuments) -> dict[str, str]:
    return {name: content().decode() for name, content in contents(documents)}


def test_titles_are_part_of_files_where_they_are_imported(tmp_path: Path) -> None:
    rows = [("a", "A title", "x"), ("b", "Only a title", ""), ("c", "", "y"), ("d", "", " ")]
    lines = "".join(json.dumps({"_id": name, "title": title, "text": text}) + "\n" for name, title, text in rows)
    path = write(tmp_path / "a.jsonl", lines)
    plain, titled = read_documents(path), read_documents(path, titled=True)
    assert texts(plain) == {"a.txt": "x", "c.txt": "y"}
    assert texts(titled) == {"a.txt": "A title\nx", "b.txt": "Only a title", "c.txt": "y"}
    assert (plain.without_text, titled.without_text) == (("b", "d"), ("d",))
    assert plain.fingerprint == fingerprint_of((name, text) for name, _, text in rows) != titled.fingerprint
    assert plain.with_title == titled.with_title == 2
