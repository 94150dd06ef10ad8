"""Ctrl-C in the middle of an import, and before the first answer."""

import _thread
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.data import REPOSITORY

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.local.interrupt import Interrupted, end, finish_calls, in_thread, result_of
from rankbeam.pipelines.run import evaluate
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.storage import spill

MODULE = """
import os, signal
is_lost = False
try:
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(1000))
except BaseException:  # as Beam around imports of what is optional
    is_lost = True
"""
COMMAND = """
import signal, threading
from rankbeam.pipelines.local.interrupt import interrupt
signal.signal(signal.SIGINT, interrupt)
import catching
print(catching.is_lost)
try:
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_a_module_is_imported_comes_when_it_is(tmp_path: Path) -> None:
    (tmp_path / "catching.py").write_text(MODULE)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    command = [sys.executable, "-c", COMMAND]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\ninterrupted\n"


WAITING = """
import os, signal, threading
os.kill(os.getpid(), signal.SIGINT)
threading.Event().wait(60)
"""
IMPATIENT = """
import signal
from rankbeam.pipelines.local import interrupt, messages
interrupt._LONGEST_IMPORT_S = 0.0
signal.signal(signal.SIGINT, interrupt.interrupt)
with messages.messages():
    import waiting
"""


def test_an_interrupt_ends_an_import_that_takes_long(tmp_path: Path) -> None:
    """As one of a plug-in that loads a model."""
    (tmp_path / "waiting.py").write_text(WAITING)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    command = [sys.executable, "-c", IMPATIENT]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rankbeam: interrupted\n")


def test_an_interrupt_before_anything_has_begun_ends_the_command_in_silence(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    command = [sys.executable, "-m", "rankbeam", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


CLOSED = """
import os, signal
from rankbeam.pipelines.local.interrupt import interrupt
from rankbeam.pipelines.local.messages import say
signal.signal(signal.SIGHUP, interrupt)
try:
    os.kill(os.getpid(), signal.SIGHUP)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGHUP)
    say("calls in flight have 10 s to end")
    print("ended")
"""


@pytest.mark.long
def test_the_end_of_a_terminal_counts_once_and_its_output_is_discarded() -> None:
    terminal, its_end = os.openpty()
    os.close(terminal)
    command = [sys.executable, "-c", CLOSED]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=its_end, text=True, check=False)
    os.close(its_end)
    assert (done.returncode, done.stdout) == (0, "ended\n")


IN_DUCKDB = """
import os, signal, threading, duckdb
from rankbeam.pipelines.local.interrupt import interrupt
from rankbeam.pipelines.local.messages import messages
signal.signal(signal.SIGTERM, interrupt)
with messages():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    duckdb.sql("SELECT sum(sqrt(a.range + b.range)) FROM range(100_000_000) a, range(3) b").fetchall()
"""


@pytest.mark.long
def test_an_interrupt_that_a_library_turns_into_its_own_error_is_an_interrupt() -> None:
    done = subprocess.run([sys.executable, "-c", IN_DUCKDB], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rankbeam: interrupted\n")


DEFERRED = """
import os, signal
from rankbeam.pipelines.local.interrupt import defer_interrupt
from rankbeam.pipelines.local.messages import messages
with messages(), defer_interrupt("first the tables are complete"):
    os.kill(os.getpid(), signal.SIGINT)
    raise LookupError("no such column")
"""


def test_an_error_after_an_interrupt_that_was_held_is_shown_as_well() -> None:
    done = subprocess.run([sys.executable, "-c", DEFERRED], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "rankbeam: interrupted; then LookupError: no such column"


def test_a_worker_process_ends_if_its_parent_ended_while_it_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rankbeam.pipelines.local.worker", str(tmp_path / "workers"), "0"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False, timeout=120)
    assert (done.returncode, (tmp_path / "workers").exists()) == (0, False)


ENDED = """
import sys
import threading
from rankbeam.pipelines.local.interrupt import end_process
sys.executable = sys.argv[1]
end_process([sys.argv[2]])
"""


def test_pressed_twice_it_still_removes_partial_output(tmp_path: Path) -> None:
    (tmp_path / "partial").mkdir()
    again = tmp_path / "python"
    again.write_text(f'#!/bin/sh\nkill -INT $$\nkill -TERM $$\nexec {sys.executable} "$@"\n')
    again.chmod(0o755)
    command = [sys.executable, "-c", ENDED, again, tmp_path / "partial"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, (tmp_path / "partial").exists()) == (130, "", False)


COMPLETE = """
from rankbeam.pipelines.local.messages import messages
with messages():
    raise KeyboardInterrupt
"""


def test_an_interrupt_outside_of_a_run_says_nothing_about_what_was_kept() -> None:
    """The tables may be complete, with the report being written, or `runs --prune` may have deleted some runs."""
    done = subprocess.run([sys.executable, "-c", COMPLETE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "rankbeam: interrupted\n")


def test_a_ledger_is_named_only_where_there_is_one(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    assert finish_calls(str(ledger)) == "nothing of this run was kept; other runs are unchanged"
    ledger.mkdir()
    assert finish_calls(str(ledger)).startswith(f"all answers are in {ledger}, and the same command continues")
    assert finish_calls("gs://bucket/ledger").startswith("all answers are in gs://bucket/ledger")


def test_the_end_of_work_interrupts_its_thread_and_waits_for_it() -> None:
    began, left = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        try:
            while True:
                left.wait(0.001)
        finally:
            left.set()

    running, hook = in_thread(work), threading.excepthook
    began.wait()
    end(running)
    assert threading.excepthook is hook
    assert (running.done(), left.is_set()) == (True, True)
    with pytest.raises(KeyboardInterrupt):
        result_of(running)
    end(running)  # it has ended


def test_a_signal_that_does_not_end_waits_is_noticed_all_the_same() -> None:
    """As with Polars, whose handler of SIGINT lets system calls go on."""
    running = in_thread(lambda: threading.Event().wait(20))
    threading.Timer(0.05, _thread.interrupt_main).start()  # runs the handler without a signal
    with pytest.raises(KeyboardInterrupt):
        result_of(running)


def test_the_folder_that_an_ending_thread_still_deletes_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, stopped, forgotten = threading.Event(), threading.Event(), threading.Event()
    folders = []

    def run(*_: object) -> None:
        with spill.spilling():
            folders.append(spill.folder())
            began.set()
            stopped.wait()
        forgotten.set()

    def interrupted(_: object) -> None:
        began.wait()
        raise KeyboardInterrupt

    def finish(_: object) -> str:
        stopped.set()
        forgotten.wait()
        return ""

    for name, replacement in (("run", run), ("result_of", interrupted), ("finish_calls", finish)):
        monkeypatch.setattr(evaluate, name, replacement)
    experiment = load_experiment(str(REPOSITORY / "examples" / "helpdesk" / "answers.yaml"), str(tmp_path))
    with pytest.raises(Interrupted) as caught:
        evaluate.run_here(experiment, evaluate.new_run(experiment), pipeline_options([]), temporary=False)
    assert caught.value.folders[0] == folders[0]
