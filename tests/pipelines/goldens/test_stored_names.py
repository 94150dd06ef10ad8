"""Names in the files of a benchmark and its rounds, which other versions read: a field may be added, none renamed."""

from dataclasses import fields

import pytest

from rankbeam.transforms.goldens.records.items import CallRecord, Golden, PooledPassages, PoolGrade, Vote, WrittenItem
from rankbeam.transforms.records.calls.steps import CallUsage, Usage

STORED = {
    Usage: "pool calls ledger_hits records stage model tokens took",
    CallUsage: "position calls shared tokens durations",
    CallRecord: "step service model_version key input cached output in_batch",
    WrittenItem: "item_id type profile topic number round spans state reason detail failure question answer nuggets"
    " evidence dropped_quotes common_run overlap agreement closed_book votes asked",
    PooledPassages: "item_id grades asked",
    PoolGrade: "span doc_id grade reason failure",
    Golden: "made split rank grades difficulty flags",
    Vote: "step criterion verdict reason critic",
}


@pytest.mark.parametrize("record", STORED, ids=lambda record: record.__name__)
def test_stored_names_stay(record: type) -> None:
    names = [field.name for field in fields(record)]
    assert names[: len(STORED[record].split())] == STORED[record].split()
