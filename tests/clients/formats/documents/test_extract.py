"""Folders of documents: documents, files that are not read, and changes of a folder."""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support import processes
from support.document_files import pdf

from rankbeam.transforms.clients.formats.documents import files as of_documents
from rankbeam.transforms.clients.formats.documents.files import (
    ExtractedFolder,
    FolderSource,
    extract,
    list_files,
    refuse_output,
)
from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.clients.storage.matching import has_tables
from rankbeam.transforms.records.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    place = tmp_path / "docs"
    for name, content in {
        "b/two.md": b"# Two\n\ntext",
        "a.txt": b"plain",
        "empty.txt": b" \n",
        "latin.txt": b"caf\xe9",
        "image.png": b"\x89PNG",
        "no-suffix": b"x",
        ".hidden/x.md": b"x",
        "page.HTML": b"<h1>Page</h1>",
        " blank.md": b"x",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return place


def rows(extracted: ExtractedFolder) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(extracted.corpus).read_text(encoding="utf-8").splitlines()]


def test_documents_have_their_relative_path_as_id_and_others_are_named(folder: Path) -> None:
    extracted = extract(FolderSource(str(folder)))

    assert rows(extracted) == [
        {"_id": "a.txt", "title": "a", "text": "plain"},
        {"_id": "b/two.md", "title": "Two", "text": "# Two\n\ntext"},
        {"_id": "page.HTML", "title": "Page", "text": "# Page"},
    ]
    note = extracted.note or ""
    assert extracted.documents == 3
    assert note.startswith("5 of 8 files are not read: ")
    for part in (
        "1 no text (empty.txt)",
        "1 not UTF-8 (latin.txt)",
        "1 suffix .png is not read (image.png)",
        "1 suffix (none) is not read (no-suffix)",
    ):
        assert part in note
    assert " blank.md" in Path(extracted.corpus).with_name("unread.jsonl").read_text(encoding="utf-8")


def test_names_of_files_that_are_not_utf_8_are_shown_with_escapes(folder: Path) -> None:
    for name in (b"caf\xe9.txt", b"caf\xe9.png"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(b"drinks")

    extracted = extract(FolderSource(str(folder)))

    assert {"_id": "caf\\xe9.txt", "title": "caf\\xe9", "text": "drinks"} in rows(extracted)
    unread = Path(extracted.corpus).with_name("unread.jsonl").read_text(encoding="utf-8").splitlines()
    assert {"path": "caf\\xe9.png", "reason": "suffix .png is not read"} in map(json.loads, unread)


def test_links_that_lead_to_no_file_are_named_and_many_reasons_are_counted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "gone.md").symlink_to(tmp_path / "nothing")
    (folder / "same.txt").symlink_to(folder / "a.txt")
    for number in range(30):
        (folder / f"log.{number:03}").write_bytes(b"x")
    extracted = extract(FolderSource(str(folder)))
    assert [row["_id"] for row in rows(extracted)] == ["a.txt", "b/two.md", "page.HTML", "same.txt"]
    note = extracted.note or ""
    assert "2 link to a folder or to nothing (gone.md, linked); " in note
    assert note.partition(" (")[0].startswith("37 of 41 files are not read: ")
    assert note.endswith("26 for 26 other reasons; " + note.rpartition("; ")[2])


def test_a_file_that_may_not_be_read_is_named_until_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        place, docs = Path(name), Path(name, "docs")
        monkeypatch.setenv(FOLDER, str(place / "kept"))
        docs.mkdir()
        (docs / "open.txt").write_text("text")
        (docs / "secret.txt").write_text("text")
        place.chmod(0o777)
        for mode, ids in ((0, ["open.txt"]), (0o644, ["open.txt", "secret.txt"])):
            (docs / "secret.txt").chmod(mode)
            note, read_ids = processes.as_nobody(lambda: notes_and_ids(str(docs)))
            assert read_ids == ids
            assert ("1 no permission to read it (secret.txt)" in (note or "")) == (mode == 0)


def notes_and_ids(docs: str) -> tuple[str | None, list[str]]:
    extracted = extract(FolderSource(docs))
    return extracted.note, [row["_id"] for row in rows(extracted)]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has a file that fails when it is read")
def test_a_file_that_fails_while_it_is_read_is_refused_with_its_path(folder: Path) -> None:
    (folder / "memory.txt").symlink_to("/proc/self/mem")
    with pytest.raises(InputError, match=r"memory\.txt: cannot be "):
        extract(FolderSource(str(folder)))


