"""First mistakes of newcomers on the command line: each is refused in one message that says what to do."""

import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.inputs import write
from support.processes import COMMAND, Process
from support.runs import rankbeam

from rankbeam.pipelines.cli import main

QRELS = "q1 0 d1 1\nq2 0 d2 1\n"
RUN = "q1 Q0 d1 1 2.0 a\nq2 Q0 d1 1 2.0 a\n"
XLSX = "PK\x03\x04\x14\0\0\0 and more"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "qrels.txt", QRELS)
    write(tmp_path / "a.run", RUN)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "map,ndcg"], "write each metric on its own: map and ndcg (-m map -m ndcg)"),
        (["-m", "nDCG@10 RR"], "write each metric on its own: nDCG@10 and RR"),
        (
            ["-m", "nDCG@10,P(rel=2,judged_only=True)@5,RR"],
            "on its own: nDCG@10, P(rel=2,judged_only=True)@5 and RR (-m",
        ),
        (["-m", "nDCG@5,10"], "write each metric on its own: nDCG@5 and nDCG@10 (-m nDCG@5 -m nDCG@10)"),
        (["-m", "nDCG at 10!"], "write it as nDCG@10"),
        (["--output", "scores.json"], "scores.json: is the name of a file, and --output names a folder"),
        (["-m", "AP,P(rel=2)@5"], "(-m AP -m 'P(rel=2)@5')"),
        (["nDCG(gain=exp)@10"], "nDCG(gain=exp)@10: no such file; a metric would be -m 'nDCG(gain=exp)@10'"),
        (["-n", "-m", "map"], "unknown option -n; a file of this name would be ./-n"),
        (["qrel.txt"], "/qrel.txt: no such file; did you mean '"),
        (["--output", "a.run"], "a.run: is a file, and --output names a folder"),
        (["--output", ""], "--output is empty; name a folder for the results"),
        (["--output", "-"], "-: is standard output, and --output names a folder"),
    ],
)
def test_wrong_options_have_hints(options: list[str], message: str) -> None:
    refused = rankbeam("score", "qrels.txt", "a.run", *options)
    assert (refused.exit_code, message in refused.stderr.replace("\n", " ")) == (2, True), refused.stderr


@pytest.mark.parametrize(
    "command",
    ["report out --output", "goldens review out --output", "export a.json out --output", "gate out --junit"],
)
def test_standard_output_is_no_file_to_write(command: str) -> None:
    refused = rankbeam(*command.split(), "-")
    option = command.split()[-1]
    assert (refused.exit_code, f"{option} names a file, found '-'" in refused.stderr) == (2, True), refused.stderr
    assert not Path("-").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("semi.csv", "query_id;doc_id;grade\nq1;d1;1\n", "values separated by semicolons"),
        ("other.csv", "frage,dokument,note\nq1,d1,1\n", "CSV with the columns frage, dokument, note"),
        ("book.xlsx", XLSX, "a workbook of Excel or another ZIP archive; save the sheet as CSV"),
    ],
)
def test_tables_of_other_programs_are_named(name: str, content: str, message: str) -> None:
    write(Path(name), content)
    for files in ([name, "a.run"], ["qrels.txt", name]):
        refused = rankbeam("score", *files)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.stderr


def test_a_workbook_of_answers_is_named() -> None:
    write(Path("book.xlsx"), XLSX)
    refused = rankbeam("judge", "book.xlsx", "--service", "lexical")
    assert refused.exit_code == 2
    assert "a workbook of Excel or another ZIP archive; save the sheet as CSV" in refused.stderr


def piped(content: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, input=content, catch_exceptions=False)


def test_standard_input_is_a_file() -> None:
    command = ("score", "-", "a.run", "-m", "RR", "--format", "csv")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Process(COMMAND, *command, **pipes) as process:
        assert process.stdin is not None
        process.stdin.write(QRELS)
        stdout, stderr = process.communicate(60)
    assert "a,all,RR,0.5" in stdout, stderr
    assert "stdin,all,RR,0.5" in piped(RUN, "score", "qrels.txt", "-", "-m", "RR", "--format", "csv").stdout


