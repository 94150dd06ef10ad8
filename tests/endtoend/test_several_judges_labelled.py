"""Human labels with several judges: they correct the majority and each judge, and agree with each to some degree."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.cli import rankbeam
from support.labelled import Task, decided, tasks
from support.standins import Standin, serve
from support.voting import CRITERIA, JUDGES, SUPPORT, experiment, values

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, estimate
from rankbeam.transforms.records.slices import ALL


@pytest.fixture(scope="module")
def server() -> Any:
    with pytest.MonkeyPatch.context() as patch, serve("openai") as server:
        patch.setenv("RANKBEAM_TEST_KEY", "k")
        yield server


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory, server: Standin) -> Path:
    """The folder of a run by three judges, labelled in part by two people, and run again with the labels."""
    folder = tmp_path_factory.mktemp("labelled")
    judge = {"service": JUDGES, "repeat_share": 0, "criteria": CRITERIA}
    metrics = ["Faithfulness", "Tone"]
    path = experiment(folder, server, judge, metrics=metrics)
    rows = [{"_id": f"q{number}", "text": f"what of glass {number}"} for number in range(40)]
    queries = "".join(f"{json.dumps(row | {'answer': 'It is so.'})}\n" for row in rows)
    (folder / "queries.jsonl").write_text(queries, "utf-8")
    (folder / "qrels.trec").write_text("".join(f"q{number} 0 d1 1\n" for number in range(40)), "utf-8")
    done = rankbeam("evaluate", path, "--run-id", "r1")
    assert done.status == 0, done.stderr
    out = folder / "out"
    for number, metric in enumerate(metrics, 1):
        sampled = rankbeam("label", str(out), "--sample", "24", "-m", metric)
        assert sampled.status == 0, sampled.stderr
        for person, place in (("ann", 0), ("bob", 1)):
            file = decided(folder / "d.jsonl", tasks(out, number), lambda task, at=place: decision(task, at), person)
            assert rankbeam("label", str(out), "--apply", file).status == 0
    before, stated = server.stats().calls, yaml.safe_load(Path(path).read_text("utf-8"))
    stated["judge"]["labels"] = "out/labels"
    stated["metrics"] += ["Faithfulness(labels=True)", "Tone(labels=True)"]
    Path(path).write_text(yaml.safe_dump(stated, sort_keys=False), encoding="utf-8")
    done = rankbeam("evaluate", path, "--run-id", "r2")
    assert done.status == 0, done.stderr
    assert server.stats().calls == before
    return folder


def decision(task: Task, place: int) -> str:
    """A decision by the item's id, in which people differ now and then."""
    number, choices = int(task["id"], 16), task["decisions"]
    return str(choices[(number + (place if number % 5 == 0 else 0)) % len(choices)])


@pytest.mark.parametrize("name", [None, *JUDGES])
@pytest.mark.parametrize("base", ["Faithfulness", "Criterion(Tone)"])
@pytest.mark.campaign
def test_labels_correct_the_majority_and_each_judge(labelled: Path, base: str, name: str | None) -> None:
    results, known = Results(str(labelled / "out"), "r2"), values(labelled, "r2")
    judged = str(replace(parse_judged(base), judge=name))
    metric = str(replace(parse_judged(base), judge=name, labels=True))
    people = {query_id: value for query_id, value in known[metric].items() if value is not None}
    assert people == {query: value for query, value in known[metric_of(base)].items() if value is not None}
    assert len(people) == 24
    sample = LabelledSample.of(
        np.array(list(people.values())),
        np.array([known[judged][query_id] for query_id in people]),
        np.array([value for query_id, value in known[judged].items() if query_id not in people]),
    )
    right, row = estimate(sample), results.means[results.configurations[0]["config_id"], ALL, metric]
    assert (row.mean, row.std_error) == pytest.approx((right.mean, right.standard_error), abs=1e-12)
    assert (row.ci_low, row.ci_high) == pytest.approx(right.interval(), abs=1e-12)


def metric_of(base: str) -> str:
    """The metric by labels and the majority."""
    return str(replace(parse_judged(base), labels=True))


@pytest.mark.campaign
@pytest.mark.parametrize("step", ["support", "criterion:Tone"])
def test_people_are_compared_with_each_other_and_with_every_judge(labelled: Path, step: str) -> None:
    results = Results(str(labelled / "out"), "r2")
    rows = [row for row in results.table("agreement").to_pylist() if row["step"] == step]
    judges = [f"{name} (judge-{name})" for name in JUDGES]
    of_people = {row["second"]: row for row in rows if row["first"] == "people"}
    assert set(of_people) == {"people", "majority", *judges}
    assert ("ann", "bob") in {(row["first"], row["second"]) for row in rows}
    drawn = tasks(labelled / "out", 1 if step == "support" else 2)
    agreed = {task["id"]: decision(task, 0) for task in drawn if decision(task, 0) == decision(task, 1)}
    places = {row.item_id: row.place for row in read_labels(str(labelled / "out" / "labels")).rows}
    right = {places[item_id]: word for item_id, word in agreed.items()}
    if step == "support":
        verdicts: defaultdict[Any, dict[str, str]] = defaultdict(dict)
        for row in results.table("verdicts").to_pylist():
            place = (step, row["query_id"], row["left_hash"], row["right_hash"])
            if row["step"] == step and place in right:
                verdicts[place][row["judge"][0]] = row["verdict"]
        ranks = {place: sorted(SUPPORT.index(word) for word in of.values()) for place, of in verdicts.items()}
        votes_of = {place: SUPPORT[rank[1]] for place, rank in ranks.items()}
        equal = {name: sum(right[place] == of[name] for place, of in verdicts.items()) for name in JUDGES}
        equal["m"] = sum(right[place] == word for place, word in votes_of.items())
        for judge in ("majority", *judges):
            assert of_people[judge]["agreement"] == pytest.approx(equal[judge[0]] / len(right))
    for judge in ("majority", *judges):
        row = of_people[judge]
        assert (row["items"], row["unmatched"]) == (len(agreed), 0)
        assert row["undecided"] == len(drawn) - len(agreed) > 0
