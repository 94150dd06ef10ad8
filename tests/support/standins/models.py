"""Replies of the stand-ins of models: made of the content of a question alone, so that a repeat changes nothing.

A judge's prompt is known by its fenced data. A verdict on an item depends on the item and the other data only, whatever
the order of the items. Questions that are not a judge's get a short answer that cites the first context.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from support.standins import goldens
from support.standins.faults import fraction

_SECTION = re.compile(r"<<(\w+) (\w{16})\n(.*?)\n\2 \1>>", re.DOTALL)
_ITEM = re.compile(r"^\[(\d+)\] (.*?)(?=\n\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"<<\[(\d+)\] (\w{16})\n(.*?)\n\2 \[\1\]>>", re.DOTALL)
_FORM = re.compile(r'\{"(\w+)":')
_REPAIR = "\n\nYour last answer to this could not be used"
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_POOLED = ("nuggets", "contexts")
DIMENSIONS = 8
LENIENT = "lenient"


@dataclass(frozen=True)
class Question:
    """A prompt as it came.

    Attributes:
        system: its instructions.
        user: its text.
        model: name of the model; one whose name begins with "yes" agrees to everything, those whose names begin with
            "judge" have verdicts of their own, and "lenient" calls a quarter of the unsupported claims supported.
    """

    system: str
    user: str
    model: str = ""

    @property
    def sections(self) -> dict[str, str]:
        """By name, the fenced data."""
        return {name: text for name, _, text in _SECTION.findall(self.user)}

    @property
    def key(self) -> str:
        """The question by its content: equal for an attempt with a repair message."""
        fence = _SECTION.search(self.user)
        return fence[2] if fence else hashlib.sha256(self.user.partition(_REPAIR)[0].encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Its name in the figures."""
        return f"{self.key} {self.user[:200]}"

    def reply(self) -> str:
        """The text of its prompt."""
        form = _FORM.search(self.system + self.user)
        reply = _REPLIES.get(form[1]) if form and self.sections else None
        if reply is None:
            return f"Answer {self.key} rests on the first context [1]."
        agreed = goldens.AGREED.get(form[1]) if form and self.model.startswith("yes") else None
        own = {"model": self.model} if self.model.startswith("judge") else {}
        if self.model == LENIENT and "claims" in self.sections:
            agreed = _lenient
        return json.dumps((agreed or reply)(self.sections | own, self.system))


def _verdicts(sections: dict[str, str], _: str) -> dict[str, Any]:
    if sections.get("query", "").startswith(goldens.MARK):
        return goldens.verdicts(sections)
    values = ("support", "partial", "none") if "nuggets" in sections else ("supported", "not_stated", "contradicted")
    if set(sections) == {"query", "nuggets"}:
        values = ("vital", "okay", "okay")
    items = sections.get("claims") or sections.get("nuggets") or ""
    other = [text for name, text in sections.items() if name not in ("claims", "nuggets")]
    verdict = lambda text: values[int(fraction(text, *other, "verdict") * 3)]  # noqa: E731
    rows = [{"id": int(item), "reason": "by hash", "verdict": verdict(text)} for item, text in _items(items)]
    return {"verdicts": rows}


def _nuggets(sections: dict[str, str], _: str) -> dict[str, Any]:
    """All nuggets so far, and the first words of each text."""
    so_far, texts = (sorted((int(number), text) for number, text in _items(sections[name])) for name in _POOLED)
    rows = [{"text": text, "merges": [number], "contexts": []} for number, text in so_far]
    rows += [{"text": " ".join(text.split()[:6]), "merges": [], "contexts": [number]} for number, text in texts]
    return {"nuggets": rows[:30]}


def _lenient(sections: dict[str, str], _: str) -> dict[str, Any]:
    """Supported where the evidence has the words of the claim, and in a quarter of the other cases."""
    evidence = sections["evidence"]
    rows = [
        {"id": int(item), "reason": "by words", "verdict": "supported" if is_said or is_missed else "not_stated"}
        for item, text in _items(sections["claims"])
        for is_said, is_missed in [(text in evidence, fraction(text, evidence, "missed") < 0.25)]
    ]
    return {"verdicts": rows}


