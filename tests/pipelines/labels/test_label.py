"""People label a blinded sample of a run, through the command line."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.labelled import by_words, decided, tasks
from support.runs import evaluated

from rankbeam.pipelines.labels.draw import LabelSample, draw
from rankbeam.pipelines.labels.tasks import indexes, last_drawing, read_index, write_tasks
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.run.folders import sole_writer
from rankbeam.transforms.clients.formats.labels import read_labels
from rankbeam.transforms.records.labels import item_id_of, text_hash

EXAMPLE = Path("examples/helpdesk/answers.yaml").absolute()
SWEPT = "bm25:k1=0.9,b=0.4"  # a name as the grid makes them


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the example, judged by the metric that is labelled and by no other."""
    out = tmp_path_factory.mktemp("labelled") / "out"
    text = EXAMPLE.read_text("utf-8").replace("Faithfulness, ContextRecall, ClaimRecall]", "Faithfulness]")
    text = text.replace("name: bm25-body-only", f"name: '{SWEPT}'")
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        text = text.replace(f" {name}", f" {EXAMPLE.parent / name}")
    assert evaluated(write(out.parent / "e.yaml", text), output=str(out)).run["state"] == "done"
    return out


@pytest.fixture
def out(labelled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelled, tmp_path / "out", ignore=shutil.ignore_patterns("ledger", "report.html")))


@pytest.fixture
def sampled(out: Path) -> Path:
    outcome = rankbeam("label", str(out), "--sample", "6", "--metric", "Faithfulness")
    assert outcome.status == 0, outcome.stderr
    return out


