"""The guides in docs/ are true: the reference of keys is that of the models, and the examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.key_reference import reference

DOCS = Path(__file__).parent.parent / "docs"
EXTEND = (DOCS / "extend.md").read_text(encoding="utf-8")


def test_the_reference_of_keys_is_that_of_the_models() -> None:
    """Write it anew with `python tests/support/key_reference.py > docs/experiment.md`."""
    assert (DOCS / "experiment.md").read_text(encoding="utf-8") == reference()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the guide's experiment and its files, and below `site` a package with the guide's types."""
    site = tmp_path / "site"
    for name, code in re.findall(r"```python file=(\w+\.py)\n(.*?)```", EXTEND, flags=re.DOTALL):
        site.mkdir(exist_ok=True)
        (site / name).write_text(code, encoding="utf-8")
    info = site / "own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[rankbeam.retrievers]\nprefix = local:Prefix\nshelf = shelf:Shelf\n")
    (experiment,) = re.findall(r"```yaml\n(.*?)```", EXTEND, flags=re.DOTALL)
    (tmp_path / "own.yaml").write_text(experiment, encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "boat"}\n{"_id": "q2", "text": "bear"}\n')
    (tmp_path / "qrels.txt").write_text("q1 0 boat 1\nq2 0 bboat 0\nq2 0 bbear 1\n")
    return tmp_path


def test_the_types_of_the_guide_run_from_an_installed_package(installed: Path) -> None:
    """In a process of its own, as an installed package would: entry points are read once."""
    command = [sys.executable, "-m", "rankbeam", "evaluate", "own.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(installed / "site")}
    done = subprocess.run(command, cwd=installed, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = dict(re.findall(r"^(\S+) +(\d\.\d{4})", done.stdout, flags=re.MULTILINE))
    # `prefix` finds "bbear" for q2 alone; `shelf` finds "boat" first for both queries.
    assert values == {"prefix:prefix=a": "0.0000", "prefix:prefix=b": "0.5000", "shelf": "0.5000"}


EXAMPLES = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in sorted(DOCS.glob("*.md"))
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "example", "exec"), {"__name__": "example"})  # noqa: S102  it is the repository's own