def test_a_folder_that_cannot_be_listed_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list any folder, so the system call fails instead."""
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"cannot be looked up: .*Permission denied"):
        list_files(FolderSource(str(folder)))


def test_a_pattern_chooses_the_documents(folder: Path) -> None:
    assert [file.name for file in list_files(FolderSource(str(folder), "**/*.md"))] == [" blank.md", "b/two.md"]
    assert [file.name for file in list_files(FolderSource(str(folder), "*.md"))] == [" blank.md"]
    assert [file.name for file in list_files(FolderSource(str(folder), "b/**"))] == ["b/two.md"]
    with pytest.raises(InputError, match=r"no file in the folder matches '\*\.rst'"):
        list_files(FolderSource(str(folder), "*.rst"))


@pytest.mark.parametrize(
    ("output", "glob", "is_refused"),
    [
        ("docs/out", "**/*", True),
        ("docs", "*", True),
        ("linked/out", "**/*", True),
        ("docs/.out", "**/*", False),
        ("docs/out", "**/*.md", False),
        ("docs-out", "**/*", False),
        ("gs://bucket/docs/out", "**/*", False),
    ],
)
def test_an_output_among_the_documents_is_refused(folder: Path, output: str, glob: str, is_refused: bool) -> None:
    (folder.parent / "linked").symlink_to(folder)
    place = output if "://" in output else str(folder.parent / output)
    expected = pytest.raises(InputError, match="contains the output") if is_refused else contextlib.nullcontext()
    with expected:
        refuse_output(FolderSource(str(folder), glob), place)


def test_an_output_in_a_bucket_among_the_documents_is_refused() -> None:
    for folder in ("gs://bucket/docs", "gs://bucket/docs/", "gs://bucket"):
        with pytest.raises(InputError, match="contains the output gs://bucket/docs/out"):
            refuse_output(FolderSource(folder), "gs://bucket/docs/out")
    refuse_output(FolderSource("gs://bucket/doc"), "gs://bucket/docs/out")


def test_a_folder_is_extracted_once_for_each_state(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = FolderSource(str(folder), "**/*.md")
    first = extract(source)
    assert "fetching the text of 2 files" in capsys.readouterr().err
    assert extract(source) == first
    assert not capsys.readouterr().err

    (folder / "b" / "two.md").write_text("changed")
    second = extract(source)
    assert rows(second)[0]["text"] == "changed"
    assert Path(first.corpus).exists()  # a run may still read it

    os.utime(Path(first.corpus).parent, (0, 0))
    (folder / "b" / "three.md").write_text("new")
    assert len(rows(extract(source))) == 2
    assert not Path(first.corpus).exists()
    assert Path(second.corpus).exists()


def test_a_text_that_is_longer_than_a_line_of_the_corpus_may_be_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_documents.files, "LONGEST_LINE", 100)
    (folder / "long.txt").write_text("word " * 20, encoding="utf-8")
    extracted = extract(FolderSource(str(folder)))
    assert "1 too large (long.txt)" in (extracted.note or "")
    assert [row["_id"] for row in rows(extracted)] == ["a.txt", "b/two.md", "page.HTML"]


def test_a_folder_without_a_readable_file_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"none of its 1 files can be read, such as image.png; .txt, .md"):
        extract(FolderSource(str(folder), "*.png"))
    with pytest.raises(InputError, match=r"1 of 1 file is not read: 1 not UTF-8 \(latin.txt\)"):
        extract(FolderSource(str(folder), "latin.txt"))


def test_pages_without_text_are_counted_where_others_have_text(folder: Path) -> None:
    pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
    (folder / "whole.pdf").write_bytes(pdf(["Cats purr."]))
    one = extract(FolderSource(str(folder), "whole.pdf"))
    (folder / "half.pdf").write_bytes(pdf(["Cats purr.", "", "Dogs bark.", ""]))
    (folder / "most.pdf").write_bytes(pdf(["", "Birds sing.", ""]))
    (folder / "scan.pdf").write_bytes(pdf(["", ""]))

    extracted = extract(FolderSource(str(folder), "*.pdf"))

    note = extracted.note or ""
    assert (one.note, extracted.documents) == (None, 3)
    assert "1 of 4 files are not read: 1 PDF without text (scanned pages need OCR) (scan.pdf); " in note
    pages = "4 pages of PDF files have no text (scanned pages need OCR): 2 of 4 in half.pdf, 2 of 3 in most.pdf; "
    listed_in = Path(extracted.corpus).with_name("partly.jsonl")
    assert note.endswith(f"; {pages}{listed_in} lists them")
    lines = map(json.loads, listed_in.read_text(encoding="utf-8").splitlines())
    assert [row["path"] for row in lines] == ["half.pdf", "most.pdf"]
    assert extract(FolderSource(str(folder), "*.pdf")).note == note  # the text is not extracted again


def test_pdf_files_without_their_reader_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_documents, "missing_extra", lambda _module, extra, _what: f"pip install 'rankbeam[{extra}]'")
    (folder / "c.pdf").write_bytes(pdf(["Cats"]))
    with pytest.raises(InputError, match=r"pip install 'rankbeam\[documents\]'"):
        extract(FolderSource(str(folder)))


def test_links_to_folders_are_not_followed_for_parquet_files_either(tmp_path: Path) -> None:
    for name in ("a", "b"):  # glob would follow them forty times, in each order
        (tmp_path / name).symlink_to(tmp_path)
    assert not has_tables(str(tmp_path))
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "_hidden" / "part.parquet").touch()
    assert not has_tables(str(tmp_path))
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "part.parquet").touch()
    assert has_tables(str(tmp_path))
