"""Ctrl-C: respond at once, even while Beam holds a lock, and remove partial output."""

import ctypes
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

import click

Result = TypeVar("Result")

INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPORTING = "<frozen importlib._bootstrap>"
_REMOVE = "import shutil, sys; [shutil.rmtree(name, True) for name in sys.argv[2:]]; sys.exit(int(sys.argv[1]))"
GRACE_S = 10.0
_WRITING_S = 5.0  # time that a worker process has to write answers to the ledger, after its calls' grace period
_AGAIN_S, _LONGEST_IMPORT_S = 0.05, 5.0
_LOOK_S = 0.2
_GO_ON = "the same command continues from there without paying again"
_NOTHING = "nothing of this run was kept; other runs are unchanged"

received_at: float | None = None
"""The time of the first interrupt; some libraries, such as DuckDB, raise an error of their own in its place."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; while this thread imports a module, try again a moment later.

    Beam's modules catch exceptions around optional imports, and Pydantic those of its models: an interrupt there would
    be lost, or become another error, and leave modules half imported. A module that takes longer, such as a plug-in
    that loads a model, is interrupted.
    """
    global received_at
    received_at = received_at or time.monotonic()
    silence_threads()  # this process ends
    if number == signal.SIGHUP:
        _leave_terminal()
        number = signal.SIGTERM
    if not _is_importing(frame) or time.monotonic() > received_at + _LONGEST_IMPORT_S:
        signal.default_int_handler(number, frame)
    later = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
    later.daemon = True
    later.start()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != _IMPORTING:
        frame = frame.f_back
    return frame is not None


def _leave_terminal() -> None:
    """Discard output to a terminal that was closed: to print a message would fail, and end the clean-up.

    The shell and the system both send a SIGHUP; the second one must not end the wait for calls in flight.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Path(os.devnull).open("w") as null:
        for descriptor in (1, 2):
            with suppress(OSError):  # closed
                if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                    os.dup2(null.fileno(), descriptor)


def tell(message: str) -> None:
    """Print a message; a program that reads it, such as `tee`, has received the same interrupt, and may have ended."""
    try:
        click.echo(message, err=True)
    except BrokenPipeError:
        if received_at is None:
            raise


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run."""

    def __init__(self, folders: list[str], outcome: str = _NOTHING) -> None:
        super().__init__()
        self.folders, self.outcome = folders, outcome


def finish_calls(ledger: str) -> str:
    """Wait for the calls in flight, and write their answers to the ledger; return a message about what was stored.

    Another Ctrl-C ends the wait.
    """
    from rankbeam.pipelines.local import worker_processes
    from rankbeam.transforms.clients.calls import fanout
    from rankbeam.transforms.clients.storage import files
    from rankbeam.transforms.records.errors import InputError

    def outcome() -> str:
        return (
            f"all answers are in {ledger}, and {_GO_ON}"
            if not files.is_local(ledger) or files.exists(ledger)
            else _NOTHING
        )

    if not fanout.at_work() and not worker_processes.at_work():
        return outcome()
    wait = f"calls in flight have {GRACE_S:.0f} s to end; press Ctrl-C again to stop at once"
    tell(f"rankbeam: stopping; {wait}")
    try:
        with threads_silenced():
            fanout.stop_all(GRACE_S)
            worker_processes.stop(GRACE_S + _WRITING_S)
    except KeyboardInterrupt:
        return f"all answers but those of the last second are in {ledger}, and {_GO_ON}"
    except InputError as error:
        return f"the last answers were lost: {error}"
    return outcome()


@contextmanager
def defer_interrupt(message: str) -> Iterator[Callable[[], None]]:
    """Hold back the first Ctrl-C while the block runs, and print a message; a second one interrupts the block."""
    signals: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        global received_at
        if signals:
            interrupt(number, frame)
        received_at = received_at or time.monotonic()
        if number == signal.SIGHUP:
            _leave_terminal()
        signals.append(number)
        tell(f"rankbeam: {message}")

    def raise_held() -> None:
        if signals:
            raise KeyboardInterrupt

    usual = {signum: signal.getsignal(signum) for signum in _SIGNALS}
    interrupting = [signum for signum, handler in usual.items() if handler in (signal.default_int_handler, interrupt)]
    if threading.current_thread() is not threading.main_thread():
        interrupting = []  # only the main thread handles signals
    for signum in interrupting:
        signal.signal(signum, hold)
    try:
        yield raise_held
    finally:
        for signum in interrupting:
            signal.signal(signum, usual[signum])


def end_process(folders: list[str]) -> NoReturn:
    """End this process and its threads at once, and delete the local folders that they were writing to.

    Python would wait for Beam's threads to finish their work. Instead, `exec` replaces this process by another program.
    That ends all threads, so that no thread can write into the folders while the program deletes them. The program
    ignores further signals, since people press Ctrl-C twice.
    """
    from rankbeam.pipelines.local import worker_processes

    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    silence_threads()
    folders = [*folders, *worker_processes.kill()]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if it is closed, as under cron
            with suppress(OSError):
                stream.flush()
    local = [folder for folder in folders if "://" not in folder]
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", _REMOVE, str(INTERRUPTED), *local])  # noqa: S606  no shell


def silence_threads() -> None:
    """Ignore errors in Beam's threads about workers and servers that have ended."""
    threading.excepthook = lambda _: None


@contextmanager
def threads_silenced() -> Iterator[None]:
    """Ignore such errors only in the block: the process may have threads of its own."""
    usual = threading.excepthook
    silence_threads()
    try:
        yield
    finally:
        threading.excepthook = usual


class Work(Future[Result]):
    """Work in a thread that does not keep the process alive."""

    thread: threading.Thread


def in_thread(work: Callable[[], Result]) -> Work[Result]:
    """Start work in a thread."""
    outcome: Work[Result] = Work()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    outcome.thread = threading.Thread(target=run, daemon=True)
    outcome.thread.start()
    return outcome


def in_background(work: Callable[[], Result]) -> Result:
    """Do the work in another thread: Ctrl-C then interrupts this waiting thread, not Beam while it holds a lock."""
    return result_of(in_thread(work))


def result_of(work: Work[Result]) -> Result:
    """Wait for work such that Ctrl-C interrupts the wait.

    The wait has timeouts: libraries such as Polars handle the signal, and an unlimited wait would go on.
    """
    import duckdb  # noqa: F401  needed afterwards; import it while this thread waits
    import rich.table  # noqa: F401

    while not wait([work], timeout=_LOOK_S).done:
        pass
    return work.result()


def end(work: Work[Result]) -> None:
    """Interrupt work in its thread, and wait until it has ended, but not longer than the calls' grace period."""
    if not work.done():
        interrupt_of_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
        with threads_silenced():
            interrupt_of_thread(ctypes.c_ulong(work.thread.ident or 0), ctypes.py_object(KeyboardInterrupt))
            wait([work], timeout=GRACE_S)
