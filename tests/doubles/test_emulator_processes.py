# ruff: noqa: F811  fixtures are named as what they give
"""The emulators as processes: who starts them, who ends them, what is shown if they do not start."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.emulators import Cloud, fixtures, process
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name

REACHES_BOTH = """
import google.auth, google.auth.transport.requests, os, sys
from apache_beam.io.filesystems import FileSystems
from google.cloud import bigquery

credentials, project = google.auth.default(["https://www.googleapis.com/auth/cloud-platform"])
credentials.refresh(google.auth.transport.requests.Request())
with FileSystems.create(sys.argv[1]) as file:
    file.write(b"hello")
with FileSystems.open(sys.argv[1]) as file:
    read = file.read().decode()
[(one,)] = bigquery.Client().query("SELECT 1").result()
print(credentials.token, project, read, one)
"""
STARTS_AND_WAITS = """
import time
from support.emulators import cloud
with cloud() as google:
    print(google.gcs.url, google.bigquery.rest_url, google.bigquery.grpc_address, *google.logs(), flush=True)
    time.sleep(600)
"""


def refused(addresses: Iterable[str]) -> bool:
    """Return whether no server listens at any of the addresses."""
    for address in addresses:
        host, port = address.removeprefix("http://").split(":")
        # Refused, or reset while the listener is being closed.
        with contextlib.suppress(ConnectionError), socket.create_connection((host, int(port)), 5):
            return False
    return True


# --- Their processes --------------------------------------------------------------------------------


@pytest.mark.long
def test_another_process_reaches_both_without_waiting(emulators: Cloud) -> None:
    path = f"gs://{emulators.gcs.bucket()}/a.txt"
    done = subprocess.run(
        [sys.executable, "-c", REACHES_BOTH, path],
        env={**os.environ, **emulators.environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "nobody-checks-this rankbeam-test hello 1\n", done.stderr


def test_they_end_with_a_process_that_is_killed(emulators: Cloud) -> None:  # noqa: ARG001  they must be there
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        *addresses, gcs_log, bigquery_log = child.stdout.readline().split()
        assert len(addresses) == 3
        assert not refused(addresses[:1])
        child.send_signal(signal.SIGKILL)
    folders = [Path(gcs_log).parent, Path(bigquery_log).parent]
    deadline = time.monotonic() + 30
    while not refused(addresses) or any(folder.exists() for folder in folders):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_without_them_tests_are_skipped_and_fail_in_ci(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ci: str, outcome: type[BaseException]
) -> None:
    log = tmp_path / "install.log"
    log.write_text("…\nERROR: no such version\n")
    monkeypatch.setattr(process, "INSTALLED", tmp_path / "nothing")
    monkeypatch.setattr(process, "INSTALL_LOG", log)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="could not be installed: ERROR: no such version"):
        fixtures.require()


def test_one_that_does_not_start_shows_its_log(emulators: Cloud, tmp_path: Path) -> None:  # noqa: ARG001  as above
    with (
        pytest.raises(RuntimeError, match=r"did not start(.|\n)*KeyError: 'nonsense'"),
        process.running("nonsense", tmp_path),
    ):
        pass
