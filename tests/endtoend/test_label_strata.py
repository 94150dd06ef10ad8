"""Queries to label are drawn by strata, and means by labels and judge weigh the strata: held against plain Python."""

import json
import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write
from support.labelled import by_words, decided, tasks
from support.runs import evaluated

from rankbeam.pipelines.labels.draw import LabelSample, draw
from rankbeam.pipelines.labels.tasks import last_drawing
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, stratified_estimate
from rankbeam.transforms.records.slices import ALL

EXAMPLE = Path("examples/helpdesk/answers.yaml").absolute()
METRIC, JUDGED = "Faithfulness(labels=True,judge=lexical)", "Faithfulness(judge=lexical)"


@pytest.fixture(scope="module")
def text() -> str:
    text = EXAMPLE.read_text("utf-8").replace("top_k: 100", "top_k: 5")
    text = text.replace("[nDCG@10, R@10, Faithfulness, ContextRecall, ClaimRecall]", "[Faithfulness, ContextRecall]")
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        text = text.replace(f" {name}", f" {EXAMPLE.parent / name}")
    return text


@pytest.fixture(scope="module")
def out(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was labelled by strata, and run again with the labels."""
    folder = tmp_path_factory.mktemp("strata")
    out = folder / "out"
    evaluated(write(folder / "first.yaml", text), "first", out)
    drawn = rankbeam("label", str(out), "--sample", "20", "--metric", "Faithfulness", "--by", "difficulty")
    assert drawn.status == 0, drawn.stderr
    assert "drawn by difficulty" in drawn.stdout
    assert rankbeam("label", str(out), "--more", "10").status == 0
    for number in (1, 2):
        path = decided(folder / f"{number}.jsonl", tasks(out, number), by_words)
        assert rankbeam("label", str(out), "--apply", path).status == 0
    labelled = text.replace("service: overlap}", f"service: overlap, labels: {out / 'labels'}}}")
    labelled = labelled.replace("metrics: [", "metrics: [Faithfulness(labels=True), ")
    evaluated(write(folder / "second.yaml", labelled), "second", out)
    return out


def difficulties(run: Results) -> dict[str, str]:
    rows = run.table("query_metrics").to_pylist()
    return {row["query_id"]: one["value"] for row in rows for one in row["slices"] if one["name"] == "difficulty"}


@pytest.mark.campaign
def test_each_stratum_has_its_share_and_at_least_five_and_more_continues(out: Path) -> None:
    run, drawing = find_run(str(out)), last_drawing(str(out))
    assert drawing.by == "difficulty"
    first = draw(run, drawing, 20)
    both = draw(run, drawing, 30)
    counts = Counter(difficulties(run)[query_id] for query_id in {task.query_id for task in first})
    sizes = Counter(difficulties(run).values())
    assert counts == {name: max(5, round(20 * size / sum(sizes.values()))) for name, size in sizes.items()}
    for task in first:
        name = difficulties(run)[task.query_id]
        assert (task.probability, task.drawn_by) == (counts[name] / sizes[name], "difficulty")
    labelled = {row.query_id for row in read_labels(str(out / "labels")).rows}
    assert {task.query_id for task in first} <= {task.query_id for task in both} <= labelled


def values(run: Results, config_id: str, metric: str) -> dict[str, float]:
    return {
        row["query_id"]: cell["value"]
        for row in run.table("query_metrics").to_pylist()
        if row["config_id"] == config_id
        for cell in row["metrics"]
        if cell["metric"] == metric and cell["value"] is not None
    }


def expected(run: Results, config_id: str) -> Any:
    human, judged = values(run, config_id, METRIC), values(run, config_id, JUDGED)
    by_stratum: defaultdict[str, list[str]] = defaultdict(list)
    for query_id in judged:
        by_stratum[difficulties(run)[query_id]].append(query_id)
    samples = []
    for queries in by_stratum.values():
        labelled = [query_id for query_id in queries if query_id in human]
        others = np.array([judged[query_id] for query_id in queries if query_id not in human])
        labels, theirs = (np.array([of[query_id] for query_id in labelled]) for of in (human, judged))
        samples.append(LabelledSample.of(labels, theirs, others))
    assert len(samples) > 1
    return stratified_estimate(samples)


def test_means_weigh_strata_as_plain_python_does(out: Path) -> None:
    run, seen = find_run(str(out)), 0
    for row in run.configurations:
        mean = run.means[row["config_id"], ALL, METRIC]
        if mean.mean is None:
            continue
        seen += 1
        result = expected(run, row["config_id"])
        assert mean.mean == pytest.approx(result.mean, abs=1e-9)
        assert mean.std_error == pytest.approx(result.standard_error, abs=1e-9)
        assert (mean.ci_low, mean.ci_high) == pytest.approx(result.interval(), abs=1e-9)
        assert mean.judge_power == pytest.approx(result.power, abs=1e-9)
    assert seen


def test_labels_of_older_releases_and_of_two_attributes(out: Path, text: str, tmp_path: Path) -> None:
    (path,) = sorted((out / "labels").glob("*.parquet"))[:1]
    table = pq.read_table(path)
    old = tmp_path / "old"
    old.mkdir()
    pq.write_table(table.drop_columns(["drawn_by"]), old / "labels.parquet")
    assert read_labels(str(old)).strata is None
    assert read_labels(str(path)).strata == "difficulty"
    position = table.column_names.index("drawn_by")
    pq.write_table(table.set_column(position, "drawn_by", [["language"] * table.num_rows]), old / "other.parquet")
    pq.write_table(table, old / "third.parquet")
    wrong = text.replace("service: overlap}", f"service: overlap, labels: {old}}}")
    outcome = rankbeam("validate", write(tmp_path / "wrong.yaml", wrong))
    assert outcome.status == 2
    assert "drawn by difficulty and by language" in outcome.stderr


@pytest.mark.parametrize("name", ["difficutly", "rank(RR@10)", "difficulty=hard", ""])
def test_an_unknown_slice_is_refused(out: Path, name: str) -> None:
    outcome = rankbeam("label", str(out), "--sample", "20", "--metric", "ContextRelevance@3", "--by", name)
    assert outcome.status == 2
    assert "--by belongs" not in outcome.stderr
    assert len(list((out / "label-tasks").glob("*.parquet"))) == 2


def test_the_command_refuses_by_without_sample(out: Path) -> None:
    outcome = rankbeam("label", str(out), "--more", "5", "--by", "difficulty")
    assert (outcome.status, "--by belongs to --sample" in outcome.stderr) == (2, True)
    assert LabelSample.of(find_run(str(out)), "Faithfulness", [], 0, "difficulty").by == "difficulty"


def test_compare_has_the_differences_of_the_run(out: Path) -> None:
    run = find_run(str(out))
    outcome = rankbeam("compare", str(out), "--format", "json")
    assert outcome.status == 0, outcome.stderr
    ours = {
        (row["configuration"], row["metric"]): (row["difference"], row["ci_low"], row["ci_high"], row["p_value"])
        for row in json.loads(outcome.stdout)["comparisons"]
    }
    names = {row["config_id"]: row["name"] for row in run.configurations}
    seen = 0
    for row in run.comparisons:
        if row.slice == ALL and row.metric == METRIC and row.difference is not None:
            expected = (row.difference, row.ci_low, row.ci_high, row.p_value)
            assert ours[names[row.config_id], METRIC] == pytest.approx(expected, abs=1e-9)
            seen += 1
        elif row.slice == ALL and row.metric == METRIC:
            assert ours[names[row.config_id], METRIC][0] is None
    assert seen


def test_compare_needs_the_labels_and_the_values_of_the_judge(out: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(out, tmp_path / "out")
    moved = shutil.move(out / "labels", out / "elsewhere")
    try:
        outcome = rankbeam("compare", str(copied))
        assert (outcome.status, "labels" in outcome.stderr) == (2, True), outcome.stderr
        assert rankbeam("compare", str(copied), "-m", "ContextRecall(judge=lexical)").status == 0
    finally:
        shutil.move(moved, out / "labels")


@pytest.mark.long
@pytest.mark.parametrize(
    ("column", "value"), [("query_id", "of another dataset"), *in_campaigns(("right_hash", "0" * 64))]
)
def test_labels_of_other_datasets_and_texts_are_counted(
    out: Path, text: str, tmp_path: Path, column: str, value: str
) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    for number, path in enumerate((out / "labels").glob("*.parquet")):
        table = pq.read_table(path)
        changed = table.set_column(table.column_names.index(column), column, [[value] * table.num_rows])
        pq.write_table(changed.slice(0, 1), folder / f"{number}.parquet")
    labelled = text.replace("service: overlap}", f"service: overlap, labels: {folder}}}")
    one = yaml.safe_load(labelled)
    one |= {"configurations": one["configurations"][:1], "metrics": ["Faithfulness(labels=True)"]}
    outcome = rankbeam(
        "evaluate", write(tmp_path / "other.yaml", yaml.safe_dump(one)), "--output", str(tmp_path / "out")
    )
    assert outcome.status == 0, outcome.stderr
    assert re.search(r"\d labels of the step support are of texts that .* did not judge in this run", outcome.stdout)
    assert "0 queries completely labelled" in outcome.stderr
