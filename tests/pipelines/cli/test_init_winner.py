"""`rankbeam init --winner DIR`: the experiment of a run with one of its configurations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from support.inputs import trec_qrels, write
from support.runs import rankbeam

from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.race import order_of

QUERIES = [f"word{number} word{number + 1}" for number in range(8)]
SWEEP: dict[str, Any] = {
    "name": "sweep",
    "dataset": {"queries": "queries.jsonl", "qrels": "qrels.txt", "corpus": "corpus.jsonl"},
    "services": {"demo": {"type": "lexical"}},
    "configurations": [
        {"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 4},
        {"name": "lsa", "retriever": {"type": "lsa", "dimension": 2}, "top_k": 4},
    ],
    "grid": {
        "fields": [["title"], ["title", "text"]],
        "rerank": {"off": None, "demo": {"service": "demo", "depth": 5}},
    },
    "baseline": "bm25:rerank=off,fields=['title']",
    "gates": [
        {"metric": "RR", "at_least": 0.1},
        {"metric": "RR", "value": "difference", "at_least": -1.0, "configuration": "lsa"},
        {"metric": "RR", "at_least": 0.0, "configuration": "lsa"},
    ],
    "dialects": ["rankbeam", "trec_eval"],
    "metrics": ["RR"],
    "output": {"path": "out"},
}
FUSED = {
    "configurations": [
        *SWEEP["configurations"],
        {"name": "both", "retriever": {"type": "fusion", "parts": ["bm25", "lsa"]}, "top_k": 4},
    ]
}


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Results:
    monkeypatch.chdir(folder)
    texts = [{"_id": f"d{n}", "title": f"word{n}", "text": f"word{n} word{n + 1} word9"} for n in range(8)]
    write(Path("corpus.jsonl"), "".join(f"{json.dumps(text)}\n" for text in texts))
    write(Path("qrels.txt"), "".join(f"{text.replace(' ', '-')} 0 d{n} 1\n" for n, text in enumerate(QUERIES)))
    write(Path("queries.jsonl"), "".join(f"{json.dumps({'_id': t.replace(' ', '-'), 'text': t})}\n" for t in QUERIES))
    value = {key: entry for key, entry in {**SWEEP, **changes}.items() if entry is not None}
    done = rankbeam("evaluate", write(Path("sweep.yaml"), yaml.safe_dump(value)))
    assert done.exit_code in (0, 3), done.stderr
    return find_run("out")


@pytest.mark.long
def test_every_configuration_becomes_an_experiment_with_its_identity_and_the_best_is_evaluated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run(tmp_path, monkeypatch)
    assert len(results.configurations) == 16
    for row in results.configurations[::3]:
        path = f"{row['config_id']}.yaml"
        done = rankbeam("init", path, "--winner", "out", "--configuration", row["name"])
        assert done.exit_code == 0, done.stderr
        value = yaml.safe_load(Path(path).read_text())
        assert [entry["name"] for entry in value["configurations"]] == [row["name"].partition(":")[0]]
        assert [gate["at_least"] for gate in value["gates"]] == ([0.1, 0.0] if row["name"].startswith("lsa") else [0.1])
        assert value.get("dialects") == (["trec_eval"] if "dialect=" in row["name"] else None)
    best = results.leaderboard()[0]
    done = rankbeam("init", "best.yaml", "--winner", "out")
    assert f"wrote best.yaml: {best['name']}\n" in done.stdout
    assert rankbeam("evaluate", "best.yaml", "--output", "again").exit_code == 0
    (row,) = find_run("again").configurations
    assert (row["name"], row["config_id"]) == (best["name"], best["config_id"])
    assert find_run("again").experiment == "best"
    assert rankbeam("evaluate", "best.yaml").exit_code == 0  # into the folder of the sweep, to share its ledger
    assert "choose one with --experiment-name" in rankbeam("init", "x.yaml", "--winner", "out").stderr
    assert rankbeam("init", "x.yaml", "--winner", "out", "--experiment-name", "sweep").exit_code == 0


@pytest.mark.long
@pytest.mark.parametrize(("decide_by", "name"), [(None, "many"), ("P@1", "few")])
def test_the_best_is_decided_by_the_metric_of_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decide_by: str | None, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("qrels"), trec_qrels([("q", "d", 1.0)]))
    write(Path("many.run"), "q Q0 x 1 2 r\nq Q0 d 2 1 r\n")
    write(Path("few.run"), "q Q0 d 1 2 r\n")
    configurations = [{"name": n, "retriever": {"type": "run_file", "path": f"{n}.run"}} for n in ("few", "many")]
    value = {"name": "e", "dataset": {"qrels": "qrels"}, "configurations": configurations, "output": {"path": "out"}}
    value |= {"metrics": ["NumRet", "P@1"]} | ({} if decide_by is None else {"decide_by": decide_by})
    assert rankbeam("evaluate", write(Path("e.yaml"), yaml.safe_dump(value))).exit_code == 0
    assert f"wrote best.yaml: {name}\n" in rankbeam("init", "best.yaml", "--winner", "out").stdout


@pytest.mark.long
def test_metrics_that_compare_configurations_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate = {"service": "writer", "contexts": 1}
    changes: dict[str, Any] = {
        "services": SWEEP["services"] | {"writer": {"type": "extractive"}},
        "configurations": [{**entry, "generate": generate} for entry in SWEEP["configurations"]],
        "judge": {"service": "demo", "criteria": {"Better": {"question": "Which is better?", "pairs": "all"}}},
        "metrics": ["RR", "Better"],
        "decide_by": "Better",
        "gates": [{"metric": "Better", "at_least": 0.0}, {"metric": "RR", "at_least": 0.0}],
    }
    run(tmp_path, monkeypatch, **changes, dialects=None, grid=None, baseline=None)
    assert rankbeam("init", "best.yaml", "--winner", "out").exit_code == 0
    value = yaml.safe_load(Path("best.yaml").read_text())
    assert (value["metrics"], value["gates"], "decide_by" in value) == (["RR"], changes["gates"][1:], False)


@pytest.mark.long
def test_a_configuration_that_a_race_dropped_is_not_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ids = np.array([f"q{number}" for number in range(200)])
    ordered = ids[np.argsort(order_of(pa.array(ids)))]
    write(Path("qrels"), trec_qrels([(query, "d", 1.0) for query in ids]))
    for name, ranks in {"lost": [2] * 200, "won": [1] * 50 + [9] * 150}.items():
        lines = [f"{query} Q0 {'d' if place == rank else f'x{place}'} {place} {-place} {name}\n"
                 for query, rank in zip(ordered, ranks, strict=True) for place in range(1, 10)]  # fmt: skip
        write(Path(f"{name}.run"), "".join(lines))
    configurations = [{"name": n, "retriever": {"type": "run_file", "path": f"{n}.run"}} for n in ("lost", "won")]
    value = {"name": "e", "dataset": {"qrels": "qrels"}, "configurations": configurations, "metrics": ["NumRet", "RR"]}
    value |= {"race": {"metric": "RR", "looks": [50]}, "decide_by": "RR", "output": {"path": "out"}}
    assert rankbeam("evaluate", write(Path("e.yaml"), yaml.safe_dump(value))).exit_code == 0
    results = find_run("out")
    assert [row["dropped_at"] for row in results.configurations] == [50, None]
    assert results.leaderboard("RR")[0]["name"] == "lost"  # the mean over its 50 queries is higher
    assert "wrote best.yaml: won\n" in rankbeam("init", "best.yaml", "--winner", "out").stdout


@pytest.mark.long
def test_a_fusion_keeps_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, monkeypatch, **FUSED, grid=None, baseline=None, dialects=None, gates=None)
    assert rankbeam("init", "both.yaml", "--winner", "out", "--configuration", "both").exit_code == 0
    names = [entry["name"] for entry in yaml.safe_load(Path("both.yaml").read_text())["configurations"]]
    assert names == ["bm25", "lsa", "both"]


def test_a_fusion_keeps_its_parts_of_a_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fusion = {"type": "fusion", "parts": ["bm25:k1=1.2,top_k=4", "bm25:k1=0.9,top_k=4", "lsa:top_k=4"]}
    configurations = [SWEEP["configurations"][0], SWEEP["configurations"][1], {"name": "both", "retriever": fusion}]
    grid = {"k1": [0.5, 0.9, 1.2], "top_k": [2, 4]}
    run(tmp_path, monkeypatch, configurations=configurations, grid=grid, baseline=None, dialects=None, gates=None)
    assert rankbeam("init", "both.yaml", "--winner", "out", "--configuration", "both:top_k=4").exit_code == 0
    value = yaml.safe_load(Path("both.yaml").read_text())
    assert [entry["name"] for entry in value["configurations"]] == ["bm25", "lsa", "both"]
    assert value["grid"] == {"k1": [0.9, 1.2], "top_k": [4]}


@pytest.mark.long
def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, monkeypatch, **FUSED, grid={"k1": [1.2]}, dialects=None, gates=None, baseline=None)
    for words, problem in (
        (["--configuration", "bm2"], "--configuration 'bm2': no configuration has this name"),
        (["--template", "bm25"], "--winner copies the run's experiment"),
    ):
        refused = rankbeam("init", "x.yaml", "--winner", "out", *words)
        assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr
    elsewhere = rankbeam("init", "folder/x.yaml", "--winner", "out", "--configuration", "lsa")
    assert "folder/corpus.jsonl: no such file" in elsewhere.stderr
    assert "folder/x.yaml: relative paths are those of the run's experiment" in elsewhere.stderr
    assert "need --winner DIR" in rankbeam("init", "x.yaml", "--configuration", "lsa").stderr
    assert not Path("x.yaml").exists()


@pytest.mark.long
def test_a_file_that_has_changed_since_the_run_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = write(tmp_path / "answer.txt", "{contexts} {query}")
    generate = {"service": "writer", "contexts": 1, "template": "answer.txt"}
    writing = [{**entry, "generate": generate} for entry in SWEEP["configurations"]]
    services = SWEEP["services"] | {"writer": {"type": "extractive"}}
    changes: dict[str, Any] = {"configurations": writing, "services": services}
    run(tmp_path, monkeypatch, **changes, dialects=None, gates=None, grid=None, baseline=None)
    write(Path(template), "{query} {contexts}")
    refused = rankbeam("init", "x.yaml", "--winner", "out")
    assert "a file that it names has changed since then" in refused.stderr
    assert (refused.exit_code, Path("x.yaml").exists()) == (2, False)
