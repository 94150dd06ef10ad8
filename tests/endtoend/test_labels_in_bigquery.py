"""Decisions and labels in tables of BigQuery give what files give, and are refused alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.bigquery_tables import Tables, new_dataset
from support.cli import rankbeam
from support.emulators import Cloud
from support.inputs import write
from support.labelled import by_words, decided, tasks
from support.runs import evaluated

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.records.labels import ADDED, LABELS

pytest_plugins = ["support.emulators.fixtures"]

EXAMPLE = Path("examples/helpdesk/answers.yaml").absolute()
Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> str:
    text = EXAMPLE.read_text("utf-8").replace(
        "[nDCG@10, R@10, Faithfulness, ContextRecall, ClaimRecall]", "[Faithfulness]"
    )
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        text = text.replace(f" {name}", f" {EXAMPLE.parent / name}")
    return write(tmp_path_factory.mktemp("experiment") / "first.yaml", text)


@pytest.fixture(scope="module")
def out(experiment: str) -> Path:
    """A run with tasks."""
    out = Path(experiment).parent / "out"
    assert evaluated(experiment, output=str(out)).run["state"] == "done"
    assert rankbeam("label", str(out), "--sample", "32", "--metric", "Faithfulness").status == 0
    return out


@pytest.fixture
def tables(cloud: Cloud) -> Tables:
    return new_dataset(cloud)


def decisions(out: Path) -> Columns:
    rows = tasks(out)
    return {
        "id": [row["id"] for row in rows],
        "decision": [by_words(row) for row in rows],
        "annotator": ["ann"] * len(rows),
        "comment": [None, *["sure"] * (len(rows) - 1)],
    }


def applied(out: Path, *arguments: str) -> Any:
    return rankbeam("label", str(out), "--apply", *arguments)


@pytest.mark.campaign
def test_decisions_and_labels_in_tables_are_those_of_files(
    out: Path, experiment: str, tables: Tables, tmp_path: Path
) -> None:
    path = decided(tmp_path / "d.jsonl", tasks(out), by_words)
    assert applied(out, path, "--labels", str(tmp_path / "labels")).status == 0
    place = f"bigquery://{tables.dataset}.labels"
    for _ in range(2):  # the second time, nothing is new
        outcome = applied(out, tables.add(f"decisions{_}", decisions(out)), "--labels", place)
        assert outcome.status == 0, outcome.stderr
        assert "32 of 32 drawn queries are completely labelled" in outcome.stdout
    ours, theirs = (
        {replace(row, comment=None) for row in read_labels(one).rows} for one in (place, str(tmp_path / "labels"))
    )
    assert ours == theirs
    (stored,) = tables.client.query(f"SELECT COUNT(*) AS n FROM `{tables.dataset}.labels`").result()
    assert stored["n"] == len(read_labels(place).rows)
    assert not (out / "labels").exists()
    agreements = []
    for labels in (place, str(tmp_path / "labels")):
        text = (
            Path(experiment).read_text("utf-8").replace("service: overlap}", f'service: overlap, labels: "{labels}"}}')
        )
        text = text.replace("metrics: [", "metrics: [Faithfulness(labels=True), ")
        labelled = write(tmp_path / "labelled.yaml", text)
        assert rankbeam("evaluate", labelled, "--output", str(out)).status == 0
        run = find_run(str(out))
        own = [name for name in run.table("agreement").column_names if name not in ("run_id", "started_at")]
        means = sorted((key, mean.mean, mean.ci_low, mean.ci_high) for key, mean in run.means.items())
        agreements.append((run.table("agreement").select(own).to_pylist(), means))
    assert agreements[0] == agreements[1]
    assert any("labels=True" in key[2] for key, *_ in agreements[0][1])


def changed(out: Path, column: str, value: Any, row: int = 3) -> Columns:
    columns = decisions(out)
    columns[column][row] = value
    return columns


def test_what_is_wrong_in_a_table_is_refused_as_in_a_file(out: Path, tables: Tables) -> None:
    twice = decisions(out)
    twice["id"][1], twice["decision"][0], twice["decision"][1] = twice["id"][0], "supported", "not_stated"
    wrong = [
        (changed(out, "id", "nothing"), "there is no item 'nothing'"),
        (changed(out, "decision", "suported"), "unknown decision 'suported'; did you mean 'supported'?"),
        (twice, "decided 'not_stated' on item"),
        ({"id": [], "decision": []}, "has no decision about an item of the tasks"),
        ({"rank": [1]}, "has no decision about an item of the tasks"),
    ]
    place = f"bigquery://{tables.dataset}.labels"
    for number, (columns, problem) in enumerate(wrong):
        content = (
            pa.table(columns)
            if any(columns.values())
            else pa.schema([(name, pa.string()) for name in columns]).empty_table()
        )
        path = tables.add(f"wrong{number}", content)
        outcome = applied(out, path, "--labels", place)
        assert (outcome.status, problem in outcome.stderr, path in outcome.stderr) == (2, True, True), outcome.stderr
    assert "labels" not in [table.table_id for table in tables.client.list_tables(tables.dataset)]
    missing = applied(out, f"bigquery://{tables.dataset}.wrong9", "--labels", place)
    assert missing.status == 2
    assert "did you mean 'wrong" in missing.stderr


def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(
    out: Path, tables: Tables, tmp_path: Path
) -> None:
    rows, folder = decisions(out), str(tmp_path / "labels")
    some, others = ({name: values[part] for name, values in rows.items()} for part in (slice(4), slice(4, None)))
    assert applied(out, tables.add("first", some), "--labels", folder).status == 0
    labels = tables.add("labels", pq.read_table(folder).drop_columns(ADDED))
    outcome = applied(out, tables.add("second", others), "--labels", labels)
    assert outcome.status == 0, outcome.stderr
    hashes = [row.items_hash for row in read_labels(labels).rows]
    assert hashes.count(None) == 4
    assert len(hashes) > 4


def test_a_second_decision_that_contradicts_the_table_is_refused(out: Path, tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}.labels"
    assert applied(out, tables.add("first", decisions(out)), "--labels", place).status == 0
    before = read_labels(place).rows
    other = next(word for word in ("supported", "not_stated") if word != decisions(out)["decision"][3])
    outcome = applied(out, tables.add("second", changed(out, "decision", other)), "--labels", place)
    assert outcome.status == 2
    assert f"delete the earlier labels in {place}" in outcome.stderr
    assert read_labels(place).rows == before


@pytest.mark.parametrize("columns", [{"item_id": ["a"]}, {name: [1] for name in LABELS.names}])
def test_a_table_without_labels_is_refused(columns: Columns, experiment: str, tables: Tables, tmp_path: Path) -> None:
    place = tables.add("other", columns)
    text = Path(experiment).read_text("utf-8").replace("service: overlap}", f'service: overlap, labels: "{place}"}}')
    outcome = rankbeam("validate", write(tmp_path / "wrong.yaml", text))
    assert outcome.status == 2, outcome.stdout
    assert "judge.labels" in outcome.stderr
    assert place in outcome.stderr


def test_a_dataset_that_does_not_exist_is_refused(out: Path, tables: Tables) -> None:
    place = f"bigquery://{tables.dataset}x.labels"
    outcome = applied(out, tables.add("first", decisions(out)), "--labels", place)
    assert outcome.status == 2, outcome.stderr
    assert place in outcome.stderr
