"""A forked process is one of its own: what it is given, what it leaves behind, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import processes

SEES = """
import json, os, sys, threading
print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), len(threading.enumerate()), __name__, sys.path[0]]))
print("said aside", file=sys.stderr)
"""
BEGINS_AND_WAITS = "import threading; print('begun', flush=True); threading.Event().wait()"


def test_it_has_folder_environment_arguments_and_streams_of_its_own(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "HOME": "elsewhere", "SAID": "é"}
    forked = processes.run(SEES, "a b", "-c", cwd=tmp_path, env=variables)
    started = subprocess.run(
        [sys.executable, "-c", SEES, "a b", "-c"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    arguments, cwd, environment, *others = json.loads(started.stdout)
    del environment["LC_CTYPE"]  # Python sets it where no locale is named
    assert json.loads(forked.stdout) == [arguments, cwd, environment, *others]
    assert (forked.returncode, forked.stderr) == (0, "said aside\n")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "raise SystemExit(3)",
        "raise SystemExit('why')",
        "1 / 0",
        "import os; os._exit(7)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import atexit; atexit.register(print, 'at the end'); raise SystemExit(1)",
        "import threading; threading.Timer(0.01, print, ['a thread that is waited for']).start()",
    ],
)
def test_it_ends_as_a_new_python_would(code: str) -> None:
    forked = processes.run(code)
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_no_other(number: signal.Signals) -> None:
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with processes.Process(BEGINS_AND_WAITS, **piped) as one, processes.Process(BEGINS_AND_WAITS, **piped) as other:
        for process in (one, other):
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0)
        one.send_signal(number)
        assert one.wait(60) == -number
        assert other.poll() is None
        other.kill()
    assert (one.returncode, other.returncode) == (-number, -signal.SIGKILL)


def test_after_the_timeout_it_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run("import threading; threading.Event().wait()", timeout=0.1)


def test_the_server_has_one_thread_and_children_have_none_of_its_files() -> None:
    seen = "import os; print(os.getppid(), len(os.listdir('/proc/self/fd')))"
    server, files = processes.run(seen).stdout.split()
    assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1
    assert int(files) == 4  # three streams, and the folder that is listed
