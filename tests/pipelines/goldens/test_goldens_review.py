"""People review a benchmark in a table, and it is exported, through the command line."""

import csv
import io
import json
import os
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from beir.datasets.data_loader import GenericDataLoader
from support.cli import rankbeam
from support.goldens import goldens_file, lines, stable
from support.inputs import write

from rankbeam.pipelines.goldens.export import ExportSelection, beir
from rankbeam.pipelines.goldens.folder import GoldensFolder
from rankbeam.transforms.clients.formats.cases.read import read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.records.errors import InputError

Rows = list[dict[str, str]]
LOST = "g000000000001"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    lost = {"item_id": LOST, "decision": "accept"}  # about a question of documents that have changed
    write(folder / "out" / "reviews.jsonl", json.dumps(lost) + "\n")
    owner = {"machine": process.machine(), "pid": os.getpid(), "started": process.own_start_time()}
    write(folder / "out" / "work-other" / "owner", json.dumps(owner))  # of a run that is not over
    outcome = rankbeam("goldens", goldens_file(folder, reviews={"pool": 3}))
    assert outcome.status == 0
    write(folder / "out" / "stderr", outcome.stderr)
    return folder / "out"


def test_reviewed_questions_of_a_killed_run_are_not_lost_to_another_benchmark(out: Path) -> None:
    (out / "manifest.json").unlink()
    file = Path(goldens_file(out.parent))
    outcome = rankbeam("goldens", write(file, file.read_text().replace("name: made", "name: other")))
    assert (outcome.status, "holds the benchmark 'made'" in outcome.stderr) == (2, True)


def test_files_of_a_split_that_is_gone_are_deleted(out: Path) -> None:
    about = json.loads((out / "about.json").read_text())
    write(out / "about.json", json.dumps({**about, "splits": ["rest"]}))
    GoldensFolder(str(out)).publish()
    assert [path.name for path in (*out.glob("qrels/*"), *out.glob("splits/*"))] == ["rest.tsv", "rest"]


def test_runs_at_the_same_time_have_folders_of_their_own_for_answers(finished: Path) -> None:
    assert [path.name for path in finished.glob("work*")] == ["work-other"]


def test_decisions_about_questions_that_are_gone_are_counted(finished: Path) -> None:
    messages = (finished / "stderr").read_text()
    assert f"reviewed questions that are no longer in the benchmark: 1, such as {LOST}" in messages


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "out", ignore=shutil.ignore_patterns("ledger", "work-*")))


def table(out: Path) -> Rows:
    outcome = rankbeam("goldens", "review", str(out))
    assert outcome.status == 0, outcome.stderr
    return list(csv.DictReader(io.StringIO(outcome.stdout, newline="")))


def written(folder: Path, rows: Rows, name: str = "review.csv") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return write(folder / name, text.getvalue())


def answerable(rows: Rows) -> dict[str, str]:
    return next(row for row in rows if row["quotes"])


def test_decisions_are_taken_over_and_applying_them_again_changes_nothing(out: Path, tmp_path: Path) -> None:
    rows = table(out)
    edited = answerable(rows)
    rejected, accepted, *_ = [row for row in rows if row is not edited]
    words = edited["quotes"].split()
    edited |= {"decision": "edit", "question": "=What is kept?", "quotes": " ".join(words[:4]), "reviewer": "ann"}
    rejected |= {"decision": "Reject", "note": "dull", "quotes": "the documents say otherwise"}
    accepted["decision"] = "accept"
    path = written(tmp_path, rows)
    assert rankbeam("goldens", "apply", str(out), path).stdout == "3 of 8 items are reviewed\n"
    queries = {row["_id"]: row for row in lines(out / "queries.jsonl")}
    assert rejected["item_id"] not in queries
    assert queries[edited["item_id"]]["text"] == "=What is kept?"
    is_reviewed = {name for name, row in queries.items() if row["metadata"]["reviewed"]}
    assert is_reviewed == {edited["item_id"], accepted["item_id"]}
    (piece,) = [row for row in lines(out / "evidence.jsonl") if row["query_id"] == edited["item_id"]]
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    assert texts[piece["doc_id"]][piece["start"] : piece["end"]] == piece["quote"] == " ".join(words[:4])
    before = (out / "manifest.json").read_bytes()
    again = table(out)
    assert {row["item_id"]: row["question"] for row in again}[edited["item_id"]] == "'=What is kept?"
    rankbeam("goldens", "apply", str(out), path)
    rankbeam("goldens", "apply", str(out), written(tmp_path, again, "again.csv"))
    assert (out / "manifest.json").read_bytes() == before


