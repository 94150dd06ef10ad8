"""Sections of a report about a run's answers, its judge, and the cost of both."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.results.audit import audit_in, changed_pairs, fills_holes
from rankbeam.pipelines.results.decisions import judge_decisions
from rankbeam.transforms.records.slices import ALL

Row = dict[str, Any]
_STATUSES = ("ok", "refused", "blocked", "truncated", "failed", "no_context")


@dataclass(frozen=True)
class JudgeSection:
    """The tables of the section."""

    statuses: list[str]
    answers: list[Row]
    steps: list[Row]
    offline: list[str]
    agreement: list[Row]
    labelled: list[Row]
    decisions: list[Row]
    holes: list[Row]
    audit: str


def judge(study: Study) -> JudgeSection | None:
    """Section on the run's judge and answers; None if the run has neither."""
    answers = study.results.rows(
        "answers", ("config_id", "status", "model", "prompt_hash", "input_tokens", "output_tokens", "cost")
    )
    steps = study.results.rows("judge_quality") or _steps(study)
    if not answers and not steps:
        return None
    statuses = [status for status in _STATUSES if any(row["status"] == status for row in answers)]
    named = {*(row["model"] for row in answers), *(row["judge"] for row in steps)}
    offline = sorted(name for name in named if name and "no language model" in name)
    agreement = study.results.rows("agreement")
    answered = _by_configuration(study, answers, statuses)
    return JudgeSection(
        statuses, answered, steps, offline, agreement, _labelled(study), _decisions(study), *_holes(study)
    )


def _labelled(study: Study) -> list[Row]:
    """Means by labels and judge, and how many labels the judge is worth."""
    rows = (study.results.means.get((config_id, ALL, metric)) for config_id in study.ids for metric in study.metrics)
    names = dict(zip(study.ids, study.names, strict=True))
    return [
        {**vars(row), "name": names[row.config_id]} for row in rows if row is not None and row.judge_power is not None
    ]


def _decisions(study: Study) -> list[Row]:
    return [
        {**vars(one), **vars(one.agreement), "share": one.agreement.share, "warning": one.warning}
        for one in judge_decisions(study.results)
    ]


def _holes(study: Study) -> tuple[list[Row], str]:
    """The pairs that compare otherwise with holes filled, and the audit of the judge."""
    if not fills_holes(study.results):
        return [], ""
    audit = audit_in(study.results)
    return [vars(pair) for pair in changed_pairs(study.results)], "" if audit is None else audit.as_text()


def _by_configuration(study: Study, answers: Sequence[Row], statuses: Sequence[str]) -> list[Row]:
    grouped: defaultdict[str, list[Row]] = defaultdict(list)
    for row in answers:
        grouped[row["config_id"]].append(row)
    return [
        {
            "name": name,
            "model": rows[0]["model"],
            "prompt_hash": rows[0]["prompt_hash"],
            "counts": [sum(row["status"] == status for row in rows) for status in statuses],
            "input_tokens": sum(row["input_tokens"] or 0 for row in rows),
            "output_tokens": sum(row["output_tokens"] or 0 for row in rows),
            "cost": None if any(row["cost"] is None for row in rows) else sum(row["cost"] for row in rows),
        }
        for config_id, name in zip(study.ids, study.names, strict=True)
        if (rows := grouped[config_id])
    ]


def _steps(study: Study) -> list[Row]:
    """Measurements of the judge from its verdicts, for runs that have none."""
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
