"""Ctrl-C in the middle of an import."""

import os
import subprocess
import sys
from pathlib import Path

from support.data import REPOSITORY

BEAM = """
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
import apache_beam
print(apache_beam.is_lost)
try:
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_while_beam_is_imported_comes_when_it_is(tmp_path: Path) -> None:
    (tmp_path / "apache_beam.py").write_text(BEAM)
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"}
    command = [sys.executable, "-c", COMMAND]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\ninterrupted\n"