def as_csv(path: Path, rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return write(path, text.getvalue())


def table(out: Path) -> list[dict[str, str]]:
    content = (out / "label-tasks" / "tasks-001.csv").read_text("utf-8")
    return list(csv.DictReader(io.StringIO(content, newline="")))


@pytest.mark.long
def test_tasks_say_nothing_about_configurations_and_verdicts(sampled: Path) -> None:
    names = [row["name"] for row in find_run(str(sampled)).configurations]
    for path in (sampled / "label-tasks").glob("tasks-001.[chj]*"):
        content = path.read_text("utf-8")
        assert not any(name in content for name in names), path
        assert "words in common" not in content  # the judge's reason
    assert all(task["decisions"] == ["contradicted", "not_stated", "supported"] for task in tasks(sampled))


def test_further_queries_continue_the_same_order(sampled: Path) -> None:
    assert rankbeam("label", str(sampled), "--more", "4").status == 0
    run, drawing = find_run(str(sampled)), last_drawing(str(sampled))
    at_once = draw(run, drawing, 10)
    one_by_one = [*tasks(sampled), *tasks(sampled, 2)]
    assert [task["id"] for task in one_by_one] == list(dict.fromkeys(task.item_id for task in at_once))
    assert {task.probability for task in at_once} == {10 / 64}
    assert not {task["query"] for task in tasks(sampled)} & {task["query"] for task in tasks(sampled, 2)}


@pytest.mark.parametrize("query_id", ["q629", "q143", "q2"])
def test_no_spreadsheet_takes_an_id_for_a_number(query_id: str) -> None:
    hashed = text_hash("\0".join(["grade", query_id, "", text_hash("t")]))
    assert hashed.startswith({"q629": "0863042383522739", "q143": "3124618391e33612"}.get(query_id, ""))
    assert not re.fullmatch(r"[0-9]+(e[0-9]+)?", item_id_of("grade", query_id, None, text_hash("t")))


def test_names_of_a_grid_with_commas_can_be_listed(out: Path) -> None:
    outcome = rankbeam("label", str(out), "--sample", "3", "--configurations", f"bm25-exact-words, {SWEPT},bm25")
    assert outcome.status == 0, outcome.stderr
    assert last_drawing(str(out)).configurations == ("bm25-exact-words", SWEPT, "bm25")


def test_applying_decisions_again_changes_nothing(sampled: Path, tmp_path: Path) -> None:
    path = decided(tmp_path / "ann.jsonl", tasks(sampled), by_words)
    content = Path(path).read_text("utf-8")
    write(Path(path), content.replace("}\n", ', "note": "a\u2028b\u0085c"}\r\n'))  # browsers do not escape these two
    first, second = (rankbeam("label", str(sampled), "--apply", path) for _ in range(2))
    assert first.status == 0, first.stderr
    assert first.stdout == second.stdout
    assert "6 of 6 drawn queries are completely labelled" in first.stdout
    labels = read_labels(str(sampled / "labels"))
    assert {row.item_id for row in labels.rows} == {task["id"] for task in tasks(sampled)}
    assert len(list((sampled / "labels").glob("*.parquet"))) == 1


def test_of_two_commands_at_once_one_is_refused(sampled: Path, tmp_path: Path) -> None:
    path = decided(tmp_path / "a.jsonl", tasks(sampled), by_words)
    with sole_writer(str(sampled), "labels", "labels", "output"):  # as another process would
        for words in (["--apply", path], ["--more", "1"]):
            refused = rankbeam("label", str(sampled), *words)
            assert (refused.status, "another process is writing labels of this folder" in refused.stderr) == (2, True)
    assert not (sampled / "labels").exists()
    assert rankbeam("label", str(sampled), "--apply", path).status == 0


def test_a_table_of_a_spreadsheet_is_read_and_empty_decisions_are_counted(sampled: Path, tmp_path: Path) -> None:
    rows = table(sampled)
    for row in rows[1:]:
        row["decision"] = "Not stated"
    rows.append(dict.fromkeys(rows[0], ""))  # spreadsheets save cleared rows
    outcome = rankbeam("label", str(sampled), "--apply", as_csv(tmp_path / "t.csv", rows), "--annotator", "bob")
    assert outcome.status == 0, outcome.stderr
    assert "1 item has no decision" in outcome.stdout
    assert "5 of 6 drawn queries are completely labelled" in outcome.stdout
    assert {row.annotator for row in read_labels(str(sampled / "labels")).rows} == {"bob"}


def test_unknown_ids_and_decisions_and_contradictions_are_refused_with_their_lines(
    sampled: Path, tmp_path: Path
) -> None:
    first, second, *_ = tasks(sampled)
    rows = [
        {"id": first["id"], "decision": "supported", "annotator": "ann"},
        {"id": "nobody", "decision": "supported", "annotator": "ann"},
        {"id": second["id"], "decision": "suported", "annotator": "ann"},
        {"id": first["id"], "decision": "not_stated", "annotator": "ann"},
        {"id": first["id"], "decision": "supported", "annotator": "ann"},
    ]
    path = write(tmp_path / "wrong.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    outcome = rankbeam("label", str(sampled), "--apply", path)
    assert outcome.status == 2
    assert "wrong.jsonl:2: there is no item 'nobody'" in outcome.stderr
    assert "wrong.jsonl:3: unknown decision 'suported'; did you mean 'supported'?" in outcome.stderr
    assert "wrong.jsonl:4: 'ann' decided 'not_stated'" in outcome.stderr
    assert "wrong.jsonl:5" not in outcome.stderr
    assert not (sampled / "labels").exists()


def test_a_later_file_does_not_contradict_stored_labels(sampled: Path, tmp_path: Path) -> None:
    rows = tasks(sampled)
    assert rankbeam("label", str(sampled), "--apply", decided(tmp_path / "a.jsonl", rows, by_words)).status == 0
    outcome = rankbeam("label", str(sampled), "--apply", decided(tmp_path / "b.jsonl", rows, lambda _: "contradicted"))
    assert outcome.status == 2
    assert "and before" in outcome.stderr
    other = decided(tmp_path / "c.jsonl", rows, lambda _: "contradicted", "bob")
    assert rankbeam("label", str(sampled), "--apply", other).status == 0


def test_annotations_of_phoenix_and_langfuse_are_matched_or_counted(sampled: Path, tmp_path: Path) -> None:
    first, second, third, *_ = tasks(sampled)
    rows = [
        {"metadata": {"rankbeam_id": first["id"]}, "label": "supported", "annotator_kind": "HUMAN", "score": 1},
        {"rankbeam_id": second["id"], "stringValue": "not_stated", "authorUserId": "u1", "comment": "see table"},
        {"metadata": {"rankbeam_id": "of another project"}, "label": "supported"},
        {"attributes": {"metadata": {"rankbeam_id": third["id"]}}, "annotation": {"label": "supported"}},
    ]
    outcome = rankbeam("label", str(sampled), "--apply", write(tmp_path / "export.json", json.dumps(rows)))
    assert outcome.status == 0, outcome.stderr
    assert "1 annotation of no item" in outcome.stdout
    result = {row.item_id: row for row in read_labels(str(sampled / "labels")).rows}
    assert {item: row.decision for item, row in result.items()} == {
        first["id"]: "supported",
        second["id"]: "not_stated",
        third["id"]: "supported",
    }
    assert (result[second["id"]].annotator, result[second["id"]].comment) == ("u1", "see table")


def test_annotations_by_models_are_not_labels_of_people(sampled: Path, tmp_path: Path) -> None:
    first, second, third, fourth, *_ = tasks(sampled)
    rows = [
        {"rankbeam_id": first["id"], "label": "relevant", "annotator_kind": "LLM"},
        {"rankbeam_id": second["id"], "result": {"label": "supported"}, "annotator_kind": "CODE"},
        {"rankbeam_id": third["id"], "stringValue": "supported", "source": "EVAL"},
        {"rankbeam_id": third["id"], "stringValue": "not_stated", "source": "ANNOTATION"},
        {"rankbeam_id": fourth["id"], "label": "supported", "annotator_kind": "HUMAN"},
    ]
    outcome = rankbeam("label", str(sampled), "--apply", write(tmp_path / "export.json", json.dumps(rows)))
    assert outcome.status == 0, outcome.stderr
    assert "3 annotations by models or code left out" in outcome.stdout
    decisions = {row.item_id: row.decision for row in read_labels(str(sampled / "labels")).rows}
    assert decisions == {third["id"]: "not_stated", fourth["id"]: "supported"}


def test_decisions_divided_among_annotators_are_counted(sampled: Path, tmp_path: Path) -> None:
    rows = [{"id": task["id"], "decision": "supported", "annotator": "ann"} for task in tasks(sampled)]
    rows[0] |= {"annotator": "bob"}
    rows[1] |= {"annotator": "Adjudicated"}
    path = write(tmp_path / "some.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    outcome = rankbeam("label", str(sampled), "--apply", path)
    assert outcome.status == 0, outcome.stderr
    assert {row.annotator for row in read_labels(str(sampled / "labels")).rows} == {"ann", "bob", "adjudicated"}
    assert "6 of 6 drawn queries are completely labelled" in outcome.stdout
    assert "1 of these have no annotator who decided all items, so means by labels leave them out" in outcome.stdout


def test_a_sample_is_continued_after_one_for_another_metric(sampled: Path) -> None:
    (index,) = indexes(str(sampled))
    write_tasks(str(sampled), read_index(index)[0], LabelSample("ContextRelevance@5", ("bm25",)))
    outcome = rankbeam("label", str(sampled), "--more", "4", "--metric", "Faithfulness")
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout.startswith("Faithfulness(judge=lexical) of ")
    assert len({task["query"] for task in (*tasks(sampled), *tasks(sampled, 3))}) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample", "5"], "draw further ones with --more N --metric 'Faithfulness(judge=lexical)'"),
        (["--sample", "5", "--metric", "AP"], "AP needs whole rankings"),
        (["--sample", "5", "--metric", "nDGC@5"], "did you mean"),
        (["--sample", "5", "--metric", "Refused"], "has no metric Refused"),
        (["--sample", "5", "--configurations", "bm52"], "did you mean 'bm25'?"),
        (["--sample", "5", "--more", "5"], "say one of"),
        (["--more", "5", "--seed", "2"], "belong to --sample"),
        (["--queries", "absent.jsonl"], "absent.jsonl: cannot be opened: No such file"),
        (["--queries", "absent.jsonl", "--sample", "5"], "say one of"),
        ([], "say one of"),
        (["--apply", "absent.csv"], "absent.csv"),
    ],
)
def test_wrong_uses_are_refused(sampled: Path, options: list[str], message: str) -> None:
    outcome = rankbeam("label", str(sampled), *options)
    assert outcome.status == 2
    assert message in outcome.stderr


def test_a_file_without_the_columns_of_decisions_is_refused_with_their_names(sampled: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"ID;Grade\r\n{tasks(sampled)[0]['id']};supported\r\n")
    outcome = rankbeam("label", str(sampled), "--apply", path)
    assert outcome.status == 2
    assert "has no decision about an item of the tasks; it needs `id` and `decision`" in outcome.stderr


def test_without_tasks_nothing_is_continued_or_applied(out: Path, tmp_path: Path) -> None:
    assert "draw the first ones with --sample N" in rankbeam("label", str(out), "--more", "3").stderr
    path = write(tmp_path / "some.jsonl", '{"id": "a", "decision": "supported"}\n')
    assert "holds no tasks to label" in rankbeam("label", str(out), "--apply", path).stderr


def test_chosen_queries_are_labelled_and_serve_agreement_only(sampled: Path, tmp_path: Path) -> None:
    drawn = tasks(sampled)
    marked = write(
        tmp_path / "marked.jsonl", '{"query_id": "h021", "comment": "\u2028"}\r\nh010\n\n{"query_id": "h021"}\n'
    )
    outcome = rankbeam("label", str(sampled), "--queries", marked, "--metric", "Faithfulness")
    assert outcome.status == 0, outcome.stderr
    assert ": 2 queries, " in outcome.stdout
    chosen = tasks(sampled, 2)
    assert [task["query"] for task in chosen][:1] == ["which file types have previews"]
    assert rankbeam("label", str(sampled), "--more", "2").status == 0  # goes on with the random ones
    assert len({task["query"] for task in (*drawn, *tasks(sampled, 3))}) == 8
    path = decided(tmp_path / "ann.jsonl", [*drawn, *chosen], by_words)
    assert rankbeam("label", str(sampled), "--apply", path).status == 0
    labels = read_labels(str(sampled / "labels"))
    random = {task.query_id for task in draw(find_run(str(sampled)), last_drawing(str(sampled)), 6)}
    assert {row.query_id for row in labels.rows} == random | {"h021", "h010"}
    assert {query_id for query_id, _ in labels.drawn} == random


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("h999\n", [], "query 'h999' has no value of Faithfulness(judge=lexical); valid are: h001, "),
        ('{"id": "h001"}\n', [], "marked.jsonl:1: has no query_id"),
        ('h001\n{"query_id": \n', [], "marked.jsonl:2: is not JSON"),
        ("\n", [], "names no query; mark queries in the report"),
        ("h001\n", ["--metric", "nDCG@5"], "which need a random sample; use --sample N"),
    ],
)
def test_files_of_queries_that_cannot_be_labelled_are_refused(
    out: Path, tmp_path: Path, content: str, options: list[str], message: str
) -> None:
    outcome = rankbeam("label", str(out), "--queries", write(tmp_path / "marked.jsonl", content), *options)
    assert outcome.status == 2
    assert message in outcome.stderr
