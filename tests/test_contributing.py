"""The files, commands and floors that .github/CONTRIBUTING.md names."""

import re
import tomllib

import pytest
from support.data import REPOSITORY

TEXT = (REPOSITORY / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAYERS = {
    contract["containers"][0]: contract["layers"]
    for contract in tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    if contract["type"] == "layers" and "containers" in contract
}


def test_the_files_it_names_exist() -> None:
    named = set(re.findall(r"\b(?:transforms|pipelines|tests|docs)/[\w./]*\w", TEXT))
    assert len(named) > 20
    assert [name for name in sorted(named) if "STEP" not in name and not (REPOSITORY / name).exists()] == []


def test_the_commands_it_names_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    lines = re.findall(r"(?:`|^    |=\w+ )make ((?:[a-z-]+ ?)+)", TEXT, flags=re.MULTILINE)
    assert {target for line in lines for target in line.split()} <= targets


@pytest.mark.parametrize(
    ("container", "first", "last"),
    [("rankbeam.pipelines", "cli", "config"), ("rankbeam.transforms.clients", "retrievers", "storage")],
)
def test_the_floors_are_those_that_are_verified(container: str, first: str, last: str) -> None:
    """Every package of the picture is above those right of it, and none is left out of pipelines' floors."""
    start = TEXT.index(first, TEXT.index("floor  folder"))
    picture = re.sub(r"\s+", " ", TEXT[start : TEXT.index(last, start) + len(last)])
    drawn = [set(floor.split(", ")) for floor in picture.split(" > ")]
    verified = [set(re.findall(r"\w+", layer)) for layer in LAYERS[container]]
    positions = [{position for position, layer in enumerate(verified) if floor & layer} for floor in drawn]
    assert [sorted(position) for position in positions] == sorted([min(position)] for position in positions)
    if container == "rankbeam.pipelines":
        assert set().union(*drawn) == set().union(*verified)
