"""A folder of documents in a bucket: the same corpus as from a folder of this machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.document_files import docx, paragraph
from support.emulators import Cloud

from rankbeam.transforms.clients.formats.documents.files import FolderSource, extract
from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.clients.storage import files

pytest_plugins = ["support.emulators.fixtures"]

CONTENTS: Mapping[str, bytes] = {
    "guides/start.md": b"# Start\n\ntext",
    "guides/cats.html": b"<title>Cats</title><p>They purr.",
    "word.docx": docx(paragraph("Dogs bark.")),
    "scan.png": b"\x89PNG",
    ".hidden/a.md": b"x",
}


def test_a_folder_in_a_bucket_is_read_as_one_of_this_machine(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    remote = f"gs://{cloud.gcs.bucket()}/handbook"
    for name, content in CONTENTS.items():
        files.write(files.join(remote, name), content)
        (tmp_path / "handbook" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "handbook" / name).write_bytes(content)
    here, there = extract(FolderSource(str(tmp_path / "handbook"))), extract(FolderSource(remote))

    assert Path(there.corpus).read_bytes() == Path(here.corpus).read_bytes()
    assert there.documents == 3
    assert (there.note or "").startswith("1 of 4 files are not read: 1 suffix .png is not read (scan.png)")
    assert extract(FolderSource(remote, "guides/*.md")).documents == 1
    files.write(files.join(remote, "word.docx"), docx(paragraph("Dogs bark loudly.")))
    assert extract(FolderSource(remote)).corpus != there.corpus
