"""Questions and checks that the stand-ins of models write for a benchmark: true unless a text says `lie=KIND`.

A question carries a tag of the sentence that answers it, so that a check can be true without a language model:

    lie=quotes          facts come with quotes that the text does not contain
    lie=outside         the answer says more than the quotes
    lie=duplicate       the question is the same for all such texts
    lie=leak            the question holds nine words of the text in a row
    lie=answered        a question that is called unanswerable has the tag of a sentence of its text
    lie=elsewhere       a question that is called unanswerable has the tag of a sentence of another document
"""

import hashlib
import re
from typing import Any

from support.standins.faults import fraction

MARK = "Q~"
"""The beginning of every question of these stand-ins."""
ELSEWHERE = "This sentence answers a question that another document was said to leave open."

_ITEM = re.compile(r"^\[(\d+)\] (.*?)(?=\n\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_OF_TEXT = re.compile(r"^\((text \d+|further document)\) ")
_TAG = re.compile(r"tag-(\w{8})")
_LIE = re.compile(r"lie=(\w+)")
OUTSIDE = "Besides, it is free of charge on the moon."

Sections = dict[str, str]


def facts(sections: Sections, _: str) -> dict[str, Any]:
    """The sentences of the texts, the first six of each."""
    items = []
    for number, text in _ITEM.findall(sections["texts"]):
        lies = _LIE.findall(text)
        for sentence in _sentences(text)[:6]:
            quote = f"never {sentence} written" if "quotes" in lies else sentence
            marks = "".join(f" lie={lie}" for lie in lies)
            items.append({"text": sentence + marks, "source": int(number), "quote": quote})
    return {"facts": items}


def question(sections: Sections, _: str) -> dict[str, Any]:
    """A question about one fact of each text."""
    items = {int(number): text for number, text in _ITEM.findall(sections["facts"])}
    lies = {lie for text in items.values() for lie in _LIE.findall(text)}
    if "texts" in sections:  # it is to be unanswerable
        return _unanswerable(sections, lies)
    wish = sections["type"] + sections["profile"]
    by_text: dict[str, list[int]] = {}
    for number, text in sorted(items.items()):
        match = _OF_TEXT.match(text)
        by_text.setdefault(match[1] if match else "", []).append(number)
    used = [numbers[int(fraction(wish, items[numbers[0]]) * len(numbers))] for numbers in by_text.values()]
    plain = [_LIE.sub("", _OF_TEXT.sub("", items[number])).strip() for number in used]
    answers = [*plain, OUTSIDE] if "outside" in lies else plain
    return {
        "question": _query_of(plain, lies),
        "answer": " ".join(answers),
        "facts": used,
        "nuggets": [{"text": text, "vital": True} for text in answers],
    }


def _query_of(plain: list[str], lies: set[str]) -> str:
    if "duplicate" in lies:
        return f"{MARK} what is written about this subject everywhere, in all documents? {_tags(plain)}"
    if "leak" in lies:
        return f"{MARK} {' '.join(plain[0].split()[:9])}? {_tags(plain)}"
    words = " ".join(hashlib.sha256(text.encode()).hexdigest()[:24] for text in plain)
    return f"{MARK} {words} {' '.join(plain[0].split()[1:4])}? {_tags(plain)}"


def _unanswerable(sections: Sections, lies: set[str]) -> dict[str, Any]:
    inside = _sentences(_ITEM.findall(sections["texts"])[0][1])[0]
    about = inside if "answered" in lies else ELSEWHERE if "elsewhere" in lies else sections["profile"] + inside
    name = hashlib.sha256(f"{about}{inside}".encode()).hexdigest()[:24]
    text = f"{MARK} {name} {'this sentence answers' if 'elsewhere' in lies else 'left open'}? {_tags([about])}"
    return {"question": text, "answer": "The documents do not say."}


def checks(sections: Sections, _: str) -> dict[str, Any]:
    """True verdicts: tags of sentences, and sentences of the answer that the quotes contain."""
    quotes = sections["quotes"]
    answerable = _answered(sections["question"], quotes)
    inside = all(sentence in quotes for sentence in _sentences(sections["answer"]))
    verdicts = {
        "standalone": True,
        "answerable_from_quotes": answerable,
        "complete": True,
        "only_from_quotes": inside,
        "natural": True,
        "harmless": True,
    }
    return {name: {"reason": "by tag", "verdict": "yes" if is_so else "no"} for name, is_so in verdicts.items()}


def derive(sections: Sections, _: str) -> dict[str, Any]:
    """The sentences of the quotes whose tags the question has."""
    tags = set(_TAG.findall(sections["question"]))
    sentences = [sentence for _, quote in _ITEM.findall(sections["quotes"]) for sentence in _sentences(quote)]
    claims = list(dict.fromkeys(sentence for sentence in sentences if _tag(sentence) in tags))
    is_answered = {_tag(claim) for claim in claims} == tags
    return {"answerable": is_answered, "answer": " ".join(claims), "claims": claims if is_answered else []}


def profiles(sections: Sections, _: str) -> dict[str, Any]:
    """Two dimensions; one is named after the number of texts, and repeated where a text says lie=repeated."""
    values = [{"name": name, "description": f"wants the {name}"} for name in ("short", "long")]
    names = ["Goal", "goal" if "lie=repeated" in sections["texts"] else f"Of {len(_ITEM.findall(sections['texts']))}"]
    return {"dimensions": [{"name": n, "description": "what for", "reason": "by tag", "values": values} for n in names]}


def critic(sections: Sections, _: str) -> dict[str, Any]:
    """An approval if the quotes contain the answer."""
    inside = all(sentence in sections["quotes"] for sentence in _sentences(sections["answer"]))
    return {"reason": "by tag", "verdict": "approve" if inside else "reject"}


def closed_book(sections: Sections, _: str) -> dict[str, Any]:
    """Nothing is known."""
    return {"answer": f"I do not know {hashlib.sha256(sections['question'].encode()).hexdigest()[:6]}."}


def verdicts(sections: Sections) -> dict[str, Any]:
    """A claim is supported if the other text contains it word by word."""
    name = "nuggets" if "nuggets" in sections else "claims"
    words = ("support", "none") if name == "nuggets" else ("supported", "not_stated")
    other = sections["answer" if name == "nuggets" else "evidence"]
    rows = [
        {"id": int(item), "reason": "by words", "verdict": words[text not in other]}
        for item, text in _ITEM.findall(sections[name])
    ]
    return {"verdicts": rows}


def grade(sections: Sections) -> dict[str, Any]:
    """3 where a passage has all the sentences that are asked for, else 1."""
    level = 3 if _answered(sections["query"], sections["context"]) else 1
    return {"reason": "by tag", "intent": level, "trust": level, "grade": level}


def _answered(question: str, text: str) -> bool:
    return set(_TAG.findall(question)) <= {_tag(sentence) for sentence in _sentences(text)}


def _tags(sentences: list[str]) -> str:
    return " ".join(f"tag-{_tag(sentence)}" for sentence in sentences)


def _tag(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()[:8]


def _sentences(text: str) -> list[str]:
    return [
        sentence.strip()
        for sentence in _SENTENCE.findall(re.sub(r"^\[\d+\] ", "", text, flags=re.M))
        if sentence.strip()
    ]


def _all_yes(sections: Sections, system: str) -> dict[str, Any]:
    return {name: {"reason": "yes", "verdict": "yes"} for name in checks(sections, system)}


def _answered_by_quotes(sections: Sections, _: str) -> dict[str, Any]:
    quotes = [quote for _, quote in _ITEM.findall(sections["quotes"])]
    return {"answerable": True, "answer": " ".join(quotes), "claims": quotes}


def _all_supported(sections: Sections, _: str) -> dict[str, Any]:
    name, verdict = ("nuggets", "support") if "nuggets" in sections else ("claims", "supported")
    rows = [{"id": int(item), "reason": "yes", "verdict": verdict} for item, _ in _ITEM.findall(sections[name])]
    return {"verdicts": rows}


AGREED = {"standalone": _all_yes, "answerable": _answered_by_quotes, "verdicts": _all_supported}
"""Replies of a model that agrees to everything, by the first key of its answer."""
