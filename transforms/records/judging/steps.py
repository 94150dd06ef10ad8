"""A step of the judge: one question with its prompt, the form of the reply, and the arguments that metrics get from it.

A step is found by its name: those of rankbeam register when `rankbeam.transforms.judge.steps` is imported, as every
process with a judge's work does, and those of other packages are entry points of the group `rankbeam.judged`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from rankbeam.transforms.kernels.sentences import parts_of
from rankbeam.transforms.kernels.statistics.raters import decisive_vote
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.forms import Form, parse_form, schema_of
from rankbeam.transforms.records.judging.answers import Answer
from rankbeam.transforms.records.judging.items import NO_GOLD, Gold

LONGEST_REASON = 300  # characters of a reason that are stored

Share = Callable[[str, str], float]  # the share of a text's words that another text contains, from 0 to 1


class Need(StrEnum):
    """The inputs that a metric may need besides a judge."""

    ANSWER = "answer"
    CONTEXTS = "contexts"
    REFERENCE = "reference"
    ANSWERABLE = "answerable"
    NUGGETS = "nuggets"
    EMBEDDINGS = "embeddings"
    SAMPLES = "samples"
    STEPS = "steps"
    EXPECTED_STEPS = "expected_steps"


class JudgeQuestion(NamedTuple):
    """One question to a judge; equal questions about one query are asked only once.

    Attributes:
        step: name of the step.
        texts: the values of the step's variables other than `query` and the items, in their order.
        items: claims, statements, sentences or nuggets that get a verdict each.
    """

    step: str
    texts: tuple[str, ...]
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedCase:
    """The subject of judging: one query under one configuration.

    Attributes:
        query: text of the query.
        contexts: texts of the contexts, best first.
        answer: text of the answer; None if nothing was retrieved, so that no model was called.
        cited: positions of the contexts that the answer refers to.
        invented: number of references to contexts that do not exist.
        gold: reference answer, nuggets, and whether the query is answerable, each None if the dataset lacks it.
        others: texts of the other sampled answers to the query.
        attributes: those of the query.
        baseline: answer of the baseline; the CallError if it failed; None without a baseline.
        rivals: answers of all other configurations, in the same form.
        outcome: the answer with its tokens, cost, duration and steps; None if contexts are judged alone.
    """

    query: str
    contexts: tuple[str, ...]
    answer: str | None = None
    cited: tuple[int, ...] = ()
    invented: int = 0
    gold: Gold = NO_GOLD
    others: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    baseline: str | CallError | None = None
    rivals: Sequence[str | CallError | None] = ()
    outcome: Answer | None = None


class JudgeReplies:
    """Replies by question, as their steps read them."""

    def __init__(self, replies: Mapping[JudgeQuestion, Any]) -> None:
        self._replies = replies

    def __getitem__(self, question: JudgeQuestion) -> Any:
        """The reply; raises the CallError of a question that failed, so that the metric's value fails, too."""
        reply = self._replies[question]
        if isinstance(reply, CallError):
            raise reply
        return reply


Inquiry = Generator[Sequence[JudgeQuestion], JudgeReplies, Any]
"""Yields questions, is sent replies, and returns the argument of a formula."""


@dataclass(frozen=True)
class JudgedInput:
    """An argument of formulas, by the name of the argument.

    Attributes:
        get: function of a `JudgedCase` that returns the argument, or a generator that yields lists of questions, is
            sent `JudgeReplies` and returns the argument. Questions that do not depend on a reply belong in one list.
        steps: names of the steps whose questions it yields.
        needs: required parts of the case.
        per_context: the last axis is the contexts, in rank order; a cutoff `@k` keeps the first k.
        by_people: people's labels contain it, if they contain its steps.
    """

    get: Callable[[JudgedCase], Any]
    steps: tuple[str, ...] = ()
    needs: frozenset[Need] = field(default_factory=frozenset)
    per_context: bool = False
    by_people: bool = True


