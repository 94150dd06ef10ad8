"""Ctrl-C: whoever presses it is heard at once, even while Beam holds a lock, and nothing half-done stays behind."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn, TypeVar

import click

Result = TypeVar("Result")

INTERRUPTED = 130
_REMOVE = "import shutil, sys; [shutil.rmtree(name, True) for name in sys.argv[2:]]; sys.exit(int(sys.argv[1]))"
GRACE_S = 10.0
_LEAVING_S = 5.0  # that a worker process has, beyond the grace of its calls, to bring their answers into the ledger
_GO_ON = "the same command goes on from there without paying for it again"
_NOTHING = "nothing of this run was kept, other runs are as they were"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a run was at work.

    Attributes:
        folders: that Beam was writing to.
        kept: what is left of the run, for people.
    """

    def __init__(self, folders: list[str], kept: str = _NOTHING) -> None:
        super().__init__()
        self.folders, self.kept = folders, kept


def settle(ledger: str) -> str:
    """Let the calls in the air end, and bring what was answered into the ledger; returns what to tell people.

    Another Ctrl-C ends the wait.
    """
    from rankbeam.pipelines.run import worker_processes
    from rankbeam.transforms.clients.calls import fanout
    from rankbeam.transforms.records.errors import InputError

    kept = f"what was answered is in {ledger}, and {_GO_ON}"
    if not fanout.at_work() and not worker_processes.at_work():
        return kept
    wait = f"calls in the air have {GRACE_S:.0f} s to end, press Ctrl-C again to leave at once"
    click.echo(f"rankbeam: stopping; {wait}", err=True)
    threading.excepthook = _silent
    try:
        fanout.stop_all(GRACE_S)
        worker_processes.stop(GRACE_S + _LEAVING_S)
    except KeyboardInterrupt:
        return f"what was answered a second ago is in {ledger}, and {_GO_ON}"
    except InputError as error:
        return f"the last answers were lost: {error}"
    return kept


def vanish(folders: list[str]) -> NoReturn:
    """Leave at once, with all threads, and without what they wrote to this machine until the last moment.

    Python would wait for Beam's threads to finish their work. Another program takes this process over instead: that
    ends them all, and then nobody is left who could write.
    """
    from rankbeam.pipelines.run import worker_processes

    threading.excepthook = _silent
    folders = [*folders, *worker_processes.kill()]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed, as cron and daemons have it
            stream.flush()
    local = [folder for folder in folders if "://" not in folder]
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", _REMOVE, str(INTERRUPTED), *local])  # noqa: S606  no shell


def _silent(_: threading.ExceptHookArgs) -> None:
    """Beam's threads have nothing to say of workers that were ended."""


def in_background(work: Callable[[], Result]) -> Result:
    """Do the work in another thread, so that Ctrl-C always finds this one waiting, and never Beam holding a lock."""
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    import duckdb  # noqa: F401  needed afterwards, and there is time now
    import rich.table  # noqa: F401

    return outcome.result()