def _items(text: str) -> list[tuple[str, str]]:
    """The numbered items of a section; where each is fenced, lines within one are none."""
    fenced = [(number, item) for number, _, item in _FENCED.findall(text)]
    return fenced or _ITEM.findall(text)


def _claims(sections: dict[str, str], _: str) -> dict[str, Any]:
    sentences = [text.strip() for text in _SENTENCE.findall(sections["text"]) if text.strip()]
    return {"claims": [{"id": number, "text": text, "quote": text} for number, text in enumerate(sentences)]}


def _reason(sections: dict[str, str], system: str) -> dict[str, Any]:
    if "role" in sections:
        return goldens.critic(sections, system)
    if sections.get("query", "").startswith(goldens.MARK) and '"intent"' in system:
        return goldens.grade(sections)
    if "texts" in sections:
        return {"reason": "by hash", "verdict": chosen(system, sections["texts"] + sections.get("model", ""))}
    level = lambda name: int(fraction(*sections.values(), name) * 4)  # noqa: E731
    if '"intent"' in system:
        return {"reason": "by hash", "intent": level("intent"), "trust": level("trust"), "grade": level("grade")}
    kind = ("answered", "partial", "refused", "off_topic")[level("kind")]
    return {"reason": "by hash", "kind": kind, "relevance": level("relevance")}


def chosen(system: str, texts: str) -> str:
    """The verdict on a criterion, by the hash of the question and the texts."""
    question, _, rest = system.partition("\n\nChoose the verdict")
    verdicts = rest.partition("one of:\n")[2].partition("\n")[0].split(" | ")
    return verdicts[int(fraction(question.rpartition("The aspect:\n")[2], texts, "verdict") * len(verdicts))]


def _statements(sections: dict[str, str], _: str) -> dict[str, Any]:
    return {"statements": [text.strip() for text in _SENTENCE.findall(sections["answer"]) if text.strip()]}


def _questions(sections: dict[str, str], _: str) -> dict[str, Any]:
    text = sections["answer"][:40]
    return {"questions": [{"question": f"{number}: {text}?", "noncommittal": False} for number in range(3)]}


def _sentences(sections: dict[str, str], _: str) -> dict[str, Any]:
    numbers = [int(number) for number, text in _items(sections["sentences"]) if fraction(text, "needed") < 0.5]
    return {"sentences": numbers}


_REPLIES = {
    "verdicts": _verdicts, "nuggets": _nuggets, "claims": _claims, "reason": _reason, "statements": _statements,
    "questions": _questions, "sentences": _sentences, "facts": goldens.facts, "question": goldens.question,
    "dimensions": goldens.profiles,
    "standalone": goldens.checks, "answerable": goldens.derive, "answer": goldens.closed_book,
}  # fmt: skip


def spoilt(text: str, fault: str | None) -> str:
    """A reply that breaks its form, as the fault says; one that has no form stays as it is."""
    if not text.startswith("{"):
        return text
    if fault == "prose":
        return f"Certainly! Here is my answer: {text}"
    if fault == "fenced":
        return f"```json\n{text}\n```"
    if fault == "broken_json":
        return text[:-2]
    if fault == "wrong_enum":
        return re.sub(r'"(verdict|kind)": "\w+"', r'"\1": "maybe"', text).replace('"grade": ', '"grade": 1')
    if fault == "wrong_type":
        return re.sub(r'"(id|grade|relevance)": (\d)', r'"\1": "\2"', text)
    if fault == "missing_item":
        return _without_last(text)
    return text


def _without_last(text: str) -> str:
    """Without the last verdict, or another item's last field: a list of claims that is shorter is a good one, too."""
    value = json.loads(text)
    name = list(value)[-1]
    items = value[name]
    if name == "verdicts" and items:
        items.pop()
    elif isinstance(items, list) and items and isinstance(items[-1], dict):
        items[-1].popitem()
    else:
        del value[name]
    return json.dumps(value)


def embedding(text: str) -> list[float]:
    """The embedding of a text."""
    return [round(2 * fraction(text, place) - 1, 6) for place in range(DIMENSIONS)]


def tokens(text: str) -> int:
    """The number of tokens of a text."""
    return len(text) // 4 + 1
