"""The Arrow schemas of the tables of answers, judgements and checks; `tables` has those of rankings and scores.

A verdict is stored once for what was judged, not for every configuration, query and rank with the same text:
`answers` and `rankings` lead from a configuration to hashes of texts, and `claims` and `verdicts` are keyed by these.
"""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.records.columns import COMMON, TOKENS, required

CONTEXT = pa.struct(
    [
        required("rank", pa.int32()),
        pa.field("doc_id", pa.string()),
        required("text_hash", pa.string()),
    ]
)
"""One context of an answer; its text is in `texts`. Contexts of an answer that exists already may lack an id."""

ANSWERS = pa.schema(
    [
        *COMMON,
        required("config_id", pa.string()),
        required("query_id", pa.string()),
        required("sample", pa.int64()),
        required("status", pa.string()),
        pa.field("answer", pa.string()),
        pa.field("answer_hash", pa.string()),
        pa.field("reference", pa.string()),
        pa.field("reference_hash", pa.string()),
        pa.field("message", pa.string()),
        pa.field("service", pa.string()),
        pa.field("model", pa.string()),
        pa.field("model_version", pa.string()),
        pa.field("prompt_hash", pa.string()),
        pa.field("contexts", pa.list_(CONTEXT), nullable=False),
        pa.field("contexts_left_out", pa.int64()),
        pa.field("citations", pa.list_(pa.string()), nullable=False),
        *TOKENS,
        pa.field("cost", pa.float64()),
        pa.field("seconds", pa.float64()),
        pa.field("first_token_s", pa.float64()),
        pa.field("steps", pa.string()),
    ]
)
"""One row for each configuration, query and sample of its answer.

`status` is "ok", "refused", "blocked", "truncated", "failed" or "no_context"; `message` says why there is no answer.
`contexts` were passed to the model, best first; `contexts_left_out` were not, since all together were longer than
`max_context_tokens`. `citations` are ids of documents that the answer refers to. Tokens and `cost` (null if no price is
known, or if a price is by tokens that an application does not report) are those of all attempts at the answer, failed
ones included, as in `usage`, whichever run paid for them; configurations with an equal prompt share one call. `seconds`
and `first_token_s` are durations of an application's call, and null elsewhere. `steps` are an agent's calls of tools as
JSON, a list of {tool, args, status?, doc_ids?}; null if the system does not report them, which a repeated column of
BigQuery could not distinguish from an empty list.
"""

CLAIMS = pa.schema(
    [
        *COMMON,
        required("text_hash", pa.string()),
        required("owner", pa.string()),
        required("query_id", pa.string()),
        required("position", pa.int64()),
        required("sample", pa.int64()),
        required("text", pa.string()),
        pa.field("quote_start", pa.int64()),
        pa.field("quote_end", pa.int64()),
        pa.field("items_hash", pa.string()),
        pa.field("judge", pa.string()),
        pa.field("model_version", pa.string()),
        pa.field("prompt_hash", pa.string()),
    ]
)
"""One row for each claim of an answer or of a reference answer (`owner`), which `text_hash` names.

`quote_start` and `quote_end` are code points of that text, the end excluded. `items_hash` names all claims of the text
together: a judge sees them at once, so their verdicts are those of `VERDICTS` with the same `items_hash`.
"""

