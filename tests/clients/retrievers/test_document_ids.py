"""Document ids: every id survives the default rule, and a rule that does not fit says so."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rankbeam.transforms.clients.retrievers.document_ids import FILE_EXTENSIONS, DocumentIds
from rankbeam.transforms.records.errors import CallError, FailureKind

AWKWARD = ["MED-10", "v1.2", "a.b.c", "é x", "100%25", "doc.v2", "notes.txt", ".", "..", "?", "#1", " ", "a\nb", "txt"]


def of(rule: DocumentIds, uri: str = "", name: str = "", text: str = "") -> str:
    return rule.of(uri, name, text)


@pytest.mark.parametrize("doc_id", AWKWARD)
def test_awkward_ids_survive(doc_id: str) -> None:
    assert of(DocumentIds(), f"gs://b/{doc_id}.txt") == doc_id


@given(
    st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(sorted(FILE_EXTENSIONS)),
)
def test_every_id_without_a_slash_survives(doc_id: str, extension: str) -> None:
    assert of(DocumentIds(), f"gs://bucket/some/folder/{doc_id}.{extension}") == doc_id
    assert of(DocumentIds(), f"gs://bucket/some/folder/{doc_id}.{extension.upper()}") == doc_id
    assert of(DocumentIds(), "", f"{doc_id}.{extension}") == doc_id


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.sampled_from(sorted(FILE_EXTENSIONS)))
def test_behind_a_prefix_every_id_survives(doc_id: str, extension: str) -> None:
    assert of(DocumentIds(prefix="gs://bucket/kb/"), f"gs://bucket/kb/{doc_id}.{extension}") == doc_id


@pytest.mark.parametrize(
    ("rule", "uri", "name", "expected"),
    [
        ({}, "gs://b/MED-10", "", "MED-10"),
        ({}, "gs://b/v1.2", "", "v1.2"),
        ({}, "gs://b/.txt", "", ".txt"),
        ({}, "gs://b/a.txt", "b.txt", "a"),
        ({}, "", "b.pdf", "b"),
        ({}, "https://drive.google.com/file/d/1x/view", "b.pdf", "b"),
        ({"field": "source_display_name"}, "gs://b/a.txt", "b.pdf", "b"),
        ({"field": "source_uri", "pattern": r"/kb/(.+)\.html$"}, "https://x.org/kb/a/b.html", "", "a/b"),
        ({"pattern": r"(x)(?P<id>\d+)"}, "gs://b/x42", "", "42"),
        ({"pattern": r"\d+"}, "gs://b/x42.txt", "", "42"),
        ({"prefix": "gs://b/1/", "pattern": r"\d+"}, "gs://b/1/x42.txt", "", "42"),
    ],
)
def test_rules(rule: dict[str, str], uri: str, name: str, expected: str) -> None:
    assert of(DocumentIds(**rule), uri, name) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "uri", "named"),
    [
        ({"pattern": r"\d+\.txt"}, "gs://b/MED-X.txt", [r"\\d+\\.txt", "gs://b/MED-X.txt"]),
        ({"pattern": r"(?P<id>\d*)-(x)"}, "gs://b/-x", ["gs://b/-x"]),
        ({"pattern": "(a)|b"}, "gs://b/", ["gs://b/"]),
        ({"prefix": "gs://other/"}, "gs://b/a.txt", ["gs://other/", "gs://b/a.txt"]),
        ({"prefix": "gs://b/a"}, "gs://b/a", ["gs://b/a"]),
        ({}, "gs://b/folder/", ["gs://b/folder/"]),
        ({"field": "source_display_name"}, "gs://b/a.txt", ["''"]),
    ],
)
def test_a_rule_that_does_not_fit_says_so(rule: dict[str, str], uri: str, named: list[str]) -> None:
    with pytest.raises(CallError) as error:
        of(DocumentIds(**rule), uri)  # type: ignore[arg-type]
    assert error.value.kind is FailureKind.INVALID
    assert "doc_id" in error.value.message
    assert [text for text in named if text not in error.value.message] == []


def test_a_chunk_is_named_by_its_uri_and_text() -> None:
    rule = DocumentIds(field="chunk")
    assert of(rule, "gs://b/a.txt", "a", "text") == hashlib.sha256(b"gs://b/a.txt\ntext").hexdigest()[:32]
    assert of(rule, "", "a", "text") == hashlib.sha256(b"a\ntext").hexdigest()[:32]
    assert len({of(rule, uri, "", text) for uri in ("a", "b") for text in ("c", "d")}) == 4


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"pattern": "("}, "is not a regular expression: missing ), unterminated subpattern at position 0"),
        ({"pattern": "a{99999999999999999999}"}, "is not a regular expression"),
        ({"pattern": ""}, "at least 1 character"),
        ({"field": "url"}, "'auto', 'source_uri', 'source_display_name' or 'chunk'"),
        ({"field": "chunk", "prefix": "gs://"}, "the id is a hash"),
        ({"patern": "a"}, "patern"),
    ],
)
def test_what_is_no_rule_is_refused(rule: dict[str, str], problem: str) -> None:
    with pytest.raises(ValidationError) as error:
        DocumentIds(**rule)  # type: ignore[arg-type]
    assert problem in str(error.value)
