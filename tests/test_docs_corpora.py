"""The guide to corpora: its examples run on the demo's articles, and show the numbers that it shows."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.local_folders import FOLDER
from rankbeam.transforms.kernels.chunks import CHUNKERS

GUIDE = (REPOSITORY / "docs" / "corpora.md").read_text(encoding="utf-8")
HELPDESK = REPOSITORY / "examples" / "helpdesk"


def block(label: str) -> str:
    match = re.search(rf"^```\w+ {re.escape(label)}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert match is not None, label
    return match[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents, as the guide begins with, beside queries and judgements."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    for line in (HELPDESK / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        text = f"# {article['title']}\n\n{article['text']}\n"
        (tmp_path / "documents" / f"{article['_id']}.md").write_text(text, encoding="utf-8")
    shutil.copy(HELPDESK / "queries.jsonl", tmp_path)
    (tmp_path / "documents" / "logo.png").write_bytes(b"\x89PNG")
    (tmp_path / "qrels").mkdir()
    header, *rows = (HELPDESK / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    judged = ["\t".join((query, f"{doc}.md", *rest)) for query, doc, *rest in (row.split("\t") for row in rows)]
    (tmp_path / "qrels" / "test.tsv").write_text("\n".join([header, *judged]) + "\n", encoding="utf-8")
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    for name in ("chunking.yaml", "dense.yaml"):
        (tmp_path / name).write_text(block(f"file={name}"), encoding="utf-8")
    return tmp_path


def test_a_folder_of_documents_becomes_a_comparison_of_chunkings(folder: Path) -> None:
    run = rankbeam("evaluate", str(folder / "chunking.yaml"))
    assert run.status == 0, run.stderr
    assert "documents: 1 of 213 files are not read: 1 suffix .png is not read (logo.png)" in run.stderr
    compared = rankbeam("compare", str(folder / "out")).stdout

    for line in block("compared").splitlines()[1:]:
        metric, configuration, difference, interval = re.split(r"\s{2,}", line)
        (row,) = (row for row in compared.splitlines() if row.startswith(f"{metric}   {configuration} "))
        assert difference in row
        assert interval in row


@pytest.mark.campaign
def test_models_are_swept_beside_dimensions(folder: Path) -> None:
    planned = rankbeam("plan", str(folder / "dense.yaml"))
    assert (
        "corpus local: chunks of paragraphs, lines or sentences, at most 64 tokens, 8 of them shared" in planned.stdout
    )
    run = rankbeam("evaluate", str(folder / "dense.yaml"))
    assert run.status == 0, run.stderr
    for name in ("dense:embedding_model=hashed-64", "dense:embedding_model=hashed-512", "lsa:dimension=100"):
        assert name in run.stdout


def test_the_corpus_of_files_as_they_are_is_valid() -> None:
    own = yaml.safe_load(block("files"))["corpora"]["kb"]
    del own["type"]
    other = {"location": "projects/p/locations/us", "staging": "gs://my-bucket/r", "embedding_model": "m"}
    corpus = RagEngineCorpus(**own, **other)
    assert (corpus.root, corpus.needs) == ("gs://my-bucket/handbook", ())
    assert corpus.import_config()["rag_file_parsing_config"] == {
        "layout_parser": {"processor_name": own["layout_parser"]}
    }


def test_every_chunker_is_explained() -> None:
    assert all(f"`{by}`" in GUIDE for by in CHUNKERS)
