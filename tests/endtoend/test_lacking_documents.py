"""Judged relevant documents that the corpus lacks: they limit recall, and are counted where documents are read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import rag_corpora as rag
from support.cli import rankbeam
from support.runs import evaluated

THERE, LACKING = [f"d{number}" for number in range(5)], [f"lost{number}" for number in range(4)]
WARNING = (
    "4 of 6 documents that are judged relevant are not in the corpus, such as 'lost0', 'lost1', 'lost2': no retriever "
    "finds them, which limits recall"
)


def write(folder: Path, retrievers: dict[str, dict[str, Any]], lacking: list[str]) -> str:
    """Two queries judge two documents of the corpus and some that it lacks; a third one is judged and not asked."""
    words = ["amber", "basil", "cedar", "delta", "ember"]
    rows = [{"_id": doc_id, "text": f"{word} stone"} for doc_id, word in zip(THERE, words, strict=True)]
    queries = [{"_id": "q0", "text": "amber stone"}, {"_id": "q1", "text": "basil"}]
    judged = [("q0", "d0", 1), ("q1", "d1", 1), ("q1", "never relevant", 0), ("not asked", "elsewhere", 1)]
    judged += [(f"q{place % 2}", doc_id, 1) for place, doc_id in enumerate([*lacking, *lacking])]
    for name, values in (("corpus", rows), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(value)}\n" for value in values))
    lines = (f"{query}\t{doc_id}\t{grade}\n" for query, doc_id, grade in dict.fromkeys(judged))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    content = {
        "name": "lacking",
        "dataset": {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "qrels": "qrels.tsv"},
        "services": {"hashed": {"type": "hashed", "dimensions": 16}},
        "corpora": {"local": {"type": "chunks", "chunk_size": 1, "chunk_overlap": 0}},
        "configurations": [{"name": name, "retriever": retriever} for name, retriever in retrievers.items()],
        "metrics": ["R@10"],
        "output": {"path": "out"},
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(content))
    return str(path)


RETRIEVERS = {
    "whole": {"type": "bm25"},
    "cut": {"type": "bm25", "corpus": "local"},
    "lsa": {"type": "lsa", "dimension": 2},
    "dense": {"type": "dense", "embedding_model": "hashed"},
}


@pytest.mark.long
@pytest.mark.parametrize("names", [list(RETRIEVERS), ["dense"]])
def test_they_are_counted_once_for_all_retrievers(tmp_path: Path, names: list[str]) -> None:
    path = write(tmp_path, {name: RETRIEVERS[name] for name in names}, LACKING)
    (warning,) = (text for text in evaluated(path).run["warnings"] if "judged relevant" in text)
    assert WARNING in warning


def test_a_corpus_that_has_them_all_is_no_warning(tmp_path: Path) -> None:
    results = evaluated(write(tmp_path, {"whole": RETRIEVERS["whole"]}, []))
    assert "judged relevant" not in "".join(results.run["warnings"])


@pytest.mark.campaign
def test_they_are_counted_when_a_service_builds_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rag.rag_engine(tmp_path, monkeypatch) as server:
        files = rag.dataset(tmp_path, 5)
        with Path(files["qrels"]).open("a") as qrels:
            qrels.write("q0\tgone\t1\n")
        done = rankbeam("evaluate", rag.experiment(tmp_path, server, files))
    assert done.status == 0, done.stderr
    assert "1 of 4 documents that are judged relevant are not in the corpus, such as 'gone'" in done.stderr
