"""The last messages of a process."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankbeam.pipelines.local.messages import FAILED, messages

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(("file", "message"), [(None, "rankbeam: {}\n"), ("out/a.csv", "rankbeam: out/a.csv: {}\n")])
def test_a_full_disk_is_named_with_its_file_where_the_system_names_it(
    file: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = os.strerror(errno.ENOSPC)
    error = OSError(errno.ENOSPC, reason) if file is None else OSError(errno.ENOSPC, reason, file)
    with pytest.raises(SystemExit) as ended, messages():
        raise error
    assert (ended.value.code, capsys.readouterr().err) == (FAILED, message.format(reason))


@pytest.mark.long
def test_a_python_without_docstrings_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text("class DataFrame: ...\ndef read_csv(): ...\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}", "PYTHONOPTIMIZE": "2"}
    experiment = str(REPOSITORY / "examples" / "helpdesk" / "experiment.yaml")
    command = [sys.executable, "-m", "rankbeam", "evaluate", experiment, "--output", str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == FAILED
    assert done.stderr.startswith("rankbeam: Apache Beam needs docstrings; run Python without -OO"), done.stderr


def test_a_limit_of_threads_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, messages():
        raise RuntimeError("can't start new thread [while running 'ReadDataset']")
    assert ended.value.code == FAILED
    assert capsys.readouterr().err.startswith("rankbeam: can't start new thread: raise the limit of processes")
