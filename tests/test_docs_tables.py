"""The pages name every metric, every column of a table and every model, and no others."""

import re

import pytest
from support.documents import page

from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.judge.definitions import JUDGED
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.metrics.definitions import ALIASES, METRICS


@pytest.mark.parametrize("name", [*METRICS, *ALIASES])
def test_every_metric_is_documented(name: str) -> None:
    documented = {match.partition("@")[0] for match in re.findall(r"`([A-Za-z_0-9]+(?:@k)?)`", page("metrics").text)}
    assert name in documented or name in ("RPrec", "BPref")  # two spellings that ir_measures accepts too


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_column_is_documented(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|.*$", page("tables").text, flags=re.MULTILINE)
    for column in tables.TABLES[name].names:
        assert column in row or column in ("run_id", "experiment", "started_at"), column


def test_every_judged_metric_is_named_with_a_cutoff_where_it_takes_one() -> None:
    sections = ("Metrics of agents", "Judged metrics", "Answers and reference answers without a judge")
    rows = [row for section in sections for row in page("metrics").rows(section)]
    names = [name for first, *_ in rows for name in re.findall(r"`([^`]+)`", first)]
    assert sorted(name.removesuffix("@k") for name in names) == sorted(name for name in JUDGED if "(args=" not in name)
    for name in names:
        assert parse_judged(name.replace("@k", "@5")).definition.takes_cutoff == name.endswith("@k")


def test_every_model_is_named_with_its_parameters() -> None:
    entry_points_of.cache_clear()  # another test may have installed a model
    rows = {first.strip("`"): parameters for first, _, parameters in page("services").rows("Models")}
    assert set(rows) == set(MODELS.types)
    for name, parameters in rows.items():
        listed = set(re.findall(r"\w+", parameters)) - {"and", "or"}
        own = set(MODELS.load(name).model_fields) - {"allow_alias"}
        assert listed == own - ({"model"} if "model" not in listed else set())
