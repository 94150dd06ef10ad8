"""The Arrow schemas of the tables of answers and judgements; `tables` has those of rankings and scores.

A verdict is stored once for what was judged, not for every configuration, query and rank where the same text stands:
`answers` and `rankings` lead from a configuration to hashes of texts, and `claims` and `verdicts` are keyed by these.
"""

import pyarrow as pa

from rankbeam.transforms.records.common_columns import COMMON, required

CONTEXT = pa.struct(
    [
        required("rank", pa.int32()),
        pa.field("doc_id", pa.string()),
        required("text_hash", pa.string()),
    ]
)
"""One context of an answer; its text is in `texts`. Contexts of an answer that exists already may have no id."""

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
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost", pa.float64()),
    ]
)
"""One row a configuration, query and sample of its answer.

`status` is "ok", "refused", "blocked", "truncated", "failed" or "no_context"; `message` says why there is no answer.
`contexts` were given to the model, best first; `contexts_left_out` were not, since all together were longer than
`max_context_tokens`. `citations` are ids of documents that the answer refers to. Tokens and `cost` (null where no price
is known) are those of the call that answered; configurations with an equal prompt share one call.
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
"""One row a claim of an answer or of a reference answer (`owner`), which `text_hash` names.

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
"""One row a verdict: of the claim `left_hash` by the text `right_hash`, or of that text as a whole, such as a grade.

`item_id` is the content key of the judge's call, `items_hash` names all that the call judged, and `position` is the
place among them. No value rests on a verdict that `is_repeat`. `human_verdict` is the known one of a sentinel.
"""

TEXTS = pa.schema([*COMMON, required("text_hash", pa.string()), required("text", pa.string())])
"""One row a text that answers, claims and verdicts refer to; `text_hash` is its SHA-256."""

JUDGE_QUALITY = pa.schema(
    [
        *COMMON,
        required("step", pa.string()),
        pa.field("judge", pa.string()),
        pa.field("model_version", pa.string()),
        pa.field("prompt_hash", pa.string()),
        required("items", pa.int64()),
        required("failed", pa.int64()),
        required("repeated", pa.int64()),
        pa.field("agreement", pa.float64()),
        pa.field("within_sd", pa.float64()),
        required("sentinels", pa.int64()),
        pa.field("sentinel_accuracy", pa.float64()),
        pa.field("sentinel_low", pa.float64()),
        pa.field("sentinel_high", pa.float64()),
        pa.field("drift_p_value", pa.float64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cost", pa.float64()),
    ]
)
"""One row a step of the judge.

`items` were judged, `failed` of them without a verdict. `repeated` items were judged several times: `agreement` is the
share of their pairs of verdicts that agree, `within_sd` the standard deviation of values within an item.
`sentinel_accuracy` is over items whose verdict is known, with Wilson's interval at the run's level of confidence.
"""

ANSWER_TABLES = {
    "answers": ANSWERS,
    "claims": CLAIMS,
    "verdicts": VERDICTS,
    "texts": TEXTS,
    "judge_quality": JUDGE_QUALITY,
}
