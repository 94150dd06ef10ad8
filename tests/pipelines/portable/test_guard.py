"""The job server that rankbeam starts ends with rankbeam, however that ends."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inputs import trec_qrels, trec_run, write
from support.processes import COMMAND, Process

from rankbeam.pipelines.portable import guard

WITHIN_S = 120.0
SERVER = """import signal, socket
signal.signal(signal.SIGTERM, {on_terminate})
with socket.create_connection(("localhost", {port})) as test:
    test.recv(1)
"""
"""In place of a job server: it is connected to the test for as long as it lives, and never answers rankbeam."""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("localhost", 0)) as server:
        server.settimeout(WITHIN_S)
        yield server


def launcher(folder: Path, listening: socket.socket, on_terminate: str = "signal.SIG_DFL") -> str:
    """A program that starts the server."""
    port = listening.getsockname()[1]
    server = write(folder / "server.py", SERVER.format(port=port, on_terminate=on_terminate))
    path = Path(write(folder / "java", f'#!/bin/sh\nexec "{sys.executable}" "{server}"\n'))
    path.chmod(0o700)
    return str(path)


def accepted(listening: socket.socket) -> socket.socket:
    connection, _ = listening.accept()
    connection.settimeout(WITHIN_S)
    return connection


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_job_server_ends_with_rankbeam(tmp_path: Path, listening: socket.socket, number: signal.Signals) -> None:
    write(tmp_path / "qrels", trec_qrels([("q1", "d", 1.0)]))
    write(tmp_path / "a.run", trec_run([("q1", "d", 1.0)]))
    text = "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
    text += "configurations: [{name: a, retriever: {type: run_file, path: a.run}}]\n"
    options = [f"--flink_job_server_jar={write(tmp_path / 'a.jar', '')}", "--environment_type=LOOPBACK"]
    options += ["--runner=FlinkRunner", f"--job_server_java_launcher={launcher(tmp_path, listening)}"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    arguments = ["evaluate", write(tmp_path / "e.yaml", text), *options]
    with Process(COMMAND, *arguments, cwd=tmp_path, **silent) as process, accepted(listening) as connection:
        process.send_signal(number)
        assert connection.recv(1) == b""


def test_a_command_that_does_not_end_is_killed(tmp_path: Path, listening: socket.socket) -> None:
    short = tmp_path / "guard.py"
    text = Path(guard.__file__).read_text(encoding="utf-8")
    short.write_text(text.replace("_STOPPING_S = 5.0", "_STOPPING_S = 0.1"), encoding="utf-8")
    command = [sys.executable, str(short), launcher(tmp_path, listening, on_terminate="signal.SIG_IGN")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process, accepted(listening) as connection:
        process.communicate()
        assert connection.recv(1) == b""
        assert process.returncode == 256 - signal.SIGKILL


def test_the_status_is_that_of_the_command() -> None:
    command = [sys.executable, guard.__file__, sys.executable, "-c", "import sys; sys.exit(7)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(WITHIN_S) == 7
