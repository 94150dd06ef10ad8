"""Several texts are embedded by one request; each keeps its answer, and what fails as a whole is made in halves."""

import math
from collections import Counter as Tally
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.services import feed
from support.standins.models import embedding, tokens

from rankbeam.transforms.clients.calls.combined_calls import divide_tokens
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.base import Embedding, ModelParameters, prompts_of
from rankbeam.transforms.clients.models.embeddings import Embed
from rankbeam.transforms.clients.models.replies import Vectors, reply_of
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Subject, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

NONE: Mapping[str, Collection[int]] = {}
TEXTS = [f"text {number} " + "and more " * (number % 7) for number in range(100)]


@dataclass
class Service:
    """A connection that embeds several texts in a request, after what its script has done.

    Attributes:
        most: texts of a request.
        script: takes the texts of a request and its number, from 1.
        requests: the texts of each.
    """

    most: int
    script: object = None
    requests: list[list[str]] = field(default_factory=list)
    vectors: Vectors = field(default_factory=lambda: Vectors("m", None))

    @property
    def texts_per_request(self) -> int:
        return self.most

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        texts = [str(prompt.values["text"]) for prompt in prompts_of(payload)]
        self.requests.append(texts)
        if callable(self.script):
            self.script(texts, len(self.requests))
        used = Tokens(sum(map(tokens, texts)))
        return reply_of(self.vectors.read([embedding(text) for text in texts], texts, used), texts, used, "m")

    async def close(self) -> None:
        """Nothing is open."""


class Model(ModelParameters):
    """A model with one connection for all."""

    connection: ClassVar[Service]

    async def connect(self) -> Service:
        return self.connection


def embedded(
    folder: Path,
    service: Service,
    texts: list[str],
    quota: Quota | None = None,
    positions: Mapping[str, Collection[int]] = NONE,
) -> tuple[list[CallAnswer | FailedTask], FanOut]:
    """The outcomes of texts in one lane, on a virtual clock."""
    Model.connection = service
    parameters = Model(model="m")
    work = Embed("e", "plain", parameters)
    subjects = [Subject("embed", "", 0, tuple(positions.get(text, ()))) for text in texts]
    tasks = [Task(work.call(text).key or "", "e", text, (of,)) for text, of in zip(texts, subjects, strict=True)]
    quotas = {"pool": quota or Quota(requests_per_minute=60)}
    with VirtualClock() as clock:
        fan_out = FanOut(
            Stage("embed", {"e": work}, {"e": parameters}, {"e": "pool"}, quotas, {}), _ledger(folder), clock
        )
        fan_out.begin(("pool",), 0, feed(tasks))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    return outcomes, fan_out


def _ledger(folder: Path) -> Ledger:
    return Ledger(str(folder))


def stored(folder: Path, texts: list[str]) -> dict[str, Embedding]:
    """The ledger's answers, by text."""
    work = Embed("e", "plain", Model(model="m"))
    lookup = _ledger(folder).lookup()
    lookup.refresh()
    keys = {work.call(text).key or "": text for text in texts}
    return {
        keys[entry.key]: work.read(work.call(""), Reply(entry.answer)) for entry in lookup.read(dict.fromkeys(keys))
    }


def test_texts_share_requests_and_keep_their_answers(tmp_path: Path) -> None:
    service = Service(most=32)
    outcomes, _ = embedded(tmp_path, service, TEXTS)
    assert [type(outcome) for outcome in outcomes] == [CallAnswer] * len(TEXTS)
    assert sorted(text for request in service.requests for text in request) == sorted(TEXTS)
    assert len(service.requests) <= math.ceil(len(TEXTS) / 32) + 1
    assert {text: one.vector for text, one in stored(tmp_path, TEXTS).items()} == {
        text: tuple(embedding(text)) for text in TEXTS
    }
    again = Service(most=32)
    embedded(tmp_path, again, TEXTS)
    assert not again.requests


def test_a_request_is_paced_as_one_and_usage_adds_up(tmp_path: Path) -> None:
    service = Service(most=10)
    _, fan_out = embedded(tmp_path, service, TEXTS)
    counts = fan_out.totals()
    assert counts[Counter.CALLS_MADE, "pool"] == len(service.requests)
    assert counts[Counter.CALLS_DONE, "pool"] == len(TEXTS)
    assert counts[Counter.INPUT_TOKENS, "pool"] == sum(map(tokens, TEXTS))
    lookup = _ledger(tmp_path).lookup()
    lookup.refresh()
    work = Embed("e", "plain", Model(model="m"))
    entries = list(lookup.read({work.call(text).key or "": None for text in TEXTS}))
    assert sum(entry.attempts for entry in entries) == len(service.requests)
    assert sum(entry.tokens.input for entry in entries) == sum(map(tokens, TEXTS))


