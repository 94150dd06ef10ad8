"""The Arrow schema of every table that is written: Parquet files, DuckDB, BigQuery and LookML are derived from it.

Every table carries the columns of `COMMON`, so that each can be partitioned and clustered without a join.
"""

import pyarrow as pa

from rankbeam.transforms.records.answer_tables import ANSWER_TABLES, GATES, MONITOR
from rankbeam.transforms.records.columns import COMMON, TOKENS, required

_NAME_AND_VALUE = pa.struct([required("name", pa.string()), required("value", pa.string())])
_METRIC_AND_VALUE = pa.struct(
    [
        required("metric", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("tie_lowest", pa.float64()),
        pa.field("tie_highest", pa.float64()),
        pa.field("status", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
DOCUMENT = pa.struct(
    [
        required("rank", pa.int32()),
        required("doc_id", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("grade", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("grade_source", pa.string()),
    ]
)
"""One retrieved document; the grade is null without a judgement.

If `dataset.qrels_holes` is set, `grade_source` is "human" or "llm"; otherwise it is null, and grades are those of the
file of judgements.
"""

RUNS = pa.schema(
    [
        *COMMON,
        required("state", pa.string()),
        required("finished_at", pa.timestamp("us", "UTC")),
        required("experiment_yaml", pa.string()),
        required("dataset_fingerprint", pa.string()),
        required("dataset", pa.string()),
        required("versions", pa.string()),
        required("statistics", pa.string()),
        required("calls", pa.int64()),
        required("ledger_hits", pa.int64()),
        required("failures", pa.int64()),
        pa.field("warnings", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row for each execution, written last: only runs with a row here are finished.

`state` is "done", or "missed" if the run missed one of its gates, had more failures than
`max_failure_rate`, or did not make all its calls because of `max_cost`.
`warnings` also state failures. `dataset`, `versions` and `statistics` (settings of intervals and tests) are JSON.
`calls` counts every attempt at a remote service, also those of bundles that were lost with a worker and repeated;
`ledger_hits` counts the requests that an earlier run had paid for.
"""

CONFIGURATIONS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("name", pa.string()),
        required("position", pa.int64()),
        required("retriever", pa.string()),
        required("parameters", pa.string()),
        pa.field("derived_from", pa.string()),
        pa.field("dialect", pa.string()),
        pa.field("parts", pa.list_(pa.string())),
        pa.field("dropped_at", pa.int64()),
    ]
)
"""One row for each configuration; `parameters` is JSON, `position` its position in the experiment.

`derived_from` is the config_id of the configuration whose rankings it is cut from, and `parts` are those of the
configurations whose rankings it fuses or reranks. `dialect` is the tool by whose rules it is scored. The output of an
older release has neither `dialect` nor `parts`. `dropped_at` is the number of queries that the configuration was
asked until a race dropped it; null if it was asked all of them.
"""

RANKINGS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("query_id", pa.string()),
        pa.field("documents", pa.list_(DOCUMENT), nullable=False),
    ]
)
"""One row for each configuration and query; the documents are in rank order."""

QUERY_METRICS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("query_id", pa.string()),
        pa.field("text", pa.string()),
        required("status", pa.string()),
        pa.field("slices", pa.list_(_NAME_AND_VALUE), nullable=False),
        pa.field("metrics", pa.list_(_METRIC_AND_VALUE), nullable=False),
    ]
)
"""One row for each configuration and query; without metrics of rankings if its call failed or the dialect skips it.

Every query has the judged metrics, each with a `status` of its own; if that is neither ok nor empty, the value is null
and `reason` says why. A null status of a metric of rankings means the row's status.
"""

CONFIGURATION_METRICS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("slice", pa.string()),
        required("metric", pa.string()),
        pa.field("mean", pa.float64()),
        pa.field("ci_low", pa.float64()),
        pa.field("ci_high", pa.float64()),
        pa.field("std_error", pa.float64()),
        pa.field("joint_low", pa.float64()),
        pa.field("joint_high", pa.float64()),
        pa.field("may_be_best", pa.bool_()),
        required("queries", pa.int64()),
        required("empty", pa.int64()),
        required("failed", pa.int64()),
        required("missing", pa.int64()),
        pa.field("lowest", pa.float64()),
        pa.field("highest", pa.float64()),
        pa.field("tie_lowest", pa.float64()),
        pa.field("tie_highest", pa.float64()),
        pa.field("equal_to", pa.string()),
        pa.field("panel", pa.string()),
        pa.field("undefined", pa.int64()),
        pa.field("not_asked", pa.int64()),
        pa.field("clusters", pa.float64()),
        pa.field("unjudged_lowest", pa.float64()),
        pa.field("unjudged_highest", pa.float64()),
        pa.field("judge_power", pa.float64()),
        pa.field("effective_labels", pa.float64()),
        pa.field("lower_is_better", pa.bool_()),
    ]
)
"""One row for each configuration, slice and metric.

`queries` were scored (`empty` of them without any result, scoring 0), `failed` were not, `undefined` have no defined
value, and `missing` are those without results that the configuration's dialect leaves out, or all queries if the
configuration is not judged by the metric; `not_asked` are those that come after a race has dropped the configuration.
These counts are those of the metric's `panel`: its own name if it is judged, else "retrieval", which null means, too.
`lowest` and `highest` are the extremes of the mean if every
failed query were scored. `joint_low` and `joint_high` hold for all configurations at once, so also for the one that was
picked because its mean is the highest; `may_be_best` is false if the configuration is significantly worse (these
three are null for a single configuration, one without a value, a slice of few queries, and without replicates).
`tie_lowest` and `tie_highest` are the extremes of the mean over all orders of documents with equal scores (null
unless requested, or if unknown). `equal_to` is the first configuration, in the experiment's order, whose
values are equal for every query; null if there is none before this one. `clusters` is the effective number of clusters
of queries, (Σm)² / Σm² for clusters of m scored queries, which intervals count; null without `statistics.cluster`.
`judge_power` and `effective_labels` are null except for metrics by labels and judge, whose `queries` are labelled: the
weight of the judge's values, from 0 to 1, and the number of labels that alone would give the same standard error.
`unjudged_lowest` and `unjudged_highest` are bounds on the effect of missing judgements: the mean of the lower and of
the higher value of each query if its unjudged documents are not relevant, or all have the dataset's highest grade (null
without the metric `Judged`, and for metrics with rules of their own for unjudged documents). `lower_is_better` is true
for a metric of errors or costs, and null in older runs.
"""

COMPARISONS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("baseline", pa.string()),
        required("slice", pa.string()),
        required("metric", pa.string()),
        pa.field("difference", pa.float64()),
        pa.field("ci_low", pa.float64()),
        pa.field("ci_high", pa.float64()),
        pa.field("std_error", pa.float64()),
        pa.field("p_value", pa.float64()),
        pa.field("p_adjusted", pa.float64()),
        pa.field("q_value", pa.float64()),
        pa.field("t_p_value", pa.float64()),
        pa.field("effect_size", pa.float64()),
        pa.field("detectable", pa.float64()),
        required("queries", pa.int64()),
        required("unpaired", pa.int64()),
        required("wins", pa.int64()),
        required("ties", pa.int64()),
        required("losses", pa.int64()),
        pa.field("p_method", pa.string()),
        pa.field("clusters", pa.float64()),
        pa.field("stage", pa.string()),
        pa.field("lower_is_better", pa.bool_()),
    ]
)
"""One row for each configuration, baseline, slice and metric, over the `queries` that both have; only one has the
`unpaired` ones. Both counts are those of the metric.

`p_value` is that of the paired randomisation test, by the `p_method` "enumerated" (all flips of signs), "sampled"
(10,000 of them) or "tilted" (importance sampling, for small p-values); older releases have no method. It is corrected
over all comparisons of the metric, by Holm in `p_adjusted` and by Benjamini and Hochberg in `q_value`: comparisons over
all queries are one family, those over slices another. Configurations with equal values are one member of a family, and
one with the baseline's values is not tested: its p-values are null. `t_p_value` is that of the paired t test,
`effect_size` the difference over the standard deviation of the differences (Cohen's d_z), `detectable` the smallest
difference that a t test at 5% would find with a power of 80%, or null if all differences are equal. `wins` are queries
that are better than in the baseline. `clusters` and `lower_is_better` are as in `configuration_metrics`. `stage` is
"rewrite" or "rerank" if the configuration has this stage, the baseline lacks it and all else is equal, "retriever" if
only the type of retriever differs, or null.
"""

FAILURES = pa.schema(
    [
        *COMMON,
        pa.field("config_id", pa.string()),
        pa.field("query_id", pa.string()),
        required("stage", pa.string()),
        required("kind", pa.string()),
        required("attempts", pa.int64()),
        required("message", pa.string()),
        pa.field("metric", pa.string()),
        pa.field("corpus", pa.string()),
        pa.field("doc_id", pa.string()),
    ]
)
"""One row for each failed call, or, if `metric` is set, for each query without its value because a call failed.

A call that several configurations share, such as that of a retriever whose results two of them rerank, has a row for
each. `attempts` is 0 if it was not made.

At the stage "import" a row is a document `doc_id` that could not be imported into a `corpus`; it has neither query nor
configuration.
"""

CORPORA = pa.schema(
    [
        *COMMON,
        required("name", pa.string()),
        required("type", pa.string()),
        required("identity", pa.string()),
        required("specification", pa.string()),
        required("documents", pa.string()),
        required("resource", pa.string()),
        required("state", pa.string()),
        required("files", pa.int64()),
        required("failed_files", pa.int64()),
        required("imported_files", pa.int64()),
        required("keep", pa.string()),
        pa.field("expires", pa.timestamp("us", "UTC")),
    ]
)
"""One row for each corpus that a service built for the run, or had built before.

`identity` is a hash of `specification`, which is JSON, and of `documents`, their fingerprint; `resource` is its name at
the service. `state` is "built" if the run imported files into it, `imported_files` of them, and else "reused". It holds
`files` and lacks `failed_files`. `keep` is its lifetime: "run" until the run has ended, "always", or a number of days,
which end at `expires` unless it is used again.
"""

USAGE_OF_CONFIGURATION = pa.struct(
    [
        required("config_id", pa.string()),
        required("calls", pa.int64()),
        required("shared_calls", pa.int64()),
        pa.field("p50_s", pa.float64()),
        pa.field("p95_s", pa.float64()),
        required("input_tokens", pa.int64()),
        required("cached_tokens", pa.int64()),
        required("output_tokens", pa.int64()),
        pa.field("cost", pa.float64()),
    ]
)
"""Usage of a quota pool by one configuration; other configurations also needed `shared_calls` of the calls."""

FROM_LEDGER = pa.struct(
    [
        pa.field("config_id", pa.string()),
        pa.field("ledger_hits", pa.int64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost", pa.float64()),
        pa.field("calls", pa.int64()),
    ]
)
"""Calls of one configuration that the ledger answered, the attempts that they once took, and their cost."""

USAGE = pa.schema(
    [
        *COMMON,
        required("stage", pa.string()),
        required("pool", pa.string()),
        pa.field("model", pa.string()),
        pa.field("calls", pa.int64()),
        pa.field("ledger_hits", pa.int64()),
        *TOKENS,
        pa.field("cost", pa.float64()),
        pa.field("p50_s", pa.float64()),
        pa.field("p95_s", pa.float64()),
        pa.field("configurations", pa.list_(USAGE_OF_CONFIGURATION)),
        pa.field("from_ledger", pa.list_(FROM_LEDGER)),
    ]
)
"""One row for each stage, quota pool and model; the model is null if the pool's services are not models.

The stage "judge" includes the calls that generate answers, because one task answers a query and judges the answers; the
model and the pool distinguish them if generator and judge differ.

`calls` are attempts, failed ones included, with their tokens; `cached_tokens` are part of `input_tokens`.
`cost` is in the currency of the experiment's prices, and null without a price for the pool. `p50_s` and `p95_s`
are percentiles of the seconds from the start of an attempt to its answer, within 1%: waiting for the quota, attempts
that failed and answers of the ledger are left out, and null means that no call was answered. `configurations` has the
same for calls that retrieve or answer for a configuration; a call that several share counts for each of them, so that
their sums may exceed the row's. `from_ledger` has what their calls that the ledger answered once used, at the prices
of this run, which did not pay for them. Runs of earlier versions lack these columns.
"""

TABLES = {
    "runs": RUNS,
    "configurations": CONFIGURATIONS,
    "rankings": RANKINGS,
    "query_metrics": QUERY_METRICS,
    "configuration_metrics": CONFIGURATION_METRICS,
    "comparisons": COMPARISONS,
    "failures": FAILURES,
    "gates": GATES,
    "usage": USAGE,
    "corpora": CORPORA,
    "monitor": MONITOR,
    **ANSWER_TABLES,
}

LARGE = ("query_metrics", "rankings", "answers", "claims", "verdicts", "texts")  # tables that grow with the queries

ADDED = frozenset({"gates", "usage", "corpora", "monitor", *ANSWER_TABLES})  # tables that runs of earlier versions lack

NEVER_EMPTY = frozenset({"runs", "configurations", "query_metrics", "configuration_metrics"})
"""Tables that have rows in every run."""


def own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns of a table besides the common ones.

    >>> own_columns(FAILURES).names[:2]
    ['config_id', 'query_id']
    """
    common = {field.name for field in COMMON}
    return pa.schema([field for field in schema if field.name not in common])
