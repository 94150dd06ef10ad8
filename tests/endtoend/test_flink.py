"""Runs on a real Flink cluster: a JobManager, TaskManagers and Python workers as processes of their own."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.campaigns import SHARE
from support.cli import rankbeam_process
from support.engines import WITHIN_S, evaluated, same
from support.flink import Cluster, cluster, missing_flink
from support.flink.cluster import RESTART
from support.goldens import goldens_file, stable
from support.remote import answers, dataset, http, signalled, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

QUERIES, PER_MINUTE = 300, 600
LONG = 400
"""Answers with 72 kB of contexts, of which one worker of the test's cluster sorts 8 MB."""

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(missing_flink() is not None, reason=str(missing_flink())),
]
whole = pytest.mark.skipif(SHARE < 1, reason="takes minutes: make flink-test runs it")


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("flink")) as running:
        yield running


def experiment_file(folder: Path, standin: Standin, per_minute: int = PER_MINUTE) -> str:
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": {"requests_per_minute": per_minute}}}
    base["configurations"] = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
    return write_experiment(folder, base)


@whole
def test_an_interrupt_cancels_the_job_and_ends_its_calls(flink: Cluster, tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=0.5) as standin:
        path = experiment_file(tmp_path, standin)
        arguments = ["evaluate", path, "--run-id", "r1", *flink.options(external=True)]
        ended = signalled(arguments, signal.SIGINT, lambda: standin.stats().calls >= 50, tmp_path, within_s=WITHIN_S)
        begun = standin.stats()
        assert ended.status == 130, ended.stderr
        assert begun.calls < QUERIES
        assert flink.jobs()[-1]["state"] in ("CANCELED", "FAILED")  # whichever Flink hears of first
        assert "interrupted; the job is cancelled; all answers so far are in" in ended.stderr
        assert not (tmp_path / "out" / "runs" / "r1").exists()
        time.sleep(5)  # a worker that was left behind would go on
        assert standin.stats().calls == begun.calls
        evaluated(path, tmp_path / "out", *flink.options(external=True))
        assert standin.stats().calls <= QUERIES * 1.05


@whole
def test_a_job_goes_on_without_the_command_that_submitted_it(flink: Cluster, tmp_path: Path) -> None:
    """SIGKILL of the command: its job is known, refused a second time, and cancelled from anywhere."""
    with serve("http", answers=answers(QUERIES), latency_s=0.5) as standin:
        path, output = experiment_file(tmp_path, standin, per_minute=60), str(tmp_path / "out")
        arguments = ["evaluate", path, "--run-id", "r", *flink.options(external=True)]
        signalled(arguments, signal.SIGKILL, lambda: standin.stats().calls >= 5, tmp_path, within_s=WITHIN_S)
        assert "state    running" in rankbeam_process("status", output).stdout
        refused = rankbeam_process(*arguments, timeout_s=WITHIN_S)
        assert refused.status == 2
        assert "is still writing the run r; wait for it, cancel it (rankbeam cancel " in refused.stderr
        cancelled = rankbeam_process("cancel", output, timeout_s=WITHIN_S)
        assert cancelled.status == 0, cancelled.stderr
        begun = standin.stats().calls
        assert begun < QUERIES
        time.sleep(5)  # a worker that was left behind would go on
        assert standin.stats().calls == begun


@whole
def test_a_benchmark_equals_the_local_runners(flink: Cluster, tmp_path: Path) -> None:
    path = goldens_file(tmp_path, items=4, reviews={"pool": 3})
    for name, options in {"local": [], "flink": flink.options(external=True)}.items():
        outcome = rankbeam_process("goldens", path, "--output", str(tmp_path / name), *options, timeout_s=WITHIN_S)
        assert outcome.status == 0, outcome.stderr[-4000:]
    assert stable(tmp_path / "flink") == stable(tmp_path / "local")


@whole
def test_a_lane_has_more_tasks_than_fit_into_a_sort_buffer(flink: Cluster, tmp_path: Path) -> None:
    """All tasks of a lane have one key; by default Flink refuses values of a key that it cannot sort in memory."""
    context = "A fox eats three geese. " * 1_000
    rows = [
        {"query_id": f"q{number}", "answer": "A fox eats.", "contexts": [{"text": f"{number} {context}"}] * 3}
        for number in range(LONG)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    queries = [{"query_id": row["query_id"], "text": f"What eats goose {number}?"} for number, row in enumerate(rows)]
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in queries))
    path = write_experiment(tmp_path, {
        "dataset": {"queries": "queries.jsonl"},
        "services": {"overlap": {"type": "lexical"}},
        "judge": {"service": "overlap", "repeat_share": 0},
        "metrics": ["Faithfulness"],
        "configurations": [{"name": "a", "answers": {"type": "replay", "path": "answers.jsonl"}}],
    })  # fmt: skip
    on_flink = evaluated(path, tmp_path / "flink", *flink.options(external=True))
    same(evaluated(path, tmp_path / "local"), on_flink)


@whole
@pytest.mark.parametrize("restart", ["", RESTART])
def test_a_killed_task_manager_costs_few_calls_and_breaks_no_quota(tmp_path: Path, restart: str) -> None:
    standins = serve("http", answers=answers(QUERIES), latency_s=0.5, quota_per_minute=PER_MINUTE)
    with standins as standin, cluster(tmp_path / "flink", more=restart) as running:
        path = experiment_file(tmp_path, standin)
        options = running.options(external=True)
        arguments = ["evaluate", path, "--output", str(tmp_path / "flink-out"), "--run-id", "r", *options]
        status = while_running(arguments, lambda: standin.stats().calls >= 50, lambda: kill_lane(running))
        assert status == (0 if restart else 1)
        if not restart:  # one TaskManager is left, and answers are in the ledger
            evaluated(path, tmp_path / "flink-out", *running.options(external=True))
        assert standin.stats().calls <= QUERIES * 1.05
        assert standin.stats().violations_per_minute == 0
        same(evaluated(path, tmp_path / "local"), Results(str(tmp_path / "flink-out"), "r"))


@whole
def test_an_input_that_a_worker_refuses_is_named_with_its_line(flink: Cluster, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d 1 2.0 tag\n" + "q1 Q0 e 2 high tag\n")
    text = "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
    (tmp_path / "e.yaml").write_text(
        f"{text}configurations: [{{name: a, retriever: {{type: run_file, path: a.run}}}}]\n"
    )
    outcome = rankbeam_process("evaluate", str(tmp_path / "e.yaml"), *flink.options(external=True), timeout_s=WITHIN_S)
    assert outcome.status == 2
    assert outcome.stderr.splitlines()[-1].startswith(f"rankbeam: {tmp_path}/a.run:2: ")
    assert "Traceback" not in outcome.stderr


def while_running(arguments: list[str], when: Callable[[], bool], act: Callable[[], None]) -> int:
    """Run a command, and do something as soon as something is so; returns its exit status."""
    with subprocess.Popen([sys.executable, "-m", "rankbeam", *arguments], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + WITHIN_S
        while not when():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        act()
        return process.wait(WITHIN_S)


def kill_lane(running: Cluster) -> None:
    """Kill the TaskManager of the lane: the one with a running task."""
    job = running.jobs()[-1]["jid"]
    vertices = [vertex["id"] for vertex in running.get(f"/jobs/{job}")["vertices"] if vertex["status"] == "RUNNING"]
    tasks = [task for vertex in vertices for task in running.get(f"/jobs/{job}/vertices/{vertex}")["subtasks"]]
    running.kill(next(task["taskmanager-id"] for task in tasks if task["status"] == "RUNNING"))
