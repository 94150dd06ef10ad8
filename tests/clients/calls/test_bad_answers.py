"""A model that answers, but empty or malformed: after twenty different calls of a step its breaker opens."""

import json
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.services import Echo, Script, make, task

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Task
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

QUOTA = Quota(requests_per_minute=1500)
MOST = 60


class Model(Echo):
    """As an echo, with tokens that every answer costs."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
        return replace(await super().call(payload, timeout_s, attempt), tokens=Tokens(100, 0, 10))


def refusing(kind: FailureKind, bad: Callable[[str], bool]) -> Callable[[dict[str, str]], str]:
    """A reader that finds some answers unusable."""

    def read(answer: dict[str, str]) -> str:
        if bad(answer["query"]):
            raise CallError(kind, "the answer is empty")
        return answer["query"]

    return read


def questions(number: int, step: str = "", start: int = 0) -> list[Task]:
    """Tasks of one step."""
    tasks = [task(f"{step}{place}") for place in range(start, start + number)]
    return [planned._replace(item=replace(planned.item, step=step)) for planned in tasks] if step else tasks


def failures(outcomes: list[CallAnswer | FailedTask]) -> list[Failure]:
    return [outcome.failure for outcome in outcomes if isinstance(outcome, FailedTask)]


@pytest.mark.parametrize("calls", [102, *in_campaigns(1000)])
@pytest.mark.parametrize("latency_s", [0.0, 3.0])
def test_a_model_that_only_answers_rubbish_costs_sixty_attempts(calls: int, latency_s: float, tmp_path: Path) -> None:
    model = Model(_taking(latency_s), refusing(FailureKind.MALFORMED, lambda _: True))
    outcomes = make(questions(calls), model, tmp_path, QUOTA)
    assert len(failures(outcomes)) == calls
    assert len(model.begun) <= MOST
    not_asked = [failure for failure in failures(outcomes) if failure.attempts == 0]
    assert len(not_asked) >= calls - MOST
    assert {failure.kind for failure in not_asked} == {FailureKind.MALFORMED}
    assert all("different calls in a row" in failure.message for failure in not_asked)


@pytest.mark.long
@pytest.mark.parametrize("has_worked", [False, True])
def test_calls_wait_for_usable_answers_only_of_a_model_that_has_given_some(has_worked: bool, tmp_path: Path) -> None:
    if has_worked:
        make(questions(1, start=100), Model(), tmp_path, QUOTA)
    with VirtualClock() as clock:
        model = Model(reader=refusing(FailureKind.MALFORMED, lambda query: int(query) < 100))
        outcomes = make(questions(101), model, tmp_path, QUOTA, clock)
        assert (clock.monotonic() > QUOTA.give_up_after_s) == has_worked
    assert len(failures(outcomes)) == 100 + (not has_worked)


def _taking(seconds: float) -> Script:
    async def script(_: str, __: int) -> str | None:
        import asyncio

        await asyncio.sleep(seconds)
        return None

    return script


@pytest.mark.parametrize("kind", [FailureKind.BLOCKED, FailureKind.TRUNCATED])
def test_blocked_and_truncated_answers_open_no_breaker(kind: FailureKind, tmp_path: Path) -> None:
    model = Model(reader=refusing(kind, lambda _: True))
    outcomes = make(questions(100), model, tmp_path, QUOTA)
    assert Tally(failure.attempts for failure in failures(outcomes)) == {
        (2 if kind is FailureKind.TRUNCATED else 1): 100
    }


def test_one_bad_step_leaves_the_other_steps_of_its_service_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Model(reader=refusing(FailureKind.MALFORMED, lambda query: query.startswith("claims")))
    mixed = [task for pair in zip(questions(200, "claims"), questions(200, "grade"), strict=True) for task in pair]
    outcomes = make(mixed, model, tmp_path, QUOTA)
    assert len(failures(outcomes)) == 200
    begun = Tally("claims" if query.startswith("claims") else "grade" for query, _ in model.begun)
    assert begun["grade"] == 200
    assert begun["claims"] <= 80  # some of the twenty were tried again meanwhile
    assert [record.message.partition(": ")[0] for record in caplog.records] == ["echo, claims"]


@pytest.mark.long
def test_a_model_that_always_needs_a_repair_is_still_used(tmp_path: Path) -> None:
    model = Model()
    repaired: set[str] = set()

    def read(answer: dict[str, str]) -> str:
        if answer["query"] not in repaired:
            repaired.add(answer["query"])
            raise CallError(FailureKind.MALFORMED, "the answer is not JSON")
        return answer["query"]

    model.reader = read
    outcomes = make(questions(300), model, tmp_path, QUOTA)
    assert not failures(outcomes)
    assert len(model.begun) == 600


@pytest.mark.long
def test_a_model_that_recovers_answers_what_waited(tmp_path: Path) -> None:
    with VirtualClock() as clock:
        model = Model(reader=refusing(FailureKind.MALFORMED, lambda _: 5 <= clock.monotonic() < 60))
        outcomes = make(questions(500), model, tmp_path, QUOTA, clock)
    lost = failures(outcomes)
    assert len(lost) <= 20
    assert all(failure.attempts == 3 for failure in lost)
    assert sum(5 <= at < 60 for _, at in model.begun) <= MOST


@pytest.mark.long
def test_the_next_run_makes_only_the_calls_without_an_answer(tmp_path: Path) -> None:
    model = Model(reader=refusing(FailureKind.MALFORMED, lambda query: int(query) >= 50))
    make(questions(200), model, tmp_path, QUOTA)
    good = {query for query, _ in model.begun if int(query) < 50}
    again = Model()
    outcomes = make(questions(200), again, tmp_path, QUOTA)
    assert not failures(outcomes)
    assert len(again.begun) == 200 - len(good)
    tried = {query for query, _ in model.begun if int(query) >= 50}
    last = [query for query, _ in again.begun][-len(tried) :]
    assert set(last) == tried


def to_keep(script: Script | None, reader: Callable[[dict[str, str]], str], folder: Path) -> list[LedgerEntry]:
    """Make a call whose last malformed answer is kept, and return its entries in the ledger."""
    (call,) = questions(1)
    call = call._replace(item=replace(call.item, keeps_malformed=True))
    model = Model(script, reader)
    (failed,) = failures(make([call], model, folder, QUOTA))
    assert failed.attempts == (len(model.begun) if script is not None else 3)  # whichever run made them
    return list(Ledger(str(folder)).find({call.item.key: call.item.depth}))


def test_a_malformed_answer_that_is_kept_is_the_last_one_with_the_tokens_of_all(tmp_path: Path) -> None:
    async def script(_: str, time: int) -> str | None:
        return json.dumps({"query": f"answer {time}"})

    reader = refusing(FailureKind.MALFORMED, lambda _: True)
    for _ in range(2):  # the second time the ledger has it
        (entry,) = to_keep(script, reader, tmp_path)
        assert (json.loads(entry.answer), entry.attempts) == ({"query": "answer 3"}, 3)
        assert entry.tokens == Tokens(300, 0, 30)
        script = None


def test_a_malformed_answer_is_not_kept_where_the_call_ends_with_another_error(tmp_path: Path) -> None:
    async def script(_: str, time: int) -> str | None:
        if time > 1:
            raise CallError(FailureKind.INVALID, "refused")
        return None

    assert to_keep(script, refusing(FailureKind.MALFORMED, lambda _: True), tmp_path) == []


@pytest.mark.campaign
def test_an_answer_that_the_connection_calls_malformed_counts_alike(tmp_path: Path) -> None:
    async def script(query: str, _: int) -> str | None:
        raise CallError(FailureKind.MALFORMED, f"no choice in {json.dumps(query)}")

    model = Model(script)
    outcomes = make(questions(300), model, tmp_path, QUOTA)
    assert len(failures(outcomes)) == 300
    assert len(model.begun) <= MOST
