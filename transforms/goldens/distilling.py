"""Context of facts: passages of other documents, reduced to the sentences that are about the same matter."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rankbeam.transforms.goldens.asking import FINAL, Asking, Reading
from rankbeam.transforms.goldens.records.forms import Fact
from rankbeam.transforms.goldens.records.items import Asked
from rankbeam.transforms.goldens.records.types import SourceSpan, WritingTask
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply

Distilled = tuple[Reading | CallError, list[Asked]]


@dataclass(frozen=True)
class ContextRules:
    """Rules for the context of a source.

    Attributes:
        passages: number of passages of other documents.
        neighbours: number of passages of the same document, before and after each, that are added to it.
        by: "bm25" finds passages by the words of the source, "pool" by the retrievers of the pool.
        enlarged: whether the model first writes what to search for (HyDE), instead of the text of the source.
        overall: whether a further call sees the sentences of all passages together; what it chooses is added.
    """

    passages: int = 0
    neighbours: int = 0
    by: Literal["bm25", "pool"] = "bm25"
    overall: bool = False
    enlarged: bool = False


@dataclass(frozen=True)
class EnlargedClue:
    """A text to search for instead of a source's own, or why there is none."""

    name: str
    text: str = ""
    failure: str = ""


@dataclass(frozen=True)
class EnlargeClues:
    """Write texts to search for; a `Work` whose items are sources."""

    asking: Asking
    stage: str = "enlarge"

    @property
    def services(self) -> Sequence[str]:
        """The models."""
        return self.asking.services

    def steps(self, item: WritingTask) -> Steps[EnlargedClue]:
        (outcome,) = yield [self.call(item)]
        if isinstance(outcome, CallError):
            return EnlargedClue(item.name, failure=f"{outcome.kind}: {outcome.message}")
        return EnlargedClue(item.name, outcome.value)

    def call(self, item: WritingTask) -> Call:
        """The call about a source."""
        return self.asking.call("enlarge", {"text": item.spans[0].text})

    def read(self, call: Call, reply: Reply) -> Reading:
        return self.asking.read(call, reply)


def distilled(
    asking: Asking, item: WritingTask, facts: Reading, *, overall: bool = False
) -> Generator[Sequence[Call], Sequence[Any], Distilled]:
    """Choose sentences of the passages around a source. One whose call was refused for good adds none."""
    own = {str(number): fact.text for number, fact in enumerate(facts.value.facts)}
    parts = [_sentences(passage, len(item.spans) + number) for number, passage in enumerate(item.context)]
    if overall and len(parts) > 1:  # the whole is a part, too
        parts.append([one for part in parts for one in part])
    outcomes = yield [
        asking.call("distill", {"facts": own, "sentences": {str(place): one.quote for place, one in enumerate(part)}})
        for part in parts
    ]
    for outcome in outcomes:
        if isinstance(outcome, CallError) and outcome.kind not in FINAL:
            return outcome, []
    chosen = [(part, one) for part, one in zip(parts, outcomes, strict=True) if isinstance(one, Reading)]
    further = dict.fromkeys(part[place] for part, reading in chosen for place in reading.value)
    known = replace(facts.value, facts=(*facts.value.facts, *further))
    return replace(facts, value=known), [reading.asked for _, reading in chosen]


def _sentences(passage: SourceSpan, source: int) -> list[Fact]:
    """The sentences of a passage, each as a fact that is its own quote."""
    return [
        Fact(passage.text[start:end], source, start, end, passage.text[start:end])
        for start, end in sentences(passage.text)
    ]