@dataclass(frozen=True)
class JudgeVerdict:
    """One verdict of a reply.

    Attributes:
        verdict: word of the verdict; None if there is a grade alone.
        grade: whole number.
        reason: the judge's.
        score: value from 0 to 1, to measure how far repeated judgements differ.
    """

    verdict: str | None = None
    grade: int | None = None
    reason: str | None = None
    score: Fraction = Fraction()

    @property
    def name(self) -> str:
        """The verdict, or the grade if there is no verdict."""
        return str(self.grade) if self.verdict is None else self.verdict


@dataclass(frozen=True)
class Imagined:
    """The assumptions of `plan` about a reply that it cannot know.

    Attributes:
        key: content key of the call.
        items: number of items in the question.
        parts: texts of the claims that a text makes: none for as few calls as possible, else many.
    """

    key: str
    items: int
    parts: tuple[str, ...]


class JudgeStep:
    """A step of the judge; a subclass defines the attributes, `imagined`, and `verdicts` if the step judges.

    Attributes:
        name: lower case, such as "support"; part of every content key, so it never changes.
        variables: names in the prompt: `query`, those of the question's texts in their order, and the items.
        prompt: template: instructions, a line `---`, then each value between lines `<<NAME {fence}` and
            `{fence} NAME>>`. A literal brace is `{{`.
        form: pydantic model of the reply.
        items: the variable whose items get a verdict each.
        lists_items: the prompt numbers the items from 1; by default their ids begin with 0.
        most_items: most items in one call; more are judged in windows.
        in_parts: the first text may be judged in parts if it is too long.
        judges: replies are verdicts: they are written to `verdicts`, and some are repeated to measure agreement.
        embeds: the embedding model answers, not the judge.
        inputs: arguments of formulas that need this step, by name.
        decisions: words that people choose from when they label an item, the lowest first; each is the `name` of a
            verdict. Without them, people cannot label this step's items, unless it is a criterion's.
        is_ordered: the decisions are an ordered scale, so that their distance counts in coefficients of agreement.
        people_question: question about one item, for people.
        in_conversations: instructions for a question that is a later turn of a conversation.
        known_items: questions with known answers, as mappings: `values` by variable, `expected` (see `known_class`),
            and optional `tags`. Without them the judge's accuracy in this step is unknown.
    """

    name: ClassVar[str]
    variables: ClassVar[tuple[str, ...]]
    prompt: ClassVar[str] = ""
    form: ClassVar[type[Form] | None] = None
    items: ClassVar[str | None] = None
    lists_items: ClassVar[bool] = False
    most_items: ClassVar[int | None] = None
    in_parts: ClassVar[bool] = False
    judges: ClassVar[bool] = False
    embeds: ClassVar[bool] = False
    inputs: ClassVar[Mapping[str, JudgedInput]] = {}
    known_items: ClassVar[Sequence[Mapping[str, Any]]] = ()
    decisions: ClassVar[tuple[str, ...]] = ()
    is_ordered: ClassVar[bool] = False
    people_question: ClassVar[str] = ""
    in_conversations: ClassVar[str] = ""

    @property
    def scale(self) -> tuple[str, ...]:
        """The decisions in the order that defines the median of several judges; by default that of `decisions`."""
        return self.decisions

    def parts(
        self, question: JudgeQuestion, most_letters: int | None = None, *, in_windows: bool = True
    ) -> list[list[JudgeQuestion]]:
        """The questions in place of one that is too long: for each window of items, one for each part of the text."""
        first, windows = question.texts[:1], [question.items]
        if in_windows and self.most_items is not None and len(question.items) > self.most_items:
            starts = range(0, len(question.items), self.most_items)
            windows = [question.items[start : start + self.most_items] for start in starts]
        if self.in_parts and most_letters is not None and len(first[0]) > most_letters:
            first = tuple(parts_of(first[0], most_letters=most_letters))
        if len(first) < 2 and len(windows) == 1:
            return [[question]]
        rest = question.texts[1:]
        return [[question._replace(texts=(text, *rest), items=items) for text in first] for items in windows]

    def joined(self, parts: Sequence[Sequence[JudgeQuestion]], replies: Sequence[Sequence[Any]]) -> Any:  # noqa: ARG002
        """The reply to a question, from those to its `parts`: for each item, that of the text's weightiest part."""
        if self.items is None:
            return max(replies[0], key=self.weight)
        return tuple(max(verdicts, key=self.weight) for window in replies for verdicts in zip(*window, strict=True))

    def weight(self, part: Any) -> float:  # noqa: ARG002  for subclasses
        """The weight of the verdict on one part of a text; the heaviest verdict counts for the whole text."""
        return 0.0

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002  for subclasses
        """The JSON schema of the reply; by default that of `form`.

        Args:
            values: values of the prompt's variables.
        """
        return schema_of(self._form())

    def read(self, values: Mapping[str, Any], text: str) -> Any:  # noqa: ARG002  for subclasses
        """The reply as a value, by default an instance of `form`; it has to be picklable.

        Args:
            values: values of the prompt's variables.
            text: the model's text.

        Raises:
            CallError: the text breaks a rule of the step (`MALFORMED`); a repair quotes the message.
        """
        return parse_form(self._form(), text)

    def imagined(self, imagined: Imagined) -> Any:
        """A reply, as `read` returns it, for `plan`: the calls that follow from it are counted."""
        raise NotImplementedError(f"{type(self).__name__} has no imagined()")

    def imagined_parts(self, items: int, claims: int) -> int:  # noqa: ARG002  for subclasses
        """The number of parts in a reply, for the estimate of its tokens: by default one for each item."""
        return items

    def verdicts(self, reply: Any) -> Sequence[JudgeVerdict]:  # noqa: ARG002  for subclasses
        """The verdicts of a reply, one for each item, or one."""
        return ()

    def median(self, replies: Sequence[Any], voters: int, rank: Callable[[JudgeVerdict], float]) -> Any | None:
        """The lower median of judges' replies, for each item; None if missing replies of `voters` could change it.

        Replies of a step with items are sequences; `rank` returns the position of a verdict on the scale.
        """
        item_verdicts = zip(*map(self.verdicts, replies), strict=True)
        places = [decisive_vote([rank(verdict) for verdict in verdicts], voters) for verdicts in item_verdicts]
        chosen = [replies[place] for place in places if place is not None]
        if not chosen or len(chosen) < len(places):
            return None
        return chosen[0] if self.items is None else tuple(reply[item] for item, reply in enumerate(chosen))

    def labelled_text(self, question: JudgeQuestion) -> str:
        """The text that labels belong to: labels of another text do not answer this question."""
        return question.texts[0]

    def decided(self, decisions: Sequence[str]) -> Any:
        """The reply that states people's decisions, one for each item, or one."""
        raise NotImplementedError(f"{type(self).__name__} has no decided()")

    def known_class(self, reply: Any) -> str:
        """The class of a reply that a known item expects: by default the first verdict, or grade."""
        return self.verdicts(reply)[0].name

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any] | None:  # noqa: ARG002
        """The reply of the offline judge `lexical`, as JSON values; None if it has none.

        Args:
            values: values of the prompt's variables.
            share: returns the share of one text's words in another.
        """
        return None

    def values(self, question: JudgeQuestion, query: str) -> dict[str, Any]:
        """The values of the prompt's variables."""
        texts = iter(question.texts)
        numbered = {str(number): item for number, item in enumerate(question.items)}
        items = list(question.items) if self.lists_items else numbered
        return {
            name: query if name == "query" else items if name == self.items else next(texts) for name in self.variables
        }

    def question(self, values: Mapping[str, Any]) -> JudgeQuestion:
        texts = (values[name] for name in self.variables if name not in ("query", self.items))
        items = values[self.items] if self.items is not None else ()
        return JudgeQuestion(self.name, tuple(texts), tuple(items.values() if isinstance(items, Mapping) else items))

    def _form(self) -> type[Form]:
        if self.form is None:
            raise NotImplementedError(f"{type(self).__name__} has no form")
        return self.form
