"""Starts an emulator in a process of its own, in the Python that has it.

The child says its ports in one line of JSON, and ends when its stdin does: it does not outlive the tests, even when
those are killed.
"""

import json
import os
import selectors
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ROOT / ".venv-emulators"
INSTALLED, INSTALL_LOG = ENVIRONMENT / ".installed", ENVIRONMENT / "install.log"
SERVER = Path(__file__).parent / "server.py"
STARTING_S, CLOSING_S, SHOWN_CHARACTERS = 120.0, 10.0, 20_000


def missing() -> str | None:
    """The reason why no emulator can be started; None if they are installed."""
    if INSTALLED.exists():
        return None
    if not INSTALL_LOG.exists():
        return "the emulators are not installed: make .venv-emulators/.installed"
    log = INSTALL_LOG.read_text(errors="replace").strip() or "interrupted"
    return f"the emulators could not be installed: {log.splitlines()[-1]}"


@contextmanager
def running(kind: str, folder: Path, *arguments: str) -> Iterator[Mapping[str, int]]:
    """An emulator, for as long as the block lasts.

    Args:
        kind: name of an emulator in `server`.
        folder: it works in; its log is put there. It removes the folder when this process is killed.
        arguments: arguments of the function that serves it, after the folder.

    Yields:
        Its ports.

    Raises:
        RuntimeError: it does not start; the message ends with its log.
    """
    with log_of(folder).open("wb") as log:
        child = subprocess.Popen(
            [ENVIRONMENT / "bin" / "python", "-P", SERVER, kind, str(os.getpid()), folder, *arguments],
            # DuckDB looks for its extensions below HOME, and the Makefile put them there.
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder, start_new_session=True,
            env={**_environment(), "HOME": str(ENVIRONMENT)},
        )  # fmt: skip
    try:
        yield _ports(child, kind, folder)
    finally:
        _stop(child)


def log_of(folder: Path) -> Path:
    """The log of an emulator that works in a folder."""
    return folder / "log.txt"


def _environment() -> dict[str, str]:
    """Ours, without what would steer the other Python or the emulator."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BQEMU_"))}


def _ports(child: "subprocess.Popen[bytes]", kind: str, folder: Path) -> Mapping[str, int]:
    assert child.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        line = child.stdout.readline() if selector.select(STARTING_S) else b""
    if not line:
        log = log_of(folder).read_text(errors="replace")
        raise RuntimeError(f"the emulator of {kind} did not start within {STARTING_S:g} s:\n{log[-SHOWN_CHARACTERS:]}")
    ports: Mapping[str, int] = json.loads(line)
    return ports


def _stop(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(CLOSING_S)
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()
