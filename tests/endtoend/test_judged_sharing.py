"""Calls that configurations share are made and paid once: calls are counted at the server, and worked out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam_process
from support.runs import evaluated
from support.standin_models import KEY, dataset, run_file, service, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

pytestmark = pytest.mark.campaign

QUERIES, DOCUMENTS, CHUNKS = 6, 60, 11  # fewer than 100 contexts and answers: known items are not asked
OF_A_QUERY, OF_AN_ANSWER, OF_A_CHUNK = 1, 3, 2
"""Calls: the claims of its reference; the answer, its kind and its claims; its grade, and what it supports of those."""

METRICS = [f"ContextRecall@{CHUNKS}", f"ContextRelevance@{CHUNKS}"]
METRICS_OF_ANSWERS = [*METRICS, "Faithfulness", "AnswerRelevance"]
SAME_STEPS = ["ContextPrecision(claims)@11", "ContextAP@11", "CitationPrecision", "Refused"]
TWO_WORKERS = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")

FIRST = [[(query + 5 * place) % DOCUMENTS for place in range(CHUNKS)] for query in range(QUERIES)]
ONE_OTHER = [[(query + 2) % DOCUMENTS, *ranking[1:]] for query, ranking in enumerate(FIRST)]
"""Ten chunks of eleven are those of `FIRST`: 91%."""
TURNED_AROUND = [ranking[::-1] for ranking in FIRST]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")


class Runs:
    """Runs with one ledger.

    Args:
        folder: folder of all experiments.
        server: stand-in that answers and judges.
    """

    def __init__(self, folder: Path, server: Standin) -> None:
        self._folder, self._server, self._number = folder, server, 0
        self._dataset = dataset(folder, QUERIES, DOCUMENTS)

    def calls(self, rankings: dict[str, Sequence[Sequence[int]]], metrics: Sequence[str], answers: bool = False) -> int:
        """The number of calls that the next run makes.

        Args:
            rankings: by name of the configuration.
            metrics: to compute.
            answers: whether a model answers from all chunks.
        """
        before = self._server.stats().calls
        self._number += 1
        assert evaluated(self.experiment(rankings, metrics, answers), run_id=f"r{self._number}").run["state"] == "done"
        assert Results(str(self._folder / "out"), f"r{self._number}").table("failures").num_rows == 0
        return self._server.stats().calls - before

    def experiment(self, rankings: dict[str, Sequence[Sequence[int]]], metrics: Sequence[str], answers: bool) -> str:
        """The path of an experiment that judges nothing three times."""
        generate = {"generate": {"service": "model", "contexts": CHUNKS}} if answers else {}
        experiment: dict[str, Any] = {
            "dataset": self._dataset,
            "services": {"model": service("openai", self._server)},
            "configurations": [
                {"name": name, "retriever": run_file(self._folder, name, one), "top_k": CHUNKS, **generate}
                for name, one in rankings.items()
            ],
            "judge": {"service": "model", "repeat_share": 0},
            "metrics": list(metrics),
            "quotas": {"openai": {"requests_per_minute": 60_000}},
        }
        return write_experiment(self._folder, experiment)


def test_configurations_cost_the_chunks_that_they_do_not_share(tmp_path: Path) -> None:
    with serve("openai") as server:
        runs = Runs(tmp_path, server)
        assert runs.calls({"a": FIRST}, METRICS) == QUERIES * (OF_A_QUERY + CHUNKS * OF_A_CHUNK)
        assert runs.calls({"a": FIRST, "b": ONE_OTHER}, METRICS) == QUERIES * OF_A_CHUNK
        assert runs.calls({"a": FIRST, "b": ONE_OTHER, "c": TURNED_AROUND}, METRICS) == 0


def test_a_second_answer_costs_its_own_calls_and_the_chunks_that_it_does_not_share(tmp_path: Path) -> None:
    own = OF_AN_ANSWER + CHUNKS  # what each chunk supports of the answer's claims
    with serve("openai") as server:
        runs = Runs(tmp_path, server)
        first = runs.calls({"a": FIRST}, METRICS_OF_ANSWERS, answers=True)
        second = runs.calls({"a": FIRST, "b": ONE_OTHER}, METRICS_OF_ANSWERS, answers=True)
        further = runs.calls({"a": FIRST, "b": ONE_OTHER}, [*METRICS_OF_ANSWERS, *SAME_STEPS], answers=True)
        once_more = runs.calls({"a": FIRST, "b": ONE_OTHER}, METRICS_OF_ANSWERS, answers=True)
    assert first == QUERIES * (OF_A_QUERY + own + CHUNKS * OF_A_CHUNK)
    assert second == QUERIES * (own + OF_A_CHUNK)
    assert (further, once_more) == (0, 0)


@pytest.mark.parametrize("options", [(), TWO_WORKERS], ids=["one process", "two workers"])
def test_no_prompt_is_asked_twice(options: tuple[str, ...], tmp_path: Path) -> None:
    """Two of three configurations retrieve the same chunks in the same order."""
    rankings = {"a": FIRST, "b": ONE_OTHER, "c": FIRST}
    with serve("openai", latency_s=(0.0, 0.2)) as server:
        path = Runs(tmp_path, server).experiment(rankings, METRICS_OF_ANSWERS, answers=True)
        outcome = rankbeam_process("evaluate", path, *options)
        stats = server.stats()
    assert outcome.status == 0, outcome.stderr
    own = OF_AN_ANSWER + CHUNKS
    needed = QUERIES * (OF_A_QUERY + 2 * own + (CHUNKS + 1) * OF_A_CHUNK)
    assert (stats.calls, len(stats.queries)) == (needed, needed)
    assert set(stats.queries.values()) == {1}
