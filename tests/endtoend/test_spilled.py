"""Every path that takes batches gives the same tables where each batch goes through the spill file."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.inputs import run_table, trec_run, write, write_table
from support.runs import run_experiment, without_run

from rankbeam.transforms.clients.storage import spill

HELPDESK = REPOSITORY / "examples" / "helpdesk"
QUERIES = [json.loads(line) for line in (HELPDESK / "queries.jsonl").read_text("utf-8").splitlines()]
DOCUMENTS = [json.loads(line)["_id"] for line in (HELPDESK / "corpus.jsonl").read_text("utf-8").splitlines()]
RUN = [
    (query["_id"], DOCUMENTS[(7 * number + 5 * rank) % len(DOCUMENTS)], float(-rank // 2))
    for number, query in enumerate(QUERIES)
    for rank in range(6)
]
TEXTS = {"queries": str(HELPDESK / "queries.jsonl"), "corpus": str(HELPDESK / "corpus.jsonl")}
JUDGED = {**TEXTS, "qrels": str(HELPDESK / "qrels" / "test.tsv")}
SPANS = {**TEXTS, "evidence": str(HELPDESK / "evidence.jsonl"), "unit": "span"}
MODELS = {
    "services": {"reader": {"type": "extractive"}, "overlap": {"type": "lexical"}},
    "judge": {"service": "overlap"},
}
BM25 = {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 4}


def files(folder: Path) -> list[dict[str, Any]]:
    """A run in two formats, half of whose results are chunks."""
    rows = [(query, f"{doc}#0-40" if doc > "m" else doc, score) for query, doc, score in RUN]
    trec = write(folder / "a.run", trec_run(rows))
    table = write_table(folder / "a.parquet", run_table(rows))
    return [{"name": path[-3:], "retriever": {"type": "run_file", "path": path}} for path in (trec, table)]


def replayed(folder: Path) -> list[dict[str, Any]]:
    lines = [
        {"query_id": query["_id"], "answer": "Open the settings.", "contexts": [{"doc_id": DOCUMENTS[0], "text": "t"}]}
        for query in QUERIES
    ]
    path = write(folder / "answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return [{"name": "prod", "answers": {"type": "replay", "path": path}}]


def experiment(kind: str, folder: Path) -> dict[str, Any]:
    if kind == "documents":
        return {"dataset": JUDGED, "configurations": files(folder), "metrics": ["nDCG@5", "RR"], "slices": ["intent"]}
    if kind == "evidence":
        return {"dataset": SPANS, "configurations": files(folder), "metrics": ["nDCG@3", "SpanRecall@40t"]}
    if kind == "evidence of a retriever":
        return {"dataset": SPANS, "configurations": [BM25], "metrics": ["R@3", "SpanPrecision@3"]}
    if kind == "replayed":
        answered = {"dataset": {**JUDGED, "answers": "answer"}, "configurations": replayed(folder)}
        return {**answered, **MODELS, "metrics": ["nDCG@5", "Faithfulness"]}
    fused = {"name": "both", "retriever": {"type": "fusion", "parts": ["bm25", "run"]}, "top_k": 4}
    configurations = [BM25, {**files(folder)[0], "name": "run"}, fused]
    generated = [
        {**configuration, "generate": {"service": "reader", "contexts": 2}} for configuration in configurations
    ]
    answered = {"dataset": {**JUDGED, "answers": "answer"}, "configurations": generated, **MODELS}
    race = {"race": {"metric": "nDCG@5", "looks": [20, 40]}} if kind == "raced" else {}
    return {**answered, **race, "metrics": ["nDCG@5", "Faithfulness", "ContextRecall"]}


KINDS = (
    "evidence",
    "replayed",
    *in_campaigns("documents", "evidence of a retriever", "generated", "raced"),
)


def tables(output: Path) -> dict[str, list[str]]:
    names = sorted(path.name for path in output.iterdir() if any(path.glob("*/*.parquet")))
    parts = {name: [pq.read_table(path) for path in sorted(output.glob(f"{name}/*/*.parquet"))] for name in names}
    ignored = ("runs", "usage")
    return {
        name: sorted(row for part in some for row in without_run(part))
        for name, some in parts.items()
        if name not in ignored
    }


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_the_same_with_and_without_the_spill_file(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for least in (math.inf, 1):
        monkeypatch.setattr(spill, "_WORTH_A_FILE", least)
        folder = tmp_path / str(least)
        content = experiment(kind, tmp_path)
        run_experiment(folder, {**content, "output": {"path": "out", "rankings": True}})
        written.append(tables(folder / "out"))
    assert written[0] == written[1]
    assert len(written[0]) >= 3
