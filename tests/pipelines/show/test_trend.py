"""`rankbeam trend`: the means of runs on one dataset, as their tables have them."""

import json
from pathlib import Path

import pytest
import yaml
from support import runs
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write

from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.runs import Trend, TrendRow, as_json, trend_of
from rankbeam.pipelines.show.tabular import Screen
from rankbeam.transforms.records.slices import ALL

QUERIES = [f"q{number}" for number in range(25)]


def evaluated(folder: Path, run_id: str, rank: int, queries: list[str] = QUERIES, name: str = "e") -> None:
    """A run in which the relevant document has a rank."""
    rows = [(query, "d" if place == rank else f"x{place}", -float(place)) for query in queries for place in (1, 2, 3)]
    experiment = {
        "name": name,
        "dataset": {
            "qrels": write(folder / f"{len(queries)}.txt", trec_qrels([(query, "d", 1.0) for query in queries]))
        },
        "configurations": [
            {"name": "one", "retriever": {"type": "run_file", "path": write(folder / f"{run_id}.run", trec_run(rows))}}
        ],
        "metrics": ["RR", "R@1"],
        "output": {"path": str(folder / "out")},
    }
    runs.evaluated(write(folder / "e.yaml", yaml.safe_dump(experiment)), run_id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trend")
    for run_id, rank in (("a", 3), ("b", 2)):
        evaluated(folder, run_id, rank)
    evaluated(folder, "small", 1, QUERIES[:20])
    evaluated(folder, "other", 1, name="f")
    evaluated(folder, "c", 1)
    return folder


@pytest.mark.long
def test_runs_of_one_experiment_and_dataset_are_shown_in_order(folder: Path) -> None:
    done = rankbeam("trend", str(folder / "out"), "--experiment-name", "e", "--format", "json")
    assert done.status == 0, done.stderr
    trend = json.loads(done.stdout)
    assert [run["run_id"] for run in trend["runs"]] == ["a", "b", "c"]
    assert [note.split(";")[0] for note in trend["notes"]] == ["1 earlier run on other queries or judgements not shown"]
    for run in trend["runs"]:
        stored = Results(str(folder / "out"), run["run_id"])
        (row,) = stored.configurations
        mean = stored.means[row["config_id"], ALL, "RR"]
        ((name, value),) = run["values"].items()
        assert (name, value) == (row["name"], {"mean": mean.mean, "low": mean.ci_low, "high": mean.ci_high})


def test_of_many_runs_the_means_of_one_are_in_memory(folder: Path) -> None:
    """Listing 1,000 runs of 1,200 means each took 1.2 GB."""
    finished = finished_runs(str(folder / "out"))
    assert len(json.loads(as_json(finished))["runs"]) == len(finished)
    assert trend_of(finished[-1], "RR", 3).runs[0].run_id == "a"
    assert not any("means" in vars(run) for run in finished[:-1])


def test_the_table_has_a_row_for_each_run(folder: Path) -> None:
    done = rankbeam("trend", str(folder / "out"), "--experiment-name", "e", "-m", "R@1", "-n", "2")
    title, _, heading, _, *rows = done.stdout.partition("\n\n1 earlier run")[0].splitlines()
    assert title == "R@1 of e"
    assert heading.split() == ["run", "started", "(UTC)", "state", "one"]
    assert [(row.split()[0], row.split()[-2]) for row in rows if row] == [("b", "0.0000"), ("c", "1.0000")]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["bm25", "dense", "lsa", "tfidf"], 4),
        ([f"bm25:chunk_size={number}" for number in range(100, 104)], 2),
        ([f"c{number}" for number in range(9)], 3),
    ],
)
def test_a_narrow_terminal_shows_the_best_configurations_that_fit(names: list[str], shown: int) -> None:
    value: dict[str, float | None] = {"mean": 0.5, "low": 0.4, "high": 0.6}
    row = TrendRow("20261128-175103-f606", "2026-11-28T17:51:03", "done", dict.fromkeys(names, value))
    lines = Trend("e", "RR", tuple(names), (row,)).as_text(Screen(80)).splitlines()
    assert max(map(len, lines)) <= 80
    assert [name for name in names if name in lines[2].split()] == names[:shown]
    assert ", ".join(names[shown:]) in " ".join(lines[-2:])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["-m", "nDCG@10"], "the run has no metric nDCG@10"),
        ([], "holds runs of 2 experiments"),
        (["-n", "0"], "not in the range"),
    ],
)
def test_wrong_uses_are_refused(options: list[str], problem: str, folder: Path) -> None:
    named = [] if not options else ["--experiment-name", "e"]
    done = rankbeam("trend", str(folder / "out"), *named, *options)
    assert done.status == 2
    assert problem in done.stderr
