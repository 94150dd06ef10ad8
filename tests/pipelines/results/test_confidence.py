"""The confidence of the sentence about the best configuration, which a race lowers."""

import json

import pyarrow as pa
import pytest

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory


@pytest.mark.parametrize(
    ("dropped_at", "race", "number", "confidence"),
    [
        (None, "{metric: RR, alpha: 0.2}", 1, "95%"),  # a race that dropped nothing
        (20, "{metric: RR, alpha: 0.2}", 1, "80%"),  # the race alone decided
        (20, "{metric: RR, alpha: 0.2}", 2, "75%"),  # and the others were compared at the end, at 95%
        (20, "{metric: RR}", 2, "90%"),
    ],
)
def test_a_race_may_have_lost_the_best(dropped_at: int | None, race: str, number: int, confidence: str) -> None:
    run = {"experiment_yaml": f"race: {race}", "statistics": json.dumps({"confidence": 0.95})}
    rows = [{"position": 0, "parameters": "{}", "dropped_at": dropped_at}]
    tables = {
        "runs": pa.Table.from_pylist([{"dataset": "{}", "versions": "{}"} | run]),
        "configurations": pa.Table.from_pylist(rows, pa.schema([
            ("position", pa.int64()), ("parameters", pa.string()), ("dropped_at", pa.int64()),
        ])),
    }  # fmt: skip
    assert Results("", "run", InMemory(tables)).confidence_of_best(number) == confidence
