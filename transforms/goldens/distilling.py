"""Add context to facts: passages of other documents, reduced to the sentences about the same matter."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rankbeam.transforms.goldens.asking import FINAL, AskingWork, ParsedReply, WriterAndChecker
from rankbeam.transforms.goldens.records.forms import Fact
from rankbeam.transforms.goldens.records.items import CallRecord, SourceSpan, WritingTask
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.errors import CallError

Distilled = tuple[ParsedReply | CallError, list[CallRecord]]


@dataclass(frozen=True)
class EnlargedClue:
    """A text to search for instead of a source's own text, or the reason why there is none."""

    name: str
    text: str = ""
    failure: str = ""


@dataclass(frozen=True)
class EnlargeClues(AskingWork):
    """Write texts to search for; a `Work` whose items are sources."""

    stage: ClassVar[str] = "enlarge"

    def steps(self, item: WritingTask) -> Steps[EnlargedClue]:
        (outcome,) = yield [self.call(item)]
        if isinstance(outcome, CallError):
            return EnlargedClue(item.name, failure=f"{outcome.kind}: {outcome.message}")
        return EnlargedClue(item.name, outcome.value)

    def call(self, item: WritingTask) -> Call:
        return self.asking.call("enlarge", {"text": item.spans[0].text})


def distill_context(
    asking: WriterAndChecker, item: WritingTask, facts: ParsedReply, *, overall: bool = False
) -> Generator[Sequence[Call], Sequence[Any], Distilled]:
    """Choose sentences from the passages around a source. If a passage's call fails for good, the passage adds none."""
    fact_texts = {str(number): fact.text for number, fact in enumerate(facts.value.facts)}
    parts = [_sentences(passage, len(item.spans) + number) for number, passage in enumerate(item.context)]
    if overall and len(parts) > 1:  # all passages together are a part, too
        parts.append([sentence for part in parts for sentence in part])
    quotes = [{str(place): sentence.quote for place, sentence in enumerate(part)} for part in parts]
    outcomes = yield [asking.call("distill", {"facts": fact_texts, "sentences": part}) for part in quotes]
    for outcome in outcomes:
        if isinstance(outcome, CallError) and outcome.kind not in FINAL:
            return outcome, []
    chosen = [(part, read) for part, read in zip(parts, outcomes, strict=True) if isinstance(read, ParsedReply)]
    further = dict.fromkeys(part[place] for part, reading in chosen for place in reading.value)
    known = replace(facts.value, facts=(*facts.value.facts, *further))
    return replace(facts, value=known), [reading.call for _, reading in chosen]


def _sentences(passage: SourceSpan, source: int) -> list[Fact]:
    """The sentences of a passage as facts; each sentence is its own quote."""
    return [
        Fact(passage.text[start:end], source, start, end, passage.text[start:end])
        for start, end in sentences(passage.text)
    ]
