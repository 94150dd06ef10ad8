"""Profiles that the writing model suggests, from one call with a sample of the documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import ClassVar

from rankbeam.transforms.goldens.asking import AskingWork
from rankbeam.transforms.goldens.planning import GoldensPlan
from rankbeam.transforms.goldens.records.items import Dimension, SourceSpan
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps
from rankbeam.transforms.records.errors import CallError

STAGE = "profiles"
_MOST_CHARACTERS = 40_000
"""The most characters of all texts of the call, about 10,000 tokens."""


@dataclass(frozen=True)
class SuggestedProfiles:
    """The dimensions that a model suggests, or why there are none."""

    dimensions: tuple[Dimension, ...] = ()
    model_version: str = ""
    problem: str = ""


@dataclass(frozen=True)
class SuggestProfiles(AskingWork):
    """Suggest profiles; a `Work` whose items are samples of spans."""

    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> Sequence[str]:
        return [self.asking.writer.name]

    def steps(self, item: Sequence[SourceSpan]) -> Steps[SuggestedProfiles]:
        (outcome,) = yield [self.call(item)]
        if isinstance(outcome, CallError):
            return SuggestedProfiles(problem=f"{outcome.kind}: {outcome.message}")
        return SuggestedProfiles(outcome.value, outcome.asked.model_version)

    def call(self, item: Sequence[SourceSpan]) -> Call:
        """The call about a sample; no text is longer than its share of the whole."""
        most = _MOST_CHARACTERS // len(item)
        return self.asking.call(STAGE, {"texts": {str(number): span.text[:most] for number, span in enumerate(item)}})


def sampled(plan: GoldensPlan, count: int) -> tuple[SourceSpan, ...]:
    """The first span of every stratum in turn, then the second of every one, and so on."""
    return tuple(islice(_in_turn(plan), count))


def _in_turn(plan: GoldensPlan) -> Iterator[SourceSpan]:
    for some in zip_longest(*plan.strata.values()):
        yield from (span for span in some if span is not None)
