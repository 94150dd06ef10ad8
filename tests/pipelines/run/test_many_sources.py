"""A pipeline has no stage of its own for each run or file of answers."""

from pathlib import Path
from typing import Any

import pytest
from support.inputs import json_texts, trec_qrels, trec_run, write
from support.remote import write_experiment

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run.build import build
from rankbeam.pipelines.run.evaluate import new_run
from rankbeam.pipelines.run.options import pipeline_options


def transforms_of(folder: Path, configurations: list[dict[str, Any]]) -> int:
    base = {"dataset": {"queries": "queries.jsonl", "qrels": "qrels"}, "configurations": configurations}
    experiment = load_experiment(write_experiment(folder, base))
    pipeline = build(experiment, new_run(experiment, None), pipeline_options((), ()))
    return len(pipeline.to_runner_api().components.transforms)


@pytest.mark.parametrize("kind", ["retriever", "answers"])
def test_more_configurations_make_no_more_stages(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "queries.jsonl", json_texts([("q1", "alpha")]))
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0)]))
    types = {"retriever": "run_file", "answers": "replay"}
    configurations = []
    for number in range(6):
        write(tmp_path / f"run{number}", trec_run([("q1", "d1", 1.0)]))
        write(tmp_path / f"answers{number}", '{"query_id": "q1", "answer": "a", "contexts": [{"doc_id": "d1"}]}\n')
        path = f"run{number}" if kind == "retriever" else f"answers{number}"
        configurations.append({"name": f"c{number}", kind: {"type": types[kind], "path": path}})
    assert transforms_of(tmp_path, configurations) == transforms_of(tmp_path, configurations[:2])