VERDICTS = pa.schema(
    [
        *COMMON,
        required("step", pa.string()),
        required("item_id", pa.string()),
        pa.field("query_id", pa.string()),
        pa.field("left_hash", pa.string()),
        pa.field("right_hash", pa.string()),
        pa.field("position", pa.int64()),
        required("sample", pa.int64()),
        pa.field("verdict", pa.string()),
        pa.field("grade", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("judge", pa.string()),
        pa.field("model_version", pa.string()),
        pa.field("prompt_hash", pa.string()),
        required("is_sentinel", pa.bool_()),
        pa.field("human_verdict", pa.string()),
        pa.field("items_hash", pa.string()),
        pa.field("is_repeat", pa.bool_()),
    ]
)
"""One row for each verdict: on the claim `left_hash` by the text `right_hash`, or on that whole text, such as a grade.

`item_id` is the content key of the judge's call, `items_hash` names all that the call judged, and `position` is the
position among them. If several judge, `judge` begins with the name of the service. No value rests on a verdict that
`is_repeat`. Known items, the sentinels, have their name as `item_id`, the class of the right answer as
`human_verdict`, and no query; for claims the classes are "none", "one" and "several".
"""

TEXTS = pa.schema([*COMMON, required("text_hash", pa.string()), required("text", pa.string())])
"""One row for each text that answers, claims and verdicts refer to; `text_hash` is its SHA-256."""

VERSION = pa.struct([required("model_version", pa.string()), required("judgements", pa.int64())])
"""The number of judgements by a version of the model."""

GROUP = pa.struct([required("name", pa.string()), required("correct", pa.int64()), required("count", pa.int64())])
"""Known items of one class, or with one tag, and the number of them that the judge got right."""

JUDGE_QUALITY = pa.schema(
    [
        *COMMON,
        required("step", pa.string()),
        pa.field("judge", pa.string()),
        pa.field("model_version", pa.string()),
        pa.field("model_versions", pa.list_(VERSION), nullable=False),
        pa.field("prompt_hash", pa.string()),
        required("items", pa.int64()),
        required("failed", pa.int64()),
        required("repeated", pa.int64()),
        required("compared", pa.int64()),
        pa.field("agreement", pa.float64()),
        pa.field("within_sd", pa.float64()),
        required("sentinels", pa.int64()),
        pa.field("sentinels_right", pa.int64()),
        pa.field("sentinel_accuracy", pa.float64()),
        pa.field("sentinel_low", pa.float64()),
        pa.field("sentinel_high", pa.float64()),
        pa.field("sentinel_groups", pa.list_(GROUP), nullable=False),
        pa.field("drift_since", pa.string()),
        pa.field("drift_p_value", pa.float64()),
        *TOKENS,
        pa.field("cost", pa.float64()),
    ]
)
"""One row for each step of the judge, or of each judge.

`items` are questions about one query that were judged; for `failed` ones, a judgement that values rest on failed.
`model_version` is null if several versions judged: `model_versions` counts their judgements. `repeated` items were
judged several times. They have `compared` verdicts: one per claim or nugget, else one per item. `agreement` is the mean
share of pairs of such verdicts that are equal, `within_sd` the root of the mean variance of their values, from 0 to 1.

`sentinels` are items whose verdict is known; the judge got `sentinels_right` of them right, and one without an answer
is wrong. `sentinel_accuracy` has Wilson's interval at the run's level of confidence; `sentinel_groups` are the classes
of known verdicts, and tags. `drift_since` is the earlier ISO week, such as "2026-W40", in which the same judge was last
asked the same; `drift_p_value` is that of McNemar's test between both. Tokens and `cost` (null if no price is known)
are those of all attempts at judgements, repeats included and known items left out, whichever run paid for them.
"""

CELL = pa.struct([required("first", pa.string()), required("second", pa.string()), required("items", pa.int64())])
"""The number of items by the two decisions."""

AGREEMENT = pa.schema(
    [
        *COMMON,
        required("step", pa.string()),
        required("first", pa.string()),
        required("second", pa.string()),
        required("items", pa.int64()),
        pa.field("queries", pa.int64()),
        pa.field("undecided", pa.int64()),
        pa.field("unmatched", pa.int64()),
        pa.field("weights", pa.string()),
        pa.field("agreement", pa.float64()),
        pa.field("agreement_low", pa.float64()),
        pa.field("agreement_high", pa.float64()),
        pa.field("kappa", pa.float64()),
        pa.field("kappa_low", pa.float64()),
        pa.field("kappa_high", pa.float64()),
        pa.field("ac", pa.float64()),
        pa.field("ac_low", pa.float64()),
        pa.field("ac_high", pa.float64()),
        pa.field("alpha", pa.float64()),
        pa.field("bias", pa.float64()),
        pa.field("bias_low", pa.float64()),
        pa.field("bias_high", pa.float64()),
        pa.field("confusion", pa.list_(CELL), nullable=False),
        pa.field("sampled_from", pa.int64()),
        pa.field("overrating", pa.float64()),
        pa.field("overrating_low", pa.float64()),
        pa.field("overrating_high", pa.float64()),
    ]
)
"""One row for each step of the judge and two who decided the same items: two annotators, or people and the judge.

`items` have decisions of both. `agreement` is the share of equal ones, `kappa` Cohen's, and `ac` Gwet's AC1; if
`weights` is "quadratic", kappa is weighted and `ac` is AC2. `bias` is the mean score of the second minus that of the
first. Intervals are percentiles of 1,000 bootstrap samples of queries. The row of "people" and "people" compares all
annotators at once, with Krippendorff's `alpha`. For the judge, people's decision is the adjudicated one, or else the
most frequent: `undecided` items have a tie. The judge has no verdict on `unmatched` ones, whose texts it did not see.
"""

ANSWER_TABLES = {
    "answers": ANSWERS,
    "claims": CLAIMS,
    "verdicts": VERDICTS,
    "texts": TEXTS,
    "judge_quality": JUDGE_QUALITY,
    "agreement": AGREEMENT,
}

_UNANSWERED = pa.array(["failed", "blocked", "truncated"])


def unanswered_shares(answers: Iterable[pa.RecordBatch]) -> dict[str, float]:
    """The share of each configuration's answers that failed, were blocked or were cut short.

    >>> batch = pa.RecordBatch.from_pydict({"config_id": ["a", "a", "b"], "status": ["ok", "failed", "no_context"]})
    >>> unanswered_shares([batch])
    {'a': 0.5, 'b': 0.0}
    """
    every: Counter[str] = Counter()
    without: Counter[str] = Counter()
    for batch in answers:
        has_none = pc.is_in(batch["status"], _UNANSWERED)
        for counts, rows in ((every, batch["config_id"]), (without, batch["config_id"].filter(has_none))):
            counts.update({count["values"]: count["counts"] for count in rows.value_counts().to_pylist()})
    return {config_id: without[config_id] / number for config_id, number in every.items()}


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
"""One row for each check of a gate, at `position` in the experiment, for a configuration and slice.

`value` is compared with the limit, `at_least` or `at_most`. `found` is null if there is no value, and `reason`
says why; such a gate is missed. `margin` is how far it is on the good side of the limit. The failure rate has no
metric, and a gate that matches no configuration has no `config_id`.
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
"""One row for each configuration and metric of a run that `rankbeam monitor` compared with a baseline run.

`mode` is "fixed" if the queries are those of the baseline, and the interval from `low` to `high` is the paired
difference's. In the mode "fresh", it belongs to the most telling confidence sequence, which began at `since` and
has `nights` nights; `lowest_high` and `highest_low` are the extremes over all sequences that are alive. `state` is
"fell" if `lowest_high` is below -`tolerance`, "rose" if `highest_low` is above `tolerance`, else "no change", or
"unknown" if no night counts. `alarm` is true for a fall, or, if the gate limits a rise, for a rise. `skipped`
nights had few queries, no interval, or the queries of another run. Sequences begin again after each `quarter` of
90 nights.
"""
