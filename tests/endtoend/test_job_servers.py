"""Runs at a job server, as Flink, Prism and Spark have one; here it is Beam's own, in Python."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apache_beam.portability.api import beam_job_api_pb2
from support.cli import Outcome, rankbeam
from support.data import REPOSITORY
from support.flink.processes import free_ports
from support.inputs import trec_qrels, trec_run, write
from support.job_server import job_server
from support.processes import COMMAND, Process
from support.remote import answers, dataset, http, signalled, write_experiment
from support.runs import without_run
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.options import pipeline_options, refuse_unknown
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

HELPDESK = REPOSITORY / "examples" / "helpdesk"
TABLES = [name for name in tables.TABLES if name not in ("runs", "usage")]
GO_ON = "the same command continues from there"
QUERIES = 100


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a job server whose current folder is not ours."""
    with job_server(tmp_path_factory.mktemp("server")) as address:
        yield address


def on(address: str) -> list[str]:
    return ["--runner", "PortableRunner", "--job_endpoint", address]


def experiment_file(folder: Path, standin: Standin) -> str:
    """An experiment with a retriever that allows ten calls in a second."""
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": {"requests_per_minute": 600}}}
    base["configurations"] = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
    return write_experiment(folder, base)


def scored(folder: Path) -> str:
    """An experiment without calls; returns its path."""
    write(folder / "qrels", trec_qrels([("q1", "d", 1.0)]))
    write(folder / "a.run", trec_run([("q1", "d", 1.0)]))
    text = "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
    text += "configurations: [{name: a, retriever: {type: run_file, path: a.run}}]\n"
    return write(folder / "e.yaml", text)


@pytest.mark.long
def test_every_table_equals_the_local_runners(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(HELPDESK, tmp_path / "helpdesk")
    monkeypatch.chdir(tmp_path)  # relative paths must not depend on it once the job is submitted
    for output, options in (("local", []), ("portable", on(server))):
        arguments = ["helpdesk/experiment.yaml", "--output", output, "--run-id", "r", *options]
        outcome = rankbeam("evaluate", *arguments)
        assert outcome.status == 0, outcome.stderr
    one, other = Results(str(tmp_path / "local"), "r"), Results(str(tmp_path / "portable"), "r")
    for name in TABLES:
        assert without_run(one.table(name)) == without_run(other.table(name)), name
    shown = rankbeam("status", "portable")
    assert "state    done" in shown.stdout
    refused = rankbeam("cancel", "portable")
    assert refused.status == 2
    assert "has ended (done); there is nothing to cancel" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--paralelism=2"], "unknown option --paralelism; did you mean '--parallelism'?"),
        (["--qqqq=2"], "unknown option --qqqq; Beam and the runner have none of a similar name"),
        (["--parallelism=two"], "argument --parallelism: invalid int value: 'two'"),
        (["--output_executable_path=a.jar"], "--output_executable_path writes a jar instead of running a job"),
    ],
)
def test_options_that_are_refused(server: str, tmp_path: Path, options: list[str], message: str) -> None:
    outcome = rankbeam("evaluate", scored(tmp_path), *on(server), *options)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert message in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_options_of_the_job_server_pass_through() -> None:
    kind = beam_job_api_pb2.PipelineOptionType
    described = [
        beam_job_api_pb2.PipelineOptionDescriptor(name="object_reuse", type=kind.BOOLEAN),
        beam_job_api_pb2.PipelineOptionDescriptor(name="checkpointing_interval", type=kind.INTEGER),
    ]
    arguments = ["--runner=FlinkRunner", "--object_reuse", "--checkpointing_interval", "5"]
    pipeline_options(arguments)  # no job server has been asked yet
    refuse_unknown(arguments, of_server=described)
    with pytest.raises(InputError, match=r"--checkpointing_intervall; did you mean '--checkpointing_interval'\?"):
        refuse_unknown(["--checkpointing_intervall=5"], of_server=described)


def nowhere() -> str:
    """An address at which nothing listens."""
    return f"localhost:{free_ports(1)[0]}"


def refused(folder: Path, *options: str) -> str:
    outcome = rankbeam("evaluate", scored(folder), *options)
    assert (outcome.status, outcome.stdout) == (2, ""), outcome.stderr
    assert not (folder / "out").exists()
    return outcome.stderr


def test_an_endpoint_without_a_server_is_refused(tmp_path: Path) -> None:
    address = nowhere()
    assert f"no job server answers at {address}: Connection refused" in refused(tmp_path, *on(address))
    message = refused(tmp_path, *on("here"), "--environment_type=LOOPBACK")
    assert "--job_endpoint must be HOST:PORT; found 'here'" in message
    assert "--runner=PortableRunner needs --job_endpoint" in refused(tmp_path, "--runner=PortableRunner")


