"""Sums over the answers of each configuration, in the report's section on the judge, against plain Python."""

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.pipelines.report import judge
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.records import tables

SCHEMA = tables.TABLES["answers"]
NAMES = ("config_id", "status", "model", "prompt_hash", "input_tokens", "output_tokens", "cost")
STATUSES = ["ok", "failed", "no_context"]
maybe_number = st.none() | st.integers(0, 50)
answers = st.fixed_dictionaries(
    {
        "config_id": st.sampled_from(["a", "b", "c"]),
        "status": st.sampled_from(STATUSES),
        "model": st.sampled_from([None, "m"]),
        "prompt_hash": st.sampled_from([None, "p"]),
        "input_tokens": maybe_number,
        "output_tokens": maybe_number,
        "cost": st.none() | st.integers(0, 50).map(float),
    }
)


class Parts(InMemory):
    """A table in several batches."""

    def batches(self, name: str, columns: Any, most: int) -> Any:  # noqa: ARG002  small ones are what is tried
        yield from self.table(name, columns).to_batches(3)


def study_of(rows: list[dict[str, Any]]) -> Study:
    schema = pa.schema([SCHEMA.field(name) for name in NAMES])
    stored = Parts({"answers": pa.Table.from_pylist(rows, schema)})
    results = Results("out", "r", stored)  # type: ignore[arg-type]  a Protocol's arguments may have other names
    return cast("Study", SimpleNamespace(ids=["a", "b", "c"], names=["A", "B", "C"], results=results))


@given(rows=st.lists(answers, max_size=12))
def test_sums_are_those_of_plain_python(rows: list[dict[str, Any]]) -> None:
    study = study_of(rows)
    counted = judge.by_configuration(study, judge.counted_answers(study.results), STATUSES)
    expected = []
    for config_id in study.ids:
        own = [row for row in rows if row["config_id"] == config_id]
        costs = [row["cost"] for row in own if row["cost"] is not None or row["status"] not in ("failed", "no_context")]
        if own:
            expected.append(
                {
                    "name": config_id.upper(),
                    "model": next((row["model"] for row in own if row["model"]), None),
                    "prompt_hash": next((row["prompt_hash"] for row in own if row["prompt_hash"]), None),
                    "counts": [sum(row["status"] == status for row in own) for status in STATUSES],
                    "input_tokens": sum(row["input_tokens"] or 0 for row in own),
                    "output_tokens": sum(row["output_tokens"] or 0 for row in own),
                    "cost": None if None in costs or not costs else pytest.approx(sum(costs)),
                }
            )
    assert counted == expected
