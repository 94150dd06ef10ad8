"""Processes on this machine: the identity of this one, and whether another one is still running."""

import os
import socket
import subprocess
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_ENDED = ("Z", "X")


@cache
def machine() -> str:
    """The scope of process ids: this machine since it was booted, and the container, if any."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return socket.gethostname()


def start_time(pid: int) -> str | None:
    """When a process was started, in a form for comparison only; None if there is no such process."""
    if not (_PROC / "self/stat").exists():
        return _start_time_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    return None if state in _ENDED else fields[18]


def own_start_time() -> str:
    """When this process was started, as `start_time` returns it."""
    return start_time(os.getpid()) or ""


def _start_time_by_ps(pid: int) -> str | None:
    done = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603  a number
    return done.stdout.strip() or None
