"""An experiment file that is right, and how a test changes it."""

from pathlib import Path

import pytest
from support.inputs import beir_qrels, json_texts, trec_run, write

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import load_experiment

GOOD = """\
name: helpdesk
dataset:
  qrels: data/qrels.tsv
  queries: data/queries.jsonl
  corpus: data/corpus.jsonl
configurations:
  - name: bm25
    retriever: {type: bm25, b: 0.4}
  - name: old
    retriever: {type: run_file, path: data/old.run}
metrics: [nDCG@10, map, P.5]
slices: [language]
output: {path: out}
"""

BM25 = """\
  - name: bm25
    retriever: {type: bm25, b: 0.4}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that GOOD names."""
    write(tmp_path / "data" / "qrels.tsv", beir_qrels([("q1", "d1", 1.0)]))
    write(tmp_path / "data" / "queries.jsonl", '{"_id": "q1", "text": "a", "metadata": {"language": "de"}}\n')
    write(tmp_path / "data" / "corpus.jsonl", json_texts([("d1", "a document")]))
    write(tmp_path / "data" / "old.run", trec_run([("q1", "d1", 1.0)]))
    return tmp_path


def load(folder: Path, text: str) -> Experiment:
    return load_experiment(write(folder / "e.yaml", text))


def changed(old: str, new: str) -> str:
    """GOOD with one change."""
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)
