"""Documents that services hold: read over the real protocols from stand-ins, through the command line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import rag_corpora
from support.cli import rankbeam
from support.emulators.services import write_credentials
from support.goldens import documents, goldens_file, lines
from support.standins import Faults, Standin, serve

from rankbeam.transforms.clients.corpora.rag_engine.objects import Objects

CORPUS = f"{rag_corpora.LOCATION}/ragCorpora/42"
STORE = "projects/p/locations/global/collections/default_collection/dataStores/kb"
PASSING = Faults(first=1, kinds=("unavailable",))
SMALL: Mapping[str, Any] = {"items": 3, "types": ["lookup"], "reviews": {"pool": 0}}


@pytest.fixture
def rows() -> list[dict[str, str]]:
    return documents(12)


def contents(out: Path) -> dict[str, tuple[str, str]]:
    return {row["_id"]: (row["title"], row["text"]) for row in lines(out / "corpus.jsonl")}


def test_files_of_a_rag_corpus_are_read_where_they_were_imported_from(
    rows: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uris = [f"gs://{rag_corpora.BUCKET}/kb/{row['_id']}.md" for row in rows]
    others = [f"gs://{rag_corpora.BUCKET}/kb/scan.pdf"]
    with rag_corpora.rag_engine(tmp_path, monkeypatch, faults=PASSING, existing={CORPUS: [*uris, *others]}) as server:
        bucket = Objects(f"gs://{rag_corpora.BUCKET}")
        for uri, row in zip(uris, rows, strict=True):
            bucket.put(uri, f"# {row['title']}\n\n{row['text']}".encode())
        source = {"rag_engine": {"corpus": CORPUS, "api_endpoint": server.url}}
        outcome = rankbeam("goldens", goldens_file(tmp_path, documents=source, **SMALL))
        assert outcome.status == 0, outcome.stderr
        assert "1 of 13 documents of projects/p" in outcome.stderr
        assert "such as gs://bucket/kb/scan.pdf: convert them" in outcome.stderr
        assert contents(tmp_path / "out") == {
            row["_id"]: (row["title"], f"# {row['title']}\n\n{row['text']}") for row in rows
        }
        wrong = {"rag_engine": {"corpus": f"{CORPUS}0", "api_endpoint": server.url}}
        refused = rankbeam("goldens", "plan", goldens_file(tmp_path, documents=wrong))
        assert refused.status == 2
        assert f"{CORPUS}0: cannot be read: not_found" in refused.stderr


@pytest.fixture
def stored(
    rows: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Standin, Sequence[Mapping[str, str]]]]:
    """A data store: documents with fields, of which one has another text in Cloud Storage, one none, one is text."""
    chunks: dict[str, list[dict[str, str]]] = {
        row["_id"]: [{"title": row["title"], "text": part} for part in row["text"].partition(". ")[::2]] for row in rows
    }
    chunks["filed"] = [{"text": rows[0]["text"], "uri": "gs://bucket/filed.txt"}]
    chunks["plain"] = [{"text": rows[1]["text"]}]
    chunks["scan"] = []
    with serve("search_documents", answers=chunks, buckets=["bucket"], faults=PASSING) as server:
        storage = f"http://127.0.0.1:{server.stats().extra['storage_port']}"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_credentials(tmp_path, f"{storage}/token")))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        Objects("gs://bucket").put("gs://bucket/filed.txt", rows[2]["text"].encode())
        yield server, rows


@pytest.mark.long
def test_documents_of_a_data_store_are_fields_texts_and_files(
    stored: tuple[Standin, Sequence[Mapping[str, str]]], tmp_path: Path
) -> None:
    server, rows = stored
    source = {"vertex_search": {"data_store": STORE, "api_endpoint": server.url}, "attributes": ["product"]}
    outcome = rankbeam("goldens", goldens_file(tmp_path, documents=source, **SMALL))
    assert outcome.status == 0, outcome.stderr
    assert f"1 of 15 documents of {STORE}/branches/default_branch have no text" in outcome.stderr
    assert "such as scan: take its chunks: unit: chunk\n" in outcome.stderr
    of_fields = {row["_id"]: (row["title"], row["text"].partition(". ")[0]) for row in rows}
    assert contents(tmp_path / "out") == {
        **of_fields,
        "filed": ("filed", rows[2]["text"]),
        "plain": ("", rows[1]["text"]),
    }
    (first, *_) = lines(tmp_path / "out" / "corpus.jsonl")
    assert first["metadata"] == {"product": "desk"}


def test_chunks_of_a_data_store_are_the_spans(
    stored: tuple[Standin, Sequence[Mapping[str, str]]], tmp_path: Path
) -> None:
    server, rows = stored
    source = {"vertex_search": {"data_store": STORE, "unit": "chunk", "api_endpoint": server.url}}
    outcome = rankbeam("goldens", goldens_file(tmp_path, documents=source, **SMALL))
    assert outcome.status == 0, outcome.stderr
    texts = {name: text for name, (_, text) in contents(tmp_path / "out").items()}
    spans: dict[str, list[str]] = {}
    for chunk in lines(tmp_path / "out" / "chunks.jsonl"):
        spans.setdefault(chunk["doc_id"], []).append(texts[chunk["doc_id"]][chunk["start"] : chunk["end"]])
    assert {row["_id"]: spans[row["_id"]] for row in rows} == {
        row["_id"]: list(row["text"].partition(". ")[::2]) for row in rows
    }
    assert json.loads((tmp_path / "out" / "coverage.json").read_text())["documents"]["all"] == 14


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"rag_engine": "ragCorpora/42"}, "documents.rag_engine.corpus: "),
        ({"rag_engine": {"corpus": CORPUS, "doc_id": {"field": "chunk"}}}, "questions are made from whole documents"),
        ({"vertex_search": "kb"}, "documents.vertex_search.data_store: "),
        (
            {"vertex_search": STORE, "path": "a.jsonl"},
            "folder, chunks, rag_engine or vertex_search; give one of them",
        ),
    ],
)
def test_wrong_names_are_refused(source: Mapping[str, Any], problem: str, tmp_path: Path) -> None:
    outcome = rankbeam("goldens", "plan", goldens_file(tmp_path, documents=source))
    assert outcome.status == 2
    assert problem in outcome.stderr
