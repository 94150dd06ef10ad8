"""The command as users start it, a process: its exit status, and whatever it has to say before it ends."""

import csv
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
import yaml
from support import processes
from support.campaigns import in_campaigns, sized
from support.data import REPOSITORY
from support.inputs import tab_texts, trec_qrels, trec_run, write

PIPED = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
DONE, FAILED, REFUSED, INTERRUPTED, CLOSED_PIPE = 0, 1, 2, 130, 141
COMMAND = [sys.executable, "-m", "rankbeam"]
QUERIES = 4000


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Judgements and a run; what is found for a query is right for every second one."""
    judgements = [(f"q{number:05}", "d", 1.0) for number in range(QUERIES)]
    rows = [(query, "d" if number % 2 else "other", 1.0) for number, (query, _, _) in enumerate(judgements)]
    return write(tmp_path / "qrels", trec_qrels(judgements)), write(tmp_path / "a.run", trec_run(rows))


def run(arguments: Sequence[str], **more: object) -> "subprocess.CompletedProcess[str]":
    options: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, *arguments], text=True, check=False, cwd=REPOSITORY, timeout=120, **options
    )


@pytest.mark.long
def test_a_run_that_is_done(files: tuple[str, str]) -> None:
    outcome = run(["score", *files, "-m", "RR", "--format", "csv"])
    assert (outcome.returncode, outcome.stdout) == (DONE, "configuration,query_id,metric,value\na,all,RR,0.5\n")


@pytest.mark.campaign
def test_a_run_that_is_done_ends_so_every_time(files: tuple[str, str]) -> None:
    """Threads of Beam, gRPC and Arrow outlive the work: none of them may abort the process while Python ends."""
    arguments = ["score", *files, "-m", "RR", "--format", "csv"]
    outcomes = [run(arguments) for _ in range(sized(30, 6))]
    assert [(outcome.returncode, outcome.stderr) for outcome in outcomes if outcome.returncode != DONE] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_is_done_too(arguments: list[str]) -> None:
    outcome = run(arguments)
    assert (outcome.returncode, outcome.stderr) == (DONE, "")
    assert outcome.stdout.startswith("rankbeam " if arguments == ["--version"] else "Usage: ")
    assert outcome.stdout.endswith("\n")


@pytest.mark.long
@pytest.mark.parametrize("arguments", [["score", "no-such-qrels", "a.run"], ["scroe"]])
def test_input_that_is_refused(arguments: list[str]) -> None:
    outcome = run(arguments)
    assert (outcome.returncode, outcome.stdout) == (REFUSED, "")
    assert outcome.stderr.endswith("\n")
    assert "Traceback" not in outcome.stderr


def test_output_to_a_file_is_complete(files: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "printed.csv"
    with path.open("w") as printed:
        arguments = ["score", *files, "-m", "RR", "-m", "P@1", "-q", "--format", "csv"]
        outcome = processes.run(processes.COMMAND, *arguments, stdout=printed)
    assert outcome.returncode == DONE, outcome.stderr
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(rows) == 2 * (QUERIES + 1)
    values = {(row["query_id"], row["metric"]): float(row["value"]) for row in rows}
    expected = {(f"q{number:05}", metric): float(number % 2) for number in range(QUERIES) for metric in ("RR", "P@1")}
    assert values == expected | {("all", "RR"): 0.5, ("all", "P@1"): 0.5}


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["batch", "list", "--help"]])
def test_output_to_a_full_disk_is_one_message(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        outcome = run(arguments, stdout=full)
    assert (outcome.returncode, outcome.stderr) == (FAILED, "rankbeam: No space left on device\n")


@pytest.mark.parametrize("lines", [0, 1])
def test_a_pipe_that_is_closed_early(files: tuple[str, str], lines: int) -> None:
    arguments = ["score", *files, "-m", "RR", "-m", "P@1", "-q", "--format", "csv"]
    with processes.Process(processes.COMMAND, *arguments, **PIPED) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read_lines = [process.stdout.readline() for _ in range(lines)]  # as head -1 does
        process.stdout.close()
        stderr = process.stderr.read()
    assert read_lines == ["configuration,query_id,metric,value\n"][:lines]
    # What was written before the reader left may count as delivered.
    assert process.returncode in ([CLOSED_PIPE] if lines == 0 else [DONE, CLOSED_PIPE])
    assert "Traceback" not in stderr
    assert "BrokenPipe" not in stderr


# A retriever of somebody's own, as the README has one: it waits for ever, or it is broken.
RETRIEVER = """
import sys, threading
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters

class Own(RetrieverParameters):
    waits: bool

    def open(self, corpus):
        return self

    def retrieve(self, query, top_k):
        if not self.waits:
            raise ZeroDivisionError("a bug of its author's")
        print("asked", file=sys.stderr, flush=True)
        threading.Event().wait()

    def close(self):
        pass
