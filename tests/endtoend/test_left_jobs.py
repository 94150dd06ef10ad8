"""Jobs that no command waits for: left to a job server, found from elsewhere, and finished by their first report."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.cli import rankbeam, rankbeam_process
from support.inputs import trec_qrels, trec_run, write
from support.job_server import job_server, worker_pool

from rankbeam.pipelines.results.run import Results


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options of a job server and a pool of workers that keep running."""
    with (
        job_server(tmp_path_factory.mktemp("server")) as address,
        worker_pool(tmp_path_factory.mktemp("workers")) as workers,
    ):
        yield ["--runner=PortableRunner", f"--job_endpoint={address}", *workers]


def scored(folder: Path) -> str:
    write(folder / "qrels", trec_qrels([("q1", "d", 1.0)]))
    write(folder / "a.run", trec_run([("q1", "d", 1.0)]))
    text = "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
    text += "configurations: [{name: a, retriever: {type: run_file, path: a.run}}]\n"
    return write(folder / "e.yaml", text)


@pytest.mark.campaign
def test_a_job_is_left_followed_and_finished_once(options: list[str], tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    left = rankbeam_process("evaluate", scored(tmp_path), "--run-id=r1", "--no-wait", *options)
    assert left.status == 0, left.stderr
    assert left.stdout.splitlines()[-2:] == [
        f"status   rankbeam status {output} --run-id r1",
        f"cancel   rankbeam cancel {output} --run-id r1",
    ]
    assert not (tmp_path / "out" / "results.duckdb").exists()

    followed = rankbeam("status", output, "--follow")
    assert followed.status == 0, followed.stderr
    assert f"state    done\nprogress 1 of 1 queries\nreport   rankbeam report {output} --run-id r1\n" in followed.stdout

    with ThreadPoolExecutor(2) as people:
        reports = list(people.map(lambda _: rankbeam_process("report", output), range(2)))
    assert [report.status for report in reports] == [0, 0], reports
    lines = [line for report in reports for line in report.stderr.splitlines()]
    wrote = [line for line in lines if "is being finished by another process: run r1 (host " not in line]
    assert wrote == [f"rankbeam: run r1: wrote {output}/results.duckdb"]
    assert Results(output, "r1").means

    record = json.loads((tmp_path / "out" / "jobs" / "r1.json").read_text())
    assert record["finished_at"] > record["submitted_at"]
    again = rankbeam("report", output)
    assert (again.status, again.stdout, again.stderr) == (0, f"{output}/report.html\n", "")


@pytest.mark.parametrize(
    ("more", "messages"),
    [
        (
            ["--runner=PrismRunner"],
            [
                "rankbeam would start the job server, which ends with this process; name one that keeps running",
                "the workers would be in this process (LOOPBACK); name a pool of workers: --environment_type EXTERNAL",
            ],
        ),
        (
            ["--runner=PortableRunner", "--job_endpoint=localhost:1"],
            ["the workers would be in this process (LOOPBACK)"],
        ),
        (["--runner=FnApiRunner"], ["--no-wait is for jobs on a cluster; Beam's local runner works in this process"]),
    ],
)
def test_runs_that_need_this_process_are_refused(more: list[str], messages: list[str], tmp_path: Path) -> None:
    outcome = rankbeam("evaluate", scored(tmp_path), "--no-wait", *more)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert [message for message in messages if message not in outcome.stderr] == []
    assert not (tmp_path / "out" / "jobs").exists()
