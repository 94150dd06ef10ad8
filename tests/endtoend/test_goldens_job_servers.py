"""Benchmarks at a job server, Beam's own in Python, whose workers have another current folder."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, stable
from support.job_server import job_server, worker_pool
from support.remote import signalled
from support.standin_models import KEY, service
from support.standins import serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options that name the server."""
    with job_server(tmp_path_factory.mktemp("server")) as address:
        yield ["--runner=PortableRunner", f"--job_endpoint={address}"]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options that name a pool of workers."""
    with worker_pool(tmp_path_factory.mktemp("workers"), {KEY: "k"}) as options:
        yield options


def test_an_unknown_option_is_refused(server: list[str], tmp_path: Path) -> None:
    outcome = rankbeam("goldens", goldens_file(tmp_path), *server, "--paralelism=2")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "unknown option --paralelism; did you mean '--parallelism'?" in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_folders_that_workers_cannot_reach_are_refused(tmp_path: Path) -> None:
    elsewhere = ["--runner=FlinkRunner", "--flink_master=flink:8081", "--environment_type=EXTERNAL"]
    outcome = rankbeam("goldens", goldens_file(tmp_path), *elsewhere, "--environment_config=localhost:50000")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert f"{tmp_path}/out: output: the workers of this job cannot reach folders on this machine" in outcome.stderr


@pytest.mark.campaign
def test_relative_paths_are_those_of_the_submitting_process(
    server: list[str], workers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goldens_file(tmp_path, items=3)
    monkeypatch.chdir(tmp_path)
    for name, options in {"local": [], "portable": [*server, *workers]}.items():
        outcome = rankbeam("goldens", "./goldens.yaml", "--output", name, *options)
        assert outcome.status == 0, outcome.stderr
    assert stable(tmp_path / "portable") == stable(tmp_path / "local")


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("is_local", "message"), [(True, ""), (False, "the job is cancelled; ")], ids=["local", "server"]
)
def test_an_interrupt_ends_the_calls_of_the_workers(
    server: list[str], workers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_local: bool, message: str
) -> None:
    monkeypatch.setenv(KEY, "k")
    with serve("openai", latency_s=0.3) as standin:
        path = goldens_file(
            tmp_path,
            documents=corpus(tmp_path, documents(40)),
            services={"model": service("openai", standin)},
            writer="model",
            checker="model",
            items=60,
            quotas={"openai": {"requests_per_minute": 240}},
        )
        arguments = ["goldens", path, *([] if is_local else [*server, *workers])]
        ended = signalled(arguments, signal.SIGINT, lambda: standin.stats().calls >= 8, tmp_path)
        begun = standin.stats().calls
        assert ended.status == 130, ended.stderr
        assert f"interrupted; {message}all answers are in" in ended.stderr
        time.sleep(5)  # a worker that was left behind would make twenty calls
        assert standin.stats().calls <= begun + 8  # on a busy machine a cancelled one ends a moment later
    assert "Traceback" not in ended.stderr
