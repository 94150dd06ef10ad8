"""The names of all counters of a running pipeline.

A count goes to Beam's metrics, which every runner reports at the end, and to a tally, which the progress display of a
local run reads while the pipeline runs.
"""

from collections import Counter as Tally
from enum import StrEnum

NAMESPACE = "rankbeam"


class Counter(StrEnum):
    """The counters of a run."""

    JUDGED_QUERIES = "judged_queries"
    ROWS_READ = "rows_read"
    TEXTS_EMBEDDED = "texts_embedded"
    PAIRS_SCORED = "pairs_scored"
    QUERIES_ASKED = "queries_asked"
    QUERIES_SCORED = "queries_scored"
    COMPARISONS = "comparisons"
    FAILURES = "failures"
    CALLS_PLANNED = "calls_planned"
    LEDGER_HITS = "ledger_hits"
    CALLS_MADE = "calls_made"
    RETRIES = "retries"
    CALLS_DONE = "calls_done"
    CALLS_FAILED = "calls_failed"
    INPUT_TOKENS = "input_tokens"
    CACHED_TOKENS = "cached_tokens"
    OUTPUT_TOKENS = "output_tokens"
    RUNS_MISSED = "runs_that_miss_a_limit"
    # Dataflow looks for this name: it adds no workers for a stage that waits on purpose.
    THROTTLED_S = "cumulativeThrottlingSeconds"


Counts = Tally[tuple[Counter, str]]
"""Counts by counter and quota pool; the pool is "" for counters that belong to no pool."""
