"""A metric that looks at more documents than `top_k` leaves: R@100 of ten is R@10, and is marked."""

import json
import re
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import json_texts, trec_qrels, write

from rankbeam.pipelines import show
from rankbeam.pipelines.results.find import find_run

WARNING = "warning: R@100, P@20 look at more documents than top_k leaves of bm25:top_k=10 (10)\n"


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0), ("q2", "d2", 1.0)]))
    write(tmp_path / "queries", json_texts([("q1", "alpha"), ("q2", "beta")]))
    write(tmp_path / "corpus", json_texts([(f"d{n}", ("alpha", "beta")[n % 2]) for n in range(1, 40)]))
    return write(
        tmp_path / "e.yaml",
        "name: e\ndataset: {qrels: qrels, queries: queries, corpus: corpus}\n"
        "configurations: [{name: bm25, retriever: {type: bm25}}]\ngrid: {top_k: [10, 100]}\n"
        "metrics: [nDCG@10, R@100, P@20, AP]\noutput: {path: out}\n",
    )


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_it_is_warned_of_once_before_a_run(experiment: str, command: str) -> None:
    outcome = rankbeam(command, experiment)
    assert outcome.status == 0
    assert outcome.stderr.count(WARNING) == outcome.stderr.count("look at more") == 1


@pytest.mark.long
def test_a_run_warns_of_it_once_and_marks_it_in_every_leaderboard(experiment: str, tmp_path: Path) -> None:
    outcome = rankbeam("evaluate", experiment)
    assert outcome.status == 0
    assert outcome.stderr.count(WARNING) == outcome.stderr.count("look at more") == 1
    run, marked = find_run(str(tmp_path / "out")), {}
    boards = {"table": outcome.stdout, "markdown": show.as_markdown(run), "latex": show.as_latex(run)}
    for form, board in boards.items():
        lines = board.splitlines()
        marked[form] = [
            re.findall(r"\d(?:\*\*|\})?(†|\$\^\\dagger\$)", line)
            for line in lines
            if "top_k=" in line or r"top\_k=" in line
        ]
        assert sum("looks at more documents than top" in line for line in lines) == 1
    assert all(sorted(map(len, places[:2])) == [0, 2] for places in marked.values()), marked
    places = json.loads("".join(show.as_json(run)))
    assert places["state"] == "done"
    assert {row["configuration"]: row["cut_short"] for row in places["leaderboard"]} == {
        "bm25:top_k=10": ["R@100", "P@20"],
        "bm25:top_k=100": [],
    }
    assert WARNING.removeprefix("warning: ").strip() in places["warnings"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count(">†</abbr>") == 4  # once in the board of each metric, once among all metrics
    assert page.count("† looks at more documents than top_k leaves") == 2


@pytest.mark.usefixtures("experiment")
def test_max_documents_of_score_is_a_top_k(tmp_path: Path) -> None:
    run = write(tmp_path / "a.run", "q1 Q0 d1 1 1.0 t\n")
    outcome = rankbeam("score", str(tmp_path / "qrels"), run, "-M", "5", "-m", "P@5", "-m", "P@10")
    assert "warning: P@10 looks at more documents than top_k leaves of a (5)\n" in outcome.stderr


def test_a_slice_by_an_attribute_that_no_query_has(experiment: str, tmp_path: Path) -> None:
    rows = [{"_id": "q1", "text": "alpha", "metadata": {"intent": "a"}}, {"_id": "q2", "text": "b", "level": "b"}]
    write(tmp_path / "queries", "".join(json.dumps(row) + "\n" for row in rows))
    text = Path(experiment).read_text()
    path = write(tmp_path / "e.yaml", text + "slices: [intent, intnet×level, nothing]\n")
    refused = rankbeam("validate", path)
    assert refused.status == 2
    assert refused.stderr.splitlines() == [
        f"rankbeam: {path}:7: slices[1]: no query has the attribute 'intnet'; did you mean 'intent'?",
        f"{path}:7: slices[2]: no query has the attribute 'nothing'; valid are: intent, level",
    ]
    assert rankbeam("validate", write(tmp_path / "e.yaml", text + "slices: [level, intent]\n")).status == 0
