"""The same numbers, bit for bit, whatever the workers, the order of the input, and the number of buckets."""

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.runs import run_experiment, without_run

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import buckets as number_of_buckets

HELPDESK = REPOSITORY / "examples" / "helpdesk"
TABLES = ("query_metrics", "configuration_metrics", "comparisons", "rankings", "failures", "configurations")


def _experiment(folder: Path) -> dict[str, Any]:
    return {
        "dataset": {
            "queries": str(folder / "queries.jsonl"),
            "qrels": str(folder / "qrels" / "test.tsv"),
            "corpus": str(folder / "corpus.jsonl"),
        },
        "configurations": [
            {"name": "stemmed", "retriever": {"type": "bm25"}},
            {"name": "exact", "retriever": {"type": "bm25", "stemming": "none", "method": "bm25+"}},
        ],
        "grid": {"top_k": [5, 50]},
        "metrics": ["nDCG@10", "AP", "RR", "RBP", "infAP", "Bpref", "ERR@10", "chunk_nDCG@10"],
        "slices": ["difficulty", "intent"],
    }


def _same(one: Results, other: Results) -> None:
    assert one.run["dataset_fingerprint"] == other.run["dataset_fingerprint"]
    for name in TABLES:
        assert without_run(one.table(name)) == without_run(other.table(name)), name


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_experiment(tmp_path_factory.mktemp("reference"), _experiment(HELPDESK))


@pytest.mark.campaign
def test_two_worker_processes(tmp_path: Path, reference: Results) -> None:
    options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    _same(run_experiment(tmp_path, _experiment(HELPDESK), beam_options=options), reference)


def test_two_threads(tmp_path: Path, reference: Results) -> None:
    options = ["--direct_running_mode=multi_threading", "--direct_num_workers=2"]
    _same(run_experiment(tmp_path, _experiment(HELPDESK), beam_options=options), reference)


@pytest.mark.campaign
def test_shuffled_rows_in_other_files(tmp_path: Path, reference: Results) -> None:
    shuffled = random.Random(7)
    (tmp_path / "qrels").mkdir()
    for name, header in (("queries.jsonl", 0), ("corpus.jsonl", 0), ("qrels/test.tsv", 1)):
        lines = (HELPDESK / name).read_text(encoding="utf-8").splitlines(keepends=True)
        head, body = lines[:header], lines[header:]
        shuffled.shuffle(body)
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:  # gzip, whatever its name says
            file.writelines([*head, *body])
    _same(run_experiment(tmp_path, _experiment(tmp_path)), reference)


@pytest.mark.parametrize("buckets", [5, *in_campaigns(1, 64)])
def test_any_number_of_buckets(
    tmp_path: Path, reference: Results, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_of_buckets, "LEAST", buckets)
    _same(run_experiment(tmp_path, _experiment(HELPDESK)), reference)


@pytest.mark.campaign
def test_the_order_of_a_run_file_and_its_division_into_files(tmp_path: Path, reference: Results) -> None:
    rows = [
        f"{row['query_id']} Q0 {document['doc_id']} 0 {document['score']!r} tag\n"
        for row in reference.table("rankings").to_pylist()
        if row["config_id"] == reference.configurations[1]["config_id"]
        for document in row["documents"]
    ]
    results = []
    for position, parts in enumerate((1, 3)):
        random.Random(position).shuffle(rows)
        folder = tmp_path / str(position)
        folder.mkdir()
        for part in range(parts):
            (folder / f"{part}.run").write_text("".join(rows[part::parts]))
        experiment = _experiment(HELPDESK) | {
            "configurations": [{"name": "run", "retriever": {"type": "run_file", "path": str(folder / "*.run")}}]
        }
        results.append(run_experiment(folder, experiment))
    for name in ("query_metrics", "configuration_metrics", "rankings"):
        tables = [
            result.table(name).drop_columns(
                [column for column in ("config_id", "equal_to") if column in result.table(name).column_names]
            )
            for result in results
        ]
        assert without_run(tables[0]) == without_run(tables[1]), name
