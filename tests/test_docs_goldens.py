"""The guide to benchmarks: its commands run, and its tables name every step, type, reason and format."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.pipelines.goldens.export import FORMATS
from rankbeam.transforms.goldens.asking import templates
from rankbeam.transforms.goldens.records.items import TYPES

GUIDE = (REPOSITORY / "docs" / "goldens.md").read_text(encoding="utf-8")


def test_the_commands_of_the_guide_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    example = tmp_path / "examples" / "goldens" / "helpdesk.yaml"
    text = example.read_text(encoding="utf-8")
    assert "items: 40" in text
    example.write_text(text.replace("items: 40", "items: 6\nreviews: {pool: 3}"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    block = GUIDE.partition("```sh\n")[2].partition("```")[0]
    commands = [shlex.split(line, comments=True)[1:] for line in block.splitlines()]
    assert [command[1] for command in commands] == [
        "plan",
        "examples/goldens/helpdesk.yaml",
        "review",
        "apply",
        "export",
    ]
    for command in commands:
        outcome = rankbeam(*command)
        assert outcome.status == 0, outcome.stderr
    assert (tmp_path / "out" / "helpdesk.evalset.json").exists()
    for name in re.findall(
        r"`([\w.]+\.(?:jsonl|json|html))`", GUIDE.partition("## The folder")[2].partition("\n## ")[0]
    ):
        assert (tmp_path / "out" / "goldens" / name).exists() or name == "reviews.jsonl", name


def test_every_step_type_and_format_is_named() -> None:
    stages = GUIDE.partition("## Stages\n")[2].partition("\n## ")[0]
    assert set(templates()) <= set(re.findall(r"`(\w+)`", stages))
    assert all(kind in stages for kind in TYPES)
    exports = GUIDE.partition("## Exports\n")[2].partition("\n## ")[0]
    assert set(FORMATS) <= set(re.findall(r"`(\w+)`", exports))


def test_the_example_with_models_is_planned_with_its_cost() -> None:
    outcome = rankbeam("goldens", "plan", str(REPOSITORY / "examples" / "goldens" / "gemini.yaml"))
    assert outcome.status == 0, outcome.stderr
    assert "200 questions from 212 documents" in outcome.stdout
    assert re.search(r"writer: .* at the quota · cost [\d.]+ to [\d.]+", outcome.stdout)
    assert "max_cost: 20" in outcome.stdout
