"""Beam's own job server in Python, the Job API without Java or Go, and workers for it, in processes of their own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from support.flink.processes import free_ports, kill, start

_STARTING_S = 60.0


@contextmanager
def job_server(folder: Path) -> Iterator[str]:
    """The address of a job server that works in a folder, for as long as the block lasts."""
    with job_server_process(folder) as (address, _):
        yield address


@contextmanager
def job_server_process(folder: Path) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The address of such a job server, and its process."""
    (port,) = free_ports(1)
    module = "apache_beam.runners.portability.local_job_service_main"
    process = start([sys.executable, "-m", module, "--port", str(port)], folder / "log.txt", cwd=folder)
    try:
        _wait_for(port)
        yield f"localhost:{port}", process
    finally:
        kill(process)


@contextmanager
def worker_pool(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """The options that name a pool of workers, whose current folder this is."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "rankbeam.pipelines.portable.worker_pool", f"--port={port}"]
    process = start(command, folder / "workers.txt", environment, cwd=folder)
    try:
        _wait_for(port)
        yield ["--environment_type=EXTERNAL", f"--environment_config=localhost:{port}"]
    finally:
        kill(process)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _STARTING_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("localhost", port), 1).close()
            return
        time.sleep(0.05)
    raise RuntimeError(f"no process listens on port {port} after {_STARTING_S:.0f} s")
