"""The application of the examples, started as their readers start it, on a free port."""

import subprocess
import sys
from pathlib import Path

_PORT = "8765"
_processes: list[subprocess.Popen[str]] = []


def served(script: str) -> str:
    """Start an application, and write its address into the experiment beside it; returns what it prints."""
    process = subprocess.Popen([sys.executable, script, "0"], stdout=subprocess.PIPE, text=True)
    _processes.append(process)
    assert process.stdout is not None
    line = process.stdout.readline()
    port = line.rpartition(":")[2].partition("/")[0]
    experiment = Path(script).with_name("experiment.yaml")
    text = experiment.read_text(encoding="utf-8")
    assert f":{_PORT}/" in text
    experiment.write_text(text.replace(f":{_PORT}/", f":{port}/"), encoding="utf-8")
    return line


def stop_all() -> None:
    """End the applications that were started."""
    while _processes:
        process = _processes.pop()
        process.terminate()
        process.communicate()
