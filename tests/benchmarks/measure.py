"""Run a command in a process of its own, and say what it took.

Wall time is from before the process is started until it is reaped. The rest is the kernel's account of the process,
from wait4: CPU seconds, user and system, of the process and of all its descendants that were waited for; and peak
memory, the largest resident size of any *single* one of them, not their sum. A process starts out with the peak of the
one that started it, so the command is started by a small Python of its own (this file), not by the benchmark:
figures below about 12 MB mean nothing.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
"""Unit of ru_maxrss: kilobytes, but on macOS bytes."""
SHOWN_LINES = 15


class CommandFailed(Exception):
    """A measured command ended with another status than 0; the message has the end of what it said."""


@dataclass(frozen=True)
class Usage:
    """Time and memory of one run of a command."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def median(usages: Sequence[Usage]) -> Usage:
    """The median of each figure."""
    columns = zip(*((one.wall_s, one.cpu_s, one.peak_bytes) for one in usages), strict=True)
    wall_s, cpu_s, peak_bytes = (statistics.median(column) for column in columns)
    return Usage(wall_s, cpu_s, round(peak_bytes))


def measure(command: Sequence[str], stdout: Path) -> Usage:
    """Run a command once.

    Args:
        command: program and arguments.
        stdout: the file that gets what it prints.

    Raises:
        CommandFailed: it did not end with status 0.
    """
    with tempfile.TemporaryFile() as stderr:
        starter = [sys.executable, "-I", "-S", __file__, str(stdout), *command]
        account = json.loads(subprocess.run(starter, stdout=subprocess.PIPE, stderr=stderr, check=True).stdout)
        status = account.pop("status")
        if status:
            stderr.seek(0)
            message = stderr.read().decode(errors="replace").strip().splitlines()
            raise CommandFailed("\n".join([_ending(status), *message[-SHOWN_LINES:]]))
    return Usage(**account)


def _ending(status: int) -> str:
    """The end of a process, in words."""
    return f"exit status {status}" if status > 0 else f"stopped by {signal.Signals(-status).name}"


def _start(stdout: str, *command: str) -> dict[str, float]:
    """Start a command, reap it, and return its account."""
    with Path(stdout).open("wb") as file:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    usage = Usage(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * MAXRSS_BYTES)
    return {"status": process.returncode, **asdict(usage)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_start(*sys.argv[1:])))
