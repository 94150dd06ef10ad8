"""Another emulator of BigQuery, a Go program with a parser of GoogleSQL: goccy/bigquery-emulator.

    with serve("search") as url:
        ...  # with BIGQUERY_EMULATOR_HOST = url; the project is PROJECT, and has the dataset "search"

`make go-emulator` builds it once for a machine, into a folder of the user's cache; `go/go.mod` has its version.

What v0.8.1 gets wrong, measured through google-cloud-bigquery 3.47:
- `IF … THEN … END IF` is skipped without a word, whatever the condition. Every statement of a script needs a parameter
  where the script has any. A SELECT of a script is not evaluated, so ERROR() in it raises nothing.
- It takes no copy jobs and no Avro, and has one stream for reads.
- Every statement keeps memory, some MB; at 2 GB, after a few hundred statements, the process ends with a Go panic. So
  each test has one of its own, and few statements.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROJECT = "test-project"
STARTING_S, CLOSING_S = 120.0, 10.0
# Ends with its stdin, so also when the tests are killed.
WATCHED = 'exec 3<&0; "$@" <&- & child=$!; cat <&3 >/dev/null; kill -9 $child; wait $child 2>/dev/null'


def program() -> Path:
    """The program that the Makefile builds."""
    text = Path(__file__).with_name("go").joinpath("go.mod").read_text(encoding="utf-8")
    version = re.search(r"goccy/bigquery-emulator (v[0-9.]+)", text)
    assert version is not None
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rankbeam" / f"bigquery-emulator-{version[1]}"


def require() -> None:
    """Skip the test, with the reason, if the program is missing."""
    if not program().exists():
        how = "make go-emulator builds it" if shutil.which("go") else "install Go, then run make go-emulator"
        pytest.skip(f"the BigQuery emulator in Go is missing: {how}")


@contextmanager
def serve(dataset: str) -> Iterator[str]:
    """The emulator with an empty dataset, for as long as the block lasts; yields its URL."""
    port, grpc_port = _free_ports()
    options = [f"--project={PROJECT}", f"--dataset={dataset}", "--host=127.0.0.1"]
    options += [f"--port={port}", f"--grpc-port={grpc_port}"]
    with tempfile.TemporaryFile() as log:
        command = ["sh", "-c", WATCHED, "sh", str(program()), *options]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{url}/bigquery/v2/projects/{PROJECT}/datasets/{dataset}", child)
            yield url
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait(CLOSING_S)


def _wait_for(url: str, child: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + STARTING_S
    while True:
        try:
            with urllib.request.urlopen(url):  # noqa: S310  the URL is ours
                return
        except (urllib.error.URLError, ConnectionError) as error:
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the emulator of BigQuery in Go did not start") from error
        time.sleep(0.05)


def _free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        for port in (one, other):
            port.bind(("127.0.0.1", 0))
        return [port.getsockname()[1] for port in (one, other)]
