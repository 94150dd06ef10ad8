"""Threads of a run that calls models share a heap of the C library; no run of local files imports Beam's clients."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"

COMMAND = """
import ctypes, os, sys
from rankbeam import __main__

library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
library.fopen.argtypes = ctypes.c_char_p, ctypes.c_char_p
library.malloc_info.argtypes = ctypes.c_int, ctypes.c_void_p
library.fclose.argtypes = (ctypes.c_void_p,)

def described(status):
    file = library.fopen(b"heaps.xml", b"w")
    library.malloc_info(0, file)
    library.fclose(file)
    sys.stdout.write(f"{[name for name in ('apitools', 'bson', 'google.cloud.storage') if name in sys.modules]}\\n")
    sys.stdout.flush()
    os._exit(status)

__main__._end = described
__main__.command()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="malloc_info is of glibc")
@pytest.mark.parametrize(("example", "is_shared"), [("answers", True), ("trec_runs", False)])
def test_threads_share_a_heap_in_a_run_with_models(example: str, is_shared: bool, tmp_path: Path) -> None:
    for part in (example, "helpdesk"):  # the runs are of that example's queries
        shutil.copytree(EXAMPLES / part, tmp_path / part)
    folder = tmp_path / example
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "evaluate", "experiment.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n[]\n")
    heaps = re.findall(r"<heap nr=", Path(folder, "heaps.xml").read_text())
    assert (len(heaps) <= 2) == is_shared, len(heaps)