def test_runs_clicks_and_traces_are_read_from_standard_input() -> None:
    assert "stdin: queries that differ most" in piped(RUN, "rbo", "a.run", "-").stdout
    clicks = "query_id,doc_id,clicks,impressions\nq1,d1,9,30\n"
    assert "1 judgement\n" in piped(clicks, "clicks", "-", "--grades", "0.1,0.2", "--output", "new.tsv").stdout
    refused = piped('{"spam": 1}\n', "traces", "-", "--output", "traces")
    assert (refused.exit_code, "standard input:1: " in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize(
    "arguments",
    ["validate -", "evaluate -", "goldens make -", "judge a.jsonl --service lexical --criteria -"],
)
def test_other_files_cannot_be_standard_input(arguments: str) -> None:
    refused = rankbeam(*arguments.split())
    assert refused.exit_code == 2
    assert "save it to a file" in refused.stderr


def test_standard_input_is_one_file_only() -> None:
    refused = rankbeam("score", "-", "-")
    assert (refused.exit_code, "can replace only one file" in refused.stderr) == (2, True)


@pytest.mark.long
def test_answers_that_share_no_query_are_refused_before_the_run(folder: Path) -> None:
    write(folder / "queries.jsonl", '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n')
    write(folder / "answers.jsonl", '{"query_id": "Q1", "answer": "yes", "contexts": []}\n')
    path = write(
        folder / "e.yaml",
        "name: e\ndataset: {queries: queries.jsonl}\nservices: {l: {type: lexical}}\njudge: {service: l}\n"
        "configurations: [{name: x, answers: {type: replay, path: answers.jsonl}}]\nmetrics: [Refused]\n",
    )
    for command in ("validate", "evaluate"):
        refused = rankbeam(command, path)
        assert refused.exit_code == 2
        assert "has no query in common with the queries" in refused.stderr
        assert "it has ids such as 'Q1', the queries such as 'q1'" in refused.stderr
    assert not list((folder / "out").rglob("*.parquet"))
    assert rankbeam("evaluate", path, "--allow-disjoint").exit_code != 2
    write(folder / "answers.jsonl", '{"query_id": "q2", "answer": "yes", "contexts": []}\n')
    assert "valid" in rankbeam("validate", path).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name the judge: --service openai:MODEL, or --service lexical"),
        (
            ["-m", "Faithfulness"],
            "--metric: Faithfulness is judged; name the model that judges: --service openai:MODEL",
        ),
        (["-m", "TokenF1", "--criteria", "criteria.yaml"], "name the judge: --service openai:MODEL"),
        (["--service", "openai"], "openai needs a model; write openai:MODEL"),
        (["--service", "openai:"], "openai needs a model; write openai:MODEL"),
        (["--service", "{type: openai, model: m}"], "rankbeam: --service base_url: is missing"),
        (["--service", "lexical", "-m", "nDCG@10"], "rankbeam: dataset.qrels: is missing; nDCG@10 needs judgements"),
        (["--service", "lexical", "-m", "Faithfulnes"], "rankbeam: --metric: unknown metric 'Faithfulnes'; did you"),
    ],
)
def test_a_judge_needs_a_model(options: list[str], message: str) -> None:
    write(Path("rows.jsonl"), '{"question": "a", "answer": "b", "contexts": ["c"]}\n')
    refused = rankbeam("judge", "rows.jsonl", *options)
    assert (refused.exit_code, message in refused.stderr.replace("\n", " ")) == (2, True), refused.stderr


@pytest.mark.parametrize("arguments", [["monitor", "out", "--tolerance", "nan"], ["plan", "e.yaml", "--detect", "nan"]])
def test_an_option_that_is_not_a_number_is_refused(arguments: list[str]) -> None:
    refused = rankbeam(*arguments)
    assert (refused.exit_code, "nan is not a number" in refused.stderr) == (2, True), refused.stderr


def test_a_file_of_gates_is_no_experiment() -> None:
    write(Path("gates.yaml"), "gates: [{metric: RR, at_least: 0.5}]\n")
    refused = rankbeam("evaluate", "gates.yaml")
    assert (refused.exit_code, "name: is missing" in refused.stderr) == (2, True), refused.stderr


def test_a_dry_run_names_the_runner_that_it_does_not_describe() -> None:
    rankbeam("init", "--example", "helpdesk")
    refused = rankbeam("evaluate", "helpdesk/experiment.yaml", "--runner", "DataflowRuner", "--dry-run")
    assert refused.exit_code == 2
    assert "the runner is DataflowRuner here; for Dataflow, add --runner DataflowRunner" in refused.stderr


@pytest.mark.parametrize("command", ["runs", "gate", "compare", "trend", "worst", "report", "status", "ledger"])
def test_a_bucket_out_of_reach_is_not_an_empty_one(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", offline)
    for name in ("STORAGE_EMULATOR_HOST", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    refused = rankbeam(command, "gs://bucket/out")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "storage.googleapis.com cannot be found" in refused.stderr
    assert "is there a network?" in refused.stderr
