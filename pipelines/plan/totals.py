"""Totals of distinct calls, counted in parts: no process holds all calls of an experiment.

calls of a bucket's queries ─► divided by key ─► part: each key once ─► totals
                               divided by beginning ─► part: each beginning once ─► totals
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from rankbeam.pipelines.plan.simulation import Assumption
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.judge.steps.criterion import CriterionStep
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN
from rankbeam.transforms.records.judging.registry import step_of

PREFIXES = (1024, 2048, 4096)  # minimum tokens of a shared beginning that services cache; it depends on the model


class Step(NamedTuple):
    """A service of the experiment, and the step of the prompts that calls it."""

    service: str
    step: str


class CallSize(NamedTuple):
    """Size of one distinct call: in the ledger or not, prompt characters, estimated reply tokens, the prompt's step.

    `prefixes` are hashes of the beginnings of the prompt that have `PREFIXES` tokens; fewer for a shorter prompt.
    """

    is_stored: bool
    characters: int
    output: float
    prompt: str
    prefixes: tuple[int, ...] = ()


Sizes = defaultdict[Step, dict[int, CallSize]]  # the distinct calls of each step, by a hash of their key

Criteria = Mapping[tuple[tuple[str, str, str], frozenset[str]], str]
"""Each criterion's step name in tables, by its instructions and the names of its texts."""


def step_for(call: Call, prompt: Prompt, criteria: Criteria) -> Step:
    if prompt.step != CriterionStep.name:
        return Step(call.service, prompt.step)
    values = prompt.values
    texts = frozenset("contexts" if text["id"].startswith("context ") else text["id"] for text in values["texts"])
    instructions = (values["criterion"], values["verdicts"], values["examples"])
    return Step(call.service, criteria.get((instructions, texts), prompt.step))


def measure_call(
    call: Call, assumed: Assumption, criteria: Criteria = MappingProxyType({}), *, is_known: bool
) -> tuple[Step, CallSize]:
    """A call's step (for a criterion, by the criterion's name), and its size."""
    prompt = Prompt.parse(call.payload)
    rendered = prompt.rendered()
    step = step_of(prompt.step)
    embeds = step is not None and step.embeds
    characters = len(prompt.values["text"]) if embeds else len(rendered.system) + len(rendered.user)
    prefixes = () if embeds else tuple(_prefixes(rendered.system + rendered.user))
    size = CallSize(is_known, characters, assumed.output_tokens(prompt), prompt.step, prefixes)
    return step_for(call, prompt, criteria), size


def _prefixes(text: str) -> Iterator[int]:
    for tokens in PREFIXES:
        if len(text) >= (end := tokens * CHARACTERS_PER_TOKEN):
            yield int.from_bytes(blake2b(text[:end].encode("utf-8", "replace"), digest_size=8).digest(), "big")


class SizeTotal(NamedTuple):
    """Number of distinct calls, and sums over new ones, which the ledger does not answer."""

    calls: int = 0
    new: int = 0
    characters: int = 0
    output: float = 0.0
    with_prefix: tuple[int, ...] = (0,) * len(PREFIXES)  # new calls with a beginning of each of `PREFIXES`

    def plus(self, other: "SizeTotal") -> "SizeTotal":
        return SizeTotal(
            self.calls + other.calls,
            self.new + other.new,
            self.characters + other.characters,
            self.output + other.output,
            tuple(map(sum, zip(self.with_prefix, other.with_prefix, strict=True))),
        )


@dataclass
class CallTotals:
    """Mergeable totals of distinct calls."""

    sizes: dict[tuple[Step, str], SizeTotal] = field(default_factory=dict)  # by step and the prompt's step
    prefixes: Counter[tuple[int, frozenset[Step]]] = field(default_factory=Counter)
    """Number of distinct beginnings of new calls, by their place in `PREFIXES` and the steps that have them."""

    def add(self, step: Step, prompt: str, total: SizeTotal) -> None:
        self.sizes[step, prompt] = self.sizes.get((step, prompt), SizeTotal()).plus(total)

    def join(self, other: "CallTotals") -> None:
        for (step, prompt), total in other.sizes.items():
            self.add(step, prompt, total)
        self.prefixes += other.prefixes

    def of(self, step: Step) -> SizeTotal:
        return reduce(SizeTotal.plus, (total for (name, _), total in self.sizes.items() if name == step), SizeTotal())


_COLUMNS = pa.schema(
    [
        ("end", pa.int8()),  # position of least or most calls
        ("service", pa.string()),
        ("step", pa.string()),
        ("key", pa.uint64()),  # hash of a call's key, or of a beginning
        ("place", pa.int8()),  # of a beginning in `PREFIXES`; null for a call
        ("is_stored", pa.bool_()),
        ("characters", pa.int64()),
        ("output", pa.float64()),
        ("prompt", pa.string()),
        ("prefixes", pa.int8()),  # number of beginnings
    ]
)


def divided(ends: Iterable[Sizes], parts: int) -> Iterator[tuple[int, Reference]]:
    """Rows of calls, and of their beginnings, each by the part that has all rows of its key."""
    rows: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for end, sizes in enumerate(ends):
        for step, own in sizes.items():
            for key, size in own.items():
                prefixes = () if size.is_stored else size.prefixes
                rows[key % parts].append((end, *step, key, None, *size[:4], len(prefixes)))
                for place, prefix in enumerate(prefixes):
                    rows[parts + prefix % parts].append((end, *step, prefix, place, *[None] * 5))
    for part, own_rows in rows.items():
        columns = map(pa.array, zip(*own_rows, strict=True), _COLUMNS.types)
        yield part, Reference.to(pa.record_batch(list(columns), _COLUMNS))


def totals_of(element: tuple[int, Iterable[Reference]]) -> tuple[CallTotals, CallTotals]:
    """The totals of a part's least and most calls."""
    calls: dict[tuple[int, Step, int], tuple[Any, ...]] = {}
    steps: defaultdict[tuple[int, int, int], set[Step]] = defaultdict(set)
    for reference in element[1]:
        columns = (column.to_pylist() for column in reference.batch().columns)
        for end, service, name, key, place, *size in zip(*columns, strict=True):
            step = Step(service, name)
            if place is None:
                calls[end, step, key] = tuple(size)
            else:
                steps[end, place, key].add(step)
    totals = CallTotals(), CallTotals()
    for (end, step, _), (is_stored, characters, output, prompt, prefixes) in calls.items():
        with_prefix = tuple(int(place < prefixes) for place in range(len(PREFIXES)))
        total = SizeTotal(1) if is_stored else SizeTotal(1, 1, characters, output, with_prefix)
        totals[end].add(step, prompt, total)
    for (end, place, _), names in steps.items():
        totals[end].prefixes[place, frozenset(names)] += 1
    return totals
