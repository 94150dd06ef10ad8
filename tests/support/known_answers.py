"""Right answers to known items."""

import json
from typing import Any

from rankbeam.transforms.judge.known_items import KnownItem, known_items_of
from rankbeam.transforms.judge.steps import STEPS


def known_items() -> dict[str, tuple[KnownItem, ...]]:
    """The known items of all steps that have some."""
    by_step = {step.name: known_items_of(step.name) for step in STEPS}
    return {step: items for step, items in sorted(by_step.items()) if items}


def right_answer(item: KnownItem) -> str:
    """The reply of a judge that knows the item, as JSON."""
    return json.dumps(_value(item))


def _value(item: KnownItem) -> dict[str, Any]:
    if item.step == "claims":
        text = item.values["text"]
        count = {"none": 0, "one": 1, "several": 2}[item.expected]
        return {"claims": [{"id": number, "text": "x", "quote": text.split()[number]} for number in range(count)]}
    if item.step == "statements":
        return {"statements": ["x"] * {"none": 0, "one": 1, "several": 3}[item.expected]}
    if item.step == "questions":
        is_evasive = item.expected == "noncommittal"
        return {"questions": [{"question": str(number), "noncommittal": is_evasive} for number in range(3)]}
    if item.step == "sentences":
        return {"sentences": [int(number) for number in item.expected.split(", ") if number != "none"]}
    if item.step == "grade":
        return {"reason": "r", "intent": 0, "trust": 0, "grade": int(item.expected)}
    if item.step == "answer_kind":
        return {"reason": "r", "kind": item.expected, "relevance": 0}
    return {"verdicts": [{"id": 0, "reason": "r", "verdict": item.expected}]}
