"""The README names every judged metric and every model, and no others."""

import re

from support.data import REPOSITORY

from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.records.metrics.judged import parse_judged
from rankbeam.transforms.records.metrics.judged_definitions import JUDGED

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def table_below(heading: str) -> list[list[str]]:
    """The cells of the rows of the first table below a heading."""
    section = README.partition(f"### {heading}\n")[2].partition("\n#")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_every_judged_metric_is_named_with_a_cutoff_where_it_takes_one() -> None:
    names = [name for first, *_ in table_below("Judged metrics") for name in re.findall(r"`([^`]+)`", first)]
    assert sorted(name.removesuffix("@k") for name in names) == sorted(JUDGED)
    for name in names:
        assert parse_judged(name.replace("@k", "@5")).definition.takes_cutoff == name.endswith("@k")


def test_every_model_is_named_with_its_parameters() -> None:
    rows = {first.strip("`"): parameters for first, _, parameters in table_below("Models")}
    assert set(rows) == set(MODELS.types)
    for name, parameters in rows.items():
        listed = set(re.findall(r"\w+", parameters)) - {"and", "or"}
        own = set(MODELS.load(name).model_fields) - {"allow_alias"}
        assert listed == own - ({"model"} if "model" not in listed else set())
