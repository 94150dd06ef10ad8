"""The guide to judging names every name of another tool, and every step of the judge."""

import re

from support.data import REPOSITORY

from rankbeam.transforms.judge.definitions import JUDGED, OTHER_TOOLS
from rankbeam.transforms.judge.metrics import parse_judged

GUIDE = (REPOSITORY / "docs" / "judging.md").read_text(encoding="utf-8")


def test_every_name_of_another_tool_stands_beside_what_it_means_here() -> None:
    section = GUIDE.partition("## Names of other tools\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    for name, meant in OTHER_TOOLS.items():
        if name.islower():
            assert any(f"`{name}`" in row and f"`{meant}`" in row for row in rows), name
            assert str(parse_judged(name)) == meant


def test_every_step_of_the_judge_is_explained() -> None:
    section = GUIDE.partition("## What the judge is asked\n")[2].partition("\n## ")[0]
    steps = {step for definition in JUDGED.values() for step in definition.steps} - {"embed"}
    assert steps <= set(re.findall(r"`(\w+)`", section))
