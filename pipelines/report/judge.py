"""Report sections about a run's answers, its judge, and the cost of both."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.audit import audit_in, changed_pairs, fills_holes
from rankbeam.pipelines.results.decisions import judge_decisions
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.slices import ALL

Row = dict[str, Any]
_KEYS = ("config_id", "status", "model", "prompt_hash")
_SUMMED = ("input_tokens", "output_tokens", "cost")
_STATUSES = ("ok", "refused", "blocked", "truncated", "failed", "no_context")


def judge(study: Study) -> Row | None:
    """Section on the run's judge and answers; None if the run has neither."""
    answers = counted_answers(study.results)
    steps = study.results.rows("judge_quality") or _steps(study)
    if not answers and not steps:
        return None
    statuses = [status for status in _STATUSES if any(row["status"] == status for row in answers)]
    named = {*(row["model"] for row in answers), *(row["judge"] for row in steps)}
    offline = sorted(name for name in named if name and "no language model" in name)
    holes, audit = _holes(study)
    return {
        "statuses": statuses,
        "answers": by_configuration(study, answers, statuses),
        "steps": steps,
        "offline": offline,
        "agreement": study.results.rows("agreement"),
        "labelled": _labelled_means(study),
        "decisions": _decisions(study),
        "holes": holes,
        "audit": audit,
    }


def _labelled_means(study: Study) -> list[Row]:
    """Means by labels and judge, and the number of labels that the judge is worth."""
    rows = (study.results.means.get((config_id, ALL, metric)) for config_id in study.ids for metric in study.metrics)
    names = dict(zip(study.ids, study.names, strict=True))
    return [
        {**vars(row), "name": names[row.config_id]} for row in rows if row is not None and row.judge_power is not None
    ]


def _decisions(study: Study) -> list[Row]:
    return [
        {**vars(decision), **vars(decision.agreement), "share": decision.agreement.share, "warning": decision.warning}
        for decision in judge_decisions(study.results)
    ]


def _holes(study: Study) -> tuple[list[Row], str]:
    """The pairs that compare differently with holes filled, and the audit of the judge."""
    if not fills_holes(study.results):
        return [], ""
    audit = audit_in(study.results)
    return [vars(pair) for pair in changed_pairs(study.results)], "" if audit is None else audit.as_text()


def counted_answers(results: Results) -> list[Row]:
    """Number, tokens and cost of answers for each configuration, status, model and prompt.

    A run may have millions of answers, so only each batch's sums are kept in memory.
    """
    batches = results.batches("answers", (*_KEYS, *_SUMMED))
    sums = [_sums(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows]
    if not sums:
        return []
    together = pa.concat_tables(sums).group_by(list(_KEYS), use_threads=False)
    columns = [name for name in sums[0].column_names if name not in _KEYS]
    rows: list[Row] = (
        together.aggregate([(name, "sum") for name in columns]).rename_columns([*_KEYS, *columns]).to_pylist()
    )
    return rows


def _sums(answers: pa.Table) -> pa.Table:
    known = [(name, "sum") for name in _SUMMED]
    summed = answers.group_by(list(_KEYS), use_threads=False).aggregate([*known, ("cost", "count"), ([], "count_all")])
    return summed.rename_columns([*_KEYS, *_SUMMED, "with_cost", "answers"])


def by_configuration(study: Study, counted: Sequence[Row], statuses: Sequence[str]) -> list[Row]:
    groups = grouped((row["config_id"], row) for row in counted)
    return [
        {
            "name": name,
            "model": next((row["model"] for row in rows if row["model"]), None),
            "prompt_hash": next((row["prompt_hash"] for row in rows if row["prompt_hash"]), None),
            "counts": [sum(row["answers"] for row in rows if row["status"] == status) for status in statuses],
            "input_tokens": sum(row["input_tokens"] or 0 for row in rows),
            "output_tokens": sum(row["output_tokens"] or 0 for row in rows),
            "cost": _cost(rows),
        }
        for config_id, name in zip(study.ids, study.names, strict=True)
        if (rows := groups.get(config_id))
    ]


def _cost(rows: Sequence[Row]) -> float | None:
    """The cost of a configuration's answers; None if one of them has none, except for those that no model gave."""
    has_all = all(row["with_cost"] == row["answers"] or row["status"] in ("failed", "no_context") for row in rows)
    known = [row["cost"] for row in rows if row["with_cost"]]
    return sum(known) if has_all and known else None


def _steps(study: Study) -> list[Row]:
    """Measurements of the judge derived from its verdicts, for runs without stored measurements."""
    names = ("step", "judge", "model_version", "prompt_hash")
    counted = Counter(
        tuple(row[name] for name in names)
        for row in {
            row["item_id"]: row for row in study.results.rows("verdicts", (*names, "item_id", "is_sentinel"))
        }.values()
        if not row["is_sentinel"]
    )
    measured = ("agreement", "sentinel_accuracy", "sentinel_low", "sentinel_high", "cost", "drift_p_value")
    return [
        {**dict(zip(names, key, strict=True)), "items": items, "failed": None, **dict.fromkeys(measured)}
        | {"repeated": 0, "sentinels": 0, "within_sd": None, "input_tokens": None, "output_tokens": None}
        for key, items in sorted(counted.items(), key=str)
    ]