def test_an_edited_answer_has_no_nuggets_of_the_old_one(out: Path, tmp_path: Path) -> None:
    rows = table(out)
    edited = answerable(rows)
    edited |= {"decision": "edit", "answer": "Never."}

    assert "items without nuggets, because their answer was edited: 1\n" in _applied(out, tmp_path, rows)
    references = {row["query_id"]: row for row in lines(out / "nuggets.jsonl")}
    assert references[edited["item_id"]] == {"query_id": edited["item_id"], "answer": "Never.", "answerable": True}
    assert all("nuggets" in row for name, row in references.items() if row["answerable"] and name != edited["item_id"])


def test_quotes_stay_where_they_are_in_a_text_that_repeats_itself(out: Path, tmp_path: Path) -> None:
    corpus = lines(out / "corpus.jsonl")
    shift = max(len(row["text"]) for row in corpus)
    twice = [{**row, "text": row["text"].ljust(shift) + row["text"]} for row in corpus]
    items = lines(out / "items.jsonl")
    for item in (item["made"] for item in items):
        item["spans"] = [re.sub(r"(\d+)-(\d+)$", lambda at: _later(at, shift), span) for span in item["spans"]]
        for piece in item["evidence"]:
            piece |= {"start": piece["start"] + shift, "end": piece["end"] + shift}
    for name, changed in {"corpus": twice, "items": items}.items():
        write(out / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in changed))
    rows = table(out)
    edited = answerable(rows)
    words = edited["quotes"].split()
    edited |= {"decision": "edit", "quotes": f"{edited['quotes']}\n{' '.join(words[1:4])}"}
    _applied(out, tmp_path, rows)

    pieces = [row for row in lines(out / "evidence.jsonl") if row["query_id"] == edited["item_id"]]
    assert [" ".join(piece["quote"].split()) for piece in pieces] == edited["quotes"].split("\n")
    assert all(piece["start"] >= shift for piece in pieces)


def _later(places: re.Match[str], shift: int) -> str:
    return "-".join(str(int(place) + shift) for place in places.groups())


def _applied(out: Path, folder: Path, rows: Rows) -> str:
    outcome = rankbeam("goldens", "apply", str(out), written(folder, rows))
    assert outcome.status == 0, outcome.stderr
    return outcome.stdout


def test_each_mistake_is_refused_with_its_line_and_nothing_is_taken_over(out: Path, tmp_path: Path) -> None:
    rows = table(out)
    with_quotes = [row for row in rows if row["quotes"]]
    with_quotes[0] |= {"decision": "acept"}
    with_quotes[1] |= {"decision": "edit", "quotes": "words that stand nowhere"}
    with_quotes[2] |= {"decision": "accept", "answer": "another one"}
    with_quotes[3] |= {"item_id": "g000000000000"}
    unanswerable = next(row for row in rows if not row["quotes"])
    sources = {item["made"]["item_id"]: item["made"]["spans"][0] for item in lines(out / "items.jsonl")}
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    source = sources[unanswerable["item_id"]].rpartition("#")[0]
    unanswerable |= {"decision": "edit", "quotes": " ".join(texts[source].split()[:4])}
    before = (out / "manifest.json").read_bytes()
    path = written(tmp_path, rows)
    outcome = rankbeam("goldens", "apply", str(out), path)
    starts = {row["item_id"]: number for row, number in zip(rows, _first_lines(rows), strict=True)}
    assert outcome.status == 2
    problems = ("did you mean 'accept'?", "does not occur", "write edit", "there is no item", "is unanswerable")
    for row, problem in zip([*with_quotes[:4], unanswerable], problems, strict=True):
        (message,) = [line for line in outcome.stderr.splitlines() if f"{path}:{starts[row['item_id']]}:" in line]
        assert problem in message
    assert (out / "manifest.json").read_bytes() == before


def _first_lines(rows: Rows) -> list[int]:
    """The line that each row begins in: a quote may hold line ends."""
    lengths = [1 + sum(cell.count("\n") for cell in row.values()) for row in rows]
    return [2 + sum(lengths[:number]) for number in range(len(rows))]


def test_a_table_with_decisions_is_never_overwritten_and_may_have_semicolons(out: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "review.csv")
    command = ["goldens", "review", str(out), "--output", path]
    assert rankbeam(*command).status == rankbeam(*command).status == 0  # the same table
    rows = table(out)
    rows[0]["decision"] = "accept"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=";")  # as Excel writes it in many countries
    writer.writeheader()
    writer.writerows(rows)
    write(Path(path), f"\ufeff{text.getvalue()}")  # and with its "CSV UTF-8"
    refused = rankbeam(*command)
    assert (refused.status, "exists already, and may have decisions" in refused.stderr) == (2, True)
    assert rankbeam("goldens", "apply", str(out), path).stdout == "1 of 8 items are reviewed\n"
    empty = rankbeam("goldens", "apply", str(out), write(tmp_path / "empty.csv", ""))
    assert (empty.status, "empty.csv: the file is empty" in empty.stderr) == (2, True)


