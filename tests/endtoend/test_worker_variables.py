"""Secrets of a job whose workers are elsewhere: their variables are looked for before it is submitted."""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from support.cli import rankbeam
from support.flink.processes import free_ports
from support.job_server import job_server
from support.remote import answers, dataset, http, write_experiment
from support.standins import serve

from rankbeam.pipelines.portable import worker_pool


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with job_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture
def pool() -> Iterator[str]:
    """A pool of workers with the variables of this process."""

    def start(*_: str) -> NoReturn:
        raise AssertionError("no job is submitted")

    server, _, port = worker_pool.start_server(0, start)
    yield f"localhost:{port}"
    server.stop(0)


def refused(folder: Path, *options: str) -> str:
    """The message about an experiment with a key in an unset variable; no call is made."""
    with serve("http", answers=answers(2)) as standin:
        retriever = {**http(standin), "headers": {"Authorization": "Bearer ${env:RANKBEAM_NO_TOKEN}"}}
        base = {"dataset": dataset(folder, 2), "quotas": {"http": {"requests_per_minute": 600}}}
        base["configurations"] = [{"name": "remote", "retriever": retriever, "top_k": 20}]
        outcome = rankbeam("evaluate", write_experiment(folder, base), "--runner=PortableRunner", *options)
        assert standin.stats().calls == 0
    assert (outcome.status, outcome.stdout) == (2, ""), outcome.stderr
    assert not (folder / "out" / "jobs").exists()
    return outcome.stderr


def test_a_variable_that_the_workers_lack_is_refused(server: str, pool: str, tmp_path: Path) -> None:
    endpoint = f"--job_endpoint={server}"
    needed = "RANKBEAM_NO_TOKEN (header Authorization)"
    message = refused(tmp_path, endpoint, "--environment_type=LOOPBACK")
    assert f"environment variables that the workers need are not set here: {needed}" in message
    message = refused(tmp_path, endpoint, "--environment_type=EXTERNAL", f"--environment_config={pool}")
    assert f"not set in the pool of workers at {pool}; set it there and start the pool again: {needed}" in message
    nowhere = f"localhost:{free_ports(1)[0]}"
    message = refused(tmp_path, endpoint, "--environment_type=EXTERNAL", f"--environment_config={nowhere}")
    assert f"no pool of workers answers at {nowhere}; check --environment_config" in message
