"""Benchmarks without a language model: sentences as facts, and gaps as questions.

A question is part of a sentence with a gap, such as "invoices of past ____ are PDFs": cloze-like, and of no type. This
shows every stage and costs nothing. Such a benchmark tests that a pipeline runs, not how good a system is.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.clients.models.local import share, stems
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import Prompt

GAP = "____"
_FACTS = 8
_LEAST_STEMS = 6
_WORDS_AROUND = 5  # words on each side of a gap: few enough not to give the text away
_LEAST_SHARE = 0.5
_WORD = re.compile(r"\S+")
_TEXT_LABEL = re.compile(r"^\((?:text (\d+)|further document)\) ")
_LEAST_COMMON = 3


def write(prompt: Prompt, language: str) -> str | None:
    """The answer of a writer that only knows sentences; None for other steps.

    >>> texts = {"0": "Hi. Owners download invoices of past years as files on the billing page."}
    >>> json.loads(write(Prompt("facts", {"texts": texts}), "english"))["facts"][0]["source"]
    0
    """
    writer = _WRITERS.get(prompt.step)
    return None if writer is None else json.dumps(writer(prompt, language), ensure_ascii=False)


def check(prompt: Prompt, language: str) -> dict[str, Any] | None:
    """The answer of a checker that only counts words; None for other steps."""
    checker = _CHECKERS.get(prompt.step)
    return None if checker is None else checker(prompt.values, language)


def _facts(prompt: Prompt, language: str) -> dict[str, Any]:
    facts = []
    for number, text in sorted(prompt.values["texts"].items()):
        parts = [text[start:end] for start, end in sentences(text)]
        long = [part for part in parts if len(stems(part, language)) >= _LEAST_STEMS]
        facts += [{"text": part, "source": int(number), "quote": part} for part in long[:_FACTS]]
    return {"facts": facts}


def _enlarge(prompt: Prompt, language: str) -> dict[str, Any]:
    """The first sentence, and the one with the most word stems."""
    text = str(prompt.values["text"])
    parts = [text[start:end] for start, end in sentences(text)]
    return {"description": parts[0], "example": max(parts, key=lambda part: len(stems(part, language)))}


def _distill(prompt: Prompt, language: str) -> dict[str, Any]:
    """Sentences that share word stems with the facts."""
    known = frozenset[str]().union(*(stems(text, language) for text in prompt.values["facts"].values()))
    stemmed = {number: stems(text, language) for number, text in prompt.values["sentences"].items()}
    chosen = [
        int(number) for number, own in stemmed.items() if len(own) >= _LEAST_STEMS and len(own & known) >= _LEAST_COMMON
    ]
    return {"sentences": sorted(chosen)[:_FACTS]}


def _question(prompt: Prompt, language: str) -> dict[str, Any]:
    """One fact from each text, each with a gap."""
    by_text: dict[str, list[tuple[int, str]]] = {}
    for number, text in sorted(prompt.values["facts"].items(), key=lambda item: int(item[0])):
        match = _TEXT_LABEL.match(text)
        by_text.setdefault(match[1] if match else "", []).append((int(number), _TEXT_LABEL.sub("", text)))
    wish = f"{prompt.values['type']} {prompt.sample}"
    chosen = [facts[_pick(wish, len(facts))] for facts in by_text.values()]
    return {
        "question": " … ".join(_with_gap(text, wish, language) for _, text in chosen),
        "answer": " ".join(text for _, text in chosen),
        "facts": [number for number, _ in chosen],
        "nuggets": [{"text": text, "vital": True} for _, text in chosen],
    }


def _unanswerable(prompt: Prompt, language: str) -> dict[str, Any]:
    """A question about made-up names, which no document mentions."""
    facts = prompt.values["facts"]
    text = facts[str(_pick(f"{prompt.sample}", len(facts)))]
    digest = hashlib.sha256(f"{text}{prompt.sample}".encode()).hexdigest()
    topic = max(sorted(stems(text, language)), key=len)
    names = [f"{digest[start : start + 4]}x" for start in range(0, 12, 4)]
    return {"question": f"{' '.join(names)} {topic} {GAP}", "answer": f"The documents do not mention {names[0]}."}


def _closed_book(*_: Any) -> dict[str, Any]:
    return {"answer": "I do not know."}


def _with_gap(sentence: str, wish: str, language: str) -> str:
    """Some words of a sentence, with a gap in place of a long word."""
    words = _WORD.findall(_TEXT_LABEL.sub("", sentence))
    inner = range(min(2, len(words) - 1), max(len(words) - 1, 1))
    long = [index for index in inner if stems(words[index], language) and len(words[index]) > 4] or list(inner) or [0]
    gap = long[_pick(f"{wish}{sentence}", len(long))]
    before, after = words[max(0, gap - _WORDS_AROUND) : gap], words[gap + 1 : gap + 1 + _WORDS_AROUND]
    return " ".join([*before, GAP, *after])


def _pick(wish: str, count: int) -> int:
    return int(hashlib.sha256(wish.encode()).hexdigest()[:8], 16) % count


def _checks(values: Mapping[str, Any], language: str) -> dict[str, Any]:
    quotes, question, answer = (stems(text, language) for text in _texts(values))
    question_share, answer_share = share(question, quotes), share(answer, quotes)
    return {
        "standalone": _verdict(len(question) >= 3, f"{len(question)} word stems"),
        "answerable_from_quotes": _verdict(
            question_share >= _LEAST_SHARE, f"{question_share:.0%} of its words in the quotes"
        ),
        "complete": _verdict(bool(answer), f"{len(answer)} word stems"),
        "only_from_quotes": _verdict(answer_share >= 0.9, f"{answer_share:.0%} of its words in the quotes"),
        "natural": _verdict(True, "not judged: counts words only"),
        "harmless": _verdict(True, "not judged: counts words only"),
    }


def _critic(values: Mapping[str, Any], language: str) -> dict[str, Any]:
    quotes, _, answer = (stems(text, language) for text in _texts(values))
    covered = share(answer, quotes)
    return {"reason": f"{covered:.0%} of its words in the quotes", "verdict": "approve" if covered >= 0.9 else "reject"}


def _derive(values: Mapping[str, Any], language: str) -> dict[str, Any]:
    """For each part of the question, the sentence of the quotes that contains most of it, if at least half."""
    parts = [stems(part, language) for part in values["question"].split(" … ")]
    candidates = [quote[start:end] for _, quote in sorted(values["quotes"].items()) for start, end in sentences(quote)]
    chosen = []
    for part in parts:
        best = max(candidates, key=lambda text: (share(part, stems(text, language)), -len(text)), default="")
        if share(part, stems(best, language)) >= _LEAST_SHARE:
            chosen.append(best)
    claims = list(dict.fromkeys(chosen))
    is_answered = len(chosen) == len(parts)
    return {"answerable": is_answered, "answer": " ".join(claims), "claims": claims if is_answered else []}


def _texts(values: Mapping[str, Any]) -> tuple[str, str, str]:
    return " ".join(values["quotes"].values()), values["question"], values["answer"]


def _verdict(passes: bool, reason: str) -> dict[str, str]:
    return {"reason": reason, "verdict": "yes" if passes else "no"}


_WRITERS: Mapping[str, Callable[[Prompt, str], dict[str, Any]]] = MappingProxyType(
    {
        "facts": _facts,
        "enlarge": _enlarge,
        "distill": _distill,
        "question": _question,
        "unanswerable": _unanswerable,
        "closed_book": _closed_book,
    }
)
_CHECKERS: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = MappingProxyType(
    {"checks": _checks, "critic": _critic, "consensus": _critic, "derive": _derive}
)
