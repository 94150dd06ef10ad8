"""The Arrow schemas of the tables of checks: gates, and the changes that `rankbeam monitor` finds."""

import pyarrow as pa

from rankbeam.transforms.records.columns import COMMON, required

GATES = pa.schema(
    [
        *COMMON,
        required("position", pa.int64()),
        pa.field("config_id", pa.string()),
        required("slice", pa.string()),
        pa.field("metric", pa.string()),
        required("value", pa.string()),
        pa.field("at_least", pa.float64()),
        pa.field("at_most", pa.float64()),
        pa.field("found", pa.float64()),
        pa.field("margin", pa.float64()),
        required("met", pa.bool_()),
        pa.field("reason", pa.string()),
    ]
)
"""One row a check of one of the experiment's gates, which is at `position` there, for a configuration and slice.

`value` is compared with the limit, `at_least` or `at_most`. `found` is null if there is no value, and `reason`
says why; such a gate is missed. `margin` is how far it is on the good side of the limit. The failure rate is of no
metric, and a gate that is about no configuration there is has no `config_id`.
"""

MONITOR = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("metric", pa.string()),
        required("mode", pa.string()),
        required("state", pa.string()),
        required("alarm", pa.bool_()),
        required("baseline_run", pa.string()),
        pa.field("baseline_mean", pa.float64()),
        required("tolerance", pa.float64()),
        pa.field("change", pa.float64()),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
        pa.field("lowest_high", pa.float64()),
        pa.field("highest_low", pa.float64()),
        required("nights", pa.int64()),
        pa.field("since", pa.timestamp("us", "UTC")),
        required("queries", pa.int64()),
        required("skipped", pa.int64()),
        required("quarter", pa.int64()),
    ]
)
"""One row a configuration and metric of a run that `rankbeam monitor` compared with a baseline run.

`mode` is "fixed" where the queries are those of the baseline, and the interval from `low` to `high` is that of the
paired difference. In the mode "fresh", it belongs to the most telling confidence sequence, which began at `since` and
has `nights` nights; `lowest_high` and `highest_low` are the extremes over all sequences that are alive. `state` is
"fell" where `lowest_high` is below -`tolerance`, "rose" where `highest_low` is above `tolerance`, else "no change", or
"unknown" where no night counts. `alarm` is true for a fall, or, where the gate limits a rise, for a rise. `skipped`
nights had few queries, no spread, or queries of an earlier night. Sequences begin again after each `quarter` of 90
nights.
"""
