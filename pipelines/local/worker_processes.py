"""Worker processes of Beam's local runner, which must end before this process does.

Each worker has a file, named by its process id, and keeps it locked while it lives: unlike a process id, a lock cannot
pass to another process. The last worker deletes the folder.
"""

import fcntl
import os
import secrets
import shlex
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from rankbeam.transforms.records.errors import InputError

PROBLEM = "problem-"
_FOLDER = Path(tempfile.gettempdir(), f"rankbeam-workers-{os.getpid()}-{secrets.token_hex(4)}")
_LOOK_AGAIN_S = 0.05


def command() -> str:
    """The shell command that starts a worker process.

    Beam's own command does not quote Python's path, so it fails if a folder in it has a blank in its name. Ctrl-C and
    the end of a terminal reach all processes in it; the parent decides when its workers end.
    """
    words = [sys.executable, "-m", "rankbeam.pipelines.local.worker", str(_FOLDER), str(os.getpid())]
    return f"trap '' INT HUP; exec {shlex.join(words)}"


def at_work() -> list[int]:
    return [int(path.name) for path in _files() if path.name.isdigit() and _is_locked(path)]


def stop(within_s: float) -> None:
    """Make every worker finish its calls in flight, write their answers to the ledger, and end."""
    _signal(signal.SIGTERM)
    deadline = time.monotonic() + within_s
    while at_work() and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
    for path in _files():
        if path.name.startswith(PROBLEM):
            raise InputError(path.read_text(encoding="utf-8"))


def kill() -> list[str]:
    """Kill the remaining workers; return folders to be deleted."""
    _signal(signal.SIGKILL)
    return [str(_FOLDER)] if _FOLDER.is_dir() else []


def _signal(number: signal.Signals) -> None:
    for process in at_work():
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _files() -> list[Path]:
    return sorted(_FOLDER.iterdir()) if _FOLDER.is_dir() else []


def _is_locked(path: Path) -> bool:
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
