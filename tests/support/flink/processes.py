"""Processes that end with this one, and free ports for them."""

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl, on Linux


def free_ports(number: int) -> list[int]:
    """Ports that no process listens on, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]


def start(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, so that Ctrl-C does not reach it."""
    with log.open("ab") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=cwd,
            env={**os.environ, **(environment or {})}, start_new_session=True, preexec_fn=_end_with_parent,
        )  # fmt: skip


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_with_parent() -> None:
    """The parent may be killed; then its children would keep their ports and memory."""
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
