"""`nuggets` and `nugget_weight`: the facts that a good answer needs, collected from relevant contexts.

No metric depends on their replies: they draft a reference for people to review.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from rankbeam.transforms.judge.steps.reading import SUPPORTED_SHARE, ItemVerdicts, VerdictsStep, offline_verdicts
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.forms import TEXT, Form, Text, list_of, malformed, object_of, parse_form, whole
from rankbeam.transforms.records.judging.steps import Imagined, JudgeStep, Share

MOST_NUGGETS, MOST_WORDS = 30, 12  # the maximum number of nuggets of a query, and of words of a nugget
_SAME_SHARE = 0.75  # share of a sentence's words in a nugget from which the offline judge takes both for one fact


class Weight(StrEnum):
    """The importance of a nugget."""

    VITAL = "vital"
    OKAY = "okay"


@dataclass(frozen=True)
class DraftNugget:
    """A nugget of an updated list: `merges` numbers the earlier nuggets it replaces, `contexts` those that state it."""

    text: str
    merges: tuple[int, ...]
    contexts: tuple[int, ...]


class _Nugget(Form):
    text: Text
    merges: list[int]
    contexts: list[int]


class _Nuggets(Form):
    nuggets: Annotated[list[_Nugget], Field(max_length=MOST_NUGGETS)]


class NuggetsStep(JudgeStep):
    """Update the list of nuggets with a window of contexts."""

    name = "nuggets"
    variables = ("query", "nuggets", "contexts")
    items = "contexts"

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The whole list; each entry has a text, and the numbers of earlier nuggets and of contexts."""
        numbers = {name: list_of(whole(0, max(0, len(values[name]) - 1))) for name in ("nuggets", "contexts")}
        nugget = object_of(text=TEXT, merges=numbers["nuggets"], contexts=numbers["contexts"])
        return object_of(nuggets=list_of(nugget))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[DraftNugget, ...]:
        drafts = parse_form(_Nuggets, text).nuggets
        for number, draft in enumerate(drafts):
            if len(draft.text.split()) > MOST_WORDS:
                raise malformed(f"nuggets.{number}: the text has more than {MOST_WORDS} words")
            if not draft.merges and not draft.contexts:
                raise malformed(f"nuggets.{number}: name the contexts that say it, or the nuggets that it merges")
            _check_known(f"nuggets.{number}.contexts", draft.contexts, len(values["contexts"]))
            _check_known(f"nuggets.{number}.merges", draft.merges, len(values["nuggets"]))
        merged = [number for draft in drafts for number in draft.merges]
        if len(merged) > len(set(merged)):
            raise malformed("a nugget so far is merged into two nuggets; merge it into one")
        return tuple(DraftNugget(draft.text, tuple(draft.merges), tuple(draft.contexts)) for draft in drafts)

    def imagined(self, imagined: Imagined) -> tuple[DraftNugget, ...]:
        return tuple(DraftNugget(part, (), (0,)) for part in imagined.parts)

    def imagined_parts(self, items: int, claims: int) -> int:  # noqa: ARG002
        return claims

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        """The earlier nuggets, and from each context the sentence with the most words of the query."""
        rows: list[dict[str, Any]] = [
            {"text": text, "merges": [int(number)], "contexts": []} for number, text in values["nuggets"].items()
        ]
        for number, context in values["contexts"].items():
            places = sentences(context)
            if not places:
                continue
            best = max(places, key=lambda place: (share(values["query"], context[slice(*place)]), -place[0]))
            text = " ".join(context[slice(*best)].split()[:MOST_WORDS])
            same = next((row for row in rows if share(text, row["text"]) >= _SAME_SHARE), None)
            if same is not None:
                same["contexts"].append(int(number))
            elif len(rows) < MOST_NUGGETS:
                rows.append({"text": text, "merges": [], "contexts": [int(number)]})
        return {"nuggets": rows}


def _check_known(place: str, numbers: Sequence[int], count: int) -> None:
    wrong = sorted({number for number in numbers if not 0 <= number < count})
    if wrong:
        known = f"use numbers from 0 to {count - 1}" if count else "there are none so far"
        raise malformed(f"{place}: {wrong[:10]}; {known}")


class NuggetWeightStep(VerdictsStep):
    """Decide which nuggets an answer must have."""

    name = "nugget_weight"
    variables = ("query", "nuggets")
    items = "nuggets"
    choices = Weight
    form = ItemVerdicts[Weight]
    expected = Weight.VITAL

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        shares = {item: share(values["query"], text) for item, text in values["nuggets"].items()}
        weights = {item: Weight.VITAL if part >= SUPPORTED_SHARE else Weight.OKAY for item, part in shares.items()}
        return offline_verdicts(shares, weights)
