"""Small finished runs to compare: every query has one relevant document, and every configuration a rank for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.inputs import trec_qrels, write
from support.runs import run_experiment

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.parameters import entry_points_of

QUERIES = [f"q{number:02}" for number in range(24)]
LANGUAGES = {query: "fr" if number < 4 else ("de", "en")[number % 2] for number, query in enumerate(QUERIES)}
LEVELS = {query: ("easy", "hard")[number // 2 % 2] for number, query in enumerate(QUERIES)}
METRICS = ["RR", "nDCG@10", "P@1"]

# Ranks in the order of QUERIES; 0 for no result, -1 for a call that is over the quota, -2 for one that takes too long.
RANKED = """
from rankbeam import CallError, FailureKind, Ranking, RetrieverParameters

class Ranked(RetrieverParameters):
    ranks: list[int]

    def open(self, corpus):
        return self

    def retrieve(self, query, top_k):
        rank = self.ranks[int(query.query_id[1:])]
        if rank == -1:
            raise CallError(FailureKind.QUOTA, "out of quota")
        if rank == -2:
            raise CallError(FailureKind.TIMEOUT, "no answer in time")
        doc_ids = [f"x{place}" for place in range(rank - 1)] + ["d"] * (rank > 0)
        return Ranking(tuple(doc_ids), tuple(-float(place) for place in range(len(doc_ids))))

    def close(self):
        pass
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the retriever `ranked`."""
    site = folder / "site"
    write(site / "rankbeam_test_ranked.py", RANKED)
    write(site / "ranked-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: ranked\nVersion: 1\n")
    points = "[rankbeam.retrievers]\nranked = rankbeam_test_ranked:Ranked\n"
    write(site / "ranked-1.dist-info" / "entry_points.txt", points)
    monkeypatch.syspath_prepend(str(site))
    entry_points_of.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the retriever `ranked` for a test module that imports this fixture."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(tmp_path_factory.mktemp("ranked"), monkeypatch)
        yield
    entry_points_of.cache_clear()


def ranks(*cycle: int, **by_query: int) -> list[int]:
    """A rank for every query: the cycle over and over, but for those that are given by name."""
    return [by_query.get(query, cycle[number % len(cycle)]) for number, query in enumerate(QUERIES)]


def experiment(
    folder: Path, configurations: Mapping[str, Sequence[int]], queries: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """An experiment whose configurations find the relevant document at the ranks that are given."""
    texts = queries or QUERIES
    rows = [
        {"_id": query, "text": "t", "metadata": {"language": LANGUAGES[query], "level": LEVELS[query]}}
        for query in texts
    ]
    return {
        "dataset": {
            "qrels": write(folder / "qrels", trec_qrels([(query, "d", 1.0) for query in texts])),
            "queries": write(folder / "queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        },
        "configurations": [
            {"name": name, "retriever": {"type": "ranked", "ranks": list(parameters)}, "top_k": 20}
            for name, parameters in configurations.items()
        ],
        "metrics": METRICS,
        "slices": ["language", "level", "language×level"],
        "statistics": {"replicates": 200},
        "max_failure_rate": 1.0,
        **more,
    }


def finished(
    folder: Path,
    configurations: Mapping[str, Sequence[int]],
    run_id: str = "run",
    queries: Sequence[str] = (),
    **more: Any,
) -> Results:
    """Run such an experiment; its tables are in `folder/out`."""
    return run_experiment(folder, experiment(folder, configurations, queries, **more), run_id)
