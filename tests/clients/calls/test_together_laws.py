"""Requests for several calls: each call has its own reply, and quota, money and ledger count what was taken."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.services import Echo, feed, stage

from rankbeam.transforms.clients.calls import fanout
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.base import prompts_of
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.calls.quota import Prices, Quota
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, FailedTask, Subject, Task
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

K = FailureKind
PRICED = Quota(600, prices=Prices(1_000_000.0, 0.0, 0.0))
"""A token costs one."""


def size(question: str) -> int:
    """Tokens of a question."""
    return 10 + len(question)


def texts_of(payload: str) -> list[str]:
    return [str(prompt.values["text"]) for prompt in prompts_of(payload)]


@dataclass
class Batching(Echo):
    """Embeds several texts in one request.

    Attributes:
        most: texts that a request may hold, as far as the client knows.
        takes: texts that a request may hold.
        poison: texts whose request fails, whatever else it holds, and how.
        outage: the first requests for several fail in this way.
        one_vector: whether one vector comes, whatever a request holds.
        latency_s: latency of a request.
        requests: texts of each request, when it began, and the tokens that it took.
    """

    most: int = 10
    takes: float = math.inf
    poison: dict[str, FailureKind] = field(default_factory=dict)
    outage: list[FailureKind] = field(default_factory=list)
    one_vector: bool = False
    latency_s: float = 0.2
    requests: list[tuple[tuple[str, ...], float, int]] = field(default_factory=list)

    @property
    def texts_per_request(self) -> int:
        return self.most

    def most_tokens(self, payload: str) -> Tokens:
        return Tokens(sum(2 * size(text) for text in texts_of(payload)))

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        texts = texts_of(payload)
        used = Tokens(sum(map(size, texts)))
        problem = next((self.poison[text] for text in texts if text in self.poison), None)
        if problem is None and len(texts) > self.takes:
            problem = K.INVALID
        if problem is None and self.outage and len(texts) > 1:
            problem = self.outage.pop(0)
        self.requests.append((tuple(texts), asyncio.get_running_loop().time(), 0 if problem else used.total))
        await asyncio.sleep(self.latency_s)
        if problem is not None:
            raise CallError(problem, f"{problem} on purpose")
        if self.one_vector and len(texts) > 1:
            self.most = 1
            raise CallError(K.MALFORMED, "one vector", tokens=used)
        replies = tuple(Reply(json.dumps(text), Tokens(size(text))) for text in texts)
        return replies[0] if len(replies) == 1 else Reply("", used, replies)

    @property
    def sizes(self) -> list[int]:
        return [len(texts) for texts, _, _ in self.requests]

    @property
    def taken(self) -> int:
        return sum(tokens for _, _, tokens in self.requests)


def task(text: str) -> Task:
    payload = Prompt(EMBED, {"text": text}).payload()
    key = content_key({"text": text})
    return Task(key, "echo", Call("echo", key, payload), (Subject("embed", text, 0, (0,)),))


def ran(
    service: Batching, questions: Sequence[str], folder: Path, quota: Quota = PRICED, budget: float = math.inf
) -> tuple[list[CallAnswer | FailedTask], FanOut]:
    with VirtualClock() as clock:
        fan_out = FanOut(replace(stage({"echo": service}, quota), budget=budget), Ledger(str(folder)), clock)
        fan_out.begin(("pool",), 0, feed([task(question) for question in questions]))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    return outcomes, fan_out


def values(outcomes: Sequence[CallAnswer | FailedTask]) -> dict[str, object]:
    return {
        outcome.subjects[0].query_id if isinstance(outcome, CallAnswer) else outcome.subject.query_id: (
            outcome.value if isinstance(outcome, CallAnswer) else outcome.failure.kind
        )
        for outcome in outcomes
    }


QUESTIONS = [f"question {number}" for number in range(95)]


def test_calls_that_wait_together_are_one_request_and_each_has_its_answer(tmp_path: Path) -> None:
    service = Batching()
    outcomes, fan_out = ran(service, QUESTIONS, tmp_path)
    assert values(outcomes) == {question: question for question in QUESTIONS}
    assert service.sizes == [10] * 9 + [5]
    (usage,) = fan_out.usage()
    assert (usage.calls, usage.tokens) == (10, Tokens(sum(map(size, QUESTIONS))))
    assert sum(item.calls for item in usage.took if item.position is None) == 10
    again, other = ran(Batching(), QUESTIONS, tmp_path)
    assert values(again) == values(outcomes)
    (usage,) = other.usage()
    assert (usage.calls, usage.ledger_hits) == (0, 95)


def test_rows_of_the_ledger_are_those_of_texts_and_sum_to_the_requests(tmp_path: Path) -> None:
    service = Batching()
    ran(service, QUESTIONS, tmp_path)
    lookup = Ledger(str(tmp_path)).lookup()
    lookup.refresh()
    rows = list(lookup.read({task(question).item.key: None for question in QUESTIONS}))
    assert {row.answer: row.tokens for row in rows} == {json.dumps(text): Tokens(size(text)) for text in QUESTIONS}
    assert sum(row.attempts for row in rows) == len(service.requests)


@pytest.mark.parametrize("kind", [K.INVALID, K.MALFORMED, K.BLOCKED, K.TIMEOUT, K.UNAVAILABLE])
def test_one_text_that_fails_takes_no_other_with_it(kind: FailureKind, tmp_path: Path) -> None:
    service = Batching(poison={"question 7": kind})
    outcomes, _ = ran(service, QUESTIONS, tmp_path, replace(PRICED, attempts=3))
    assert values(outcomes) == {question: question for question in QUESTIONS} | {"question 7": kind}


def test_a_service_that_returns_fewer_vectors_than_texts_gets_one_text_a_request(tmp_path: Path) -> None:
    service = Batching(one_vector=True, latency_s=0.05)
    outcomes, fan_out = ran(service, QUESTIONS, tmp_path)
    assert values(outcomes) == {question: question for question in QUESTIONS}
    assert sorted(service.sizes)[:95] == [1] * 95
    assert len(service.sizes) <= 97
    (usage,) = fan_out.usage()
    assert (usage.calls, usage.tokens.total) == (len(service.requests), service.taken)


def test_an_outage_divides_no_request_at_once_and_a_refusal_for_the_rate_later_still(tmp_path: Path) -> None:
    for kind, times in (K.UNAVAILABLE, 1), (K.QUOTA, 3):
        service = Batching(outage=[kind] * times)
        outcomes, _ = ran(service, QUESTIONS[:10], tmp_path / kind)
        assert (len(outcomes), service.sizes) == (10, [10] * (times + 1))


@pytest.mark.long
@settings(max_examples=examples(15))
@given(
    st.integers(1, 12),
    st.integers(1, 8),
    st.lists(
        st.tuples(st.integers(0, 29), st.sampled_from([K.INVALID, K.UNAVAILABLE, K.BLOCKED, K.MALFORMED])), max_size=3
    ),
    st.lists(st.sampled_from([K.QUOTA, K.UNAVAILABLE, K.TIMEOUT]), max_size=4),
    st.booleans(),
    st.sampled_from([200, 2_000, math.inf]),
    st.sampled_from([300.0, 600.0]),
)
def test_quota_money_and_counts_hold_whatever_goes_wrong(
    tmp_path_factory: pytest.TempPathFactory,
    most: int,
    takes: int,
    poison: list[tuple[int, FailureKind]],
    outage: list[FailureKind],
    one_vector: bool,
    budget: float,
    rate: float,
) -> None:
    questions = [f"question {number:02}" for number in range(30)]
    service = Batching(
        most=most,
        takes=takes,
        poison={questions[number]: kind for number, kind in poison},
        outage=list(outage),
        one_vector=one_vector,
    )
    quota = replace(PRICED, requests_per_minute=rate, tokens_per_minute=3000, attempts=3)
    outcomes, fan_out = ran(service, questions, tmp_path_factory.mktemp("ledger"), quota, budget)
    by_query = values(outcomes)
    assert by_query.keys() == set(questions)
    assert all(by_query[question] in (question, service.poison.get(question), K.OVER_BUDGET) for question in questions)
    if math.isinf(budget):
        assert {question for question in questions if by_query[question] != question} == service.poison.keys()
    (usage,) = fan_out.usage()
    (all_calls,) = (item for item in usage.took if item.position is None)
    assert usage.calls == len(service.requests) == all_calls.calls
    assert usage.tokens.total == service.taken == all_calls.tokens.total
    assert service.taken <= budget
    for _, at, _ in service.requests:
        minute = [tokens for _, began, tokens in service.requests if at <= began < at + 60]
        assert len(minute) <= rate
        assert sum(minute) <= 3000


def test_after_a_stop_in_the_middle_nothing_is_paid_twice(tmp_path: Path) -> None:
    paid: Counter[str] = Counter()
    for stop_after in 12, 40, 70, 95:
        service = Batching(latency_s=1.0)
        with VirtualClock() as clock:
            fan_out = FanOut(stage({"echo": service}, PRICED), Ledger(str(tmp_path)), clock)
            fan_out.begin(("pool",), 0, feed([task(question) for question in QUESTIONS]))
            answered = 0
            for outcome in fan_out.outcomes():
                answered += isinstance(outcome, CallAnswer)
                if answered >= stop_after:
                    break
            fanout.stop_all(grace_s=60)
        paid.update(question for questions, _, _ in service.requests for question in questions)
    assert paid == dict.fromkeys(QUESTIONS, 1)


@pytest.mark.parametrize("takes", [math.inf, 2])
def test_a_budget_that_a_whole_request_would_exceed_is_used_by_smaller_ones(takes: float, tmp_path: Path) -> None:
    service = Batching(takes=takes)
    outcomes, fan_out = ran(service, QUESTIONS[:10], tmp_path, budget=7.5 * 20)
    failed = [kind for question, kind in values(outcomes).items() if kind != question]
    assert 0 < len(failed) <= 4
    assert set(failed) == {K.OVER_BUDGET}
    assert service.taken <= 7.5 * 20
    (warning,) = fan_out.warnings()
    assert f" {len(failed)} calls of pool were not made" in warning
