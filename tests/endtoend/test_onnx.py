"""Dense retrieval by a model in this process, through the command line: no service, no ledger, no network."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.data import REPOSITORY
from support.goldens import goldens_file, lines
from support.onnx_models import MINILM, TABLE, ids, real, write_model

from rankbeam.pipelines.dataflow.uploads import refuse_local
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.models.onnx_session import OnnxSession
from rankbeam.transforms.clients.retrievers import dense
from rankbeam.transforms.records.errors import InputError

DOCUMENTS = {"d1": "red apple", "d2": "blue sky", "d3": "green apple", "d4": "", "d5": "word word red word blue word"}
QUERIES = {"q1": "apple", "q2": "sky blue", "q3": "green"}
TWO_WORKERS = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


def write_experiment(folder: Path, service: dict[str, Any], **more: Any) -> str:
    for name, texts in (("queries", QUERIES), ("corpus", DOCUMENTS)):
        rows = ({"_id": key, "text": text, "metadata": {"answer": "red apple"}} for key, text in texts.items())
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\nq3\td3\t1\n")
    experiment = {
        "name": "local",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels.tsv", "corpus": "corpus.jsonl"},
        "services": {"small": {"type": "onnx", **service}},
        "configurations": [{"name": "dense", "retriever": {"type": "dense", "embedding_model": "small"}, "top_k": 10}],
        "metrics": ["nDCG@5"],
        "output": {"path": "out"},
    } | more
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment, sort_keys=False))
    return str(path)


def run_of(folder: Path, run_id: str = "r1") -> Results:
    return Results(str(folder / "out"), run_id)


def results(folder: Path, run_id: str) -> tuple[str, dict[str, list[tuple[str, float]]]]:
    """The config_id and the rankings of the only configuration."""
    run = run_of(folder, run_id)
    (row,) = run.table("configurations").to_pylist()
    rankings = {one["query_id"]: one["documents"] for one in run.table("rankings").to_pylist()}
    return row["config_id"], {
        query: [(one["doc_id"], one["score"]) for one in documents] for query, documents in rankings.items()
    }


def mean_of(text: str, limit: int = 512) -> np.ndarray:
    tokens = ids(text) if len(ids(text)) <= limit else [*ids(text)[: limit - 1], 2]
    vector = TABLE[tokens].astype(np.float64).mean(axis=0)
    return np.asarray(vector / np.linalg.norm(vector))


def check(rankings: dict[str, list[tuple[str, float]]], prefix: str = "", limit: int = 512) -> None:
    """Compare rankings with cosines in plain NumPy; a document without text has no vector, and is not ranked."""
    rows = {name: mean_of(text, limit) for name, text in DOCUMENTS.items() if text}
    for query, text in QUERIES.items():
        expected = {name: float(row @ mean_of(prefix + text, limit)) for name, row in rows.items()}
        assert dict(rankings[query]) == pytest.approx(expected, abs=1e-6)
        assert [name for name, _ in rankings[query]] == sorted(expected, key=lambda name: -expected[name])


@pytest.mark.long
@pytest.mark.parametrize("options", [(), *in_campaigns((TWO_WORKERS,))], ids=["here", "two workers"])
def test_rankings_are_those_of_plain_cosines_and_vectors_are_kept(tmp_path: Path, options: tuple[str, ...]) -> None:
    folder = write_model(tmp_path / "models" / "small")
    path = write_experiment(tmp_path, {"folder": "models/small", "query_prefix": "red "})
    valid, planned = rankbeam("validate", path), rankbeam("plan", path)
    assert (valid.status, planned.status) == (0, 0), valid.stderr
    assert "no remote calls" in planned.stdout
    first = rankbeam("evaluate", path, "--run-id", "r1")
    assert first.status == 0, first.stderr
    assert "1 of 5 documents have no embedding, and are not ranked" in first.stderr
    assert "embedded 7 texts · asked 3/3 queries" in first.stderr
    config_id, rankings = results(tmp_path, "r1")
    check(rankings, "red ")
    assert not (tmp_path / "out" / "ledger").exists()
    versions = json.loads(run_of(tmp_path).table("runs").to_pylist()[0]["versions"])
    assert {"onnxruntime", "tokenizers"} <= versions.keys()
    (vectors,) = (tmp_path / "out" / "indexes").rglob("vectors.npy")
    before = vectors.stat().st_mtime_ns
    shutil.move(folder, tmp_path / "elsewhere")
    path = write_experiment(tmp_path, {"folder": "elsewhere", "query_prefix": "red "})
    second = rankbeam("evaluate", path, "--run-id", "r2", *options)
    assert second.status == 0, second.stderr
    assert results(tmp_path, "r2") == (config_id, rankings)
    assert vectors.stat().st_mtime_ns == before  # another place of the same model


@pytest.mark.long
def test_a_stopped_run_continues_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "small")
    path = write_experiment(tmp_path, {"folder": "small", "max_tokens": 4})
    monkeypatch.setattr(dense, "_UNITS_AT_ONCE", 2)
    plainly, texts = OnnxSession.embed_all, list[str]()

    def embed_all(session: OnnxSession, some: Sequence[str]) -> Any:
        texts.extend(some)
        if stopping and len(texts) > 3:
            raise InputError("stopped")
        return plainly(session, some)

    stopping = True
    monkeypatch.setattr(OnnxSession, "embed_all", embed_all)
    assert "stopped" in rankbeam("evaluate", path, "--run-id", "r1").stderr
    assert list((tmp_path / "out" / "indexes").rglob("part-*/vectors.npy"))
    texts.clear()
    stopping = False
    run = rankbeam("evaluate", path, "--run-id", "r2")
    assert run.status == 0, run.stderr
    assert "small: 1 of 5 documents or chunks has more than 4 tokens" in run.stderr
    check(results(tmp_path, "r2")[1], limit=4)
    assert sorted(texts) == sorted([*QUERIES.values(), DOCUMENTS["d1"]])  # documents come by descending id
    assert not list((tmp_path / "out" / "indexes").rglob("part-*/vectors.npy"))


@pytest.mark.campaign
def test_texts_that_a_model_sees_in_part_are_counted_in_every_run(tmp_path: Path) -> None:
    write_model(tmp_path / "small")
    path = write_experiment(tmp_path, {"folder": "small", "max_tokens": 4})
    for run_id in ("r1", "r2"):
        run = rankbeam("evaluate", path, "--run-id", run_id)
        lacking = "has more than 4 tokens, and the rest of the text is not embedded"
        assert f"small: 1 of 5 documents or chunks {lacking}" in run.stderr
        assert "queries" not in run.stderr.partition("warning")[2]
        check(results(tmp_path, run_id)[1], limit=4)
    path = write_experiment(tmp_path, {"folder": "small", "max_tokens": 4, "query_prefix": "word word "})
    cut = sum(len(text.split()) + 4 > 4 for text in QUERIES.values())
    assert f"small: {cut} of {len(QUERIES)} queries have more than 4 tokens" in rankbeam("evaluate", path).stderr


@pytest.mark.campaign
def test_texts_in_the_place_of_queries_are_counted_apart(tmp_path: Path) -> None:
    write_model(tmp_path / "small")
    path = Path(write_experiment(tmp_path, {"folder": "small", "max_tokens": 4}))
    experiment = yaml.safe_load(path.read_text("utf-8"))
    experiment["services"]["writer"] = {"type": "extractive"}
    dense = next(one for one in experiment["configurations"] if one["retriever"]["type"] == "dense")
    experiment["configurations"].append(
        {**dense, "name": "hyde", "rewrite": {"service": "writer", "kind": "hyde", "template": "own.txt"}}
    )
    path.write_text(yaml.safe_dump(experiment), "utf-8")
    (tmp_path / "own.txt").write_text("apple sky red green blue word: {query}", "utf-8")
    run = rankbeam("evaluate", str(path))
    assert run.status == 0, run.stderr
    assert f"of {len(QUERIES)} rewritten queries ha" in run.stderr


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ({"folder": "smal"}, "experiment.yaml:9: services.small.folder: "),
        ({"model": "nothing"}, "services.small.model: no model 'nothing' in "),
        ({"folder": "small", "poling": "cls"}, "unknown key; did you mean 'pooling'"),
        ({"folder": "small", "pooling": "max"}, "pooling: "),
        ({}, "give model, the name of a model on this machine, or folder"),
        ({"folder": "small", "file": "other.onnx"}, "has no model 'other.onnx'"),
    ],
)
def test_a_model_that_is_not_there_is_refused_before_any_work(
    service: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_model(tmp_path / "small")
    path = write_experiment(tmp_path, service)
    for command in ("validate", "evaluate"):
        run = rankbeam(command, path)
        assert run.status == 2
        assert message in run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [{"type": "onnx", "folder": "small"}, {"type": "hashed"}])
def test_a_model_that_only_embeds_cannot_write(kind: dict[str, str], tmp_path: Path) -> None:
    write_model(tmp_path / "small")
    answering = {"name": "a", "retriever": {"type": "bm25"}, "top_k": 5, "generate": {"service": "small"}}
    more = {"services": {"small": kind}, "configurations": [answering], "judge": {"service": "small"}}
    run = rankbeam("validate", write_experiment(tmp_path, {}, **more))
    assert run.status == 2
    for place in ("configurations[0].generate.service", "judge.service"):
        assert f"{place}: 'small' embeds texts and does not generate any" in run.stderr


def test_workers_elsewhere_need_the_folder_in_a_bucket(tmp_path: Path) -> None:
    write_model(tmp_path / "small")
    options = PipelineOptions(["--temp_location=gs://bucket/tmp"])
    with pytest.raises(InputError, match=r"services\.small\.folder: gs://bucket/local/small"):
        refuse_local(load_experiment(write_experiment(tmp_path, {"folder": "small"})), options)


@pytest.mark.campaign
def test_a_judge_and_a_benchmark_may_use_it(tmp_path: Path) -> None:
    write_model(tmp_path / "small")
    more: dict[str, Any] = {
        "services": {
            "small": {"type": "onnx", "folder": "small"},
            "reader": {"type": "extractive"},
            "words": {"type": "lexical"},
        },
        "judge": {"service": "words", "embeddings": "small"},
        "metrics": ["nDCG@5", "AnswerSimilarity"],
        "max_cost": 1,
        "quotas": {},
    }
    path = write_experiment(tmp_path, {}, **more)
    experiment = yaml.safe_load(Path(path).read_text())
    experiment["dataset"]["answers"] = "answer"
    experiment["configurations"][0]["generate"] = {"service": "reader", "contexts": 1}
    Path(path).write_text(yaml.safe_dump(experiment, sort_keys=False))
    planned = rankbeam("plan", path)
    assert planned.status == 0, planned.stderr
    assert "small" in planned.stdout
    run = rankbeam("evaluate", path, "--run-id", "r1")
    assert run.status == 0, run.stderr
    table = run_of(tmp_path).table("query_metrics").to_pylist()
    values = {row["query_id"]: {one["metric"]: one["value"] for one in row["metrics"]} for row in table}
    answers = {row["query_id"]: row["answer"] for row in run_of(tmp_path).table("answers").to_pylist()}
    assert len(values) == 3
    for query, metrics in values.items():
        words = " ".join(re.findall(r"\w+|[^\w\s]+", answers[query]))
        assert metrics["AnswerSimilarity"] == pytest.approx(float(mean_of(words) @ mean_of("red apple")), abs=1e-6)

    keys: dict[str, Any] = {
        "services": {"sentences": more["services"]["reader"], **more["services"]},
        "reviews": {"pool": {"documents": 6, "retrievers": ["bm25", {"type": "dense", "embedding_model": "small"}]}},
        "items": 4, "types": ["lookup"], "output": "made",
    }  # fmt: skip
    benchmark = rankbeam("goldens", goldens_file(tmp_path, **keys))
    assert benchmark.status == 0, benchmark.stderr
    assert len(lines(tmp_path / "made" / "provenance.jsonl")) == 4


@pytest.mark.long
def test_minilm_finds_what_words_do_not(tmp_path: Path) -> None:
    real(MINILM)
    shutil.copytree(REPOSITORY / "examples" / "helpdesk", tmp_path / "helpdesk")
    run = rankbeam(
        "evaluate", str(tmp_path / "helpdesk" / "dense.yaml"), "--output", str(tmp_path / "out"), "--run-id", "r1"
    )
    assert run.status == 0, run.stderr
    table = run_of(tmp_path).table("configuration_metrics").to_pylist()
    names = {row["config_id"]: row["name"] for row in run_of(tmp_path).table("configurations").to_pylist()}
    means = {names[row["config_id"]]: row["mean"] for row in table if row["metric"] == "nDCG@10"}
    assert means["dense"] == pytest.approx(0.717, abs=0.005)  # as a server of the same model gave
    # The model is quantised: processors with and without instructions for such models round differently.
    (row,) = re.findall(r"^\| helpdesk \|.*$", (REPOSITORY / "docs" / "corpora.md").read_text(), re.MULTILINE)
    shown = [float(value) for value in re.findall(r"(\d\.\d+) ±", row)]
    assert [means[name] for name in ("bm25", "dense", "rrf")] == pytest.approx(shown, abs=0.005)
