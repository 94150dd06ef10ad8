"""The table of gate checks on a screen that is too narrow for it."""

import pytest

from rankbeam.pipelines.gates.checks import Check
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.pipelines.gates.show import as_text
from rankbeam.pipelines.show.tabular import Screen
from rankbeam.transforms.records.slices import ALL

GATE = Gate(metric="RR", value="mean", limit=0.5, at_least=True)


@pytest.mark.parametrize(
    ("slices", "headings"),
    [
        ([ALL, ALL], ["gate", "configuration", "what", "found", "limit"]),
        ([ALL, "language=fr"], ["gate", "configuration", "slice", "what", "found", "limit"]),
    ],
)
def test_the_slice_is_left_out_only_if_no_check_is_of_one(slices: list[str], headings: list[str]) -> None:
    checks = [Check(GATE, "long_name_of_a_configuration", part, 0.25) for part in slices]
    heading, _, first, *_ = as_text(checks, Screen(60)).splitlines()
    assert heading.split() == headings
    assert first.index("0.2500") + len("0.2500") == heading.index("found") + len("found")
