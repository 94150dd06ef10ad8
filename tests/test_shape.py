"""The table of the code's shape, for a small product with one of everything that it counts."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.data import REPOSITORY

FILES = {
    "pyproject.toml": """[[tool.importlinter.contracts]]
name = "floors"
type = "layers"
layers = ["rankbeam.pipelines", "rankbeam.transforms"]
""",
    "pipelines/high.py": '"""High."""\nfrom rankbeam.transforms import low\n\nclass Wide:\n    a: int\n    b: str\n',
    "transforms/low.py": "# A reason.\nfrom rankbeam.pipelines import high\n\nclass Wide: ...\ndef walk(): ...\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_every_figure_of_a_checkout_is_counted(checkout: Path) -> None:
    command = [sys.executable, REPOSITORY / "tests" / "support" / "shape.py", "--names", checkout]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    figures = {line[:36].strip(): line.split()[-1] for line in printed.splitlines()[1:] if str(checkout) not in line}
    assert figures["files"] == "2"
    assert figures["lines"] == "11"
    assert (figures["code"], figures["docstring"], figures["comment"], figures["blank"]) == ("7", "1", "1", "2")
    assert figures["circles of modules"] == figures["arrows up"] == "1"
    assert "rankbeam.transforms.low -> rankbeam.pipelines.high" in printed
    assert figures["largest constructor, parameters"] == "2"
    assert "Wide x2" in printed