"""


@dataclass(frozen=True)
class Plugin:
    """An experiment that asks a retriever of its own."""

    folder: Path

    def arguments(self, *, waits: bool) -> list[str]:
        write(self.folder / "queries.tsv", tab_texts([("q1", "text")]))
        write(self.folder / "qrels", trec_qrels([("q1", "d", 1.0)]))
        retriever = {"type": "own", "waits": waits}
        experiment = {
            "name": "own",
            "dataset": {"queries": "queries.tsv", "qrels": "qrels"},
            "configurations": [{"name": "own", "retriever": retriever}],
            "metrics": ["RR"],
            "output": {"path": "out"},
        }
        return ["evaluate", write(self.folder / "e.yaml", yaml.safe_dump(experiment))]

    def environment(self) -> dict[str, str]:
        package = self.folder / "package"
        write(package / "rankbeam_test_own.py", RETRIEVER)
        write(package / "own-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1\n")
        write(package / "own-1.dist-info" / "entry_points.txt", "[rankbeam.retrievers]\nown = rankbeam_test_own:Own\n")
        (self.folder / "scratch").mkdir()
        return os.environ | {"PYTHONPATH": str(package), "TMPDIR": str(self.folder / "scratch")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, *in_campaigns(signal.SIGTERM)])
def test_a_run_that_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    plugin = Plugin(tmp_path)
    arguments, environment = plugin.arguments(waits=True), plugin.environment()
    with processes.Process(processes.COMMAND, *arguments, env=environment, **PIPED) as process:
        assert process.stderr is not None
        before = list(takewhile(lambda line: "asked" not in line, process.stderr))
        assert process.poll() is None, before
        process.send_signal(number)
        printed, stderr = process.communicate(timeout=60)
    assert (process.returncode, printed) == (INTERRUPTED, "")
    assert "rankbeam: interrupted; nothing of this run was kept" in stderr
    assert "Traceback" not in stderr
    assert list((tmp_path / "scratch").iterdir()) == []
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_an_interrupt_that_ends_the_reader_of_the_messages_as_well(tmp_path: Path) -> None:
    """As Ctrl-C ends `tee` in `rankbeam evaluate e.yaml 2>&1 | tee log`."""
    plugin = Plugin(tmp_path)
    arguments, environment = plugin.arguments(waits=True), plugin.environment()
    with processes.Process(processes.COMMAND, *arguments, env=environment, **PIPED) as process:
        assert process.stderr is not None
        list(takewhile(lambda line: "asked" not in line, process.stderr))
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == INTERRUPTED
    assert list((tmp_path / "scratch").iterdir()) == []
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_bug_of_a_plug_in_is_named_with_its_line(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    arguments, environment = plugin.arguments(waits=False), plugin.environment()
    outcome = processes.run(processes.COMMAND, *arguments, env=environment, timeout=120)
    assert (outcome.returncode, outcome.stdout) == (REFUSED, "")
    assert re.search(
        r"ZeroDivisionError: a bug of its author's \(\S+\.py, line \d+\); correct it there", outcome.stderr
    )
    assert list((tmp_path / "scratch").glob("rankbeam*")) == []


@pytest.mark.long
def test_streams_that_are_closed(files: tuple[str, str], tmp_path: Path) -> None:
    """As daemons have it; the tables are written all the same."""
    out = tmp_path / "out"
    command = [*COMMAND, "score", *files, "-m", "RR", "--output", str(out)]
    closing = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command]
    done = subprocess.run(closing, check=False, cwd=REPOSITORY, timeout=120)
    assert done.returncode == DONE
    assert (out / "results.duckdb").exists()


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_files_and_pipes_get_utf_8_where_the_locale_has_another_encoding(encoding: str, tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels([("日本", "d", 1.0)]))
    path = write(tmp_path / "é.run", trec_run([("日本", "d", 1.0)]))
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    outcome = run(["score", qrels, path, "-m", "RR", "-q"], env=environment)
    lines = outcome.stdout.splitlines()
    assert (outcome.returncode, lines[-1].split()) == (DONE, ["é", "1.0000", "1"])
    assert [line.split(",")[1:] for line in lines[1:3]] == [["日本", "RR", "1.0"], ["all", "RR", "1.0"]]


@pytest.mark.parametrize(("hard", "status"), [(None, DONE), (60, FAILED)])
def test_a_command_may_have_as_many_files_open_as_the_user(hard: int | None, status: int) -> None:
    program = (
        "import resource\n"
        "from rankbeam import __main__ as start\n"
        "from rankbeam.pipelines import cli\n"
        "from rankbeam.transforms.clients.storage import spill\n"
        "def main(): [spill.join_pieces([(0, bytes(2 << 20))]) for _ in range(100)]\n"
        f"most = {hard} or resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (50, most))\n"
        "cli.main = main\n"
        "start.command()"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
    )
    assert outcome.returncode == status, outcome.stderr
    assert ("raise the limit of this shell with `ulimit -n 10000`" in outcome.stderr) == (status == FAILED)


def test_after_a_crash_python_prints_the_traceback_and_nothing_follows() -> None:
    """Taking a process down with frames in use has DuckDB print what it calls leaks."""
    program = (
        "import atexit, duckdb; from rankbeam import __main__ as start; from rankbeam.pipelines import cli\n"
        "atexit.register(print, 'taken down', flush=True)\n"
        "cli.main = lambda: 1 / 0\n"
        "start.command()"
    )
    command = [sys.executable, "-c", program]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert (outcome.returncode, outcome.stdout) == (FAILED, "")
    assert outcome.stderr.endswith("ZeroDivisionError: division by zero\n")
