"""Nuggets of one query: collect them from the contexts of all configurations, window by window, then weigh them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rankbeam.transforms.judge.judge import JudgeWork
from rankbeam.transforms.judge.steps.nuggets import DraftNugget, NuggetsStep, NuggetWeightStep, Weight
from rankbeam.transforms.kernels.wording import words
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.errors import CallError

STAGE = "nuggets"
Words = tuple[str, ...]

_AT_ONCE = 10  # contexts, or nuggets to weigh, that the model sees at once
_MOST_CHARACTERS = 40_000  # the most characters of the contexts of one call, about 10,000 tokens


@dataclass(frozen=True)
class NuggetPool:
    """A query with the relevant contexts of all configurations, in an order that does not reveal the configurations."""

    query_id: str
    query: str
    contexts: tuple[str, ...]


@dataclass(frozen=True)
class PooledNugget:
    """A fact, its weight, and the positions of the contexts that state it."""

    text: str
    vital: bool
    contexts: tuple[int, ...]


@dataclass(frozen=True)
class PooledNuggets:
    """The nuggets of a query. `dropped` of them did not stay on the list; `problem` says why there are none."""

    query_id: str
    nuggets: tuple[PooledNugget, ...] = ()
    dropped: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class CollectNuggets(JudgeWork):
    """Collect and weigh nuggets; a `Work` whose items are `NuggetPool`s."""

    stage: ClassVar[str] = STAGE

    def steps(self, item: NuggetPool) -> Steps[PooledNuggets]:
        """Update the list with each window of contexts, then weigh all nuggets; if a call fails, there are none."""
        drafts: tuple[DraftNugget, ...] = ()  # with positions of contexts in the pool
        dropped = 0
        for window in windows(item.contexts):
            so_far = _numbered_texts(drafts)
            texts = {str(number): text for number, (_, text) in enumerate(window)}
            (outcome,) = yield [self._call(NuggetsStep.name, item, nuggets=so_far, contexts=texts)]
            if isinstance(outcome, CallError):
                return _failed_result(item, outcome)
            dropped += len(left_out(drafts, outcome.value))
            drafts = updated_drafts(drafts, outcome.value, [position for position, _ in window])
        parts = [drafts[start : start + _AT_ONCE] for start in range(0, len(drafts), _AT_ONCE)]
        outcomes = yield [self._call(NuggetWeightStep.name, item, nuggets=_numbered_texts(part)) for part in parts]
        if (error := next((one for one in outcomes if isinstance(one, CallError)), None)) is not None:
            return _failed_result(item, error)
        weights = [reasoned.verdict for outcome in outcomes for reasoned in outcome.value]
        weighed = zip(drafts, weights, strict=True)
        nuggets = (PooledNugget(draft.text, weight is Weight.VITAL, draft.contexts) for draft, weight in weighed)
        return PooledNuggets(item.query_id, tuple(nuggets), dropped)

    def _call(self, step: str, item: NuggetPool, **values: Mapping[str, str]) -> Call:
        template = self.judge.templates[step]
        prompt = template.prompt(
            {"query": item.query, **values}, max_output_tokens=self.judge.max_output_tokens, sample=0
        )
        return self.judge.model.call(prompt)


def windows(contexts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Contexts with their positions, at most ten and about 10,000 tokens at once; longer contexts are split.

    >>> [[position for position, _ in window] for window in windows(["a"] * 11 + ["b" * 50_000])]
    [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [10], [11], [11]]
    """
    window: list[tuple[int, str]] = []
    for position, context in enumerate(contexts):
        for start in range(0, len(context), _MOST_CHARACTERS):
            part = context[start : start + _MOST_CHARACTERS]
            size = sum(len(text) for _, text in window) + len(part)
            if len(window) == _AT_ONCE or (window and size > _MOST_CHARACTERS):
                yield window
                window = []
            window.append((position, part))
    if window:
        yield window


def updated_drafts(
    before: Sequence[DraftNugget], reply: Sequence[DraftNugget], positions: Sequence[int]
) -> tuple[DraftNugget, ...]:
    """The updated list: nuggets of equal words are one; `positions` of the window's contexts are places in the pool."""
    contexts: dict[Words, set[int]] = {}
    texts: dict[Words, str] = {}
    for draft in reply:
        mine = contexts.setdefault(_words(draft), set())
        texts.setdefault(_words(draft), draft.text)
        mine.update(positions[number] for number in draft.contexts)
        mine.update(position for number in draft.merges for position in before[number].contexts)
    for draft in before:
        if _words(draft) in contexts:
            contexts[_words(draft)].update(draft.contexts)
    return tuple(DraftNugget(text, (), tuple(sorted(contexts[key]))) for key, text in texts.items())


def left_out(before: Sequence[DraftNugget], reply: Sequence[DraftNugget]) -> list[DraftNugget]:
    """The earlier nuggets that the model's list neither merges nor repeats."""
    merged = {number for draft in reply for number in draft.merges}
    repeated = {_words(draft) for draft in reply}
    return [draft for number, draft in enumerate(before) if number not in merged and _words(draft) not in repeated]


def _words(draft: DraftNugget) -> Words:
    return tuple(words(draft.text)) or (draft.text,)


def _numbered_texts(drafts: Sequence[DraftNugget]) -> dict[str, str]:
    return {str(number): draft.text for number, draft in enumerate(drafts)}


def _failed_result(item: NuggetPool, error: CallError) -> PooledNuggets:
    return PooledNuggets(item.query_id, problem=f"{error.kind}: {error.message}")


def as_reference(pool: NuggetPool, pooled: PooledNuggets, doc_ids: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The nuggets in the format of `dataset.answers`, with the `doc_ids` of the contexts that state each."""
    return {
        "nuggets": [{"text": nugget.text, "vital": nugget.vital} for nugget in pooled.nuggets],
        "query": pool.query,
        "evidence": {
            nugget.text: sorted({doc_id for position in nugget.contexts for doc_id in doc_ids[position]})
            for nugget in pooled.nuggets
        },
    }