def test_a_text_that_is_refused_fails_alone(tmp_path: Path) -> None:
    def refuse(texts: list[str], _: int) -> None:
        if TEXTS[40] in texts:
            raise CallError(FailureKind.INVALID, "an input is too long")

    service = Service(32, refuse)
    outcomes, _ = embedded(tmp_path, service, TEXTS)
    assert Tally(type(outcome) for outcome in outcomes) == {CallAnswer: len(TEXTS) - 1, FailedTask: 1}
    assert set(stored(tmp_path, TEXTS)) == {*TEXTS} - {TEXTS[40]}
    assert len(service.requests) < 20
    assert [TEXTS[40]] in service.requests


@pytest.mark.long
@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.MALFORMED, FailureKind.INVALID])
def test_a_failed_request_is_made_in_halves(tmp_path: Path, kind: FailureKind) -> None:
    def refuse(texts: list[str], _: int) -> None:
        if len(texts) > 4:
            raise CallError(kind, "too much at once")

    service = Service(32, refuse)
    outcomes, _ = embedded(tmp_path, service, TEXTS)
    assert [type(outcome) for outcome in outcomes] == [CallAnswer] * len(TEXTS)
    assert max(len(request) for request in service.requests[-10:]) == 4
    assert len(service.requests) < 60


def test_a_quota_is_waited_for_by_the_whole_request(tmp_path: Path) -> None:
    def refuse(_: list[str], number: int) -> None:
        if number == 1:
            raise CallError(FailureKind.QUOTA, "slow down", retry_after_s=5.0)

    service = Service(100, refuse)
    outcomes, _ = embedded(tmp_path, service, TEXTS)
    assert [type(outcome) for outcome in outcomes] == [CallAnswer] * len(TEXTS)
    assert sum(service.requests[0] == request for request in service.requests) == 2


@pytest.mark.parametrize("kind", [FailureKind.PERMISSION, FailureKind.NOT_FOUND])
def test_what_no_text_can_help_fails_all_at_once(tmp_path: Path, kind: FailureKind) -> None:
    def refuse(*_: object) -> None:
        raise CallError(kind, "not for you")

    service = Service(50, refuse)
    outcomes, _ = embedded(tmp_path, service, TEXTS)
    assert [type(outcome) for outcome in outcomes] == [FailedTask] * len(TEXTS)
    assert len(service.requests) <= 3


def test_requests_are_limited_by_their_length(tmp_path: Path) -> None:
    long = [f"{number} " + "x" * 25_000 for number in range(6)]
    service = Service(100)
    embedded(tmp_path, service, long)
    assert max(map(len, service.requests)) == 2


def test_a_connection_that_takes_one_text_gets_one(tmp_path: Path) -> None:
    service = Service(1)
    embedded(tmp_path, service, TEXTS[:5])
    assert sorted(service.requests) == sorted([text] for text in TEXTS[:5])


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.lists(st.integers(0, 999), min_size=1))
def test_shares_add_up_and_are_possible(new: int, cached: int, output: int, lengths: list[int]) -> None:
    total = Tokens(new + cached, cached, output)
    shares = divide_tokens(total, lengths)
    assert sum(shares, start=Tokens()) == total
    assert len(shares) == len(lengths)
    assert all(0 <= share.cached <= share.input and share.output >= 0 for share in shares)


POSITIONS = st.dictionaries(st.sampled_from(TEXTS), st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=12)
Sums = dict[int | None, tuple[int, Tokens]]


def sums_of(
    folder: Path, texts: Mapping[str, Collection[int]], most: int, failing: Collection[int]
) -> tuple[Sums, int]:
    """Embed texts; returns attempts and tokens by position, made or from the ledger, and the number of requests."""

    def script(_: list[str], number: int) -> None:
        if number in failing:
            raise CallError(FailureKind.UNAVAILABLE, "later", tokens=Tokens(3))

    service = Service(most, script)
    _, fan_out = embedded(folder, service, list(texts), Quota(requests_per_minute=600), texts)
    sums: Sums = {}
    for item in (item for usage in fan_out.usage() for item in (*usage.took, *usage.recalled)):
        calls, used = sums.get(item.position, (0, Tokens()))
        sums[item.position] = calls + item.calls, used + item.tokens
    return sums, len(service.requests)


@pytest.mark.long
@given(texts=POSITIONS, failing=st.sets(st.integers(1, 4)), most=st.integers(1, 5), data=st.data())
def test_calls_and_tokens_of_a_configuration_do_not_depend_on_what_the_ledger_has(
    texts: dict[str, set[int]], failing: set[int], most: int, data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    new, partial = tmp_path_factory.mktemp("new"), tmp_path_factory.mktemp("partial")
    first, requests = sums_of(new, texts, most, failing)
    assert sums_of(new, texts, 1, ()) == (first, 0)
    assert first[None][0] == requests
    known = data.draw(st.sets(st.sampled_from(sorted(texts))))
    _, earlier = sums_of(partial, {text: texts[text] for text in sorted(known)}, 2, failing)
    rest, further = sums_of(partial, texts, most, failing)
    assert sums_of(partial, texts, most, ()) == (rest, 0)
    assert rest[None][0] == earlier + further
