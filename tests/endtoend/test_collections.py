"""Real collections, end to end: Cranfield through BM25, Robust 2003's runs, the edge-case fixture."""

import gzip
import json
import math
from collections import defaultdict
from pathlib import Path

import pytest
import pytrec_eval
from support.campaigns import in_campaigns
from support.data import SHARED_DATA, needs_shared_data
from support.runs import query_values, rankbeam, run_experiment

from rankbeam.transforms.records.metrics.trec_names import parse_metrics, trec_name

pytestmark = needs_shared_data

CRANFIELD = SHARED_DATA / "cranfield"
ROBUST = SHARED_DATA / "robust03"
ALL_TREC = {"map", "map_cut", "Rprec", "bpref", "recip_rank", "P", "recall", "infAP", "ndcg", "ndcg_cut", "success"}
ALL_TREC |= {"set_map", "set_relative_P", "relative_P"}
ALL_TREC |= {"set_P", "set_recall", "set_F", "num_ret", "num_rel", "num_rel_ret", "gm_map"}
ALL_TREC |= {"gm_bpref", "Rprec_mult", "num_nonrel_judged_ret"}


def _assert_equal_to_pytrec_eval(
    ours: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ALL_TREC).evaluate(run)
    assert set(ours) == set(qrels)
    for query, metrics in ours.items():
        for metric in parse_metrics(["all_trec"]):
            if metric.name in ("IPrec", "IPrec11", "RBP", "Unjudged"):
                continue  # pytrec_eval has the rounding of trec_eval 9, no rbp and no unj
            # pytrec_eval leaves a query without results out; the mean over every judged query counts it as 0.
            name = trec_name(metric)
            missing = float(sum(grade >= 1 for grade in qrels[query].values())) if name == "num_rel" else 0.0
            expected = theirs[query][name] if query in theirs else missing
            if name in ("gm_map", "gm_bpref") and query in theirs:  # a logarithm between ln 0.00001 and 0
                expected = 1 - expected / math.log(0.00001)
            assert metrics[str(metric)] == pytest.approx(expected, abs=1e-9), (query, name)


@pytest.fixture(scope="module")
def cranfield_qrels() -> dict[str, dict[str, int]]:
    with (CRANFIELD / "qrels" / "test.trec").open() as file:
        return pytrec_eval.parse_qrel(file)


def test_bm25_on_cranfield_equals_pytrec_eval_on_the_same_ranking(
    tmp_path: Path, cranfield_qrels: dict[str, dict[str, int]]
) -> None:
    results = run_experiment(
        tmp_path,
        {
            "dataset": {name: str(CRANFIELD / path) for name, path in _CRANFIELD_FILES.items()},
            "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 100}],
            "metrics": ["nDCG@10", "all_trec"],
        },
    )
    config_id = results.configurations[0]["config_id"]
    assert results.means[config_id, "all", "nDCG@10"].mean == pytest.approx(0.35, abs=0.05)
    # A rank stands for the score: pytrec_eval compares scores as float32, and would tie some of BM25's.
    run = {
        row["query_id"]: {document["doc_id"]: -float(document["rank"]) for document in row["documents"]}
        for row in results.table("rankings").to_pylist()
    }
    _assert_equal_to_pytrec_eval(query_values(results)["bm25"], cranfield_qrels, run)


_CRANFIELD_FILES = {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}


def test_all_formats_of_cranfield_are_one_dataset(tmp_path: Path) -> None:
    run = tmp_path / "some.run"
    run.write_text("1 Q0 184 1 2.5 t\n2 Q0 12 1 1.5 t\n")
    fingerprints = set()
    for position, files in enumerate([("queries.jsonl", "qrels/test.tsv"), ("topics.tsv", "qrels/test.trec")]):
        results = run_experiment(
            tmp_path / str(position),
            {
                "dataset": {"queries": str(CRANFIELD / files[0]), "qrels": str(CRANFIELD / files[1])},
                "configurations": [{"name": "some", "retriever": {"type": "run_file", "path": str(run)}}],
            },
        )
        fingerprints.add(results.run["dataset_fingerprint"])
    assert len(fingerprints) == 1


@pytest.mark.campaign
def test_six_robust_runs_in_one_command_equal_pytrec_eval(tmp_path: Path) -> None:
    runs = sorted((ROBUST / "runs").glob("*.gz"))
    result = rankbeam(
        "score", ROBUST / "qrels.txt.gz", *runs, "-m", "all_trec", "-q", "--format", "json", "--output", tmp_path
    )
    assert result.exit_code == 0, result.stderr
    ours: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for row in json.loads(result.stdout)["per_query"]:
        ours[row["configuration"]][row["query_id"]] = row["metrics"]
    with gzip.open(ROBUST / "qrels.txt.gz", "rt") as file:
        qrels = pytrec_eval.parse_qrel(file)
    assert set(ours) == {path.name.removesuffix(".gz") for path in runs}
    for path in runs:
        with gzip.open(path, "rt") as file:
            run = pytrec_eval.parse_run(file)
        _assert_equal_to_pytrec_eval(ours[path.name.removesuffix(".gz")], qrels, run)


@pytest.mark.parametrize(
    ("part", "options"),
    [("expect_l2", ["-l", "2"]), *in_campaigns(("expect", []), ("expect_judged_only", ["-J"]))],
)
def test_every_expectation_of_the_edge_case_holds(tmp_path: Path, part: str, options: list[str]) -> None:
    fixture = json.loads((SHARED_DATA / "fixtures" / "edge_case.json").read_text())
    qrels, run = tmp_path / "qrels.txt", tmp_path / "edge.run"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, grades in fixture["qrels"].items() for d, g in grades.items()))
    run.write_text("".join(f"{q} Q0 {d} 0 {s} t\n" for q, scores in fixture["run"].items() for d, s in scores.items()))
    own_names = {"ndcg_exp_gain_full": "nDCG(gain=exp)", "ranx_ndcg_burges@3": "nDCG(gain=exp)@3"}
    for name, expected in fixture[part].items():
        result = rankbeam("score", qrels, run, "-m", own_names.get(name, name), "--format", "csv", *options)
        assert result.exit_code == 0, result.stderr
        value = float(result.stdout.splitlines()[-1].rpartition(",")[2])
        digits = len(str(expected).partition(".")[2])
        assert value == pytest.approx(expected, abs=1e-12 if digits > 4 else 5.1e-5), name
