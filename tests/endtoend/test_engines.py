"""Every table of a run on Flink and on Prism equals the local runner's, wherever its workers are."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import SHARE
from support.cli import rankbeam_process
from support.data import REPOSITORY, SHARED_DATA
from support.engines import evaluated, same
from support.flink import Cluster, cluster, missing_flink, missing_prism, prism
from support.inputs import trec_qrels, trec_run, write
from support.remote import answers, dataset, http, write_experiment
from support.standins import serve

from rankbeam.pipelines.results.run import Results

HELPDESK, CRANFIELD = REPOSITORY / "examples" / "helpdesk", SHARED_DATA / "cranfield"
QUERIES = 100
Local = Callable[[str], tuple[str, Results]]

whole = pytest.mark.skipif(SHARE < 1, reason="takes minutes: make flink-test runs it")
with_flink = pytest.mark.skipif(missing_flink() is not None, reason=str(missing_flink()))
with_prism = pytest.mark.skipif(missing_prism() is not None, reason=str(missing_prism()))
with_cranfield = pytest.mark.skipif(not CRANFIELD.exists(), reason=f"{CRANFIELD} is not here")
OTHERS = [
    pytest.param("judged", marks=whole),
    pytest.param("remote", marks=whole),
    pytest.param("cranfield", marks=[whole, with_cranfield]),
    pytest.param("million", marks=whole),
]
pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """The path of an experiment, by its name, and its results on the local runner, made once."""
    with serve("http", answers=answers(QUERIES)) as standin:

        @cache
        def scored_run(name: str) -> tuple[str, Results]:
            folder = tmp_path_factory.mktemp(name)
            match name:
                case "helpdesk":
                    path = str(HELPDESK / "experiment.yaml")
                case "judged":
                    path = str(HELPDESK / "answers.yaml")
                case "remote":
                    remote = {"name": "remote", "retriever": http(standin), "top_k": 20}
                    experiment = {"dataset": dataset(folder, QUERIES), "configurations": [remote]}
                    path = write_experiment(folder, experiment)
                case "cranfield":
                    path = write_experiment(folder, cranfield())
                case _:
                    path = write_experiment(folder, million(folder))
            return path, evaluated(path, folder / "local")

        yield scored_run


@pytest.fixture(scope="module")
def flink(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("flink"), task_managers=request.param) as running:
        yield running


@with_flink
@pytest.mark.parametrize("name", ["helpdesk", *OTHERS])
@pytest.mark.parametrize(
    ("flink", "external"),
    [
        pytest.param(2, True),
        pytest.param(2, False, marks=whole),
        pytest.param(1, True, marks=whole),
        pytest.param(1, False, marks=whole),
    ],
    indirect=["flink"],
    ids=["2 EXTERNAL", "2 LOOPBACK", "1 EXTERNAL", "1 LOOPBACK"],
)
def test_flink(flink: Cluster, local: Local, tmp_path: Path, name: str, external: bool) -> None:
    """Two TaskManagers number their workers alike, and end them at their own time, in a pool or in one process."""
    path, expected = local(name)
    slots = flink.get("/overview")["slots-total"]
    same(expected, evaluated(path, tmp_path / "out", *flink.options(external=external, parallelism=slots)))
    assert flink.jobs()[-1]["state"] == "FINISHED"


@with_prism
@pytest.mark.parametrize("name", ["helpdesk", *OTHERS])
def test_prism(local: Local, tmp_path: Path, name: str) -> None:
    path, expected = local(name)
    same(expected, evaluated(path, tmp_path / "out", "--runner=PrismRunner", f"--prism_location={prism()}"))
    assert "state    done" in rankbeam_process("status", str(tmp_path / "out")).stdout  # its Prism has gone


def cranfield() -> dict[str, Any]:
    files = {"queries": "queries.jsonl", "qrels": "qrels/test.tsv", "corpus": "corpus.jsonl"}
    configurations = [{"name": f"b{b:g}", "retriever": {"type": "bm25", "b": b}, "top_k": 100} for b in (0.4, 0.75)]
    experiment = {"dataset": {name: str(CRANFIELD / path) for name, path in files.items()}}
    return {**experiment, "configurations": configurations, "metrics": ["nDCG@10", "R@100", "AP"]}


def million(folder: Path) -> dict[str, Any]:
    ranked = [
        (f"q{query}", f"d{(query * 31 + rank) % 997}", float(-rank)) for query in range(10_000) for rank in range(100)
    ]
    judged = ((query, document, float(-score % 3)) for query, document, score in ranked if score > -9)
    run = {"type": "run_file", "path": write(folder / "a.run", trec_run(ranked))}
    return {
        "dataset": {"qrels": write(folder / "qrels", trec_qrels(judged))},
        "configurations": [{"name": "a", "retriever": run}],
        "metrics": ["nDCG@10", "AP", "RR"],
    }
