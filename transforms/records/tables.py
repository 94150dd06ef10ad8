"""The Arrow schema of every table that is written: the only definition there is.

Parquet files, the DuckDB file, and later BigQuery tables and LookML are derived from these. Every table
carries the columns of `COMMON`, so that each can be partitioned and clustered without a join.
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
"""One retrieved document; the grade is null where there is no judgement.

Where `dataset.qrels_holes` is set, `grade_source` is "human" or "llm"; elsewhere it is null, and grades are those of
the file of judgements.
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
"""One row an execution, written last: only runs with a row here are finished.

`state` is "done", or "missed" where the run misses one of its gates or has more failures than
`max_failure_rate`, or did not make all its calls because of `max_cost`.
`warnings` also say what failed. `dataset`, `versions` and `statistics` (how intervals and tests were made) are JSON.
`calls` counts every attempt at a remote service, also those of bundles that were lost with their worker and made again;
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
"""One row a configuration; `parameters` is JSON, `position` its place in the experiment.

`derived_from` is the config_id of the configuration whose rankings it is cut from, and `parts` are those of the
configurations asked for what it fuses or reranks. `dialect` is the tool by whose rules it is scored. An output of an
older release has neither `dialect` nor `parts`. `dropped_at` is the number of queries that the configuration was
asked until a race dropped it; null where it was asked all of them.
"""

RANKINGS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("query_id", pa.string()),
        pa.field("documents", pa.list_(DOCUMENT), nullable=False),
    ]
)
"""One row a configuration and query; the documents are in rank order."""

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
"""One row a configuration and query; without metrics of rankings where its call failed, or the dialect leaves it out.

Judged metrics are there for every query, each with a `status` of its own; where that is neither ok nor empty, the value
is null and `reason` says why. The null status of a metric of rankings means that of the row.
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
    ]
)
"""One row a configuration, slice and metric.

`queries` were scored (`empty` of them without any result, scoring 0), `failed` were not, `undefined` have a value that
does not exist, and `missing` are those without results that the configuration's dialect leaves out, or all of one that
is not judged by the metric; `not_asked` are those that come after a race has dropped the configuration. These counts
are true for the `panel` of the metric: its own name where it is judged, else "retrieval", which null means, too.
`lowest` and `highest` are what the mean could be if every
failed query were scored. `joint_low` and `joint_high` hold for all configurations at once, so also for the one that was
picked because its mean is the highest; `may_be_best` is false where the configuration is significantly worse (these
three are null for a single configuration, one without a value, a slice of few queries, and without replicates).
`tie_lowest` and `tie_highest` are what the mean could be if documents of equal score stood in another order (null
unless asked for, or where it is not known). `equal_to` is the first configuration, in the experiment's order, whose
values are equal at every query; null if there is none before this one. `clusters` is the effective number of clusters
of queries, (Σm)² / Σm² for clusters of m scored queries, which intervals count; null without `statistics.cluster`.
`judge_power` and `effective_labels` are null but for metrics by labels and judge, whose `queries` are labelled: the
weight of the judge's values, from 0 to 1, and how many labels alone would give the same standard error.
`unjudged_lowest` and `unjudged_highest` are bounds on what missing judgements hide: the mean of the lower and of the
higher value of each query if its unjudged documents are not relevant, or all have the dataset's highest grade (null
without the metric `Judged`, and for metrics with rules of their own for unjudged documents).
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
    ]
)
"""One row a configuration, baseline, slice and metric, over the `queries` that both have; `unpaired` ones only one has.
Both counts are true for the metric.

`p_value` is of the paired randomisation test, by the `p_method` "enumerated" (all flips of signs), "sampled" (10,000 of
them) or "tilted" (importance sampling, for small ones); older releases name none. `p_adjusted` is it by Holm, and
`q_value` by Benjamini and Hochberg, over all comparisons of the metric: those of all queries are one family, those of
slices another. Configurations with equal values are one member of a family, and one with the values of the baseline is
not tested: its p-values are null. `t_p_value` is of the paired t test, `effect_size` the difference over the standard
deviation of the differences (Cohen's d_z), `detectable` the smallest difference that a t test at 5% would find with a
power of 80%, or null where all differences are equal. `clusters` is as in `configuration_metrics`. `stage` is "rewrite"
or "rerank" where the configuration has this stage, the baseline lacks it and all else is equal, "retriever" where only
the type of retriever differs, or null.
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
"""One row a failed call, or, where a `metric` is judged, a query that has no value of it because a call failed.

A call that several configurations share, such as that of a retriever whose results two of them rerank, has a row for
each.

At the stage "import" a row is a document `doc_id` that could not be imported into a `corpus`: it is of no query, and of
no configuration.
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
"""One row a corpus that a service built for the run, or had built before.

`identity` is a hash of `specification`, which is JSON, and of `documents`, their fingerprint; `resource` is its name at
the service. `state` is "built" where the run imported files into it, `imported_files` of them, and "reused" where it
did not. It holds `files` and lacks `failed_files`. `keep` is how long it exists: "run" until the run has ended,
"always", or a number of days, which end at `expires` unless it is used again.
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
"""The use of a quota pool by one configuration; other configurations needed `shared_calls` of the calls as well."""

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
    ]
)
"""One row a stage, quota pool and model; the model is null where the services of the pool are none.

The stage "judge" has the calls that generate answers, too, because one task answers a query and judges the answers; the
model and the pool tell them apart where generator and judge differ.

`calls` are attempts, failed ones included, and tokens are what they took; `cached_tokens` are part of `input_tokens`.
`cost` is in the currency of the experiment's prices, and null where it names none for the pool. `p50_s` and `p95_s`
are percentiles of the seconds from the start of an attempt to its answer, within 1%: waiting for the quota, attempts
that failed and answers of the ledger are left out, and null means that no call was answered. `configurations` has the
same of calls that retrieve or answer for a configuration; one that several share counts for each of them, so that
their sums may exceed the row's. Runs of earlier versions have none of the three.
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

LARGE = ("query_metrics", "rankings", "answers", "claims", "verdicts", "texts")
"""Tables that grow with the queries."""

ADDED = frozenset({"gates", "usage", "corpora", "monitor", *ANSWER_TABLES})
"""Tables that runs of earlier versions do not have."""

NEVER_EMPTY = frozenset({"runs", "configurations", "query_metrics", "configuration_metrics"})
"""Tables of which every run has rows."""


def own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns of a table besides the common ones.

    >>> own_columns(FAILURES).names[:2]
    ['config_id', 'query_id']
    """
    common = {field.name for field in COMMON}
    return pa.schema([field for field in schema if field.name not in common])
