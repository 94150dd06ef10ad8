"""Guarantees to every work, shown with a judge of two steps: calls that are made, spared and failed."""

import json
from collections import Counter as Tally
from pathlib import Path

import pytest
from support.judging import TOKENS, Behaviour, Judged, Model, Support, expected_calls, task
from support.services import WorkerGone, feed

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Task, Usage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import FailureKind
from rankbeam.transforms.records.reply import Tokens

FAST = Quota(requests_per_minute=60_000)
CONTEXTS = tuple(f"sky {i} is blue, grass {i} is green" for i in range(7))
ITEMS = {
    f"q{i}": Judged(f"sky {i % 30} is blue. grass {i % 45} is red.", (CONTEXTS[i % 7], CONTEXTS[(i + 3) % 7]))
    for i in range(90)
}
"""90 items of which some are equal, and some share an answer: fewer calls than items times steps."""


def tasks() -> list[Task]:
    return [task(query_id, item.answer, item.contexts) for query_id, item in ITEMS.items()]


def judged(
    model: Model, folder: Path, quota: Quota = FAST, some: list[Task] | None = None
) -> tuple[dict[str, CallAnswer | FailedTask], FanOut]:
    """The outcome of each query; both services are one model in pools of their own."""
    services = {"extractor": model, "judge": model}
    pools, quotas = {"extractor": "a", "judge": "b"}, {"a": quota, "b": quota}
    stage = Stage("judge", {"support": Support(model)}, services, pools, quotas, {})
    (together,) = set(stage.connected().values())
    fan_out = FanOut(stage, Ledger(str(folder)))
    fan_out.begin(together, 0, feed(tasks() if some is None else some))
    outcomes: dict[str, CallAnswer | FailedTask] = {}
    for outcome in fan_out.outcomes():
        if outcome is not None:
            subjects = outcome.subjects if isinstance(outcome, CallAnswer) else (outcome.subject,)
            outcomes |= {subject.query_id: outcome for subject in subjects}
    return outcomes, fan_out


def payloads(model: Model) -> Tally[str]:
    return Tally(payload for payload, _ in model.call_log)


def test_ninety_items_make_exactly_their_distinct_calls(tmp_path: Path) -> None:
    model = Model()
    outcomes, fan_out = judged(model, tmp_path)
    assert payloads(model) == Tally(dict.fromkeys(expected_calls(ITEMS), 1))
    assert {query_id: type(outcome) for query_id, outcome in outcomes.items()} == dict.fromkeys(ITEMS, CallAnswer)
    first = outcomes["q0"]
    assert isinstance(first, CallAnswer)
    assert first.value == 0.5
    assert sum(usage.calls for usage in fan_out.usage()) == len(model.call_log)


def test_a_second_run_makes_none(tmp_path: Path) -> None:
    first, second = Model(), Model()
    outcomes, _ = judged(first, tmp_path)
    again, fan_out = judged(second, tmp_path)
    assert (again, second.call_log) == (outcomes, [])
    totals = fan_out.totals()
    assert totals[Counter.LEDGER_HITS, "a"] + totals[Counter.LEDGER_HITS, "b"] == len(first.call_log)


@pytest.mark.parametrize("answered", [1, 20, 60, 100])
def test_a_run_that_was_killed_asks_again_only_what_was_in_flight(answered: int, tmp_path: Path) -> None:
    slots = 4

    def dies(_: str, __: int, ___: int) -> str | None:
        if len(first.call_log) > answered:
            raise WorkerGone
        return None

    first, second = Model(dies), Model()
    with pytest.raises(WorkerGone):
        judged(first, tmp_path, Quota(requests_per_minute=60_000, concurrent_calls=slots))
    outcomes, _ = judged(second, tmp_path)
    assert len(outcomes) == 90
    made_twice = payloads(first) & payloads(second)
    assert payloads(first) | payloads(second) == Tally(dict.fromkeys(expected_calls(ITEMS), 1))
    assert made_twice.total() <= 2 * slots


def blocked(payload: str, _: int, __: int) -> str | None:
    return '{"finish": "blocked"}' if json.loads(payload).get("context") == CONTEXTS[2] else None