def test_a_wrong_flink_or_jar_is_refused(tmp_path: Path) -> None:
    flink = ["--runner=FlinkRunner", "--environment_type=LOOPBACK"]
    address = nowhere()
    message = refused(tmp_path, *flink, f"--flink_master={address}")
    assert f"--flink_master: no Flink answers at http://{address}" in message
    message = refused(tmp_path, *flink, "--flink_job_server_jar=no.jar")
    assert "Beam's job server cannot be fetched" in message
    jar = write(tmp_path / "a.jar", "no jar")
    message = refused(tmp_path, *flink, f"--flink_job_server_jar={jar}", "--job_server_java_launcher=no-java")
    assert "Beam's job server cannot be started: no-java is not installed, or not executable" in message
    message = refused(tmp_path, *flink, f"--flink_job_server_jar={jar}", f"--job_server_java_launcher={sys.executable}")
    assert "Beam's job server ended at once, with status 2" in message  # Python, which has no option -jar


def test_an_input_that_a_worker_refuses_is_one_message(server: str, tmp_path: Path) -> None:
    path = scored(tmp_path)
    write(tmp_path / "a.run", trec_run([("q1", "d", 1.0)] * 3000) + "q1 Q0 e 2 high tag\n")
    outcome = rankbeam("evaluate", path, *on(server))
    assert (outcome.status, outcome.stdout) == (2, "")
    messages = [line for line in outcome.stderr.splitlines() if line.startswith("rankbeam: ")]
    assert messages[-1].startswith(f"rankbeam: {tmp_path}/a.run:")
    assert "Traceback" not in outcome.stderr


PLUGIN = """
from rankbeam import Connection
from rankbeam.transforms.clients.retrievers.http import Http


class Own(Http):
    async def connect(self) -> Connection:
        raise ValueError("a bug")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with a retriever whose connection cannot be made."""
    site = tmp_path / "site"
    write(site / "own_bug_at_server.py", PLUGIN)
    write(site / "own_bug-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: own-bug\nVersion: 1\n")
    write(site / "own_bug-1.dist-info" / "entry_points.txt", "[rankbeam.retrievers]\nown = own_bug_at_server:Own\n")
    monkeypatch.syspath_prepend(site)
    entry_points_of.cache_clear()
    yield "own"
    entry_points_of.cache_clear()


@pytest.mark.long
def test_a_job_that_fails_is_one_message(server: str, tmp_path: Path, own: str) -> None:
    with serve("http", answers=answers(3)) as standin:
        configuration = {"name": "own", "retriever": {**http(standin), "type": own}, "top_k": 20}
        base = {"dataset": dataset(tmp_path, 3), "configurations": [configuration]}
        base["quotas"] = {own: {"requests_per_minute": 600}}
        outcome = rankbeam("evaluate", write_experiment(tmp_path, base), "--run-id", "r1", *on(server))
    assert (outcome.status, outcome.stdout) == (1, "")
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("rankbeam: the job failed: ValueError: a bug (in step CallServices/")
    assert last.endswith(f"; all answers so far are in {tmp_path}/out/ledger, and {GO_ON}")
    assert "Traceback" not in outcome.stderr
    assert not (tmp_path / "out" / "query_metrics" / "r1").exists()


@pytest.mark.campaign
def test_an_interrupt_ends_the_calls_and_the_next_run_continues(server: str, tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=0.5) as standin:
        arguments = ["evaluate", experiment_file(tmp_path, standin), "--run-id", "r1", *on(server)]
        ended = signalled(arguments, signal.SIGINT, lambda: standin.stats().calls >= 30, tmp_path)
        begun = standin.stats()
        assert (ended.status, begun.answered) == (130, begun.calls), ended.stderr
        assert begun.calls < QUERIES
        assert "interrupted; the job is cancelled; all answers are in" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "out" / "runs" / "r1").exists()
        outcome = rankbeam(*arguments)
        assert outcome.status == 0, outcome.stderr
        assert standin.stats().calls == QUERIES


@pytest.mark.campaign
def test_a_run_whose_job_is_at_work_is_refused_until_it_is_cancelled(server: str, tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=0.5) as standin:
        arguments = ["evaluate", experiment_file(tmp_path, standin), "--run-id", "r1", *on(server)]
        with frozen(arguments, lambda: standin.stats().calls >= 5 and is_recorded(tmp_path), tmp_path):
            second: Outcome = rankbeam(*arguments)
            assert second.status == 2
            assert "is still writing the run r1; wait for it, cancel it (rankbeam cancel " in second.stderr
            cancelled = rankbeam("cancel", str(tmp_path / "out"))
            assert cancelled.status == 0, cancelled.stderr
            assert cancelled.stdout.startswith("cancelled rankbeam-remote-r1-")
            assert "; all answers so far are in " in cancelled.stdout
        outcome = rankbeam(*arguments)
        assert outcome.status == 0, outcome.stderr


def is_recorded(folder: Path) -> bool:
    """Return whether the job of the run r1 has its id."""
    return bool(json.loads((folder / "out" / "jobs" / "r1.json").read_text())["job_id"])


@contextmanager
def frozen(arguments: list[str], when: Callable[[], bool], cwd: Path) -> Iterator[None]:
    """A command that is stopped in the midst of its work as soon as something is so, and killed after the block."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with Process(COMMAND, *arguments, cwd=cwd, **silent) as process:
        deadline = time.monotonic() + 120
        while not when():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            process.kill()
