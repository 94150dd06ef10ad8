"""The forecast of a task's calls, as `rankbeam plan` makes it from the steps of a work."""

from typing import Any

from rankbeam.pipelines.plan.simulation import LEAST, MOST, simulate_calls
from rankbeam.transforms.records.calls.steps import Work


def planned_calls(work: Work[Any], item: Any) -> range:
    """The range of distinct calls without a ledger: the minimum, and the maximum plus one."""
    ends = sorted(len(simulate_calls({"": work.steps(item)}, assumed, lambda _: {})[""]) for assumed in (LEAST, MOST))
    return range(ends[0], ends[1] + 1)