def test_a_failure_stays_with_what_needs_that_call(tmp_path: Path) -> None:
    model = Model(blocked)
    outcomes, _ = judged(model, tmp_path)
    failed = {query_id for query_id, outcome in outcomes.items() if isinstance(outcome, FailedTask)}
    assert failed == {query_id for query_id, item in ITEMS.items() if CONTEXTS[2] in item.contexts}
    one = outcomes[min(failed)]
    assert isinstance(one, FailedTask)
    assert (one.failure.stage, one.failure.kind, one.subject.panel) == ("judge", FailureKind.BLOCKED, "Faithfulness")
    assert set(payloads(model).values()) == {1}


def test_a_refusal_is_an_answer_and_is_kept(tmp_path: Path) -> None:
    judged(Model(blocked), tmp_path)
    again = Model()
    outcomes, _ = judged(again, tmp_path)
    assert not again.call_log
    assert any(isinstance(outcome, FailedTask) for outcome in outcomes.values())


def one_item(behave: Behaviour, folder: Path) -> tuple[CallAnswer | FailedTask, list[int], Usage]:
    """The outcome of one item, the attempts at its claims, and what they used."""
    model = Model(behave)
    outcomes, fan_out = judged(model, folder, some=tasks()[:1])
    attempts = [attempt for payload, attempt in model.call_log if json.loads(payload)["step"] == "claims"]
    return outcomes["q0"], attempts, fan_out.usage()[0]


def test_what_breaks_its_schema_is_asked_again_twice_with_the_number_of_the_attempt(tmp_path: Path) -> None:
    outcome, attempts, usage = one_item(lambda _, __, attempt: "{" * attempt if attempt < 3 else None, tmp_path)
    assert isinstance(outcome, CallAnswer)
    assert attempts == [1, 2, 3]
    assert (usage.pool, usage.model, usage.calls, usage.tokens) == ("a", "m-1", 3, TOKENS + TOKENS + TOKENS)


def test_what_keeps_breaking_its_schema_fails_and_is_not_kept(tmp_path: Path) -> None:
    outcome, attempts, usage = one_item(lambda _, times, __: "{" * times, tmp_path)
    assert isinstance(outcome, FailedTask)
    assert (outcome.failure.kind, outcome.failure.attempts) == (FailureKind.MALFORMED, 3)
    assert (attempts, usage.tokens) == ([1, 2, 3], TOKENS + TOKENS + TOKENS)
    assert isinstance(one_item(lambda _, __, ___: None, tmp_path)[0], CallAnswer)


def test_a_truncated_answer_is_asked_for_once_more_and_then_kept(tmp_path: Path) -> None:
    outcome, attempts, _ = one_item(lambda _, __, ___: '{"finish": "truncated"}', tmp_path)
    assert isinstance(outcome, FailedTask)
    assert (outcome.failure.kind, attempts) == (FailureKind.TRUNCATED, [1, 2])
    again, attempts, _ = one_item(lambda _, __, ___: None, tmp_path)
    assert isinstance(again, FailedTask)
    assert (again.failure.kind, attempts) == (FailureKind.TRUNCATED, [])


def test_a_longer_limit_may_help_a_truncated_answer(tmp_path: Path) -> None:
    outcome, attempts, _ = one_item(lambda _, __, n: '{"finish": "truncated"}' if n == 1 else None, tmp_path)
    assert isinstance(outcome, CallAnswer)
    assert attempts == [1, 2]


def test_what_a_work_knows_of_an_answer_counts_as_its_schema(tmp_path: Path) -> None:
    def incomplete(payload: str, _: int, attempt: int) -> str | None:
        return "{}" if json.loads(payload)["step"] == "support" and attempt == 1 else None

    model = Model(incomplete)
    outcomes, _ = judged(model, tmp_path, some=tasks()[:1])
    assert isinstance(outcomes["q0"], CallAnswer)
    assert [attempt for _, attempt in model.call_log] == [1, 1, 1, 2, 2]


def test_the_ledger_knows_what_an_answer_cost_and_who_gave_it(tmp_path: Path) -> None:
    model = Model(lambda _, __, attempt: "{" if attempt == 1 else None)
    judged(model, tmp_path, some=tasks()[:1])
    keys = [call.key for call in next(Support(model).steps(tasks()[0].item))]
    (entry,) = Ledger(str(tmp_path)).find(dict.fromkeys([key for key in keys if key is not None]))
    assert (entry.attempts, entry.tokens, entry.service, entry.depth) == (2, TOKENS + TOKENS, "extractor", None)
    assert Tokens(200, 20, 40) == TOKENS + TOKENS