def test_a_damaged_benchmark_is_refused_with_file_and_line(out: Path, tmp_path: Path) -> None:
    experiment = write(tmp_path / "e.yaml", f"name: e\ndataset: {{goldens: {out}}}\nconfigurations: []\n")
    command = {"items.jsonl": ["goldens", "review", str(out)], "manifest.json": ["validate", experiment]}
    for name, arguments in command.items():
        content = (out / name).read_bytes()
        write(out / name, content[: len(content) // 2])
        refused = rankbeam(*arguments)
        assert (refused.status, f"/{name}:" in refused.stderr) == (2, True), refused.stderr


def test_a_full_disk_takes_no_decisions_and_leaves_no_half_table(out: Path, tmp_path: Path) -> None:
    rows = table(out)
    for row in rows:
        row["decision"] = "accept"
    path = written(tmp_path, rows)
    before = (out / "reviews.jsonl").read_bytes()
    half = str(tmp_path / "half.csv")
    export = ["export", str(out), "--format", "csv", "--output", half]
    commands = ["apply", str(out), path], ["review", str(out), "--output", half], export
    with limited_files(500):
        outcomes = [rankbeam("goldens", *command) for command in commands]
    assert [(outcome.status, "cannot be written: " in outcome.stderr) for outcome in outcomes] == [(2, True)] * 3
    assert (out / "reviews.jsonl").read_bytes() == before
    assert not (tmp_path / "half.csv").exists()


def test_no_experiment_reads_a_benchmark_whose_files_are_written_in_part(out: Path, tmp_path: Path) -> None:
    rows = table(out)
    for row in rows:
        row["decision"] = "reject" if row is rows[0] else "accept"
    command = ["goldens", "apply", str(out), written(tmp_path, rows)]
    retriever = "{name: a, retriever: {type: bm25}, top_k: 5}"
    text = (
        f"name: e\ndataset: {{goldens: {out}}}\nconfigurations: [{retriever}]\nmetrics: [nDCG@5]\noutput: {{path: o}}\n"
    )
    experiment = write(tmp_path / "e.yaml", text)
    with limited_files((out / "provenance.jsonl").stat().st_size // 2):
        assert rankbeam(*command).status == 2
    refused = rankbeam("validate", experiment)
    assert (refused.status, "is published in part; run `rankbeam goldens" in refused.stderr) == (2, True)
    assert rankbeam(*command).status == rankbeam("validate", experiment).status == 0


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """Limit the size of files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["about.json", "reviews.jsonl"])
def test_damaged_decisions_are_refused_before_any_call_with_a_way_out(out: Path, name: str) -> None:
    command = ["goldens", goldens_file(out.parent, reviews={"pool": 3})]
    write(out / name, "{}")
    refused = rankbeam(*command)
    assert (refused.status, f"{name}" in refused.stderr, (out / "ledger").exists()) == (2, True, False)
    assert "copy it again, or delete" in refused.stderr
    (out / name).unlink()
    assert rankbeam(*command).status == 0


def test_two_reviewers_have_a_kappa_and_what_they_decide_differently_stays(out: Path, tmp_path: Path) -> None:
    first, second = table(out), table(out)
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        one["decision"] = "accept" if number < 5 else "reject"
        other["decision"] = "accept" if number < 4 else "reject"
    outcome = rankbeam(
        "goldens", "apply", str(out), written(tmp_path, first, "a.csv"), written(tmp_path, second, "b.csv")
    )
    assert "7 of 8 items are reviewed" in outcome.stdout
    assert "decided 8 items: Cohen's kappa 0.750" in outcome.stdout  # (7/8 - 1/2) / (1 - 1/2)
    assert f"therefore unchanged: 1, such as {first[4]['item_id']}" in outcome.stdout


def test_an_edit_is_no_acceptance_in_the_kappa(out: Path, tmp_path: Path) -> None:
    first, second = table(out), table(out)
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        one["decision"] = "accept" if number < 4 else "reject"
        other["decision"] = "accept" if number < 3 else "reject"
    second[3] |= {"decision": "edit", "question": "What is kept?"}
    files = written(tmp_path, first, "a.csv"), written(tmp_path, second, "b.csv")
    outcome = rankbeam("goldens", "apply", str(out), *files)
    # (7/8 - (4/8 * 3/8 + 4/8 * 4/8)) / (1 - (4/8 * 3/8 + 4/8 * 4/8))
    assert "decided 8 items: Cohen's kappa 0.778" in outcome.stdout
    assert f"therefore unchanged: 1, such as {first[3]['item_id']}" in outcome.stdout


def test_exports_hold_the_same_questions(out: Path, tmp_path: Path) -> None:
    queries = {row["_id"]: row for row in lines(out / "queries.jsonl")}
    names = {
        "auto_rag_eval": "benchmark.json",
        "adk_list": "list.json",
        "ragas": "ragas.jsonl",
        "csv": "table.csv",
        "beir": "beir",
        "trec": "trec",
    }
    for form, name in names.items():
        outcome = rankbeam("goldens", "export", str(out), "--format", form, "--output", str(tmp_path / name))
        assert outcome.status == 0, outcome.stderr
    questions = {row["text"] for row in queries.values()}
    benchmark = json.loads((tmp_path / "benchmark.json").read_text())
    assert {row["Question"] for row in benchmark} == questions
    assert all({"context", "Q&A Gen Profile", "Question", "Answer"} <= row.keys() for row in benchmark)
    ragas = {row["query_id"]: row for row in lines(tmp_path / "ragas.jsonl")}
    assert {row["user_input"] for row in ragas.values()} == questions
    with (tmp_path / "table.csv").open(newline="") as file:
        doc_ids = {row["item_id"]: row["doc_ids"].splitlines() for row in csv.DictReader(file)}
    assert doc_ids == {name: row["reference_context_ids"] for name, row in ragas.items()}
    documents, read, qrels = GenericDataLoader(str(tmp_path / "beir")).load(split="test")
    assert read.items() <= {name: row["text"] for name, row in queries.items()}.items()
    assert len(documents) == 24
    trec = [line.split() for line in (tmp_path / "trec" / "qrels.txt").read_text().splitlines()]
    assert {(query, doc): int(grade) for query, _, doc, grade in trec} == {
        (query, doc): grade for query, docs in qrels.items() for doc, grade in docs.items()
    }


def test_ids_that_beirs_reader_would_change_are_refused(out: Path, tmp_path: Path) -> None:
    item = next(item for item in GoldensFolder(str(out)).items() if item.made.evidence)
    evidence = replace(item.made.evidence[0], doc_id='"d"')
    quoted = ExportSelection("made", [replace(item, made=replace(item.made, evidence=(evidence,)))], {}, {})
    with pytest.raises(InputError, match="begin with a quotation mark"):
        beir(quoted, str(tmp_path))


def test_no_export_replaces_a_file_of_the_benchmark(out: Path) -> None:
    before = stable(out)
    outcome = rankbeam("goldens", "export", str(out), "--format", "beir", "--output", str(out))
    assert (outcome.status, "is a file of the benchmark itself" in outcome.stderr) == (2, True)
    outcome = rankbeam("goldens", "export", str(out), "--format", "beir", "--output", f"{out}/beir", "--reviewed")
    assert (outcome.status, "no question that --split and --reviewed select" in outcome.stderr) == (2, True)
    assert stable(out) == before


@pytest.mark.parametrize("form", ["auto_rag_eval", "adk_list"])
@pytest.mark.parametrize("has_ids", [True, False])
def test_files_of_auto_rag_eval_are_read_as_they_are_written(
    form: str, has_ids: bool, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rankbeam("goldens", "export", str(out), "--format", form, "--output", "b.json").status == 0
    rows = json.loads((tmp_path / "b.json").read_text())
    if not has_ids:  # as the tool itself writes them
        rows = [{key: row[key] for key in row if key not in ("item_id", "doc_ids")} for row in rows]
        (tmp_path / "b.json").write_text(json.dumps(rows))
    cases = list(read_cases(CaseSource("b.json")))
    answers = {row.get("Question", row.get("query")): row.get("Answer", row.get("reference")) for row in rows}

    assert len(cases) == len(rows)
    assert {case.question: case.reference for case in cases} == answers
    assert [bool(case.relevant) for case in cases] == [bool(row.get("doc_ids")) for row in rows]


def test_an_evalset_whose_name_has_a_hyphen_is_refused_with_advice(out: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "help-desk.evalset.json"
    outcome = rankbeam("goldens", "export", str(out), "--format", "adk", "--output", str(wrong))
    assert outcome.status == 2
    assert "not 'help-desk'; write help_desk.evalset.json" in outcome.stderr
    assert not wrong.exists()
