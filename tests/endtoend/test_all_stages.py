"""Every stage in one experiment: rewrites, a model in this process, fusion, reranking, answers and their judge."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.onnx_models import write_model
from support.runs import query_values
from support.stage_world import dataset, evaluated, experiment, questions, results

from rankbeam.pipelines.results.usage import stage_gains

pytest.importorskip("onnxruntime")
GENERATE = {"service": "writer", "contexts": 2}
TWO_WORKERS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
SWEPT = [
    f"rewrite={rewrite},rerank={rerank}" for rewrite in ("off", "hyde", "multi", "alone") for rerank in ("off", "demo")
]
NAMES = {f"{name}:{swept}" for name in ("words", "vectors") for swept in SWEPT} | {
    "both:rerank=off",
    "both:rerank=demo",
}


def whole(folder: Path) -> str:
    """The experiment; every second query has a history."""
    folder.mkdir(exist_ok=True)
    write_model(folder / "small")
    history = [{"role": "user", "text": "I pay for the paper."}, {"role": "assistant", "text": "How can I help?"}]
    rows = [
        {"_id": name, "text": text, "metadata": {"answer": "The owner."}} | ({"history": history} if place % 2 else {})
        for place, (name, text) in enumerate(questions().items())
    ]
    configurations: list[dict[str, Any]] = [
        {"name": "words", "retriever": {"type": "bm25"}},
        {"name": "vectors", "retriever": {"type": "dense", "embedding_model": "small"}},
        {
            "name": "both",
            "retriever": {
                "type": "fusion",
                "parts": ["words:rewrite=off,rerank=off", "vectors:rewrite=hyde,rerank=off"],
            },
        },
    ]
    writer = {"service": "writer"}
    path = experiment(
        folder,
        dataset={**dataset(folder), "answers": "answer"},
        services={
            "small": {"type": "onnx", "folder": "small"},
            "writer": {"type": "extractive"},
            "demo": {"type": "lexical"},
        },
        configurations=[{**one, "top_k": 5, "generate": GENERATE} for one in configurations],
        grid={
            "rewrite": {
                "off": None,
                "hyde": {**writer, "kind": "hyde"},
                "multi": {**writer, "kind": "multi_query", "n": 2},
                "alone": {**writer, "kind": "standalone"},
            },
            "rerank": {"off": None, "demo": {"service": "demo", "depth": 8}},
        },
        judge={"service": "demo"},
        metrics=["nDCG@5", "Faithfulness"],
    )
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def calls(path: str, run_id: str) -> int:
    return sum(row["calls"] for row in results(path, run_id).table("usage").to_pylist())


@pytest.mark.campaign
def test_all_stages_work_together_and_a_second_run_calls_nothing(tmp_path: Path) -> None:
    path = whole(tmp_path)
    validated = rankbeam("validate", path)
    assert "18 configurations" in validated.stdout, validated.stderr
    planned = rankbeam("plan", path)
    assert planned.status == 0, planned.stderr
    assert all(step in planned.stdout for step in ("rewrite_hyde", "rewrite_standalone: 4 calls", "rerank", "answer"))
    evaluated(path)
    run = results(path)
    values = query_values(run)
    assert set(values) == NAMES
    assert run.table("failures").num_rows == 0
    assert {(gain.stage) for gain in stage_gains(run, "nDCG@5")} == {"rewrite", "rerank", "retriever"}
    assert calls(path, "r1") > 0
    evaluated(path, "r2")
    assert calls(path, "r2") == 0
    assert query_values(results(path, "r2")) == values
    elsewhere = str(tmp_path / "elsewhere")
    outcome = rankbeam("evaluate", path, "--run-id", "r1", "--output", elsewhere, *TWO_WORKERS)
    assert outcome.status == 0, outcome.stderr
    assert query_values(type(run)(elsewhere, "r1")) == values
    for command in (["compare", str(tmp_path / "out")], ["worst", str(tmp_path / "out")]):
        shown = rankbeam(*command)
        assert shown.status == 0, shown.stderr
        assert "rerank=" in shown.stdout
