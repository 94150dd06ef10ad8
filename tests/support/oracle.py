"""A judge in this process that knows the known items, and follows a script for everything else."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.inputs import json_texts, trec_qrels, trec_run, write
from support.known_answers import known_items

from rankbeam.transforms.clients.models.base import STOP, ModelParameters, Stored, prompt_of
from rankbeam.transforms.clients.models.local import LocalModel
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.clients.parameters import entry_points_of
from rankbeam.transforms.judge.known_items import KnownItem
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.reply import Reply, Tokens

ENTRY_POINTS = "[rankbeam.models]\noracle = support.oracle:Oracle\n"
TOKENS = Tokens(input=10, cached=2, output=3)
DEPTH = 3
_KNOWN = {(step, json.dumps(dict(item.values))): item for step, items in known_items().items() for item in items}


@dataclass
class Script:
    """Behaviour of the oracle.

    Attributes:
        version: version of the model by the number of the call, from 0.
        wrong: names of known items that it gets wrong.
        prompts: every prompt so far.
    """

    version: Callable[[int], str] = lambda _: "oracle-1"
    wrong: frozenset[str] = frozenset()
    prompts: list[Prompt] = field(default_factory=list)

    def known(self) -> list[KnownItem]:
        """The known items that were asked."""
        keys = ((prompt.step, json.dumps(dict(prompt.values))) for prompt in self.prompts)
        return [_KNOWN[key] for key in keys if key in _KNOWN]


script = Script()


class Oracle(LocalModel):
    """Answers at once, counts tokens as a remote model does, and says nothing of being offline."""

    model: str = "oracle"

    async def connect(self) -> Any:
        return Connection(self)

    def answer(self, prompt: Prompt) -> Stored:
        version = script.version(len(script.prompts))
        script.prompts.append(prompt)
        item = _KNOWN.get((prompt.step, json.dumps(dict(prompt.values))))
        reply = scripted(prompt) if item is None else right(item, is_wrong=item.id in script.wrong)
        return Stored(reply, STOP, model_version=version)


@dataclass(frozen=True)
class Connection:
    model: ModelParameters

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        assert isinstance(self.model, Oracle)
        return Reply(self.model.answer(prompt_of(payload)).written(), TOKENS)

    async def close(self) -> None:
        """Nothing is open."""


def scripted(prompt: Prompt) -> str:
    """Grades follow the context's number, one more in the third judgement; "broken" contexts have no grade."""
    if prompt.step != "grade":
        return Lexical().answer(prompt).text or ""
    number = int(prompt.values["context"].split()[-1])
    if "broken" in prompt.values["context"]:
        return '{"reason": "it has no'
    level = (number + (prompt.sample == 2)) % 4
    return json.dumps({"reason": "scripted", "intent": level, "trust": level, "grade": level})


def right(item: KnownItem, *, is_wrong: bool = False) -> str:
    """The right answer to a known item, or a wrong one."""
    if item.step == "claims":
        words = item.values["text"].split()
        count = ("none", "one", "several").index(item.expected)
        count = (count + is_wrong) % 3
        claims = [{"id": number, "text": words[number], "quote": words[number]} for number in range(count)]
        return json.dumps({"claims": claims})
    if item.step == "grade":
        level = (int(item.expected) + is_wrong) % 4
        return json.dumps({"reason": "known", "intent": level, "trust": level, "grade": level})
    others = {"supported": "not_stated", "contradicted": "supported", "not_stated": "supported"}
    verdict = others[item.expected] if is_wrong else item.expected
    return json.dumps({"verdicts": [{"id": 0, "reason": "known", "verdict": verdict}]})


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script_: Script) -> None:
    """Register the oracle with a script until the test ends."""
    info = folder / "site" / "oracles-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: oracles\nVersion: 1.0\n")
    write(info / "entry_points.txt", ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder / "site"))
    monkeypatch.setattr("support.oracle.script", script_)
    entry_points_of.cache_clear()


def judged(folder: Path, queries: int, broken: int = 0, **judge: Any) -> dict[str, Any]:
    """An experiment whose judge, the oracle, grades three contexts of each query; some contexts are broken."""
    numbers = range(queries * DEPTH)
    texts = [(f"d{number}", f"{'broken' if number < broken else 'text'} {number}") for number in numbers]
    rows = [(f"q{number // DEPTH}", f"d{number}", float(-number)) for number in numbers]
    system = {"type": "run_file", "path": write(folder / "given.run", trec_run(rows))}
    return {
        "dataset": {
            "queries": write(
                folder / "queries.jsonl", json_texts([(f"q{n}", f"question {n}") for n in range(queries)])
            ),
            "qrels": write(folder / "qrels", trec_qrels([(query, document, 1.0) for query, document, _ in rows])),
            "corpus": write(folder / "corpus.jsonl", json_texts(texts)),
        },
        "services": {"judge": {"type": "oracle"}},
        "configurations": [{"name": "given", "retriever": system, "top_k": DEPTH}],
        "judge": {"service": "judge", **judge},
        "metrics": [f"ContextRelevance@{DEPTH}"],
    }
