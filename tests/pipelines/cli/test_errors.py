"""Mistakes on the command line: an exit status, one message on stderr, and nothing on stdout."""

import gzip
from pathlib import Path

import pytest
from support.cli import Outcome, rankbeam, rankbeam_process
from support.inputs import json_texts, qrels_table, trec_qrels, trec_run, write, write_table

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run.evaluate import new_run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.records.errors import InputError

REFUSED = 2
ROWS = [("q1", "d1", 2.0), ("q1", "d2", 1.0), ("q2", "d1", 1.0)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with good files: qrels, a.run, queries, corpus and e.yaml."""
    write(tmp_path / "qrels", trec_qrels([("q1", "d1", 1.0), ("q2", "d2", 1.0)]))
    write(tmp_path / "a.run", trec_run(ROWS))
    write(tmp_path / "queries.jsonl", json_texts([("q1", "alpha"), ("q2", "beta")]))
    write(tmp_path / "corpus.jsonl", json_texts([("d1", "alpha"), ("d2", "beta")]))
    write(
        tmp_path / "e.yaml",
        "name: small\n"
        "dataset: {qrels: qrels, queries: queries.jsonl, corpus: corpus.jsonl}\n"
        "configurations:\n"
        "  - name: bm25\n"
        "    retriever: {type: bm25}\n"
        "metrics: [RR]\n"
        "output: {path: out}\n",
    )
    return tmp_path


def message(outcome: Outcome, status: int = REFUSED) -> str:
    """The message of a command that failed: all of stderr but the progress."""
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert "while running" not in outcome.stderr
    assert outcome.status == status, outcome.stderr
    text = outcome.stderr[outcome.stderr.index("rankbeam: ") :].removeprefix("rankbeam: ")
    return text.removesuffix("\n")


def scored(folder: Path, *arguments: str, qrels: str = "qrels", run: str = "a.run") -> Outcome:
    return rankbeam("score", str(folder / qrels), str(folder / run), *arguments)


def test_good_input_is_done(folder: Path) -> None:
    outcome = scored(folder, "-m", "RR", "--format", "csv")
    assert (outcome.status, outcome.stdout.split("\n")[1]) == (0, "a,all,RR,0.5")
    outcome = rankbeam("validate", str(folder / "e.yaml"))
    assert (outcome.status, outcome.stderr) == (0, "")
    assert "valid. 1 configuration from 1 retriever or run, 1 metric." in outcome.stdout


# --- Options -----------------------------------------------------------------------------------------------------


def test_a_misspelt_option_of_beam(folder: Path) -> None:
    expected = "unknown option --runnner; did you mean '--runner'?"
    assert message(rankbeam("evaluate", str(folder / "e.yaml"), "--runnner", "FnApiRunner")) == expected
    assert message(scored(folder, "--runnner=FnApiRunner")) == expected


@pytest.mark.parametrize(
    ("option", "meant"), [("--metrc", "--metric"), ("--outptu", "--output"), ("--fromat", "--format")]
)
def test_a_misspelt_option_of_ours(folder: Path, option: str, meant: str) -> None:
    assert message(scored(folder, option, "x")) == f"unknown option {option}; did you mean {meant!r}?"


def test_an_unknown_runner(folder: Path) -> None:
    assert "FnApiRuner" in message(scored(folder, "--runner=FnApiRuner"))


def test_a_word_that_is_no_option(folder: Path) -> None:
    assert "b.run" in message(scored(folder, "--direct_num_workers=1", "b.run"))
    assert "other.yaml" in message(rankbeam("evaluate", str(folder / "e.yaml"), "other.yaml"))


def test_options_before_the_experiment() -> None:
    outcome = rankbeam("evaluate", "--runner=FnApiRunner", "e.yaml")
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert "the experiment comes first" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["score", "qrels"], "RUN"),
        (["score"], "QRELS"),
        (["evaluate"], "EXPERIMENT"),
        (["score", "qrels", "a.run", "--format", "xml"], "xml"),
        (["score", "qrels", "a.run", "--relevance-level", "0"], "relevance-level"),
        (["score", "qrels", "a.run", "-M", "0"], "max-documents"),
        (["scor"], "scor"),
    ],
)
def test_usage(arguments: list[str], words: str) -> None:
    outcome = rankbeam(*arguments)
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert words in outcome.stderr


@pytest.mark.parametrize("run_id", ["a/b", "../a", "a b", "ä?", ""])
def test_a_run_id_that_is_no_name(folder: Path, run_id: str) -> None:
    error = message(rankbeam("evaluate", str(folder / "e.yaml"), "--run-id", run_id))
    assert error == f"run id {run_id!r}: use letters, digits, and - _ . with a letter or digit first"
    assert not (folder / "out").exists()


@pytest.mark.parametrize("run_id", [".", ".."])
def test_a_run_id_that_is_another_folder(folder: Path, run_id: str) -> None:
    # A run begins by deleting what is below its id: ".." would be the whole output.
    experiment = load_experiment(str(folder / "e.yaml"))
    with pytest.raises(InputError, match="run id"):
        new_run(experiment, run_id)


def test_options_of_beam_are_known() -> None:
    options = ["--runner=DirectRunner", "--direct_num_workers", "2", "--no_save_main_session", "--project=p"]
    assert pipeline_options(options).get_all_options()["direct_num_workers"] == 2


# --- Files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["evaluate", "validate"])
def test_a_missing_experiment(tmp_path: Path, command: str) -> None:
    assert message(rankbeam(command, f"{tmp_path}/none.yaml")) == f"{tmp_path}/none.yaml: no such file"


@pytest.mark.parametrize("command", ["evaluate", "validate"])
def test_every_mistake_of_an_experiment_is_told(folder: Path, command: str) -> None:
    text = (folder / "e.yaml").read_text().replace("[RR]", "[RR, ndgc]").replace("corpus.jsonl", "none.jsonl")
    path = write(folder / "e.yaml", text)
    first, second = message(rankbeam(command, path)).split("\n")
    assert first == f"{path}:2: dataset.corpus: {folder}/none.jsonl: no such file"
    assert second.startswith(f"{path}:6: metrics[1]: unknown metric 'ndgc'; did you mean ")


def test_missing_files_of_score(folder: Path) -> None:
    error = message(scored(folder, qrels="no.qrels", run="no.run"))
    assert sorted(error.split("\n")) == [f"{folder}/no.qrels: no such file", f"{folder}/no.run: no such file"]


@pytest.mark.parametrize("name", ["a.run", "a.run/below"])
def test_an_output_that_cannot_be_written_to(folder: Path, name: str) -> None:
    before = (folder / "a.run").read_bytes()
    for outcome in (
        rankbeam("evaluate", str(folder / "e.yaml"), "--output", f"{folder}/{name}"),
        scored(folder, "--output", f"{folder}/{name}"),
    ):
        assert message(outcome).startswith(f"{folder}/{name}")
    assert (folder / "a.run").read_bytes() == before


def test_an_unknown_metric(folder: Path) -> None:
    assert "did you mean 'Judged'?" in message(scored(folder, "-m", "RR", "-m", "Jugded@10"))
    assert "cutoff" in message(scored(folder, "-m", "nDCG@0"))


@pytest.mark.parametrize("content", ["", "\n\n", "query-id\tcorpus-id\tscore\n", None])
def test_qrels_without_a_judgement(folder: Path, content: str | None) -> None:
    path = folder / "none.qrels"
    qrels = write_table(path, qrels_table([])) if content is None else write(path, content)
    error = message(scored(folder, qrels="none.qrels"))
    assert error.startswith(f"{qrels}: ")
    assert "empty" in error or "no judgement" in error


def test_a_run_whose_gzip_is_cut_short(folder: Path) -> None:
    packed = gzip.compress(trec_run([(f"q{number}", "d", 1.0) for number in range(50_000)]).encode())
    path = write(folder / "cut", packed[: len(packed) // 2])
    error = message(scored(folder, run="cut"))
    assert error.startswith(f"{path}:")
    assert "cut short" in error


def test_a_run_whose_gzip_is_cut_at_its_end(folder: Path) -> None:
    # All lines can still be read when the run's format is recognised: only the pipeline finds the cut.
    rows = [(f"q{number}", f"d{number * number}", 1.0) for number in range(50_000)]
    path = write(folder / "cut", gzip.compress(trec_run(rows).encode())[:-4])
    error = message(scored(folder, run="cut"))
    assert error.startswith(f"{path}:")
    assert "cut short" in error


@pytest.mark.parametrize(
    ("qrels", "run", "words"),
    [
        ("a.run", "a.run", "a.run: is not a file of judgements"),
        ("qrels", "qrels", "qrels: is not a run"),
        ("queries.jsonl", "a.run", "it looks like JSON lines"),
    ],
)
def test_a_wrong_format(folder: Path, qrels: str, run: str, words: str) -> None:
    assert words in message(scored(folder, qrels=qrels, run=run))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1 Q0 d9 3 nan t", "the score is not a finite number"),
        ("q1 Q0 d9 3 high t", "the score 'high' is not a number"),
        ("q1 Q0 d9", "has fewer than 5 columns"),
    ],
)
def test_a_bad_line_of_a_run(folder: Path, line: str, words: str) -> None:
    path = write(folder / "bad.run", trec_run(ROWS) + line + "\n")
    assert message(scored(folder, run="bad.run")) == f"{path}:4: {words}"


def test_a_document_twice_in_a_ranking(folder: Path) -> None:
    path = write(folder / "twice.run", trec_run([*ROWS, ("q1", "d1", 0.5), ("q2", "d2", 0.5)]))
    error = message(scored(folder, run="twice.run"))
    assert error.startswith(f"{path}:4: document 'd1' occurs more than once in the ranking of query 'q1'")
    assert "line 1" in error
    assert "--duplicates collapse" in error
    outcome = scored(folder, "--duplicates", "collapse", "-m", "RR", "--format", "csv", run="twice.run")
    assert (outcome.status, outcome.stdout.split("\n")[1]) == (0, "twice,all,RR,0.75")


def test_a_document_twice_in_two_files_of_a_run(folder: Path) -> None:
    first = write(folder / "part.1", trec_run(ROWS))
    second = write(folder / "part.2", trec_run([("q2", "d2", 0.5), ("q1", "d1", 0.5)]))
    error = message(scored(folder, run="part.*"))
    assert error.startswith(f"{second}:2: ")
    assert f"{first}:1" in error


def test_two_grades_for_a_document(folder: Path) -> None:
    path = write(folder / "qrels", "q1 0 d1 1\nq1 0 d2 0\nq1 0 d1 2\n")
    assert message(scored(folder)).startswith(f"{path}:3: document 'd1' has two grades for query 'q1'")


def test_a_corpus_that_turns_out_to_be_bad(folder: Path) -> None:
    path = write(folder / "corpus.jsonl", json_texts([("d1", "alpha"), ("d2", "beta"), ("d1", "gamma")]))
    error = message(rankbeam("evaluate", str(folder / "e.yaml")))
    assert error.startswith(f"{path}:3: document 'd1' is given twice (also at line 1)")


def test_a_damaged_experiment(folder: Path) -> None:
    path = write(folder / "e.yaml", b"name: caf\xe9\n")
    assert message(rankbeam("validate", path)).startswith(f"{path}:1: ")


@pytest.mark.long
def test_a_failed_run_leaves_earlier_ones_as_they_were(folder: Path) -> None:
    output = str(folder / "kept")
    assert scored(folder, "--output", output).status == 0
    before = sorted(path for path in (folder / "kept").rglob("*") if path.is_file())
    write(folder / "bad.run", trec_run(ROWS) + "q1 Q0 d9 3 nan t\n")
    message(scored(folder, "--output", output, run="bad.run"))
    assert sorted(path for path in (folder / "kept").rglob("*") if path.is_file()) == before


# --- The same in a process of its own ----------------------------------------------------------------------------


def test_a_refusal_in_a_process_of_its_own(folder: Path) -> None:
    path = write(folder / "bad.run", trec_run(ROWS) + "q1 Q0 d9 3 nan t\n")
    outcome = rankbeam_process("score", str(folder / "qrels"), path)
    # Beam's worker processes print their own tracebacks; what the user should read comes last.
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert outcome.stderr.splitlines()[-1] == f"rankbeam: {path}:4: the score is not a finite number"


@pytest.mark.campaign
def test_a_refusal_in_a_worker_process(folder: Path) -> None:
    path = write(folder / "bad.run", trec_run(ROWS) + "q1 Q0 d9 3 nan t\n")
    workers = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    outcome = rankbeam_process("score", str(folder / "qrels"), path, *workers)
    # Beam's worker processes print their own tracebacks; what the user should read comes last.
    assert (outcome.status, outcome.stdout) == (REFUSED, "")
    assert outcome.stderr.splitlines()[-1] == f"rankbeam: {path}:4: the score is not a finite number"
